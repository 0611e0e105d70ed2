// Op structs of Fourier transforms.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

namespace ops {

/// The discrete Fourier transform along `axes`.
struct Fft { RLX_OP(Fft); std::vector<std::int64_t> axes{}; bool inverse = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
