// Control flow: a recurrent network as a scan and its gradient, a while loop, and a branch.
#include <rlx/rlx.h>

#include <cstdio>

namespace {

// A recurrent cell over a sequence x [seq, 2]: the mean squared error of its last state from `target` [2].
rlx::Graph recurrent() {
  rlx::Graph g("recurrent");
  auto seq = g.symbol("seq", {.min = 1, .max = 1024});
  auto x = g.input("x", {{seq, 1, 2}, rlx::DType::F32});
  auto target = g.input("target", {{1, 2}, rlx::DType::F32});
  auto w = g.param("w", {{2, 2}, rlx::DType::F32});
  auto start = g.constant(rlx::Tensor::zeros({{1, 2}, rlx::DType::F32}));
  auto r = g.scan(start, x, [&](rlx::Graph& b, const rlx::ExprList& h, const rlx::ExprList& row) {
    auto next = b.tanh(b.matmul(h[0], w) + row[0]);  // w is captured
    return rlx::LoopStep{next, next};                // the next carry, and a row of ys
  });
  g.set_outputs({g.mean(g.square(r.carries[0] - target)), r.ys[0]});
  return g;
}

// Newton's method for the square root of a: the result and the number of iterations.
rlx::Graph square_root() {
  rlx::Graph g("square_root");
  auto a = g.input("a", {{}, rlx::DType::F32});
  auto r = g.while_loop(
      a, [&](rlx::Graph& b, const rlx::ExprList& x) { return b.gt(b.abs(x[0] * x[0] - a), 1e-4); },
      [&](rlx::Graph&, const rlx::ExprList& x) { return rlx::LoopStep{(x[0] + a / x[0]) * 0.5}; },
      {.max_iterations = 20});
  g.set_outputs({r.carries[0], g.cast(r.iterations, rlx::DType::F32)});
  return g;
}

}  // namespace

int main() {
  auto f = rlx::Session().compile(rlx::value_and_grad(recurrent(), {"w"}).graph);
  f.set_param("w", {0.5F, 0, 0, -0.5F});
  for (const auto& x : {std::vector<float>{1, 0, 0, 1}, std::vector<float>{1, 0, 0, 1, 1, 1}}) {
    const auto y = f.run({{"x", x}, {"target", {0.5F, 0.5F}}});  // loss, gradient of w, ys
    std::printf("%zu steps: loss %.4f, gradient %.4f %.4f %.4f %.4f\n", x.size() / 2, y[0][0], y[1][0], y[1][1],
                y[1][2], y[1][3]);
  }

  auto root = rlx::Session().compile(rlx::value_and_grad(square_root(), {"a"}).graph);
  for (float a : {2.0F, 100.0F}) {
    const auto y = root.run({{"a", {a}}});
    std::printf("sqrt(%g) = %.4f after %g trips, derivative %.4f\n", a, y[0][0], y[2][0], y[1][0]);
  }

  rlx::Graph g("branch");
  auto x = g.input("x", {{3}, rlx::DType::F32});
  auto scaled = g.cond(
      g.gt(g.sum(x), 0), [&](rlx::Graph& b) { return b.exp(x); }, [&](rlx::Graph& b) { return b.square(x); })[0];
  g.set_outputs({scaled});
  auto branch = rlx::Session().compile(std::move(g));
  for (float sign : {1.0F, -1.0F}) {
    const auto y = branch.run({{"x", {0, sign, 2 * sign}}})[0];
    std::printf("branch: %.4f %.4f %.4f\n", y[0], y[1], y[2]);
  }
}
