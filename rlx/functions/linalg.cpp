// Linear systems and inverses.
#include "rlx/functions/linalg.h"

#include "rlx/functions/linalg/linalg_operands.h"
#include "rlx/ir/build/line_of_call.h"

namespace rlx::linalg {

using namespace matrices;

namespace {

ops::TriangularSolve triangular(bool lower, Transposed t, bool unit) {
  return {true, lower, t != Transposed::No, t == Transposed::Conjugated, unit};
}

Expr transpose(Expr x) { return x.graph().t(x); }

// Calls f with b as columns [.., N, K], also when b is one vector [N].
template <class F>
Expr of_columns(Expr a, Expr b, const char* what, F&& f) {
  require_square(a, what);
  if (b.rank() == 0) fail(ErrorCode::ShapeMismatch, concat_text(what, ": b ", b.shape(), " has no rows"));
  promote_operands(a, b, what);
  Graph& g = a.graph();
  const bool vector = b.rank() == 1;
  if (vector) b = g.unsqueeze(b, 1);
  if (!(b.shape().dim(-2) == a.shape().dim(-1)))
    fail(ErrorCode::ShapeMismatch,
         concat_text(what, ": a ", a.shape(), " has order ", a.shape().dim(-1), ", but b has ", b.shape().dim(-2),
                     " rows"),
         vector ? "" : "b is a vector only if it has one axis; add a last axis of extent 1 to a batch of vectors");
  broadcast_leading(a, b, what);
  const Expr x = f(a, b);
  return vector ? g.squeeze(x, x.rank() - 1) : x;
}

// x = a^-1 b with derivatives that reuse the LU factors.
CustomFn solve_fn() {
  CustomFn fn;
  fn.name = "solve";
  fn.body = [](Graph& g, const ExprList& in) {
    const ExprList lu = g.lu(in[0]);
    return ExprList{lu_solve({lu[0], lu[2]}, in[1])};
  };
  fn.forward = [](Graph& g, const ExprList& in) {
    const ExprList lu = g.lu(in[0]);
    const Expr x = lu_solve({lu[0], lu[2]}, in[1]);
    return ExprList{x, lu[0], lu[2], x};
  };
  fn.backward = [](Graph& g, const ExprList& in) {
    const Expr db = lu_solve({in[0], in[1]}, in[3], Transposed::Yes);
    return ExprList{-g.matmul(db, transpose(in[2])), db};
  };
  fn.jvp = [](Graph& g, const ExprList& in) {
    const ExprList lu = g.lu(in[0]);
    const LuFactors factors{lu[0], lu[2]};
    const Expr x = lu_solve(factors, in[1]);
    return ExprList{x, lu_solve(factors, in[3] - g.matmul(in[2], x))};
  };
  return fn;
}

}  // namespace

LuFactors lu_factor(Expr a, SourceLoc loc) {
  const LineOfCall line(loc);
  const ExprList lu = a.graph().lu(a);
  return {lu[0], lu[2]};
}

Expr lu_solve(const LuFactors& f, Expr b, Transposed transposed, SourceLoc loc) {
  const LineOfCall line(loc);
  require_square(f.lu, "lu_solve");
  if (b.rank() != f.lu.rank() || !(b.shape().dim(-2) == f.lu.shape().dim(-1)) || f.permutation.rank() + 1 != b.rank())
    fail(ErrorCode::ShapeMismatch,
         concat_text("lu_solve: lu must be [.., N, N], permutation [.., N] and b [.., N, K], got ", f.lu.shape(), ", ",
                     f.permutation.shape(), " and ", b.shape()));
  Graph& g = b.graph();
  if (transposed == Transposed::No) {
    const Expr y = g.triangular_solve(f.lu, take_rows(b, f.permutation), triangular(true, transposed, true));
    return g.triangular_solve(f.lu, y, triangular(false, transposed, false));
  }
  const Expr y = g.triangular_solve(f.lu, b, triangular(false, transposed, false));
  return take_rows(g.triangular_solve(f.lu, y, triangular(true, transposed, true)), g.argsort(f.permutation, -1));
}

Expr solve(Expr a, Expr b, SourceLoc loc) {
  const LineOfCall line(loc);
  return of_columns(a, b, "solve", [](Expr x, Expr y) { return x.graph().custom_fn({x, y}, solve_fn())[0]; });
}

Expr dense_solve(Expr a, Expr b, SourceLoc loc) {
  const LineOfCall line(loc);
  if (a.rank() != 2 || b.rank() < 1 || b.rank() > 2)
    fail(ErrorCode::ShapeMismatch,
         concat_text("dense_solve: a must be [N, N] and b [N] or [N, K], got ", a.shape(), " and ", b.shape()),
         "use batched_dense_solve for a batch");
  return solve(a, b);
}
Expr batched_dense_solve(Expr a, Expr b, SourceLoc loc) {
  const LineOfCall line(loc);
  if (a.rank() != 3 || b.rank() < 2 || b.rank() > 3 || !(a.dim(0) == b.dim(0)))
    fail(ErrorCode::ShapeMismatch, concat_text("batched_dense_solve: a is [B, N, N] and b [B, N] or [B, N, K], not ",
                                               a.shape(), " and ", b.shape()));
  Graph& g = a.graph();
  return b.rank() == 3 ? solve(a, b) : g.squeeze(solve(a, g.unsqueeze(b, 2)), 2);
}

Expr inv(Expr a, SourceLoc loc) {
  const LineOfCall line(loc);
  require_square(a, "inv");
  a = as_inexact(a);
  return solve(a, a.graph().expand(identity_like(a), a.shape().dims()));
}

Expr cholesky_solve(Expr l, Expr b, bool lower, SourceLoc loc) {
  const LineOfCall line(loc);
  return of_columns(l, b, "cholesky_solve", [lower](Expr x, Expr y) {
    Graph& g = x.graph();
    const auto first = lower ? Transposed::No : Transposed::Conjugated;
    const auto second = lower ? Transposed::Conjugated : Transposed::No;
    return g.triangular_solve(x, g.triangular_solve(x, y, triangular(lower, first, false)),
                              triangular(lower, second, false));
  });
}

Expr solve_triangular(Expr a, Expr b, bool lower, Transposed transposed, bool unit_diagonal, SourceLoc loc) {
  const LineOfCall line(loc);
  return of_columns(a, b, "solve_triangular", [&](Expr x, Expr y) {
    return x.graph().triangular_solve(x, y, triangular(lower, transposed, unit_diagonal));
  });
}

}  // namespace rlx::linalg
