// The dtype for counting in rules: 32 bits if they surely suffice.
#include "rlx/ir/build/counting.h"

#include <doctest/doctest.h>

#include "rlx/ir/builder.h"
#include "rlx/ir/evaluate.h"

using namespace rlx;

TEST_CASE("counts are I32 up to 2^29, of products too, and I64 beyond") {
  const Graph g("counts");
  constexpr std::int64_t most = std::int64_t{1} << 29, huge = std::int64_t{1} << 40;
  CHECK(count_dtype(g, {}) == DType::I32);
  CHECK(count_dtype(g, {{most}}) == DType::I32);
  CHECK(count_dtype(g, {{most + 1}}) == DType::I64);
  CHECK(count_dtype(g, {{most}, {most}}) == DType::I32);
  CHECK(count_dtype(g, {{1 << 15, 1 << 14}}) == DType::I32);
  CHECK(count_dtype(g, {{1 << 15, (1 << 14) + 1}}) == DType::I64);
  CHECK(count_dtype(g, {{huge, huge, huge}}) == DType::I64);
  CHECK(count_dtype(g, {{0, 5}, {4, 0}}) == DType::I32);
  CHECK(count_dtype(g, {{0, huge}}) == DType::I64);  // no elements, but positions along the other axis
}

TEST_CASE("counts of symbols follow from their bounds; indices in I64 stay") {
  Graph g("symbols");
  const Dim few = g.symbol("few", {.min = 0, .max = 4096}), any = g.symbol("any"), other = g.symbol("other");
  CHECK(count_dtype(g, {{few}}) == DType::I32);
  CHECK(count_dtype(g, {{few, 1 << 17}}) == DType::I32);
  CHECK(count_dtype(g, {{few, 1 << 18}}) == DType::I64);
  CHECK(count_dtype(g, {{any}}) == DType::I64);
  CHECK(count_dtype(g, {{any * other}}) == DType::I64);  // its bound does not fit in 64 bits
  CHECK(count_dtype(g, {{few}}, DType::I32) == DType::I32);
  CHECK(count_dtype(g, {{few}}, DType::I64) == DType::I64);
}

TEST_CASE("extents, products of them and places, as values of the dtype that was asked for") {
  Graph g("values");
  const Dim n = g.symbol("n", {.min = 0, .max = 100});
  const Expr x = g.input("x", Shape({3, n}, DType::F32));
  const Dims dims{n, 4, n};
  for (DType t : {DType::I32, DType::I64}) {
    const ExprList values{extent_of(g, x, 0, t), extent_of(g, x, 1, t), dim_value(g, n, t), dims_product(g, dims, t),
                          positions(g, n, 1, 3, t)};
    for (const Expr& e : values) CHECK(e.dtype() == t);
    CHECK(values[4].shape().dims() == Dims{1, n, 1});
    g.set_outputs({values[0], values[1], values[2], values[3], values[4]});
    const Graph bound = g.bind({{"n", 5}});
    const std::vector<Tensor> got = evaluate(bound, {{"x", Tensor::zeros(Shape({3, 5}, DType::F32))}});
    CHECK(got[0].at_i64(0) == 3);
    CHECK(got[1].at_i64(0) == 5);
    CHECK(got[2].at_i64(0) == 5);
    CHECK(got[3].at_i64(0) == 100);
    CHECK(got[4].at_i64(4) == 4);
  }
}
