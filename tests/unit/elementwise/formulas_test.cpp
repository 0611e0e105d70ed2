// Formulas against tables of exact values: the reference rules, the expressions of other languages as an interpreter
// runs them, and first and second derivatives. tests/unit/cpu/elementwise/tables_test.cpp judges the kernels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "rlx/elementwise/functions.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/functions.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/function_tables.h"

namespace rlx {
namespace {

using test::ExactNumber;
using test::ExactPoint;

constexpr ActivationKind kFormulas[] = {
#define RLX_KIND(Kind, ...) ActivationKind::Kind,
    RLX_FOR_EACH_FORMULA(RLX_KIND) RLX_FOR_EACH_FORMULA_WITH_PARAMETER(RLX_KIND)
#undef RLX_KIND
};

/// The largest error of f over the points of the table of `fn`; NaN counts as more than any bound.
template <class F>
void check_points(ActivationKind fn, DType t, const std::vector<ExactPoint>& points, ExactNumber ExactPoint::*which,
                  double bound, F&& f) {
  double worst = -1, at = 0, got = 0;
  for (const ExactPoint& p : points) {
    const double y = f(p), free = t == DType::F64 ? test::rounding_of_definition(enum_name(fn), p.x) : 0;
    const double e = std::max(0.0, test::ulps_from(t, y, p.*which) - free);
    if (!(e <= worst)) worst = e, at = p.x, got = y;
  }
  CAPTURE(at);
  CAPTURE(got);
  CHECK(worst >= 0);
  CHECK(worst <= bound);
}

TEST_CASE("formulas: the reference rules are within their ulp of exact values") {
  for (const ActivationKind fn : kFormulas) {
    CAPTURE(enum_name(fn));
    const auto f = [&](const ExactPoint& p) { return function_row(fn).real(p.x); };
    check_points(fn, DType::F64, test::function_table(enum_name(fn)).points, &ExactPoint::value,
                 elementwise::find_function(enum_name(fn))->ulp_f64, f);
  }
}

TEST_CASE("formulas: expressions of other languages are within their ulp of exact values") {
  for (const ActivationKind fn : kFormulas) {
    CAPTURE(enum_name(fn));
    const elementwise::Function& row = *elementwise::find_function(enum_name(fn));
    const test::FunctionTable table = test::function_table(enum_name(fn));
    const auto run = [&](DType t, const elementwise::Expression& e, double bound) {
      CHECK(e.nodes().size() < 200);
      const auto f = [&](const ExactPoint& p) {
        const double inputs[] = {p.x, 1};
        return std::isnan(p.x) ? p.x : e.evaluate(inputs);  // printers select NaN last
      };
      check_points(fn, t, t == DType::F32 ? table.floats : table.points, &ExactPoint::value, bound, f);
    };
    run(DType::F32, row.portable(), row.ulp_portable);
    run(DType::F32, row.xla_f32(), row.ulp_portable);
    run(DType::F64, row.xla_f64(), row.ulp_f64 + 1);  // XLA's exp and log are within one
  }
}

/// Rules of derivatives are products and sums of a few functions. Bounds of the first and the second in ulp.
constexpr double kSlopeUlp = 16, kCurvatureUlp = 64;
/// Whether terms of the rule cancel where the function is flat (1 - tanh(x)^2), so that the bounds are in 2^-53 there.
bool cancels(ActivationKind fn) {
  using K = ActivationKind;
  constexpr K kCancel[] = {K::Tanh, K::Sigmoid, K::Silu, K::Softplus, K::LogSigmoid, K::Mish, K::GeluApprox, K::Gelu};
  return std::find(std::begin(kCancel), std::end(kCancel), fn) != std::end(kCancel);
}

/// The rules of erf and erfc round x^2, of which a unit in the last place changes e^(-x^2) by x^2 of them. Beyond 746,
/// where that is 0, nothing is allowed.
double rounding_of_rule(ActivationKind fn, double x) {
  const double square = x * x;
  return (fn == ActivationKind::Erf || fn == ActivationKind::Erfc) && square < 746 ? square : 0;
}

template <class F>
void check_slopes(ActivationKind fn, const std::vector<ExactPoint>& points, ExactNumber ExactPoint::*which,
                  double bound, F&& f) {
  double worst = -1, at = 0, got = 0;
  for (const ExactPoint& p : points) {
    const double y = f(p), apart = std::fabs(y - (p.*which).nearest) * 0x1p53;
    double e = test::ulps_from(DType::F64, y, p.*which);
    if (cancels(fn) && apart < e) e = apart;
    if (y == 0 && (p.*which).nearest == 0) e = 0;  // a sum with terms of 0 has lost the sign
    e = e < rounding_of_rule(fn, p.x) ? 0 : e - rounding_of_rule(fn, p.x);
    if (!(e <= worst)) worst = e, at = p.x, got = y;
  }
  CAPTURE(at);
  CAPTURE(got);
  CHECK(worst >= 0);
  CHECK(worst <= bound);
}

TEST_CASE("formulas: first and second derivatives are exact to some ulp") {
  for (const ActivationKind fn : kFormulas) {
    CAPTURE(enum_name(fn));
    std::vector<ExactPoint> points;
    std::vector<double> xs;
    for (const ExactPoint& p : test::function_table(enum_name(fn)).points) {
      // At infinities, where a part of a rule leaves the range, and outside of the domain, rules may end in NaN.
      const bool ends =
          std::isinf(p.x) || std::fabs(p.x) > 350 || std::isinf(p.slope.nearest) || std::isinf(p.curvature.nearest);
      if (ends || (std::isnan(p.value.nearest) && !std::isnan(p.x))) continue;
      points.push_back(p);
      xs.push_back(p.x);
    }
    const auto n = static_cast<std::int64_t>(xs.size());
    const Tensor x = Tensor::of<double>({n}, xs);
    Graph f("f");
    f.set_outputs({f.sum(f.activation(fn, f.input("x", {{n}, DType::F64})))});
    // The rule of gelu_approx multiplies 1 - sigmoid(u) by squares of u. That of erfinv is e^(y^2), which changes by
    // 2 y^2 units for one of y.
    const double terms = fn == ActivationKind::GeluApprox ? 12 : fn == ActivationKind::Erfinv ? 24 : 1;
    const Graph both = vjp(value_and_grad(f, {"x"}).graph, {"x"}).graph;
    const Tensor none = Tensor::scalar(DType::F64, 0),
                 ones = Tensor::of<double>({n}, std::vector<double>(xs.size(), 1));
    const std::vector<Tensor> out = evaluate(both, {{"x", x}, {"d_output_0", none}, {"d_output_1", ones}});
    REQUIRE(out.size() == 3);
    check_slopes(fn, points, &ExactPoint::slope, terms * kSlopeUlp,
                 [&](const ExactPoint& p) { return out[1].at(&p - points.data()); });
    check_slopes(fn, points, &ExactPoint::curvature, terms * kCurvatureUlp,
                 [&](const ExactPoint& p) { return out[2].at(&p - points.data()); });
  }
}

TEST_CASE("formulas: an expression has each node once, in order, and names what it uses often") {
  const elementwise::Expression e = elementwise::find_function("tanh")->portable();
  const std::vector<int> uses = e.uses();
  CHECK(uses[e.result()] == 1);
  for (std::size_t i = 0; i < e.nodes().size(); ++i) {
    const elementwise::Node& n = e.nodes()[i];
    for (int k = 0; k < elementwise::arity(n.op); ++k) CHECK(n.operands[k] < i);
    for (std::size_t j = 0; j < i; ++j) {
      const elementwise::Node& o = e.nodes()[j];
      CHECK_FALSE((o.op == n.op && o.type == n.type && o.number == n.number && o.operands[0] == n.operands[0] &&
                   o.operands[1] == n.operands[1] && o.operands[2] == n.operands[2]));
    }
  }
  CHECK(elementwise::find_function("no such function") == nullptr);
}

}  // namespace
}  // namespace rlx
