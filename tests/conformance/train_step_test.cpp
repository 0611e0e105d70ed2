// A training step as one program: gradients and an optimiser over states, updated in place.
#include <cmath>

#include <doctest/doctest.h>

#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

constexpr std::int64_t kRows = 24, kIn = 40, kHidden = 600, kOut = 3;

/// Two layers with relu, mean of squares against `y`; one Adam step of every parameter. Output: the loss.
Graph adam_step() {
  Graph g("step");
  const Expr x = g.input("x", Shape({kRows, kIn}, DType::F32)), y = g.input("y", Shape({kRows, kOut}, DType::F32));
  const Shape shapes[] = {Shape({kIn, kHidden}, DType::F32), Shape({kHidden}, DType::F32),
                          Shape({kHidden, kOut}, DType::F32), Shape({kOut}, DType::F32)};
  std::vector<Expr> p;
  std::vector<Wrt> wrt;
  for (std::size_t i = 0; i < 4; ++i) {
    Tensor init = test::draw(shapes[i], Fill::Normal, 1, i + 1);
    for (std::int64_t k = 0; k < init.num_elements(); ++k) init.set(k, 0.1 * init.at(k));
    p.push_back(g.state("p" + std::to_string(i), init));
    wrt.emplace_back("p" + std::to_string(i));
  }
  const Expr h = g.relu(g.matmul(x, p[0]) + p[1]);
  g.set_outputs({g.mean(g.square(g.matmul(h, p[2]) + p[3] - y))});
  Graph joint = value_and_grad(g, wrt).graph;
  const std::vector<Value> results = joint.outputs();
  const Expr t = joint.state("t", Tensor::scalar(DType::F32, 0)) + 1.0;
  joint.set_state("t", t.value());
  const Expr a = 1.0 - joint.exp(t * std::log(0.9)), b = 1.0 - joint.exp(t * std::log(0.999));
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    const Expr d = joint.expr(results[i + 1]);
    const Expr m = 0.9 * joint.state("m" + n, Tensor::zeros(shapes[i])) + 0.1 * d;
    const Expr v = 0.999 * joint.state("v" + n, Tensor::zeros(shapes[i])) + 0.001 * d * d;
    const Expr old = joint.expr(Value(joint.find_leaf(OpKind::State, "p" + n)));
    joint.set_state("m" + n, m.value());
    joint.set_state("v" + n, v.value());
    joint.set_state("p" + n, (old - 1e-2 * (m / a) / (joint.sqrt(v / b) + 1e-8)).value());
  }
  joint.set_outputs(std::vector<Value>{results[0]});
  return joint;
}

NamedTensors inputs() {
  return {{"x", test::draw(Shape({kRows, kIn}, DType::F32), Fill::Normal, 1, 11)},
          {"y", test::draw(Shape({kRows, kOut}, DType::F32), Fill::Normal, 1, 12)}};
}

std::vector<std::string> state_names() {
  std::vector<std::string> names{"t"};
  for (const char* stem : {"p", "m", "v"})
    for (int i = 0; i < 4; ++i) names.push_back(stem + std::to_string(i));
  return names;
}

TEST_CASE("an Adam step: states in place, the values of the reference, relu in the product, no transposes") {
  CompileOptions in_place;
  in_place.must_alias = true;
  CompiledGraph truth = Session::on_backend("reference").compile(adam_step());
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) losses.push_back(truth.run_typed(inputs()).at(0).at(0));
  CHECK(losses.back() < losses.front());

  std::vector<Tensor> first;
  for (int threads : {1, 2, 3}) {
    CompiledGraph f = Session().with_threads(threads).compile_with(adam_step(), in_place);
    const NamedTensors values = inputs();
    for (int step = 0; step < 5; ++step)
      CHECK(f.run_typed(values).at(0).at(0) == doctest::Approx(losses[static_cast<std::size_t>(step)]).epsilon(1e-5));
    std::vector<Tensor> states;
    for (const std::string& name : state_names()) states.push_back(f.read_state(name));
    for (std::size_t i = 0; i < states.size(); ++i) {
      CAPTURE(state_names()[i]);
      if (threads > 1) CHECK(states[i].identical(first[i]));
      const Tensor want = truth.read_state(state_names()[i]);
      std::int64_t wrong = 0;
      for (std::int64_t k = 0; k < want.num_elements(); ++k)
        wrong += !(std::fabs(states[i].at(k) - want.at(k)) <= 1e-3 * std::fabs(want.at(k)) + 1e-4);
      CHECK(wrong == 0);
    }
    if (threads == 1) first = std::move(states);

    // Relu and its bias are the product's epilogue: its derivative asks for its result, not for what it read.
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
