// Op structs that fusion passes make of several ops.
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

/// epilogue(dot_general(x, w), operands...). Inputs: x, w, operands... The inputs of the epilogue are the accumulator,
/// then the operands in order. Its one output is the result. `out` is the dtype of the accumulator, as in DotGeneral.
struct FusedDot {
  RLX_OP(FusedDot);
  std::vector<std::int64_t> lhs_contract{}, rhs_contract{}, lhs_batch{}, rhs_batch{};
  Subgraph epilogue{};
  std::optional<DType> out{};
};
/// LayerNorm(x + residual [+ bias]) over the last axis. Inputs: x, residual, [bias], [gamma], [beta]. Results: y, the
/// sum x + residual [+ bias], and the mean and rstd of LayerNorm.
struct FusedResidualLN { RLX_OP(FusedResidualLN); double eps = 1e-5; OperandMask present{}; };
/// RmsNorm(x + residual [+ bias]) over the last axis. Inputs: x, residual, [bias], [gamma], [beta]. Results: y, the sum
/// x + residual [+ bias], and the rstd of RmsNorm.
struct FusedResidualRmsNorm { RLX_OP(FusedResidualRmsNorm); double eps = 1e-6; OperandMask present{}; };
/// up * silu(gate), where up and gate are the halves of the last axis: x [.., 2N] -> [.., N]. up is the first half, or
/// the second with `gate_first`. The result is cast to `cast_to` if that is set.
struct FusedSwiGLU { RLX_OP(FusedSwiGLU); bool gate_first = false; std::optional<DType> cast_to{}; };
/// A fused attention layer: the joined projection of q, k and v, their split, rotary position, attention, output
/// projection. Inputs: x [B, S, E], w_qkv [E, (H + 2 KV) D], w_out [H D, E'], [b_qkv, b_out], [mask], [cos, sin]. The
/// columns of w_qkv are all q heads, then all k heads, then all v heads. `has_rope`: q and k are rotated by cos and sin
/// (see Rope); n_rot 0 rotates the whole head.
struct FusedAttentionBlock {
  RLX_OP(FusedAttentionBlock);
  std::int64_t num_heads = 1, kv_heads = num_heads, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  bool has_bias = false;
  bool has_rope = false;
  std::int64_t n_rot = 0;
  RopePairing pairing = RopePairing::Half;
};
/// Elementwise ops on broadcast operands, run per element as one op. The inputs of the body match the operands, its
/// outputs are the results.
struct ElementwiseRegion { RLX_OP(ElementwiseRegion); Subgraph body{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
