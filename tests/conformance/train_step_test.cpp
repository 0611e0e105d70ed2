// A training step as one program: gradients and an optimizer that updates states in place.
#include <cmath>

#include <doctest/doctest.h>

#include "rlx/runtime/session.h"
#include "tests/support/adam_step.h"

namespace rlx {
namespace {

TEST_CASE("an Adam step: states in place, the values of the reference, relu in the product, no transposes") {
  CompileOptions in_place;
  in_place.must_alias = true;
  CompiledGraph truth = Session::on_backend("reference").compile(test::adam_step());
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) losses.push_back(truth.run_typed(test::adam_inputs()).at(0).at(0));
  CHECK(losses.back() < losses.front());

  std::vector<Tensor> first;
  for (int threads : {1, 2, 3}) {
    CompiledGraph f = Session().with_threads(threads).compile_with(test::adam_step(), in_place);
    const NamedTensors values = test::adam_inputs();
    for (int step = 0; step < 5; ++step)
      CHECK(f.run_typed(values).at(0).at(0) == doctest::Approx(losses[static_cast<std::size_t>(step)]).epsilon(1e-5));
    std::vector<Tensor> states;
    for (const std::string& name : test::adam_states()) states.push_back(f.read_state(name));
    for (std::size_t i = 0; i < states.size(); ++i) {
      CAPTURE(test::adam_states()[i]);
      if (threads > 1) CHECK(states[i].identical(first[i]));
      const Tensor want = truth.read_state(test::adam_states()[i]);
      std::int64_t wrong = 0;
      for (std::int64_t k = 0; k < want.num_elements(); ++k)
        wrong += !(std::fabs(states[i].at(k) - want.at(k)) <= 1e-3 * std::fabs(want.at(k)) + 1e-4);
      CHECK(wrong == 0);
    }
    if (threads == 1) first = std::move(states);

    // Bias and relu are the matmul's epilogue: the derivative reads relu's result instead of its operand.
    std::vector<TensorView> views;
    for (const IoInfo& in : f.inputs()) views.push_back(values.at(in.name).view());
    int products = 0;
    for (const NodeTime& t : f.profile(views)) {
      products += t.kernel.starts_with("gemm_");
      CHECK(t.op != "relu");
      CHECK(t.op != "transpose");
    }
    CHECK(products == 5);
  }
}

}  // namespace
}  // namespace rlx
