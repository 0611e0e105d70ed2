// Op structs that move elements without arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

namespace ops {

/// The same elements under other dimensions (no -1: the builder resolves it).
struct Reshape { RLX_OP(Reshape); Dims dims{}; };
/// The axes of x permuted: axis k of the result is axis perm[k] of x.
struct Transpose { RLX_OP(Transpose); std::vector<std::int64_t> perm{}; };
/// x broadcast to `dims` by NumPy rules; the rank may grow.
struct Expand { RLX_OP(Expand); Dims dims{}; };
/// x[start : limit : stride] on each axis, with 0 <= start <= limit <= extent and stride >= 1. `narrow` of the builder
/// is a slice of one axis.
struct Slice { RLX_OP(Slice); Dims starts{}; Dims limits{}; std::vector<std::int64_t> strides{}; };
/// The operands concatenated along `axis`. Their other dims are equal.
struct Concat { RLX_OP(Concat); std::int64_t axis = 0; };
/// x padded with the scalar `value`: low[d] elements before and high[d] after axis d (a negative amount crops), and
/// interior[d] between adjacent elements, as XLA's pad. Inputs: x, value (scalar).
struct Pad { RLX_OP(Pad); std::vector<std::int64_t> low{}, high{}, interior{}; };
/// x with the order of elements along `axes` reversed.
struct Reverse { RLX_OP(Reverse); std::vector<std::int64_t> axes{}; };
/// 0, 1, 2, ... along `axis`, repeated along the others.
struct Iota { RLX_OP(Iota); Dims dims{}; DType dtype = DType::I32; std::int64_t axis = 0; };
/// The extent of `axis` of x as an I64 scalar.
struct DimSize { RLX_OP(DimSize); std::int64_t axis = 0; };

}  // namespace ops
}  // namespace rlx
// clang-format on
