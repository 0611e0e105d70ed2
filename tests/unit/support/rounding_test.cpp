// The error bounds of numeric tests: correct results are within them, wrong results are not.
#include "tests/support/rounding.h"

#include <complex>

#include <doctest/doctest.h>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/tensor/visit.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

Tensor floats(std::vector<float> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return Tensor::of<float>({n}, values);
}

// The gap between `got` and output 0 of the graph that `build` makes of an input x.
template <class Build>
Gap gap_of(const Build& build, const Tensor& x, const Tensor& got, std::int64_t* undecided = nullptr) {
  Graph g;
  g.set_outputs({build(g, g.input("x", x.shape()))});
  return gap_to(got, evaluate_bounded(g, {{"x", x}}).outputs[0], undecided);
}

constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfF = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("rounding: one operation may be off by its last place and not by more") {
  const auto third = [](Graph&, Expr x) { return x / 3.0; };
  const float right = 1.0F / 3;
  CHECK(gap_of(third, floats({1}), floats({right})).size <= 1);
  CHECK(gap_of(third, floats({1}), floats({right + 2 * 0x1p-25F})).size > 1);
  CHECK(gap_of(third, floats({1}), floats({kNanF})).size == kApart);
  CHECK(gap_of([](Graph&, Expr x) { return x + 1.0; }, floats({1}), floats({2})).size == 0);
  CHECK(gap_of([](Graph&, Expr x) { return x + 1.0; }, floats({1}), floats({2 + 0x1p-22F})).size ==
        kApart);  // 2 is exact
  CHECK(gap_of([](Graph& g, Expr x) { return g.relu(x); }, floats({kNanF, -1}), floats({kNanF, 0})).size == 0);
  CHECK(gap_of([](Graph& g, Expr x) { return g.relu(x); }, floats({kNanF, -1}), floats({0, 0})).size == kApart);
  CHECK(gap_of([](Graph& g, Expr x) { return g.log(x); }, floats({0}), floats({-kInfF})).size == 0);
  CHECK(gap_of([](Graph& g, Expr x) { return g.log(x); }, floats({0}), floats({-3.4e38F})).size == kApart);
}

TEST_CASE("rounding: a complex number has two parts, each with an error") {
  const auto minus = [](Graph& g, Expr x) {
    return g.sub(x, g.complex(g.scalar(3e38, DType::F32), g.scalar(1e-9, DType::F32)));
  };
  const auto number = [](double re, double im) {
    Tensor t = Tensor::zeros(Shape({1}, DType::C64));
    store_element(t.mutable_data(), DType::C64, 0, std::complex<double>(re, im));
    return t;
  };
  // The real part is a number, the imaginary part is rounded.
  const double huge = static_cast<double>(-3e38F), rounded = static_cast<double>(1.25F - 1e-9F);
  CHECK(gap_of(minus, number(0, 1.25), number(huge, rounded)).size <= 1);
  // The other part of a complex NaN is unspecified.
  const auto plus = [](Graph&, Expr x) { return x + 1.0; };
  CHECK(gap_of(plus, number(kNan, 1), number(kNan, 1.5)).size == 0);
  CHECK(gap_of(plus, number(kNan, 1), number(2, 1)).size == kApart);
}

