// Products of I8 and U8 with sums in I32.
#include "rlx/backends/cpu/rows/bytes.h"

#include <algorithm>

#include "rlx/backends/cpu/kernels/bytes.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

bool is_byte(DType t) { return t == DType::I8 || t == DType::U8; }

const char* bytes_refuse(const Graph& g, NodeId id) {
  if (!is_byte(in_dtype(g, id, 0)) || !is_byte(in_dtype(g, id, 1)) || g.shape(id).dtype() != DType::I32)
    return "it is no product of bytes in i32";
  return refuse_unless(g.shape(id).rank() <= kGemmMaxAxes && in_shape(g, id, 0).rank() <= kGemmMaxAxes,
                       "it has more axes than the kernel");
}

struct ByteProduct {
  ByteGemm gemm;
  ByteGemmPlan plan;
  const ByteKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
};
void run_byte_pack(const ByteProduct& p, std::int64_t chunk) { p.kernels->pack(p.gemm, p.plan, chunk); }
void run_bytes(const ByteProduct& p, std::int64_t chunk) { p.kernels->run(p.gemm, p.plan, chunk, p.scratch->mine()); }

/// Without axes of one element, neighbours that walk everything in one stride as one.
std::vector<GemmAxis> merged(const std::vector<GemmAxis>& axes) {
  std::vector<GemmAxis> out;
  for (const GemmAxis& axis : axes) {
    if (axis.extent == 1) continue;
    GemmAxis* last = out.empty() ? nullptr : &out.back();
    if (last && last->a == axis.a * axis.extent && last->b == axis.b * axis.extent && last->c == axis.c * axis.extent)
      *last = {last->extent * axis.extent, axis.a, axis.b, axis.c};
    else
      out.push_back(axis);
  }
  return out;
}
GemmAxis taken(std::vector<GemmAxis>& axes) {
  if (axes.empty()) return {};
  const GemmAxis last = axes.back();
  axes.pop_back();
  return last;
}

void lower_bytes(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  const auto& op = c.op<ops::DotGeneral>();
  const auto has = [](const std::vector<std::int64_t>& axes, int a) {
    return std::find(axes.begin(), axes.end(), a) != axes.end();
  };
  // The result is batch ++ lhs free ++ rhs free, row-major.
  std::vector<GemmAxis> outer, rows, cols, contracted;
  std::size_t at = 0;
  for (std::size_t i = 0; i < op.lhs_batch.size(); ++i, ++at)
    outer.push_back({y.dims[at], x.stride(static_cast<int>(op.lhs_batch[i])),
                     w.stride(static_cast<int>(op.rhs_batch[i])), y.strides[at]});
  for (int a = 0; a < x.rank(); ++a)
    if (!has(op.lhs_batch, a) && !has(op.lhs_contract, a))
      rows.push_back({y.dims[at], x.stride(a), 0, y.strides[at]}), ++at;
  for (int b = 0; b < w.rank(); ++b)
    if (!has(op.rhs_batch, b) && !has(op.rhs_contract, b))
      cols.push_back({y.dims[at], 0, w.stride(b), y.strides[at]}), ++at;
  auto& p = c.keep<ByteProduct>();
  ByteGemm& g = p.gemm;
  g.k = 1;
  for (std::size_t i = 0; i < op.lhs_contract.size(); ++i) {
    const int la = static_cast<int>(op.lhs_contract[i]), lb = static_cast<int>(op.rhs_contract[i]);
    contracted.push_back({x.dim(la), x.stride(la), w.stride(lb), 0});
    g.k *= x.dim(la);
  }
  outer = merged(outer), rows = merged(rows), cols = merged(cols), contracted = merged(contracted);
  const GemmAxis row = taken(rows), col = taken(cols);
  check(col.extent == 1 || col.c == 1, "columns of a product are adjacent");
  g.m = row.extent, g.a_m_stride = row.a, g.ldc = row.extent > 1 ? row.c : col.extent;
  g.n = col.extent, g.b_n_stride = col.b;
  outer.insert(outer.end(), rows.begin(), rows.end());
  outer.insert(outer.end(), cols.begin(), cols.end());
  check(outer.size() <= kGemmMaxAxes && contracted.size() <= kGemmMaxAxes, "a product of this many axes");
  std::copy(outer.begin(), outer.end(), g.outer);
  std::copy(contracted.begin(), contracted.end(), g.contracted);
  g.num_outer = static_cast<int>(outer.size()), g.num_contracted = static_cast<int>(contracted.size());
  for (const GemmAxis& axis : outer) g.products *= axis.extent;
  g.a_signed = x.dtype == DType::I8, g.b_signed = w.dtype == DType::I8;
  c.point(g.a, x);
  c.point(g.b, w);
  c.point(g.c, y);
  p.kernels = &byte_kernels(c.kernels().isa, c.kernels().strips->products);
  p.plan = p.kernels->plan(g, c.threads());
  g.codes = c.workspace(static_cast<std::size_t>(p.plan.code_bytes));
  p.scratch = c.scratch(static_cast<std::size_t>(p.plan.panel_bytes));
  const double codes = static_cast<double>(g.products * g.m) * static_cast<double>(p.plan.padded_k);
  c.step<run_byte_pack>(p, p.plan.pack_chunks, 0.05 * codes);
  const double panels =
      static_cast<double>(g.products * p.plan.row_chunks * g.n) * static_cast<double>(p.plan.padded_k);
  c.step<run_bytes>(p, p.plan.chunks,
                    0.1 * panels + codes * static_cast<double>(g.n) / (2 * gemm_flops_per_ns(c.kernels().isa)));
}

bool bytes_read_strided(const Graph&, NodeId, int operand) { return operand < 2; }

constexpr Row kByteRows[] = {{OpKind::DotGeneral, "gemm_bytes_i32", bytes_refuse, lower_bytes, bytes_read_strided}};

}  // namespace

std::span<const Row> byte_rows() { return kByteRows; }

}  // namespace rlx::cpu
