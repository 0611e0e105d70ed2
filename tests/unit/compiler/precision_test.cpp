// Mixed precision: only F32 arithmetic is narrowed. Indices, masks, F64, casts, inputs and outputs keep their dtypes.
#include "rlx/compiler/precision.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"

namespace rlx {
namespace {

int count(const Graph& g, OpKind kind, DType dtype) {
  int n = 0;
  for (const Node& node : g.nodes()) n += node.kind() == kind && node.shape().dtype() == dtype;
  return n;
}

Graph sample() {
  Graph g("mixed");
  Expr ids = g.input("ids", {{4}, DType::I32});
  Expr wide = g.input("wide", {{4}, DType::F64});
  Expr x = g.gather(g.param("table", {{5000, 8}, DType::F32}), ids);
  Expr y = g.softmax(g.matmul(x, g.param("w", {{8, 8}, DType::F32})) * 2, -1);
  g.set_outputs({y, g.exp(g.sum(y, {1})), wide * 3, g.cast(y, DType::I32)});
  return g;
}

TEST_CASE("a policy narrows the categories it names and nothing else") {
  Graph g = apply_precision(sample(), PrecisionPolicy::auto_mixed_conservative());
  CHECK(count(g, OpKind::MatMul, DType::F16) == 1);
  CHECK(count(g, OpKind::Softmax, DType::F32) == 1);
  CHECK(count(g, OpKind::Reduce, DType::F32) == 1);
  CHECK(count(g, OpKind::Activation, DType::F32) == 1);  // exp overflows F16
  CHECK(count(g, OpKind::Input, DType::I32) == 1);
  CHECK(count(g, OpKind::Input, DType::F64) == 1);
  CHECK(count(g, OpKind::Param, DType::F32) == 2);
  CHECK(g.shape(g.outputs()[0]).dtype() == DType::F32);
  CHECK(g.shape(g.outputs()[2]).dtype() == DType::F64);
  CHECK(g.shape(g.outputs()[3]).dtype() == DType::I32);
  CHECK(apply_precision(sample(), {}).num_nodes() == sample().num_nodes());
}

TEST_CASE("a session's precision acts on the cpu, within the error of the type") {
  NamedTensors in{{"ids", Tensor::of<std::int32_t>({4}, std::vector<std::int32_t>{0, 4999, 2500, 7})},
                  {"wide", Tensor::of<double>({4}, std::vector<double>{1, 1e300, 3, 4})}};
  std::vector<float> table(5000 * 8), w(64);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.3f * std::cos(static_cast<float>(i));
  auto run = [&](Session s) {
    CompiledGraph f = s.compile(sample());
    f.set_param("table", table);
    f.set_param("w", w);
    return f.run_typed(in);
  };
  std::vector<Tensor> exact = run(Session());
  for (Precision p : {Precision::F16, Precision::BF16}) {
    std::vector<Tensor> narrow = run(Session().with_precision(p));
    const double tolerance = p == Precision::F16 ? 4e-3 : 3e-2;
    test::Worst worst;
    for (std::int64_t i = 0; i < 32; ++i) worst.add(narrow[0].at(i), exact[0].at(i));
    CHECK(worst.value() < tolerance);
    CHECK(worst.value() > 0);  // the result differs, so the narrow type was used
    CHECK(narrow[2].identical(exact[2]));
  }
}

TEST_CASE("a policy narrows inside bodies; their weights are cast once, where weights are prepared") {
  for (const bool stacked : {false, true}) {
    CAPTURE(stacked);
    Graph g("cell");
    const Expr w = g.param("w", stacked ? Shape({4, 8, 8}, DType::F32) : Shape({8, 8}, DType::F32));
    const Expr xs = g.input("xs", {{4, 2, 8}, DType::F32}), h = g.input("h", {{2, 8}, DType::F32});
    const ExprList rows = stacked ? ExprList{xs, w} : ExprList{xs};
    const LoopResult r = g.scan(h, rows, [&](Graph& b, const ExprList& c, const ExprList& x) {
      return LoopStep{{b.tanh(b.matmul(c[0], stacked ? x[1] : w) + x[0])}, {}};
    });
    g.set_outputs({r.carries[0]});
    CompileOptions options;
    options.precision = PrecisionPolicy::of_precision(Precision::BF16);
    CompiledGraph f = Session().compile_with(Graph(g), options);
    const LirModule& lir = f.compile_result().lir;
    CHECK(count(lir.prepare, OpKind::Cast, DType::BF16) == 1);
    CHECK(count(lir.graph, OpKind::Param, DType::F32) == 0);
    REQUIRE(lir.plan.bodies.size() == 1);
    const Graph& body = lir.plan.bodies[0].modules[0].graph;
    bool narrow = false;
    for (const Node& n : body.nodes())
      narrow = narrow || (op_def(n.op).precision == PrecisionCategory::Compute && n.shape().dtype() == DType::BF16);
    CHECK(narrow);
    const auto draw = [](const Shape& s) {
      Tensor t = Tensor::zeros(s);
      for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, std::sin(static_cast<double>(i)) / 4);
      return t;
    };
    const Tensor weights = draw(w.shape());
    f.set_param("w", weights);
    const NamedTensors inputs{{"xs", draw(xs.shape())}, {"h", draw(h.shape())}};
    NamedTensors all = inputs;
    all.emplace("w", weights);
    const Tensor got = f.run_typed(inputs)[0], exact = evaluate(g, all)[0];
    for (std::int64_t i = 0; i < exact.num_elements(); ++i) CHECK(std::fabs(got.at(i) - exact.at(i)) < 0.05);
  }
}

}  // namespace
}  // namespace rlx
