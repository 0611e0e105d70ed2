// Matrix factorizations that StableHLO has ops for: Cholesky and triangular solves. The others run on the host.
#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::tpu {
namespace {

// XLA reads imaginary parts of the diagonal, which are zero in a Hermitian matrix. It leaves the upper triangle of its
// factor undefined.
void emit_cholesky(EmitContext& c) {
  Hlo a = c.in(0);
  if (a.elements() == 0) return c.set(a);
  const Hlo rows = c.w.iota(DType::I32, a.dims, a.rank() - 2), columns = c.w.iota(DType::I32, a.dims, a.rank() - 1);
  if (is_complex(a.dtype)) a = c.w.complex(c.w.real(a), c.w.select(c.w.compare("EQ", rows, columns), 0.0, c.w.imag(a)));
  const Hlo l = c.w.op("cholesky", {&a}, type_of(a), "lower = true");
  c.set(c.w.select(c.w.compare("GE", rows, columns), l, 0.0));
}

void emit_triangular_solve(EmitContext& c) {
  const auto& op = c.op<ops::TriangularSolve>();
  Hlo a = c.in(0);
  const Hlo& b = c.in(1);
  if (b.elements() == 0) return c.set(b);
  const bool conjugate = op.conjugate && is_complex(a.dtype);
  if (conjugate && !op.transpose) a = c.w.complex(c.w.real(a), c.w.neg(c.w.imag(a)));
  const char* transpose = !op.transpose ? "NO_TRANSPOSE" : conjugate ? "ADJOINT" : "TRANSPOSE";
  const auto word = [](bool value) { return value ? "true" : "false"; };
  c.set(c.w.op("triangular_solve", {&a, &b}, type_of(b),
               concat_text("left_side = ", word(op.left), ", lower = ", word(op.lower), ", unit_diagonal = ",
                           word(op.unit_diagonal), ", transpose_a = #stablehlo<transpose ", transpose, ">")));
}

}  // namespace

std::span<const KernelEntry> factor_entries() {
  static constexpr KernelEntry kRows[] = {
      {OpKind::Cholesky, never_refuses, emit_cholesky},
      {OpKind::TriangularSolve, never_refuses, emit_triangular_solve},
  };
  return kRows;
}

}  // namespace rlx::tpu
