// The first program of the README, built against an installed rlx.
#include <rlx/rlx.h>

#include <cstdio>

int main() {
  rlx::Graph g("hello");
  auto x = g.input("x", {{1, 4}, rlx::DType::F32});
  auto w = g.param("w", {{4, 2}, rlx::DType::F32});
  g.set_outputs({g.matmul(x, w)});
  auto f = rlx::Session(rlx::Device::Cpu).compile(std::move(g));
  f.set_param("w", {1, 0, 0, 1, 1, 0, 0, 1});
  auto y = f.run({{"x", {1, 2, 3, 4}}});  // y[0] = {4, 6}
  std::printf("%g %g\n", static_cast<double>(y[0][0]), static_cast<double>(y[0][1]));
}
