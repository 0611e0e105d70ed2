// Losses against numbers of PyTorch 2.15 (torch.nn.functional) and their derivatives.
#include <cmath>

#include <doctest/doctest.h>

#include "rlx/functions/losses.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/loss.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

using nn::Reduction;

Tensor f64_of(std::vector<std::int64_t> dims, const std::vector<double>& v) { return doubles(std::move(dims), v); }
Tensor classes_of(const std::vector<std::int64_t>& v, DType t = DType::I32) {
  Tensor out = Tensor::zeros(Shape({static_cast<std::int64_t>(v.size())}, t));
  for (std::size_t i = 0; i < v.size(); ++i) out.set_i64(static_cast<std::int64_t>(i), v[i]);
  return out;
}
Tensor rows_of(const std::vector<std::vector<std::int64_t>>& rows) {
  std::vector<std::int64_t> all;
  for (const auto& r : rows) all.insert(all.end(), r.begin(), r.end());
  Tensor flat = classes_of(all);
  Tensor out = Tensor::zeros(
      Shape({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())}, DType::I32));
  for (std::int64_t i = 0; i < out.num_elements(); ++i) out.set_i64(i, flat.at_i64(i));
  return out;
}

// The result of the function on constants.
template <class F>
std::vector<double> loss_of(F&& build) {
  Graph g("loss");
  g.set_outputs({build(g)});
  return evaluate(g, {})[0].to_f64();
}
void near(const std::vector<double>& got, const std::vector<double>& want, double tolerance = 1e-11) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    if (std::isinf(want[i]) || std::isnan(want[i]))
      CHECK((std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]));
    else
      CHECK(std::abs(got[i] - want[i]) <= tolerance * std::max(1.0, std::abs(want[i])));
  }
}

const std::vector<double> kX = {0.5, -1.25, 2.0, 1.5, 0.25, -0.75, -2.0, 3.0, 0.125, 0.0, 1.0, -1.0};
const std::vector<double> kP = {0.2, 0.3, 0.5, 0.6, 0.4, 0.0, 0.1, 0.1, 0.8, 0.25, 0.5, 0.25};
const std::vector<std::int64_t> kY = {2, 0, 1, 2};
const std::vector<double> kA = {0.5, -1.25, 2.0, 0.0, -3.5}, kB = {1.0, 0.0, 0.25, 1.0, 0.5};
const std::vector<double> kQ = {0.3, 0.0, 1.0, 0.75, 0.001}, kSigns = {1, -1, 1, -1, 1};

}  // namespace

TEST_CASE("cross entropy is PyTorch's: weights, an ignored class, smoothing, distributions, reductions") {
  const auto run = [](bool dense, double smoothing, bool weighted, bool ignores, Reduction r, std::int64_t axis = -1) {
    return loss_of([&](Graph& g) {
      Expr x = g.constant(f64_of({4, 3}, kX)), y = dense ? g.constant(f64_of({4, 3}, kP)) : g.constant(classes_of(kY));
      if (axis == 0) x = g.t(x), y = dense ? g.t(y) : y;
      nn::CrossEntropyOptions o;
      if (weighted) o.weight = g.constant(f64_of({3}, {1.0, 2.0, 0.5}));
      if (ignores) o.ignore_index = 1;
      o.label_smoothing = smoothing, o.reduction = r, o.axis = axis;
      return nn::cross_entropy(x, y, o);
    });
  };
  near(run(false, 0, false, false, Reduction::None), {0.232621983102, 0.330672609407, 0.061240043232, 2.407605964444});
  const struct {
    bool dense, weighted, ignores;
    double smoothing, mean, sum;
  } known[] = {{false, false, false, 0, 0.758035150046, 3.032140600186},
               {false, false, true, 0, 0.990300185651, 2.970900556954},
               {false, true, false, 0, 0.443316667411, 1.773266669645},
               {false, true, true, 0, 0.82539329159, 1.65078658318},
               {true, false, false, 0, 1.589285150046, 6.357140600186},
               {true, true, false, 0, 1.6776302417, 6.710520966801},
               {false, false, false, 0.1, 0.867410150046, 3.469640600186},
               {false, false, true, 0.1, 1.048633518985, 3.145900556954},
               {false, true, false, 0.1, 0.596276601509, 2.385106406035},
               {false, true, true, 0.1, 1.026573161587, 2.053146323174},
               {true, false, false, 0.1, 1.615535150046, 6.462140600186},
               {true, true, false, 0.1, 1.707158818369, 6.828635273476}};
  for (const auto& k : known)
    for (const std::int64_t axis : {-1, 0}) {
      CAPTURE(k.mean);
      near(run(k.dense, k.smoothing, k.weighted, k.ignores, Reduction::Mean, axis), {k.mean});
      near(run(k.dense, k.smoothing, k.weighted, k.ignores, Reduction::Sum, axis), {k.sum});
    }
  near(loss_of([](Graph& g) {
         nn::CrossEntropyOptions o;
         o.weight = g.constant(f64_of({3}, {1.0, 2.0, 0.5}));
         return nn::nll_loss(g.log_softmax(g.constant(f64_of({4, 3}, kX))), g.constant(classes_of(kY, DType::I64)), o);
       }),
       {0.443316667411});
}

