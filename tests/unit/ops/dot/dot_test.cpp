// MatMul, DotGeneral and FusedDot against NumPy's numbers.
#include <doctest/doctest.h>

#include <cstring>

#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"

using namespace rlx;
using namespace rlx::test;

TEST_CASE("dot_general contracts axis 1 with axis 0, batch 0 with batch 1, free axes in order") {
  // numpy.einsum("abc,bdc->bad"): batch b, contract c.
  ops::DotGeneral op{{2}, {2}, {1}, {0}};
  auto y = run_op(op, {sequence({2, 3, 2}), sequence({3, 2, 2}, 0.5)});
  CHECK(y[0].dims() == std::vector<std::int64_t>{3, 2, 2});
  expect_close(y[0],
               {0.90625, 0.625, -0.625, -0.25, -0.53125, -0.25, -0.40625, -0.5, -0.40625, 0.4375, -0.34375, 0.8125});
}

TEST_CASE("dot_general of integers is exact and wraps") {
  auto a = Tensor::of<std::int64_t>({1, 2}, std::vector<std::int64_t>{(1LL << 53) + 1, 1});
  auto b = Tensor::of<std::int64_t>({2, 1}, std::vector<std::int64_t>{1, 2});
  CHECK(run_op(ops::DotGeneral{{1}, {0}, {}, {}}, {a, b})[0].at_i64(0) == (1LL << 53) + 3);
  auto u = Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{200, 100});
  CHECK(run_op(ops::DotGeneral{{0}, {0}, {}, {}}, {u, u})[0].at_i64(0) == (200 * 200 + 100 * 100) % 256);
}

TEST_CASE("dot_general rounds half-precision results once") {
  // 256 + 3 * 0.5 is 257.5; bf16 has steps of 2 there, so partial sums in bf16 would stay at 256.
  Tensor a = Tensor::full(Shape({4}, DType::BF16), 1), b = Tensor::full(Shape({4}, DType::BF16), 0.5);
  b.set(0, 256);
  CHECK(run_op(ops::DotGeneral{{0}, {0}, {}, {}}, {a, b})[0].at(0) == 258);
}

TEST_CASE("dot_general over an empty axis is zero") {
  auto y = run_op(ops::DotGeneral{{1}, {0}, {}, {}},
                  {Tensor::zeros(Shape({2, 0}, DType::F64)), Tensor::zeros(Shape({0, 3}, DType::F64))});
  expect_close(y[0], {0, 0, 0, 0, 0, 0});
}

TEST_CASE("complex dot_general multiplies complex numbers") {
  Tensor a = Tensor::zeros(Shape({1}, DType::C128)), b = Tensor::zeros(Shape({1}, DType::C128));
  const double x[] = {1, 2}, y[] = {3, -1};  // (1 + 2i)(3 - i) = 5 + 5i
  std::memcpy(a.mutable_data(), x, sizeof x);
  std::memcpy(b.mutable_data(), y, sizeof y);
  Tensor out = run_op(ops::DotGeneral{{0}, {0}, {}, {}}, {a, b})[0];
  double z[2];
  std::memcpy(z, out.data(), sizeof z);
  CHECK(z[0] == 5);
  CHECK(z[1] == 5);
}

TEST_CASE("matmul broadcasts leading dimensions as NumPy does") {
  auto a = doubles({2, 1, 1, 2}, {1, 2, 3, 4}), b = doubles({3, 2, 1}, {1, 0, 0, 1, 1, 1});
  auto y = run_op(ops::MatMul{}, {a, b});
  CHECK(y[0].dims() == std::vector<std::int64_t>{2, 3, 1, 1});
  expect_close(y[0], {1, 2, 3, 3, 4, 7});
}

