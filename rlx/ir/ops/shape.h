// Op structs that move elements without computing.
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
/// out[i_perm] = x[i]: result dim k is input dim perm[k].
struct Transpose { RLX_OP(Transpose); std::vector<std::int64_t> perm{}; };
/// x broadcast to `dims` (NumPy rules, rank may grow).
struct Expand { RLX_OP(Expand); Dims dims{}; };
/// x[start : limit : stride] on each axis; 0 <= start <= limit <= extent, stride >= 1. `narrow` is its one-axis form.
struct Slice { RLX_OP(Slice); Dims starts{}; Dims limits{}; std::vector<std::int64_t> strides{}; };
/// Operands joined along `axis`; the other dims agree.
struct Concat { RLX_OP(Concat); std::int64_t axis = 0; };
/// x with `low[d]` copies of the scalar `value` before and `high[d]` after each axis (negative amounts crop) and
/// `interior[d]` between neighbours. Inputs: x, value (scalar).
struct Pad { RLX_OP(Pad); std::vector<std::int64_t> low{}, high{}, interior{}; };
/// x with the order along `axes` reversed.
struct Reverse { RLX_OP(Reverse); std::vector<std::int64_t> axes{}; };
/// 0, 1, 2, ... along `axis`, repeated along the others.
struct Iota { RLX_OP(Iota); Dims dims{}; DType dtype = DType::I32; std::int64_t axis = 0; };
/// The extent of `axis` of x as an I64 scalar.
struct DimSize { RLX_OP(DimSize); std::int64_t axis = 0; };

}  // namespace ops
}  // namespace rlx
// clang-format on
