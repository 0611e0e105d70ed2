// Reshape, transpose, expand, slice, concat, pad and reverse: hand-computed answers, shape rules and refusals.
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/shape.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/shapes.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::doubles;
using test::expect_close;
using test::infer_error;
using test::run;

using test::f32;
Shape inferred(const OpBox& op, const std::vector<Shape>& inputs) { return infer_shapes(op, inputs).value().at(0); }

using test::k2x3;

TEST_CASE("reshape keeps the row-major order") {
  const Tensor y = run(ops::Reshape{{3, 2}}, {k2x3});
  CHECK(y.shape() == Shape({3, 2}, DType::F64));
  expect_close(y, {1, 2, 3, 4, 5, 6}, 0);
  CHECK(contains(infer_error(ops::Reshape{{4, 2}}, {f32({2, 3})}), "6 elements"));
  CHECK(contains(infer_error(ops::Reshape{{-2, -3}}, {f32({2, 3})}), "negative"));
}

TEST_CASE("reshape of symbolic dimensions compares element counts") {
  const Dim b = Dim::symbol("b"), s = Dim::symbol("s");
  CHECK(inferred(ops::Reshape{{b * s, 4}}, {f32({b, s, 4})}) == f32({b * s, 4}));
  CHECK(contains(infer_error(ops::Reshape{{s, 5}}, {f32({s, 4})}), "elements"));
  CHECK(infer_error(ops::Reshape{{floordiv(s, Dim(2)), 2}}, {f32({s})}) == "");  // decided when s is bound
}

TEST_CASE("transpose") {
  expect_close(run(ops::Transpose{{1, 0}}, {k2x3}), {1, 4, 2, 5, 3, 6}, 0);
  // x[i][j][k] = 100 i + 10 j + k as [2, 2, 2]; result[k][i][j]
  const Tensor x = doubles({2, 2, 2}, {0, 1, 10, 11, 100, 101, 110, 111});
  expect_close(run(ops::Transpose{{2, 0, 1}}, {x}), {0, 10, 100, 110, 1, 11, 101, 111}, 0);
  CHECK(contains(infer_error(ops::Transpose{{0, 0}}, {f32({2, 3})}), "twice"));
  CHECK(contains(infer_error(ops::Transpose{{0}}, {f32({2, 3})}), "names 1 axes"));
  CHECK(contains(infer_error(ops::Transpose{{0, 2}}, {f32({2, 3})}), "axis 2"));
}

TEST_CASE("expand repeats along axes of extent 1 and added ones") {
  expect_close(run(ops::Expand{{2, 2, 3}}, {doubles({2, 1}, {7, 8})}), {7, 7, 7, 8, 8, 8, 7, 7, 7, 8, 8, 8}, 0);
  expect_close(run(ops::Expand{{2, 2}}, {doubles({}, {3})}), {3, 3, 3, 3}, 0);
  CHECK(run(ops::Expand{{0, 3}}, {doubles({1, 3}, {1, 2, 3})}).num_elements() == 0);
  CHECK(contains(infer_error(ops::Expand{{4, 3}}, {f32({2, 3})}), "neither 1 nor 4"));
  CHECK(contains(infer_error(ops::Expand{{3}}, {f32({2, 3})}), "more axes"));
  CHECK(infer_error(ops::Expand{{Dim::symbol("n"), 3}}, {f32({3})}) == "");
}

TEST_CASE("slice") {
  const Tensor x = doubles({7}, {0, 1, 2, 3, 4, 5, 6});
  expect_close(run(ops::Slice{{1}, {7}, {2}}, {x}), {1, 3, 5}, 0);
  expect_close(run(ops::Slice{{1}, {6}, {2}}, {x}), {1, 3, 5}, 0);
  expect_close(run(ops::Slice{{2}, {7}, {std::int64_t{1} << 60}}, {x}), {2}, 0);
  expect_close(run(ops::Slice{{0, 1}, {2, 3}, {1, 1}}, {k2x3}), {2, 3, 5, 6}, 0);
  CHECK(run(ops::Slice{{7}, {7}, {1}}, {x}).num_elements() == 0);
  CHECK(contains(infer_error(ops::Slice{{2}, {8}, {1}}, {f32({7})}), "not a range"));
  CHECK(contains(infer_error(ops::Slice{{3}, {2}, {1}}, {f32({7})}), "not a range"));
  CHECK(contains(infer_error(ops::Slice{{-1}, {2}, {1}}, {f32({7})}), "not a range"));
  CHECK(contains(infer_error(ops::Slice{{0}, {2}, {0}}, {f32({7})}), "stride 0"));
  CHECK(contains(infer_error(ops::Slice{{0, 0}, {2}, {1}}, {f32({7})}), "needs 1 entries in each of starts"));
  const Dim n = Dim::symbol("n");
  CHECK(inferred(ops::Slice{{1}, {n}, {1}}, {f32({n})}) == f32({n - 1}));
}

