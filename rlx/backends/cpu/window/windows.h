// Rows of windows, of resampled axes and of norms of channels.
#pragma once

#include <span>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

std::span<const Row> window_rows();
std::span<const Row> resize_rows();
std::span<const Row> channel_norm_rows();
std::span<const Row> generic_window_rows();

}  // namespace rlx::cpu
