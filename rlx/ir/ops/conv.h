// Op structs of convolution and windows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

namespace ops {

/// Cross-correlation of x with filters w, XLA's conv_general_dilated (JAX: lax.conv_general_dilated; PyTorch and
/// ONNX: Conv, ConvTranspose by lhs_dilation). Inputs: x, w. With x [N, C, X..], w [O, C / groups, K..] and the
/// result [N, O, Y..]: y[n, o, p] = sum over c, t of x[n, c, p * stride + t * rhs_dilation - low] * w[o, c, t], where
/// x has lhs_dilation - 1 zeros between its elements and `low` and `high` zeros around them (negative: that many are
/// cut off), and Y = max(0, (low + (X - 1) * lhs_dilation + 1 + high - ((K - 1) * rhs_dilation + 1)) / stride + 1),
/// rounded down: a window larger than what it slides over gives an empty result, as in JAX. `groups` (which divide C
/// and O): group g of O / groups results reads group g of the C / groups features. `batch_groups` (which divide N and
/// O; N / batch_groups remain): group g of the results reads group g of the batch. Any number of axes of space; empty
/// lists stand for 1 and 0. The specs say where the axes lie: lhs_spec {batch, feature, space..} of x, rhs_spec {O,
/// C, space..} of w, out_spec {batch, feature, space..} of the result; empty ones for axes in that order. Floats
/// accumulate in at least F32, integers wrap; the result has the dtype of the operands, or `out` as in DotGeneral.
/// Whether a zero of the padding times a filter that is infinite or NaN is NaN, or is left out, is not defined.
struct Conv {
  RLX_OP(Conv);
  std::vector<std::int64_t> strides{}, low{}, high{}, lhs_dilation{}, rhs_dilation{};
  std::int64_t groups = 1, batch_groups = 1;
  std::vector<std::int64_t> lhs_spec{}, rhs_spec{}, out_spec{};
  std::optional<DType> out{};
};

/// A reduction of every window of x.
struct ReduceWindow { RLX_OP(ReduceWindow); ReduceKind fn = ReduceKind::Sum; std::vector<std::int64_t> window{}, strides{}, low{}, high{}, base_dilation{}, window_dilation{}; };
/// source put where the window's selected element of x lies, added. Inputs: x, source.
struct SelectAndScatter { RLX_OP(SelectAndScatter); ReduceKind select = ReduceKind::Max; std::vector<std::int64_t> window{}, strides{}, low{}, high{}; };
/// x resampled along `axes`.
struct Interpolate { RLX_OP(Interpolate); std::vector<std::int64_t> axes{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
