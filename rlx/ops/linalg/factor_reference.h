// Reference rules of matrix factors: textbook loops in double or complex<double>, on dense row-major matrices. They use
// other algorithms than the cpu's kernels (for example Jacobi rotations for eigenvalues), so that each checks the
// other.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "rlx/ir/ops/linalg.h"

namespace rlx::factors {

inline double real_part(double x) { return x; }
inline double real_part(std::complex<double> x) { return x.real(); }
inline double imag_part(double) { return 0; }
inline double imag_part(std::complex<double> x) { return x.imag(); }
inline double conjugate(double x) { return x; }
inline std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }
/// NaN, in both parts of a complex number.
template <class A>
A not_a_number() {
  const double nan = std::nan("");
  if constexpr (std::is_same_v<A, double>)
    return nan;
  else
    return {nan, nan};
}
template <class A>
bool all_finite(std::span<const A> x) {
  return std::all_of(x.begin(), x.end(),
                     [](A v) { return std::isfinite(real_part(v)) && std::isfinite(imag_part(v)); });
}

/// The larger of two numbers, or NaN when one is NaN. The result of std::max depends on their order.
inline double larger_or_nan(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

/// A dense matrix, row-major.
template <class A>
struct Matrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<A> at_{};
  Matrix(std::int64_t m, std::int64_t n) : rows(m), cols(n), at_(static_cast<std::size_t>(m * n)) {}
  A& operator()(std::int64_t i, std::int64_t j) { return at_[static_cast<std::size_t>(i * cols + j)]; }
  const A& operator()(std::int64_t i, std::int64_t j) const { return at_[static_cast<std::size_t>(i * cols + j)]; }
  static Matrix identity(std::int64_t m, std::int64_t n) {
    Matrix out(m, n);
    for (std::int64_t i = 0; i < std::min(m, n); ++i) out(i, i) = A(1);
    return out;
  }
  Matrix adjoint() const {
    Matrix out(cols, rows);
    if (out.at_.empty()) return out;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) out(j, i) = conjugate((*this)(i, j));
    return out;
  }
  void fill(A value) { std::fill(at_.begin(), at_.end(), value); }
};

