// Loops over matrices for the reference rules of matrix factors: loads and stores the matrices of a tensor [.., M, N].
#pragma once

#include "rlx/ops/linalg/factor_reference.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx::factors {

/// Matrix b over the leading axes of `t`.
template <class A>
Matrix<A> load_matrix(const Tensor& t, std::int64_t b) {
  Matrix<A> out(t.dim(-2), t.dim(-1));
  const std::int64_t size = out.rows * out.cols;
  for (std::int64_t i = 0; i < size; ++i)
    out.at_[static_cast<std::size_t>(i)] = load_element<A>(t.data(), t.dtype(), b * size + i);
  return out;
}
template <class V>
void store_values(Tensor& t, std::int64_t b, const std::vector<V>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  for (std::int64_t i = 0; i < n; ++i)
    store_element(t.mutable_data(), t.dtype(), b * n + i, values[static_cast<std::size_t>(i)]);
}
template <class A>
void store_matrix(Tensor& t, std::int64_t b, const Matrix<A>& x) {
  store_values(t, b, x.at_);
}
/// Calls f(A{}, b) for every matrix b of an operand; for none when the results have no elements.
template <class F>
void for_each_matrix(const RefArgs& a, int operand, F&& f) {
  std::int64_t count = 1, elements = 0;
  for (const Tensor& out : a.outputs) elements += out.num_elements();
  if (elements == 0) return;
  const Tensor& t = a.in(operand);
  for (int i = 0; i + 2 < t.rank(); ++i) count *= t.dim(i);
  for (std::int64_t b = 0; b < count; ++b) {
    if (is_complex(t.dtype()))
      f(std::complex<double>{}, b);
    else
      f(double{}, b);
  }
}

}  // namespace rlx::factors
