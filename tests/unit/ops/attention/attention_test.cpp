// Attention and its cotangents against NumPy: masks, layouts, grouped heads, scale, softcap, masked rows.
#include <limits>

#include <doctest/doctest.h>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

ops::Attention heads_first(std::int64_t heads, std::int64_t kv_heads, MaskKind mask = MaskKind::None) {
  ops::Attention op;
  op.num_heads = heads, op.kv_heads = kv_heads, op.head_dim = 2, op.mask = mask, op.layout = HeadLayout::HeadsFirst;
  return op;
}
ops::AttentionBackward backward_of(const ops::Attention& op) {
  return {op.num_heads, op.kv_heads, op.head_dim, op.mask,       op.window,
          op.scale,     op.softcap,  op.layout,   op.v_head_dim, {}};
}
Tensor queries() { return sequence({1, 2, 2, 2}); }
Tensor keys() { return sequence({1, 2, 3, 2}, 0.8, 0.1); }
Tensor values() { return sequence({1, 2, 3, 2}, -0.5, 0.3); }

}  // namespace

TEST_CASE("attention without a mask") {
  auto y = run_op(heads_first(2, 2), {queries(), keys(), values()});
  expect_close(y[0], {0.6940346914, -0.0113267837, 0.6534529653, -0.0810196776, 0.283896718, 0.530283061, 0.1473992173,
                      0.4031010587});
}

TEST_CASE("scale and softcap change the scores") {
  auto op = heads_first(2, 2);
  op.scale = 0.3, op.softcap = 1.5;
  auto y = run_op(op, {queries(), keys(), values()});
  expect_close(y[0], {0.6185517679, 0.0569362964, 0.608349592, 0.0263218448, 0.3112594673, 0.4479179779, 0.2592178447,
                      0.397835091});
}

TEST_CASE("causal and window masks align the last query with the last key") {
  auto op = heads_first(2, 2, MaskKind::Causal);
  auto y = run_op(op, {queries(), keys(), values()});
  expect_close(y[0], {0.7670818903, -0.1079181097, 0.6534529653, -0.0810196776, 0.1541056195, 0.1672103927,
                      0.1473992173, 0.4031010587});
  op.mask = MaskKind::SlidingWindow, op.window = 1;
  y = run_op(op, {queries(), keys(), values()});
  expect_close(y[0], {0.7670818903, -0.1079181097, 0.4883756526, -0.160668407, 0.1541056195, 0.1672103927, 0.5733113178,
                      0.5295031525});
  op.window = std::numeric_limits<std::int64_t>::max();  // sees every key that a causal mask shows
  expect_close(run_op(op, {queries(), keys(), values()})[0],
               run_op(heads_first(2, 2, MaskKind::Causal), {queries(), keys(), values()})[0]);
}

TEST_CASE("one query against many keys sees all of them: decoding") {
  auto op = heads_first(1, 1, MaskKind::Causal), free = heads_first(1, 1);
  Tensor q = sequence({1, 1, 1, 2}), k = sequence({1, 1, 5, 2}), v = sequence({1, 1, 5, 2}, 0.5, 1);
  expect_close(run_op(op, {q, k, v})[0], run_op(free, {q, k, v})[0]);
}

TEST_CASE("more queries than keys: the first rows see nothing and give zeros with zero gradient") {
  auto op = heads_first(1, 1, MaskKind::Causal);
  Tensor q = sequence({1, 1, 3, 2}), k = sequence({1, 1, 2, 2}), v = sequence({1, 1, 2, 2}, 0.5, 1);
  Tensor y = run_op(op, {q, k, v})[0];
  expect_close(y.reshaped({6}).rows(0, 4), {0, 0, v.at(0), v.at(1)});
  auto d = run_op(backward_of(op), {q, k, v, Tensor::full(q.shape(), 1)});
  expect_close(d[0].reshaped({6}).rows(0, 2), {0, 0});
}

