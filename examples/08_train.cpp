// Training. Weights, Adam's moments and the step number are states. One graph computes the loss, the gradients and the
// update.
#include <rlx/rlx.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kPoints = 256;
const std::vector<std::int64_t> kWidths{2, 32, 32, 2};  // two coordinates in, two classes out

// Pseudorandom numbers in [-1, 1), equal on every machine.
float next_random() {
  static std::uint64_t seed = 1;
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return static_cast<float>(seed >> 40) * 0x1p-23f - 1.0f;
}

// The two-moons data set: points [kPoints, 2] and one-hot classes [kPoints, 2].
rlx::NamedTensors moons() {
  std::vector<float> x, y;
  for (std::int64_t i = 0; i < kPoints; ++i) {
    const bool second = i % 2 != 0;
    const float angle = 3.14159265f * static_cast<float>(i) / kPoints;
    x.push_back((second ? 1.0f - std::cos(angle) : std::cos(angle)) + 0.25f * next_random());
    x.push_back((second ? 0.5f - std::sin(angle) : std::sin(angle)) + 0.25f * next_random());
    y.push_back(second ? 0.0f : 1.0f);
    y.push_back(second ? 1.0f : 0.0f);
  }
  return {{"x", rlx::Tensor::of<float>({kPoints, 2}, x)}, {"y", rlx::Tensor::of<float>({kPoints, 2}, y)}};
}

// The logits of points x: layers whose weights are states. The graph holds the initial value of a state.
rlx::Expr network(rlx::Graph& g, rlx::Expr x) {
  for (std::size_t i = 0; i + 1 < kWidths.size(); ++i) {
    const rlx::Shape shape({kWidths[i], kWidths[i + 1]}, rlx::DType::F32);
    rlx::Tensor first = rlx::Tensor::zeros(shape);
    for (float& v : first.mutable_values<float>()) v = next_random() * std::sqrt(2.0f / static_cast<float>(kWidths[i]));
    const std::string layer = std::to_string(i);
    x = g.matmul(x, g.state("w" + layer, first)) +
        g.state("b" + layer, rlx::Tensor::zeros({{kWidths[i + 1]}, rlx::DType::F32}));
    if (i + 2 < kWidths.size()) x = g.relu(x);
  }
  return x;
}

// One step of Adam. The inputs are x and y, the output is the loss before the step.
rlx::Graph training_step(double rate) {
  rlx::Graph forward("train");
  auto x = forward.input("x", {{kPoints, 2}, rlx::DType::F32});
  auto y = forward.input("y", {{kPoints, 2}, rlx::DType::F32});
  forward.set_outputs({-forward.mean(forward.sum(y * forward.log_softmax(network(forward, x)), {1}))});
  std::vector<rlx::Wrt> weights;
  for (rlx::NodeId id : forward.leaves(rlx::OpKind::State)) weights.emplace_back(forward.leaf_name(id));

  // The forward graph plus its backward pass. The outputs are the loss, then the gradient of each weight.
  rlx::Graph g = rlx::value_and_grad(forward, weights).graph;
  const std::vector<rlx::Value> results = g.outputs();
  auto step = g.state("step", rlx::Tensor::scalar(rlx::DType::F32, 0)) + 1.0;
  g.set_state("step", step);
  auto first_bias = 1.0 - g.exp(step * std::log(0.9)), second_bias = 1.0 - g.exp(step * std::log(0.999));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string& name = weights[i].name();
    auto gradient = g.expr(results[i + 1]);
    auto weight = g.expr(rlx::Value(g.find_leaf(rlx::OpKind::State, name)));
    const rlx::Tensor zeros = rlx::Tensor::zeros(g.shape(weight.value()));
    auto m = 0.9 * g.state("m." + name, zeros) + 0.1 * gradient;
    auto v = 0.999 * g.state("v." + name, zeros) + 0.001 * g.square(gradient);
    g.set_state("m." + name, m);
    g.set_state("v." + name, v);
    g.set_state(name, weight - rate * (m / first_bias) / (g.sqrt(v / second_bias) + 1e-8));
  }
  g.set_outputs(std::vector<rlx::Value>{results[0]});
  return g;
}

// The fraction of points whose class has the higher logit.
rlx::Graph accuracy() {
  rlx::Graph g("accuracy");
  auto x = g.input("x", {{kPoints, 2}, rlx::DType::F32});
  auto y = g.input("y", {{kPoints, 2}, rlx::DType::F32});
  g.set_outputs({g.mean(g.cast(g.eq(g.arg_max(network(g, x), 1), g.arg_max(y, 1)), rlx::DType::F32))});
  return g;
}

}  // namespace

int main() {
  rlx::CompileOptions in_place;
  in_place.must_alias = true;  // an update that would need a copy of a state is an error
  auto train = rlx::Session().compile_with(training_step(0.003), in_place);
  auto test = rlx::Session().compile(accuracy());
  test.share_state_from(train);  // the same weights, wherever training takes them

  const rlx::NamedTensors data = moons();
  for (int step = 0; step <= 200; ++step) {
    const double loss = train.run_typed(data)[0].at(0);
    if (step % 50 == 0)
      std::printf("step %3d  loss %.2f  correct %.0f %%\n", step, loss, 100 * test.run_typed(data)[0].at(0));
  }
  const rlx::Tensor w = train.read_state("w0");
  std::printf("w0: %s, finite: %s\n", w.shape().text().c_str(), std::isfinite(w.at(0)) ? "yes" : "no");
}
