// Kernel entries of windows, resize and channel norms.
#pragma once

#include <span>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

std::span<const KernelEntry> window_entries();
std::span<const KernelEntry> resize_entries();
std::span<const KernelEntry> channel_norm_entries();
std::span<const KernelEntry> generic_window_entries();

}  // namespace rlx::cpu