TEST_CASE("the layout is an attribute, not guessed from equal extents") {
  // Two queries and two heads: the meaning of [1, 2, 2, 2] depends on the layout.
  Tensor q = sequence({1, 2, 2, 2}), k = sequence({1, 2, 2, 2}, 0.8, 0.1), v = sequence({1, 2, 2, 2}, -0.5, 0.3);
  auto op = heads_first(2, 2);
  expect_close(run_op(op, {q, k, v})[0], {0.7670818903, -0.1079181097, 0.7079181097, -0.1670818903, 0.0073131346,
                                          0.5073131346, -0.0516886822, 0.4483113178});
  op.layout = HeadLayout::HeadsInner;
  const std::vector<double> inner{0.7783222619, 0.1722314484, 0.390402256,  -0.19200188,
                                  0.4168494855, 0.4734587621, 0.0248062791, 0.1126614341};
  expect_close(run_op(op, {q, k, v})[0], inner);
  op.layout = HeadLayout::Merged;
  expect_close(run_op(op, {q.reshaped({1, 2, 4}), k.reshaped({1, 2, 4}), v.reshaped({1, 2, 4})})[0], inner);
}

TEST_CASE("grouped heads: neighbouring query heads share a key head") {
  auto y = run_op(heads_first(4, 2), {sequence({1, 4, 1, 2}), keys(), values()});
  expect_close(y[0], {0.6940346914, -0.0113267837, 0.6534529653, -0.0810196776, 0.283896718, 0.530283061, 0.1473992173,
                      0.4031010587});
}

TEST_CASE("a custom mask of keys hides keys; a row without keys gives zeros") {
  auto op = heads_first(1, 1, MaskKind::Custom);
  Tensor q = sequence({2, 1, 1, 2}), k = sequence({2, 1, 3, 2}, 0.8, 0.1), v = sequence({2, 1, 3, 2}, -0.5, 0.3);
  const std::vector<double> expected{0.7783222619, 0.1722314484, 0.0, 0.0};
  const Tensor mask = doubles({2, 1, 1, 3}, {1, 0, 1, 0, 0, 0.49});
  expect_close(run_op(op, {q, k, v, mask})[0], expected);
  Tensor visible = Tensor::zeros(Shape({2, 1, 1, 3}, DType::Bool));
  visible.set_i64(0, 1);
  visible.set_i64(2, 1);
  expect_close(run_op(op, {q, k, v, visible})[0], expected);
  auto d = run_op(backward_of(op), {q, k, v, Tensor::full(q.shape(), 1), visible});
  for (int r = 0; r < 3; ++r)
    for (std::int64_t i = d[static_cast<std::size_t>(r)].num_elements() / 2;
         i < d[static_cast<std::size_t>(r)].num_elements(); ++i)
      CHECK(d[static_cast<std::size_t>(r)].at(i) == 0);
}

TEST_CASE("a custom mask of queries by keys is read as [.., S_q, S_k]") {
  auto op = heads_first(2, 2, MaskKind::Custom);
  Tensor lower = Tensor::zeros(Shape({1, 1, 2, 3}, DType::Bool));  // the keys that the causal mask shows
  for (int i : {0, 1, 3, 4, 5}) lower.set_i64(i, 1);
  const Tensor causal = run_op(heads_first(2, 2, MaskKind::Causal), {queries(), keys(), values()})[0];
  expect_close(run_op(op, {queries(), keys(), values(), lower})[0], causal);
  expect_close(run_op(op, {queries(), keys(), values(), lower.reshaped({1, 2, 3})})[0], causal);
  expect_close(run_op(op, {queries(), keys(), values(), lower.reshaped({2, 3})})[0], causal);
  // As many batch entries as queries: the axis is still that of the queries, for every entry.
  Tensor q = sequence({2, 2, 2, 2}), k = sequence({2, 2, 3, 2}, 0.8, 0.1), v = sequence({2, 2, 3, 2}, -0.5, 0.3);
  expect_close(run_op(op, {q, k, v, lower.reshaped({2, 3})})[0],
               run_op(heads_first(2, 2, MaskKind::Causal), {q, k, v})[0]);
}

namespace {

// `t` with NaN, inf and -inf in turn in row `j` of every [S, D].
Tensor spoilt(Tensor t, std::int64_t j) {
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(), kInf, -kInf};
  const std::int64_t rows = t.dim(2), depth = t.dim(3);
  for (std::int64_t i = 0; i < t.num_elements(); ++i)
    if (i / depth % rows == j) t.set(i, bad[(i + i / depth) % 3]);
  return t;
}

}  // namespace

