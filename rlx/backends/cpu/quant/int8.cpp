// int8 matmuls: I8 and U8 operands with I32 accumulators.
#include "rlx/backends/cpu/entries.h"

#include <algorithm>

#include "rlx/backends/cpu/matmul/dot_axes.h"
#include "rlx/backends/cpu/matmul/matmul_calls.h"
#include "rlx/backends/cpu/quant/int8_kernels.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

bool is_byte(DType t) { return t == DType::I8 || t == DType::U8; }

const char* bytes_refuse(const Graph& g, NodeId id) {
  if (!is_byte(in_dtype(g, id, 0)) || !is_byte(in_dtype(g, id, 1)) || g.shape(id).dtype() != DType::I32)
    return "it is not a matmul of 8-bit integers with an i32 result";
  return refuse_unless(g.shape(id).rank() <= kGemmMaxAxes && in_shape(g, id, 0).rank() <= kGemmMaxAxes,
                       "it has more axes than the kernel supports");
}

struct Int8Product {
  ByteGemm gemm;
  ByteGemmPlan plan;
  const ByteKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
};
void run_byte_pack(const Int8Product& p, std::int64_t chunk) { p.kernels->pack(p.gemm, p.plan, chunk); }
void run_bytes(const Int8Product& p, std::int64_t chunk) { p.kernels->run(p.gemm, p.plan, chunk, p.scratch->mine()); }

void lower_bytes(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  DotAxes axes = dot_axes(c);
  const bool swapped = as_gemv(axes);
  ByteGemm g;
  place_axes(axes, g);
  const View &a = swapped ? w : x, &b = swapped ? x : w;
  g.a_signed = a.dtype == DType::I8, g.b_signed = b.dtype == DType::I8;
  add_int8_matmul(c, g, {&a}, {&b}, 0);
}

bool bytes_read_strided(const Graph&, NodeId, int operand) { return operand < 2; }

constexpr KernelEntry kInt8Entries[] = {
    {OpKind::DotGeneral, "gemm_int8_i32", bytes_refuse, lower_bytes, bytes_read_strided}};

}  // namespace

std::span<const KernelEntry> int8_entries() { return kInt8Entries; }

void add_int8_matmul(LowerContext& c, const ByteGemm& product, const MatmulSource& a, const MatmulSource& b,
                     std::int64_t at) {
  auto& p = c.keep<Int8Product>();
  ByteGemm& g = p.gemm;
  g = product;
  g.k = g.batch = 1;
  for (int i = 0; i < g.num_contracted; ++i) g.k *= g.contracted[i].extent;
  for (int i = 0; i < g.num_outer; ++i) g.batch *= g.outer[i].extent;
  point_source(c, g.a, a);
  point_source(c, g.b, b);
  c.point(g.c, c.out(), at);
  p.kernels = &byte_kernels(c.kernels().isa, c.kernels().interleaved->kind);
  p.plan = p.kernels->plan(g, c.threads());
  g.quants = c.workspace(static_cast<std::size_t>(p.plan.packed_a_bytes));
  p.scratch = c.scratch(static_cast<std::size_t>(p.plan.panel_bytes));
  const double quants = static_cast<double>(g.batch * g.m) * static_cast<double>(p.plan.padded_k);
  c.step<run_byte_pack>(p, p.plan.pack_chunks, 0.05 * quants);
  const double panels = static_cast<double>(g.batch * p.plan.row_chunks * g.n) * static_cast<double>(p.plan.padded_k);
  c.step<run_bytes>(p, p.plan.chunks,
                    0.1 * panels + quants * static_cast<double>(g.n) / (2 * gemm_flops_per_ns(c.kernels().isa)));
}

}  // namespace rlx::cpu
