// f32 matmuls: with packed weights and epilogues, and of two strided run-time operands.
#include <algorithm>

#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/backends/cpu/matmul/dot_axes.h"
#include "rlx/backends/cpu/matmul/epilogue.h"
#include "rlx/backends/cpu/matmul/matmul_calls.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/backends/cpu/quant/interleaved_layout.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

// -- packed weight --

constexpr const char* kNotF32 = "its operands and result are not f32";

const char* packed_refuses(const Graph& g, NodeId id) {
  const std::optional<Panels> panels = panels_of(packed_layout_of(g, g.node(id).inputs[1]));
  if (!panels) return "the weight is not prepacked";
  if (panels->type == PackedBType::BF16Pairs) return "the weight is prepacked as bf16 pairs";
  if (in_dtype(g, id, 0) != DType::F32 || g.shape(id).dtype() != DType::F32) return kNotF32;
  return epilogue_refuses(g, id);
}

// -- x rounded to bf16, where the policy allows that loss and the machine has bf16 instructions --

const char* rounded_refuses(const Graph& g, NodeId id) {
  const std::optional<Panels> panels = panels_of(packed_layout_of(g, g.node(id).inputs[1]));
  if (!panels || panels->type != PackedBType::BF16Pairs) return "the weight is not prepacked as bf16 pairs";
  if (in_dtype(g, id, 0) != DType::F32 || g.shape(id).dtype() != DType::F32) return kNotF32;
  return epilogue_refuses(g, id);
}

// -- two run-time operands --

// The kernel accepts any strides: m and n each take one axis of the result, and other result axes are outer axes.
const char* strided_dot_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return refuse_unless(g.shape(id).rank() <= kGemmMaxAxes && in_shape(g, id, 0).rank() <= kGemmMaxAxes,
                       "it has more axes than the kernel supports");
}

// A bias runs along the columns, so the last axis of the result must be an axis of rhs.
const char* strided_fused_refuses(const Graph& g, NodeId id) {
  if (const char* why = strided_dot_refuses(g, id)) return why;
  if (const char* why = epilogue_refuses(g, id)) return why;
  const auto layout = match_epilogue(g, id);
  return refuse_unless(!layout->bias.used() || has_rhs_free_axis(g, id),
                       "the bias runs along an axis that does not come from the second operand");
}

std::optional<PackedLayout> dot_packed_layout(const KernelTable& kernels, const Graph& g, NodeId id, int operand,
                                              const ConstantMatrix& m) {
  if (operand != 1 || m.dtype != DType::F32 || in_dtype(g, id, 0) != DType::F32 || m.k < 1 || m.n < 1)
    return std::nullopt;
  if (is_block_scheme(m.scheme)) return interleaved_layout(kernels, m);
  if (const auto pairs = bf16_pair_layout(kernels, m)) return pairs;
  return packed_b_layout(kernels, m);
}
bool dot_reads_packed(const Graph&, NodeId, int operand, const PackedLayout& layout) {
  return operand == 1 && (panels_of(layout) || interleaved_panels_of(layout));
}

bool strided_reads_strided(const Graph&, NodeId, int operand) { return operand < 2; }

// As lies_over_epilogue, but the result must not alias x or w.
bool strided_in_place(const Graph& g, NodeId id, int operand, int) {
  const auto& inputs = g.node(id).inputs;
  const Value& candidate = inputs[static_cast<std::size_t>(operand)];
  return operand >= 2 && !(candidate == inputs[0]) && !(candidate == inputs[1]) &&
         read_before_written(g, id, operand - 2);
}

constexpr KernelEntry kDotEntries[] = {
    {OpKind::DotGeneral, "gemm_bf16", rounded_refuses, lower_packed_matmul, reads_strided_rows},
    {OpKind::FusedDot, "gemm_bf16", rounded_refuses, lower_packed_matmul, reads_strided_rows, lies_over_epilogue},
    {OpKind::DotGeneral, "gemm_packed_f32", packed_refuses, lower_packed_matmul, reads_strided_rows},
    {OpKind::FusedDot, "gemm_packed_f32", packed_refuses, lower_packed_matmul, reads_strided_rows, lies_over_epilogue},
    {OpKind::DotGeneral, "gemm_strided_f32", strided_dot_refuses, lower_runtime_matmul, strided_reads_strided, nullptr,
     false, dot_packed_layout, dot_reads_packed},
    {OpKind::FusedDot, "gemm_strided_f32", strided_fused_refuses, lower_runtime_matmul, strided_reads_strided,
     strided_in_place, false, dot_packed_layout, dot_reads_packed},
};

}  // namespace

std::span<const KernelEntry> dot_entries() { return kDotEntries; }

}  // namespace rlx::cpu
