// Elementwise ops: known answers, special values, integer rules, refusals.
#include <cmath>
#include <complex>
#include <memory>

#include <doctest/doctest.h>

#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/tensor/visit.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

template <class T>
Tensor vec(std::vector<T> values) {
  auto n = static_cast<std::int64_t>(values.size());
  return Tensor::of<T>({n}, values);
}
template <class Op>
Tensor one(Op op, const std::vector<Tensor>& in) {
  return run_op(op, in).at(0);
}
std::vector<std::int64_t> ints(const Tensor& t) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < t.num_elements(); ++i) out.push_back(t.at_i64(i));
  return out;
}
using Ints = std::vector<std::int64_t>;

TEST_CASE("activations at -2.5, -0.5, 0 and 1.5") {
  using Kind = ActivationKind;
  const Tensor x = doubles({4}, {-2.5, -0.5, 0, 1.5});
  struct Known {
    Kind fn;
    std::vector<double> y;
  };
  const Known known[] = {
      {Kind::Gelu, {-0.015524163314440348, -0.15426876936299344, 0.0, 1.399789198096713}},
      {Kind::GeluApprox, {-0.015084266089998577, -0.15428599017485606, 0.0, 1.3995715769802328}},
      {Kind::Silu, {-0.18964545005310887, -0.1887703343990727, 0.0, 1.2263617142904655}},
      {Kind::Relu, {0, 0, 0, 1.5}},
      {Kind::Sigmoid, {0.07585818002124355, 0.3775406687981454, 0.5, 0.8175744761936437}},
      {Kind::Tanh, {-0.9866142981514303, -0.46211715726000974, 0.0, 0.9051482536448664}},
      {Kind::Neg, {2.5, 0.5, 0, -1.5}},
      {Kind::Abs, {2.5, 0.5, 0, 1.5}},
      {Kind::Tan, {0.7470222972386603, -0.5463024898437905, 0.0, 14.101419947171719}},
      {Kind::Atan, {-1.1902899496825317, -0.4636476090008061, 0.0, 0.982793723247329}},
      {Kind::Round, {-2, 0, 0, 2}},  // ties go to even
      {Kind::Floor, {-3, -1, 0, 1}},
      {Kind::Ceil, {-2, 0, 0, 2}},
      {Kind::Sign, {-1, -1, 0, 1}},
      {Kind::Softplus, {0.07888973429254963, 0.4740769841801067, 0.6931471805599453, 1.7014132779827524}},
      {Kind::Elu, {-0.9179150013761013, -0.3934693402873666, 0.0, 1.5}},
      {Kind::Erf, {-0.999593047982555, -0.5204998778130465, 0.0, 0.9661051464753108}},
      {Kind::HardSwish, {-0.20833333333333334, -0.20833333333333334, 0.0, 1.125}},
      {Kind::HardSigmoid, {0.08333333333333333, 0.4166666666666667, 0.5, 0.75}},
      {Kind::Mish, {-0.19681620390653337, -0.22074377465173, 0.0, 1.4033782663958028}},
      {Kind::Softsign, {-0.7142857142857143, -0.3333333333333333, 0.0, 0.6}},
      {Kind::LogSigmoid, {-2.5788897342925496, -0.9740769841801067, -0.6931471805599453, -0.2014132779827524}},
      {Kind::Expm1, {-0.9179150013761013, -0.3934693402873666, 0.0, 3.481689070338065}},
      {Kind::Square, {6.25, 0.25, 0, 2.25}},
      {Kind::LeakyRelu, {-0.025, -0.005, 0, 1.5}},
      {Kind::Sinh, {-6.0502044810397875, -0.5210953054937474, 0.0, 2.1292794550948173}},
      {Kind::Cosh, {6.132289479663686, 1.1276259652063807, 1.0, 2.352409615243247}},
      {Kind::Asinh, {-1.6472311463710958, -0.48121182505960347, 0.0, 1.1947632172871094}},
      {Kind::Exp2, {0.1767766952966369, 0.7071067811865476, 1.0, 2.8284271247461903}},
      {Kind::Trunc, {-2, 0, 0, 1}},
      {Kind::Cbrt, {-1.3572088082974532, -0.7937005259840998, 0.0, 1.1447142425533319}},
  };
  for (const Known& k : known) {
    INFO(std::string(enum_name(k.fn)));
    expect_close(one(ops::Activation{k.fn}, {x}), k.y, 1e-15);
  }
  const Tensor p = doubles({2}, {0.25, 4});
  expect_close(one(ops::Activation{Kind::Sqrt}, {p}), {0.5, 2}, 0);
  expect_close(one(ops::Activation{Kind::Rsqrt}, {p}), {2, 0.5}, 0);
  expect_close(one(ops::Activation{Kind::Recip}, {p}), {4, 0.25}, 0);
  expect_close(one(ops::Activation{Kind::Log}, {p}), {-1.3862943611198906, 1.3862943611198906}, 1e-15);
  expect_close(one(ops::Activation{Kind::Log1p}, {p}), {0.22314355131420976, 1.6094379124341003}, 1e-15);
  expect_close(one(ops::Activation{Kind::Exp}, {p}), {1.2840254166877414, 54.598150033144236}, 1e-15);
  expect_close(one(ops::Activation{Kind::Sin}, {p}), {0.24740395925452294, -0.7568024953079282}, 1e-15);
  expect_close(one(ops::Activation{Kind::Cos}, {p}), {0.9689124217106447, -0.6536436208636119}, 1e-15);
  const Tensor unit = doubles({3}, {-0.75, -0.25, 0.5}), above = doubles({3}, {1, 1.5, 10});
  expect_close(one(ops::Activation{Kind::Asin}, {unit}), {-0.848062078981481, -0.25268025514207865, 0.5235987755982989},
               1e-15);
  expect_close(one(ops::Activation{Kind::Acos}, {unit}), {2.4188584057763776, 1.8234765819369754, 1.0471975511965979},
               1e-15);
  expect_close(one(ops::Activation{Kind::Atanh}, {unit}),
               {-0.9729550745276566, -0.25541281188299536, 0.5493061443340548}, 1e-15);
  expect_close(one(ops::Activation{Kind::Acosh}, {above}), {0, 0.9624236501192069, 2.993222846126381}, 1e-15);
  expect_close(one(ops::Activation{Kind::Log2}, {above}), {0, 0.5849625007211562, 3.321928094887362}, 1e-15);
  expect_close(one(ops::Activation{Kind::Log10}, {above}), {0, 0.17609125905568124, 1}, 1e-15);
}

