// For every sample of every op: the reference rule gives the inferred shapes, the decomposition equals the reference.
#include <optional>

#include "tests/support/samples.h"

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

TEST_CASE("decomposition equals reference") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    if (!def.decompose.has()) return;
    std::vector<Tensor> operands = draw_operands(sample);
    std::optional<std::vector<Tensor>> expected;
    if (def.reference.has()) expected = evaluate_op(sample.op, operands);
    for (FusionPolicy policy : {FusionPolicy::Fusable, FusionPolicy::Direct}) {
      Graph g("decomposed");
      std::vector<Expr> exprs;
      for (const Tensor& t : operands) exprs.push_back(g.input("x" + std::to_string(exprs.size()), t.shape()));
      g.set_outputs(decompose_into(g, sample.op, exprs, policy));
      std::vector<Tensor> actual = evaluate(g, bind_operands(operands));
      if (!expected) expected = actual;  // the two policies must agree at least
      REQUIRE(actual.size() == expected->size());
      for (std::size_t r = 0; r < actual.size(); ++r) {
        INFO("policy ", (policy == FusionPolicy::Direct ? "direct" : "fusable"), ", result ", r, ": ", actual[r].text(),
             " expected ", (*expected)[r].text());
        CHECK(distance(actual[r], (*expected)[r]) <= tolerance_of(actual[r].dtype()));
      }
    }
  });
}

}  // namespace
}  // namespace rlx::test
