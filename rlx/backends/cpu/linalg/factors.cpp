// Matrix factorisations: one kernel call for some matrices of the batch.
#include <algorithm>
#include <cmath>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/linalg/factors_kernels.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

struct FactorStep {
  FactorArgs args;
  FactorKernels::Run run = nullptr;
  std::int64_t matrices = 0, per_chunk = 1;
  const Scratch* scratch = nullptr;  // per thread; null where `common` is used
  const Common* common = nullptr;    // shared memory, used where a single chunk runs

  static void run_chunk(const FactorStep& s, std::int64_t chunk) {
    const std::int64_t first = chunk * s.per_chunk;
    s.run(s.args, first, std::min(s.matrices, first + s.per_chunk), s.scratch ? s.scratch->mine() : s.common->base);
  }
};

FactorType type_of(DType t) {
  switch (t) {
    case DType::F64: return FactorType::F64;
    case DType::C64: return FactorType::C64;
    case DType::C128: return FactorType::C128;
    default: return FactorType::F32;
  }
}

// Multiply-adds of a matrix, times the slowdown of the kernel against GEMM.
double work_of(FactorKind kind, double m, double n, double columns) {
  const double k = std::min(m, n);
  switch (kind) {
    case FactorKind::Cholesky: return n * n * n / 6 * 2;
    case FactorKind::TriangularSolve: return n * n * columns / 2 * 2;
    case FactorKind::Lu: return m * n * k / 2 * 3;
    case FactorKind::Qr: return m * n * k * 2 * 3;
    case FactorKind::Eigh: return n * n * n * 6 * 3;
    case FactorKind::Svd: break;
  }
  return m * n * k * 12 * 3;
}

template <class Op>
void lower_factor(LowerContext& c, FactorKind kind) {
  const View a = c.in(0);
  auto& s = c.keep<FactorStep>();
  FactorArgs& f = s.args;
  f.rows = a.dim(-2);
  f.cols = a.dim(-1);
  const View batch = c.num_inputs() > 1 ? c.in(1) : a;
  s.matrices = product(std::span(batch.dims).first(batch.dims.size() - 2));
  std::int64_t elements = 0;
  for (int r = 0; r < static_cast<int>(c.node().num_results()); ++r) elements += c.out(r).elements();
  if (elements == 0) return;
  c.point(f.a, a);
  if constexpr (std::is_same_v<Op, ops::TriangularSolve>) {
    const auto& op = c.op<Op>();
    f.b_rows = batch.dim(-2);
    f.b_cols = batch.dim(-1);
    c.point(f.b, batch);
    f.left = op.left, f.lower = op.lower, f.transpose = op.transpose, f.conjugate = op.conjugate;
    f.unit_diagonal = op.unit_diagonal;
  }
  if constexpr (std::is_same_v<Op, ops::Qr> || std::is_same_v<Op, ops::Svd>) f.full = c.op<Op>().full;
  for (int r = 0; r < static_cast<int>(c.node().num_results()); ++r)
    if (c.is_read(r)) c.point(f.out[r], c.out(r));
  const FactorType type = type_of(a.dtype);
  s.run = factor_kernels(c.kernels().isa, type).run[static_cast<int>(kind)];
  const double columns = static_cast<double>(f.left ? f.b_cols : f.b_rows);
  const double slower = type == FactorType::F32 ? 1.0 : type == FactorType::C128 ? 8 : type == FactorType::C64 ? 4 : 2;
  const double n = static_cast<double>(f.cols);
  const double ns =
      100 + 20 * n +
      work_of(kind, static_cast<double>(f.rows), n, columns) * slower * 2 / gemm_flops_per_ns(c.kernels().isa);
  s.per_chunk = c.grain(std::clamp<std::int64_t>(static_cast<std::int64_t>(20000 / ns), 1, s.matrices));
  const std::int64_t chunks = (s.matrices + s.per_chunk - 1) / s.per_chunk;
  const std::size_t bytes = factor_scratch(kind, type, f);
  if (chunks > 1)
    s.scratch = c.scratch(bytes);
  else
    s.common = c.common(bytes);
  c.step<FactorStep::run_chunk>(s, chunks, ns * static_cast<double>(s.matrices));
}

void lower_cholesky(LowerContext& c) { lower_factor<ops::Cholesky>(c, FactorKind::Cholesky); }
void lower_triangular_solve(LowerContext& c) { lower_factor<ops::TriangularSolve>(c, FactorKind::TriangularSolve); }
void lower_lu(LowerContext& c) { lower_factor<ops::Lu>(c, FactorKind::Lu); }
void lower_qr(LowerContext& c) { lower_factor<ops::Qr>(c, FactorKind::Qr); }
void lower_eigh(LowerContext& c) { lower_factor<ops::Eigh>(c, FactorKind::Eigh); }
void lower_svd(LowerContext& c) { lower_factor<ops::Svd>(c, FactorKind::Svd); }

constexpr KernelEntry kFactorEntries[] = {
    {OpKind::Cholesky, "cholesky", never_refuses, lower_cholesky},
    {OpKind::TriangularSolve, "triangular_solve", never_refuses, lower_triangular_solve},
    {OpKind::Lu, "lu", never_refuses, lower_lu},
    {OpKind::Qr, "qr", never_refuses, lower_qr},
    {.kind = OpKind::Eigh, .kernel = "eigh", .refuses = never_refuses, .lower = lower_eigh, .skips_unread = 0b10},
    {.kind = OpKind::Svd, .kernel = "svd", .refuses = never_refuses, .lower = lower_svd, .skips_unread = 0b101},
};

}  // namespace

std::span<const KernelEntry> factor_entries() { return kFactorEntries; }

}  // namespace rlx::cpu
