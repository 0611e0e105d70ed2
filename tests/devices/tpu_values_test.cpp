// The text of functions and conversions at the values where XLA and the rules of the ops might part: infinities, NaN,
// zeros of both signs, the ends of the range, and many sizes between. Run on whatever plug-in is there.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "tests/devices/differences.h"
#include "tests/devices/test_device.h"
#include "tests/support/needs.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

using test::tpu_here;

constexpr DType kAllFloats[] = {DType::F32, DType::F64, DType::F16, DType::BF16};
constexpr DType kInts[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                           DType::U8, DType::U16, DType::U32, DType::U64};

// Sizes of a float dtype, ends and specials among them.
std::vector<double> float_values(DType t, int steps) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const test::FloatFormat f = test::float_format(t);
  const double smallest = std::ldexp(1.0, f.min_exponent);
  std::vector<double> out{0.0,       -0.0,         inf,           -inf,
                          nan,       f.largest,    -f.largest,    smallest,
                          -smallest, smallest / 4, -smallest / 2, std::ldexp(smallest, 1 - f.precision)};
  for (double x : {0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 7.0, 20.0, 87.5, 88.5, 90.0, 104.0, 709.5, 750.0, 1e4})
    out.insert(out.end(), {x, -x});
  const double low = std::log(smallest), high = std::log(f.largest);
  for (int i = 1; i < steps; ++i) {
    const double x = std::exp(low + (high - low) * i / steps), y = 12.0 * i / steps, z = 1 + std::exp(-0.09 * i);
    out.insert(out.end(), {x, -x, y, -y, z, -z, 2 - z, z - 2});
  }
  return out;
}
Tensor column(const std::vector<double>& values, DType t) {
  Tensor wide = Tensor::zeros(Shape({static_cast<std::int64_t>(values.size())}, DType::F64));
  for (std::size_t i = 0; i < values.size(); ++i) wide.set(static_cast<std::int64_t>(i), values[i]);
  return wide.cast(t);
}
// Every number of 8 bits; of more the ends and what is near powers of two.
Tensor int_values(DType t) {
  std::vector<std::int64_t> v;
  for (int i = -128; i < 256; ++i) v.push_back(i);
  for (int bit = 8; bit < dtype_bits(t); ++bit)
    for (std::int64_t d : {-1, 0, 1})
      v.push_back(static_cast<std::int64_t>((std::uint64_t{1} << bit) + static_cast<std::uint64_t>(d)));
  Tensor out = Tensor::zeros(Shape({static_cast<std::int64_t>(v.size())}, t));
  for (std::size_t i = 0; i < v.size(); ++i) out.set_i64(static_cast<std::int64_t>(i), v[i]);
  return out;
}

// Each of these parts with each.
std::vector<std::complex<double>> complex_values(const std::vector<double>& parts) {
  std::vector<std::complex<double>> all;
  for (double re : parts)
    for (double im : parts) all.emplace_back(re, im);
  return all;
}
const std::vector<double>& special_parts() {
  static const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<double> parts{0.0, -0.0, inf, -inf, nan, 800, -89.5, 20, -1.5, 1, 0.25, -1e-20};
  return parts;
}

// What one op makes of numbers of dtype `t` on the device, as C128.
std::vector<std::complex<double>> complex_results(const OpBox& op, DType t,
                                                  std::initializer_list<std::vector<std::complex<double>>> operands) {
  Graph g("complex");
  std::vector<Value> in;
  NamedTensors values;
  for (const auto& list : operands) {
    const Tensor x = Tensor::copy_of(list.data(), {{static_cast<std::int64_t>(list.size())}, DType::C128}).cast(t);
    const std::string name = concat_text("x", in.size());
    in.push_back(g.input(name, x.shape()));
    values.emplace(name, x);
  }
  g.set_outputs({g.add(op, in)});
  const Tensor y = Session(Device::Tpu).compile(std::move(g)).run_typed(values)[0].cast(DType::C128);
  const auto* first = reinterpret_cast<const std::complex<double>*>(y.data());
  return {first, first + y.num_elements()};
}
// Part by part, within a few units of the part or of the whole number; infinities with their signs, and zeros where C
// says which: not beside NaN or of operands that are not finite.
void expect_parts(std::complex<double> got, std::complex<double> want, DType t, bool finite) {
  const test::FloatFormat f = test::float_format(real_dtype(t));
  const double size = std::isfinite(std::abs(want)) ? std::abs(want) : 0;
  const bool signs = finite && std::isfinite(std::abs(want));
  const double parts[2][2] = {{got.real(), want.real()}, {got.imag(), want.imag()}};
  for (const auto& [a, b] : parts) {
    const double rounded = std::fabs(b) > f.largest ? std::copysign(std::numeric_limits<double>::infinity(), b) : b;
    const double slack = std::ldexp(std::max(size, std::fabs(b)), 3 - f.precision) + std::ldexp(1.0, f.min_exponent);
    const bool ok = std::isnan(b)             ? std::isnan(a)
                    : !std::isfinite(rounded) ? a == rounded
                    : b == 0 ? std::fabs(a) <= slack && (a != 0 || !signs || std::signbit(a) == std::signbit(b))
                             : std::fabs(a - b) <= slack;
    CHECK_MESSAGE(ok, "got (", got.real(), ", ", got.imag(), "), want (", want.real(), ", ", want.imag(), ")");
  }
}

