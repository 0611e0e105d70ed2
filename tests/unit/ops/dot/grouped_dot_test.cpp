// GroupedDot against one matmul per group, in the evaluator and on the cpu, with rows of no group.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::doubles;
using test::expect_close;
using test::infer_error;
using test::run;

Tensor ids_of(std::int64_t rows, std::int64_t groups) {  // unsorted, uneven, some of no group
  Tensor t = Tensor::zeros(Shape({rows}, DType::I32));
  for (std::int64_t i = 0; i < rows; ++i) t.set_i64(i, (i * i + 3 * i) % (groups + 2) - 1);
  return t;
}
Tensor numbers(std::vector<std::int64_t> dims, double scale) {
  Tensor t = test::sequence(std::move(dims));
  for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, std::sin(scale * static_cast<double>(i + 1)));
  return t;
}

TEST_CASE("grouped_dot: rows take the matrix of their group") {
  const Tensor x = doubles({3, 2}, {1, 2, 3, 4, 5, 6}), w = doubles({2, 2, 1}, {1, 10, 100, 1000});
  const Tensor ids = Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{1, 5, 0});
  expect_close(run(ops::GroupedDot{}, {x, w, ids}), {2100, 0, 65}, 0);
  const Tensor y = doubles({3, 1}, {1, 10, 100});
  expect_close(run(ops::GroupedDot{GroupedKind::Contract, 2}, {x, y, ids}), {500, 600, 1, 2}, 0);
  // Infinities in other groups have no effect.
  const Tensor far = doubles({2, 2, 1}, {1, 10, HUGE_VAL, NAN});
  CHECK(run(ops::GroupedDot{}, {x, far, ids}).at(2) == 65);
}

TEST_CASE("the cpu's grouped products agree with the rule, in every dtype, transposed weights too") {
  const std::int64_t m = 150, k = 24, n = 40, e = 5;
  for (DType t : {DType::F32, DType::F64, DType::BF16}) {
    CAPTURE(dtype_name(t));
    Graph g;
    const Expr x = g.input("x", Shape({m, k}, t)), w = g.input("w", Shape({e, n, k}, t)),
               y = g.input("y", Shape({m, n}, t));
    const Expr ids = g.input("ids", Shape({m}, DType::I32));
    g.set_outputs({g.grouped_dot(x, g.transpose(w, {0, 2, 1}), ids), g.grouped_dot_contract(x, y, ids, e)});
    const NamedTensors in{{"x", numbers({m, k}, 0.7).cast(t)},
                          {"w", numbers({e, n, k}, 0.3).cast(t)},
                          {"y", numbers({m, n}, 0.9).cast(t)},
                          {"ids", ids_of(m, e)}};
    const auto want = evaluate(g, in);
    for (int threads : {1, 3}) {
      const auto got = Session().with_threads(threads).compile(Graph(g)).run_typed(in);
      const double tolerance = t == DType::F32 ? 1e-4 : t == DType::BF16 ? 0.1 : 1e-12;
      for (std::size_t r = 0; r < 2; ++r) expect_close(got[r].cast(DType::F64), want[r].cast(DType::F64), tolerance);
    }
  }
}

TEST_CASE("many groups, few rows: the kernel takes it, and its derivative is grouped too") {
  const std::int64_t e = 300;
  Graph g;
  const Expr x = g.input("x", Shape({4, 8}, DType::F32)), w = g.input("w", Shape({e, 8, 6}, DType::F32));
  const Expr ids = g.constant(Tensor::of<std::int32_t>({4}, std::vector<std::int32_t>{299, 7, 7, -1}));
  g.set_outputs({g.sum(g.sin(g.grouped_dot(x, w, ids)))});
  const Graph d = grad(g, {"x", "w"}).graph;
  int products = 0;
  for (const Node& node : d.nodes()) products += node.kind() == OpKind::GroupedDot;
  CHECK(products == 3);
  const NamedTensors in{{"x", numbers({4, 8}, 0.7).cast(DType::F32)},
                        {"w", numbers({e, 8, 6}, 0.3).cast(DType::F32)},
                        {"d_output", doubles({}, {1}).cast(DType::F32)}};
  const auto want = evaluate(d, in);
  CompiledGraph f = Session().compile(Graph(d));
  const auto got = f.run_typed(in);
  for (std::size_t r = 0; r < 2; ++r) expect_close(got[r].cast(DType::F64), want[r].cast(DType::F64), 1e-5);
}

TEST_CASE("grouped_dot says what does not fit") {
  const Shape x({3, 2}, DType::F32), w({4, 2, 5}, DType::F32), ids({3}, DType::I32);
  CHECK(contains(infer_error(ops::GroupedDot{}, {x, Shape({4, 3, 5}, DType::F32), ids}), "2 columns"));
  CHECK(contains(infer_error(ops::GroupedDot{}, {x, w, Shape({4}, DType::I32)}), "3 rows"));
  CHECK(contains(infer_error(ops::GroupedDot{}, {x, w, Shape({3}, DType::F32)}), "ids must be i32"));
  CHECK(contains(infer_error(ops::GroupedDot{GroupedKind::Rows, 4}, {x, w, ids}), "leave `groups` 0"));
  CHECK(contains(infer_error(ops::GroupedDot{GroupedKind::Contract, -1}, {x, x, ids}),
                 "groups must not be negative, got -1"));
  CHECK(contains(infer_error(ops::GroupedDot{}, {x, x, ids}), "w [E, K, N]"));
}

}  // namespace
}  // namespace rlx
