// Bodies as chains of steps, and FusedDots whose epilogue is bias and activation.
#include "rlx/ir/chain.h"

#include <doctest/doctest.h>

#include "rlx/ir/op_def.h"
#include "rlx/ir/op_set.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ir/text.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using From = ChainOperand::From;

using test::f32;

TEST_CASE("a region's body as a chain: operands, constants, steps and results by number") {
  Graph body("body");
  Expr a = body.input("a", f32({4})), b = body.input("b", f32({4}));
  Expr sum = body.add(a, b), half = body.mul(sum, 0.5), act = body.tanh(half);
  body.set_outputs({act, sum, b});
  const Chain c = chain_of(body);
  REQUIRE(c.steps.size() == 3);
  CHECK(c.steps[0].node == sum.value().node);
  CHECK(c.steps[0].operands == std::vector<ChainOperand>{{From::Input, 0}, {From::Input, 1}});
  REQUIRE(c.steps[1].operands.size() == 2);
  CHECK(c.steps[1].operands[0] == ChainOperand{From::Step, 0});
  CHECK(c.steps[1].operands[1].from == From::Constant);
  CHECK(body.node(NodeId{c.steps[1].operands[1].index}).kind() == OpKind::Constant);
  CHECK(c.steps[2].operands == std::vector<ChainOperand>{{From::Step, 1}});
  CHECK(c.results == std::vector<ChainOperand>{{From::Step, 2}, {From::Step, 0}, {From::Input, 1}});
  CHECK(op_def(body.node(c.steps[2].node).kind()).kind == OpKind::Activation);
}

TEST_CASE("what no body can hold is refused by name") {
  Graph with_param("g");
  with_param.set_outputs({with_param.exp(with_param.param("weight", f32({2})))});
  CHECK(test::contains(test::error_text([&] { (void)chain_of(with_param); }), "weight"));
  Graph two_results("g");
  two_results.set_outputs({two_results.top_k(two_results.input("x", f32({4})), 2).values});
  CHECK(test::contains(test::error_text([&] { (void)chain_of(two_results); }), "one result"));
}

// x [2, 4] times w [4, 3] with an epilogue over the accumulator and one operand.
template <class F>
Graph fused(Shape operand, F&& epilogue) {
  Graph g("g");
  Expr x = g.input("x", f32({2, 4})), w = g.param("w", f32({4, 3})), o = g.param("o", operand);
  auto body = std::make_shared<Graph>("epilogue");
  Expr acc = body->input("acc", f32({2, 3})), op = body->input("op0", operand);
  body->set_outputs({epilogue(*body, acc, op)});
  g.set_outputs({g.add(ops::FusedDot{{1}, {0}, {}, {}, std::move(body)}, {x, w, o})});
  return g;
}

TEST_CASE("FusedMatMulBiasAct: a fused dot whose epilogue is bias and at most one activation") {
  auto seen = [](const Graph& g) { return as_matmul_bias_act(g, g.outputs()[0].node); };
  const Graph biased = fused(f32({3}), [](Graph& b, Expr acc, Expr o) { return b.add(acc, o); });
  auto form = seen(biased);
  REQUIRE(form);
  CHECK(!form->activation);
  CHECK(biased.leaf_name(form->x.node) == "x");
  CHECK(biased.leaf_name(form->w.node) == "w");
  CHECK(biased.leaf_name(form->bias.node) == "o");
  form = seen(fused(f32({3}), [](Graph& b, Expr acc, Expr o) { return b.silu(b.add(o, acc)); }));
  REQUIRE(form);
  CHECK(form->activation == ActivationKind::Silu);
  CHECK(!seen(fused(f32({2, 3}), [](Graph& b, Expr acc, Expr o) { return b.add(acc, o); })));       // a residual
  CHECK(!seen(fused(f32({3}), [](Graph& b, Expr acc, Expr o) { return b.mul(acc, o); })));          // a scale
  CHECK(!seen(fused(f32({3}), [](Graph& b, Expr acc, Expr o) { return b.add(b.gelu(acc), o); })));  // act before bias
  CHECK(!seen(fused(f32({3}), [](Graph& b, Expr acc, Expr o) { return b.add(b.add(acc, o), o); })));
  CHECK(!seen(fused(f32({3}), [](Graph& b, Expr acc, Expr o) { return b.exp(b.gelu(b.add(acc, o))); })));
  CHECK(!as_matmul_bias_act(biased, NodeId{0}));
}

TEST_CASE("the documented name is understood where kinds and text names are asked for") {
  CHECK(OpKind::FusedMatMulBiasAct == OpKind::FusedDot);
  CHECK(OpSet{OpKind::FusedMatMulBiasAct}.has(OpKind::FusedDot));
  REQUIRE(find_op("fused_matmul_bias_act"));
  CHECK(find_op("fused_matmul_bias_act")->def == find_op("fused_dot")->def);
  const Graph g = fused(f32({3}), [](Graph& b, Expr acc, Expr o) { return b.gelu(b.add(acc, o)); });
  std::string text = print_text(g);
  const std::size_t at = text.find("fused_dot(");
  REQUIRE(at != std::string::npos);
  text.replace(at, std::string("fused_dot").size(), "fused_matmul_bias_act");
  CHECK(print_text(parse_text(text)) == print_text(g));
}

}  // namespace
}  // namespace rlx
