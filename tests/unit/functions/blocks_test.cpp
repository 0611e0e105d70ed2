// Model layers: the decoder block with every optional input, its caches, and the functions by common names.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/functions/blocks.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::expect_close;
using test::infer_error;

Tensor wave_of(std::vector<std::int64_t> dims, double f, DType t = DType::F64) {
  Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
  for (std::int64_t i = 0; i < out.num_elements(); ++i) out.set(i, std::sin(f * static_cast<double>(i + 1)));
  return out;
}

// -- the decoder block: 1 sequence of 5, 6 columns, 4 heads of 4 over 2 --

constexpr std::int64_t kWidth = 6, kHeads = 4, kKv = 2, kHead = 4, kInner = 7, kSteps = 5;

struct Decoder {
  Graph g;
  std::vector<std::pair<std::string_view, Expr>> operands;
  Expr of(std::string_view name) const {
    for (const auto& [n, e] : operands)
      if (n == name) return e;
    return {};
  }
  Decoder(bool all, DType t = DType::F64) {
    double f = 0.31;
    const auto add = [&](std::string_view name, std::vector<std::int64_t> dims) {
      operands.emplace_back(name, g.constant(wave_of(std::move(dims), f, t)));
      f += 0.07;
    };
    add("ln1_gamma", {kWidth}), add("w_q", {kWidth, kHeads * kHead}), add("w_k", {kWidth, kKv * kHead});
    add("w_v", {kWidth, kKv * kHead}), add("w_o", {kHeads * kHead, kWidth}), add("ln2_gamma", {kWidth});
    add("w_gate", {kWidth, kInner}), add("w_up", {kWidth, kInner}), add("w_down", {kInner, kWidth});
    Tensor cos = Tensor::zeros(Shape({8, 2}, t)), sin = cos;
    for (std::int64_t i = 0; i < 16; ++i) {
      cos.set(i, std::cos(0.3 * static_cast<double>(i))), sin.set(i, std::sin(0.3 * static_cast<double>(i)));
    }
    operands.emplace_back("cos", g.constant(cos)), operands.emplace_back("sin", g.constant(sin));
    if (!all) return;
    add("ln1_beta", {kWidth}), add("ln2_beta", {kWidth}), add("q_norm", {kHead}), add("k_norm", {kHead});
    add("b_q", {kHeads * kHead}), add("b_k", {kKv * kHead}), add("b_v", {kKv * kHead}), add("b_o", {kWidth});
  }
  Expr block(ops::LlamaDecoderBlock op, Expr x, std::vector<std::pair<std::string_view, Expr>> more = {}) {
    op.num_heads = kHeads, op.kv_heads = kKv, op.head_dim = kHead;
    more.insert(more.end(), operands.begin(), operands.end());
    more.emplace_back("x", x);
    return g.add_named(op, more);
  }
};

TEST_CASE("llama_decoder_block: betas, norms of heads, biases, scale, softcap, window and the gate's function") {
  Decoder d(true);
  Graph& g = d.g;
  ops::LlamaDecoderBlock op;
  op.mask = MaskKind::SlidingWindow, op.window = 2, op.scale = 0.8, op.softcap = 1.5, op.eps = 1e-3;
  op.activation = ActivationKind::GeluApprox, op.n_rot = 2;
  const Expr x = g.constant(wave_of({1, kSteps, kWidth}, 0.7));
  const Expr y = d.block(op, x);
  // The same block in primitives, head by head.
  const Expr normed = g.rms_norm(x, d.of("ln1_gamma"), d.of("ln1_beta"), 1e-3);
  const auto heads = [&](const char* w, const char* b, std::int64_t n) {  // [1, S, n, D]
    return g.reshape(g.matmul(normed, d.of(w)) + d.of(b), {1, kSteps, n, kHead});
  };
  const auto turned = [&](Expr e, const char* gamma) {  // rotates the first two elements by the angle of column 0
    const Expr n = g.rms_norm(e, d.of(gamma), std::nullopt, 1e-3);
    const auto table = [&](const char* name) {
      return g.reshape(g.slice(d.of(name), {0, 0}, {kSteps, 1}), {1, kSteps, 1, 1});
    };
    const Expr a = g.narrow(n, 3, 0, 1), b = g.narrow(n, 3, 1, 1), c = table("cos"), s = table("sin");
    return g.concat({a * c - b * s, b * c + a * s, g.narrow(n, 3, 2, 2)}, 3);
  };
  const Expr q = turned(heads("w_q", "b_q", kHeads), "q_norm"), k = turned(heads("w_k", "b_k", kKv), "k_norm"),
             v = heads("w_v", "b_v", kKv);
  Tensor hidden = Tensor::zeros(Shape({kSteps, kSteps}, DType::F64));
  for (std::int64_t i = 0; i < kSteps; ++i)
    for (std::int64_t j = 0; j < kSteps; ++j) hidden.set(i * kSteps + j, j <= i && j >= i - 2 ? 0 : -HUGE_VAL);
  std::vector<Expr> outs;
  for (std::int64_t h = 0; h < kHeads; ++h) {
    const auto of_head = [&](Expr e, std::int64_t i) { return g.squeeze(g.narrow(e, 2, i, 1), 2); };
    const Expr scores = g.matmul(of_head(q, h), g.t(of_head(k, h / 2))) * 0.8;
    outs.push_back(g.matmul(g.softmax(g.tanh(scores / 1.5) * 1.5 + g.constant(hidden), -1), of_head(v, h / 2)));
  }
  const Expr s = g.matmul(g.concat(outs, 2), d.of("w_o")) + d.of("b_o") + x;
  const Expr n = g.rms_norm(s, d.of("ln2_gamma"), d.of("ln2_beta"), 1e-3);
  const Expr want =
      g.matmul(g.gelu_approx(g.matmul(n, d.of("w_gate"))) * g.matmul(n, d.of("w_up")), d.of("w_down")) + s;
  g.set_outputs({y, want});
  const auto out = evaluate(g);
  expect_close(out[0], out[1], 1e-12);
}

