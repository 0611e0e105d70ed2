// Reduce, arg_reduce, cumulative, softmax and log_softmax: hand-computed answers, edges and refusals.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/reduce.h"
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

using test::k2x3;
using test::kInf;

TEST_CASE("reduce: every kind over last, first and all axes") {
  expect_close(run(ops::Reduce{ReduceKind::Sum, {1}, false}, {k2x3}), {6, 15}, 0);
  expect_close(run(ops::Reduce{ReduceKind::Sum, {0}, false}, {k2x3}), {5, 7, 9}, 0);
  expect_close(run(ops::Reduce{ReduceKind::Mean, {0, 1}, false}, {k2x3}), {3.5}, 0);
  expect_close(run(ops::Reduce{ReduceKind::Max, {1}, false}, {k2x3}), {3, 6}, 0);
  expect_close(run(ops::Reduce{ReduceKind::Min, {0}, false}, {k2x3}), {1, 2, 3}, 0);
  expect_close(run(ops::Reduce{ReduceKind::Prod, {0, 1}, false}, {k2x3}), {720}, 0);
  CHECK(run(ops::Reduce{ReduceKind::Sum, {1}, true}, {k2x3}).shape() == Shape({2, 1}, DType::F64));
  // Axes 0 and 2 of [2, 2, 2] holding 0..7: 0+1+4+5 and 2+3+6+7.
  expect_close(run(ops::Reduce{ReduceKind::Sum, {0, 2}, false}, {doubles({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})}),
               {10, 18}, 0);
}

TEST_CASE("reduce of nothing gives the identity, NaN propagates") {
  const Tensor nothing = doubles({2, 0}, {});
  expect_close(run(ops::Reduce{ReduceKind::Sum, {1}, false}, {nothing}), {0, 0}, 0);
  expect_close(run(ops::Reduce{ReduceKind::Prod, {1}, false}, {nothing}), {1, 1}, 0);
  expect_close(run(ops::Reduce{ReduceKind::Max, {1}, false}, {nothing}), {-kInf, -kInf}, 0);
  expect_close(run(ops::Reduce{ReduceKind::Min, {1}, false}, {nothing}), {kInf, kInf}, 0);
  CHECK(std::isnan(run(ops::Reduce{ReduceKind::Mean, {1}, false}, {nothing}).at(0)));
  const Tensor i8 = Tensor::zeros(Shape({0}, DType::I8)), u16 = Tensor::zeros(Shape({0}, DType::U16));
  CHECK(run(ops::Reduce{ReduceKind::Max, {0}, false}, {i8}).at_i64(0) == -128);
  CHECK(run(ops::Reduce{ReduceKind::Min, {0}, false}, {i8}).at_i64(0) == 127);
  CHECK(run(ops::Reduce{ReduceKind::Max, {0}, false}, {u16}).at_i64(0) == 0);
  CHECK(run(ops::Reduce{ReduceKind::Min, {0}, false}, {u16}).at_i64(0) == 65535);
  const Tensor with_nan = doubles({3}, {1, NAN, 5});
  for (ReduceKind fn : {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod})
    CHECK(std::isnan(run(ops::Reduce{fn, {0}, false}, {with_nan}).at(0)));
}

TEST_CASE("reduce rounds once, integers are exact and wrap") {
  // 2048 + 1 + 1 + 1 + 1 in f16: each 1 would be lost in f16 sums, while the sum 2052 is representable.
  const Tensor halves = doubles({5}, {2048, 1, 1, 1, 1}).cast(DType::F16);
  CHECK(run(ops::Reduce{ReduceKind::Sum, {0}, false}, {halves}).at(0) == 2052);
  const Tensor big = Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{(1LL << 53) + 1, 2});
  CHECK(run(ops::Reduce{ReduceKind::Sum, {0}, false}, {big}).at_i64(0) == (1LL << 53) + 3);
  const Tensor bytes = Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{200, 100});
  CHECK(run(ops::Reduce{ReduceKind::Sum, {0}, false}, {bytes}).at_i64(0) == 44);
  CHECK(run(ops::Reduce{ReduceKind::Prod, {0}, false}, {bytes}).at_i64(0) == 20000 % 256);
}

TEST_CASE("reduce refuses what has no meaning") {
  const Shape x({2, 3}, DType::F32);
  CHECK(contains(infer_error(ops::Reduce{ReduceKind::Sum, {2}, false}, {x}), "axis 2"));
  CHECK(contains(infer_error(ops::Reduce{ReduceKind::Sum, {0, 0}, false}, {x}), "twice"));
  CHECK(contains(infer_error(ops::Reduce{ReduceKind::Sum, {1, 0}, false}, {x}), "sorted"));
  CHECK(contains(infer_error(ops::Reduce{ReduceKind::Max, {0}, false}, {Shape({2}, DType::C64)}), "order"));
  CHECK(contains(infer_error(ops::Reduce{ReduceKind::Sum, {0}, false}, {Shape({2}, DType::Bool)}), "cast"));
  CHECK(contains(infer_error(ops::Reduce{ReduceKind::Mean, {0}, false}, {Shape({2}, DType::I32)}), "cast"));
  CHECK(infer_error(ops::Reduce{ReduceKind::Max, {0}, false}, {Shape({2}, DType::Bool)}) == "");
}

