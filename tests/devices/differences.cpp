// The table of the device under test.
#include "tests/devices/differences.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "rlx/driver/registry.h"
#include "rlx/tensor/visit.h"
#include "tests/devices/test_device.h"
#include "tests/support/closeness.h"

namespace rlx::test {
namespace {

const Difference* find_difference(Difference::What what, OpKind kind) {
  for (const Difference& d : backend_for(test_device())->differences())
    if (d.what == what && std::find(d.kinds.begin(), d.kinds.end(), kind) != d.kinds.end()) return &d;
  return nullptr;
}

bool loses_a_subnormal() {
  Graph g("subnormal");
  const Expr x = g.input("x", {{4}, DType::F32});
  g.set_outputs({x + x});
  return Session(test_device()).compile(std::move(g)).run({{"x", std::vector<float>(4, 0x1p-140F)}})[0][0] == 0;
}

}  // namespace

bool has_difference(Difference::What what, OpKind kind) { return find_difference(what, kind) != nullptr; }

bool takes_subnormals_for_zero() {
  const Difference* d = find_difference(Difference::What::Subnormals, OpKind::Binary);
  static const bool loses = loses_a_subnormal();
  return d && (!d->on_some || loses);
}

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