TEST_CASE("rounding: a sum is measured by its terms, and a cancelled difference carries what came before") {
  const auto total = [](Graph& g, Expr x) { return g.sum(x); };
  const auto scalar = [](float v) { return Tensor::scalar(DType::F32, static_cast<double>(v)); };
  CHECK(gap_of(total, floats({1e6F, 1, -1e6F}), scalar(1)).size == 0);
  CHECK(gap_of(total, floats({1e6F, 1, -1e6F}), scalar(1.0625F)).size < 1);  // eps * 2e6 = 0.24
  CHECK(gap_of(total, floats({1e6F, 1, -1e6F}), scalar(3)).size > 1);
  CHECK(gap_of(total, floats({1, 1, 1}), scalar(3.0001F)).size > 1);
  // Many equal terms drift, by at most half an ulp each.
  const Tensor ones = floats(std::vector<float>(64, 1));
  CHECK(gap_of(total, ones, scalar(64 * (1 + 15 * 0x1p-23F))).size <= 1);
  CHECK(gap_of(total, ones, scalar(64 * (1 + 20 * 0x1p-23F))).size > 1);
  // Subnormal products, each rounded to the smallest subnormal number.
  const auto products = [](Graph& g, Expr x) { return g.matmul(g.reshape(x, {1, 4}), g.reshape(x, {4, 1})); };
  const Tensor tiny = floats({1e-20F, 1e-20F, 1e-20F, 1e-20F});
  CHECK(gap_of(products, tiny, floats({4e-40F + 2.5e-45F}).reshaped({1, 1})).size <= 1);
  CHECK(gap_of(products, tiny, floats({4e-40F + 2.5e-44F}).reshaped({1, 1})).size > 1);
  const auto cancelled = [](Graph& g, Expr x) { return g.exp(x) - 1.0; };
  CHECK(gap_of(cancelled, floats({1e-6F}), floats({9.5367e-7F})).size <= 1);  // exp rounds to 1 + 2^-20
  CHECK(gap_of(cancelled, floats({1e-6F}), floats({2e-6F})).size > 1);
}

