// The first program: build a graph, compile it, set a weight, run it.
#include <rlx/rlx.h>

#include <cstdio>

int main() {
  rlx::Graph g("hello");
  auto x = g.input("x", {{1, 4}, rlx::DType::F32});
  auto w = g.param("w", {{4, 2}, rlx::DType::F32});
  g.set_outputs({g.matmul(x, w)});
  auto f = rlx::Session(rlx::Device::Cpu).compile(std::move(g));
  f.set_param("w", {1, 0, 0, 1, 1, 0, 0, 1});
  auto y = f.run({{"x", {1, 2, 3, 4}}});
  std::printf("%g %g\n", static_cast<double>(y[0][0]), static_cast<double>(y[0][1]));
}