TEST_CASE("activations at infinities and NaN") {
  using Kind = ActivationKind;
  const Tensor x = doubles({3}, {-kInf, kInf, NAN});
  auto at = [&](Kind fn) { return one(ops::Activation{fn}, {x}); };
  for (Kind fn : {Kind::Relu, Kind::Sigmoid, Kind::Tanh, Kind::Softplus, Kind::Elu, Kind::HardSigmoid, Kind::LogSigmoid,
                  Kind::Sign, Kind::Abs, Kind::Round, Kind::Gelu, Kind::Silu}) {
    INFO(std::string(enum_name(fn)));
    CHECK(std::isnan(at(fn).at(2)));
  }
  CHECK(at(Kind::Relu).at(0) == 0);
  CHECK(at(Kind::Sigmoid).at(0) == 0);
  CHECK(at(Kind::Sigmoid).at(1) == 1);
  CHECK(at(Kind::Softplus).at(0) == 0);
  CHECK(at(Kind::Softplus).at(1) == kInf);
  CHECK(at(Kind::LogSigmoid).at(0) == -kInf);
  CHECK(at(Kind::Elu).at(0) == -1);
  CHECK(at(Kind::LeakyRelu).at(0) == -kInf);
  CHECK(one(ops::Activation{Kind::LeakyRelu, 0.0}, {x}).at(0) == 0);
  CHECK(std::isnan(one(ops::Activation{Kind::LeakyRelu, 0.0}, {x}).at(2)));
  CHECK(std::isnan(at(Kind::Acosh).at(0)));
  CHECK(std::isnan(at(Kind::Asin).at(1)));
  CHECK(at(Kind::Cbrt).at(0) == -kInf);
  // Large arguments do not overflow in between.
  expect_close(one(ops::Activation{Kind::Softplus}, {doubles({2}, {800, -800})}), {800, 0}, 0);
  expect_close(one(ops::Activation{Kind::Sigmoid}, {doubles({2}, {800, -800})}), {1, 0}, 0);
}

