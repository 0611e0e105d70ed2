// Matmuls with block-quantized weights in the interleaved layout: with x rounded to int8 where the policy allows it,
// else with decoded values in f32.
#include <algorithm>

#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/backends/cpu/matmul/epilogue.h"
#include "rlx/backends/cpu/matmul/matmul_calls.h"
#include "rlx/backends/cpu/quant/interleaved_layout.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

const char* interleaved_refuses(const Graph& g, NodeId id, bool int8) {
  const std::optional<InterleavedPanels> s = interleaved_panels_of(packed_layout_of(g, g.node(id).inputs[1]));
  if (!s) return "the weight is not in the interleaved block-quantized layout";
  if (s->int8 != int8) return int8 ? "the weight is packed for f32 x" : "the weight is packed for int8 x";
  if (in_dtype(g, id, 0) != DType::F32 || g.shape(id).dtype() != DType::F32)
    return "its operands and result are not f32";
  return epilogue_refuses(g, id);
}
const char* int8_refuses(const Graph& g, NodeId id) { return interleaved_refuses(g, id, true); }
const char* exact_refuses(const Graph& g, NodeId id) { return interleaved_refuses(g, id, false); }

// -- decoded values --

// Columns are decoded some at a time, as many as a panel of the f32 kernels has.
struct InterleavedF32Step {
  MatmulOperands gemm;
  const MatmulKernel* kernel = nullptr;
  InterleavedKind kind = InterleavedKind::Q4_0;
  const std::byte* interleaved = nullptr;
  std::int64_t k = 0, panel_bytes = 0, width = 0, panels_per_chunk = 1;
  const KernelTable* kernels = nullptr;
  const Scratch* scratch = nullptr;
};
void run_exact(const InterleavedF32Step& p, std::int64_t chunk) {
  const std::int64_t lanes = p.kernels->lanes_f32;
  auto* panel = reinterpret_cast<float*>(p.scratch->mine());
  const std::int64_t first = chunk * p.panels_per_chunk * p.width;
  for (std::int64_t n0 = first; n0 < std::min(p.gemm.n, first + p.panels_per_chunk * p.width); n0 += p.width) {
    const std::int64_t cols = std::min(p.width, p.gemm.n - n0);
    p.kernels->interleaved->decode(p.kind, p.k, p.interleaved + n0 / lanes * p.panel_bytes, (cols + lanes - 1) / lanes,
                                   panel);
    run_whole_matmul(p.kernel, columns_of(p.gemm, n0, cols, panel), nullptr);
  }
}

void lower_exact(LowerContext& c) {
  const PackedLayout& layout = packed_layout_of(c.graph(), c.node().inputs[1]);
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  const std::int64_t n = y.dim(-1), k = x.dim(-1);
  check(reads_interleaved(c.kernels(), layout, k, n), "the weight is packed for another instruction set");
  auto& p = c.keep<InterleavedF32Step>();
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a matmul with a packed weight does not fold to a matrix");
  const InterleavedPanels interleaved = *interleaved_panels_of(layout);
  p.kernels = &c.kernels();
  p.kind = interleaved.kind;
  p.panel_bytes = interleaved_traits(interleaved.kind).panel_bytes(k / kInterleavedGroup, interleaved.lanes);
  p.width = p.kernels->packed_nr_f32(n);
  check(p.width % interleaved.lanes == 0, "a panel is not a multiple of the vector width of the packed layout");
  p.k = k;
  p.gemm = packed_b_operands(rows->rows, n, k);
  p.gemm.a_m_stride = rows->ld;
  p.kernel = &packed_b_kernel(c.kernels(), PackedBType::F32);
  c.point(p.gemm.a, x);
  c.point(p.interleaved, c.in(1));
  c.point(p.gemm.c, y);
  point_epilogue(c, *match_epilogue(c.graph(), c.id()), n, p.gemm.epilogue);
  p.scratch = c.scratch(static_cast<std::size_t>(k * p.width) * sizeof(float));
  const double values = static_cast<double>(n) * static_cast<double>(k);
  const double ns = matmul_estimate(p.kernels->isa, MatmulWork::BlocksF32)
                        .run_ns(static_cast<double>(p.gemm.m), static_cast<double>(n), static_cast<double>(k)) +
                    0.1 * values;  // decoded
  const std::int64_t panels = (n + p.width - 1) / p.width;
  p.panels_per_chunk =
      c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(3000 * static_cast<double>(panels) / ns)));
  c.step<run_exact>(p, (panels + p.panels_per_chunk - 1) / p.panels_per_chunk, ns);
}

constexpr KernelEntry kInterleavedEntries[] = {
    {OpKind::DotGeneral, "gemm_interleaved_int8", int8_refuses, lower_packed_matmul, reads_strided_rows},
    {OpKind::FusedDot, "gemm_interleaved_int8", int8_refuses, lower_packed_matmul, reads_strided_rows,
     lies_over_epilogue},
    {OpKind::DotGeneral, "gemm_interleaved_f32", exact_refuses, lower_exact, reads_strided_rows},
    {OpKind::FusedDot, "gemm_interleaved_f32", exact_refuses, lower_exact, reads_strided_rows, lies_over_epilogue},
};

}  // namespace

std::span<const KernelEntry> interleaved_entries() { return kInterleavedEntries; }

}  // namespace rlx::cpu
