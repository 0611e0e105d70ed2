// Matrices as values of a graph.
#include "rlx/ir/math/matrices.h"

#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::matrices {

Expr real_of(Expr x) { return is_complex(x.dtype()) ? x.graph().add(ops::ComplexPart{false}, {x}) : x; }
Expr imag_of(Expr x) { return x.graph().add(ops::ComplexPart{true}, {x}); }
Expr complex_of(Expr re, Expr im) { return re.graph().add(ops::Complex{}, {re, im}); }
Expr conj_of(Expr x) { return is_complex(x.dtype()) ? complex_of(real_of(x), -imag_of(x)) : x; }
Expr adjoint(Expr x) { return conj_of(x.graph().t(x)); }
Expr as_dtype_of(Expr x, Expr like) { return x.graph().cast(x, like.dtype()); }

Expr places(Expr x, int axis, DType t) {
  Graph& g = x.graph();
  return g.iota(Shape({x.shape().dim(-2), x.shape().dim(-1)}, t), axis);
}

namespace {
Expr compare_places(Expr x, CompareKind fn) {
  Graph& g = x.graph();
  const DType t = count_dtype(g, {{x.shape().dim(-2)}, {x.shape().dim(-1)}});
  return g.compare(fn, places(x, 0, t), places(x, 1, t));
}
}  // namespace

Expr on_diagonal(Expr x) { return compare_places(x, CompareKind::Eq); }
Expr below(Expr x, bool with_diagonal) { return compare_places(x, with_diagonal ? CompareKind::Ge : CompareKind::Gt); }
Expr tril(Expr x, bool with_diagonal) { return x.graph().where(below(x, with_diagonal), x, 0); }
Expr triu(Expr x, bool with_diagonal) { return x.graph().where(below(x, !with_diagonal), 0, x); }
Expr halved_lower(Expr x) {
  Graph& g = x.graph();
  return g.where(on_diagonal(x), x * 0.5, tril(x, false));
}
Expr hermitian_of_lower(Expr x) {
  const Expr half = halved_lower(x);
  return half + adjoint(half);
}
Expr diagonal(Expr x) {
  Graph& g = x.graph();
  return g.sum(g.where(on_diagonal(x), x, 0), {-1});
}
Expr as_row(Expr v) { return v.graph().unsqueeze(v, v.rank() - 1); }
Expr as_column(Expr v) { return v.graph().unsqueeze(v, v.rank()); }
Expr diagonal_matrix(Expr v) {
  Graph& g = v.graph();
  Dims dims = v.shape().dims();
  dims.push_back(dims.back());
  const Expr rows = g.expand(as_row(v), dims);
  return g.where(on_diagonal(rows), rows, 0);
}
Expr first_rows(Expr x, Dim count) {
  return count == x.shape().dim(-2) ? x : x.graph().narrow(x, x.rank() - 2, 0, count);
}
Expr first_columns(Expr x, Dim count) {
  return count == x.shape().dim(-1) ? x : x.graph().narrow(x, x.rank() - 1, 0, count);
}

Expr take_rows(Expr x, Expr rows) {
  Graph& g = x.graph();
  ops::Gather op;
  op.axes.clear();
  ExprList at;
  for (int i = 0; i + 2 < x.rank(); ++i) {
    op.axes.push_back(i);
    at.push_back(positions(g, x.dim(i), i, rows.rank(), rows.dtype()));
  }
  op.axes.push_back(x.rank() - 2);
  at.push_back(rows);
  return g.gather(x, at, op);
}
Expr solve_triangular(Expr a, Expr b, ops::TriangularSolve op) { return a.graph().add(op, {a, b}); }
Expr identity_like(Expr x) { return x.graph().cast(on_diagonal(x), x.dtype()); }

}  // namespace rlx::matrices
