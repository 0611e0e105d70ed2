// Products of bf16 with bf16: of x rounded, where the policy lets it be and the machine has instructions for them.
#include <algorithm>

#include "rlx/backends/cpu/kernels/pairs.h"
#include "rlx/backends/cpu/panels.h"
#include "rlx/backends/cpu/rows/epilogue.h"
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

struct PairProduct {
  PairGemm gemm;
  StripPlan plan;
  const PairKernels* kernels = nullptr;
  const Common* common = nullptr;
  PairGemm placed() const {
    PairGemm g = gemm;
    g.rounded = reinterpret_cast<std::int32_t*>(common->base);
    return g;
  }
};
void run_round(const PairProduct& p, std::int64_t chunk) { p.kernels->round(p.placed(), p.plan, chunk); }
void run_pairs(const PairProduct& p, std::int64_t chunk) { p.kernels->run(p.placed(), p.plan, chunk); }

void lower_pairs(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  const std::int64_t n = y.dim(-1), k = x.dim(-1);
  check(reads_panels(c.kernels(), form_of(c.graph(), c.node().inputs[1]), k, n),
        "a weight in pairs of another machine");
  auto& p = c.keep<PairProduct>();
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a product of pairs folds to rows");
  p.kernels = c.kernels().pairs;
  p.gemm.m = rows->rows, p.gemm.n = n, p.gemm.k = k;
  p.gemm.lda = rows->ld, p.gemm.ldc = n;
  c.point(p.gemm.a, x);
  c.point(p.gemm.strips, c.in(1));
  c.point(p.gemm.c, y);
  point_epilogue(c, *match_epilogue(c.graph(), c.id()), n, p.gemm.epilogue);
  p.plan = p.kernels->plan(p.gemm, c.threads());
  p.common = c.common(static_cast<std::size_t>(p.plan.code_bytes));
  const double nk = static_cast<double>(n) * static_cast<double>(k), flops_per_ns = p.plan.tiles ? 1500 : 300;
  c.step<run_round>(p, p.plan.quantize_chunks, 0.1 * static_cast<double>(x.elements()));
  c.step<run_pairs>(p, p.plan.chunks, std::max(2 * static_cast<double>(p.gemm.m) * nk / flops_per_ns, nk / 20));
}

// x may be a strided matrix; with more axes its rows might not fold.
bool pairs_read_strided(const Graph& g, NodeId id, int operand) {
  return operand == 0 && in_shape(g, id, 0).rank() <= 2;
}
// As of a packed product.
bool pairs_write_over(const Graph& g, NodeId id, int operand, int) {
  const auto& inputs = g.node(id).inputs;
  return operand >= 2 && !(inputs[static_cast<std::size_t>(operand)] == inputs[0]) &&
         read_before_written(g, id, operand - 2);
}

constexpr Row kPairRows[] = {
    {OpKind::DotGeneral, "gemm_pairs_bf16", pairs_refuse, lower_pairs, pairs_read_strided},
    {OpKind::FusedDot, "gemm_pairs_bf16", pairs_refuse, lower_pairs, pairs_read_strided, pairs_write_over},
};

}  // namespace

std::span<const Row> pair_rows() { return kPairRows; }

}  // namespace rlx::cpu