TEST_CASE("activations of integers, bools and complex numbers") {
  using Kind = ActivationKind;
  const Tensor i8 = vec<std::int8_t>({-128, -3, 0, 5});
  CHECK(ints(one(ops::Activation{Kind::Neg}, {i8})) == Ints{-128, 3, 0, -5});  // the lowest value wraps
  CHECK(ints(one(ops::Activation{Kind::Abs}, {i8})) == Ints{-128, 3, 0, 5});
  CHECK(ints(one(ops::Activation{Kind::Square}, {i8})) == Ints{0, 9, 0, 25});
  CHECK(ints(one(ops::Activation{Kind::Sign}, {i8})) == Ints{-1, -1, 0, 1});
  CHECK(ints(one(ops::Activation{Kind::Relu}, {i8})) == Ints{0, 0, 0, 5});
  CHECK(ints(one(ops::Activation{Kind::Not}, {i8})) == Ints{127, 2, -1, -6});
  const Tensor u64 = vec<std::uint64_t>({0, 1ull << 63});
  CHECK(ints(one(ops::Activation{Kind::Sign}, {u64})) == Ints{0, 1});  // large unsigned numbers are not negative
  Tensor flags = Tensor::zeros(Shape({2}, DType::Bool));
  flags.set_i64(1, 1);
  CHECK(ints(one(ops::Activation{Kind::Not}, {flags})) == Ints{1, 0});

  using C = std::complex<double>;
  auto complex_at = [](Kind fn, C z) {
    Tensor t = Tensor::zeros(Shape({}, DType::C128));
    store_element(t.mutable_data(), DType::C128, 0, z);
    Tensor y = one(ops::Activation{fn}, {t});
    return load_element<C>(y.data(), DType::C128, 0);
  };
  CHECK(std::abs(complex_at(Kind::Exp, {1, 2}) - C(-1.1312043837568135, 2.4717266720048188)) < 1e-14);
  CHECK(std::abs(complex_at(Kind::Sqrt, {-3, 4}) - C(1, 2)) < 1e-14);
  CHECK(std::abs(complex_at(Kind::Log, {-1, 1}) - C(0.34657359027997264, 2.356194490192345)) < 1e-14);
  CHECK(std::abs(complex_at(Kind::Recip, {3, -4}) - C(0.12, 0.16)) < 1e-14);
  CHECK(std::abs(complex_at(Kind::Tanh, {0.5, 1}) - C(1.0428307283443612, 0.8068774121630852)) < 1e-14);
}

TEST_CASE("results round once to the dtype") {
  // 1 + 2^-9 is a tie between two bf16 numbers and rounds to even.
  const Tensor x = doubles({2}, {1 + 0x1p-9, 3}).cast(DType::F32).cast(DType::BF16);
  CHECK(x.at(0) == 1);
  CHECK(one(ops::Activation{ActivationKind::Recip}, {x}).at(1) == 0.333984375);
}

TEST_CASE("binary: known answers with broadcasting") {
  using Kind = BinaryKind;
  const Tensor a = doubles({2, 1}, {7, -7}), b = doubles({2}, {3, -3});
  expect_close(one(ops::Binary{Kind::Add}, {a, b}), {10, 4, -4, -10}, 0);
  expect_close(one(ops::Binary{Kind::Sub}, {a, b}), {4, 10, -10, -4}, 0);
  expect_close(one(ops::Binary{Kind::Mul}, {a, b}), {21, -21, -21, 21}, 0);
  expect_close(one(ops::Binary{Kind::Div}, {a, b}), {7.0 / 3, -7.0 / 3, -7.0 / 3, 7.0 / 3}, 0);
  expect_close(one(ops::Binary{Kind::Max}, {a, b}), {7, 7, 3, -3}, 0);
  expect_close(one(ops::Binary{Kind::Min}, {a, b}), {3, -3, -7, -7}, 0);
  expect_close(one(ops::Binary{Kind::Mod}, {a, b}), {1, -2, 2, -1}, 0);  // the divisor's sign
  expect_close(one(ops::Binary{Kind::Pow}, {a, b}), {343, 1 / 343.0, -343, -1 / 343.0}, 1e-15);
  expect_close(one(ops::Binary{Kind::Atan2}, {doubles({3}, {1, -1, 0}), doubles({3}, {1, -1, -1})}),
               {0.7853981633974483, -2.356194490192345, 3.141592653589793}, 1e-15);
  CHECK(one(ops::Binary{Kind::Mul}, {a, b}).shape() == Shape({2, 2}, DType::F64));
  for (Kind fn : {Kind::Max, Kind::Min}) {
    const Tensor y = one(ops::Binary{fn}, {doubles({2}, {NAN, 1}), doubles({2}, {1, NAN})});
    CHECK(std::isnan(y.at(0)));
    CHECK(std::isnan(y.at(1)));
  }
  CHECK(one(ops::Binary{Kind::Mod}, {doubles({1}, {-1}), doubles({1}, {kInf})}).at(0) == kInf);  // as Python's -1 % inf
}

