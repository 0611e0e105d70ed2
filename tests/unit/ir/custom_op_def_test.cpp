// CustomOpDef: ops whose records leave fields out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/ir/custom_op.h"
#include "rlx/runtime/session.h"
#include "rlx/testing/check_op.h"
#include "rlx/testing/op_samples.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// gate(a, b) = a b / (1 + |a|), elementwise.
struct GateRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (c.input(0).dtype() != DType::F32) return c.dtype_error("a must be f32, got ", c.input(0));
    if (!(c.input(0) == c.input(1))) return c.error("a is ", c.input(0), ", b is ", c.input(1));
    return Shapes{c.input(0)};
  }
  static void reference(const RefArgs& a) {
    for (std::int64_t i = 0; i < a.in(0).num_elements(); ++i)
      a.out().set(i, a.in(0).at(i) * a.in(1).at(i) / (1 + std::fabs(a.in(0).at(i))));
  }
  static void vjp(VjpContext& c) {
    const Expr d = 1.0 + c.graph().abs(c.input(0));
    c.accumulate(0, c.cotangent() * c.input(1) / (d * d));
    c.accumulate(1, c.cotangent() * c.input(0) / d);
  }
  static void decompose(DecomposeContext& c) {
    c.set_result(c.input(0) * c.input(1) / (1.0 + c.graph().abs(c.input(0))));
  }
  static std::optional<Diagnostic> kernel(const KernelCall& call) {
    const auto a = call.inputs[0].as<float>(), b = call.inputs[1].as<float>();
    const auto y = call.outputs[0].as<float>();
    for (std::size_t i = 0; i < a->size(); ++i) (*y)[i] = (*a)[i] * (*b)[i] / (1 + std::fabs((*a)[i]));
    return std::nullopt;
  }
};

CustomOpDef gate(const char* name) { return CustomOpDef(name).inputs("a", "b").infer(GateRules::infer); }

void register_gates() {
  static const bool once = [] {
    register_op(gate("test.gate").reference(GateRules::reference).vjp(GateRules::vjp).kernel(GateRules::kernel));
    register_op(gate("test.gate_elementwise").reference(GateRules::reference).elementwise().vjp(GateRules::vjp));
    register_op(gate("test.gate_composite").decompose(GateRules::decompose));
    return true;
  }();
  (void)once;
}

Graph squared_gate(const char* name) {
  register_gates();
  Graph g("gate");
  const Dim n = g.symbol("n", {.max = 100});
  const Expr a = g.input("a", {{n}, DType::F32}), b = g.input("b", {{n}, DType::F32});
  g.set_outputs({g.sum(g.square(g.add(custom_op(name), {a, b})))});
  return g;
}

}  // namespace

TEST_CASE("CustomOpDef: an op of two operands with shape, reference, derivative and kernel") {
  const NamedTensors values{{"a", Tensor::of<float>({3}, {1, -2, 3})}, {"b", Tensor::of<float>({3}, {1, 2, 3})}};
  for (const char* name : {"test.gate", "test.gate_elementwise", "test.gate_composite"}) {
    CAPTURE(name);
    CompiledGraph f = Session().compile(value_and_grad(squared_gate(name), {"a", "b"}).graph);
    const std::vector<Tensor> out = f.run_typed(values);
    double sum = 0;
    for (int i = 0; i < 3; ++i) {
      const double a = values.at("a").at(i), b = values.at("b").at(i), d = 1 + std::fabs(a), y = a * b / d;
      sum += y * y;
      CHECK(out[1].at(i) == doctest::Approx(2 * y * b / (d * d)));
      CHECK(out[2].at(i) == doctest::Approx(2 * y * a / d));
    }
    CHECK(out[0].at(0) == doctest::Approx(sum));
  }
  const OpDef& def = *registered_op("test.gate");
  CHECK(def.level == Level::Mir);
  CHECK(def.trait == OpTrait::Pure);
  CHECK(def.inputs.text() == "a, b");
}

