// Determinants, with derivatives that are right at singular matrices of every rank.
#include <algorithm>

#include "rlx/functions/linalg.h"
#include "rlx/functions/linalg/linalg_operands.h"
#include "rlx/ir/build/line_of_call.h"
#include "rlx/ir/rewrite/body_transforms.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx::linalg {

using namespace matrices;

namespace {

constexpr std::int64_t kWrittenOut = 3;      // the order up to which a determinant is a polynomial of its elements
constexpr std::int64_t kFewBlocks = 8;       // the order up to which blocks cost less than a branch
constexpr double kNearlySingular = 0x1p-10;  // the ratio of pivots below which divisions by them lose digits

// 1 when the number of exchanged rows is even, else -1.
Expr parity(Expr pivots, DType t) {
  Graph& g = pivots.graph();
  const Expr own = g.iota(pivots.shape(), pivots.rank() - 1);
  const Expr count = g.sum(g.cast(g.ne(pivots, own), DType::I32), {-1});
  return g.cast(1 - g.bit_and(count, 1) * 2, t);
}

Expr det_of(const ExprList& lu) {
  Graph& g = lu[0].graph();
  return g.reduce_prod(diagonal(lu[0]), {-1}) * parity(lu[1], lu[0].dtype());
}

// The product [..] of all pivots but the last.
Expr product_before_last(const ExprList& lu) {
  Graph& g = lu[0].graph();
  const Expr pivots = diagonal(lu[0]);
  return g.reduce_prod(g.narrow(pivots, pivots.rank() - 1, 0, pivots.shape().dim(-1) - Dim(1)), {-1});
}
Expr scaled_by(Expr matrices, Expr v) { return matrices * as_column(as_column(v)); }

// l^-1 p with the sign of p: a^-1 = u^-1 of this matrix, up to the sign.
Expr inverse_of_lower(const ExprList& lu) {
  Graph& g = lu[0].graph();
  const Expr rows = take_rows(g.expand(identity_like(lu[0]), lu[0].shape().dims()), lu[2]);
  return scaled_by(g.triangular_solve(lu[0], rows, {true, true, false, false, true}), parity(lu[1], lu[0].dtype()));
}

// The adjugate det(a) a^-1 from factors in which only the last pivot may be zero.
Expr adjugate_by_division(const ExprList& lu) {
  Graph& g = lu[0].graph();
  const Expr u = triu(lu[0]), pivots = diagonal(lu[0]), before = product_before_last(lu);
  const Expr det = before * g.squeeze(g.narrow(pivots, pivots.rank() - 1, pivots.shape().dim(-1) - Dim(1), 1), -1);
  const DType t = DType::I32;
  const Expr last_row = g.eq(places(u, 0, t), g.cast(g.dim_size(u, -1), t) - 1);
  const Expr scaled = inverse_of_lower(lu) * g.where(last_row, as_column(as_column(before)), as_column(as_column(det)));
  // The last pivot is multiplied into the right-hand side.
  const Expr one = g.bit_and(on_diagonal(u), last_row);
  return g.triangular_solve(g.where(one, 1, u), scaled, {true, false, false, false, false});
}

Expr block_of(Expr x, std::int64_t n) { return first_columns(first_rows(x, n), n); }

// The adjugate of triangular matrices u of a known order, without divisions, from blocks of 1, 2, 4, .. rows:
// adj [a w; 0 b] = [det(b) adj(a), -adj(a) w adj(b); 0, det(a) adj(b)].
Expr adjugate_of_triangular(Expr u) {
  Graph& g = u.graph();
  const std::int64_t n = u.shape().dim(-1).value();
  std::int64_t order = 1;
  while (order < n) order *= 2;
  const int batch = u.rank() - 2;
  const auto shaped = [&](Expr x, std::vector<std::int64_t> last) {
    Dims dims(u.shape().dims().begin(), u.shape().dims().begin() + batch);
    dims.insert(dims.end(), last.begin(), last.end());
    return g.reshape(x, dims);
  };
  if (order > n) {  // behind them the identity
    std::vector<std::int64_t> low(static_cast<std::size_t>(u.rank()), 0), high = low;
    high[high.size() - 1] = high[high.size() - 2] = order - n;
    const Expr x = g.pad(u, low, high);
    const Expr behind = g.ge(places(x, 0, DType::I32), static_cast<double>(n));
    u = g.where(g.bit_and(on_diagonal(x), behind), 1, x);
  }
  Expr det = diagonal(u), adjugate = shaped(det * 0.0 + 1.0, {order, 1, 1});
  for (std::int64_t b = 1; b < order; b *= 2) {
    const std::int64_t count = order / (2 * b);
    const auto half = [&](Expr x, std::int64_t i, int axis) { return g.squeeze(g.narrow(x, axis, i, 1), axis); };
    const Expr pairs = shaped(adjugate, {count, 2, b, b}), dets = shaped(det, {count, 2});
    const Expr first = half(pairs, 0, batch + 1), second = half(pairs, 1, batch + 1);
    const Expr d1 = half(dets, 0, batch + 1), d2 = half(dets, 1, batch + 1);
    const Shape square({Dim(count), Dim(1), Dim(count), Dim(1)}, DType::I32);
    const Expr own = g.eq(g.iota(square, 0), g.iota(square, 2));
    const Expr blocks = g.sum(g.where(own, shaped(u, {count, 2 * b, count, 2 * b}), 0), {-2});
    const Expr w = g.narrow(g.narrow(blocks, batch + 1, 0, b), batch + 2, b, b);
    const Expr beside = -g.matmul(first, g.matmul(w, second));
    std::vector<std::int64_t> left(static_cast<std::size_t>(batch) + 3, 0), right = left;
    left.back() = b;
    const Expr lower = g.pad(scaled_by(second, d1), left, right);
    adjugate = g.concat({g.concat({scaled_by(first, d2), beside}, -1), lower}, -2);
    det = d1 * d2;
  }
  return block_of(shaped(adjugate, {order, order}), n);
}

// -- det of order up to kWrittenOut as a polynomial --

// The determinant [..] of matrices of order 3: row 0 times the cross product of the others.
Expr det_of_three(Expr a) {
  Graph& g = a.graph();
  const auto row = [&](std::int64_t i) { return g.squeeze(g.narrow(a, a.rank() - 2, i, 1), a.rank() - 2); };
  const auto turned = [&](Expr v, std::int64_t by) {
    return g.concat({g.narrow(v, v.rank() - 1, by, 3 - by), g.narrow(v, v.rank() - 1, 0, by)}, -1);
  };
  const Expr b = row(1), c = row(2);
  return g.sum(row(0) * (turned(b, 1) * turned(c, 2) - turned(b, 2) * turned(c, 1)), {-1});
}

// The determinant of order 1 to 3: of a with the rows and columns of the identity behind it.
Expr polynomial(Expr a) {
  Graph& g = a.graph();
  const std::int64_t by = kWrittenOut - a.shape().dim(-1).value();
  if (by == 0) return det_of_three(a);
  std::vector<std::int64_t> low(static_cast<std::size_t>(a.rank()), 0), high = low;
  high[high.size() - 1] = high[high.size() - 2] = by;
  const Expr x = g.pad(a, low, high);
  const Expr behind = g.ge(places(x, 0, DType::I32), static_cast<double>(kWrittenOut - by));
  return det_of_three(g.where(g.bit_and(on_diagonal(x), behind), 1, x));
}
bool is_written_out(Expr a) {
  const Dim n = a.shape().dim(-1);
  return n.is_static() && n.value() <= kWrittenOut;
}
// {det by factors, its tangent by the polynomial}.
ExprList jvp_of_polynomial(Graph& g, const ExprList& in) {
  Graph body = copy_shell(g, "det_polynomial");
  body.set_outputs({polynomial(body.input("a", in[0].shape()))});
  const ExprList out = inline_body(g, body_jvp(body, {true}, {true}), in);
  return {out[0] + g.stop_gradient(det_of(g.lu(in[0])) - out[0]), out[1]};
}

// -- the derivative of larger determinants --

// 1 / the largest modulus along an axis, and 1 where that is 0. Real.
Expr scale_of(Expr size, int axis) {
  Graph& g = size.graph();
  const Expr largest = g.reduce_max(size, {axis}, true);
  return 1.0 / g.where(g.eq(largest, 0), 1, largest);
}

// The products [.., N, N] of all v [.., N] but two, 0 on the diagonal.
Expr products_but_two(Expr v) {
  Graph& g = v.graph();
  const Dim n = v.shape().dim(-1);
  const Expr rows = g.expand(as_row(v), [&] {
    Dims dims = v.shape().dims();
    dims.push_back(n);
    return dims;
  }());
  const Expr before = g.cumprod(v, -1, true);
  const Expr after = g.cumprod(v, -1, true, true);
  const Expr between = g.cumprod(g.where(below(rows, true), 1, rows), -1, true);
  const Expr upper = triu(as_column(before) * between * as_row(after), false);
  return upper + g.t(upper);
}

// The derivative of the adjugate along da, from singular vectors u, v and values s of a with scaled rows and columns
// (singular vectors are accurate relative to the largest element). With e = u^H da v, that of diag(s) is
// -e_ij prod(s but i, j) outside of the diagonal and the sum of e_jj prod(s but i, j) on it. No division.
Expr adjugate_tangent_by_vectors(Expr a, Expr da) {
  Graph& g = a.graph();
  const Expr size = is_complex(a.dtype()) ? g.max(g.abs(real_of(a)), g.abs(imag_of(a))) : g.abs(a);
  const Expr rows = scale_of(size, -1), columns = scale_of(size * rows, -2);
  const Expr both = as_dtype_of(rows * columns, a);
  const ExprList svd = g.svd(a * both);
  const Expr e = g.matmul(adjoint(svd[0]), g.matmul(da * both, adjoint(svd[2])));
  const Expr back = 1.0 / g.squeeze(rows * g.t(columns), -1);
  const Expr p = as_dtype_of(products_but_two(svd[1] * back) * as_row(back) * as_column(back), a);
  const Expr own = g.sum(p * as_row(diagonal(e)), {-1});
  const Expr m = g.where(on_diagonal(e), as_column(own), -(p * e));
  const Expr turned = g.matmul(adjoint(svd[2]), g.matmul(m, adjoint(svd[0])));
  return scaled_by(turned * as_dtype_of(g.t(both), a), det_of(g.lu(g.matmul(svd[0], svd[2]))));
}
// The same from factors of a regular matrix: with x = a^-1 da, adj(a) tr(x) - x adj(a). It has every derivative.
Expr adjugate_tangent_by_division(const ExprList& lu, Expr da) {
  Graph& g = da.graph();
  const Expr x = lu_solve({lu[0], lu[2]}, da), adjugate = adjugate_by_division(lu);
  return scaled_by(adjugate, g.sum(diagonal(x), {-1})) - g.matmul(x, adjugate);
}

Expr any(Expr flags) {
  Graph& g = flags.graph();
  return g.gt(g.reduce_max(g.cast(flags, DType::I32)), 0);
}
// The adjugate from factors with any pivots; of a symbolic order the last one alone may be zero.
Expr adjugate(const ExprList& lu) {
  Graph& g = lu[0].graph();
  const Dim n = lu[0].shape().dim(-1);
  if (!n.is_static()) return adjugate_by_division(lu);
  const auto from_blocks = [](const ExprList& x) {
    return x[0].graph().matmul(adjugate_of_triangular(triu(x[0])), inverse_of_lower(x));
  };
  if (n.value() <= kFewBlocks) return from_blocks(lu);
  return g.cond(
      any(g.eq(product_before_last(lu), 0)), lu, [&](Graph&, const ExprList& x) { return ExprList{from_blocks(x)}; },
      [](Graph&, const ExprList& x) { return ExprList{adjugate_by_division(x)}; })[0];
}
// The adjugate as a function with derivatives.
CustomFn adjugate_fn() {
  CustomFn fn;
  fn.name = "adjugate";
  fn.body = [](Graph& g, const ExprList& in) { return ExprList{adjugate(g.lu(in[0]))}; };
  fn.jvp = [](Graph& g, const ExprList& in) {
    const ExprList lu = g.lu(in[0]);
    const Expr pivots = diagonal(lu[0]);
    const Expr size = is_complex(pivots.dtype()) ? g.hypot(real_of(pivots), imag_of(pivots)) : g.abs(pivots);
    const Expr near = g.le(g.reduce_min(size, {-1}), g.reduce_max(size, {-1}) * kNearlySingular);
    const Expr tangent = g.cond(
        any(near), ExprList{in[0], in[1], lu[0], lu[1], lu[2]},
        [](Graph&, const ExprList& x) { return ExprList{adjugate_tangent_by_vectors(x[0], x[1])}; },
        [](Graph&, const ExprList& x) {
          return ExprList{adjugate_tangent_by_division({x[2], x[3], x[4]}, x[1])};
        })[0];
    return ExprList{adjugate(lu), tangent};
  };
  return fn;
}

// The determinant; in its derivative it is a function of this kind again, `order` times.
CustomFn det_fn(int order) {
  CustomFn fn;
  fn.name = "det";
  fn.body = [](Graph& g, const ExprList& in) { return ExprList{det_of(g.lu(in[0]))}; };
  fn.jvp = [order](Graph& g, const ExprList& in) {
    if (is_written_out(in[0])) return jvp_of_polynomial(g, in);
    const Expr value = order > 1 ? g.custom_fn({in[0]}, det_fn(order - 1))[0] : det_of(g.lu(in[0]));
    const Expr cofactors = g.t(g.custom_fn({in[0]}, adjugate_fn())[0]);
    return ExprList{value, g.sum(cofactors * in[1], {-2, -1})};
  };
  return fn;
}

}  // namespace

Expr det(Expr a, SourceLoc loc) {
  const LineOfCall line(loc);
  require_square(a, "det");
  a = as_inexact(a);
  Graph& g = a.graph();
  if (a.shape().dim(-1).is_static(0)) return g.reduce_prod(diagonal(a), {-1});
  return g.custom_fn({a}, det_fn(2))[0];
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