TEST_CASE("binary: integers wrap, truncate, and survive zero") {
  using Kind = BinaryKind;
  auto i32 = [](Kind fn, std::vector<std::int32_t> a, std::vector<std::int32_t> b) {
    return ints(one(ops::Binary{fn}, {vec<std::int32_t>(std::move(a)), vec<std::int32_t>(std::move(b))}));
  };
  constexpr std::int32_t low = INT32_MIN, high = INT32_MAX;
  CHECK(i32(Kind::Add, {high, 2}, {1, 3}) == Ints{low, 5});
  CHECK(i32(Kind::Mul, {1 << 20, -3}, {1 << 20, 5}) == Ints{0, -15});
  CHECK(i32(Kind::Div, {7, -7, 5, low}, {2, 2, 0, -1}) == Ints{3, -3, 0, low});
  CHECK(i32(Kind::Mod, {7, -7, 5, low, -7}, {3, 3, 0, -1, -3}) == Ints{1, 2, 0, 0, -1});
  CHECK(i32(Kind::Pow, {2, -1, 3, 0, 0}, {10, -3, -1, 0, -1}) == Ints{1024, -1, 0, 1, 0});
  CHECK(i32(Kind::Shl, {1, 1, 1, -1}, {31, 32, -1, 4}) == Ints{low, 0, 0, -16});
  CHECK(i32(Kind::Shr, {-8, -8, 8, -8}, {1, 40, 40, -1}) == Ints{-4, -1, 0, -1});
  CHECK(i32(Kind::BitAnd, {12, -1}, {10, 7}) == Ints{8, 7});
  CHECK(i32(Kind::BitOr, {12, 0}, {10, 7}) == Ints{14, 7});
  CHECK(i32(Kind::BitXor, {12, -1}, {10, 7}) == Ints{6, -8});
  const Tensor i64 = vec<std::int64_t>({INT64_MIN}), minus = vec<std::int64_t>({-1});
  CHECK(ints(one(ops::Binary{Kind::Div}, {i64, minus})) == Ints{INT64_MIN});
  const Tensor big = vec<std::uint64_t>({1ull << 63}), two = vec<std::uint64_t>({2});
  CHECK(ints(one(ops::Binary{Kind::Div}, {big, two})) == Ints{1ll << 62});
  CHECK(ints(one(ops::Binary{Kind::Shr}, {big, two})) == Ints{1ll << 61});
  CHECK(ints(one(ops::Binary{Kind::Max}, {two, big})) == Ints{INT64_MIN});  // the bits of 2^63
  const Tensor u8 = vec<std::uint8_t>({128}), one_bit = vec<std::uint8_t>({1});
  CHECK(ints(one(ops::Binary{Kind::Shl}, {u8, one_bit})) == Ints{0});
}

TEST_CASE("comparisons: NaN, unsigned order, complex equality") {
  using Kind = CompareKind;
  const Tensor a = doubles({4}, {1, 2, NAN, -0.0}), b = doubles({4}, {2, 2, NAN, 0.0});
  CHECK(ints(one(ops::Compare{Kind::Eq}, {a, b})) == Ints{0, 1, 0, 1});
  CHECK(ints(one(ops::Compare{Kind::Ne}, {a, b})) == Ints{1, 0, 1, 0});
  CHECK(ints(one(ops::Compare{Kind::Lt}, {a, b})) == Ints{1, 0, 0, 0});
  CHECK(ints(one(ops::Compare{Kind::Le}, {a, b})) == Ints{1, 1, 0, 1});
  CHECK(ints(one(ops::Compare{Kind::Gt}, {a, b})) == Ints{0, 0, 0, 0});
  CHECK(ints(one(ops::Compare{Kind::Ge}, {a, b})) == Ints{0, 1, 0, 1});
  CHECK(ints(one(ops::Compare{Kind::Lt}, {vec<std::uint64_t>({1}), vec<std::uint64_t>({~0ull})})) == Ints{1});
  // Adjacent integers above 2^53 differ, although they are equal as doubles.
  CHECK(ints(one(ops::Compare{Kind::Lt}, {vec<std::int64_t>({1ll << 53}), vec<std::int64_t>({(1ll << 53) + 1})})) ==
        Ints{1});
}