TEST_CASE("rounding: what rounding decides is counted, not checked; nothing else is") {
  std::int64_t undecided = 0;
  const auto past = [](Graph& g, Expr x) { return g.cast(g.gt(x / 3.0 * 3.0, 1.0), DType::F32); };
  CHECK(gap_of(past, floats({1, 2, 0.5F}), floats({1, 1, 0}), &undecided).size == 0);
  CHECK(undecided == 1);
  CHECK(gap_of(past, floats({1, 2, 0.5F}), floats({1, 0, 0})).size == kApart);
  undecided = 0;
  const auto best = [](Graph& g, Expr x) { return g.arg_max(g.sin(x), 0); };
  const auto index = [](std::int64_t i) { return Tensor::scalar_i64(DType::I32, i); };
  CHECK(gap_of(best, floats({0.1F, 1.5F, 0.2F}), index(1), &undecided).size == 0);
  CHECK(gap_of(best, floats({0.1F, 1.5F, 0.2F}), index(2), &undecided).size == kApart);
  CHECK(undecided == 0);
  CHECK(gap_of(best, floats({0.1F, 1.5F, 1.5F}), index(2), &undecided).size == 0);
  CHECK(undecided == 1);
  // exp(-120) underflows in f32, and its interval contains numbers below and above 0: both are true, but 0 is false.
  undecided = 0;
  const auto some = [](Graph& g, Expr x) { return g.cast(g.exp(x), DType::Bool); };
  CHECK(gap_of(some, floats({-120, -9}), floats({0, 1}).cast(DType::Bool), &undecided).size == 0);
  CHECK(undecided == 1);
  CHECK(gap_of(some, floats({-120, -9}), floats({0, 0}).cast(DType::Bool)).size == kApart);
  // The same number times an infinity: -inf, or NaN if it underflowed.
  undecided = 0;
  const auto beside = [](Graph& g, Expr x) {
    return g.matmul(g.reshape(g.exp(x) * -1.0, {1, 2}), g.constant(floats({kInfF, 1}).reshaped({2, 1})));
  };
  CHECK(gap_of(beside, floats({-120, 0}), floats({kNanF}).reshaped({1, 1}), &undecided).size == 0);
  CHECK(undecided == 1);
  CHECK(gap_of(beside, floats({-9, 0}), floats({kNanF}).reshaped({1, 1})).size == kApart);
  // A power of a negative base with an exponent that becomes an integer by rounding.
  undecided = 0;
  const auto power = [](Graph& g, Expr x) { return g.pow(g.constant(floats({-1, 2})), x + 1e-9); };
  CHECK(gap_of(power, floats({2, 2}), floats({1, 4}), &undecided).size <= 1);
  CHECK(undecided == 1);
  CHECK(gap_of(power, floats({2, 2}), floats({kNanF, kNanF})).size == kApart);
  undecided = 0;
  const auto vanished = [](Graph& g, Expr x) { return g.pow(g.constant(floats({kNanF})), x * 1e-30 * 1e-30); };
  CHECK(gap_of(vanished, floats({1}), floats({1}), &undecided).size == 0);  // NaN^0
  CHECK(undecided == 1);
  // silu(-inf), as primitives or as the recognized op.
  undecided = 0;
  const auto written = [](Graph& g, Expr x) { return x * g.sigmoid(x); };
  CHECK(gap_of(written, floats({-kInfF, 0, kNanF}), floats({0, 0, kNanF}), &undecided).size == 0);
  CHECK(undecided == 1);
  CHECK(gap_of(written, floats({-kInfF, 0, kNanF}), floats({0, 0, 0})).size == kApart);
  // The max of -0 and 0 may be either.
  undecided = 0;
  const auto largest = [](Graph& g, Expr x) { return g.recip(g.reduce_max(x, {0}, true)); };
  CHECK(gap_of(largest, floats({-0.0F, 0.0F, -1}), floats({-kInfF}), &undecided).size == 0);
  const auto larger = [](Graph& g, Expr x) { return g.recip(g.max(x, g.constant(floats({0.0F, 0.0F})))); };
  CHECK(gap_of(larger, floats({-0.0F, 0.0F}), floats({-kInfF, kInfF}), &undecided).size == 0);
  CHECK(undecided == 2);
  CHECK(gap_of(largest, floats({0.0F, 0.0F, -1}), floats({-kInfF})).size == kApart);
  // Attention may sum before it divides.
  undecided = 0;
  const auto mean_of_two = [](Graph& g, Expr x) {
    const Expr q = g.constant(Tensor::zeros({{1, 2, 1}, DType::F32}));
    ops::Attention one;
    one.num_heads = one.kv_heads = one.head_dim = 1;
    return g.attention(q, q, g.reshape(x, {1, 2, 1}), one);
  };
  const Tensor two_inf = floats({kInfF, kInfF}).reshaped({1, 2, 1});
  CHECK(gap_of(mean_of_two, floats({3e38F, 3e38F}), two_inf, &undecided).size == 0);
  CHECK(undecided == 2);
  CHECK(gap_of(mean_of_two, floats({1e38F, 1e38F}), two_inf).size == kApart);
  // A NaN beside numbers whose order depends on rounding.
  undecided = 0;
  const auto places = [](Graph& g, Expr x) { return g.top_k(x / 3.0 * 3.0, 3).indices; };
  const Tensor close = floats({1, kNanF, 1.0000001F, 0.5F});
  CHECK(gap_of(places, close, Tensor::of<std::int32_t>({3}, {1, 0, 2}), &undecided).size == 0);
  CHECK(undecided >= 2);
  // Subnormal attention weights may be 0, so a NaN in v of their keys may be lost; a NaN of a hidden key never counts.
  undecided = 0;
  const auto biased = [](Graph& g, Expr x) {
    const Expr q = g.constant(Tensor::zeros({{1, 1, 1}, DType::F32}));
    const Expr k = g.constant(Tensor::zeros({{1, 2, 1}, DType::F32}));
    ops::Attention one;
    one.num_heads = one.kv_heads = one.head_dim = 1;
    one.mask = MaskKind::Bias;
    return g.attention(q, k, g.constant(floats({kNanF, 2}).reshaped({1, 2, 1})), one, {.mask = g.reshape(x, {1, 2})});
  };
  CHECK(gap_of(biased, floats({-90, 0}), floats({2}).reshaped({1, 1, 1}), &undecided).size == 0);
  CHECK(undecided == 1);
  CHECK(gap_of(biased, floats({-80, 0}), floats({2}).reshaped({1, 1, 1})).size == kApart);
  CHECK(gap_of(biased, floats({-kInfF, 0}), floats({kNanF}).reshaped({1, 1, 1})).size == kApart);
  // The angle of numbers next to the branch cut.
  undecided = 0;
  const auto turned = [](Graph& g, Expr x) { return g.atan2(x / 3.0 * 3.0 - 1.0, g.constant(floats({-1, -1}))); };
  const float pi = 3.14159274F;
  CHECK(gap_of(turned, floats({1, 2}), floats({-pi, 2.35619449F})).size <= 1);
  CHECK(gap_of(turned, floats({1, 2}), floats({pi, 2.35619449F})).size <= 1);
  CHECK(gap_of(turned, floats({1, 2}), floats({kNanF, 2.35619449F})).size == kApart);
  CHECK(gap_of(turned, floats({1, 2}), floats({pi, -2.35619449F})).size > 1);
  // A sum of zeros whose sign matters; the sign of a single product is known.
  const auto one_over_sum = [](Graph& g, Expr x) { return 1.0 / g.sum(x, {0}, true); };
  CHECK(gap_of(one_over_sum, floats({-0.0F, -0.0F}), floats({kInfF}), &undecided).size == 0);
  CHECK(gap_of(one_over_sum, floats({-0.0F, -0.0F}), floats({-kInfF}), &undecided).size == 0);
  CHECK(undecided == 2);
  const auto one_over = [](Graph&, Expr x) { return 1.0 / (x * 2.0); };
  CHECK(gap_of(one_over, floats({-0.0F}), floats({kInfF})).size == kApart);
  CHECK(gap_of([](Graph& g, Expr x) { return g.cast(g.gt(g.sum(x, {0}, true), 0.0), DType::F32); }, floats({0, 0}),
               floats({1}))
            .size == kApart);
  // The bound ends at the largest number of the dtype.
  undecided = 0;
  CHECK(gap_of([](Graph& g, Expr x) { return g.exp(x); }, floats({100}), floats({kInfF}), &undecided).size == 0);
  CHECK(undecided == 1);
}

