// Rows of convolutions.
#pragma once

#include <span>

#include "rlx/codegen/entry.h"

namespace rlx::codegen {

std::span<const Row> conv_rows();

}  // namespace rlx::codegen
