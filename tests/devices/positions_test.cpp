// Programs of 32 bits that rules count places for: they stay on the device.
#include <doctest/doctest.h>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/devices/test_device.h"
#include "tests/support/run_check.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

constexpr std::int64_t kRequests = 3, kPages = 8, kPage = 2, kHeads = 2, kKvHeads = 1, kDepth = 4, kSteps = 4;

using test::f32;
Shape i32(Dims dims) { return Shape(std::move(dims), DType::I32); }

Tensor ints(Dims dims, const std::vector<std::int32_t>& values) {
  Tensor t = Tensor::zeros(i32(std::move(dims)));
  for (std::size_t i = 0; i < values.size(); ++i) t.set_i64(static_cast<std::int64_t>(i), values[i]);
  return t;
}

// One token of each request a step: its key and value go into the pools, and it attends to all of its request.
Graph decode_loop() {
  Graph g("decode");
  const Expr table = g.input("table", i32({kRequests, 3}));
  const Expr starts = g.constant(ints({kRequests + 1}, {0, 1, 2, 3}));
  const Shape pool = f32({kPages, kPage, kKvHeads, kDepth});
  ops::PagedAttention op;
  op.num_heads = kHeads, op.kv_heads = kKvHeads, op.head_dim = kDepth, op.mask = MaskKind::Causal;
  const LoopResult r = g.scan(
      {g.input("k_pool", pool), g.input("v_pool", pool), g.input("kv_len", i32({kRequests}))},
      {g.input("q", f32({kSteps, kRequests, kHeads, kDepth})), g.input("k", f32({kSteps, kRequests, kKvHeads, kDepth})),
       g.input("v", f32({kSteps, kRequests, kKvHeads, kDepth}))},
      [&](Graph& body, const ExprList& carries, const ExprList& x) {
        const Expr at = carries[2];
        const Expr page = body.reshape(
            body.take_along_axis(table, body.reshape(body.div(at, static_cast<int>(kPage)), {kRequests, 1}), 1),
            {kRequests});
        const Expr slot = body.mod(at, static_cast<int>(kPage));
        const auto put = [&](Expr into, Expr rows) {
          return body.scatter(into, ExprList{page, slot}, rows, ops::Scatter{ScatterKind::Set, {0, 1}});
        };
        const Expr k = put(carries[0], x[1]), v = put(carries[1], x[2]), length = at + 1;
        const Expr y = body.paged_attention(x[0], k, v, table, length, starts, op);
        return LoopStep(ExprList{k, v, length}, ExprList{y});
      });
  g.set_outputs({r.ys[0], r.carries[0], r.carries[2]});
  return g;
}

void expect_on_device(const Graph& g, const NamedTensors& values) {
  CompiledGraph f = Session(test::test_device()).compile(Graph(g));
  CHECK_MESSAGE(test::host_part(f) == "", test::host_part(f));
  test::check_runs(f, g, values);
}

NamedTensors numbers_of(const Graph& g, NamedTensors values) {
  std::uint64_t seed = 3;
  for (NodeId id : g.leaves(OpKind::Input))
    if (!values.contains(g.leaf_name(id)))
      values.emplace(g.leaf_name(id), test::draw(g.shape(id), Fill::Unit, 1, seed++));
  return values;
}

}  // namespace

TEST_CASE("device: a decode loop over pages has no part on the host") {
  if (!test::device_here()) return;
  const Graph g = decode_loop();
  expect_on_device(g, numbers_of(g, {{"table", ints({kRequests, 3}, {5, 0, 2, 7, 3, 1, 4, 6, 0})},
                                     {"kv_len", ints({kRequests}, {0, 1, 2})}}));
}

