// Gradients of a small network. rlx::value_and_grad turns the graph of a loss into a graph of loss and gradients, which
// compiles and runs like any other. This program runs plain gradient descent with it.
#include <rlx/rlx.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

rlx::Graph loss_graph() {
  rlx::Graph g("loss");
  auto x = g.input("x", {{8, 2}, rlx::DType::F32});
  auto target = g.input("target", {{8, 1}, rlx::DType::F32});
  auto w1 = g.param("w1", {{2, 16}, rlx::DType::F32});
  auto w2 = g.param("w2", {{16, 1}, rlx::DType::F32});
  auto prediction = g.matmul(g.tanh(g.matmul(x, w1)), w2);
  g.set_outputs({g.mean(g.square(prediction - target))});
  return g;
}

std::vector<float> ramp(std::size_t n, float scale) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = scale * std::sin(static_cast<float>(i) * 1.7f + 0.3f);
  return v;
}

}  // namespace

int main() {
  // One compiled program with the outputs [loss, d loss / d w1, d loss / d w2]; they share the forward pass.
  auto gradient = rlx::value_and_grad(loss_graph(), {"w1", "w2"});
  auto f = rlx::Session().compile(std::move(gradient.graph));
  std::vector<float> x = ramp(16, 1), w1 = ramp(32, 0.7f), w2 = ramp(16, 0.4f), target;
  for (std::size_t i = 0; i < 8; ++i) target.push_back(x[2 * i] - 0.5f * x[2 * i + 1]);
  f.set_param("w1", w1);
  f.set_param("w2", w2);

  // Plain gradient descent.
  for (int step = 0; step < 200; ++step) {
    auto y = f.run({{"x", x}, {"target", target}});
    if (step % 50 == 0) std::printf("step %3d  loss %.4f\n", step, static_cast<double>(y[0][0]));
    for (std::size_t i = 0; i < w1.size(); ++i) w1[i] -= 0.1f * y[1][i];
    for (std::size_t i = 0; i < w2.size(); ++i) w2[i] -= 0.1f * y[2][i];
    f.set_param("w1", w1);
    f.set_param("w2", w2);
  }
  std::printf("fitted: %s\n", f.run({{"x", x}, {"target", target}})[0][0] < 0.001f ? "yes" : "no");
}