TEST_CASE("what lies at a hidden key reaches no result and no gradient, by the rules and by the decomposition") {
  // Key 2 is hidden from all queries. With the causal mask key 1 is also hidden from the first of two queries.
  Tensor hide2 = Tensor::full(Shape({2, 3}, DType::Bool), 1), bias = Tensor::zeros(Shape({1, 3}, DType::F64));
  hide2.set_i64(2, 0), hide2.set_i64(5, 0), hide2.set_i64(1, 0);
  bias.set(2, -kInf);
  const Tensor dy = sequence({1, 2, 2, 2}, 0.5, 0.1);
  for (const std::optional<double> softcap : {std::optional<double>(), std::optional(1.5)}) {
    for (const Tensor& mask : {hide2, bias}) {
      auto op = heads_first(2, 2, mask.dtype() == DType::Bool ? MaskKind::Custom : MaskKind::Bias);
      op.softcap = softcap;
      const std::vector<Tensor> clean = run_op(op, {queries(), keys(), values(), mask}),
                                clean_d = run_op(backward_of(op), {queries(), keys(), values(), dy, mask});
      for (int bits = 1; bits < 4; ++bits) {
        const Tensor k = bits & 1 ? spoilt(keys(), 2) : keys(), v = bits & 2 ? spoilt(values(), 2) : values();
        expect_close(run_op(op, {queries(), k, v, mask})[0], clean[0]);
        const std::vector<Tensor> d = run_op(backward_of(op), {queries(), k, v, dy, mask});
        for (std::size_t r = 0; r < d.size(); ++r) expect_close(d[r], clean_d[r]);
        for (std::int64_t i = 0; i < d[1].num_elements(); ++i)
          if (i / 2 % 3 == 2) CHECK((d[1].at(i) == 0 && d[2].at(i) == 0));
      }
    }
    // A key that one query sees and the other does not: the row of the other query and its cotangents stay.
    auto op = heads_first(2, 2, MaskKind::Custom);
    op.softcap = softcap;
    Graph g;
    std::vector<Expr> in;
    for (const Tensor& t : {queries(), keys(), values(), hide2})
      in.push_back(g.input("in" + std::to_string(in.size()), t.shape()));
    g.set_outputs(decompose_into(g, op, in, FusionPolicy::Fusable));
    const Tensor v = spoilt(values(), 1), y = run(op, {queries(), keys(), v, hide2}),
                 clean = run(op, {queries(), keys(), values(), hide2}),
                 by_parts = evaluate(g, {{"in0", queries()}, {"in1", keys()}, {"in2", v}, {"in3", hide2}})[0];
    for (std::int64_t i = 0; i < y.num_elements(); ++i) {
      CAPTURE(i);
      if (i / 2 % 2 == 0) {
        CHECK(y.at(i) == clean.at(i));
      } else {
        const double bad = v.at((i / 4 * 3 + 1) * 2 + i % 2);  // the result of the weights of two keys
        CHECK((std::isnan(bad) ? std::isnan(y.at(i)) : y.at(i) == bad));
      }
      CHECK((std::isnan(y.at(i)) ? std::isnan(by_parts.at(i))
                                 : std::fabs(y.at(i) - by_parts.at(i)) < 1e-12 || y.at(i) == by_parts.at(i)));
    }
  }
}