/// Replaces the lower triangle by the factor and the part above by 0; NaN when the matrix is not positive definite.
template <class A>
void cholesky_reference(Matrix<A>& a) {
  const std::int64_t n = a.rows;
  bool definite = true;
  for (std::int64_t j = 0; j < n && definite; ++j) {
    double d = real_part(a(j, j));
    for (std::int64_t k = 0; k < j; ++k) d -= std::norm(a(j, k));
    definite = d > 0;
    d = std::sqrt(d);
    a(j, j) = A(d);
    for (std::int64_t i = j + 1; i < n; ++i) {
      A sum = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= a(i, k) * conjugate(a(j, k));
      a(i, j) = sum / d;
    }
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      if (j > i)
        a(i, j) = A(0);
      else if (!definite)
        a(i, j) = not_a_number<A>();
}

/// Solves a x = b in place of b. It reads only the triangle through `a(i, j)`.
template <class A, class Triangle>
void solve_reference(const Triangle& a, bool lower, bool unit, Matrix<A>& b) {
  const std::int64_t n = b.rows;
  for (std::int64_t c = 0; c < b.cols; ++c)
    for (std::int64_t s = 0; s < n; ++s) {
      const std::int64_t i = lower ? s : n - 1 - s;
      A sum = b(i, c);
      for (std::int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) sum -= a(i, k) * b(k, c);
      b(i, c) = unit ? sum : sum / a(i, i);
    }
}

/// Replaces a by l and u in one matrix.
template <class A>
void lu_reference(Matrix<A>& a, std::vector<std::int64_t>& pivots, std::vector<std::int64_t>& permutation) {
  const std::int64_t m = a.rows, n = a.cols, k = std::min(m, n);
  const auto size = [](A v) { return std::abs(real_part(v)) + std::abs(imag_part(v)); };
  permutation.resize(static_cast<std::size_t>(m));
  std::iota(permutation.begin(), permutation.end(), std::int64_t{0});
  pivots.resize(static_cast<std::size_t>(k));
  for (std::int64_t j = 0; j < k; ++j) {
    std::int64_t p = j;
    for (std::int64_t i = j + 1; i < m; ++i) {
      if (std::isnan(size(a(p, j)))) break;
      if (!(size(a(i, j)) <= size(a(p, j)))) p = i;  // a NaN becomes the pivot too
    }
    pivots[static_cast<std::size_t>(j)] = p;
    if (p != j) {
      for (std::int64_t c = 0; c < n; ++c) std::swap(a(j, c), a(p, c));
      std::swap(permutation[static_cast<std::size_t>(j)], permutation[static_cast<std::size_t>(p)]);
    }
    if (size(a(j, j)) == 0) continue;
    for (std::int64_t i = j + 1; i < m; ++i) {
      a(i, j) /= a(j, j);
      for (std::int64_t c = j + 1; c < n; ++c) a(i, c) -= a(i, j) * a(j, c);
    }
  }
}

/// Replaces the upper triangle of a by r; q gets `columns` columns. Values that are not finite propagate by the
/// formulas: a column that holds one makes q and the rest of r NaN. One on the diagonal above zeros stays in r alone,
/// as in LAPACK.
template <class A>
Matrix<A> qr_reference(Matrix<A>& a, std::int64_t columns) {
  const std::int64_t m = a.rows, n = a.cols, k = std::min(m, n);
  std::vector<std::vector<A>> vs;
  std::vector<A> taus;
  for (std::int64_t j = 0; j < k; ++j) {
    // H = 1 - tau v v^H with H^H x = beta e and real beta, as in LAPACK's larfg.
    double below = 0, largest = 0;
    for (std::int64_t i = j; i < m; ++i) largest = larger_or_nan(largest, std::abs(a(i, j)));
    const double scale = largest > 0 && std::isfinite(largest) ? largest : 1;
    for (std::int64_t i = j + 1; i < m; ++i) below += std::norm(a(i, j) / scale);
    const A alpha = a(j, j);
    std::vector<A> v(static_cast<std::size_t>(m - j));
    v[0] = A(1);
    A tau(0);
    if (below != 0 || imag_part(alpha) != 0) {
      const double beta = -std::copysign(std::sqrt(std::norm(alpha / scale) + below) * scale, real_part(alpha));
      tau = (A(beta) - alpha) / beta;
      for (std::int64_t i = j + 1; i < m; ++i) v[static_cast<std::size_t>(i - j)] = a(i, j) / (alpha - beta);
      a(j, j) = A(beta);
      for (std::int64_t i = j + 1; i < m; ++i) a(i, j) = A(0);
      for (std::int64_t c = j + 1; c < n; ++c) {
        A w(0);
        for (std::int64_t i = j; i < m; ++i) w += conjugate(v[static_cast<std::size_t>(i - j)]) * a(i, c);
        w *= conjugate(tau);
        for (std::int64_t i = j; i < m; ++i) a(i, c) -= v[static_cast<std::size_t>(i - j)] * w;
      }
    }
    vs.push_back(std::move(v));
    taus.push_back(tau);
  }
  Matrix<A> q = Matrix<A>::identity(m, columns);
  for (std::int64_t j = k; j-- > 0;) {
    const auto& v = vs[static_cast<std::size_t>(j)];
    for (std::int64_t c = 0; c < columns; ++c) {
      A w(0);
      for (std::int64_t i = j; i < m; ++i) w += conjugate(v[static_cast<std::size_t>(i - j)]) * q(i, c);
      w *= taus[static_cast<std::size_t>(j)];
      for (std::int64_t i = j; i < m; ++i) q(i, c) -= v[static_cast<std::size_t>(i - j)] * w;
    }
  }
  return q;
}

/// The factor that makes the anchor (linalg.h) of a column real and positive.
template <class A>
A anchor_factor(const Matrix<A>& u, std::int64_t column) {
  double largest = 0;
  for (std::int64_t i = 0; i < u.rows; ++i) largest = larger_or_nan(largest, std::norm(u(i, column)));
  for (std::int64_t i = 0; i < u.rows; ++i)
    if (std::norm(u(i, column)) >= ops::Eigh::kAnchor * largest && largest > 0)
      return conjugate(u(i, column)) / std::abs(u(i, column));
  return A(1);
}
template <class A>
void scale_column(Matrix<A>& u, std::int64_t column, A by) {
  for (std::int64_t i = 0; i < u.rows; ++i) u(i, column) *= by;
}

inline constexpr int kJacobiSweeps = 100;

/// Cosine c and sine s e^(i phi) of the rotation that makes [[p, z], [conj z, q]] diagonal.
template <class A>
struct JacobiRotation {
  double c = 1;
  A s{0};
  JacobiRotation(double p, A z, double q) {
    const double size = std::abs(z), tau = (q - p) / (2 * size);
    const double t = std::copysign(1.0, tau) / (std::abs(tau) + std::hypot(1.0, tau));
    c = 1 / std::hypot(1.0, t);
    s = z / size * (t * c);
  }
  /// Rotates columns i and j of x.
  void turn(Matrix<A>& x, std::int64_t i, std::int64_t j) const {
    for (std::int64_t r = 0; r < x.rows; ++r) {
      const A u = x(r, i), v = x(r, j);
      x(r, i) = c * u - conjugate(s) * v;
      x(r, j) = s * u + c * v;
    }
  }
};

/// Eigenvalues, ascending, and eigenvectors of the Hermitian matrix in the lower triangle of a. False when it holds a
/// value that is not finite.
template <class A>
bool eigh_reference(Matrix<A> a, std::vector<double>& w, Matrix<A>& v) {
  const std::int64_t n = a.rows;
  for (std::int64_t i = 0; i < n; ++i) {
    a(i, i) = A(real_part(a(i, i)));
    for (std::int64_t j = i + 1; j < n; ++j) a(i, j) = conjugate(a(j, i));
  }
  if (!all_finite(std::span<const A>(a.at_))) return false;
  Matrix<A> x = Matrix<A>::identity(n, n);
  double scale = 0;
  for (const A& e : a.at_) scale = larger_or_nan(scale, std::abs(e));
  for (int sweep = 0; sweep < kJacobiSweeps; ++sweep) {
    bool turned = false;
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t q = p + 1; q < n; ++q) {
        if (std::abs(a(p, q)) <= 1e-17 * scale) continue;
        turned = true;
        const JacobiRotation<A> r(real_part(a(p, p)), a(p, q), real_part(a(q, q)));
        r.turn(a, p, q);
        Matrix<A> rows = a.adjoint();
        r.turn(rows, p, q);
        a = rows.adjoint();
        r.turn(x, p, q);
      }
    if (!turned) break;
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t i, std::int64_t j) { return real_part(a(i, i)) < real_part(a(j, j)); });
  w.resize(static_cast<std::size_t>(n));
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t from = order[static_cast<std::size_t>(j)];
    w[static_cast<std::size_t>(j)] = real_part(a(from, from));
    for (std::int64_t i = 0; i < n; ++i) v(i, j) = x(i, from);
    scale_column(v, j, anchor_factor(v, j));
  }
  return true;
}

