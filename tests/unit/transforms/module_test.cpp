// Transforms of modules, preparation for derivatives, and linearize.
#include <cmath>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/verify.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/module.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

// A HIR block, a fused op and a norm: y = rms_norm(gelu(x w + b)).
Graph block_model() {
  Graph g("blocks");
  Expr x = g.input("x", Shape({2, 3}, DType::F64)), w = g.param("w", Shape({3, 4}, DType::F64));
  Expr b = g.param("b", Shape({4}, DType::F64)), gamma = g.param("gamma", Shape({4}, DType::F64));
  Expr h = g.add(ops::Linear{ActivationKind::Gelu, true}, {x, w, b});
  g.set_outputs({g.rms_norm(h, gamma, g.expand(g.scalar(0, DType::F64), {4}), 0.01)});
  return g;
}
NamedTensors block_values() {
  return {
      {"x", sequence({2, 3})}, {"w", sequence({3, 4}, 0.5)}, {"b", sequence({4}, 0.2)}, {"gamma", sequence({4}, 1, 2)}};
}

TEST_CASE("modules at stage hir are differentiated; the result is mir") {
  const GraphModule forward = make_module(block_model());
  REQUIRE(forward.stage() == GraphStage::Hir);
  ModuleTransformResult r = grad_with_loss_module(forward, {"w"});
  CHECK(r.module.stage() == GraphStage::Mir);
  CHECK(r.added_inputs == std::vector<std::string>{"d_output"});
  NamedTensors values = block_values();
  values.emplace("d_output", sequence({2, 4}));
  const std::vector<Tensor> out = evaluate(r.module.graph(), values);
  REQUIRE(out.size() == 2);

  // <dw, v> of reverse mode is <d_output, jvp v> of forward mode.
  ModuleTransformResult f = jvp_module(forward, {"w"});
  CHECK(f.added_inputs == std::vector<std::string>{"tangent_w"});
  const Tensor v = sequence({3, 4}, 0.3, 0.1);
  NamedTensors moved = block_values();
  moved.emplace("tangent_w", v);
  const std::vector<Tensor> forward_mode = evaluate(f.module.graph(), moved);
  REQUIRE(forward_mode.size() == 2);
  double left = 0, right = 0;
  for (std::int64_t i = 0; i < 12; ++i) left += out[1].at(i) * v.at(i);
  for (std::int64_t i = 0; i < 8; ++i) right += values.at("d_output").at(i) * forward_mode[1].at(i);
  CHECK(std::fabs(left) > 0.01);
  CHECK(left == doctest::Approx(right).epsilon(1e-12));
}

TEST_CASE("modules at stage lir are refused") {
  const GraphModule planned(LirModule{Graph(), {}, Graph()});
  CHECK(contains(error_text([&] { grad_with_loss_module(planned, {"x"}); }),
                 "grad_with_loss_module: the module is at stage lir"));
  CHECK(contains(error_text([&] { jvp_module(planned, {"x"}); }), "jvp_module: the module is at stage lir"));
  CHECK(contains(error_text([&] { prepare_module_for_ad(planned); }), "stage hir or mir"));
}

TEST_CASE("prepare_module_for_ad leaves ops with rules of their own and keeps the results") {
  const GraphModule forward = make_module(block_model());
  ModuleTransformResult r = prepare_module_for_ad(forward);
  CHECK(r.module.stage() == GraphStage::Mir);
  CHECK(r.added_inputs.empty());
  for (const Node& n : r.module.graph().nodes()) {
    const OpDef& def = op_def(n.kind());
    CHECK_MESSAGE(!def.vjp.derived(), def.name);
    CHECK_MESSAGE(!def.jvp.derived(), def.name);
  }
  expect_close(evaluate(r.module.graph(), block_values())[0], evaluate(forward.graph(), block_values())[0], 1e-12);
  const Value y = forward.graph().outputs()[0];
  CHECK(r.ids.at(y) == r.module.graph().outputs()[0]);
}

TEST_CASE("linearize: one point, many directions") {
  const Graph g = block_model();
  const Linearized lin = linearize(g, {"x", "w"});
  CHECK(lin.tangents == std::vector<std::string>{"tangent_x", "tangent_w"});
  REQUIRE(!lin.residuals.empty());
  verify_or_throw(lin.primal.graph, Level::Mir, "primal");
  verify_or_throw(lin.linear, Level::Mir, "linear");
  // The linear graph reads residuals and tangents. gamma and b have no tangents, x and w do.
  std::vector<std::string> inputs;
  for (NodeId id : lin.linear.leaves(OpKind::Input)) inputs.push_back(lin.linear.leaf_name(id));
  std::vector<std::string> expected = lin.residuals;
  expected.insert(expected.end(), lin.tangents.begin(), lin.tangents.end());
  CHECK(inputs == expected);
  CHECK(!lin.linear.find_leaf(OpKind::Param, "w").valid());
  CHECK(!lin.primal.graph.find_leaf(OpKind::Input, "tangent_x").valid());

  const NamedTensors values = block_values();
  const std::vector<Tensor> point = evaluate(lin.primal.graph, values);
  REQUIRE(point.size() == 1 + lin.residuals.size());
  const TransformResult both = jvp(g, {"x", "w"});
  auto along = [&](const Tensor& dx, const Tensor& dw) {
    NamedTensors in{{"tangent_x", dx}, {"tangent_w", dw}, {"gamma", values.at("gamma")}};
    for (std::size_t i = 0; i < lin.residuals.size(); ++i) in.emplace(lin.residuals[i], point[1 + i]);
    const std::vector<Tensor> t = evaluate(lin.linear, in);
    REQUIRE(t.size() == 1);
    NamedTensors all = values;
    all.emplace("tangent_x", dx);
    all.emplace("tangent_w", dw);
    const std::vector<Tensor> reference = evaluate(both.graph, all);
    expect_close(point[0], reference[0], 0);
    expect_close(t[0], reference[1], 1e-14);
    return t[0];
  };
  const Tensor zero_x = doubles({2, 3}, {0, 0, 0, 0, 0, 0});
  const Tensor a = along(sequence({2, 3}, 0.7), sequence({3, 4}, 0.1));
  const Tensor b = along(sequence({2, 3}, 1.4), sequence({3, 4}, 0.2));
  for (std::int64_t i = 0; i < a.num_elements(); ++i) CHECK(b.at(i) == doctest::Approx(2 * a.at(i)));
  along(zero_x, sequence({3, 4}, 1));
}

TEST_CASE("linearize keeps states and gives constant tangents") {
  Graph g("counter");
  Expr x = g.input("x", Shape({2}, DType::F64));
  Expr n = g.state("n", Tensor::zeros(Shape({}, DType::F64)));
  g.set_state("n", (n + 1.0).value());
  g.set_outputs({x * n, g.iota(Shape({2}, DType::I32), 0)});
  const Linearized lin = linearize(g, {"x"});
  CHECK(lin.primal.graph.state_updates().size() == 1);
  CHECK(lin.linear.state_updates().empty());
  CHECK(lin.residuals.size() == 1);  // the state
  const std::vector<Tensor> t =
      evaluate(lin.linear, {{lin.residuals[0], doubles({}, {3})}, {"tangent_x", doubles({2}, {1, 2})}});
  expect_close(t[0], {3, 6}, 0);
  expect_close(t[1], {0, 0}, 0);
  CHECK(contains(error_text([&] { linearize(g, {"y"}); }), "'y'"));
}

}  // namespace
}  // namespace rlx::test
