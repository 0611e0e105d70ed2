// The overhead of loops, beside the same work unrolled, interleaved: a scan of a recurrent cell, one whose weight is a
// run-time input, a scan over stacked layers, and a while loop with a counter.
// usage: control_flow [THREADS] [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;

constexpr std::int64_t kSteps = 512, kWidth = 64;

Expr cell(Graph& g, const Expr& h, const Expr& w, const Expr& x) { return g.tanh(g.matmul(h, w) + x); }

// h = tanh(h w + x_t) over 512 rows of x; outputs the last h and all of them.
Graph scanned(bool written_out, bool given = false) {
  Graph g(written_out ? "written out" : "scan");
  const Shape square({kWidth, kWidth}, DType::F32);
  const Expr w = given ? g.input("w", square) : g.param("w", square), h = g.input("h", {{1, kWidth}, DType::F32});
  const Expr x = g.input("x", {{kSteps, 1, kWidth}, DType::F32});
  if (!written_out) {
    const LoopResult r = g.scan(h, x, [&](Graph& b, const ExprList& c, const ExprList& row) {
      const Expr next = cell(b, c[0], w, row[0]);
      return LoopStep{next, next};
    });
    g.set_outputs({r.carries[0], r.ys[0]});
    return g;
  }
  Expr now = h;
  std::vector<Expr> all;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    now = cell(g, now, w, g.reshape(g.narrow(x, 0, t, 1), {1, kWidth}));
    all.push_back(g.reshape(now, {1, 1, kWidth}));
  }
  g.set_outputs({now, g.concat(all, 0)});
  return g;
}

// 12 layers x + relu(x u) d over stacked weights [12, in, out], one layer per iteration.
Graph layers(bool written_out) {
  constexpr std::int64_t kLayers = 12, kIn = 256, kInner = 1024;
  Graph g(written_out ? "written out" : "layers");
  const Expr up = g.param("up", {{kLayers, kIn, kInner}, DType::F32});
  const Expr down = g.param("down", {{kLayers, kInner, kIn}, DType::F32}), x = g.input("x", {{8, kIn}, DType::F32});
  const auto layer = [](Graph& b, const Expr& y, const Expr& u, const Expr& d) {
    return y + b.matmul(b.relu(b.matmul(y, u)), d);
  };
  if (!written_out) {
    const LoopResult r = g.scan(x, {up, down}, [&](Graph& b, const ExprList& c, const ExprList& row) {
      return LoopStep{layer(b, c[0], row[0], row[1])};
    });
    g.set_outputs({r.carries[0]});
    return g;
  }
  Expr y = x;
  for (std::int64_t l = 0; l < kLayers; ++l)
    y = layer(g, y, g.squeeze(g.narrow(up, 0, l, 1), 0), g.squeeze(g.narrow(down, 0, l, 1), 0));
  g.set_outputs({y});
  return g;
}

// `trips` iterations of y = y * 0.5 + h, as a while loop with a counter, or unrolled.
Graph counted(bool written_out) {
  Graph g(written_out ? "written out" : "while");
  const Expr h = g.input("h", {{kWidth}, DType::F32}), n = g.input("n", {{}, DType::I32});
  if (written_out) {
    Expr y = h;
    for (std::int64_t t = 0; t < kSteps; ++t) y = g.stop_gradient(g.reverse(y * 0.5 + h, {0}));
    g.set_outputs({y, n});
    return g;
  }
  const LoopResult r = g.while_loop(
      {g.scalar(0.0, DType::I32), h}, [&](Graph& b, const ExprList& c) { return b.lt(c[0], n); },
      [&](Graph& b, const ExprList& c) {
        return LoopStep{{c[0] + 1, b.reverse(c[1] * 0.5 + h, {0})}, {}};
      });
  g.set_outputs({r.carries[1], r.carries[0]});
  return g;
}

struct Timed {
  CompiledGraph compiled;
  std::vector<Tensor> inputs;
  std::vector<TensorView> views;
  std::vector<double> us;

  Timed(Graph g, int threads) : compiled(Session().with_threads(threads).compile(std::move(g))) {
    for (const IoInfo& in : compiled.inputs())
      inputs.push_back(in.shape.dtype() == DType::I32 ? Tensor::full(in.shape, kSteps) : Tensor::full(in.shape, 0.01));
    for (const IoInfo& p : compiled.params()) compiled.set_param(p.name, Tensor::full(p.shape, 0.001));
    for (const Tensor& t : inputs) views.push_back(t.view());
    compiled.run_slots(views);
  }
  void run() {
    const auto start = std::chrono::steady_clock::now();
    compiled.run_slots(views);
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  double median() {
    std::sort(us.begin(), us.end());
    return us[us.size() / 2];
  }
};

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1, rounds = argc > 2 ? std::atoi(argv[2]) : 201;
  std::printf("%d thread%s, medians of %d interleaved runs\n", threads, threads == 1 ? "" : "s", rounds);
  Timed scan(scanned(false), threads), unrolled(scanned(true), threads);
  Timed given(scanned(false, true), threads), given_unrolled(scanned(true, true), threads);
  Timed stacked(layers(false), threads), separate(layers(true), threads);
  Timed loop(counted(false), threads), plain(counted(true), threads);
  for (int i = 0; i < rounds; ++i)
    for (Timed* t : {&scan, &unrolled, &given, &given_unrolled, &stacked, &separate, &loop, &plain}) t->run();
  std::printf("scan of %d steps, cell of %dx%d: %.0f us, written out %.0f us: %.2f (goal 1.3)\n",
              static_cast<int>(kSteps), static_cast<int>(kWidth), static_cast<int>(kWidth), scan.median(),
              unrolled.median(), scan.median() / unrolled.median());
  std::printf("the same with its weight given to the run: %.0f us, written out %.0f us: %.2f\n", given.median(),
              given_unrolled.median(), given.median() / given_unrolled.median());
  std::printf("scan over 12 stacked layers: %.0f us, written out %.0f us: %.2f (goal 1.3)\n", stacked.median(),
              separate.median(), stacked.median() / separate.median());
  std::printf("while: %.0f us, its bodies written out %.0f us: %.2f us a trip beyond its body (goal 2)\n",
              loop.median(), plain.median(), (loop.median() - plain.median()) / static_cast<double>(kSteps));
  return 0;
}