TEST_CASE("a key of score -inf that is seen has its part in the NaN of its row, a hidden one has none") {
  auto op = heads_first(1, 1, MaskKind::Custom);
  const Tensor q = doubles({1, 1, 1, 2}, {1, 1}), v = doubles({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor mask = Tensor::full(Shape({1, 3}, DType::Bool), 1);
  mask.set_i64(2, 0);
  for (const double beside : {std::numeric_limits<double>::quiet_NaN(), 0.5}) {
    const Tensor k = doubles({1, 1, 3, 2}, {-kInf, 0, beside, 0, -kInf, 0});
    Graph g;
    std::vector<Expr> in;
    for (const Tensor& t : {q, k, v, q, mask}) in.push_back(g.input("in" + std::to_string(in.size()), t.shape()));
    g.set_outputs(decompose_into(g, OpBox(backward_of(op)), in, FusionPolicy::Fusable));
    const Tensor by_rule = run_op(backward_of(op), {q, k, v, q, mask})[2],
                 by_parts = evaluate(g, {{"in0", q}, {"in1", k}, {"in2", v}, {"in3", q}, {"in4", mask}})[2];
    for (const Tensor& dv : {by_rule, by_parts})
      for (std::int64_t i = 0; i < 6; ++i)
        CHECK((i < 4 && std::isnan(beside) ? std::isnan(dv.at(i)) : dv.at(i) == (i / 2 == 1 ? 1 : 0)));
  }
}

TEST_CASE("where it may branch, the decomposition of many keys tells NaN apart only in runs whose values hold some") {
  const auto op = heads_first(2, 2, MaskKind::Causal);
  for (const std::int64_t n : {3, 128}) {
    const Tensor k = sequence({1, 2, n, 2}, 0.8, 0.1), v = sequence({1, 2, n, 2}, -0.5, 0.3);
    std::vector<Graph> forms;
    for (const bool may_branch : {false, true}) {
      Graph g;
      std::vector<Expr> in;
      for (const Tensor& t : {queries(), k, v}) in.push_back(g.input("in" + std::to_string(in.size()), t.shape()));
      g.set_outputs(decompose_into(g, op, in, FusionPolicy::Fusable, may_branch));
      std::size_t branches = 0;
      for (const Node& node : g.nodes()) branches += node.kind() == OpKind::If;
      CHECK(branches == (may_branch && n == 128 ? 1 : 0));
      forms.push_back(std::move(g));
    }
    // The last key is hidden from the first of two queries.
    for (const Tensor& values : {v, spoilt(v, n - 1), spoilt(v, 0)}) {
      const NamedTensors in{{"in0", queries()}, {"in1", k}, {"in2", values}};
      const std::vector<Tensor> plain = evaluate(forms[0], in), branched = evaluate(forms[1], in),
                                rule = run_op(op, {queries(), k, values});
      for (std::size_t r = 0; r < plain.size(); ++r)
        for (std::int64_t i = 0; i < plain[r].num_elements(); ++i) {
          const double a = plain[r].at(i), b = branched[r].at(i), c = rule[r].at(i);
          CHECK((std::isnan(a) ? std::isnan(b) && std::isnan(c) : a == b && (a == c || std::fabs(a - c) < 1e-12)));
        }
    }
  }
}

TEST_CASE("fully masked rows: q, k and v may hold anything, in every dtype on the cpu as by the rules") {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16}) {
    for (const MaskKind kind : {MaskKind::Custom, MaskKind::Bias, MaskKind::Causal, MaskKind::SlidingWindow}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(static_cast<int>(kind));
      Graph g;
      Expr q = g.input("q", Shape({1, 2, 3, 2}, dtype)), k = g.input("k", Shape({1, 2, 2, 2}, dtype)),
           v = g.input("v", Shape({1, 2, 2, 2}, dtype)), dy = g.input("dy", Shape({1, 2, 3, 2}, dtype));
      auto op = heads_first(2, 2, kind);
      // More queries than keys: with the causal mask the first query sees no key.
      Tensor mask = doubles({3, 2}, {0, 0, 1, 0, 1, 0});
      if (kind == MaskKind::Bias)
        for (std::int64_t i = 0; i < 6; ++i) mask.set(i, mask.at(i) != 0 ? 0.0 : -kInf);
      std::vector<Value> operands{q, k, v, dy};
      std::optional<Operand> m;
      NamedTensors in{{"k", spoilt(sequence({1, 2, 2, 2}), 1).cast(dtype)},
                      {"v", spoilt(sequence({1, 2, 2, 2}), 1).cast(dtype)},
                      {"q", spoilt(sequence({1, 2, 3, 2}), 0).cast(dtype)},
                      {"dy", sequence({1, 2, 3, 2}).cast(dtype)}};
      if (kind == MaskKind::Custom || kind == MaskKind::Bias) {
        Expr x = g.input("m", Shape({3, 2}, dtype));
        m = x, operands.push_back(x);
        in["m"] = mask.cast(dtype);
      }
      Expr d = g.add(backward_of(op), operands);
      g.set_outputs({g.attention(q, k, v, op, m), d, d.result(1), d.result(2)});
      for (const bool reference : {false, true}) {
        const std::vector<Tensor> out =
            (reference ? Session::on_backend("reference") : Session(Device::Cpu)).compile(Graph(g)).run_typed(in);
        for (const Tensor& t : {out[0], out[1]})
          for (std::int64_t i = 0; i < t.num_elements(); ++i)
            if (i / 2 % 3 == 0) CHECK(t.at(i) == 0);
        // The last key: no query sees it under a mask that hides it; the last query sees it under the others.
        if (m)
          for (const Tensor& t : {out[2], out[3]})
            for (std::int64_t i = 0; i < t.num_elements(); ++i)
              CHECK((i / 2 % 2 == 1 ? t.at(i) == 0 : std::isfinite(t.at(i))));
      }
    }
  }
}