TEST_CASE("llama_decoder_block: behind a cache, grown or written into, rows are those of the whole sequence") {
  for (bool all : {false, true}) {
    CAPTURE(all);
    Decoder d(all);
    Graph& g = d.g;
    const Expr x = g.constant(wave_of({1, kSteps, kWidth}, 0.7));
    ops::LlamaDecoderBlock op;
    const Expr whole = d.block(op, x);
    const Expr none = g.constant(Tensor::zeros(Shape({1, 0, kKv * kHead}, DType::F64)));
    const Expr first = d.block(op, g.narrow(x, 1, 0, 3), {{"k_cache", none}, {"v_cache", none}});
    const Expr rest = d.block(op, g.narrow(x, 1, 3, 2), {{"k_cache", first.result(1)}, {"v_cache", first.result(2)}});
    const Expr room = g.constant(wave_of({1, 8, kKv * kHead}, 0.2));  // its contents have no effect
    const auto start = [&](std::int32_t at) { return g.constant(test::ints({}, {at})); };
    const Expr one = d.block(op, g.narrow(x, 1, 0, 3), {{"k_cache", room}, {"v_cache", room}, {"start", start(0)}});
    const Expr two = d.block(op, g.narrow(x, 1, 3, 2),
                             {{"k_cache", one.result(1)}, {"v_cache", one.result(2)}, {"start", start(3)}});
    g.set_outputs({whole, g.concat({first, rest}, 1), g.concat({one, two}, 1), rest.result(1),
                   g.narrow(two.result(1), 1, 0, kSteps), rest.result(2), g.narrow(two.result(2), 1, 0, kSteps)});
    const auto out = evaluate(g);
    expect_close(out[1], out[0], 1e-12);
    expect_close(out[2], out[0], 1e-12);
    expect_close(out[4], out[3], 1e-12);
    expect_close(out[6], out[5], 1e-12);
    const auto run = Session().with_threads(2).compile(Graph(g)).run_typed({});
    for (std::size_t i = 0; i < out.size(); ++i) expect_close(run[i], out[i], 1e-12);
  }
}

TEST_CASE("llama_decoder_block: what is wrong with what it may have is said") {
  Decoder d(true);
  Graph& g = d.g;
  const auto zeros = [&](Dims dims, DType t = DType::F64) {
    return g.constant(Tensor::zeros(Shape(std::move(dims), t)));
  };
  const Expr x = zeros({1, kSteps, kWidth}), cache = zeros({1, 8, kKv * kHead});
  ops::LlamaDecoderBlock op;
  const auto said = [&](std::vector<std::pair<std::string_view, Expr>> more) {
    return error_text([&] { d.block(op, x, std::move(more)); });
  };
  CHECK(contains(said({{"k_cache", cache}}), "k_cache and v_cache must be given together"));
  CHECK(contains(said({{"k_cache", cache}, {"v_cache", zeros({1, 7, kKv * kHead})}}), "must be equal [1, P, 8]"));
  CHECK(contains(said({{"start", zeros({}, DType::I32)}}), "start is a position in k_cache"));
  CHECK(contains(said({{"k_cache", cache}, {"v_cache", cache}, {"start", zeros({}, DType::I64)}}),
                 "start must be an i32 scalar"));
  const Expr small = zeros({1, 4, kKv * kHead});
  CHECK(contains(said({{"k_cache", small}, {"v_cache", small}, {"start", zeros({}, DType::I32)}}),
                 "do not fit in the 4"));
  CHECK(contains(said({{"k_cache", cache}, {"v_cache", cache}}), "cos"));  // 13 positions, 8 rows of cos
  op.window = -1, op.mask = MaskKind::SlidingWindow;
  CHECK(contains(said({}), "window"));
}

