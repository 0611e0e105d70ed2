// The StableHLO text of graphs, on any machine: syntax, limits, constants, refusals. tests/devices checks the results
// with a plug-in.
#include "rlx/backends/tpu/stablehlo.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/collectives.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/norm.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

std::string text_of(const Graph& g) { return tpu::stablehlo_text(g, {}); }
std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
void expect_has(const std::string& text, std::string_view part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, "no '", std::string(part), "' in\n", text);
}
// The text of a constant with this value in all elements.
std::string constant_text(const Tensor& value) {
  Graph g("constant");
  g.set_outputs({g.constant(value)});
  return text_of(g);
}
template <class T>
Tensor tensor_of(Shape shape, const std::vector<T>& values) {
  return Tensor::copy_of(reinterpret_cast<const std::byte*>(values.data()), std::move(shape));
}

}  // namespace

TEST_CASE("StableHLO: a product with bias and relu, word for word") {
  Graph g("linear");
  const Expr x = g.input("x", {{2, 3}, DType::F32}), w = g.param("w", {{3, 4}, DType::F32});
  const Expr b = g.param("b", {{4}, DType::F32});
  g.set_outputs({g.relu(g.dot_general(x, w, ops::DotGeneral{{1}, {0}, {}, {}}) + b)});
  // clang-format off
  const std::string expected = concat_text(
      "module @rlx attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
      "func.func public @main(%0: tensor<2x3xf32>, %1: tensor<3x4xf32>, %2: tensor<4xf32>) -> (tensor<2x4xf32>) {\n"
      "  %3 = \"stablehlo.dot_general\"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], "
      "rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, "
      "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : "
      "(tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>\n"
      "  %4 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>\n"
      "  %5 = stablehlo.add %3, %4 : tensor<2x4xf32>\n"
      "  %6 = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<2x4xf32>\n"
      "  %8 = stablehlo.maximum %5, %7 : tensor<2x4xf32>\n"
      "  return %8 : tensor<2x4xf32>\n"
      "}\n"
      "}\n");
  // clang-format on
  CHECK(text_of(g) == expected);
}

TEST_CASE("StableHLO: arguments are inputs, states, params; results are outputs, then new states") {
  Graph g("borders");
  const Expr p = g.param("p", {{5}, DType::F32});
  const Expr kept = g.state("kept", Tensor::zeros(Shape({2}, DType::I32)));
  const Expr s = g.state("s", Tensor::zeros(Shape({3}, DType::F64)));
  const Expr x = g.input("x", {{4}, DType::F16});
  g.set_state("s", s + s);
  g.set_outputs({x, p, kept});
  const tpu::HloAlias aliases[] = {{2, 4}, {0, 0}};
  const std::string text = tpu::stablehlo_text(g, aliases);
  expect_has(text,
             "@main(%0: tensor<4xf16> {tf.aliasing_output = 0 : i32}, %1: tensor<2xi32>, %2: tensor<3xf64> "
             "{tf.aliasing_output = 4 : i32}, %3: tensor<5xf32>) -> (tensor<4xf16>, tensor<5xf32>, tensor<2xi32>, "
             "tensor<2xi32>, tensor<3xf64>)");
  expect_has(text, "return %0, %3, %1, %1, %4 :");
}

TEST_CASE("StableHLO: 4-bit values cross the border as their bytes") {
  Graph g("nibbles");
  g.set_outputs({g.input("x", {{3, 3}, DType::I4})});
  const std::string text = text_of(g);
  expect_has(text, "@main(%0: tensor<5xui8>) -> (tensor<5xui8>)");
  CHECK(text.find("xi4>") == std::string::npos);
}

TEST_CASE("StableHLO: constants are exact") {
  const auto f32 = [](float x) { return constant_text(tensor_of<float>(Shape({}, DType::F32), {x})); };
  expect_has(f32(3.0F), "dense<3.0> : tensor<f32>");
  expect_has(f32(0.1F), "dense<0x3DCCCCCD> : tensor<f32>");
  expect_has(f32(-0.0F), "dense<0x80000000> : tensor<f32>");
  expect_has(f32(-HUGE_VALF), "dense<0xFF800000> : tensor<f32>");
  expect_has(f32(1e-45F), "dense<0x00000001> : tensor<f32>");
  expect_has(constant_text(Tensor::scalar(DType::BF16, 0.5)), "dense<0x3F00> : tensor<bf16>");
  expect_has(constant_text(Tensor::scalar(DType::F8E4M3, 448)), "dense<0x7E> : tensor<f8E4M3FN>");
  expect_has(constant_text(Tensor::scalar_i64(DType::I64, -5)), "dense<-5> : tensor<i64>");
  expect_has(constant_text(tensor_of<std::uint64_t>(Shape({}, DType::U64), {~std::uint64_t{0}})),
             "dense<18446744073709551615> : tensor<ui64>");
  // Equal elements are one number; other constants are all their bytes.
  const std::string equal = constant_text(Tensor::full(Shape({400, 3}, DType::F32), 2));
  expect_has(equal, "dense<2.0> : tensor<f32>");
  expect_has(equal, "-> tensor<400x3xf32>");
  expect_has(constant_text(tensor_of<float>(Shape({2}, DType::F32), {1.0F, 0.1F})),
             "dense<\"0x0000803FCDCCCC3D\"> : tensor<2xf32>");
  expect_has(constant_text(tensor_of<float>(Shape({}, DType::C64), {1.0F, 2.0F})),
             "dense<\"0x0000803F00000040\"> : tensor<complex<f32>>");
  expect_has(constant_text(Tensor::zeros(Shape({0, 2}, DType::F32))), "dense<> : tensor<0x2xf32>");
  const std::string flags = constant_text(tensor_of<std::uint8_t>(Shape({3}, DType::Bool), {1, 0, 1}));
  expect_has(flags, "dense<\"0x010001\"> : tensor<3xui8>");
  expect_has(flags, "stablehlo.compare NE");
}

