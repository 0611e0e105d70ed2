// F32 vector math of every instruction set against libm in double: the ulp bounds stated in math.inc, and special
// values.
#include <algorithm>
#include <bit>
#include <memory>
#include <string>

#include "rlx/ir/functions.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

/// Runs a tape of one instruction on contiguous inputs.
void run_op(const KernelTable& t, TapeOp op, const std::vector<const Buffer*>& in, Buffer& out) {
  Tape tape;
  tape.rank = 1;
  tape.dims[0] = out.size();
  tape.num_inputs = static_cast<int>(in.size());
  const void* inputs[3] = {};
  for (std::size_t i = 0; i < in.size(); ++i) {
    tape.inputs[i].strides[0] = 1;
    inputs[i] = in[i]->data();
  }
  TapeInstr instr{op, static_cast<std::uint8_t>(in.size()), 0, 1, 2, 1.0F, 0};
  tape.instrs = &instr;
  tape.num_instrs = 1;
  tape.num_outputs = 1;
  tape.outputs[0].reg = instr.dst;
  tape_prepare(tape);
  void* outputs[] = {out.data()};
  t.tape_run(tape, inputs, outputs, 0, out.size());
  CHECK(out.intact());
}

struct Unary {
  TapeOp op;
  double (*f)(double);
  double ulp;  // bound over every float
};

