// Kernel entries of int8 matmuls.
#pragma once

#include <span>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

std::span<const KernelEntry> int8_entries();

}  // namespace rlx::cpu