TEST_CASE("rounding: narrow types round once more, storage types through their own conversion") {
  const auto half = [](Graph& g, Expr x) { return g.cast(g.cast(x, DType::F8E4M3), DType::F32); };
  CHECK(gap_of(half, floats({1.06F, 1000}), floats({1, 448})).size == 0);
  CHECK(gap_of(half, floats({1.06F, 1000}), floats({1.125F, 448})).size == kApart);
  const auto bf16 = [](Graph& g, Expr x) { return g.exp(g.cast(x, DType::BF16)); };
  const auto got = [](double v) { return Tensor::full(Shape({1}, DType::BF16), v); };
  CHECK(gap_of(bf16, floats({1}), got(2.71875)).size <= 1);
  CHECK(gap_of(bf16, floats({1}), got(2.734375)).size > 1);
}

TEST_CASE("rounding: products may be made in any order, so partial ones that leave the range decide nothing") {
  const auto product = [](Graph& g, Expr x) { return g.reduce_prod(x); };
  const auto running = [](Graph& g, Expr x) { return g.cumprod(x, 0); };
  const auto scalar = [](double v) { return Tensor::scalar(DType::F32, v); };
  std::int64_t undecided = 0;
  CHECK(gap_of(product, floats({0, 1e30F, 1e30F}), scalar(kNanF), &undecided).size == 0);  // inf * 0 in another order
  CHECK(undecided == 1);
  CHECK(gap_of(product, floats({kInfF, 1e-30F, 1e-30F}), scalar(kNanF), &undecided).size == 0);
  CHECK(undecided == 2);
  CHECK(gap_of(product, floats({1e-30F, 1e-30F, 1e30F}), scalar(0), &undecided).size <= 1);  // the first two underflow
  CHECK(gap_of(product, floats({1e-30F, 1e-30F, 1e30F}), scalar(1e-12), &undecided).size > 1);
  CHECK(gap_of(running, floats({0, 1e30F, 1e30F}), floats({0, 0, kNanF}), &undecided).size == 0);
  CHECK(undecided == 3);
  CHECK(gap_of(product, floats({0, 3, 2}), scalar(kNanF), &undecided).size == kApart);
  CHECK(gap_of(product, floats({3, 2, 1}), scalar(6.00001), &undecided).size > 1);
  CHECK(undecided == 3);
}

