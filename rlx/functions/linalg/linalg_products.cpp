// Matrix products, powers and exponentials.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "rlx/functions/linalg.h"
#include "rlx/functions/linalg/linalg_operands.h"
#include "rlx/ir/build/line_of_call.h"

namespace rlx::linalg {

using namespace matrices;

Expr matrix_power(Expr a, std::int64_t n, SourceLoc loc) {
  const LineOfCall line(loc);
  require_square(a, "matrix_power");
  Graph& g = a.graph();
  if (n < 0) a = inv(a);
  if (n == 0) return g.expand(identity_like(a), a.shape().dims());
  std::optional<Expr> out;
  const auto turns = static_cast<std::uint64_t>(n);
  for (std::uint64_t left = n < 0 ? 0 - turns : turns;;) {
    if (left & 1) out = out ? g.matmul(*out, a) : a;
    if ((left >>= 1) == 0) return *out;
    a = g.matmul(a, a);
  }
}

Expr multi_dot(const std::vector<Expr>& matrices, SourceLoc loc) {
  const LineOfCall line(loc);
  const std::size_t count = matrices.size();
  if (count < 2) fail(ErrorCode::InvalidArgument, "multi_dot: needs at least two matrices");
  std::vector<Expr> all = matrices;
  Graph& g = all[0].graph();
  const bool first = all.front().rank() == 1, last = all.back().rank() == 1;
  if (first) all.front() = g.unsqueeze(all.front(), 0);
  if (last) all.back() = g.unsqueeze(all.back(), 1);
  std::vector<double> sizes;  // a symbolic extent counts as 64: the order only affects speed
  const auto size_of = [](const Dim& d) { return d.is_static() ? static_cast<double>(d.value()) : 64.0; };
  for (const Expr& e : all) {
    if (e.rank() != 2) fail(ErrorCode::ShapeMismatch, concat_text("multi_dot: ", e.shape(), " is not a matrix"));
    sizes.push_back(size_of(e.dim(0)));
  }
  sizes.push_back(size_of(all.back().dim(1)));
  std::vector<std::vector<double>> best(count, std::vector<double>(count, 0));
  std::vector<std::vector<std::size_t>> cut(count, std::vector<std::size_t>(count, 0));
  for (std::size_t length = 1; length < count; ++length)
    for (std::size_t i = 0; i + length < count; ++i) {
      const std::size_t j = i + length;
      best[i][j] = HUGE_VAL;
      for (std::size_t k = i; k < j; ++k) {
        const double work = best[i][k] + best[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (work < best[i][j]) best[i][j] = work, cut[i][j] = k;
      }
    }
  const auto product = [&](const auto& self, std::size_t i, std::size_t j) -> Expr {
    if (i == j) return all[i];
    return g.matmul(self(self, i, cut[i][j]), self(self, cut[i][j] + 1, j));
  };
  Expr out = product(product, 0, count - 1);
  if (last) out = g.squeeze(out, 1);
  return first ? g.squeeze(out, 0) : out;
}

namespace {

// Pade approximants of exp (Higham 2005): coefficients of the numerator, and the norm up to which they are exact.
constexpr double kPade7[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};
constexpr double kPade13[] = {64764752532480000.,
                              32382376266240000.,
                              7771770303897600.,
                              1187353796428800.,
                              129060195264000.,
                              10559470521600.,
                              670442572800.,
                              33522128640.,
                              1323241920.,
                              40840800.,
                              960960.,
                              16380.,
                              182.,
                              1.};
constexpr double kTheta7 = 3.925724783138660, kTheta13 = 5.371920351148152;
constexpr std::int64_t kMostSquarings = 1024;  // no finite norm needs more: further iterations would do nothing

}  // namespace

Expr expm(Expr a, std::int64_t max_squarings, SourceLoc loc) {
  const LineOfCall line(loc);
  require_square(a, "expm");
  if (max_squarings < 0)
    fail(ErrorCode::InvalidArgument, concat_text("expm: max_squarings ", max_squarings, " is negative"));
  a = as_inexact(a);
  Graph& g = a.graph();
  if (a.shape().dim(-1).is_static(0)) return a;
  const bool wide = real_dtype(a.dtype()) == DType::F64;
  const double theta = wide ? kTheta13 : kTheta7;
  // The number of halvings of each matrix: s with |a| / 2^s <= theta.
  const Expr norm = g.stop_gradient(matrix_norm(a, MatrixNorm::One));
  const Expr s = g.max(g.ceil(g.log(norm / theta) * (1 / std::log(2.0))), 0);
  const Expr halved = a * as_dtype_of(as_column(as_column(g.pow(g.cast(g.scalar(0.5), s.dtype()), s))), a);
  const Expr one = identity_like(a);
  // Odd part u and even part v of the polynomial in `halved`. The numerator is v + u, the denominator v - u.
  Expr u, v;
  const Expr x2 = g.matmul(halved, halved), x4 = g.matmul(x2, x2), x6 = g.matmul(x4, x2);
  if (wide) {
    const auto& b = kPade13;
    u = g.matmul(halved,
                 g.matmul(x6, x6 * b[13] + x4 * b[11] + x2 * b[9]) + x6 * b[7] + x4 * b[5] + x2 * b[3] + one * b[1]);
    v = g.matmul(x6, x6 * b[12] + x4 * b[10] + x2 * b[8]) + x6 * b[6] + x4 * b[4] + x2 * b[2] + one * b[0];
  } else {
    const auto& b = kPade7;
    u = g.matmul(halved, x6 * b[7] + x4 * b[5] + x2 * b[3] + one * b[1]);
    v = x6 * b[6] + x4 * b[4] + x2 * b[2] + one * b[0];
  }
  const Expr start = solve(v - u, v + u);
  const Expr turns = g.cast(g.reduce_max(s), DType::F32);
  const LoopResult squared =
      g.scan({start, g.scalar(0.0)}, {},
             [&](Graph& body, const ExprList& carries, const ExprList&) {
               const Expr here = carries[1];
               const ExprList next = body.cond(
                   body.lt(here, turns), ExprList{carries[0], here, s},
                   [](Graph& b, const ExprList& in) {
                     const Expr more = b.gt(in[2], b.cast(in[1], in[2].dtype()));
                     return ExprList{b.where(as_column(as_column(more)), b.matmul(in[0], in[0]), in[0])};
                   },
                   [](Graph&, const ExprList& in) { return ExprList{in[0]}; });
               return LoopStep(ExprList{next[0], here + 1.0});
             },
             {.length = Dim(std::min(max_squarings, kMostSquarings)), .name = "expm_squarings"});
  const Expr enough = g.le(s, static_cast<double>(max_squarings));
  return g.where(as_column(as_column(enough)), squared.carries[0], NAN);
}

Expr householder_product(Expr a, Expr taus, SourceLoc loc) {
  const LineOfCall line(loc);
  promote_operands(a, taus, "householder_product");
  const Dim &m = a.shape().dim(-2), &n = a.shape().dim(-1);
  if (a.rank() < 2 || taus.rank() != a.rank() - 1 || !m.is_static() || !n.is_static() ||
      !taus.shape().dim(-1).is_static() || taus.shape().dim(-1).value() > n.value() || n.value() > m.value())
    fail(ErrorCode::ShapeMismatch,
         concat_text("householder_product: a must be [.., M, N] and taus [.., K] with known K <= N <= M, got ",
                     a.shape(), " and ", taus.shape()));
  Graph& g = a.graph();
  const Expr v = g.where(on_diagonal(a), 1, tril(a, false));
  Expr q = g.expand(identity_like(a), a.shape().dims());
  for (std::int64_t k = taus.shape().dim(-1).value(); k-- > 0;) {
    const Expr column = g.narrow(v, v.rank() - 1, k, 1);
    const Expr tau = g.unsqueeze(g.narrow(taus, taus.rank() - 1, k, 1), taus.rank() - 1);
    q = q - g.matmul(column * tau, g.matmul(adjoint(column), q));
  }
  return q;
}

}  // namespace rlx::linalg
