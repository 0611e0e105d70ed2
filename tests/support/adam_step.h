// A training step as one program: gradients and an optimizer that updates states.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/samples.h"

namespace rlx::test {

/// Two layers with relu, mean squared error against `y`, and one Adam step for every parameter. Output: the loss.
inline Graph adam_step(std::int64_t hidden = 600) {
  constexpr std::int64_t kRows = 24, kIn = 40, kOut = 3;
  Graph g("step");
  const Expr x = g.input("x", Shape({kRows, kIn}, DType::F32)), y = g.input("y", Shape({kRows, kOut}, DType::F32));
  const Shape shapes[] = {Shape({kIn, hidden}, DType::F32), Shape({hidden}, DType::F32),
                          Shape({hidden, kOut}, DType::F32), Shape({kOut}, DType::F32)};
  std::vector<Expr> p;
  std::vector<Wrt> wrt;
  for (std::size_t i = 0; i < 4; ++i) {
    Tensor init = draw(shapes[i], Fill::Normal, 1, i + 1);
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

/// Its inputs, the same for each call.
inline NamedTensors adam_inputs() {
  return {{"x", draw(Shape({24, 40}, DType::F32), Fill::Normal, 1, 11)},
          {"y", draw(Shape({24, 3}, DType::F32), Fill::Normal, 1, 12)}};
}

/// The names of its states.
inline std::vector<std::string> adam_states() {
  std::vector<std::string> names{"t"};
  for (const char* stem : {"p", "m", "v"})
    for (int i = 0; i < 4; ++i) names.push_back(stem + std::to_string(i));
  return names;
}

}  // namespace rlx::test