TEST_CASE("a bias is added to the scores and may hold -inf") {
  Tensor bias = sequence({1, 2, 2, 3});
  for (int i : {0, 1, 2, 9}) bias.set(i, -kInf);
  auto y = run_op(heads_first(2, 2, MaskKind::Bias), {queries(), keys(), values(), bias});
  expect_close(y[0], {0.0, 0.0, 0.7842499311, -0.0581343639, 0.0310243385, 0.3321467204, 0.6650321207, 0.2849143449});
}

TEST_CASE("attention_backward with scale, softcap and a causal mask") {
  auto op = heads_first(2, 2, MaskKind::Causal);
  op.scale = 0.7, op.softcap = 1.2;
  auto d = run_op(backward_of(op), {queries(), keys(), values(), sequence({1, 2, 2, 2}, 0.5, 0.1)});
  expect_close(d[0], {0.0031198, 0.0062975, 0.0158581, -0.0510317, -0.0788949, 0.0262877, -0.0890525, -0.0170431},
               2e-7);
  expect_close(d[1],
               {0.0046578, 0.0049836, 0.0043119, -0.0333661, -0.021144, 0.05286, -0.0784379, 0.0394554, 0.0487159,
                -0.0338019, 0.0408094, 0.0},
               2e-7);
  expect_close(d[2],
               {-0.3492595, 0.4815192, -0.3073199, 0.5044481, -0.0184206, 0.0890328, 0.4635371, -0.1222997, 0.1941119,
                -0.0805922, 0.167351, 0.0278918},
               2e-7);
}

TEST_CASE("attention_backward gives the cotangent of a bias, zero where it is -inf") {
  Tensor bias = sequence({1, 2, 2, 3});
  for (int i : {0, 1, 2, 9}) bias.set(i, -kInf);
  auto d = run_op(backward_of(heads_first(2, 2, MaskKind::Bias)),
                  {queries(), keys(), values(), sequence({1, 2, 2, 2}, 0.5, 0.1), bias});
  REQUIRE(d.size() == 4);
  expect_close(d[0], {0.0, 0.0, -0.0094895, -0.0324752, -0.0393643, 0.0247585, -0.0122175, 0.0325801}, 2e-7);
  expect_close(d[1],
               {-0.013132, 0.0328299, 0.018356, -0.0458899, -0.005224, 0.01306, -0.0054691, 0.0164072, 0.0276492,
                -0.0218601, -0.0221802, 0.0054529},
               2e-7);
  expect_close(d[2],
               {-0.097258, 0.4700806, -0.0491839, 0.2377221, -0.0035581, 0.0171974, 0.1613574, -0.1972146, 0.416595,
                0.024233, 0.2470476, -0.0020184},
               2e-7);
  expect_close(
      d[3],
      {0.0, 0.0, 0.0, 0.0371428, -0.0519185, 0.0147757, -0.0309377, 0.0412197, -0.010282, 0.0, 0.028797, -0.028797},
      2e-7);
}

TEST_CASE("fused_attention_block splits q, k, v in that order, with and without biases") {
  ops::FusedAttentionBlock op;
  op.num_heads = 2, op.kv_heads = 1, op.head_dim = 2, op.mask = MaskKind::Causal, op.has_bias = true;
  Tensor x = sequence({1, 2, 3}), w_qkv = sequence({3, 8}, 0.4), w_out = sequence({4, 2}, 0.6),
         b_qkv = sequence({8}, 0.2);
  auto y = run_op(op, {x, w_qkv, w_out, b_qkv, doubles({2}, {0.1, -0.3})});
  expect_close(y[0], {-0.035, -0.3675, -0.337073621, -0.4195709049});
  op.has_bias = false;
  Tensor zero8 = Tensor::zeros(b_qkv.shape()), zero2 = Tensor::zeros(Shape({2}, DType::F64));
  auto plain = run_op(op, {x, w_qkv, w_out})[0];
  op.has_bias = true;
  expect_close(plain, run_op(op, {x, w_qkv, w_out, zero8, zero2})[0]);
}

