// Kernel entries of convolutions.
#pragma once

#include <span>

#include "rlx/codegen/entry.h"

namespace rlx::codegen {

std::span<const KernelEntry> conv_entries();

}  // namespace rlx::codegen
