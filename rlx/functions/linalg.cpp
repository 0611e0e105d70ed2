// Linear systems, inverses and determinants.
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

// 1 when the number of exchanged rows is even, else -1.
Expr parity(Expr pivots, DType t) {
  Graph& g = pivots.graph();
  const Expr own = g.iota(pivots.shape(), pivots.rank() - 1);
  const Expr count = g.sum(g.cast(g.ne(pivots, own), DType::I32), {-1});
  return g.cast(1 - g.bit_and(count, 1) * 2, t);
}

// The adjugate det(a) a^-1. It is also finite for singular matrices: when the rank is n - 1, only the last pivot is
// zero.
Expr adjugate(const ExprList& lu) {
  Graph& g = lu[0].graph();
  const Expr u = triu(lu[0]), pivots = diagonal(lu[0]);
  const Dim n = u.shape().dim(-1);
  const int last_axis = pivots.rank() - 1;
  const Expr before = g.reduce_prod(g.narrow(pivots, last_axis, 0, n - Dim(1)), {-1}, true) *
                      g.unsqueeze(parity(lu[1], u.dtype()), last_axis);
  const Expr det = before * g.narrow(pivots, last_axis, n - Dim(1), 1);
  const DType t = DType::I32;
  const Expr last_row = g.eq(places(u, 0, t), g.cast(g.dim_size(u, -1), t) - 1);
  const Expr rows = take_rows(g.expand(identity_like(u), u.shape().dims()), lu[2]);
  const Expr y = g.triangular_solve(lu[0], rows, triangular(true, Transposed::No, true));
  const Expr scaled = y * g.where(last_row, as_column(before), as_column(det));
  // The last pivot is multiplied into the right-hand side. If an earlier pivot is zero, the whole result is 0.
  const Expr one =
      g.cast(g.mul(g.cast(on_diagonal(u), t), g.cast(g.where(last_row, g.eq(u, u), g.eq(u, 0)), t)), DType::Bool);
  const Expr x = g.triangular_solve(g.where(one, 1, u), scaled, triangular(false, Transposed::No, false));
  return g.where(g.eq(as_column(before), 0), 0, x);
}

Expr det_of(const ExprList& lu) {
  Graph& g = lu[0].graph();
  return g.reduce_prod(diagonal(lu[0]), {-1}) * parity(lu[1], lu[0].dtype());
}
Expr scaled_by(Expr matrices, Expr v) { return matrices * as_column(as_column(v)); }

CustomFn det_fn() {
  CustomFn fn;
  fn.name = "det";
  fn.body = [](Graph& g, const ExprList& in) { return ExprList{det_of(g.lu(in[0]))}; };
  fn.forward = [](Graph& g, const ExprList& in) {
    const ExprList lu = g.lu(in[0]);
    return ExprList{det_of(lu), lu[0], lu[1], lu[2]};
  };
  fn.backward = [](Graph&, const ExprList& in) {
    return ExprList{scaled_by(transpose(adjugate({in[0], in[1], in[2]})), in[3])};
  };
  fn.jvp = [](Graph& g, const ExprList& in) {
    const ExprList lu = g.lu(in[0]);
    return ExprList{det_of(lu), g.sum(transpose(adjugate(lu)) * in[1], {-2, -1})};
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

Expr det(Expr a, SourceLoc loc) {
  const LineOfCall line(loc);
  require_square(a, "det");
  a = as_inexact(a);
  Graph& g = a.graph();
  if (a.shape().dim(-1).is_static(0)) return g.reduce_prod(diagonal(a), {-1});
  return g.custom_fn({a}, det_fn())[0];
}

Slogdet slogdet(Expr a, SourceLoc loc) {
  const LineOfCall line(loc);
  require_square(a, "slogdet");
  a = as_inexact(a);
  Graph& g = a.graph();
  const ExprList lu = g.lu(a);
  const Expr u = diagonal(lu[0]);
  if (!is_complex(u.dtype()))
    return {g.reduce_prod(g.sign(u), {-1}) * parity(lu[1], u.dtype()), g.sum(g.log(g.abs(u)), {-1})};
  const Expr re = real_of(u), im = imag_of(u), square = re * re + im * im, zero = g.eq(square, 0);
  const Expr size = g.sqrt(g.where(zero, 1, square));
  const Expr units = g.where(zero, 0, u / as_dtype_of(size, u));
  return {g.reduce_prod(units, {-1}) * parity(lu[1], u.dtype()), g.sum(g.log(square), {-1}) * 0.5};
}
Expr logdet(Expr a, SourceLoc loc) {
  const LineOfCall line(loc);
  return slogdet(a).logabsdet;
}

}  // namespace rlx::linalg