TEST_CASE("cross entropy: classes that are none, rows of -infinity, derivatives") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto run = [](const std::vector<double>& x, const std::vector<std::int64_t>& y) {
    return run_op(ops::SoftmaxCrossEntropy{}, {f64_of({static_cast<std::int64_t>(y.size()), 2}, x), classes_of(y)});
  };
  near(run({1, 2, 1, 2, 3, 3}, {-1, 2, 1})[0].to_f64(), {nan, nan, std::log(2.0)});
  near(run({-inf, -inf, -inf, 0, inf, 0}, {0, 0, 0})[0].to_f64(), {inf, inf, nan});
  near(run({-inf, -inf, -inf, 0, 1000, 0}, {0, 1, 1})[1].to_f64(), {0, 0, 1000});
  near(run({-inf, -inf, -inf, 0, 1000, 0}, {0, 1, 1})[0].to_f64(), {inf, 0, 1000});
  // A label of 0 beside a logit of -infinity adds nothing.
  near(run_op(ops::SoftmaxCrossEntropy{}, {f64_of({1, 3}, {-inf, 0, 0}), f64_of({1, 3}, {0, 0.5, 0.5})})[0].to_f64(),
       {std::log(2.0)});
  // softmax - onehot, 0 for an ignored row.
  Graph g("g");
  const Expr x = g.input("x", Shape({2, 2}, DType::F64));
  nn::CrossEntropyOptions o;
  o.ignore_index = -100, o.reduction = Reduction::Sum;
  g.set_outputs({nn::cross_entropy(x, g.constant(classes_of({1, -100})), o)});
  const GradResult d = value_and_grad(g, {"x"});
  near(evaluate(d.graph, {{"x", f64_of({2, 2}, {0, 0, 5, 1})}}).back().to_f64(), {0.5, -0.5, 0, 0});
}

TEST_CASE("binary cross entropy and focal loss are PyTorch's") {
  const auto none = Reduction::None;
  const auto c = [](Graph& g, const std::vector<double>& v) { return g.constant(f64_of({5}, v)); };
  near(loss_of([&](Graph& g) { return nn::binary_cross_entropy(c(g, kQ), c(g, kB), std::nullopt, none); }),
       {1.203972804326, 0.0, 75.0, 0.287682072452, 3.454377889658});
  near(loss_of([&](Graph& g) {
         return nn::binary_cross_entropy_with_logits(c(g, kA), c(g, kB), std::nullopt, std::nullopt, none);
       }),
       {0.47407698418, 0.251929081345, 1.626928011043, 0.69314718056, 1.779750418273});
  near(loss_of([&](Graph& g) { return nn::binary_cross_entropy_with_logits(c(g, kA), c(g, kB), c(g, kQ), 3.0, none); }),
       {0.426669285762, 0.0, 1.690392016564, 1.55958115626, 0.005309500837});
  near(loss_of([&](Graph& g) { return nn::sigmoid_focal_loss(c(g, kA), c(g, kB)); }),
       {0.016893372629, 0.00937088357, 0.484672167828, 0.043321698785, 0.222468802284});
  // No derivative uses the logarithm of 0.
  Graph g("g");
  const Expr p = g.input("p", Shape({3}, DType::F64));
  g.set_outputs({nn::binary_cross_entropy(p, g.constant(f64_of({3}, {0, 1, 0.5})), std::nullopt, Reduction::Sum)});
  const std::vector<double> d =
      evaluate(value_and_grad(g, {"p"}).graph, {{"p", f64_of({3}, {0, 1, 0.25})}}).back().to_f64();
  near(d, {1, -1, 0.5 / 0.75 - 0.5 / 0.25});
}

