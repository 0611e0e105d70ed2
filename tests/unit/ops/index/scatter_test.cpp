// General gather and scatter: several axes, every function and mode, the NumPy and ONNX builders, derivatives of
// updates to the same element, in-place updates.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::doubles;
using test::error_text;
using test::expect_close;
using test::infer_error;
using test::run;

using test::ints;

const Tensor k3x4 = doubles({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});

TEST_CASE("gather along several axes picks elements; other axes stay around the indices") {
  const ops::Gather both{{0, 1}};
  expect_close(run(both, {k3x4, ints({3}, {0, 2, 1}), ints({3}, {3, 0, 1})}), {3, 8, 5}, 0);
  expect_close(run(both, {k3x4, ints({2}, {-1, 9}), ints({2}, {9, -1})}), {3, 8}, 0);  // clamped, not wrapped
  const ops::Gather filled{{0, 1}, IndexMode::Fill, -7};
  expect_close(run(filled, {k3x4, ints({3}, {-1, 1, 3}), ints({3}, {0, 1, 0})}), {-7, 5, -7}, 0);
  // [2, 3, 2] along axes 0 and 2: the dims of the indices replace axis 0, then axis 1 follows.
  const Tensor x = doubles({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor y = run(ops::Gather{{0, 2}}, {x, ints({2}, {1, 0}), ints({2}, {0, 1})});
  CHECK(y.shape() == Shape({2, 3}, DType::F64));
  expect_close(y, {6, 8, 10, 1, 3, 5}, 0);
  expect_close(run(ops::Gather{{0}, IndexMode::Fill, 1}, {doubles({0, 2}, {}), ints({1}, {0})}), {1, 1}, 0);
}

TEST_CASE("gather and scatter refuse what they cannot read") {
  const Shape x({3, 4}, DType::F32), i({5}, DType::I32), u({5}, DType::F32);
  CHECK(contains(infer_error(ops::Gather{{1, 0}}, {x, i, i}), "must ascend"));
  CHECK(contains(infer_error(ops::Gather{{0, 0}}, {x, i, i}), "listed twice"));
  CHECK(contains(infer_error(ops::Gather{{}}, {x, i}), "needs at least one axis"));
  CHECK(contains(infer_error(ops::Gather{{0, 1}}, {x, i}), "has 2 axes, but 1 index operands"));
  CHECK(contains(infer_error(ops::Gather{{0, 1}}, {x, i, Shape({4}, DType::I32)}),
                 "the dimensions of the first indices"));
  CHECK(contains(infer_error(ops::Gather{{0}, IndexMode::Drop}, {x, i}), "does not support mode drop"));
  CHECK(contains(infer_error(ops::Gather{{0}, IndexMode::Clamp, 2}, {x, i}), "mode clamp does not use"));
  CHECK(contains(infer_error(ops::Gather{{0}, IndexMode::Fill, 300}, {Shape({3}, DType::U8), i}),
                 "is not a value of u8"));
  CHECK(contains(infer_error(ops::Gather{{0}, IndexMode::Fill, 0.5}, {Shape({3}, DType::Bool), i}),
                 "not a value of bool"));
  CHECK(contains(infer_error(ops::Scatter{ScatterKind::Set, {0, 1}, IndexMode::Fill}, {x, i, i, u}), "drop or clamp"));
  CHECK(contains(
      infer_error(ops::Scatter{ScatterKind::Max, {0, 1}}, {x.with_dtype(DType::C64), i, i, u.with_dtype(DType::C64)}),
      "no order"));
  CHECK(contains(
      infer_error(ops::Scatter{ScatterKind::Mul, {0, 1}}, {x.with_dtype(DType::Bool), i, i, u.with_dtype(DType::Bool)}),
      "cannot add or multiply"));
  CHECK(contains(infer_error(ops::Scatter{ScatterKind::Set, {0}, IndexMode::Clamp},
                             {Shape({0, 4}, DType::F32), i, Shape({5, 4}, DType::F32)}),
                 "empty"));
}

TEST_CASE("scatter: set keeps the last, the others take all, in the order of the updates") {
  const Tensor x = doubles({3}, {2, 3, 4}), at = ints({5}, {1, 1, 0, -1, 3}), u = doubles({5}, {5, 1, -6, 8, 9});
  const auto put = [&](ScatterKind fn, IndexMode mode = IndexMode::Drop) {
    return run(ops::Scatter{fn, {0}, mode}, {x, at, u});
  };
  expect_close(put(ScatterKind::Set), {-6, 1, 4}, 0);
  expect_close(put(ScatterKind::Add), {-4, 9, 4}, 0);
  expect_close(put(ScatterKind::Mul), {-12, 15, 4}, 0);
  expect_close(put(ScatterKind::Min), {-6, 1, 4}, 0);
  expect_close(put(ScatterKind::Max), {2, 5, 4}, 0);
  expect_close(put(ScatterKind::Set, IndexMode::Clamp), {8, 1, 9}, 0);  // -1 is the first, 3 the last
  expect_close(run(ops::Scatter{ScatterKind::Add, {0, 1}},
                   {k3x4, ints({3}, {2, 0, 2}), ints({3}, {3, 1, 3}), doubles({3}, {100, 200, 400})}),
               {0, 201, 2, 3, 4, 5, 6, 7, 8, 9, 10, 511}, 0);
  const Tensor nan = run(ops::Scatter{ScatterKind::Max}, {x, ints({2}, {0, 1}), doubles({2}, {NAN, 1})});
  CHECK(std::isnan(nan.at(0)));
  // Sums of bf16 round once: 256 + 1 + 1 is 258, where 256 + 1 alone is 256.
  const Tensor half = run(ops::Scatter{}, {doubles({1}, {256}).cast(DType::BF16), ints({2}, {0, 0}),
                                           doubles({2}, {1, 1}).cast(DType::BF16)});
  CHECK(half.at(0) == 258);
  Graph g;
  g.set_outputs({g.scatter_add(g.input("x", Shape({1}, DType::BF16)), g.constant(ints({2}, {0, 0})),
                               g.constant(doubles({2}, {1, 1}).cast(DType::BF16)))});
  CHECK(Session().compile(std::move(g)).run_typed({{"x", doubles({1}, {256}).cast(DType::BF16)}})[0].at(0) == 258);
}

// The gradient of the sum of weights * scatter(x, at, u) by x and by u.
std::vector<std::vector<double>> gradients(ScatterKind fn, const std::vector<double>& x, const std::vector<double>& u,
                                           const std::vector<std::int32_t>& at, const std::vector<double>& weights) {
  Graph g;
  const auto n = static_cast<std::int64_t>(x.size()), m = static_cast<std::int64_t>(u.size());
  const Expr gx = g.input("x", Shape({n}, DType::F64)), gu = g.input("u", Shape({m}, DType::F64));
  g.set_outputs({g.scatter(fn, gx, g.constant(ints({m}, at)), gu)});
  const std::vector<Tensor> d = evaluate(
      grad(g, {"x", "u"}).graph, {{"x", doubles({n}, x)}, {"u", doubles({m}, u)}, {"d_output", doubles({n}, weights)}});
  return {d[0].to_f64(), d[1].to_f64()};
}

TEST_CASE("derivatives of scatter where several updates meet") {
  using V = std::vector<double>;
  // Set: only the last update of element 0 is kept.
  auto d = gradients(ScatterKind::Set, {1, 2}, {3, 4, 5}, {0, 0, 7}, {10, 20});
  CHECK(d[0] == V{0, 20});
  CHECK(d[1] == V{0, 10, 0});
  // Mul: 2 * 3 * 0 * 5 with one zero has a derivative at the zero alone.
  d = gradients(ScatterKind::Mul, {2, 7}, {3, 0, 5}, {0, 0, 0}, {1, 1});
  CHECK(d[0] == V{0, 1});
  CHECK(d[1] == V{0, 30, 0});
  d = gradients(ScatterKind::Mul, {2, 7}, {0, 0, 5}, {0, 0, 1}, {1, 1});
  CHECK(d[0] == V{0, 5});
  CHECK(d[1] == V{0, 0, 7});
  // Max: ties share the cotangent equally, including the operand.
  d = gradients(ScatterKind::Max, {4, 1}, {4, 4, 0}, {0, 0, 1}, {3, 5});
  CHECK(d[0] == V{1, 5});
  CHECK(d[1] == V{1, 1, 0});
}

TEST_CASE("builders of NumPy's and ONNX's shapes count negative indices from the end; ops never do") {
  Graph g;
  const Expr x = g.constant(k3x4);
  const auto ids = [&](std::vector<std::int64_t> dims, const std::vector<std::int32_t>& v) {
    return g.constant(ints(std::move(dims), v));
  };
  g.set_outputs({
      g.take(x, ids({2}, {-1, 0}), 1),                        // [3, 2]
      g.take(x, ids({2}, {-1, 9}), 0, IndexMode::Fill),       // [2, 4]
      g.take_along_axis(x, ids({3, 1}, {-1, 0, 1}), 1),       // [3, 1]
      g.take_along_axis(x, ids({2, 2}, {0, -1, 1, 2}), 0),    // [2, 2], fewer columns
      g.put_along_axis(x, ids({3, 1}, {-1, 0, 1}), 50.0, 1),  // one a row
      g.put_along_axis(x, ids({1, 2}, {0, 0}), ids({1, 2}, {5, 6}), 0, ScatterKind::Add),
      g.gather_nd(x, ids({2, 2}, {0, -1, 2, 1})),  // [2]
      g.gather_nd(x, ids({1, 1}, {-2})),           // [1, 4]
      g.gather_nd(x, ids({3, 1}, {1, -1, 0}), 1),  // [3]
      g.scatter_nd(x, ids({2, 1}, {-1, 0}), g.constant(doubles({2, 4}, {9, 9, 9, 9, 1, 1, 1, 1})), ScatterKind::Mul),
      g.gather(x, ids({1}, {-1})),                                                    // the op itself clamps
      g.gather(x, {ids({2, 1}, {0, 1}), ids({3}, {0, 1, 2})}, ops::Gather{{-2, 1}}),  // broadcast
  });
  const std::vector<Tensor> y = evaluate(g, NamedTensors{});
  expect_close(y[0], {3, 0, 7, 4, 11, 8}, 0);
  expect_close(y[1], {8, 9, 10, 11, 0, 0, 0, 0}, 0);
  expect_close(y[2], {3, 4, 9}, 0);
  expect_close(y[3], {0, 9, 4, 9}, 0);
  expect_close(y[4], {0, 1, 2, 50, 50, 5, 6, 7, 8, 50, 10, 11}, 0);
  expect_close(y[5], {5, 7, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0);
  expect_close(y[6], {3, 9}, 0);
  expect_close(y[7], {4, 5, 6, 7}, 0);
  expect_close(y[8], {1, 7, 8}, 0);
  expect_close(y[9], {0, 1, 2, 3, 4, 5, 6, 7, 72, 81, 90, 99}, 0);
  expect_close(y[10], {0, 1, 2, 3}, 0);
  expect_close(y[11], {0, 1, 2, 4, 5, 6}, 0);
}

TEST_CASE("text with one axis, as it was written before there were several, still reads") {
  const char* old =
      "graph @g {\n  %0 = input() {name = \"x\"} : [2, 3] f32\n  %1 = input() {name = \"i\"} : [4] i32\n"
      "  %2 = gather(%0, %1) {axis = 1} : [2, 4] f32\n"
      "  %3 = scatter_add(%0, %1, %2) {axis = 1} : [2, 3] f32\n  return %3\n}\n";
  const Graph g = parse_text(old);
  CHECK(g.nodes()[2].op.as<ops::Gather>().axes == std::vector<std::int64_t>{1});
  CHECK(g.nodes()[3].op.as<ops::Scatter>().axes == std::vector<std::int64_t>{1});
  CHECK(contains(print_text(g), "scatter_add(%0, %1, %2) {axes = [1]}"));
  CHECK(contains(print_text(parse_text(print_text(g))), "{axes = [1]}"));
}

TEST_CASE("a scatter into a state is made in the state, and its work follows the updates") {
  const std::int64_t rows = 1 << 18;
  Graph g("pool");
  const Expr pool = g.state("pool", Tensor::zeros(Shape({rows, 4}, DType::BF16)));
  const Expr at = g.input("at", Shape({3}, DType::I32));
  const Expr next = g.scatter(ScatterKind::Set, pool, at, g.input("u", Shape({3, 4}, DType::F32)));
  CHECK(next.dtype() == DType::BF16);  // the update is cast, the pool is not
  g.set_state("pool", next);
  g.set_outputs({g.gather(next, at)});
  CompileOptions options;
  options.must_alias = true;
  CompiledGraph f = Session().compile_with(std::move(g), options);
  const NamedTensors in{{"at", ints({3}, {7, -1, static_cast<std::int32_t>(rows) - 1})},
                        {"u", doubles({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).cast(DType::F32)}};
  expect_close(f.run_typed(in)[0].cast(DType::F64), {1, 2, 3, 4, 0, 0, 0, 0, 9, 10, 11, 12}, 0);
  const Tensor pool_now = f.read_state("pool");
  CHECK(pool_now.at(7 * 4) == 1);
  CHECK(pool_now.at((rows - 1) * 4 + 3) == 12);
}

}  // namespace
}  // namespace rlx
