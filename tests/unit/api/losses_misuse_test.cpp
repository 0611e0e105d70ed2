// Misuse of functions of values: losses, random distributions, statistics, matmuls of quantized values.
#include <cmath>
#include <vector>

#include "rlx/functions/einsum.h"
#include "rlx/functions/losses.h"
#include "rlx/functions/quantized.h"
#include "rlx/functions/random.h"
#include "rlx/functions/stats.h"
#include "rlx/ir/ops/quantize.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

TEST_CASE("misuse: losses") {
  Graph g("g");
  const Expr x = g.input("x", Shape({4, 3}, DType::F32)), y = g.input("y", Shape({4}, DType::I32));
  const Expr v = g.input("v", Shape({3}, DType::F32)), i = g.input("i", Shape({4, 3}, DType::I32));
  REFUSED("the first operand must be a value of a graph", nn::mse_loss(1.0, x));
  REFUSED("an empty Expr", nn::l1_loss(Expr(), x));
  REFUSED("do not broadcast", nn::mse_loss(x, y));
  REFUSED("logits must be float", nn::cross_entropy(i, y));
  REFUSED("one class for each row", nn::cross_entropy(x, i));
  REFUSED("must have the dimensions of logits", nn::cross_entropy(x, v));
  REFUSED("label_smoothing must be in [0, 1]", nn::cross_entropy(x, y, {.label_smoothing = 1.5}));
  REFUSED("ignore_index needs integer labels", nn::cross_entropy(x, x, {.ignore_index = 0}));
  REFUSED("axis", nn::cross_entropy(x, y, {.axis = 2}));
  REFUSED("weight must be [C]", nn::cross_entropy(x, y, {.weight = x}));
  REFUSED("label_smoothing is not supported", nn::nll_loss(x, y, {.label_smoothing = 0.1}));
  REFUSED("labels must be integers", nn::nll_loss(x, x));
  REFUSED("labels must have the axes", nn::nll_loss(x, i));
  REFUSED("beta must be", nn::smooth_l1_loss(x, x, -1));
  REFUSED("delta must be", nn::huber_loss(x, x, 0));
  REFUSED("gamma must be", nn::sigmoid_focal_loss(x, x, 0.25, -1));
  REFUSED("alpha must be", nn::sigmoid_focal_loss(x, x, 2));
  REFUSED("eps must be", nn::cosine_similarity(x, x, -1, -1));
  REFUSED("margin must be finite", nn::cosine_embedding_loss(x, x, v, HUGE_VAL));
  REFUSED("margin must be finite", nn::hinge_embedding_loss(x, x, HUGE_VAL));
  REFUSED("margin must be finite", nn::margin_ranking_loss(x, x, x, HUGE_VAL));
  REFUSED("p must be", nn::triplet_margin_loss(x, x, x, {.p = 0}));
  REFUSED("eps must be", nn::gaussian_nll_loss(x, x, x, false, 0));
  REFUSED("eps must be", nn::poisson_nll_loss(x, x, true, false, -1));
  REFUSED("first operand must be a value of a graph", nn::kl_div(1, x));
  REFUSED("first operand must be a value of a graph", nn::hinge_loss(1, x));
  REFUSED("first operand must be a value of a graph", nn::soft_margin_loss(1, x));
  REFUSED("first operand must be a value of a graph", nn::binary_cross_entropy(1, x));
  REFUSED("first operand must be a value of a graph", nn::binary_cross_entropy_with_logits(1, x));
  REFUSED("log_probs must be [T, N, C]", nn::ctc_loss(x, i, y, y));
  REFUSED("blank 3 is not a class", nn::ctc_loss(g.input("p", Shape({5, 4, 3}, DType::F32)), i, y, y, {.blank = 3}));
}

