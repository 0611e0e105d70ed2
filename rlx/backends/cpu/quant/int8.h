// Rows of products of bytes with sums in 32 bits.
#pragma once

#include <span>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

std::span<const KernelEntry> int8_entries();

}  // namespace rlx::cpu