TEST_CASE("fused_dot applies its epilogue to the product") {
  auto body = std::make_shared<Graph>("epilogue");
  Expr acc = body->input("acc", Shape({2, 2}, DType::F64)), bias = body->input("bias", Shape({2}, DType::F64));
  body->set_outputs({body->gelu(acc + bias)});
  ops::FusedDot op{{1}, {0}, {}, {}, body};
  std::vector<Tensor> in{sequence({2, 3}), sequence({3, 2}, 0.5), doubles({2}, {0.5, -0.25})};
  expect_close(run_op(op, in)[0], {0.9438709008, -0.0296926457, -0.1447575448, 0.3457312306});
}

TEST_CASE("the inputs of a body have the shapes of its operands: from the builder, from text, in regions") {
  const Shape x({2, 3}, DType::F32), w({3, 2}, DType::F32), one({1}, DType::F32), two({2}, DType::F32);
  // A bias declared [2] but given as [1], which a kernel would read beyond its end.
  auto body = std::make_shared<Graph>("epilogue");
  Expr acc = body->input("acc", Shape({2, 2}, DType::F32)), bias = body->input("bias", two);
  body->set_outputs({acc + bias});
  const ops::FusedDot op{{1}, {0}, {}, {}, body};
  CHECK(infer_error(op, {x, w, two}).empty());
  const std::string refused = infer_error(op, {x, w, one});
  CHECK(contains(refused, "input 1 of the epilogue is [2] f32, but its operand is [1] f32"));
  CHECK(contains(refused, "the ops of the body broadcast"));
  CHECK(contains(infer_error(op, {Shape({1, 3}, DType::F32), w, two}), "input 0 of the epilogue"));
  auto region = std::make_shared<Graph>("body");
  Expr left = region->input("x", x), right = region->input("b", Shape({3}, DType::F32));
  region->set_outputs({left + right});
  CHECK(contains(infer_error(ops::ElementwiseRegion{region}, {x, one}), "input 1 of its body"));
  const std::string text = R"(graph @direct {
  %0 = input() {name = "x"} : [2, 4] f32
  %1 = param() {name = "w"} : [4, 3] f32
  %2 = param() {name = "b"} : [1] f32
  %3 = fused_dot(%0, %1, %2) {lhs_contract = [1], rhs_contract = [0], epilogue = graph @epilogue {
      %0 = input() {name = "acc"} : [2, 3] f32
      %1 = input() {name = "bias"} : [BIAS] f32
      %2 = add(%0, %1) : [2, 3] f32
      return %2
    }} : [2, 3] f32
  return %3
})";
  auto with_bias = [&](const char* dim) { return std::string(text).replace(text.find("BIAS"), 4, dim); };
  CHECK(contains(error_text([&] { verify_or_throw(parse_text(with_bias("3")), Level::Mir, "the graph"); }),
                 "input 1 of the epilogue is [3] f32, but its operand is [1] f32"));
  // Declared as [1], the bias is broadcast.
  CompiledGraph f = Session(Device::Cpu).compile(parse_text(with_bias("1")));
  f.set_param("w", std::vector<float>(12, 1));
  f.set_param("b", std::vector<float>{10});
  CHECK(f.run({{"x", std::vector<float>(8, 1)}})[0] == std::vector<float>(6, 14));
}

TEST_CASE("fused_dot names what is wrong with its epilogue") {
  const Shape x({2, 3}, DType::F32), w({3, 2}, DType::F32), bias({2}, DType::F32);
  auto body = std::make_shared<Graph>("epilogue");
  Expr acc = body->input("acc", Shape({2, 2}, DType::F32));
  body->set_outputs({acc * 2});
  ops::FusedDot op{{1}, {0}, {}, {}, body};
  CHECK(infer_error(op, {x, w}).empty());
  CHECK(contains(infer_error(op, {x, w, bias}), "has 1 inputs"));
  CHECK(contains(infer_error(op, {x.with_dtype(DType::F64), w.with_dtype(DType::F64)}), "input 0 of the epilogue"));
  auto reduced = std::make_shared<Graph>("epilogue");
  reduced->set_outputs({reduced->sum(reduced->input("acc", Shape({2, 2}, DType::F32)), {1})});
  CHECK(contains(infer_error(ops::FusedDot{{1}, {0}, {}, {}, reduced}, {x, w}), "changes the dimensions"));
  auto open = std::make_shared<Graph>("epilogue");
  open->set_outputs({open->input("acc", Shape({2, 2}, DType::F32)) + open->param("p", Shape({2}, DType::F32))});
  CHECK(contains(infer_error(ops::FusedDot{{1}, {0}, {}, {}, open}, {x, w}), "holds a param"));
  CHECK_FALSE(infer_error(ops::FusedDot{{1}, {0}, {}, {}, nullptr}, {x, w}).empty());
}