TEST_CASE("StableHLO: a number is written once in its region") {
  Graph g("numbers");
  Expr x = g.input("x", {{2}, DType::F32});
  for (int i = 0; i < 10; ++i) x = x * 0.1F;
  g.set_outputs({x});
  CHECK(count(text_of(g), "stablehlo.constant") == 1);
}

TEST_CASE("StableHLO: every primitive but four factors has a row, and nothing calls what is not StableHLO") {
  for (const OpDef* def : all_op_defs()) {
    const bool of_the_compiler = def->level != Level::Mir || def->kind == OpKind::Custom || def->is_leaf();
    if (of_the_compiler || def->is_composite()) continue;
    using enum OpKind;  // StableHLO has no such ops: the host computes them
    if (def->kind == Lu || def->kind == Qr || def->kind == Eigh || def->kind == Svd) continue;
    CHECK_MESSAGE(tpu::stablehlo_kinds().has(def->kind), std::string(def->name), " has no row");
  }
  test::for_each_sample([](const OpDef& def, const testing::Sample& sample) {
    if (!tpu::stablehlo_kinds().has(def.kind) || def.is_leaf()) return;
    const Graph g = test::sample_graph(sample);
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
      if (tpu::stablehlo_refuses(g, NodeId{i})) return;
    const std::string text = text_of(g);
    CHECK(text.find("custom_call") == std::string::npos);
    CHECK(count(text, "chlo.") == count(text, "\"chlo.erf\"") + count(text, "\"chlo.top_k\"") +
                                      count(text, "\"chlo.atan\"") + count(text, "\"chlo.asin\"") +
                                      count(text, "\"chlo.acos\"") + count(text, "\"chlo.atanh\"") +
                                      count(text, "\"chlo.lgamma\"") + count(text, "\"chlo.zeta\""));
  });
}

TEST_CASE("StableHLO: ops that others see run are a chain of tokens, through branches and loops") {
  Graph g("ordered");
  const Expr x = g.input("x", {{2}, DType::F32}), pred = g.input("pred", {{}, DType::Bool});
  const auto sum = [](Graph& b, const Expr& v) { return b.all_reduce(v, ReduceKind::Sum, "data", 1); };
  Expr y = sum(g, x);
  sum(g, x * 2.0);  // no reader
  y = g.cond(
      pred, {y}, [&](Graph& b, const ExprList& in) { return ExprList{sum(b, in[0])}; },
      [](Graph&, const ExprList& in) { return ExprList{in[0] * 3.0}; })[0];
  y = g.scan({y}, {},
             [&](Graph& b, const ExprList& c, const ExprList&) {
               return LoopStep{{sum(b, c[0] + 1.0)}, {}};
             },
             {Dim(4)})
          .carries[0];
  g.set_outputs({y});
  const std::string text = text_of(g);
  CHECK(count(text, "stablehlo.after_all") == 1);  // the start of the token chain
  // One barrier per collective and one at the end. Each takes the token of the one before and gives a new one.
  CHECK(count(text, "\"stablehlo.optimization_barrier\"") == 5);
  std::vector<std::string> taken;
  for (std::size_t at = text.find("optimization_barrier\"("); at != std::string::npos;
       at = text.find("optimization_barrier\"(", at + 1)) {
    const std::size_t end = text.find(')', at), last = text.rfind('%', end);
    taken.push_back(text.substr(last, end - last));
  }
  REQUIRE(taken.size() == 5);
  for (std::size_t i = 0; i < taken.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) CHECK_MESSAGE(taken[i] != taken[k], text);
  expect_has(text, "}) : (tensor<i1>) -> (tensor<2xf32>, !stablehlo.token)");  // the branch
  expect_has(text, "(tensor<2xf32>, !stablehlo.token, tensor<i32>) -> (tensor<2xf32>, !stablehlo.token, tensor<i32>)");
  Graph plain("plain");
  plain.set_outputs({plain.exp(plain.input("x", {{2}, DType::F32}))});
  CHECK(text_of(plain).find("token") == std::string::npos);
}

TEST_CASE("StableHLO: reasons of what is refused") {
  Graph g("refused");
  const Expr x = g.input("x", {{2, 3}, DType::F32});
  const Expr two = g.add(ops::AllReduce{ReduceKind::Sum, "data", 2}, {x});
  const Expr norm = g.add(ops::RmsNorm{{1}}, {x});
  CHECK(std::string(tpu::stablehlo_refuses(g, two.value().node)) == "the device runs one rank");
  CHECK(std::string(tpu::stablehlo_refuses(g, norm.value().node)) == "there is no StableHLO for this kind");
  CHECK(tpu::stablehlo_refuses(g, x.value().node) == nullptr);
  // A branch holds an op that the text cannot express.
  const Expr pred = g.input("pred", {{}, DType::Bool});
  const Expr branch = g.cond(
      pred, {x}, [](Graph& b, const ExprList& in) { return ExprList{b.add(ops::RmsNorm{{1}}, {in[0]})}; },
      [](Graph&, const ExprList& in) { return ExprList{in[0]}; })[0];
  CHECK(std::string(tpu::stablehlo_refuses(g, branch.value().node)) == "there is no StableHLO for this kind");
}

}  // namespace rlx