TEST_CASE("losses of distances are PyTorch's") {
  const auto none = Reduction::None;
  const auto c = [](Graph& g, const std::vector<double>& v) { return g.constant(f64_of({5}, v)); };
  const auto of = [&](auto&& f) { return loss_of([&](Graph& g) { return f(g, c(g, kA), c(g, kB)); }); };
  near(of([](Graph&, Expr a, Expr b) { return nn::mse_loss(a, b); }), {4.375});
  near(of([](Graph&, Expr a, Expr b) { return nn::l1_loss(a, b); }), {1.7});
  near(of([&](Graph&, Expr a, Expr b) { return nn::smooth_l1_loss(a, b, 0.75, none); }),
       {0.166666666667, 0.875, 1.375, 0.625, 3.625});
  near(of([&](Graph&, Expr a, Expr b) { return nn::smooth_l1_loss(a, b, 0, Reduction::Mean); }), {1.7});
  near(of([&](Graph&, Expr a, Expr b) { return nn::huber_loss(a, b, 1.5, none); }), {0.125, 0.78125, 1.5, 0.5, 4.875});
  near(of([&](Graph& g, Expr a, Expr) { return nn::hinge_embedding_loss(a, c(g, kSigns), 0.8, none); }),
       {0.5, 2.05, 2.0, 0.8, -3.5});
  near(of([&](Graph& g, Expr a, Expr) { return nn::hinge_loss(a, c(g, kSigns), none); }), {0.5, 0, 0, 1, 4.5});
  near(of([&](Graph& g, Expr a, Expr b) { return nn::margin_ranking_loss(a, b, c(g, kSigns), 0.3, none); }),
       {0.8, 0, 0, 0, 4.3});
  near(of([&](Graph& g, Expr a, Expr) { return nn::soft_margin_loss(a, c(g, kSigns), none); }),
       {0.47407698418, 0.251929081345, 0.126928011043, 0.69314718056, 3.529750418273});
  near(of([&](Graph&, Expr a, Expr b) { return nn::poisson_nll_loss(a, b * 4.0, true, true, 1e-8, none); }),
       {2.805984428944, 0.28650479686, 5.389056098931, 4.157263158244, 7.682003868027});
  near(of([&](Graph& g, Expr, Expr b) { return nn::poisson_nll_loss(c(g, kQ), b * 4.0, false, false, 1e-8, none); }),
       {5.11589108397, 0.0, 0.99999999, 1.900728236474, 13.816490558064});
  near(of([&](Graph& g, Expr a, Expr b) {
         return nn::gaussian_nll_loss(a, b, c(g, {1.0, 0.5, 2.0, 1e-9, 3.0}), true, 1e-6, none);
       }),
       {1.043938533205, 2.134864942925, 2.031137123485, 499994.01118325425, 4.134911344205});
}

TEST_CASE("losses of rows are PyTorch's") {
  const auto none = Reduction::None;
  const auto x = [](Graph& g) { return g.constant(f64_of({4, 3}, kX)); };
  near(loss_of([&](Graph& g) {
         return nn::kl_div(g.log_softmax(x(g)), g.constant(f64_of({4, 3}, kP)), false, none);
       }),
       {0.024636814134, 0.683594753633, -0.230262598729, -0.108091808615, 0.265752751013, 0.0, 0.275865495024,
        -0.224134504976, 2.170477193534, 0.005327900831, -0.142770608058, 0.255327900831});
  near(loss_of(
           [&](Graph& g) { return nn::kl_div(g.log_softmax(x(g)), g.log_softmax(x(g) * 0.5), true, Reduction::Sum); }),
       {0.475949547646});
  const auto v = [&](Graph& g) { return g.reverse(x(g), {0}) * 0.5 + 1.0; };
  near(loss_of([&](Graph& g) { return nn::cosine_similarity(x(g), v(g)); }),
       {-0.083141099321, -0.037316232505, -0.005981295826, -0.481151586628});
  near(loss_of([&](Graph& g) {
         return nn::cosine_embedding_loss(x(g), v(g), g.constant(f64_of({4}, {1, -1, 1, -1})), 0.1, none);
       }),
       {1.083141099321, 0.0, 1.005981295826, 0.0});
  const auto triplet = [&](double p, bool swap) {
    return loss_of([&](Graph& g) {
      const Expr far = g.concat({g.narrow(x(g), 0, Dim(3), Dim(1)), g.narrow(x(g), 0, Dim(0), Dim(3))}, 0) + 0.5;
      nn::TripletOptions o;
      o.p = p, o.swap = swap, o.reduction = none;
      return nn::triplet_margin_loss(x(g), v(g), far, o);
    });
  };
  near(triplet(1, false), {0.499998, 1.812498, 0.499998, 0.25});
  near(triplet(2, false), {0.455626713873, 0.818472111582, 0.617651060539, 0.971792784155});
  near(triplet(3, false), {0.581568097855, 0.461484111463, 0.677437480218, 1.22345597802});
  near(triplet(2, true), {3.054108503044, 0.818472111582, 4.238083875776, 0.971792784155});
}