TEST_CASE("rounding: beside an infinity of a product stands what may be 0 or not") {
  const auto product = [](Graph& g, Expr x) {
    return g.reduce_prod(g.concat({g.constant(floats({kInfF})), x / 3.0 * 3.0 - 1.0}, 0));
  };
  const auto scalar = [](double v) { return Tensor::scalar(DType::F32, v); };
  std::int64_t undecided = 0;
  CHECK(gap_of(product, floats({1}), scalar(kNanF), &undecided).size == 0);
  CHECK(gap_of(product, floats({1}), scalar(-HUGE_VAL), &undecided).size == 0);
  CHECK(undecided == 2);
  CHECK(gap_of(product, floats({2}), scalar(kNanF)).size == kApart);
}

TEST_CASE("rounding: NaN reaches the line of what is resampled by a product, and its neighbours elsewhere") {
  const auto area = [](std::int64_t size) {
    return [size](Graph& g, Expr x) {
      ops::Interpolate op;
      op.fn = ResizeKind::Area, op.axes = {0}, op.sizes = {size};
      return g.add(op, {x});
    };
  };
  Tensor x = floats(std::vector<float>(32, 1));
  x.set(31, kNan);
  std::int64_t undecided = 0;
  CHECK(gap_of(area(3), x, floats({kNanF, kNanF, kNanF}), &undecided).size == 0);
  CHECK(gap_of(area(3), x, floats({1, 1, kNanF}), &undecided).size == 0);
  CHECK(undecided == 6);
  CHECK(gap_of(area(3), floats(std::vector<float>(32, 1)), floats({1, kNanF, 1})).size == kApart);
  CHECK(gap_of(area(4), x, floats({1, 1, kNanF, kNanF})).size == kApart);  // adjacent windows
  CHECK(gap_of(area(4), x, floats({1, 1, 1, kNanF})).size <= 1);
}

TEST_CASE("rounding: what may lie on either side of a function's domain, and so within, is undecided") {
  const auto beyond = [](Graph& g, Expr x) { return g.atanh(x / 3.0 * 3.0 - 999999936.0); };  // 64, but for 80 or so
  std::int64_t undecided = 0;
  CHECK(gap_of(beyond, floats({1e9F}), floats({0}), &undecided).size == 0);
  CHECK(undecided == 1);
  const auto outside = [](Graph& g, Expr x) { return g.atanh(x / 3.0 * 3.0 + 1.0); };
  CHECK(gap_of(outside, floats({1}), floats({0})).size == kApart);
}

TEST_CASE("rounding: numbers of F64 that are subnormal in F32, where these may be 0") {
  Graph g;
  g.set_outputs({g.cast(g.input("x", {{1}, DType::F64}), DType::F32)});
  const NamedTensors tiny{{"x", Tensor::full(Shape({1}, DType::F64), -3e-39)}};
  CHECK(gap_to(floats({-0.0F}), evaluate_bounded(g, tiny, Subnormals::MayBeZero).outputs[0]).size <= 1);
  CHECK(gap_to(floats({-0.0F}), evaluate_bounded(g, tiny).outputs[0]).size > 1);
  const NamedTensors normal{{"x", Tensor::full(Shape({1}, DType::F64), -3e-38)}};
  CHECK(gap_to(floats({-0.0F}), evaluate_bounded(g, normal, Subnormals::MayBeZero).outputs[0]).size > 1);
}

