// Products of bf16 with bf16: of x rounded, where the policy lets it be and the machine has instructions for them.
#include "rlx/backends/cpu/matmul/bf16_kernels.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/backends/cpu/matmul/rounded_matmul.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

const char* pairs_refuse(const Graph& g, NodeId id) {
  const std::optional<Panels> p = panels_of(form_of(g, g.node(id).inputs[1]));
  if (!p || p->type != PanelType::BF16Pairs) return "its second operand is not in panels of pairs";
  if (in_dtype(g, id, 0) != DType::F32 || g.shape(id).dtype() != DType::F32)
    return "its operands and result are not f32";
  return epilogue_refuses(g, id);
}

void lower_pairs(LowerContext& c) {
  if (c.out().elements() == 0) return;
  auto& p = c.keep<RoundedProduct<PairGemm, PairKernels>>();
  p.kernels = c.kernels().pairs;
  point_rounded(c, p);
  check(reads_panels(c.kernels(), form_of(c.graph(), c.node().inputs[1]), p.gemm.k, p.gemm.n),
        "a weight in pairs of another machine");
  add_rounded(c, p, 0.1, p.kernels->products == PairProducts::Tiles ? 1500 : 300);
}

constexpr Row kPairRows[] = {
    {OpKind::DotGeneral, "gemm_pairs_bf16", pairs_refuse, lower_pairs, reads_strided_rows},
    {OpKind::FusedDot, "gemm_pairs_bf16", pairs_refuse, lower_pairs, reads_strided_rows, lies_over_epilogue},
};

}  // namespace

std::span<const Row> pair_rows() { return kPairRows; }

}  // namespace rlx::cpu
