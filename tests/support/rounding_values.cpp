// Helpers for elements of values and bounds.
#include <algorithm>
#include <limits>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/tensor/visit.h"
#include "tests/support/rounding_rules.h"

namespace rlx::test::rounding {

Tensor like(const Tensor& t, double value) { return Tensor::full(t.shape().with_dtype(DType::F64), value); }

bool stores_floats(DType t) { return is_inexact(t) || t == DType::F8E4M3 || t == DType::F8E5M2 || t == DType::F4E2M1; }

Tensor magnitude(const Tensor& t) {
  Tensor out = like(t, 0);
  double* o = reals(out);
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    const double m = std::abs(load_element<C>(t.data(), t.dtype(), i));
    o[i] = std::isfinite(m) ? m : 0;
  }
  return out;
}

double value_at(const Tensor& t, std::size_t i) {
  return std::abs(load_element<C>(t.data(), t.dtype(), static_cast<std::int64_t>(i)));
}

double apart(const Tensor& a, const Tensor& b, std::size_t i) {
  const auto at = static_cast<std::int64_t>(i);
  const C x = load_element<C>(a.data(), a.dtype(), at), y = load_element<C>(b.data(), b.dtype(), at);
  return std::max(difference(x.real(), y.real()), difference(x.imag(), y.imag()));
}

Tensor run1(const OpBox& op, const std::vector<Tensor>& in) { return evaluate_op(op, in)[0]; }
Tensor add_up(const Tensor& a, const Tensor& b) { return run1(ops::Binary{BinaryKind::Add}, {a, b}); }

Tensor broadcast(const Tensor& a, const Tensor& like_this) { return add_up(a, like(like_this, 0)); }

Tensor shifted(const Tensor& x, const Tensor& by, double factor) {
  if (!is_inexact(x.dtype())) return x;
  Tensor out = Tensor::copy_of(x.data(), x.shape());
  for (std::size_t i = 0; i < count(x); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double step = reals(by)[i];
    if (step == 0) continue;
    store_element(out.mutable_data(), x.dtype(), at, load_element<C>(x.data(), x.dtype(), at) + factor * step);
  }
  return out;
}

bool any(const Tensor& slack) {
  return std::any_of(reals(slack), reals(slack) + count(slack), [](double e) { return e != 0; });
}

Tensor around_zero(const Bounded& x) {
  Tensor out = like(x.value, 0);
  for (std::size_t i = 0; i < count(out); ++i)
    reals(out)[i] = reals(x.slack)[i] > 0 && value_at(x.value, i) <= reals(x.slack)[i] ? 1 : 0;
  return out;
}
Tensor infinite(const Bounded& x) {
  Tensor out = like(x.value, 0);
  for (std::size_t i = 0; i < count(out); ++i) reals(out)[i] = std::isinf(value_at(x.value, i)) ? 1 : 0;
  return out;
}

void either_zero(Bounded& out, std::size_t i) {
  reals(out.slack)[i] = std::max(reals(out.slack)[i], std::numeric_limits<double>::denorm_min());
}

double sum_epsilon(DType t) {
  return epsilon_of(is_complex(t) ? real_dtype(t) : t == DType::F64 ? DType::F64 : DType::F32);
}

}  // namespace rlx::test::rounding

namespace rlx::test {

double smallest_normal(DType t) {
  return std::ldexp(1.0, float_format(real_dtype(t) == DType::F64 ? DType::F64 : DType::F32).min_exponent);
}

Tensor without_subnormals(const Tensor& t) {
  if (!is_inexact(t.dtype())) return t;
  const double smallest = smallest_normal(t.dtype());
  const auto cut = [&](double x) { return std::fabs(x) < smallest ? std::copysign(0.0, x) : x; };
  Tensor out = Tensor::copy_of(t.data(), t.shape());
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    const auto c = load_element<std::complex<double>>(t.data(), t.dtype(), i);
    store_element(out.mutable_data(), t.dtype(), i, std::complex<double>(cut(c.real()), cut(c.imag())));
  }
  return out;
}

NamedTensors without_subnormals(const NamedTensors& values) {
  NamedTensors out;
  for (const auto& [name, value] : values) out.emplace(name, without_subnormals(value));
  return out;
}

}  // namespace rlx::test