// -- fused ops --

TEST_CASE("fused_swiglu: which half is the gate is kept by its decomposition, and what it is cast to") {
  const Tensor x = test::doubles({1, 4}, {1, 2, 3, 4});
  const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
  expect_close(test::run_op(ops::FusedSwiGLU{}, {x})[0], {1 * silu(3), 2 * silu(4)}, 1e-15);
  expect_close(test::run_op(ops::FusedSwiGLU{true, {}}, {x})[0], {3 * silu(1), 4 * silu(2)}, 1e-15);
  CHECK(evaluate_op(ops::FusedSwiGLU{true, DType::BF16}, std::vector<Tensor>{x})[0].dtype() == DType::BF16);
  CHECK(contains(infer_error(ops::FusedSwiGLU{true, DType::I32}, {x.shape()}), "cast_to must be a float dtype"));
}

TEST_CASE("fused_attention_block: rotated heads, as the ops one by one") {
  Graph g;
  const Expr x = g.constant(wave_of({2, 3, 4}, 0.7)), w = g.constant(wave_of({4, 16}, 0.3)),
             o = g.constant(wave_of({8, 4}, 0.9));
  const Expr cos = g.constant(wave_of({3, 2}, 0.4)), sin = g.constant(wave_of({3, 2}, 0.6));
  ops::FusedAttentionBlock block;
  block.num_heads = 2, block.kv_heads = 1, block.head_dim = 4, block.mask = MaskKind::Causal, block.has_rope = true;
  const Expr y = g.add_named(block, {{"x", x}, {"w_qkv", w}, {"w_out", o}, {"cos", cos}, {"sin", sin}});
  const Expr qkv = g.matmul(x, w);
  const Expr q = nn::rope_n(g.narrow(qkv, 2, 0, 8), cos, sin, 4, 4),
             k = nn::rope_n(g.narrow(qkv, 2, 8, 4), cos, sin, 4, 4);
  ops::Attention attention{2, 1, 4, MaskKind::Causal, 0, {}, {}, HeadLayout::Merged};
  g.set_outputs({y, g.matmul(g.attention(q, k, g.narrow(qkv, 2, 12, 4), attention), o)});
  const auto out = evaluate(g);
  expect_close(out[0], out[1], 1e-13);
  CHECK(contains(error_text([&] { g.add_named(block, {{"x", x}, {"w_qkv", w}, {"w_out", o}}); }), "'cos' is missing"));
}

// -- functions --

TEST_CASE("nn: products with a bias, in pairs, gated, with an adapter") {
  Graph g;
  const Expr x = g.constant(wave_of({2, 3}, 0.7)), w = g.constant(wave_of({3, 4}, 0.3)),
             w2 = g.constant(wave_of({3, 4}, 0.5)), bias = g.constant(wave_of({4}, 0.9)),
             down = g.constant(wave_of({4, 3}, 0.8)), a = g.constant(wave_of({3, 2}, 0.2)),
             b = g.constant(wave_of({2, 4}, 0.6));
  const auto pair = nn::shared_matmul_pair(x, w, w2);
  const Expr gated = g.matmul(g.silu(g.matmul(x, w2)) * g.matmul(x, w), down);
  g.set_outputs({nn::linear_bias(x, w, bias), g.matmul(x, w) + bias,
                 nn::linear_bias_act(x, w, bias, ActivationKind::Gelu), g.gelu(g.matmul(x, w) + bias), pair.first,
                 g.matmul(x, w), pair.second, g.matmul(x, w2), nn::swiglu_ffn(x, w, w2, down), gated,
                 nn::fused_swiglu_ffn(x, g.concat({w, w2}, 1), down), gated,
                 nn::fused_swiglu_ffn(x, g.concat({w2, w}, 1), down, true), gated, nn::lora_matmul(x, w, a, b, 0.5),
                 g.matmul(x, w + g.matmul(a, b) * 0.5)});
  const auto out = evaluate(g);
  for (std::size_t i = 0; i < out.size(); i += 2) {
    CAPTURE(i);
    expect_close(out[i], out[i + 1], 1e-13);
  }
}

TEST_CASE("nn::attention_kind") {
  CHECK(nn::attention_kind("none").mask == MaskKind::None);
  CHECK(nn::attention_kind("causal").mask == MaskKind::Causal);
  CHECK(nn::attention_kind("sliding:128").mask == MaskKind::SlidingWindow);
  CHECK(nn::attention_kind("sliding:128").window == 128);
  for (const char* bad :
       {"", "sliding", "sliding:", "sliding:-1", "sliding:2x", "Causal", "sliding:99999999999999999999"})
    CHECK(contains(error_text([&] { nn::attention_kind(bad); }), "is not a kind of attention mask"));
}