TEST_CASE("concat") {
  expect_close(run(ops::Concat{1}, {k2x3, doubles({2, 1}, {8, 9})}), {1, 2, 3, 8, 4, 5, 6, 9}, 0);
  expect_close(run(ops::Concat{0}, {k2x3, doubles({0, 3}, {}), doubles({1, 3}, {7, 8, 9})}),
               {1, 2, 3, 4, 5, 6, 7, 8, 9}, 0);
  CHECK(contains(infer_error(ops::Concat{0}, {f32({2, 3}), f32({2, 4})}), "differ on axis 1"));
  CHECK(contains(infer_error(ops::Concat{0}, {f32({2}), Shape({2}, DType::F64)}), "f64"));
  CHECK(contains(infer_error(ops::Concat{1}, {f32({2}), f32({2})}), "axis 1"));
  CHECK(contains(infer_error(ops::Concat{0}, {f32({2}), f32({2, 1})}), "ranks"));
  CHECK(infer_error(ops::Concat{0}, {}) != "");
}

TEST_CASE("pad around, between and negative") {
  const Tensor x = doubles({3}, {1, 2, 3}), value = doubles({}, {9});
  expect_close(run(ops::Pad{{2}, {1}, {0}}, {x, value}), {9, 9, 1, 2, 3, 9}, 0);
  expect_close(run(ops::Pad{{0}, {0}, {2}}, {x, value}), {1, 9, 9, 2, 9, 9, 3}, 0);
  expect_close(run(ops::Pad{{-1}, {1}, {0}}, {x, value}), {2, 3, 9}, 0);
  expect_close(run(ops::Pad{{-1}, {-1}, {2}}, {x, value}), {9, 9, 2, 9, 9}, 0);  // cropped after the interior padding
  expect_close(run(ops::Pad{{-4}, {0}, {2}}, {x, value}), {9, 9, 3}, 0);
  expect_close(run(ops::Pad{{1, 0}, {0, 1}, {0, 0}}, {doubles({1, 2}, {1, 2}), value}), {9, 9, 9, 1, 2, 9}, 0);
  expect_close(run(ops::Pad{{1}, {1}, {5}}, {doubles({0}, {}), value}), {9, 9}, 0);
  CHECK(contains(infer_error(ops::Pad{{-2}, {-2}, {0}}, {f32({3}), f32({})}), "crop more"));
  CHECK(contains(infer_error(ops::Pad{{0}, {0}, {-1}}, {f32({3}), f32({})}), "negative"));
  CHECK(contains(infer_error(ops::Pad{{0}, {0}, {0}}, {f32({3}), f32({1})}), "scalar"));
  CHECK(contains(infer_error(ops::Pad{{0}, {0, 0}, {0}}, {f32({3}), f32({})}), "needs 1 amounts"));
  CHECK(contains(infer_error(ops::Pad{{INT64_MIN}, {INT64_MAX}, {0}}, {f32({3}), f32({})}), "is too large"));
}

TEST_CASE("reverse") {
  expect_close(run(ops::Reverse{{1}}, {k2x3}), {3, 2, 1, 6, 5, 4}, 0);
  expect_close(run(ops::Reverse{{0, 1}}, {k2x3}), {6, 5, 4, 3, 2, 1}, 0);
  CHECK(contains(infer_error(ops::Reverse{{1, 1}}, {f32({2, 3})}), "twice"));
  CHECK(contains(infer_error(ops::Reverse{{2}}, {f32({2, 3})}), "axis 2"));
}

TEST_CASE("moves take every dtype, packed 4-bit ones included") {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    CAPTURE(dtype_name(t));
    Tensor x = Tensor::zeros(Shape({3}, t));
    for (int k = 0; k < 3; ++k) x.set(k, t == DType::Bool ? k % 2 : k + 1);
    const Tensor y = run(ops::Reverse{{0}}, {x});
    for (int k = 0; k < 3; ++k) CHECK(y.at(k) == x.at(2 - k));
  }
}

}  // namespace
}  // namespace rlx