TEST_CASE("misuse: draws") {
  Graph g("g");
  const Expr k = g.input("k", Shape({2}, DType::U32)), keys = g.input("keys", Shape({3, 2}, DType::U32));
  const Expr x = g.input("x", Shape({4, 3}, DType::F32)), i = g.input("i", Shape({3}, DType::I32));
  const Dims d = {Dim(3)};
  REFUSED("the first operand must be a value of a graph", random::gumbel(3, d));
  REFUSED("the key must be u32 [2]", random::exponential(x, d));
  REFUSED("the key must be u32 [2]", random::permutation(keys, 3));
  REFUSED("draws floats", random::laplace(k, d, DType::I32));
  REFUSED("draws floats", random::logistic(k, d, DType::I32));
  REFUSED("draws floats", random::cauchy(k, d, DType::I32));
  REFUSED("draws floats", random::uniform(k, 0.0, 1.0, d, DType::I32));
  REFUSED("draws floats", random::truncated_normal(k, -1.0, 1.0, d, DType::I32));
  REFUSED("do not broadcast", random::weibull(k, x, 1.0, {Dim(2)}));
  REFUSED("do not broadcast", random::pareto(k, x, {Dim(2)}));
  REFUSED("which bool cannot hold", random::rademacher(k, d, DType::Bool));
  REFUSED("low must be an integer", random::randint(k, 0.5, 3, d));
  REFUSED("draws integers", random::randint(k, 0, 3, d, DType::F32));
  REFUSED("must not be negative, got -1", random::permutation(k, -1));
  REFUSED("axis", random::shuffle(k, x, 2));
  REFUSED("draws floats", random::categorical(k, i));
  REFUSED("without replacement", random::categorical_distinct(k, x, 4));
  REFUSED("draws floats", random::gamma(k, 1.0, d, DType::I32));
  REFUSED("more axes than the target", random::log_gamma(k, x, {Dim(2)}));
  REFUSED("draws floats", random::beta(k, 1.0, 1.0, d, DType::I32));
  REFUSED("alpha must be", random::dirichlet(k, 1.0, d));
  REFUSED("draws floats", random::chisquare(k, 1.0, d, DType::I32));
  REFUSED("draws floats", random::student_t(k, 1.0, d, DType::I32));
  REFUSED("ball: the number of dimensions must be at least 1", random::ball(k, 0, 2, d));
  REFUSED("p must be above 0", random::ball(k, 2, 0, d));
  REFUSED("draws integers", random::poisson(k, 1.0, d, DType::F32));
  REFUSED("draws floats", random::binomial(k, 1.0, 0.5, d, DType::I32));
  REFUSED("the key must be u32 [2]", random::philox_bits(x, d));
}

TEST_CASE("misuse: products of codes, losses of the builder") {
  Graph g("g");
  const Expr x = g.input("x", Shape({4, 3}, DType::I8)), w = g.input("w", Shape({3, 2}, DType::U8));
  const Expr f = g.input("f", Shape({4, 3}, DType::F32)), b = g.input("b", Shape({3}, DType::I32));
  const auto op = [](double mult, std::int64_t x_zp = 0) {
    ops::QMatMul q;
    q.mult = {mult}, q.x_zp = x_zp;
    return q;
  };
  REFUSED("takes x, w and an optional bias", g.q_matmul(op(1), {x}));
  REFUSED("an empty Expr", g.q_matmul(op(1), {Expr(), w}));
  REFUSED("must be i8 or u8", g.q_matmul(op(1), {f, w}));
  REFUSED("rows", g.q_matmul(op(1), {x, x}));
  REFUSED("bias must be", g.q_matmul(op(1), {x, w, b}));
  REFUSED("mult must be finite", g.q_matmul(op(HUGE_VAL), {x, w}));
  REFUSED("x_zp 128 is not a value of i8", g.q_matmul(op(1, 128), {x, w}));
  ops::QMatMul wide;
  wide.dtype = DType::I32;
  REFUSED("makes i8 or u8", g.q_matmul(wide, {x, w}));
  wide.dtype = DType::I8, wide.mult = {1, 2, 3};
  REFUSED("mult has 3 numbers", g.q_matmul(wide, {x, w}));
  const Expr image = g.input("image", Shape({1, 4, 5, 5}, DType::I8)),
             filter = g.input("filter", Shape({2, 4, 3, 3}, DType::I8));
  const auto conv = [&](auto&& set) {
    ops::QConv q;
    set(q);
    return g.q_conv(q, {image, filter});
  };
  REFUSED("takes x, w and an optional bias", g.q_conv({}, {image}));
  REFUSED("needs x [N, C, spatial..]", g.q_conv({}, {x, w}));
  REFUSED("strides must be from 1", conv([](auto& q) { q.strides = {0, 1}; }));
  REFUSED("low must be from 0", conv([](auto& q) { q.low = {-1, 1}; }));
  REFUSED("dilations has 1 entries", conv([](auto& q) { q.dilations = {1}; }));
  REFUSED("groups must be positive", conv([](auto& q) { q.groups = 0; }));
  REFUSED("does not divide", conv([](auto& q) { q.groups = 3; }));
  REFUSED("must have 2 channels", conv([](auto& q) { q.groups = 2; }));
  REFUSED("is larger than the padded x", conv([](auto& q) { q.dilations = {3, 3}; }));
  REFUSED("bits must be in [2, 8]", g.fake_quantize_lsq(f, 1.0, {9}));
  REFUSED("axis 2", g.fake_quantize_lsq(f, 1.0, {8, 2}));
  REFUSED("scale must be [3]", g.fake_quantize_lsq(f, 1.0, {8, 1}));
  REFUSED("logits must be float", g.softmax_cross_entropy(x, b));
  REFUSED("one class for each row", g.softmax_cross_entropy(f, b));
  REFUSED("labels must be i32 or i64", g.softmax_cross_entropy(f, x));
}

