// Functions of singular values and eigenvalues: pseudo-inverses, least squares, ranks, norms.
#include <cmath>

#include "rlx/functions/linalg.h"
#include "rlx/functions/linalg/linalg_operands.h"
#include "rlx/ir/build/line_of_call.h"
#include "rlx/ir/rewrite/body_transforms.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx::linalg {

using namespace matrices;

namespace {

double larger_extent(Expr a, const char* what) {
  const Dim &m = a.shape().dim(-2), &n = a.shape().dim(-1);
  if (!m.is_static() || !n.is_static())
    fail(ErrorCode::InvalidArgument,
         concat_text(what, " of ", a.shape(), ": the default tolerance needs known extents"),
         "give the tolerance rcond (rtol)");
  return static_cast<double>(std::max(m.value(), n.value()));
}
Expr kept(Expr s, double rcond) {
  Graph& g = s.graph();
  return g.gt(s, g.reduce_max(s, {-1}, true) * rcond);
}
// v diag(1 / s) u^H over the singular values above rcond times the largest.
Expr pinv_of(const ExprList& svd, double rcond) {
  Graph& g = svd[0].graph();
  const Expr keep = kept(svd[1], rcond);
  const Expr inverse = g.where(keep, 1.0 / g.where(keep, svd[1], 1), 0);
  return g.matmul(adjoint(svd[2]), as_column(inverse) * adjoint(svd[0]));
}

// The pseudo-inverse by ops whose derivatives are finite where the rank stays. With singular vectors as
// constants, a = f s g with f = a v / s and g = (u^H a v / s)^-1 u^H a / s, which are u and v^H here, and
// p = g^+ s^-1 f^+. Every inverse is one of a matrix near the identity, of the smaller order.
Expr smooth_pinv(Expr a, double rcond) {
  Graph& g = a.graph();
  const ExprList svd = g.svd(g.stop_gradient(a));
  const Expr uh = adjoint(g.stop_gradient(svd[0])), v = adjoint(g.stop_gradient(svd[2]));
  const Expr s = g.stop_gradient(svd[1]), keep = kept(s, rcond);
  const Expr inverse = as_dtype_of(g.where(keep, 1.0 / g.where(keep, s, 1), 0), a);
  const Expr rest = as_dtype_of(diagonal_matrix(g.cast(g.logical_not(keep), s.dtype())), a);
  const Expr f = g.matmul(a, v) * as_row(inverse), rows = as_column(inverse) * g.matmul(uh, a);
  const Expr mask = as_dtype_of(g.cast(keep, s.dtype()), a);
  const Expr r = solve(g.matmul(rows, v) * as_row(mask) + rest, rows), fh = adjoint(f);
  const Expr left = solve(g.matmul(fh, f) + rest, fh);
  const Expr right = solve(g.matmul(r, adjoint(r)) + rest, as_column(inverse) * left);
  return g.matmul(adjoint(r), right);
}

CustomFn pinv_fn(double rcond) {
  CustomFn fn;
  fn.name = "pinv";
  fn.body = [rcond](Graph& g, const ExprList& in) { return ExprList{pinv_of(g.svd(in[0]), rcond)}; };
  fn.jvp = [rcond](Graph& g, const ExprList& in) {
    Graph smooth = copy_shell(g, "smooth_pinv");
    smooth.set_outputs({smooth_pinv(smooth.input("a", in[0].shape()), rcond)});
    ExprList out = inline_body(g, body_jvp(smooth, {true}, {true}), in);
    out[0] = out[0] + g.stop_gradient(pinv_of(g.svd(in[0]), rcond) - out[0]);  // the value of the body
    return out;
  };
  return fn;
}

Expr sizes(Expr x) { return is_complex(x.dtype()) ? x.graph().hypot(real_of(x), imag_of(x)) : x.graph().abs(x); }
Expr squares(Expr x) {
  if (!is_complex(x.dtype())) return x * x;
  const Expr re = real_of(x), im = imag_of(x);
  return re * re + im * im;
}

// The square root, or another power, of a sum of sizes. Its derivative is 0 where the sum is 0, as that of abs.
Expr root_of(Expr total, std::optional<double> power = {}) {
  Graph& g = total.graph();
  const Expr zero = g.eq(total, 0), some = g.where(zero, 1, total);
  return g.where(zero, total, power ? g.pow(some, *power) : g.sqrt(some));
}

}  // namespace

Expr pinv(Expr a, std::optional<double> rcond, SourceLoc loc) {
  const LineOfCall line(loc);
  require_matrix(a, "pinv");
  a = as_inexact(a);
  Graph& g = a.graph();
  if (a.shape().dim(-1).is_static(0) || a.shape().dim(-2).is_static(0)) return adjoint(a);
  return g.custom_fn({a}, pinv_fn(rcond ? *rcond : 10 * epsilon_of(a.dtype()) * larger_extent(a, "pinv")))[0];
}

