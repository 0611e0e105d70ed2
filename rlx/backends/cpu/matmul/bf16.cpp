// bf16 matmuls that round x to bf16, where the policy allows that precision loss and the machine has bf16 instructions.
#include "rlx/backends/cpu/matmul/bf16_kernels.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/backends/cpu/matmul/rounded_matmul.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

const char* bf16_refuses(const Graph& g, NodeId id) {
  const std::optional<Panels> p = panels_of(packed_layout_of(g, g.node(id).inputs[1]));
  if (!p || p->type != PackedBType::BF16Pairs) return "the weight is not prepacked as bf16 pairs";
  if (in_dtype(g, id, 0) != DType::F32 || g.shape(id).dtype() != DType::F32)
    return "its operands and result are not f32";
  return epilogue_refuses(g, id);
}

void lower_bf16(LowerContext& c) {
  if (c.out().elements() == 0) return;
  auto& p = c.keep<RoundedMatmul<Bf16Gemm, Bf16Kernels>>();
  p.kernels = c.kernels().bf16;
  point_rounded(c, p);
  check(reads_packed_b(c.kernels(), packed_layout_of(c.graph(), c.node().inputs[1]), p.gemm.k, p.gemm.n),
        "the weight is packed for another instruction set");
  add_rounded(c, p, matmul_estimate(c.kernels().isa, MatmulWork::PairsRounded, p.kernels->kind == Bf16DotKind::Tiles));
}

constexpr KernelEntry kBf16Entries[] = {
    {OpKind::DotGeneral, "gemm_bf16", bf16_refuses, lower_bf16, reads_strided_rows},
    {OpKind::FusedDot, "gemm_bf16", bf16_refuses, lower_bf16, reads_strided_rows, lies_over_epilogue},
};

}  // namespace

std::span<const KernelEntry> bf16_entries() { return kBf16Entries; }

}  // namespace rlx::cpu
