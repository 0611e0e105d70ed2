// Op structs that passes make of several ops.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

namespace ops {

/// epilogue(dot_general(x, w), operands...). Inputs: x, w, operands...; the epilogue's inputs are the accumulator, then
/// the operands in order; its one output is the result. `out` is the dtype of the accumulator, as in DotGeneral.
struct FusedDot {
  RLX_OP(FusedDot);
  std::vector<std::int64_t> lhs_contract{}, rhs_contract{}, lhs_batch{}, rhs_batch{};
  Subgraph epilogue{};
  std::optional<DType> out{};
};
/// LayerNorm(x + residual [+ bias]) over the last axis. Inputs: x, residual, [bias], [gamma], [beta]. Results: y, the
/// sum, LayerNorm's mean and rstd.
struct FusedResidualLN { RLX_OP(FusedResidualLN); double eps = 1e-5; OperandMask present{}; };
/// RmsNorm of the same sum. Inputs: x, residual, [bias], [gamma], [beta]. Results: y, the sum, rstd.
struct FusedResidualRmsNorm { RLX_OP(FusedResidualRmsNorm); double eps = 1e-6; OperandMask present{}; };
/// up * silu(gate) of the halves of the last axis: up first, or gate first. x: [.., 2N] -> [.., N], as `cast_to` where
/// that is said.
struct FusedSwiGLU { RLX_OP(FusedSwiGLU); bool gate_first = false; std::optional<DType> cast_to{}; };
/// Packed projection, split, rotation, attention, output projection. Inputs: x [B, S, E], w_qkv [E, (H + 2 KV) D],
/// w_out [H D, E'], [b_qkv, b_out], [mask], [cos, sin, where `has_rope`: q and k are rotated, see Rope; n_rot 0 is the
/// whole head]. Column order of w_qkv: all q heads, all k heads, all v heads.
struct FusedAttentionBlock {
  RLX_OP(FusedAttentionBlock);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  bool has_bias = false;
  bool has_rope = false;
  std::int64_t n_rot = 0;
  RopePairing pairing = RopePairing::Half;
};
/// Elementwise ops on broadcast inputs, run per element. The body's inputs match the operands; results are its outputs.
struct ElementwiseRegion { RLX_OP(ElementwiseRegion); Subgraph body{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