TEST_CASE("attention shape rules name what does not fit") {
  const Shape q({1, 2, 3, 2}, DType::F32), k({1, 2, 4, 2}, DType::F32);
  auto op = heads_first(2, 2);
  CHECK(infer_error(op, {q, k, k}).empty());
  CHECK(contains(infer_error(op, {q, k, q}), "the same number of rows"));
  CHECK(contains(infer_error(op, {q, k, k, k}), "got 4 operands, takes (q, k, v)"));
  CHECK(contains(infer_error(heads_first(2, 2, MaskKind::Custom), {q, k, k}), "got 3 operands, takes (q, k, v, mask)"));
  // q [1, 2, 3, 2], k [1, 2, 4, 2]: a mask of rank 2 is [3, 4].
  CHECK(infer_error(heads_first(2, 2, MaskKind::Custom), {q, k, k, Shape({3, 4}, DType::Bool)}).empty());
  const Shape q2({2, 2, 3, 2}, DType::F32), k2({2, 2, 4, 2}, DType::F32);
  const std::string keys_only =
      infer_error(heads_first(2, 2, MaskKind::Custom), {q2, k2, k2, Shape({2, 4}, DType::Bool)});
  CHECK(contains(keys_only, "must broadcast to [B, H, S_q, S_k] = [2, 2, 3, 4]"));
  CHECK(contains(keys_only, "g.reshape(mask, [2, 1, 1, 4])"));
  CHECK_FALSE(
      contains(infer_error(heads_first(2, 2, MaskKind::Custom), {q2, k2, k2, Shape({5, 4}, DType::Bool)}), "reshape"));
  CHECK(contains(infer_error(heads_first(2, 2, MaskKind::Custom), {q, k, k, Shape({1, 4}, DType::I32)}),
                 "must be Bool or float"));
  CHECK(
      contains(infer_error(heads_first(2, 2, MaskKind::Bias), {q, k, k, Shape({1, 4}, DType::Bool)}), "must be float"));
  CHECK(contains(infer_error(heads_first(3, 2), {q, k, k}), "must divide"));
  CHECK(contains(infer_error(heads_first(0, 0), {q, k, k}), "at least 1"));
  CHECK(contains(infer_error(heads_first(4, 2), {q, k, k}), "cannot be split into 4 heads"));
  op.softcap = 0.0;
  CHECK(contains(infer_error(op, {q, k, k}), "softcap"));
  op = heads_first(1, 1, MaskKind::SlidingWindow);
  op.window = -1;
  CHECK(contains(infer_error(op, {q, k, k}), "window"));
  op = heads_first(std::int64_t{1} << 62, 1);
  op.layout = HeadLayout::Merged;
  CHECK_FALSE(infer_error(op, {Shape({1, 2, 4}, DType::F32), k, k}).empty());
}

namespace {

// The names of the inputs of an attention node after q, k, v, and the lengths of each batch entry.
Tensor lengths_of(const std::vector<std::int32_t>& n) {
  return Tensor::of<std::int32_t>({static_cast<std::int64_t>(n.size())}, n);
}
constexpr std::uint32_t kKvLen = 1U << 4, kQLen = 1U << 5, kSinks = 1U << 6;

// Rows [0, n) of axis 2 of entry b of [B, H, S, D], as [1, H, n, D].
Tensor part(const Tensor& t, std::int64_t b, std::int64_t n) {
  const std::int64_t heads = t.dim(1), rows = t.dim(2), depth = t.dim(3);
  Tensor out = Tensor::zeros(Shape({1, heads, n, depth}, t.dtype()));
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < n * depth; ++i) out.set(h * n * depth + i, t.at((b * heads + h) * rows * depth + i));
  return out;
}

// `t` [B, H, S, D] with NaN in the rows of each entry from its length on.
Tensor spoilt_behind(Tensor t, const std::vector<std::int32_t>& n) {
  const std::int64_t rows = t.dim(2), depth = t.dim(3), per_entry = t.dim(1) * rows * depth;
  for (std::int64_t i = 0; i < t.num_elements(); ++i)
    if (i / depth % rows >= n[static_cast<std::size_t>(i / per_entry)])
      t.set(i, std::numeric_limits<double>::quiet_NaN());
  return t;
}

}  // namespace