TEST_CASE("CustomOpDef: vmap over each operand and over both, without a batch rule") {
  register_gates();
  for (const char* name : {"test.gate", "test.gate_elementwise", "test.gate_composite"}) {
    Graph g("one");
    const Expr a = g.input("a", {{3}, DType::F32}), b = g.input("b", {{3}, DType::F32});
    g.set_outputs({g.add(custom_op(name), {a, b})});
    const Tensor row = Tensor::of<float>({3}, {1, -2, 3}), rows = Tensor::of<float>({2, 3}, {1, 2, 3, -4, 5, -6});
    for (const auto& batched : {std::vector<std::string>{"a"}, {"b"}, {"a", "b"}}) {
      const auto has = [&](const char* n) { return std::find(batched.begin(), batched.end(), n) != batched.end(); };
      InAxes axes;
      for (const std::string& leaf : batched) axes[leaf] = 0;
      CompiledGraph f = Session().compile(vmap(g, axes, 2).graph);
      const Tensor y = f.run_typed({{"a", has("a") ? rows : row}, {"b", has("b") ? rows : row}})[0];
      REQUIRE(y.dims() == std::vector<std::int64_t>{2, 3});
      for (std::int64_t i = 0; i < 6; ++i) {
        const double x = has("a") ? rows.at(i) : row.at(i % 3), z = has("b") ? rows.at(i) : row.at(i % 3);
        CHECK(y.at(i) == doctest::Approx(x * z / (1 + std::fabs(x))));
      }
    }
  }
}

TEST_CASE("CustomOpDef: the generic checks of samples pass") {
  register_gates();
  testing::add_op_samples("test.gate", [](testing::SampleSet& s) {
    s.add("matrix", {Shape({2, 3}, DType::F32), Shape({2, 3}, DType::F32)}, custom_op("test.gate"));
  });
  testing::add_op_samples("test.gate_elementwise", [](testing::SampleSet& s) {
    s.add("row", {Shape({5}, DType::F32), Shape({5}, DType::F32)}, custom_op("test.gate_elementwise"));
  });
  testing::add_op_samples("test.gate_composite", [](testing::SampleSet& s) {
    s.add("row", {Shape({5}, DType::F32), Shape({5}, DType::F32)}, custom_op("test.gate_composite"));
  });
  for (const char* name : {"test.gate", "test.gate_elementwise", "test.gate_composite"}) {
    const testing::OpCheck found = testing::check_op(name);
    CHECK(found.checks > 3);
    for (const std::string& problem : found.problems) FAIL_CHECK(problem);
  }
}

TEST_CASE("CustomOpDef: what is missing is named, at registration and where a rule is needed") {
  const std::string text = error_text([] { register_op(CustomOpDef("test.nothing")); });
  CHECK_MESSAGE(contains(text, "register_op('test.nothing'): it has no .inputs("), text);
  CHECK_MESSAGE(contains(text, ".infer(f)"), text);
  CHECK_MESSAGE(contains(text, ".reference(f) or .decompose(f)"), text);
  register_gates();
  const std::string jvp_text = error_text([] { (void)jvp(squared_gate("test.gate"), {"a"}); });
  CHECK_MESSAGE(contains(jvp_text, "test.gate"), jvp_text);
  CHECK_MESSAGE(contains(jvp_text, "it was registered without .jvp(f)"), jvp_text);
  CHECK(error_text([] { (void)jvp(squared_gate("test.gate_composite"), {"a"}); }).empty());
  CHECK(contains(error_text([] { register_op(gate("test.gate").reference(GateRules::reference)); }),
                 "registered already"));
}

TEST_CASE("CustomOpDef: a record outlives the strings of its operands") {
  {
    std::string first = "left_operand", second = "right_operand";
    register_op(CustomOpDef("test.operands_of_short_life")
                    .inputs(first, second)
                    .infer(GateRules::infer)
                    .reference(GateRules::reference));
    first.assign(first.size(), '?');
    second.assign(second.size(), '?');
  }
  CHECK(registered_op("test.operands_of_short_life")->inputs.text() == "left_operand, right_operand");
}

}  // namespace rlx
