// The table of elementwise functions: its C texts, functions with parameters, and what precision and blocks ask of it.
#include "rlx/ir/functions.h"

#include <doctest/doctest.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <set>

#include "rlx/compiler/precision.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::kInf;

// The names in a C text.
std::set<std::string> names_of(std::string_view text) {
  std::set<std::string> out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    const bool number = std::isdigit(static_cast<unsigned char>(text[i])) || (i && text[i - 1] == '.');
    if (end > i && !number) out.emplace(text.substr(i, end - i));
    i = end > i ? end : i + 1;
  }
  return out;
}

TEST_CASE("the C text of a function names C functions, its helpers and its parameters only") {
  const std::set<std::string> math = {
      "acos",  "acosh", "asin",  "asinh", "atan",     "atanh", "cbrt", "ceil",      "cos",   "cosh",   "exp",   "exp2",
      "expm1", "fabs",  "floor", "log",   "log10",    "log1p", "log2", "nearbyint", "sin",   "sinh",   "sqrt",  "tan",
      "tanh",  "trunc", "erf",   "erfc",  "copysign", "fmod",  "pow",  "atan2",     "hypot", "lgamma", "tgamma"};
  const std::set<std::string> words = {"const", "double", "return", "e", "r", "x", "a", "b", "if", "else", "for", "int",
                                       "i", "y", "v", "w", "step", "NAN", "HUGE_VAL",
                                       // the functions of special_functions.h
                                       "c", "d", "f", "g", "h", "l", "m", "n", "p", "q", "s", "t", "u", "z", "c0", "c1",
                                       "dc", "dd", "dh", "sum", "term", "last", "even", "rate", "slope", "front",
                                       "which", "break"};
  std::set<std::string> helpers;
  std::istringstream lines(function_helpers_c());
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line.rfind("double ", 0) == 0);
    const std::string name = line.substr(7, line.find('(') - 7);
    for (const std::string& n : names_of(line))
      CHECK_MESSAGE((n == name || words.contains(n) || math.contains(n) || helpers.contains(n)), line);
    helpers.insert(name);
  }
  int texts = 0;
  for (int i = 0; i < kNumActivationKinds; ++i) {
    const FunctionRow& row = function_row(static_cast<ActivationKind>(i));
    CAPTURE(enum_name(row.fn));
    CHECK(row.c.empty() == (row.real == nullptr));
    CHECK(row.c_with.empty() == (row.real_with == nullptr));
    for (const std::string& n : names_of(row.c))
      CHECK_MESSAGE((n == "x" || math.contains(n) || helpers.contains(n)), n);
    for (const std::string& n : names_of(row.c_with))
      CHECK_MESSAGE((n == "x" || n == "alpha" || n == "beta" || math.contains(n) || helpers.contains(n)), n);
    texts += !row.c.empty();
  }
  CHECK(texts == kNumActivationKinds - 3);  // not, popcount and clz take no floats
  for (int i = 0; i < kNumBinaryKinds; ++i) {
    const BinaryRow& row = binary_row(static_cast<BinaryKind>(i));
    CAPTURE(enum_name(row.fn));
    CHECK(row.c.empty() == (row.real == nullptr));
    for (const std::string& n : names_of(row.c))
      CHECK_MESSAGE((n == "a" || n == "b" || math.contains(n) || helpers.contains(n)), n);
  }
}

TEST_CASE("a function with parameters is itself where they are its own") {
  for (int i = 0; i < kNumActivationKinds; ++i) {
    const FunctionRow& row = function_row(static_cast<ActivationKind>(i));
    if (!row.real_with) continue;
    CAPTURE(enum_name(row.fn));
    for (double x : {-kInf, -1e30, -7.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 2.999, 3.0, 8.0, 1e30, kInf}) {
      const double own = row.real(x), with = row.real_with(x, *row.alpha, row.beta.value_or(0));
      CHECK((own == with || std::fabs(own - with) <= 4e-16 * std::max(1.0, std::fabs(own)) ||
             (std::isnan(own) && std::isnan(with))));
    }
    CHECK(std::isnan(row.real(NAN)));
    CHECK(std::isnan(row.real_with(NAN, *row.alpha, row.beta.value_or(0))));
    CHECK(has_own_params({row.fn}));
    CHECK(has_own_params({row.fn, row.alpha, row.beta}));
    CHECK_FALSE(has_own_params({row.fn, *row.alpha + 1}));
  }
}

Graph parametric() {
  Graph g("parametric");
  Expr x = g.input("x", {{5}, DType::F32});
  g.set_outputs({g.elu(x, 0.5), g.hard_sigmoid(x, 0.25, 0.75), g.hard_sigmoid(x, std::nullopt, 0.25), g.elu(x)});
  return g;
}

TEST_CASE("parameters change values and derivatives, on the cpu as in the evaluator") {
  const Tensor x = Tensor::of<float>({5}, std::vector<float>{-4, -1, 0, 0.5F, 6});
  const std::vector<Tensor> want = evaluate(parametric(), {{"x", x}});
  CHECK(want[0].at(1) == doctest::Approx(0.5 * std::expm1(-1)).epsilon(1e-6));
  CHECK(want[1].at(0) == 0);
  CHECK(want[1].at(1) == 0.5);
  CHECK(want[1].at(4) == 1);
  CHECK(want[2].at(2) == 0.25);
  CHECK(want[3].at(1) == doctest::Approx(std::expm1(-1)).epsilon(1e-6));
  CompiledGraph program = Session().compile(parametric());
  const std::vector<Tensor> got = program.run_typed({{"x", x}});
  for (std::size_t r = 0; r < want.size(); ++r) test::expect_close(got[r], want[r], 1e-6);

  Graph loss("loss");
  Expr v = loss.input("x", {{5}, DType::F64});
  loss.set_outputs({loss.sum(loss.elu(v, 0.5)) + loss.sum(loss.hard_sigmoid(v, 0.25, 0.75))});
  const Graph slopes = grad(loss, {"x"}).graph;
  const Tensor points = Tensor::of<double>({5}, std::vector<double>{-4, -1, -0.25, 0.5, 6});
  std::vector<Tensor> d = evaluate(slopes, {{"x", points}, {"d_output", Tensor::scalar(DType::F64, 1)}});
  for (std::int64_t i = 0; i < 5; ++i) {
    const double p = points.at(i), hs = std::fabs(0.25 * p + 0.25) < 0.5 ? 0.25 : 0;
    CHECK(d.back().at(i) == doctest::Approx((p > 0 ? 1 : 0.5 * std::exp(p)) + hs));
  }
}