// What the table of differences says of results, in their bounds: subnormal ones may be 0, and the power of a subnormal
// base may be half as large or twice.
void allow_differences(const OpBox& op, const std::vector<Tensor>& operands, test::Bounded& exact, DType t) {
  double* slack = reinterpret_cast<double*>(exact.slack.mutable_data());
  const auto* two = op.get_if<ops::Binary>();
  const bool power = two && two->fn == BinaryKind::Pow &&
                     test::has_difference(Difference::What::PowOfSubnormal, OpKind::Binary) && is_float(t);
  const std::int64_t columns = power ? operands[1].num_elements() : 1;
  for (std::int64_t i = 0; i < exact.value.num_elements(); ++i) {
    const double size = std::fabs(exact.value.at(i)), base = power ? std::fabs(operands[0].at(i / columns)) : 1;
    if (is_inexact(t) && size < test::smallest_normal(t)) slack[i] = std::max(slack[i], test::smallest_normal(t));
    if (base != 0 && base < test::smallest_normal(t)) slack[i] = std::max(slack[i], size);
  }
}

test::Bounded element(const test::Bounded& b, std::int64_t i) {
  const std::vector<std::int64_t> flat{b.value.num_elements()};
  return {b.value.reshaped(flat).rows(i, 1), b.slack.reshaped(flat).rows(i, 1)};
}

// Each element is what the rules give, or what they give of 0 in place of subnormal operands.
void expect_either(const Tensor& got, const test::Bounded& exact, const test::Bounded& of_zeros) {
  if (test::gap_to(got, exact).size <= 1) return;
  const Tensor flat = got.reshaped({got.num_elements()});
  for (std::int64_t i = 0; i < got.num_elements(); ++i) {
    const test::Gap gap = test::gap_to(flat.rows(i, 1), element(exact, i));
    if (gap.size > 1)
      CHECK_MESSAGE(test::gap_to(flat.rows(i, 1), element(of_zeros, i)).size <= 1, "element ", i, ": ", gap.text);
  }
}

void expect_op(const OpBox& op, const std::vector<Tensor>& operands) {
  INFO(op_text_name(op), " of ", std::string(dtype_name(operands[0].dtype())));
  Graph g("values");
  std::vector<Value> in;
  NamedTensors values;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string name = concat_text("x", i);
    in.push_back(g.input(name, operands[i].shape()));
    values.emplace(name, operands[i]);
  }
  g.set_outputs({g.add(op, in)});
  const DType t = g.shape(g.outputs()[0]).dtype();
  const test::Subnormals subnormals = test::device_subnormals();
  test::Bounded exact = test::evaluate_bounded(g, values, subnormals).outputs[0],
                of_zeros = test::evaluate_bounded(g, test::without_subnormals(values), subnormals).outputs[0];
  for (test::Bounded* b : {&exact, &of_zeros}) allow_differences(op, operands, *b, t);
  CompiledGraph f = Session(Device::Tpu).compile(std::move(g));
  expect_either(f.run_typed(values)[0], exact, of_zeros);
}

// Each of `v` with each: [n, 1] and [n].
std::vector<Tensor> pairs(const Tensor& v) { return {v.reshaped({v.num_elements(), 1}), v}; }

}  // namespace

TEST_SUITE_BEGIN("conformance");

TEST_CASE("tpu: functions of one operand over their whole range") {
  if (!tpu_here()) return;
  test::Share share(4);  // of pairs of a function and a dtype
  for (int i = 0; i < kNumActivationKinds; ++i) {
    const FunctionRow& row = function_row(static_cast<ActivationKind>(i));
    for (DType t : kAllFloats)
      if (row.real && share.next()) expect_op(ops::Activation{row.fn}, {column(float_values(t, 400), t)});
    for (DType t : kInts)
      if ((is_signed_int(t) ? row.signed_int != nullptr : row.unsigned_int != nullptr) && share.next())
        expect_op(ops::Activation{row.fn}, {int_values(t)});
  }
}

