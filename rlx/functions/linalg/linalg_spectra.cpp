// Functions of singular values and eigenvalues: pseudo-inverses, least squares, ranks, norms.
#include <cmath>

#include "rlx/functions/linalg.h"
#include "rlx/functions/linalg/linalg_operands.h"
#include "rlx/ir/build/line_of_call.h"

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

// {pseudo-inverse, singular values}. With p the pseudo-inverse of a (Golub and Pereyra):
//   dp = -p da p + p p^H da^H (1 - a p) + (1 - p a) da^H p^H p, ds = re diag u^H da v.
CustomFn pinv_fn(double rcond) {
  CustomFn fn;
  fn.name = "pinv";
  fn.body = [rcond](Graph& g, const ExprList& in) {
    const ExprList svd = g.svd(in[0]);
    return ExprList{pinv_of(svd, rcond), svd[1]};
  };
  fn.forward = [rcond](Graph& g, const ExprList& in) {
    const ExprList svd = g.svd(in[0]);
    const Expr p = pinv_of(svd, rcond);
    return ExprList{p, svd[1], in[0], p, svd[0], svd[2]};
  };
  fn.backward = [](Graph& g, const ExprList& in) {
    const Expr a = in[0], p = in[1], u = in[2], vh = in[3], dp = conj_of(in[4]), ds = in[5];
    const Expr ph = adjoint(p), dph = adjoint(dp);
    // (1 - a p) dp^H p p^H + p^H p dp^H (1 - p a), in an order of matmuls that keeps intermediate matrices small.
    const Expr x = g.matmul(g.matmul(dph, p), ph), y = g.matmul(ph, g.matmul(p, dph));
    const Expr out = x - g.matmul(a, g.matmul(p, x)) + y - g.matmul(g.matmul(y, p), a) -
                     g.matmul(ph, g.matmul(dp, ph)) + g.matmul(u * as_row(ds), vh);
    return ExprList{conj_of(out)};
  };
  fn.jvp = [rcond](Graph& g, const ExprList& in) {
    const ExprList svd = g.svd(in[0]);
    const Expr a = in[0], da = in[1], p = pinv_of(svd, rcond), ph = adjoint(p), dah = adjoint(da);
    const Expr x = g.matmul(p, g.matmul(ph, dah)), y = g.matmul(g.matmul(dah, ph), p);
    const Expr dp = x - g.matmul(g.matmul(x, a), p) + y - g.matmul(p, g.matmul(a, y)) - g.matmul(p, g.matmul(da, p));
    const Expr ds = real_of(diagonal(g.matmul(adjoint(svd[0]), g.matmul(da, adjoint(svd[2])))));
    return ExprList{p, svd[1], dp, ds};
  };
  return fn;
}

Expr sizes(Expr x) {
  if (!is_complex(x.dtype())) return x.graph().abs(x);
  const Expr re = real_of(x), im = imag_of(x);
  return x.graph().sqrt(re * re + im * im);
}
Expr squares(Expr x) {
  if (!is_complex(x.dtype())) return x * x;
  const Expr re = real_of(x), im = imag_of(x);
  return re * re + im * im;
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
  const ExprList parts = empty ? ExprList{adjoint(a), svdvals(a)} : g.custom_fn({a}, pinv_fn(cut));
  Expr x = g.matmul(parts[0], b);
  Expr left = g.sum(squares(b - g.matmul(a, x)), {0});
  if (vector) x = g.squeeze(x, 1), left = g.squeeze(left, 0);
  const Expr rank =
      empty ? g.sum(g.cast(parts[1], DType::I32), {-1}) : g.sum(g.cast(kept(parts[1], cut), DType::I32), {-1});
  return {x, left, rank, parts[1]};
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
  if (ord == 2) return g.sqrt(g.sum(squares(x), axes, keep_dims));
  const Expr size = sizes(x);
  if (std::isinf(ord)) return ord > 0 ? g.reduce_max(size, axes, keep_dims) : g.reduce_min(size, axes, keep_dims);
  if (std::isnan(ord)) fail(ErrorCode::InvalidArgument, "vector_norm: ord must not be NaN");
  if (ord == 0) return g.sum(g.cast(g.ne(size, 0), size.dtype()), axes, keep_dims);
  if (ord == 1) return g.sum(size, axes, keep_dims);
  return g.pow(g.sum(g.pow(size, ord), axes, keep_dims), 1 / ord);
}

Expr matrix_norm(Expr a, MatrixNorm ord, SourceLoc loc) {
  const LineOfCall line(loc);
  require_matrix(a, "matrix_norm");
  a = as_inexact(a);
  Graph& g = a.graph();
  switch (ord) {
    case MatrixNorm::Frobenius: return g.sqrt(g.sum(squares(a), {-2, -1}));
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