LstsqResult lstsq(Expr a, Expr b, std::optional<double> rcond, SourceLoc loc) {
  const LineOfCall line(loc);
  if (a.rank() != 2 || b.rank() < 1 || b.rank() > 2 || !(a.dim(0) == b.dim(0)))
    fail(ErrorCode::ShapeMismatch,
         concat_text("lstsq: a is [M, N] and b [M] or [M, K], not ", a.shape(), " and ", b.shape()));
  promote_operands(a, b, "lstsq");
  Graph& g = a.graph();
  const bool vector = b.rank() == 1;
  if (vector) b = g.unsqueeze(b, 1);
  const double cut = rcond ? *rcond : epsilon_of(a.dtype()) * larger_extent(a, "lstsq");
  const bool empty = a.dim(0).is_static(0) || a.dim(1).is_static(0);
  const Expr inverse = empty ? adjoint(a) : g.custom_fn({a}, pinv_fn(cut))[0], s = svdvals(a);
  Expr x = g.matmul(inverse, b);
  Expr left = g.sum(squares(b - g.matmul(a, x)), {0});
  if (vector) x = g.squeeze(x, 1), left = g.squeeze(left, 0);
  const Expr rank = g.sum(g.cast(empty ? s : kept(s, cut), DType::I32), {-1});
  return {x, left, rank, s};
}

Expr eigvalsh(Expr a, SourceLoc loc) {
  const LineOfCall line(loc);
  return a.graph().eigh(a)[0];
}
Expr svdvals(Expr a, SourceLoc loc) {
  const LineOfCall line(loc);
  return a.graph().svd(a)[1];
}

Expr matrix_rank(Expr a, std::optional<double> rtol, SourceLoc loc) {
  const LineOfCall line(loc);
  require_matrix(a, "matrix_rank");
  const Expr s = svdvals(a);
  Graph& g = a.graph();
  if (s.shape().dim(-1).is_static(0)) return g.sum(g.cast(s, DType::I32), {-1});
  return g.sum(g.cast(kept(s, rtol ? *rtol : epsilon_of(s.dtype()) * larger_extent(a, "matrix_rank")), DType::I32),
               {-1});
}

Expr vector_norm(Expr x, double ord, std::vector<std::int64_t> axes, bool keep_dims, SourceLoc loc) {
  const LineOfCall line(loc);
  x = as_inexact(x);
  Graph& g = x.graph();
  if (ord == 2) return root_of(g.sum(squares(x), axes, keep_dims));
  const Expr size = sizes(x);
  if (std::isinf(ord)) return ord > 0 ? g.reduce_max(size, axes, keep_dims) : g.reduce_min(size, axes, keep_dims);
  if (std::isnan(ord)) fail(ErrorCode::InvalidArgument, "vector_norm: ord must not be NaN");
  if (ord == 0) return g.sum(g.cast(g.ne(size, 0), size.dtype()), axes, keep_dims);
  if (ord == 1) return g.sum(size, axes, keep_dims);
  const Expr total = g.sum(g.pow(size, ord), axes, keep_dims);
  return ord > 0 ? root_of(total, 1 / ord) : g.pow(total, 1 / ord);
}

Expr matrix_norm(Expr a, MatrixNorm ord, SourceLoc loc) {
  const LineOfCall line(loc);
  require_matrix(a, "matrix_norm");
  a = as_inexact(a);
  Graph& g = a.graph();
  switch (ord) {
    case MatrixNorm::Frobenius: return root_of(g.sum(squares(a), {-2, -1}));
    case MatrixNorm::Nuclear: return g.sum(svdvals(a), {-1});
    case MatrixNorm::Two: return g.reduce_max(svdvals(a), {-1});
    case MatrixNorm::MinusTwo: return g.reduce_min(svdvals(a), {-1});
    case MatrixNorm::One: return g.reduce_max(g.sum(sizes(a), {-2}), {-1});
    case MatrixNorm::MinusOne: return g.reduce_min(g.sum(sizes(a), {-2}), {-1});
    case MatrixNorm::Infinity: return g.reduce_max(g.sum(sizes(a), {-1}), {-1});
    case MatrixNorm::MinusInfinity: break;
  }
  return g.reduce_min(g.sum(sizes(a), {-1}), {-1});
}

Expr cond(Expr a, MatrixNorm ord, SourceLoc loc) {
  const LineOfCall line(loc);
  require_matrix(a, "cond");
  Graph& g = a.graph();
  if (ord == MatrixNorm::Two || ord == MatrixNorm::MinusTwo) {
    const Expr s = svdvals(a), high = g.reduce_max(s, {-1}), low = g.reduce_min(s, {-1});
    return ord == MatrixNorm::Two ? high / low : low / high;
  }
  return matrix_norm(a, ord) * matrix_norm(inv(a), ord);
}

}  // namespace rlx::linalg