TEST_CASE("nn::axial_rope2d turns the halves of a head by column and row") {
  nn::AxialRope2d form{3, 2, 8, 2, 100, 2};
  const Tensor x = wave_of({2, 12, 16}, 0.7);
  Graph g;
  const Expr in = g.constant(x);
  g.set_outputs({nn::axial_rope2d(in, form)});
  std::vector<double> want(static_cast<std::size_t>(x.num_elements()));
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t token = 0; token < 12; ++token)
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t half = 0; half < 2; ++half)
          for (std::int64_t c = 0; c < 2; ++c) {
            const std::int64_t place = token / 2, first = (n * 12 + token) * 16 + h * 8 + half * 4 + 2 * c;
            const double angle = static_cast<double>(half == 0 ? place % 3 : place / 3) *
                                 std::pow(100.0, -4.0 * static_cast<double>(c) / 8);
            const double u = x.at(first), v = x.at(first + 1);
            want[static_cast<std::size_t>(first)] = u * std::cos(angle) - v * std::sin(angle);
            want[static_cast<std::size_t>(first + 1)] = v * std::cos(angle) + u * std::sin(angle);
          }
  expect_close(evaluate(g)[0], want, 1e-14);
  const auto said = [&](nn::AxialRope2d f) { return error_text([&] { nn::axial_rope2d(in, f); }); };
  CHECK(contains(said({3, 2, 6, 2, 100, 2}), "head_dim must be a multiple of 4"));
  CHECK(contains(said({3, 2, 8, 2, -1, 2}), "theta must be a finite number above 0"));
  CHECK(contains(said({3, 3, 8, 2, 100, 2}), "for a grid of 3 x 3"));
  CHECK(contains(said({3, 0, 8, 2, 100, 2}), "in [1, 2^20]"));
}

TEST_CASE("nn::qwen35_mtp_head: both norms, the gated attention and the last token") {
  Graph g;
  double f = 0.3;
  const auto value = [&](std::vector<std::int64_t> dims) { return g.constant(wave_of(std::move(dims), f += 0.05)); };
  nn::Qwen35MtpHead h;
  h.embed = value({2, 3, 4}), h.hidden = value({2, 3, 4});
  h.embed_norm = value({4}), h.hidden_norm = value({4}), h.w_in = value({8, 4}), h.ln1 = value({4});
  h.w_q = value({4, 8}), h.w_k = value({4, 2}), h.w_v = value({4, 2}), h.w_o = value({4, 4});
  h.q_norm = value({2}), h.k_norm = value({2}), h.cos = value({3, 1}), h.sin = value({3, 1}), h.ln2 = value({4});
  h.w_gate = value({4, 5}), h.w_up = value({4, 5}), h.w_down = value({5, 4}), h.norm = value({4}),
  h.w_head = value({4, 6});
  h.num_heads = 2, h.kv_heads = 1, h.head_dim = 2;
  const Expr logits = nn::qwen35_mtp_head(h);
  // Head by head, with the columns of w_q in the order q of head 0, its gate, q of head 1, its gate.
  const auto norm = [&](Expr e, Expr gamma) { return g.rms_norm(e, gamma); };
  const Expr x = g.matmul(g.concat({norm(h.embed, h.embed_norm), norm(h.hidden, h.hidden_norm)}, 2), h.w_in),
             n = norm(x, h.ln1);
  const auto turned = [&](Expr e, Expr gamma) { return nn::rope_n(norm(e, gamma), h.cos, h.sin, 2, 2); };
  const Expr q = g.matmul(n, h.w_q), k = turned(g.matmul(n, h.w_k), h.k_norm), v = g.matmul(n, h.w_v);
  std::vector<Expr> outs;
  for (std::int64_t i = 0; i < 2; ++i) {
    ops::Attention one{1, 1, 2, MaskKind::Causal, 0, {}, {}, HeadLayout::Merged};
    const Expr seen = g.attention(turned(g.narrow(q, 2, 4 * i, 2), h.q_norm), k, v, one);
    outs.push_back(seen * g.sigmoid(g.narrow(q, 2, 4 * i + 2, 2)));
  }
  const Expr s = x + g.matmul(g.concat(outs, 2), h.w_o), m = norm(s, h.ln2);
  const Expr out = s + g.matmul(g.silu(g.matmul(m, h.w_gate)) * g.matmul(m, h.w_up), h.w_down);
  g.set_outputs({logits, g.matmul(norm(g.squeeze(g.narrow(out, 1, 2, 1), 1), h.norm), h.w_head)});
  const auto got = evaluate(g);
  expect_close(got[0], got[1], 1e-13);
  CHECK(contains(error_text([] { nn::qwen35_mtp_head({}); }), "embed is missing"));
}

}  // namespace
}  // namespace rlx