/// Makes columns [first, end) of u orthonormal to the earlier columns and to each other.
template <class A>
void complete_basis(Matrix<A>& u, std::int64_t first) {
  std::int64_t next = 0;
  for (std::int64_t c = first; c < u.cols; ++c) {
    for (double norm = 0; norm < 0.5 / std::sqrt(static_cast<double>(u.rows)); ++next) {
      for (std::int64_t i = 0; i < u.rows; ++i) u(i, c) = A(i == next % u.rows ? 1 : 0);
      for (int twice = 0; twice < 2; ++twice)
        for (std::int64_t k = 0; k < c; ++k) {
          A along(0);
          for (std::int64_t i = 0; i < u.rows; ++i) along += conjugate(u(i, k)) * u(i, c);
          for (std::int64_t i = 0; i < u.rows; ++i) u(i, c) -= along * u(i, k);
        }
      norm = 0;
      for (std::int64_t i = 0; i < u.rows; ++i) norm += std::norm(u(i, c));
      norm = std::sqrt(norm);
      for (std::int64_t i = 0; i < u.rows; ++i) u(i, c) /= norm > 0 ? norm : 1;
    }
  }
}

/// The singular values, descending, of a, with u [M, K or M] and v [N, K or N]. False when a holds a value that is not
/// finite.
template <class A>
bool svd_reference(const Matrix<A>& a, Matrix<A>& u, std::vector<double>& s, Matrix<A>& v) {
  if (!all_finite(std::span<const A>(a.at_))) return false;
  if (a.rows < a.cols) {
    if (!svd_reference(a.adjoint(), v, s, u)) return false;
  } else {
    const std::int64_t m = a.rows, n = a.cols;
    double scale = 0;
    for (const A& e : a.at_) scale = larger_or_nan(scale, std::abs(e));
    if (scale == 0) scale = 1;
    Matrix<A> x = a, y = Matrix<A>::identity(n, n);
    for (A& e : x.at_) e /= scale;
    const auto inner = [&](std::int64_t p, std::int64_t q) {
      A sum(0);
      for (std::int64_t i = 0; i < m; ++i) sum += conjugate(x(i, p)) * x(i, q);
      return sum;
    };
    for (int sweep = 0; sweep < kJacobiSweeps; ++sweep) {
      bool turned = false;
      for (std::int64_t p = 0; p < n; ++p)
        for (std::int64_t q = p + 1; q < n; ++q) {
          const A z = inner(p, q);
          const double pp = real_part(inner(p, p)), qq = real_part(inner(q, q));
          if (std::abs(z) <= 1e-16 * std::sqrt(pp * qq) || std::abs(z) < 1e-300) continue;
          turned = true;
          const JacobiRotation<A> r(pp, z, qq);
          r.turn(x, p, q);
          r.turn(y, p, q);
        }
      if (!turned) break;
    }
    std::vector<double> norms;
    for (std::int64_t j = 0; j < n; ++j) norms.push_back(std::sqrt(real_part(inner(j, j))));
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      return norms[static_cast<std::size_t>(i)] > norms[static_cast<std::size_t>(j)];
    });
    s.resize(static_cast<std::size_t>(n));
    std::int64_t known = 0;  // columns of u that a column of x determines
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t from = order[static_cast<std::size_t>(j)];
      const double norm = norms[static_cast<std::size_t>(from)];
      s[static_cast<std::size_t>(j)] = norm * scale;
      for (std::int64_t i = 0; i < n; ++i) v(i, j) = y(i, from);
      if (norm < 1e-15 * std::max(1.0, norms[static_cast<std::size_t>(order[0])])) continue;
      for (std::int64_t i = 0; i < m; ++i) u(i, j) = x(i, from) / norm;
      known = j + 1;
    }
    complete_basis(u, known);
    complete_basis(v, n);
  }
  for (std::int64_t j = 0; j < std::min(a.rows, a.cols); ++j) {
    const A turn = anchor_factor(u, j);
    scale_column(u, j, turn);
    scale_column(v, j, turn);
  }
  return true;
}

}  // namespace rlx::factors
