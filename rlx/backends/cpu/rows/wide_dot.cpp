// Products of f64, of f16 and bf16, and of integers of 8 and 16 bits, with any axes.
#include "rlx/backends/cpu/rows/wide_dot.h"

#include <algorithm>

#include "rlx/backends/cpu/kernels/wide_gemm.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

bool packs_as_float(DType t) { return t == DType::F16 || t == DType::BF16; }
bool packs_byte(DType t) { return t == DType::I8 || t == DType::U8; }
bool packs_short(DType t) { return t == DType::I16 || t == DType::U16; }

// Offsets along one axis of a product, which several of an operand may make.
struct AxisOffsets {
  std::vector<std::int64_t> offsets;
  WideAxis axis() const {
    WideAxis out;
    out.offsets = offsets.data();
    out.extent = static_cast<std::int64_t>(offsets.size());
    const std::int64_t step = offsets.size() > 1 ? offsets[1] : 1;
    bool even = step != 0 && (offsets.empty() || offsets[0] == 0);
    for (std::size_t i = 0; i < offsets.size() && even; ++i) even = offsets[i] == static_cast<std::int64_t>(i) * step;
    out.step = even ? step : 0;
    return out;
  }
};
AxisOffsets offsets_of(const View& v, const std::vector<std::int64_t>& axes) {
  AxisOffsets out;
  out.offsets = {0};
  for (const std::int64_t axis : axes) {
    std::vector<std::int64_t> next;
    next.reserve(out.offsets.size() * static_cast<std::size_t>(v.dim(static_cast<int>(axis))));
    for (const std::int64_t base : out.offsets)
      for (std::int64_t i = 0; i < v.dim(static_cast<int>(axis)); ++i)
        next.push_back(base + i * v.stride(static_cast<int>(axis)));
    out.offsets = std::move(next);
  }
  return out;
}
std::vector<std::int64_t> other_axes(const View& v, const std::vector<std::int64_t>& a,
                                     const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < v.rank(); ++i)
    if (std::find(a.begin(), a.end(), i) == a.end() && std::find(b.begin(), b.end(), i) == b.end()) out.push_back(i);
  return out;
}

struct WideStep {
  AxisOffsets a_batch, a_row, a_depth, b_batch, b_depth, b_col;
  WideGemm gemm;
  WidePlan plan;
  const WideKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
};
void run_pack_a(const WideStep& s, std::int64_t chunk) { s.kernels->pack_a(s.gemm, s.plan, chunk); }
void run_pack_b(const WideStep& s, std::int64_t chunk) { s.kernels->pack_b(s.gemm, s.plan, chunk); }
void run_wide(const WideStep& s, std::int64_t chunk) { s.kernels->run(s.gemm, s.plan, chunk, s.scratch->mine()); }

}  // namespace

const char* wide_dot_refuses(const Graph& g, NodeId id) {
  const DType a = in_dtype(g, id, 0), b = in_dtype(g, id, 1), y = g.shape(id).dtype();
  const bool takes = (a == DType::F64 && b == DType::F64) ||
                     ((packs_as_float(a) || a == DType::F32) && (packs_as_float(b) || b == DType::F32) &&
                      (packs_as_float(y) || y == DType::F32)) ||
                     (packs_byte(a) && packs_byte(b)) || (packs_short(a) && packs_short(b) && dtype_bits(y) <= 32);
  if (!takes) return "its dtypes are none of those that are packed";
  for (const std::int64_t axis : g.node(id).op.as<ops::DotGeneral>().lhs_contract)
    if (in_shape(g, id, 0).dim(static_cast<int>(axis)).is_static(0)) return "it sums nothing up";
  return nullptr;
}

void lower_wide_dot(LowerContext& c) {
  const auto& op = c.op<ops::DotGeneral>();
  const View a = c.in(0), b = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<WideStep>();
  s.a_batch = offsets_of(a, op.lhs_batch);
  s.b_batch = offsets_of(b, op.rhs_batch);
  s.a_depth = offsets_of(a, op.lhs_contract);
  s.b_depth = offsets_of(b, op.rhs_contract);
  s.a_row = offsets_of(a, other_axes(a, op.lhs_batch, op.lhs_contract));
  s.b_col = offsets_of(b, other_axes(b, op.rhs_batch, op.rhs_contract));
  WideGemm& g = s.gemm;
  g.a_batch = s.a_batch.axis(), g.a_row = s.a_row.axis(), g.a_depth = s.a_depth.axis();
  g.b_batch = s.b_batch.axis(), g.b_depth = s.b_depth.axis(), g.b_col = s.b_col.axis();
  g.a_type = a.dtype, g.b_type = b.dtype, g.y_type = y.dtype;
  c.point(g.a, a);
  c.point(g.b, b);
  c.point(g.y, y);
  const bool in_double = a.dtype == DType::F64 || packs_short(a.dtype);
  s.kernels = &wide_kernels(c.kernels().isa, in_double);
  s.plan = s.kernels->plan(g, c.threads());
  g.packed_a = c.workspace(s.plan.a_bytes);
  g.packed_b = c.workspace(s.plan.b_bytes);
  s.scratch = c.scratch(s.plan.scratch_bytes);
  const double rate = gemm_flops_per_ns(c.kernels().isa) / (in_double ? 2 : 1);
  c.step<run_pack_a>(s, s.plan.a_chunks, 1.0 * static_cast<double>(a.elements()));
  c.step<run_pack_b>(s, s.plan.b_chunks, 1.0 * static_cast<double>(b.elements()));
  c.step<run_wide>(s, s.plan.chunks,
                   2.0 * static_cast<double>(y.elements()) * static_cast<double>(g.a_depth.extent) / rate);
}

}  // namespace rlx::cpu
