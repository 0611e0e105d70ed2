// Vector math of every instruction set against double libm: the ulp bounds stated in math.inc, and the special values.
#include <string>

#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

/// Runs a tape of one instruction over flat inputs.
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
  float lo, hi;
  double ulp;       // bound on the relative error
  double absolute;  // errors below this pass too (functions with cancellation)
};

double gelu_d(double x) { return std::isinf(x) ? (x > 0 ? x : 0) : 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh_d(double x) {
  return std::isinf(x) ? (x > 0 ? x : 0) : x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu_d(double x) { return x == -INFINITY ? 0 : x / (1 + std::exp(-x)); }
double softplus_d(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double mish_d(double x) { return x == -INFINITY ? 0 : x * std::tanh(softplus_d(x)); }

const Unary kUnary[] = {
    {TapeOp::Exp, [](double x) { return std::exp(x); }, -105, 89.5F, 1.5, 0},
    {TapeOp::Expm1, [](double x) { return std::expm1(x); }, -20, 88, 2.5, 0},
    {TapeOp::Expm1, [](double x) { return std::expm1(x); }, -1, 1, 2.5, 0},
    {TapeOp::Log, [](double x) { return std::log(x); }, 0, 10, 1.5, 0},
    {TapeOp::Log, [](double x) { return std::log(x); }, 0, 3e38F, 1.5, 0},
    {TapeOp::Log1p, [](double x) { return std::log1p(x); }, -1, 4, 3, 0},
    {TapeOp::Tanh, [](double x) { return std::tanh(x); }, -10, 10, 2, 0},
    {TapeOp::Tanh, [](double x) { return std::tanh(x); }, -0.7F, 0.7F, 2, 0},
    {TapeOp::Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 20, 3, 0},
    {TapeOp::Erf, [](double x) { return std::erf(x); }, -5, 5, 2, 0},
    {TapeOp::Gelu, gelu_d, -6, 6, 3, 6e-7},
    {TapeOp::GeluTanh, gelu_tanh_d, -6, 6, 8, 1e-7},
    {TapeOp::Silu, silu_d, -80, 20, 4, 1e-36},
    {TapeOp::Softplus, softplus_d, -80, 80, 4, 0},
    {TapeOp::Mish, mish_d, -80, 30, 8, 1e-36},
    {TapeOp::Sin, [](double x) { return std::sin(x); }, -100, 100, 0.8, 0},
    {TapeOp::Sin, [](double x) { return std::sin(x); }, -2e5F, 2e5F, 1.5, 0},
    {TapeOp::Cos, [](double x) { return std::cos(x); }, -100, 100, 0.8, 0},
    {TapeOp::Tan, [](double x) { return std::tan(x); }, -100, 100, 1.5, 0},
    {TapeOp::Atan, [](double x) { return std::atan(x); }, -20, 20, 2.5, 0},
    {TapeOp::Exp2, [](double x) { return std::exp2(x); }, -150, 129, 1.5, 0},
    {TapeOp::Log2, [](double x) { return std::log2(x); }, 0, 100, 2, 0},
    {TapeOp::Asin, [](double x) { return std::asin(x); }, -1, 1, 2, 0},
    {TapeOp::Acos, [](double x) { return std::acos(x); }, -1, 1, 2, 0},
    {TapeOp::Sinh, [](double x) { return std::sinh(x); }, -50, 50, 3, 0},
    {TapeOp::Cosh, [](double x) { return std::cosh(x); }, -50, 50, 3, 0},
    {TapeOp::Asinh, [](double x) { return std::asinh(x); }, -50, 50, 3, 0},
    {TapeOp::Acosh, [](double x) { return std::acosh(x); }, 1, 50, 3, 0},
    {TapeOp::Atanh, [](double x) { return std::atanh(x); }, -1, 1, 3, 0},
    {TapeOp::Erfc, [](double x) { return std::erfc(x); }, -4, 9, 4, 0},
    {TapeOp::Cbrt, [](double x) { return std::cbrt(x); }, -50, 50, 2, 0},
    {TapeOp::Sqrt, [](double x) { return std::sqrt(x); }, 0, 50, 0.5001, 0},
    {TapeOp::Rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.001F, 50, 1.5, 0},
    {TapeOp::Recip, [](double x) { return 1 / x; }, -50, 50, 0.5001, 0},
};

TEST_CASE("math: errors in ulp against double libm") {
  for (const KernelTable* t : tables()) {
    for (const Unary& u : kUnary) {
      const std::int64_t n = 40001;
      Buffer x(n), y(n);
      randomize(x, 11, u.lo, u.hi);
      for (std::int64_t i = 0; i < n; i += 3)
        x[i] = u.lo + (u.hi - u.lo) * std::exp(-static_cast<float>(i) * 2e-3F);  // many scales
      for (std::int64_t i = 0; i < n; ++i) x[i] = std::min(u.hi, std::max(u.lo, x[i]));
      run_op(*t, u.op, {&x}, y);
      double worst = 0;
      float at = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const double want = u.f(static_cast<double>(x[i]));
        if (std::fabs(static_cast<double>(y[i]) - want) < u.absolute) continue;
        const double e = ulp_error(y[i], want);
        if (e > worst) worst = e, at = x[i];
      }
      CAPTURE(isa_name(t->isa));
      CAPTURE(at);
      INFO(std::string(tape_op_name(u.op)));
      CAPTURE(worst);  // --success prints the bounds that math.inc states
      CHECK(worst <= u.ulp);
    }
  }
}

TEST_CASE("math: NaN, infinities, signed zero, denormals") {
  const float values[] = {kNan,   kInf,    -kInf,    0.0F, -0.0F, 1e-45F, -1e-45F, 1e-39F, -1e-39F,
                          1e-30F, 3.4e38F, -3.4e38F, 1.0F, -1.0F, 88.9F,  -104.5F, 1e6F};
  for (const KernelTable* t : tables()) {
    Buffer x(std::size(values)), y(std::size(values));
    for (std::size_t i = 0; i < std::size(values); ++i) x[static_cast<std::int64_t>(i)] = values[i];
    for (const Unary& u : kUnary) {
      if (u.op == TapeOp::Erfc || u.op == TapeOp::Atanh) continue;  // libm's own, same values
      run_op(*t, u.op, {&x}, y);
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const double want = u.f(static_cast<double>(x[i]));
        CAPTURE(isa_name(t->isa));
        CAPTURE(x[i]);
        CAPTURE(y[i]);
        CAPTURE(want);
        INFO(std::string(tape_op_name(u.op)));
        const bool close =
            ulp_error(y[i], want) <= std::max(u.ulp, 1.0) || std::fabs(static_cast<double>(y[i]) - want) < u.absolute;
        CHECK(close);
        if (want == 0 && x[i] == 0) CHECK(std::signbit(y[i]) == std::signbit(want));
      }
    }
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

}  // namespace
}  // namespace rlx::cpu::test