TEST_CASE("rounding: a filter that may have overflowed meets zeros of the padding") {
  const auto padded = [](Graph& g, Expr x) {  // of exp(x) [1, 1, 1] over 2 elements and one of padding
    ops::Conv op;
    op.strides = {1}, op.low = {1}, op.high = {0};
    return g.conv(g.constant(floats({1, 1}).reshaped({1, 1, 2})), g.reshape(g.exp(x), {1, 1, 1}), op);
  };
  const auto got = [](float first, float y) { return floats({first, y, y}).reshaped({1, 1, 3}); };
  std::int64_t undecided = 0;
  CHECK(gap_of(padded, floats({100}), got(kNanF, kInfF), &undecided).size == 0);  // beyond the largest of F32
  CHECK(undecided == 3);
  CHECK(gap_of(padded, floats({0}), got(kNanF, 1)).size == kApart);
  CHECK(gap_of(padded, floats({0}), got(0, 1)).size <= 1);
}

TEST_CASE("rounding: below 0 the terms of digamma and lgamma may cancel") {
  const auto at = [](ActivationKind fn, double x, double got) {
    Graph g;
    g.set_outputs({g.activation(fn, g.input("x", {{1}, DType::F64}))});
    const NamedTensors values{{"x", Tensor::full(Shape({1}, DType::F64), x)}};
    return gap_to(Tensor::full(Shape({1}, DType::F64), got), evaluate_bounded(g, values).outputs[0]).size;
  };
  const double near_root = -1.5753968509668308;
  CHECK(at(ActivationKind::Digamma, near_root, -0.018901141849939518) <= 1);
  CHECK(at(ActivationKind::Digamma, near_root, -0.01890114184992) > 1);
  CHECK(at(ActivationKind::Lgamma, -2.5, std::lgamma(-2.5) + 1e-15) <= 1);
  CHECK(at(ActivationKind::Lgamma, -2.5, std::lgamma(-2.5) + 1e-13) > 1);
}

TEST_CASE("rounding: x times a factor below the least number, which may be rounded first or last") {
  const auto silu = [](Graph& g, Expr x) { return g.silu(x); };
  const auto of = [](double v) { return Tensor::full(Shape({1}, DType::F64), v); };
  CHECK(gap_of(silu, of(-746.6), of(-7.4e-322)).size <= 1);
  CHECK(gap_of(silu, of(-746.6), of(-0.0)).size <= 1);
  CHECK(gap_of(silu, of(-746.6), of(-7.4e-320)).size > 1);
}

TEST_CASE("rounding: the bits of a NaN are undecided, those of numbers are not") {
  const auto bits = [](Graph& g, Expr x) { return g.bitcast(x, DType::I32); };
  const auto one = [](std::int32_t v) { return Tensor::of<std::int32_t>({1}, std::vector{v}); };
  std::int64_t undecided = 0;
  CHECK(gap_of(bits, floats({-kNanF}), one(0x7fc00000), &undecided).size == 0);
  CHECK(undecided == 1);
  CHECK(gap_of(bits, floats({1}), one(0x3f800001)).size > 1);
}

TEST_CASE("rounding: the remainder by a rounded divisor moves with the quotient, and over a multiple it is undecided") {
  const auto rest = [](Graph& g, Expr x) { return g.mod(x, x / 3.0 * 0.001); };  // of about 3000 times the divisor
  std::int64_t undecided = 0;
  CHECK(gap_of(rest, floats({1}), floats({0.0003F}), &undecided).size == 0);
  CHECK(undecided == 1);
  const auto decided = [](Graph& g, Expr x) { return g.mod(x, x / 2.5); };
  CHECK(gap_of(decided, floats({1}), floats({0.2F}), &undecided).size <= 1);
  CHECK(gap_of(decided, floats({1}), floats({0.2001F}), &undecided).size > 1);
  CHECK(undecided == 1);
}