TEST_CASE("arg_reduce: the first extremum, NaN counts as one") {
  expect_close(run(ops::ArgReduce{ArgReduceKind::Max, 1, false}, {doubles({2, 4}, {1, 7, 7, 0, -3, -3, -5, -4})}),
               {1, 0}, 0);
  expect_close(run(ops::ArgReduce{ArgReduceKind::Min, 1, false}, {doubles({2, 4}, {1, 7, 7, 0, -3, -3, -5, -5})}),
               {3, 2}, 0);
  expect_close(run(ops::ArgReduce{ArgReduceKind::Max, 0, true}, {k2x3}), {1, 1, 1}, 0);
  expect_close(run(ops::ArgReduce{ArgReduceKind::Max, 0, false}, {doubles({4}, {1, NAN, 9, NAN})}), {1}, 0);
  expect_close(run(ops::ArgReduce{ArgReduceKind::Min, 0, false}, {doubles({3}, {1, NAN, -9})}), {1}, 0);
  CHECK(run(ops::ArgReduce{ArgReduceKind::Max, 0, false}, {k2x3}).dtype() == DType::I32);
  CHECK(contains(infer_error(ops::ArgReduce{ArgReduceKind::Max, 1, false}, {Shape({2, 0}, DType::F32)}), "empty"));
}

TEST_CASE("cumulative: inclusive, exclusive, reverse") {
  const Tensor x = doubles({4}, {3, 1, 4, 2});
  using Kind = CumulativeKind;
  expect_close(run(ops::Cumulative{Kind::Sum, 0, false, false}, {x}), {3, 4, 8, 10}, 0);
  expect_close(run(ops::Cumulative{Kind::Sum, 0, true, false}, {x}), {0, 3, 4, 8}, 0);
  expect_close(run(ops::Cumulative{Kind::Sum, 0, false, true}, {x}), {10, 7, 6, 2}, 0);
  expect_close(run(ops::Cumulative{Kind::Sum, 0, true, true}, {x}), {7, 6, 2, 0}, 0);
  expect_close(run(ops::Cumulative{Kind::Prod, 0, false, false}, {x}), {3, 3, 12, 24}, 0);
  expect_close(run(ops::Cumulative{Kind::Prod, 0, true, true}, {x}), {8, 8, 2, 1}, 0);
  expect_close(run(ops::Cumulative{Kind::Max, 0, false, false}, {x}), {3, 3, 4, 4}, 0);
  expect_close(run(ops::Cumulative{Kind::Max, 0, true, false}, {x}), {-kInf, 3, 3, 4}, 0);
  expect_close(run(ops::Cumulative{Kind::Min, 0, false, true}, {x}), {1, 1, 2, 2}, 0);
  expect_close(run(ops::Cumulative{Kind::Sum, 0, false, false}, {k2x3}), {1, 2, 3, 5, 7, 9}, 0);
  CHECK(contains(infer_error(ops::Cumulative{Kind::Sum, 1, false, false}, {Shape({2}, DType::F32)}), "axis 1"));
}

TEST_CASE("softmax: values, overflow, masked rows") {
  // e^0 : e^ln2 : e^ln5 = 1 : 2 : 5
  expect_close(run(ops::Softmax{0}, {doubles({3}, {0, std::log(2.0), std::log(5.0)})}), {0.125, 0.25, 0.625}, 1e-15);
  expect_close(run(ops::Softmax{1}, {doubles({1, 2}, {1000, 1000 + std::log(3.0)})}), {0.25, 0.75}, 1e-12);
  expect_close(run(ops::Softmax{0}, {doubles({2, 2}, {0, 5, std::log(3.0), 5})}), {0.25, 0.5, 0.75, 0.5}, 1e-15);
  expect_close(run(ops::Softmax{1}, {doubles({2, 2}, {-kInf, -kInf, -kInf, 1})}), {0, 0, 0, 1}, 0);
  CHECK(std::isnan(run(ops::Softmax{0}, {doubles({2}, {NAN, 1})}).at(1)));
  CHECK(contains(infer_error(ops::Softmax{0}, {Shape({2}, DType::I32)}), "float"));
  CHECK(contains(infer_error(ops::Softmax{-1}, {Shape({2}, DType::F32)}), "axis -1"));
}

TEST_CASE("log_softmax") {
  expect_close(run(ops::LogSoftmax{0}, {doubles({2}, {0, std::log(3.0)})}), {std::log(0.25), std::log(0.75)}, 1e-15);
  expect_close(run(ops::LogSoftmax{0}, {doubles({2}, {1e4, 0})}), {0, -1e4}, 0);  // no log of an underflowed 0
  expect_close(run(ops::LogSoftmax{0}, {doubles({2}, {-kInf, -kInf})}), {-kInf, -kInf}, 0);
}

TEST_CASE("the decomposition of softmax agrees with its definition on masked and huge rows") {
  const Tensor x = doubles({4, 3}, {1, 2, 3, -kInf, -kInf, -kInf, 1e30, -1e30, 0, -kInf, 0, 1});
  for (DType t : {DType::F64, DType::F32, DType::BF16}) {
    Graph g;
    Expr in = g.input("x", Shape({4, 3}, t));
    g.set_outputs(decompose_into(g, ops::Softmax{1}, std::vector<Expr>{in}));
    const Tensor given = x.cast(t);
    expect_close(evaluate(g, {{"x", given}}).at(0), run(ops::Softmax{1}, {given}),
                 t == DType::F64   ? 1e-15
                 : t == DType::F32 ? 1e-7
                                   : 4e-3);
  }
}

}  // namespace
}  // namespace rlx
