// Builder functions of several ops: their nodes and errors have the line of the user's call.
#include <doctest/doctest.h>

#include <string_view>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::f32;

bool of_this_file(const Origin& o) { return std::string_view(o.loc.file).ends_with("builder_places_test.cpp"); }

void check_places(const Graph& g) {
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Origin& origin = g.nodes()[i].origin;
    CHECK_MESSAGE(of_this_file(origin), node_where(g, NodeId{i}));
    for (const Subgraph& body : body_graphs(g.nodes()[i].op)) check_places(*body);
  }
}

const std::string kHere = "builder_places_test.cpp:";
std::string built_on(int line) { return concat_text(kHere, line); }

}  // namespace

TEST_CASE("builder places: every node of a composed function is built at the call") {
  Graph g("composed");
  const Expr x = g.input("x", f32({4, 6})), mask = g.input("mask", Shape({4}, DType::Bool));
  const Expr n = g.input("n", Shape({}, DType::I64)), at = g.input("at", Shape({4}, DType::I32));
  const Expr key = g.rng_key(7), pair = g.input("pair", Shape({3, 2}, DType::I64));
  std::vector<Value> outputs{
      g.first(x, n),
      g.compress(x, mask),
      g.nonzero(x),
      g.nonzero(mask),
      g.take(x, at, 0),
      g.take_along_axis(x, g.input("i", Shape({4, 1}, DType::I64)), 1),
      g.put_along_axis(x, g.input("j", Shape({4, 2}, DType::I32)), 1.0, 1),
      g.gather_nd(x, pair),
      g.gather_nd(x, g.input("b", Shape({4, 1}, DType::I64)), 1),
      g.scatter_nd(x, pair, g.input("u", f32({3}))),
      g.argsort(x),
      g.rng_split(key),
      g.rng_fold_in(key, n),
      g.rng_uniform(key, {3}),
      g.rng_uniform(key, {3}, DType::F64, -1, 2),
      g.rng_normal(key, {3}),
      g.rng_bernoulli(key, 0.5, {3}),
      g.sample(x, g.input("keys", Shape({4, 2}, DType::U32)), {.temperature = 0.5, .top_k = 2}).token,
      g.where(x, 1, x),
      g.clamp(x, 0, 1),
      g.pad(x, {0, 0}, {1, 1}),
      g.layer_norm(x, g.input("gamma", f32({6}))),
      g.linear(x, g.input("w", f32({6, 2})), g.input("bias", Shape({2}, DType::F64))),
      g.dequant_matmul(x, g.input("codes", Shape({6, 3}, DType::I8)), 0.5),
      x / 2 + 1};
  const ExprList ragged = g.cond_ragged(
      g.gt(g.sum(x), 0), {x}, [](Graph& b, const ExprList& in) { return ExprList{b.narrow(in[0], 0, 0, 2)}; },
      [](Graph& b, const ExprList& in) { return ExprList{b.narrow(in[0], 0, 0, 3)}; });
  outputs.push_back(ragged[0]);
  const LoopResult cut = g.while_loop(
      g.scalar(0, DType::I32), [&](Graph& b, const ExprList& c) { return b.lt(c[0], g.cast(n, DType::I32)); },
      [](Graph&, const ExprList& c) {
        return LoopStep{c[0] + 1, c[0]};
      },
      {.max_iterations = 5, .truncate_ys = true});
  outputs.push_back(cut.ys[0]);
  g.set_outputs(outputs);
  check_places(g);
}

TEST_CASE("builder places: vmap over what a computed extent depends on names the call that made it") {
  Graph g("picked");
  const Expr x = g.input("x", f32({4})), mask = g.input("mask", Shape({4}, DType::Bool));
  const int line = __LINE__ + 1;
  g.set_outputs({g.compress(x, mask)});
  const std::string text = error_text([&] { vmap(g, {{"mask", 0}}, 3); });
  CHECK_MESSAGE(contains(text, "depends on the batch: examples would differ in shape"), text);
  CHECK_MESSAGE(contains(text, built_on(line)), text);
  CHECK_MESSAGE(!contains(text, "builder_by_value"), text);
}

TEST_CASE("builder places: an operand that may be left out, of another graph, is an error at the call") {
  Graph other("other"), g("g");
  const Expr stray = other.input("s", f32({}));
  const Expr x = g.input("x", f32({2, 4})), keys = g.input("keys", Shape({2, 2}, DType::U32));
  const Expr codes = g.input("codes", Shape({4, 4}, DType::I8)), q = g.input("q", f32({1, 1, 2, 4}));
  const auto refused_at = [&](int line, const auto& call) {
    const std::string text = error_text(call);
    CHECK_MESSAGE(contains(text, "belongs to graph 'other', not to 'g'"), text);
    CHECK_MESSAGE(contains(text, built_on(line)), text);
  };
  refused_at(__LINE__, [&] { g.sample(x, keys, {.temperature = stray}); });
  refused_at(__LINE__, [&] { g.sample(x, keys, {.mask_bits = stray}); });
  refused_at(__LINE__, [&] { g.layer_norm(x, stray); });
  refused_at(__LINE__, [&] { g.rms_norm(x, std::nullopt, stray); });
  refused_at(__LINE__, [&] { g.attention(q, q, q, ops::Attention{}, stray); });
  refused_at(__LINE__, [&] { g.attention(q, q, q, ops::Attention{}, {.kv_len = stray}); });
  refused_at(__LINE__, [&] { g.quantize(x, 0.5, ops::Quantize{}, stray); });
  refused_at(__LINE__, [&] { g.dequantize(codes, stray); });
  refused_at(__LINE__, [&] { g.fake_quantize(x, ops::FakeQuantize{}, stray); });
  refused_at(__LINE__, [&] { g.dequant_matmul(x, codes, stray); });
  refused_at(__LINE__, [&] { g.linear(x, g.input(concat_text("w", g.num_nodes()), f32({4, 4})), stray); });
}

}  // namespace rlx
