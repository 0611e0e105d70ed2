// vmap: a graph written for one example runs on a batch. Here it gives the gradient of each example.
#include <rlx/rlx.h>

#include <cstdio>
#include <vector>

namespace {

// The squared error of one example: x [3], target [] -> [].
rlx::Graph error_of_one() {
  rlx::Graph g("error");
  auto x = g.input("x", {{3}, rlx::DType::F32});
  auto target = g.input("target", {{}, rlx::DType::F32});
  auto w = g.param("w", {{3}, rlx::DType::F32});
  g.set_outputs({g.square(g.sum(x * w) - target)});
  return g;
}

}  // namespace

int main() {
  // The gradient of one example, then vmap: x and target get a batch axis in front, w is shared. The outputs are error
  // [B] and gradient [B, 3].
  const rlx::Graph one = rlx::value_and_grad(error_of_one(), {"w"}).graph;
  auto batched = rlx::vmap(one, {{"x", 0}, {"target", 0}}, rlx::Dim::symbol("batch"));
  auto f = rlx::Session().compile(std::move(batched.graph));
  f.set_param("w", {1, 0, -1});

  // The batch size is a symbol, so it may be any number.
  for (std::int64_t n : {1, 3}) {
    const std::vector<float> x{1, 2, 3, 2, 1, 1, 4, 1, 2}, target{0, 2, 3};
    const auto y = f.run({{"x", {x.begin(), x.begin() + 3 * n}}, {"target", {target.begin(), target.begin() + n}}});
    for (std::size_t i = 0; i < y[0].size(); ++i)
      std::printf("%lld of them, example %zu: error %g, gradient %g %g %g\n", static_cast<long long>(n), i, y[0][i],
                  y[1][3 * i], y[1][3 * i + 1], y[1][3 * i + 2]);
  }

  // The batch axis may be any axis: here columns go in and come out.
  rlx::Graph norm("norm");
  auto v = norm.input("v", {{2}, rlx::DType::F32});
  norm.set_outputs({v / norm.sqrt(norm.sum(v * v))});
  auto columns = rlx::Session().compile(rlx::vmap(norm, {{"v", 1}}, 2, {1}).graph);
  const auto u = columns.run({{"v", {3, 0, 4, 2}}})[0];  // columns (3, 4) and (0, 2)
  std::printf("columns of length one: (%g, %g) and (%g, %g)\n", u[0], u[2], u[1], u[3]);
}