TEST_CASE("leaky_relu of any slope, alone and in a region, is the evaluator's on the cpu") {
  Graph g("slopes");
  Expr x = g.input("x", {{9}, DType::F32});
  std::vector<Value> outputs{g.leaky_relu(x), g.leaky_relu(x * 2) + 1};
  for (double slope : {1.0, 0.2, 0.0, 2.0, -0.5, 1e-60, 1e-40}) outputs.push_back(g.leaky_relu(x, slope));
  g.set_outputs(outputs);
  const auto inf = static_cast<float>(kInf);
  const Tensor in = Tensor::of<float>({9}, std::vector<float>{-inf, -3e38F, -2, -1e-40F, -0.0F, 0, 1.5F, inf, NAN});
  const std::vector<Tensor> want = evaluate(g, {{"x", in}});
  CompiledGraph program = Session().compile(std::move(g));
  const std::vector<Tensor> got = program.run_typed({{"x", in}});
  for (std::size_t r = 0; r < want.size(); ++r) {
    CAPTURE(r);
    for (std::int64_t i = 0; i < 8; ++i) {
      const double w = want[r].at(i), v = got[r].at(i);
      CHECK((v == w || std::fabs(v - w) <= 2.4e-7 * std::fabs(w)));
    }
    CHECK(std::isnan(got[r].at(8)));
  }
}

TEST_CASE("parameters are part of text, bytes, fingerprint and equality; unset ones leave the text as it was") {
  const Graph g = parametric();
  const std::string text = print_text(g);
  CHECK(test::contains(text, "elu(%0) {alpha = 0.5}"));
  CHECK(test::contains(text, "hard_sigmoid(%0) {alpha = 0.25, beta = 0.75}"));
  CHECK(test::contains(text, "hard_sigmoid(%0) {beta = 0.25}"));
  CHECK(test::contains(text, "elu(%0) :"));
  CHECK(print_text(parse_text(text)) == text);
  CHECK(fingerprint(parse_text(text)) == fingerprint(g));
  CHECK(fingerprint(from_bytes(to_bytes(g))) == fingerprint(g));
  CHECK_FALSE(same_op(ops::Activation{ActivationKind::Elu}, ops::Activation{ActivationKind::Elu, 0.5}));
}

TEST_CASE("a parameter that a function does not have, or that is no number, is refused by name") {
  Graph g("g");
  Expr x = g.input("x", {{2}, DType::F32});
  const auto text = [&](ActivationKind fn, std::optional<double> alpha, std::optional<double> beta) {
    return test::error_text([&] { (void)g.activation(fn, x, alpha, beta); });
  };
  CHECK(test::contains(text(ActivationKind::Gelu, 2.0, {}), "has no parameter alpha"));
  CHECK(test::contains(text(ActivationKind::Elu, {}, 1.0), "has no parameter beta"));
  CHECK(test::contains(text(ActivationKind::Elu, kInf, {}), "alpha must be finite"));
  CHECK(test::contains(text(ActivationKind::HardSigmoid, {}, NAN), "beta must be finite"));
}

TEST_CASE("a product's epilogue with parameters of its own is not taken for the plain function") {
  Graph body("epilogue");
  Expr acc = body.input("acc", {{2, 3}, DType::F32}), bias = body.input("bias", {{3}, DType::F32});
  body.set_outputs({body.elu(acc + bias, 0.5)});
  Graph plain("epilogue");
  acc = plain.input("acc", {{2, 3}, DType::F32}), bias = plain.input("bias", {{3}, DType::F32});
  plain.set_outputs({plain.elu(acc + bias)});
  for (const bool own : {true, false}) {
    Graph g("g");
    ops::FusedDot dot{{1}, {0}, {}, {}, std::make_shared<const Graph>(own ? std::move(plain) : std::move(body))};
    Expr y = g.add(
        dot, {g.input("x", {{2, 4}, DType::F32}), g.param("w", {{4, 3}, DType::F32}), g.param("b", {{3}, DType::F32})});
    CHECK(as_matmul_bias_act(g, y.value().node).has_value() == own);
  }
}

TEST_CASE("mixed precision computes in F32 what leaves the range of F16 by its row") {
  for (int i = 0; i < kNumActivationKinds; ++i) {
    const FunctionRow& row = function_row(static_cast<ActivationKind>(i));
    if (!row.real) continue;
    CAPTURE(enum_name(row.fn));
    Graph g("g");
    g.set_outputs({g.activation(row.fn, g.input("x", {{2}, DType::F32}))});
    const Graph narrow = apply_precision(g, PrecisionPolicy::always_f16());
    for (const Node& n : narrow.nodes())
      if (n.kind() == OpKind::Activation)
        CHECK(n.shape().dtype() == (row.f16 == F16Range::Leaves ? DType::F32 : DType::F16));
  }
}

}  // namespace
}  // namespace rlx