TEST_CASE("ctc loss is PyTorch's, and its derivative is minus the posterior") {
  std::vector<double> scores;
  for (int t = 0; t < 6; ++t)
    for (int n = 0; n < 3; ++n)
      for (int k = 0; k < 4; ++k) scores.push_back((7 * t + 5 * n + 3 * k) % 11 / 4.0 - 1);
  const auto run = [&](Reduction r, bool zero_infinity) {
    return loss_of([&](Graph& g) {
      nn::CtcOptions o;
      o.reduction = r, o.zero_infinity = zero_infinity;
      return nn::ctc_loss(g.log_softmax(g.constant(f64_of({6, 3, 4}, scores))),
                          g.constant(rows_of({{1, 1, 2}, {3, 0, 0}, {2, 3, 1}})), g.constant(classes_of({6, 3, 2})),
                          g.constant(classes_of({3, 1, 3}, DType::I64)), o);
    });
  };
  near(run(Reduction::None, false), {4.850793798591, 1.687812817097, HUGE_VAL});
  near(run(Reduction::Mean, true), {1.101581361098});
  near(run(Reduction::Sum, true), {6.538606615688});
  // Invalid lengths and targets.
  near(loss_of([](Graph& g) {
         return nn::ctc_loss(g.constant(f64_of({2, 4, 2}, std::vector<double>(16, -1))),
                             g.constant(rows_of({{1}, {0}, {2}, {1}})), g.constant(classes_of({3, 1, 1, 0})),
                             g.constant(classes_of({1, 1, 1, 0})), {.reduction = Reduction::None});
       }),
       {std::nan(""), std::nan(""), std::nan(""), 0});
  // The derivatives of each step sum to -1, since the state probabilities sum to 1.
  Graph g("g");
  const Expr x = g.input("x", Shape({6, 1, 4}, DType::F64));
  nn::CtcOptions o;
  o.reduction = Reduction::Sum;
  g.set_outputs(
      {nn::ctc_loss(x, g.constant(rows_of({{1, 1, 2}})), g.constant(classes_of({5})), g.constant(classes_of({3})), o)});
  const Tensor d = evaluate(value_and_grad(g, {"x"}).graph,
                            {{"x", f64_of({6, 1, 4}, std::vector<double>(scores.begin(), scores.begin() + 24))}})
                       .back();
  for (std::int64_t t = 0; t < 6; ++t) {
    double total = 0;
    for (std::int64_t k = 0; k < 4; ++k) total += d.at(t * 4 + k);
    CHECK(std::abs(total - (t < 5 ? -1 : 0)) < 1e-12);
  }
}

TEST_CASE("ctc loss of infinite log-probabilities is that of logaddexp, in the rule and in its parts") {
  // Class 0, the blank, and class 1 in two steps. For an empty target only the blank counts.
  const auto loss = [](const std::vector<double>& of_blank, const std::vector<double>& of_one, std::int64_t spelled) {
    const Tensor x = f64_of({2, 1, 2}, {of_blank[0], of_one[0], of_blank[1], of_one[1]});
    return run_op(ops::CtcLoss{0}, {x, rows_of({{1}}), classes_of({2}), classes_of({spelled})})[0].at(0);
  };
  CHECK(loss({-1, kInf}, {-1, -1}, 0) == -kInf);
  CHECK(loss({-1, -1}, {kInf, -1}, 1) == -kInf);
  CHECK(loss({-1, -kInf}, {-1, kInf}, 1) == -kInf);
  CHECK(loss({-1, kInf}, {-1, kInf}, 1) == -kInf);
  CHECK(loss({-kInf, -kInf}, {-kInf, -1}, 1) == kInf);
  CHECK(std::isnan(loss({-1, -kInf}, {kInf, -kInf}, 1)));
  // A NaN is kept next to a state of probability 0.
  CHECK(std::isnan(loss({-kInf, -1}, {std::nan(""), -1}, 1)));
}
