// Builder functions of matrix factors.
#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx {
using namespace building;
namespace {

// Integers and Bool as F32. Inference checks all other dtypes.
Expr matrix_operand(Graph& g, const Operand& x) {
  const Expr e = own(g, x);
  return is_int(e.dtype()) || e.dtype() == DType::Bool ? cast_at(g, e, DType::F32, x.loc()) : e;
}

ExprList all_results(Expr first, std::uint32_t count) {
  ExprList out;
  for (std::uint32_t r = 0; r < count; ++r) out.push_back(first.result(r));
  return out;
}

}  // namespace

Expr Builder::cholesky(Operand a) {
  Graph& g = graph();
  return g.add(ops::Cholesky{}, {matrix_operand(g, a)}, a.loc());
}
Expr Builder::triangular_solve(Operand a, Operand b, ops::TriangularSolve op) {
  Graph& g = graph();
  const Expr x = matrix_operand(g, a), y = matrix_operand(g, b);
  const DType t = promoted(x.dtype(), y.dtype(), "triangular_solve", b.loc());
  return g.add(op, {cast_at(g, x, t, a.loc()), cast_at(g, y, t, b.loc())}, a.loc());
}
ExprList Builder::lu(Operand a) {
  Graph& g = graph();
  return all_results(g.add(ops::Lu{}, {matrix_operand(g, a)}, a.loc()), 3);
}
ExprList Builder::qr(Operand a, bool full) {
  Graph& g = graph();
  return all_results(g.add(ops::Qr{full}, {matrix_operand(g, a)}, a.loc()), 2);
}
ExprList Builder::eigh(Operand a) {
  Graph& g = graph();
  return all_results(g.add(ops::Eigh{}, {matrix_operand(g, a)}, a.loc()), 2);
}
ExprList Builder::svd(Operand a, bool full) {
  Graph& g = graph();
  return all_results(g.add(ops::Svd{full}, {matrix_operand(g, a)}, a.loc()), 3);
}

}  // namespace rlx