TEST_CASE("lengths: each entry is the attention of the part that is there, and what lies behind may hold anything") {
  const std::vector<std::int32_t> kv{5, 3, 1, 0}, qs{2, 3, 0, 1};
  const Tensor q = sequence({4, 2, 3, 2}), k = sequence({4, 2, 5, 2}, 0.8, 0.1), v = sequence({4, 2, 5, 2}, -0.5, 0.3);
  for (const MaskKind kind : {MaskKind::None, MaskKind::Causal, MaskKind::SlidingWindow}) {
    CAPTURE(static_cast<int>(kind));
    auto op = heads_first(2, 2, kind);
    op.window = kind == MaskKind::SlidingWindow ? 1 : 0;
    auto whole = op;
    whole.present.bits = kKvLen | kQLen;
    const auto got = run_op(
        whole, {spoilt_behind(q, qs), spoilt_behind(k, kv), spoilt_behind(v, kv), lengths_of(kv), lengths_of(qs)});
    for (std::int64_t b = 0; b < 4; ++b) {
      CAPTURE(b);
      const std::int64_t n = qs[static_cast<std::size_t>(b)], m = kv[static_cast<std::size_t>(b)];
      const auto alone = evaluate_op(op, std::vector<Tensor>{part(q, b, n), part(k, b, m), part(v, b, m)});
      expect_close(part(got[0], b, n), alone[0]);
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t i = 0; i < 3; ++i) {
          const double lse = got[1].at((b * 2 + h) * 3 + i);
          if (i < n) {
            const double one = alone[1].at(h * n + i);
            CHECK((lse == one || std::fabs(lse - one) < 1e-12));
          } else {
            CHECK(lse == -kInf);
            for (int d = 0; d < 2; ++d) CHECK(got[0].at(((b * 2 + h) * 3 + i) * 2 + d) == 0);
          }
        }
    }
    // The cotangents: those of the parts, and zero beyond the lengths, whatever the operands hold there.
    auto back = backward_of(whole);
    back.present.bits = 1U << 5 | 1U << 6;  // its operands start with q, k, v, dy
    const Tensor dy = sequence({4, 2, 3, 2}, 0.5, 0.1);
    const auto d = run_op(back, {spoilt_behind(q, qs), spoilt_behind(k, kv), spoilt_behind(v, kv),
                                 spoilt_behind(dy, qs), lengths_of(kv), lengths_of(qs)});
    for (std::int64_t b = 0; b < 4; ++b) {
      const std::int64_t n = qs[static_cast<std::size_t>(b)], m = kv[static_cast<std::size_t>(b)];
      const auto alone = evaluate_op(backward_of(op),
                                     std::vector<Tensor>{part(q, b, n), part(k, b, m), part(v, b, m), part(dy, b, n)});
      expect_close(part(d[0], b, n), alone[0]);
      expect_close(part(d[1], b, m), alone[1]);
      expect_close(part(d[2], b, m), alone[2]);
    }
    for (int r = 0; r < 3; ++r)
      for (std::int64_t i = 0; i < d[static_cast<std::size_t>(r)].num_elements(); ++i)
        CHECK(std::isfinite(d[static_cast<std::size_t>(r)].at(i)));
  }
}

TEST_CASE("lengths beyond the extents and below nothing are clamped") {
  auto op = heads_first(2, 2, MaskKind::Causal);
  op.present.bits = kKvLen | kQLen;
  const auto at = [&](std::int32_t kv, std::int32_t qn) {
    return run_op(op, {queries(), keys(), values(), lengths_of({kv}), lengths_of({qn})})[0];
  };
  expect_close(at(2147483647, 100), at(3, 2));
  expect_close(at(3, 2), run_op(heads_first(2, 2, MaskKind::Causal), {queries(), keys(), values()})[0]);
  expect_close(at(-7, 2), Tensor::zeros(queries().shape()));
  expect_close(at(3, -2147483647 - 1), Tensor::zeros(queries().shape()));
}

TEST_CASE("log-sum-exp and sinks: a sink is a key of that score without a value") {
  auto op = heads_first(2, 2, MaskKind::Causal);
  op.softcap = 1.2;
  const auto plain = run_op(op, {queries(), keys(), values()});
  auto with = op;
  with.present.bits = kSinks;
  const Tensor sinks = doubles({2}, {0.7, -kInf});
  const auto got = run_op(with, {queries(), keys(), values(), sinks});
  for (std::int64_t i = 0; i < 4; ++i) {  // [1, 2 heads, 2 queries]
    const double lse = plain[1].at(i), sink = sinks.at(i / 2), sum = std::exp(lse) + std::exp(sink);
    CHECK(got[1].at(i) == doctest::Approx(std::log(sum)).epsilon(1e-12));
    for (std::int64_t d = 0; d < 2; ++d)
      CHECK(got[0].at(i * 2 + d) == doctest::Approx(plain[0].at(i * 2 + d) * std::exp(lse) / sum).epsilon(1e-12));
  }
  // A row that sees no key gives zeros, and the score of the sink as lse; a row beyond q_len gives lse -inf.
  with.softcap.reset();
  with.present.bits = kKvLen | kQLen | kSinks;
  const auto none = run_op(with, {queries(), keys(), values(), lengths_of({0}), lengths_of({1}), sinks});
  expect_close(none[0], Tensor::zeros(queries().shape()));
  expect_close(none[1], {0.7, -kInf, -kInf, -kInf});
  // One number per head and batch entry.
  const Tensor q = sequence({2, 2, 2, 2}), k = sequence({2, 2, 3, 2}, 0.8, 0.1), v = sequence({2, 2, 3, 2}, -0.5, 0.3);
  with.present.bits = kSinks;
  const auto own = run_op(with, {q, k, v, doubles({2, 2}, {0.7, -1, 0.2, 3})});
  for (std::int64_t b = 0; b < 2; ++b) {
    const Tensor one = doubles({2}, b == 0 ? std::vector<double>{0.7, -1} : std::vector<double>{0.2, 3});
    const auto alone = run_op(with, {part(q, b, 2), part(k, b, 3), part(v, b, 3), one});
    expect_close(part(own[0], b, 2), alone[0]);
  }
}