TEST_CASE("device: a mask of new tokens, and starts that lie anywhere") {
  if (!test::device_here()) return;
  ops::PagedAttention op;
  op.num_heads = kHeads, op.kv_heads = kKvHeads, op.head_dim = kDepth, op.mask = MaskKind::Bias;
  Graph g("draft");
  const Shape pool = f32({kPages, kPage, kKvHeads, kDepth});
  const Expr y = g.paged_attention(g.input("q", f32({5, kHeads, kDepth})), g.input("k", pool), g.input("v", pool),
                                   g.input("table", i32({2, 3})), g.input("kv_len", i32({2})),
                                   g.input("starts", i32({3})), op, {.mask = g.input("mask", f32({5, 4}))});
  g.set_outputs({y, y.result(1)});
  const NamedTensors values = numbers_of(
      g,
      {{"table", ints({2, 3}, {5, 0, 2, 7, 3, 1})}, {"kv_len", ints({2}, {4, 6})}, {"starts", ints({3}, {0, 2, 5})}});
  expect_on_device(g, values);
  for (const std::vector<std::int32_t>& starts :
       {std::vector<std::int32_t>{-2147483647 - 1, 1, 2147483647}, {2147483647, -2147483647 - 1, 3}, {-3, 2, 9}}) {
    NamedTensors others = values;
    others.insert_or_assign("starts", ints({3}, starts));
    expect_on_device(g, others);
  }
}

TEST_CASE("device: gradients and batched forms that count places have no part on the host") {
  if (!test::device_here()) return;
  const auto gradient = [](const char* of, const std::function<Expr(Graph&, Expr)>& build, Dims dims) {
    CAPTURE(of);
    Graph g("places");
    g.set_outputs({build(g, g.input("x", f32(std::move(dims))))});
    const Graph d = vjp(g, {"x"}).graph;
    expect_on_device(d, numbers_of(d, {}));
  };
  gradient("sort", [](Graph& g, Expr x) { return g.sort(x, 1); }, {3, 7});
  gradient("top_k", [](Graph& g, Expr x) { return g.add(ops::TopK{3}, {x}); }, {3, 7});
  gradient("scatter",
           [](Graph& g, Expr x) {
             const Expr ids = g.constant(ints({5}, {1, 3, 1, 0, 9}));
             return g.scatter(g.constant(Tensor::full(f32({4, 2}), 1)), ExprList{ids}, x,
                              ops::Scatter{ScatterKind::Set, {0}, IndexMode::Drop});
           },
           {5, 2});
  gradient("take_along_axis",
           [](Graph& g, Expr x) {
             return g.take_along_axis(x, g.constant(ints({2, 2}, {1, -1, 0, 2})), 1);
           },
           {2, 3});
  Graph g("windows");
  const Expr at = g.input("at", i32({2}));
  g.set_outputs({g.dynamic_slice(g.input("x", f32({4, 5})), at, {2, 3}),
                 g.dynamic_update_slice(g.input("y", f32({4, 5})), g.input("z", f32({2, 3})), at)});
  const Graph batched = vmap(g, {{"x", 0}, {"y", 0}, {"z", 0}, {"at", 0}}, 3).graph;
  expect_on_device(batched, numbers_of(batched, {{"at", ints({3, 2}, {0, 1, 2, 2, 9, -4})}}));
}

TEST_CASE("device: places in extents that a run knows have no part on the host") {
  if (!test::device_here()) return;
  Graph g("symbolic");
  const Dim n = g.symbol("n", {.min = 1, .max = 64});
  const Expr x = g.input("x", f32({3, n}));
  g.set_outputs({g.sum(g.sort(x, 1) * x, {1}), g.sum(g.expand(g.sum(x, {1}, true), {3, n}), {1})});
  const Graph d = vjp(g, {"x"}).graph;
  CompileOptions options;
  options.symbol_modes.emplace("n", SymbolMode::runtime());
  CompiledGraph f = Session(test::test_device()).compile_with(Graph(d), options);
  CHECK_MESSAGE(test::host_part(f) == "", test::host_part(f));
  for (std::int64_t of : {1, 5, 33}) {
    const Graph bound = d.bind({{"n", of}});
    const NamedTensors values = numbers_of(bound, {});
    test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(bound, values));
  }
}

}  // namespace rlx
