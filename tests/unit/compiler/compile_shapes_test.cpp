// The programs of bench/compile at a small size: compiled, they give the results of the evaluator.
#include "bench/compile_shapes.h"

#include <initializer_list>
#include <span>

#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"
#include "tests/unit/passes/pass_test.h"

namespace rlx {
namespace {

void check_results(std::span<const shapes::Case> cases, std::initializer_list<int> sizes) {
  for (const shapes::Case& c : cases)
    for (int n : sizes) {
      CAPTURE(c.name);
      CAPTURE(n);
      const Graph g = c.make(n);
      const NamedTensors leaves = test::random_leaves(g, 7);
      const EvaluateResult want = evaluate_with_states(g, leaves);
      CompiledGraph f = Session().with_threads(2).compile(g);
      NamedTensors inputs;
      for (const IoInfo& p : f.params()) f.set_param(p.name, leaves.at(p.name));
      for (const IoInfo& s : f.states()) f.write_state(s.name, leaves.at(s.name));
      for (const IoInfo& i : f.inputs()) inputs.emplace(i.name, leaves.at(i.name));
      const std::vector<Tensor> got = f.run_typed(inputs);
      test::Worst worst;
      const auto compare = [&](const Tensor& a, const Tensor& b) {
        REQUIRE(a.shape() == b.shape());
        for (std::int64_t i = 0; i < a.num_elements(); ++i)
          worst.add(a.at(i), b.at(i), std::max(1.0, std::abs(b.at(i))));
      };
      REQUIRE(got.size() == want.outputs.size());
      for (std::size_t i = 0; i < got.size(); ++i) compare(got[i], want.outputs[i]);
      for (const auto& [name, value] : want.states) compare(f.read_state(name), value);
      CHECK(worst.value() < 1e-4);
    }
}

TEST_CASE("the programs of bench/compile give the evaluator's results") {
  check_results(shapes::kCases, {1, 2, 61});
  check_results(shapes::kPrograms, {1, 50});
}

}  // namespace
}  // namespace rlx