TEST_CASE("dot shape rules refuse hostile axes") {
  const Shape a({2, 3}, DType::F32), b({3, 2}, DType::F32);
  CHECK(contains(infer_error(ops::DotGeneral{{1}, {}, {}, {}}, {a, b}), "1 lhs and 0 rhs contracting axes"));
  CHECK(contains(infer_error(ops::DotGeneral{{2}, {0}, {}, {}}, {a, b}), "axis 2 is out of range"));
  CHECK(contains(infer_error(ops::DotGeneral{{-1}, {0}, {}, {}}, {a, b}), "axis -1"));
  CHECK(contains(infer_error(ops::DotGeneral{{1, 1}, {0, 1}, {}, {}}, {a, b}), "named twice"));
  CHECK(contains(infer_error(ops::DotGeneral{{0}, {0}, {}, {}}, {a, b}), "contracts over 2"));
  CHECK(contains(infer_error(ops::DotGeneral{{}, {}, {0}, {0}}, {a, b}), "batch dimension 2"));
  CHECK(contains(infer_error(ops::DotGeneral{{1}, {0}, {}, {}}, {a, b.with_dtype(DType::F64)}), "operand 1"));
  CHECK(contains(infer_error(ops::MatMul{}, {a, a}), "3 columns"));
  CHECK(contains(infer_error(ops::MatMul{}, {a, Shape({3}, DType::F32)}), "needs two matrices"));
  CHECK(contains(infer_error(ops::MatMul{}, {Shape({2, 2, 3}, DType::F32), Shape({3, 3, 2}, DType::F32)}),
                 "do not broadcast"));
  CHECK(contains(infer_error(ops::MatMul{}, {a.with_dtype(DType::Bool), b.with_dtype(DType::Bool)}), "matmuls need"));
}
TEST_CASE("products into a wider dtype: nothing is rounded or wraps on the way") {
  const auto bytes = [](std::vector<double> v, DType t) {
    return Tensor::of<double>({1, static_cast<std::int64_t>(v.size())}, v).cast(t);
  };
  const ops::DotGeneral to_i32{{1}, {1}, {}, {}, DType::I32}, to_f32{{1}, {1}, {}, {}, DType::F32};
  const Tensor u = bytes({255, 255, 3}, DType::U8), i = bytes({-128, -128, 7}, DType::I8);
  Tensor y = run_op(to_i32, {u, i})[0];
  CHECK(y.dtype() == DType::I32);
  CHECK(y.at_i64(0) == 2 * 255 * -128 + 21);
  CHECK(run_op(to_i32, {u, u})[0].at_i64(0) == 2 * 255 * 255 + 9);
  // 256 + 1 is 257 in f32; bf16 has 256 and 258.
  const Tensor h = bytes({16, 1}, DType::BF16);
  CHECK(run_op(to_f32, {h, h})[0].at(0) == 257);
  CHECK(run_op(ops::DotGeneral{{1}, {1}, {}, {}}, {h, h})[0].at(0) == 256);
  CHECK(run_op(to_f32, {bytes({448, 1.125}, DType::F8E4M3), bytes({2, 8}, DType::F8E5M2)})[0].at(0) == 905);
}
