// Times of single ops on the cpu: a graph or more for each group of kernels that bench/kernels does not call.
// usage: op_times [THREADS] [PART OF A NAME]     (default: 1, all)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/before.h"
#include "rlx/functions/pool.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;

/// Values from -1.5 to 1.5, the same for every build.
Tensor filled(const Shape& shape) {
  Graph g("fill");
  const std::int64_t n = shape.num_elements();
  const Expr i = g.iota({{n}, DType::F32}, 0);
  const Expr steps = g.reshape(g.sin(i * 12.9898f) * 1.5f, shape.dims());
  g.set_outputs({shape.dtype() == DType::F32   ? steps
                 : shape.dtype() == DType::I32 ? g.cast(steps * 1000.0f, DType::I32)
                                               : g.cast(steps, shape.dtype())});
  return Session(Device::Cpu).compile(std::move(g)).run_typed(NamedTensors{})[0];
}

struct Case {
  std::string name;
  std::vector<Shape> inputs;
  std::function<Expr(Graph&, const std::vector<Expr>&)> build;
};

double median_us(CompiledGraph& f, const NamedTensors& inputs) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 3; ++i) (void)f.run_typed(inputs);
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 15 || Clock::now() - begin < std::chrono::milliseconds(150)) {
    const auto t = Clock::now();
    (void)f.run_typed(inputs);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - t).count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, std::vector<Shape> inputs, auto build) {
    all.push_back({std::move(name), std::move(inputs), std::move(build)});
  };
  using G = Graph;
  using E = std::vector<Expr>;
  // Convolutions, NCHW.
  for (const DType t : {DType::F32, DType::F64, DType::BF16}) {
    const std::string of = std::string(" ") + std::string(dtype_name(t));
    add("conv 3x3 64 of 28" + of, {{{1, 64, 28, 28}, t}, {{64, 64, 3, 3}, t}},
        [](G& g, const E& x) { return g.conv2d(x[0], x[1]); });
    add("conv 1x1 128 of 28" + of, {{{1, 128, 28, 28}, t}, {{128, 128, 1, 1}, t}},
        [](G& g, const E& x) { return g.conv2d(x[0], x[1]); });
    add("conv depthwise 3x3 64 of 56" + of, {{{1, 64, 56, 56}, t}, {{64, 1, 3, 3}, t}},
        [](G& g, const E& x) { return g.conv2d(x[0], x[1], {.groups = 64}); });
    add("max of windows 3x3" + of, {{{1, 64, 56, 56}, t}}, [](G&, const E& x) {
      return nn::max_pool(x[0], {.window = {3, 3}});
    });
  }
  // Contractions of every dtype.
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::C64}) {
    const std::string of = std::string(" ") + std::string(dtype_name(t));
    add("matmul 256" + of, {{{256, 256}, t}, {{256, 256}, t}}, [](G& g, const E& x) { return g.matmul(x[0], x[1]); });
    add("matmul 4x1024x1024" + of, {{{4, 1024}, t}, {{1024, 1024}, t}},
        [](G& g, const E& x) { return g.matmul(x[0], x[1]); });
    add("matmul 1x1024x1024" + of, {{{1, 1024}, t}, {{1024, 1024}, t}},
        [](G& g, const E& x) { return g.matmul(x[0], x[1]); });
    add("matmul 64 of 16x16" + of, {{{64, 16, 16}, t}, {{64, 16, 16}, t}},
        [](G& g, const E& x) { return g.matmul(x[0], x[1]); });
  }
  // Reductions, running sums, positions, along rows and columns.
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::U8}) {
    const std::string of = std::string(" ") + std::string(dtype_name(t));
    const Shape square({512, 512}, t);
    for (const std::int64_t axis : {0, 1}) {
      const std::string along = axis == 1 ? " of rows" : " of columns";
      if (t != DType::U8) add("sum" + along + of, {square}, [axis](G& g, const E& x) { return g.sum(x[0], {axis}); });
      add("max" + along + of, {square}, [axis](G& g, const E& x) { return g.reduce_max(x[0], {axis}); });
      add("arg_max" + along + of, {square}, [axis](G& g, const E& x) { return g.arg_max(x[0], axis); });
      if (t != DType::U8)
        add("cumsum" + along + of, {square}, [axis](G& g, const E& x) { return g.cumsum(x[0], axis); });
    }
    add("sort of rows" + of, {square}, [](G& g, const E& x) { return g.sort(x[0]); });
    add("transpose" + of, {square}, [](G& g, const E& x) { return g.transpose(x[0], {1, 0}); });
    add("gather of rows" + of, {square, {{512}, DType::I32}}, [](G& g, const E& x) { return g.gather(x[0], x[1]); });
    if (t != DType::U8)
      add("scatter_add of rows" + of, {square, {{512}, DType::I32}, square},
          [](G& g, const E& x) { return g.scatter_add(x[0], x[1], x[2]); });
  }
  // Elementwise ops beside those of F32 tapes.
  for (const DType t : {DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8, DType::C64}) {
    const std::string of = std::string(" ") + std::string(dtype_name(t));
    const Shape line({65536}, t);
    add("a * b + a" + of, {line, line}, [](G& g, const E& x) { return g.add(g.mul(x[0], x[1]), x[0]); });
    if (t != DType::C64) {
      add("where, max, cast" + of, {line, line},
          [](G& g, const E& x) { return g.cast(g.where(g.lt(x[1], x[0]), x[0], g.max(x[0], x[1])), DType::F32); });
    }
    if (t == DType::F64 || t == DType::F16 || t == DType::BF16) {
      for (const auto& [name, fn] :
           {std::pair{"exp", ActivationKind::Exp}, {"sin", ActivationKind::Sin}, {"erf", ActivationKind::Erf}})
        add(name + of, {line}, [fn = fn](G& g, const E& x) { return g.activation(fn, x[0]); });
      add("softmax of rows" + of, {{{256, 256}, t}}, [](G& g, const E& x) { return g.softmax(x[0]); });
      add("softmax of columns" + of, {{{256, 256}, t}}, [](G& g, const E& x) { return g.softmax(x[0], 0); });
    }
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const std::string part = argc > 2 ? argv[2] : "";
  for (const Case& c : cases()) {
    if (c.name.find(part) == std::string::npos) continue;
    Graph g("op");
    NamedTensors inputs;
    std::vector<Expr> x;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const std::string name = "x" + std::to_string(i);
      x.push_back(g.input(name, c.inputs[i]));
      inputs.emplace(name, filled(c.inputs[i]));
    }
    g.set_outputs({c.build(g, x)});
    CompiledGraph f = Session(Device::Cpu).with_threads(threads).compile(std::move(g));
    std::printf("%-40s %10.2f us\n", (c.name + ":").c_str(), median_us(f, inputs));
    std::fflush(stdout);
  }
}
