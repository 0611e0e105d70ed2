// For every sample of every op, the reference rule returns the inferred shapes, and the rule and the decompositions are
// within the op's rounding bound.
#include "tests/support/run_check.h"

namespace rlx::test {
namespace {

TEST_CASE("reference results have the inferred shapes") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    if (!def.reference.has() && !def.reference.derived()) return;
    std::vector<Tensor> operands = draw_operands(sample);
    std::vector<Shape> shapes;
    for (const Tensor& t : operands) shapes.push_back(t.shape());
    std::vector<Shape> inferred = infer_shapes(sample.op, shapes).value();
    std::vector<Tensor> results = evaluate_op(sample.op, operands);
    REQUIRE(results.size() == inferred.size());
    for (std::size_t r = 0; r < results.size(); ++r) {
      CHECK(results[r].shape() == inferred[r]);
      CHECK_FALSE(results[r].empty());
    }
  });
}

// The bound follows the decomposition if there is one, so each form of an op is compared with the exact result.
TEST_CASE("the reference rule is within its bound of the exact result") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    if (def.level == Level::Lir || def.is_leaf() || !(def.reference.has() || def.reference.derived())) return;
    const std::vector<Tensor> operands = draw_operands(sample);
    expect_within_bound(evaluate_op(sample.op, operands),
                        evaluate_bounded(sample_graph(sample), bind_operands(operands)));
  });
}

TEST_CASE("decompositions of both policies are within the bound of the exact result") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    if (!def.decompose.has()) return;
    const std::vector<Tensor> operands = draw_operands(sample);
    const BoundedResult exact = evaluate_bounded(sample_graph(sample), bind_operands(operands));
    for (FusionPolicy policy : {FusionPolicy::Fusable, FusionPolicy::Direct}) {
      Graph g("decomposed");
      std::vector<Expr> exprs;
      for (const Tensor& t : operands) exprs.push_back(g.input("x" + std::to_string(exprs.size()), t.shape()));
      g.set_outputs(decompose_into(g, sample.op, exprs, policy));
      INFO("policy ", (policy == FusionPolicy::Direct ? "direct" : "fusable"));
      expect_within_bound(evaluate(g, bind_operands(operands)), exact);
    }
  });
}

}  // namespace
}  // namespace rlx::test