TEST_CASE("tpu: functions of two operands, each value with each") {
  if (!tpu_here()) return;
  test::Share share(4);  // of pairs of a function and a dtype
  for (int i = 0; i < kNumBinaryKinds; ++i) {
    const BinaryRow& row = binary_row(static_cast<BinaryKind>(i));
    for (DType t : kAllFloats)
      if (row.real && share.next()) expect_op(ops::Binary{row.fn}, pairs(column(float_values(t, 12), t)));
    for (DType t : kInts)
      if ((is_signed_int(t) ? row.signed_int != nullptr : row.unsigned_int != nullptr) && share.next())
        expect_op(ops::Binary{row.fn}, pairs(int_values(t)));
  }
}

TEST_CASE("tpu: functions, products and quotients of complex numbers, each part with each") {
  if (!tpu_here()) return;
  using C = std::complex<double>;
  const auto is_finite = [](C z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); };
  const std::vector<C> singles = complex_values(special_parts());
  std::vector<C> x, y;
  for (C a : singles)
    for (C b : singles) x.push_back(a), y.push_back(b);
  for (DType t : {DType::C64, DType::C128}) {
    for (int i = 0; i < kNumActivationKinds; ++i) {
      const FunctionRow& row = function_row(static_cast<ActivationKind>(i));
      if (!row.complex) continue;
      const std::vector<C> got = complex_results(ops::Activation{row.fn}, t, {singles});
      for (std::size_t k = 0; k < got.size(); ++k) {
        INFO(std::string(enum_name(row.fn)), " of ", std::string(dtype_name(t)), " (", singles[k].real(), ", ",
             singles[k].imag(), ")");
        expect_parts(got[k], row.complex(singles[k]), t, is_finite(singles[k]));
      }
    }
    const std::vector<C> products = complex_results(ops::Binary{BinaryKind::Mul}, t, {x, y}),
                         quotients = complex_results(ops::Binary{BinaryKind::Div}, t, {x, y});
    for (std::size_t k = 0; k < x.size(); ++k) {
      INFO(std::string(dtype_name(t)), " (", x[k].real(), ", ", x[k].imag(), ") and (", y[k].real(), ", ", y[k].imag(),
           ")");
      expect_parts(products[k], x[k] * y[k], t, is_finite(x[k]) && is_finite(y[k]));
      expect_parts(quotients[k], x[k] / y[k], t, is_finite(x[k]) && is_finite(y[k]));
    }
  }
  // Where parts or their squares leave the range and the result does not.
  const std::vector<C> a{{1e308, 1e308}, {1e300, 0}, {1, 1}, {1e-300, 1e-300}},
      b{{1e308, 1e308}, {1e10, 1e-300}, {1e300, 1e-10}, {1e-300, 0}};
  const std::vector<C> got = complex_results(ops::Binary{BinaryKind::Div}, DType::C128, {a, b});
  for (std::size_t k = 0; k < a.size(); ++k) expect_parts(got[k], a[k] / b[k], DType::C128, true);
}

TEST_CASE("tpu: comparisons, each value with each") {
  if (!tpu_here()) return;
  for (CompareKind fn :
       {CompareKind::Eq, CompareKind::Ne, CompareKind::Lt, CompareKind::Le, CompareKind::Gt, CompareKind::Ge}) {
    for (DType t : kAllFloats) expect_op(ops::Compare{fn}, pairs(column(float_values(t, 4), t)));
    for (DType t : kInts) expect_op(ops::Compare{fn}, pairs(int_values(t)));
  }
}

TEST_CASE("tpu: conversions between all dtypes") {
  if (!tpu_here()) return;
  const std::vector<double> values = float_values(DType::F32, 100);
  std::vector<double> near;  // halves of what the narrow dtypes hold, and a little more and less
  for (int i = 0; i < 600; ++i)
    for (double d : {0.0, 0x1p-40, -0x1p-40}) near.push_back((i - 300) * (1 + 0x1p-9) * (1 + d) + d);
  std::vector<double> all = values;
  all.insert(all.end(), near.begin(), near.end());
  test::Share share(4);  // of pairs of a function and a dtype
  for (int from = 0; from < kNumDTypes; ++from)
    for (int to = 0; to < kNumDTypes; ++to) {
      if (!share.next()) continue;
      const auto f = static_cast<DType>(from), t = static_cast<DType>(to);
      INFO("from ", std::string(dtype_name(f)), " to ", std::string(dtype_name(t)));
      expect_op(ops::Cast{t}, {is_int(f) ? int_values(f) : column(all, f)});
    }
}

TEST_SUITE_END();

}  // namespace rlx