TEST_CASE("values may have another size than keys, and keys another dtype than queries") {
  auto op = heads_first(2, 2, MaskKind::Causal);
  op.v_head_dim = 3;
  const Tensor v = sequence({1, 2, 3, 3}, -0.5, 0.3);
  const auto y = run_op(op, {queries(), keys(), v});
  CHECK(y[0].shape() == Shape({1, 2, 2, 3}, DType::F64));
  // Column d of the result depends on column d of v alone.
  auto one = heads_first(2, 2, MaskKind::Causal);
  one.v_head_dim = 1;
  for (std::int64_t d = 0; d < 3; ++d) {
    Tensor column = Tensor::zeros(Shape({1, 2, 3, 1}, DType::F64));
    for (std::int64_t i = 0; i < 6; ++i) column.set(i, v.at(i * 3 + d));
    const Tensor c = run_op(one, {queries(), keys(), column})[0];
    for (std::int64_t i = 0; i < 4; ++i) CHECK(y[0].at(i * 3 + d) == doctest::Approx(c.at(i)).epsilon(1e-12));
  }
  op.v_head_dim.reset();
  const Tensor k16 = keys().cast(DType::BF16), v16 = values().cast(DType::BF16);
  const auto stored = run_op(op, {queries().cast(DType::F32), k16, v16}, 1e-6);
  CHECK(stored[0].dtype() == DType::F32);
  expect_close(stored[0],
               run_op(op, {queries().cast(DType::F32), k16.cast(DType::F32), v16.cast(DType::F32)}, 1e-6)[0]);
}

TEST_CASE("attention shape rules name lengths, sinks and sizes of values that do not fit") {
  const Shape q({1, 2, 3, 2}, DType::F32), k({1, 2, 4, 2}, DType::F32), n({1}, DType::I32);
  auto op = heads_first(2, 2);
  op.present.bits = kKvLen;
  CHECK(infer_error(op, {q, k, k, n}).empty());
  CHECK(contains(infer_error(op, {q, k, k, Shape({2}, DType::I32)}), "kv_len must be [1], got [2] i32"));
  CHECK(contains(infer_error(op, {q, k, k, Shape({1}, DType::I64)}), "kv_len must be I32"));
  CHECK(contains(infer_error(op, {q, k, k, Shape({1}, DType::I64)}), "cast it to I32"));
  CHECK(contains(infer_error(op, {q, k, k}), "takes (q, k, v, kv_len)"));
  op.present.bits = kSinks;
  CHECK(infer_error(op, {q, k, k, Shape({2}, DType::F32)}).empty());
  CHECK(infer_error(op, {q, k, k, Shape({1, 2}, DType::F32)}).empty());
  CHECK(contains(infer_error(op, {q, k, k, Shape({3}, DType::F32)}), "sinks must be [2] or [1, 2], got [3] f32"));
  CHECK(contains(infer_error(op, {q, k, k, n}), "sinks must be float"));
  op.present.bits = 0;
  CHECK(contains(infer_error(op, {q, k, Shape({1, 2, 4, 2}, DType::F16)}), "f16"));
  op.v_head_dim = 3;
  CHECK(contains(infer_error(op, {q, k, k}), "v [1, 2, 4, 2] f32 cannot be split into 2 heads of 3 elements"));
  op.v_head_dim = 0;
  CHECK(contains(infer_error(op, {q, k, k}), "v_head_dim"));
  op.v_head_dim.reset();
  op.present.bits = 1U << 9;
  CHECK_FALSE(infer_error(op, {q, k, k}).empty());
}