double sigmoid_d(double x) { return 1 / (1 + std::exp(-x)); }
double vanishing(double x) { return std::max(x, -1000.0); }  // the limits at -inf are -0
double gelu_d(double x) { return 0.5 * vanishing(x) * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh_d(double x) { return vanishing(x) * sigmoid_d(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }
double silu_d(double x) { return vanishing(x) * sigmoid_d(x); }
double softplus_d(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double mish_d(double x) { return vanishing(x) * std::tanh(softplus_d(x)); }
double hard_sigmoid_d(double x) { return std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }
double elu_d(double x) { return x > 0 ? x : std::expm1(x); }
double erfinv_d(double x) { return function_row(ActivationKind::Erfinv).real(x); }
double softsign_d(double x) { return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::fabs(x)); }

const Unary kUnary[] = {
    {TapeOp::Exp, [](double x) { return std::exp(x); }, 1.1},
    {TapeOp::Expm1, [](double x) { return std::expm1(x); }, 1.6},
    {TapeOp::Log, [](double x) { return std::log(x); }, 1.1},
    {TapeOp::Log1p, [](double x) { return std::log1p(x); }, 1.5},
    {TapeOp::Tanh, [](double x) { return std::tanh(x); }, 1.5},
    {TapeOp::Sigmoid, sigmoid_d, 3},
    {TapeOp::Erf, [](double x) { return std::erf(x); }, 1.5},
    {TapeOp::Gelu, gelu_d, 2.5},
    {TapeOp::GeluApprox, gelu_tanh_d, 3},
    {TapeOp::Silu, silu_d, 3.5},
    {TapeOp::Softplus, softplus_d, 2},
    {TapeOp::LogSigmoid, [](double x) { return -softplus_d(-x); }, 2},
    {TapeOp::Mish, mish_d, 4},
    {TapeOp::HardSigmoid, hard_sigmoid_d, 2},
    {TapeOp::HardSwish, [](double x) { return vanishing(x) * hard_sigmoid_d(x); }, 3},
    {TapeOp::Elu, elu_d, 1.6},
    {TapeOp::Softsign, softsign_d, 1.5},
    {TapeOp::Relu, [](double x) { return x < 0 ? 0 : x; }, 0},
    {TapeOp::Sin, [](double x) { return std::sin(x); }, 0.6},
    {TapeOp::Cos, [](double x) { return std::cos(x); }, 0.6},
    {TapeOp::Tan, [](double x) { return std::tan(x); }, 1.5},
    {TapeOp::Atan, [](double x) { return std::atan(x); }, 2.5},
    {TapeOp::Sqrt, [](double x) { return std::sqrt(x); }, 0.5},
    {TapeOp::Rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5},
    {TapeOp::Recip, [](double x) { return 1 / x; }, 0.5},
    {TapeOp::Square, [](double x) { return x * x; }, 0.5},
    {TapeOp::Erfc, [](double x) { return std::erfc(x); }, 2},
    {TapeOp::Lgamma, [](double x) { return std::lgamma(x); }, 0.7},
    {TapeOp::Erfinv, erfinv_d, 4},
    {TapeOp::Exp2, [](double x) { return std::exp2(x); }, 1.1},
    {TapeOp::Log2, [](double x) { return std::log2(x); }, 2},
    {TapeOp::Log10, [](double x) { return std::log10(x); }, 2},
    {TapeOp::Sinh, [](double x) { return std::sinh(x); }, 1.1},
    {TapeOp::Cosh, [](double x) { return std::cosh(x); }, 0.6},
    {TapeOp::Asinh, [](double x) { return std::asinh(x); }, 1},
    {TapeOp::Acosh, [](double x) { return std::acosh(x); }, 0.6},
    {TapeOp::Atanh, [](double x) { return std::atanh(x); }, 1},
    {TapeOp::Asin, [](double x) { return std::asin(x); }, 2},
    {TapeOp::Acos, [](double x) { return std::acos(x); }, 2},
    {TapeOp::Cbrt, [](double x) { return std::cbrt(x); }, 0.6},
    {TapeOp::Trunc, [](double x) { return std::trunc(x); }, 0},
    {TapeOp::Floor, [](double x) { return std::floor(x); }, 0},
    {TapeOp::Ceil, [](double x) { return std::ceil(x); }, 0},
    {TapeOp::Round, [](double x) { return std::nearbyint(x); }, 0},
};

/// Floats of every sign and exponent: infinities, NaN, zeros, denormals; both ends of each binade and `per_binade`
/// values within.
std::vector<float> sweep(int per_binade) {
  std::vector<float> out;
  std::mt19937 rng(5);
  for (std::uint32_t high = 0; high < 512; ++high) {  // sign and exponent
    for (int i = 0; i < per_binade + 4; ++i) {
      const std::uint32_t mantissa = i < 2 ? static_cast<std::uint32_t>(i) : i < 4 ? 0x7fffffU + 2 - i : rng() >> 9;
      out.push_back(std::bit_cast<float>(high << 23 | mantissa));
    }
  }
  for (float around :
       {-105.0F, -88.0F, -1.0F, -0.5F, 0.1F, 0.5F, 1.0F, 10.0F, -15.0F, -5.5F, -3.0F, 3.0F, 5.5F, 20.0F, 88.0F}) {
    for (int i = -200; i <= 200; ++i) out.push_back(around + static_cast<float>(i) * 1e-2F);
  }
  return out;
}

TEST_CASE("math: every function over every exponent, in ulp against double libm") {
  int per_binade = 300;
  if (const char* more = std::getenv("RLX_SWEEP")) per_binade = std::atoi(more);  // slow; prints what math.inc states
  const std::vector<float> values = sweep(per_binade);
  const auto n = static_cast<std::int64_t>(values.size());
  Buffer x(n), y(n);
  for (std::int64_t i = 0; i < n; ++i) x[i] = values[static_cast<std::size_t>(i)];
  std::vector<double> want(values.size());
  for (const Unary& u : kUnary) {
    for (std::size_t i = 0; i < values.size(); ++i) want[i] = u.f(static_cast<double>(values[i]));
    for (const KernelTable* t : tables()) {
      run_op(*t, u.op, {&x}, y);
      double worst = -1;
      float at = 0;
      int signs = 0;  // zeros: -0 stays -0, and results that underflow from below are -0
      for (std::int64_t i = 0; i < n; ++i) {
        const double exact = want[static_cast<std::size_t>(i)];
        const double e = ulp_error(y[i], exact);
        if (!(e <= worst)) worst = e, at = x[i];
        if (y[i] == 0 && exact == 0 && std::signbit(y[i]) != std::signbit(exact)) ++signs;
      }
      CAPTURE(isa_name(t->isa));
      CAPTURE(at);
      INFO(std::string(tape_op_name(u.op)));
      CAPTURE(worst);
      CHECK(worst <= u.ulp);
      CHECK(signs == 0);
    }
  }
}

/// The same values in another order, so in other lanes beside other values, give the same bits.
void check_lanes(const KernelTable& t, TapeOp op, const std::vector<std::vector<float>>& operands) {
  const auto n = static_cast<std::int64_t>(operands[0].size());
  std::vector<std::int64_t> order(operands[0].size());
  for (std::int64_t i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  std::vector<std::unique_ptr<Buffer>> plain, shuffled;
  std::vector<const Buffer*> a, b, first;
  for (const std::vector<float>& values : operands) {
    plain.push_back(std::make_unique<Buffer>(n));
    shuffled.push_back(std::make_unique<Buffer>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      (*plain.back())[i] = values[static_cast<std::size_t>(i)];
      (*shuffled.back())[i] = values[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    }
    a.push_back(plain.back().get());
    b.push_back(shuffled.back().get());
  }
  Buffer y(n), z(n);
  run_op(t, op, a, y);
  run_op(t, op, b, z);
  auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
  int moved = 0, short_runs = 0;
  for (std::int64_t i = 0; i < n; ++i) moved += bits(z[i]) != bits(y[order[static_cast<std::size_t>(i)]]);
  // Tapes of 1 to 40 elements: the lanes past the end hold values of the run before.
  for (std::int64_t at = 0, length = 1; at + length <= std::min<std::int64_t>(n, 4000);
       at += length, length = length % 40 + 1) {
    std::vector<std::unique_ptr<Buffer>> part;
    std::vector<const Buffer*> c;
    for (const Buffer* operand : a) {
      part.push_back(std::make_unique<Buffer>(length));
      for (std::int64_t i = 0; i < length; ++i) (*part.back())[i] = (*operand)[at + i];
      c.push_back(part.back().get());
    }
    Buffer w(length);
    run_op(t, op, c, w);
    for (std::int64_t i = 0; i < length; ++i) short_runs += bits(w[i]) != bits(y[at + i]);
  }
  CAPTURE(isa_name(t.isa));
  INFO(std::string(tape_op_name(op)));
  CHECK(moved == 0);
  CHECK(short_runs == 0);
}

TEST_CASE("math: an element's result does not depend on its neighbours nor on lanes past the end") {
  std::vector<float> x = sweep(8);
  std::mt19937 rng(9);
  std::uniform_real_distribution<float> tame(-20, 20);
  for (int i = 0; i < 4000; ++i) x.push_back(tame(rng));
  std::shuffle(x.begin(), x.end(), rng);
  std::vector<float> y = x, z = x;
  std::shuffle(y.begin(), y.end(), rng);
  std::shuffle(z.begin(), z.end(), rng);
  // Bases of pow that use its fast path, and sometimes one that does not.
  std::vector<float> base(x.size()), exponent(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    base[i] = i % 61 == 0 ? x[i] : std::fabs(tame(rng)) + 0.1F;
    exponent[i] = i % 83 == 0 ? x[i] : tame(rng) * 0.2F;
  }
  for (const KernelTable* t : tables()) {
    for (const Unary& u : kUnary) check_lanes(*t, u.op, {x});
    check_lanes(*t, TapeOp::Pow, {base, exponent});
    for (TapeOp op :
         {TapeOp::Add, TapeOp::Sub, TapeOp::Mul, TapeOp::Div, TapeOp::Max, TapeOp::Min, TapeOp::Pow, TapeOp::Mod,
          TapeOp::Rem, TapeOp::Atan2, TapeOp::Hypot, TapeOp::LogAddExp, TapeOp::Eq, TapeOp::Lt})
      check_lanes(*t, op, {x, y});
    check_lanes(*t, TapeOp::Where, {x, y, z});
  }
}

TEST_CASE("math: pow over signs and special values") {
  std::vector<float> xs = {kNan, kInf, -kInf, 0.0F, -0.0F, 1.0F, -1.0F, 2.0F, -2.0F, 0.5F, 1e-40F, 3e38F, 1.0000001F};
  std::vector<float> ys = {kNan, kInf, -kInf, 0.0F, -0.0F, 1.0F, -1.0F, 2.0F, 3.0F, 0.5F, -0.5F, 1e9F, -40.0F, 1e-40F};
  for (const KernelTable* t : tables()) {
    const auto n = static_cast<std::int64_t>(xs.size() * ys.size());
    Buffer a(n), b(n), y(n);
    for (std::int64_t i = 0; i < n; ++i) {
      a[i] = xs[static_cast<std::size_t>(i) / ys.size()];
      b[i] = ys[static_cast<std::size_t>(i) % ys.size()];
    }
    run_op(*t, TapeOp::Pow, {&a, &b}, y);
    for (std::int64_t i = 0; i < n; ++i) {
      CAPTURE(isa_name(t->isa));
      CAPTURE(a[i]);
      CAPTURE(b[i]);
      CHECK(ulp_error(y[i], std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]))) <= 1.0);
    }
    Buffer c(20000), d(20000), z(20000);
    randomize(c, 1, 0.001F, 20);
    randomize(d, 2, -25, 25);
    run_op(*t, TapeOp::Pow, {&c, &d}, z);
    double worst = 0;
    for (std::int64_t i = 0; i < 20000; ++i)
      worst = std::max(worst, ulp_error(z[i], std::pow(static_cast<double>(c[i]), static_cast<double>(d[i]))));
    CHECK(worst <= 0.6);
  }
}

TEST_CASE("math: hypot and logaddexp over every exponent, far apart and close") {
  std::vector<float> xs = sweep(6), ys = xs;
  std::mt19937 rng(11);
  std::shuffle(ys.begin(), ys.end(), rng);
  std::uniform_real_distribution<float> tame(-30, 30), factor(0.01F, 3);
  for (int i = 0; i < 4000; ++i) {
    xs.push_back(i % 2 ? tame(rng) : xs[static_cast<std::size_t>(i)]);
    ys.push_back(xs.back() * factor(rng));
  }
  const auto n = static_cast<std::int64_t>(xs.size());
  Buffer a(n), b(n), y(n);
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = xs[static_cast<std::size_t>(i)];
    b[i] = ys[static_cast<std::size_t>(i)];
  }
  const BinaryRow &hypot = binary_row(BinaryKind::Hypot), &sum = binary_row(BinaryKind::LogAddExp);
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    run_op(*t, TapeOp::Hypot, {&a, &b}, y);
    double worst = -1;
    for (std::int64_t i = 0; i < n; ++i) {
      const double e = ulp_error(y[i], hypot.real(static_cast<double>(a[i]), static_cast<double>(b[i])));
      if (!(e <= worst)) worst = e;
    }
    CHECK(worst <= 1.2);
    run_op(*t, TapeOp::LogAddExp, {&a, &b}, y);
    worst = -1;
    for (std::int64_t i = 0; i < n; ++i) {
      const double p = static_cast<double>(a[i]), q = static_cast<double>(b[i]), want = sum.real(p, q);
      // Where the logarithm and the operands cancel, the error is in ulp of the operands.
      const bool cancels = std::fabs(want) < 1e-3 * std::min(1.0, std::fabs(std::max(p, q)));
      const double e = cancels ? std::fabs(static_cast<double>(y[i]) - want) * 1e9 : ulp_error(y[i], want);
      if (!(e <= worst)) worst = e;
    }
    CHECK(worst <= 0.6);
  }
}

}  // namespace
}  // namespace rlx::cpu::test