TEST_CASE("where picks bit patterns, NaN of the other side does not leak") {
  Tensor cond = Tensor::zeros(Shape({2, 1}, DType::Bool));
  cond.set_i64(1, 1);
  const Tensor y = one(ops::Where{}, {cond, doubles({2}, {NAN, 1}), doubles({1}, {5})});
  expect_close(Tensor(y.rows(0, 1)), {5, 5}, 0);
  CHECK(std::isnan(y.at(2)));
  CHECK(y.at(3) == 1);
}

TEST_CASE("clamp, iota, dim_size, stop_gradient") {
  expect_close(one(ops::Clamp{}, {doubles({4}, {-5, 0.5, 9, 2}), doubles({}, {-1}), doubles({}, {3})}), {-1, 0.5, 3, 2},
               0);
  expect_close(one(ops::Clamp{}, {doubles({1}, {2}), doubles({1}, {4}), doubles({1}, {3})}), {3},
               0);  // high wins when the bounds cross
  const Tensor in[] = {doubles({1}, {NAN}), doubles({}, {0}), doubles({}, {1})};
  CHECK(std::isnan(evaluate_op(ops::Clamp{}, in).at(0).at(0)));
  CHECK(ints(one(ops::Iota{{2, 3}, DType::I32, 1}, {})) == Ints{0, 1, 2, 0, 1, 2});
  CHECK(ints(one(ops::Iota{{2, 3}, DType::I64, 0}, {})) == Ints{0, 0, 0, 1, 1, 1});
  CHECK(one(ops::Iota{{300}, DType::U8, 0}, {}).at_i64(299) == 43);
  const Tensor x = doubles({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(ints(one(ops::DimSize{1}, {x})) == Ints{3});
  CHECK(one(ops::StopGradient{}, {x}).identical(x));
}

TEST_CASE("cast rounds once to narrow floats") {
  const auto of = [](std::int64_t v, DType from, DType to) { return Tensor::scalar_i64(from, v).cast(to).at(0); };
  const std::int64_t tie = (1LL << 62) + (1LL << 54);  // halfway between two numbers of bf16
  CHECK(of(tie, DType::I64, DType::BF16) == 0x1p62);
  CHECK(of(tie + 1, DType::I64, DType::BF16) == 0x1p62 + 0x1p55);
  CHECK(of(-tie - 1, DType::I64, DType::BF16) == -0x1p62 - 0x1p55);
  const Tensor large = vec<std::uint64_t>({(1ULL << 63) + (1ULL << 55), (1ULL << 63) + (1ULL << 55) + 1});
  expect_close(large.cast(DType::BF16).cast(DType::F64), {0x1p63, 0x1p63 + 0x1p56}, 0);
  CHECK(Tensor::scalar(DType::F64, 17 + 0x1p-40).cast(DType::F8E4M3).at(0) == 18);
  CHECK(Tensor::scalar(DType::F64, 17.0).cast(DType::F8E4M3).at(0) == 16);
}

TEST_CASE("cast rounds, saturates and wraps") {
  const Tensor x = doubles({5}, {2.9, -2.9, 1e20, NAN, -kInf});
  CHECK(ints(one(ops::Cast{DType::I32}, {x})) == Ints{2, -2, INT32_MAX, 0, INT32_MIN});
  CHECK(ints(one(ops::Cast{DType::I8}, {vec<std::int64_t>({300, -129})})) == Ints{44, 127});
  CHECK(ints(one(ops::Cast{DType::Bool}, {doubles({3}, {0, -0.5, NAN})})) == Ints{0, 1, 1});
}

TEST_CASE("fused SwiGLU respects gate_first") {
  const Tensor x = doubles({1, 4}, {1, 2, 0, 1.5});
  expect_close(one(ops::FusedSwiGLU{false}, {x}), {0, 2 * 1.2263617142904655}, 1e-15);
  expect_close(one(ops::FusedSwiGLU{true}, {x}), {0, 1.7615941559557649 * 1.5}, 1e-15);
}

TEST_CASE("SwiGLU: silu(x w_gate) * (x w_up), then w_down") {
  const Tensor x = doubles({1, 2}, {1, 0.5}), up = doubles({2, 1}, {2, 2}), gate = doubles({2, 1}, {1, 1}),
               down = doubles({1, 2}, {1, -1});
  expect_close(one(ops::SwiGLU{}, {x, up, gate, down}), {3 * 1.2263617142904655, -3 * 1.2263617142904655}, 1e-15);
}

TEST_CASE("elementwise refusals name what is wrong") {
  const Shape f({2}, DType::F32), i({2}, DType::I32), c({2}, DType::C64), b({2}, DType::Bool), f3({3}, DType::F32),
      d({2}, DType::F64);
  CHECK(contains(infer_error(ops::Activation{ActivationKind::Gelu}, {i}), "gelu: needs a float operand, got [2] i32"));
  CHECK(contains(infer_error(ops::Activation{ActivationKind::Not}, {f}), "integer or bool"));
  CHECK(contains(infer_error(ops::Activation{static_cast<ActivationKind>(200)}, {f}), "out of range"));
  CHECK(contains(infer_error(ops::Binary{BinaryKind::Add}, {f, f3}), "do not broadcast"));
  CHECK(contains(infer_error(ops::Binary{BinaryKind::Add}, {f, d}), "f64"));
  CHECK(contains(infer_error(ops::Binary{BinaryKind::Sub}, {b, b}), "float or integer or complex"));
  CHECK(contains(infer_error(ops::Binary{BinaryKind::Max}, {c, c}), "needs"));
  CHECK(contains(infer_error(ops::Compare{CompareKind::Lt}, {c, c}), "no order"));
  CHECK(contains(infer_error(ops::Where{}, {f, f, f}), "cond must be bool"));
  CHECK(contains(infer_error(ops::Iota{{2}, DType::I32, 1}, {}), "axis 1"));
  CHECK(contains(infer_error(ops::Iota{{-2}, DType::I32, 0}, {}), "negative"));
  CHECK(contains(infer_error(ops::DimSize{3}, {f}), "axis 3"));
  CHECK(contains(infer_error(ops::FusedSwiGLU{}, {f3}), "halves"));
  CHECK(contains(infer_error(ops::SwiGLU{}, {Shape({1, 2}, DType::F32), f, f, f}), "w_up"));
  CHECK(contains(infer_error(ops::Clamp{}, {f, f, c}), "c64"));
}

TEST_CASE("elementwise regions: the body is checked") {
  auto region = [](auto build) {
    Graph g("body");
    build(g);
    return ops::ElementwiseRegion{std::make_shared<const Graph>(std::move(g))};
  };
  const Shape f({2}, DType::F32);
  auto good = region([&](Graph& g) { g.set_outputs({g.silu(g.input("x", f) + 1.0)}); });
  CHECK(infer_error(good, {f}) == "");
  CHECK(contains(infer_error(good, {Shape({3}, DType::F32)}),
                 "input 0 of its body is [2] f32, but its operand is [3] f32"));
  CHECK(contains(infer_error(good, {f, f}), "1 inputs"));
  auto with_reduction = region([&](Graph& g) { g.set_outputs({g.sum(g.input("x", f), {0}, true)}); });
  CHECK(contains(infer_error(with_reduction, {f}), "only elementwise ops"));
  auto with_other_width = region([&](Graph& g) { g.set_outputs({g.bitcast(g.input("x", f), DType::U8)}); });
  CHECK(infer_error(with_other_width, {f}).find("only elementwise ops") != std::string::npos);
  auto with_bits = region([&](Graph& g) { g.set_outputs({g.bitcast(g.input("x", f), DType::I32)}); });
  CHECK(infer_error(with_bits, {f}) == "");
  auto with_param = region([&](Graph& g) { g.set_outputs({g.input("x", f) + g.param("w", f)}); });
  CHECK(contains(infer_error(with_param, {f}), "only elementwise ops"));
  auto no_outputs = region([&](Graph& g) { g.input("x", f); });
  CHECK(contains(infer_error(no_outputs, {f}), "no outputs"));
  auto small_output = region([&](Graph& g) {
    Expr x = g.input("x", f), s = g.input("s", Shape({}, DType::F32));
    g.set_outputs({x + s, s * 2.0});
  });
  CHECK(contains(infer_error(small_output, {f, Shape({}, DType::F32)}), "broadcast shape"));
  CHECK(infer_error(ops::ElementwiseRegion{}, {f}) != "");
}

}  // namespace
}  // namespace rlx::test