TEST_CASE("misuse: statistics") {
  Graph g("g");
  const Expr x = g.input("x", Shape({4, 3}, DType::F32)), v = g.input("v", Shape({3}, DType::F32));
  const Expr i = g.input("i", Shape({3}, DType::I32)), c = g.input("c", Shape({3}, DType::C64));
  REFUSED("needs floats", stats::var(c));
  REFUSED("axis 2", stats::std(x, {2}));
  REFUSED("q must be in [0, 1]", stats::quantile(x, 1.5));
  REFUSED("has no elements", stats::median(g.input("none", Shape({2, 0}, DType::F32))));
  REFUSED("x must be [N, M]", stats::cov(v));
  REFUSED("x must be [N, M]", stats::corrcoef(v));
  REFUSED("the number of bins is 0", stats::histogram(x, 0, 0, 1));
  REFUSED("the range [1, 1] is empty", stats::histogram(x, 2, 1, 1));
  REFUSED("x must be integers", stats::bincount(x, 3));
  REFUSED("must be a vector", stats::searchsorted(x, v));
  REFUSED("x must be integers", stats::one_hot(x, 3));
  REFUSED("must not be negative, got -1", stats::one_hot(i, -1));
  REFUSED("needs floats", stats::logsumexp(c));
  REFUSED("axis 5", stats::cumulative_logsumexp(x, 5));
  REFUSED("axis 5", stats::standardize(x, {5}));
  REFUSED("operands must be vectors", stats::meshgrid({v, x}));
  REFUSED("a vector or a matrix", stats::diag(g.scalar(1.0)));
  REFUSED("the first operand must be a value of a graph", stats::outer(1, v));
  REFUSED("have different ranks", stats::kron(x, v));
  REFUSED("an empty Expr", stats::var(Expr()));
}

TEST_CASE("misuse: einsum") {
  Graph g("g");
  const Expr x = g.input("x", Shape({4, 3}, DType::F32)), v = g.input("v", Shape({3}, DType::F32));
  REFUSED("there are no operands", einsum("i", {}));
  REFUSED("names 2 operands, got 1", einsum("ij,j->i", {x}));
  REFUSED("'ijk' does not match an operand with 2 axes", einsum("ijk->i", {x}));
  REFUSED("'...ijk' does not match an operand with 2 axes", einsum("...ijk", {x}));
  REFUSED("'1' is not the letter of an axis", einsum("i1", {x}));
  REFUSED("axis 'k' of the result", einsum("ij->k", {x}));
  REFUSED("axis 'i' of the result", einsum("ij->ii", {x}));
  REFUSED("has both 4 and 3 entries", einsum("ij,i->j", {x, v}));
  REFUSED("has both 4 and 3 entries", einsum("ii->i", {x}));
  REFUSED("an empty Expr", einsum("i", {Expr()}));
  REFUSED("names 1 operands, got 2", einsum_path("i", {{Dim(2)}, {Dim(3)}}));
}

TEST_CASE("misuse: microscaling") {
  Graph g("g");
  const Expr x = g.input("x", Shape({4, 6}, DType::F32)), codes = g.input("codes", Shape({2, 34}, DType::U8));
  const Expr stack = g.input("stack", Shape({1, 2, 4}, DType::U8)), ids = g.input("ids", Shape({4}, DType::I32));
  const quantized::ScaledValue scaled = quantized::scaled_quantize(x, {DType::F8E4M3, 2, -1});
  REFUSED("scaled values must be f8e4m3", quantized::scaled_quant_scale(x, {DType::I8, 2, -1}));
  REFUSED("axis 1 of [4, 6] f32 cannot be divided", quantized::scaled_quantize(x));
  REFUSED("the block size must be at least 1, got 0", quantized::scaled_quantize(x, {DType::F8E4M3, 0, -1}));
  REFUSED("axis 2", quantized::scaled_quantize(x, {DType::F8E4M3, 2, 2}));
  REFUSED("scale must be", quantized::scaled_dequantize(scaled, {DType::F8E4M3, 3, -1}));
  REFUSED("scale must be", quantized::scaled_matmul(scaled, scaled, 2));
  REFUSED("scale must be", quantized::scaled_grouped_matmul(scaled, scaled, ids, 2));
  REFUSED("codes must be [E, N, row bytes]", quantized::dequant_moe_weights(codes, QuantScheme::Q8_0));
  REFUSED("codes must be [E, N, row bytes]", quantized::dequant_grouped_matmul(x, codes, ids, QuantScheme::Q8_0));
  REFUSED("codes must be [E, N, K]", quantized::dequant_grouped_matmul(x, codes, x, x, ids, 2));
  REFUSED("scale must be", quantized::dequant_grouped_matmul(x, stack, x, x, ids, 2));
}
