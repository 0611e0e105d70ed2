// One measurement for bench/compile: the time until the first result of a program of about N nodes, those of bodies
// among them. JSON on the standard output.
// usage: compile_worker SHAPE N        (no arguments: the names of the shapes)
#include <rlx/rlx.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "bench/before.h"
#include "bench/compile_shapes.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"

namespace {

using namespace rlx;

constexpr const char* kSymbols = "symbols";  // every dimension of an input is a runtime symbol
constexpr const char* kTransforms = "transforms";

class Laps {
 public:
  void lap(const char* name) {
    const Clock::time_point now = Clock::now();
    std::printf("%s\"%s\": %.6f", first_ ? "" : ", ", name, std::chrono::duration<double>(now - last_).count());
    first_ = false;
    last_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  bool first_ = true;
};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void compile_and_run(Graph g, Laps& laps) {
  laps.lap("build");
  const std::size_t built = shapes::count_nodes(g);
  CompileOptions options;
  for (const std::string& symbol : g.dynamic_symbols()) options.symbol_modes[symbol] = SymbolMode::runtime();
  const double before = cpu_seconds();
  CompiledGraph f = Session().with_threads(2).compile_with(std::move(g), std::move(options));
  const LirModule& lir = f.compile_result().lir;
  const std::size_t planned = shapes::count_nodes(lir.graph) + shapes::count_nodes(lir.prepare);
  std::printf(", \"compile_cpu\": %.6f, \"nodes\": %zu", cpu_seconds() - before, std::max(built, planned));
  laps.lap("compile");
  for (const IoInfo& p : f.params())
    f.set_param(p.name, std::vector<float>(static_cast<std::size_t>(p.shape.num_elements()), 0.01F));
  laps.lap("set_param");
  std::vector<NamedInput> inputs;
  for (const IoInfo& i : f.inputs()) {
    const std::int64_t elements = i.shape.is_static() ? i.shape.num_elements() : 4;  // of one symbolic dimension
    inputs.push_back({i.name, std::vector<float>(static_cast<std::size_t>(elements), 0.5F)});
  }
  laps.lap("make_inputs");
  f.run(inputs);
  laps.lap("run");
  f.run(inputs);
  laps.lap("run_again");
}

// All other code that reads or rewrites a graph: text, binary form, derivatives, vmap, evaluator.
void transform(const Graph& g, Laps& laps) {
  laps.lap("build");
  const std::string text = print_text(g);
  laps.lap("print");
  (void)parse_text(text);
  laps.lap("parse");
  const auto bytes = to_bytes(g);
  laps.lap("to_bytes");
  (void)from_bytes(bytes);
  laps.lap("from_bytes");
  (void)fingerprint(g);
  laps.lap("fingerprint");
  Graph loss = g;
  loss.set_outputs({loss.sum(loss.expr(loss.outputs()[0]))});
  (void)value_and_grad(loss, {"x"});
  laps.lap("grad");
  (void)vmap(g, {{"x", 0}}, 3);
  laps.lap("vmap");
  (void)evaluate(g, {{"x", Tensor::full({{4, 8}, DType::F32}, 1)}});
  laps.lap("evaluate");
}

template <class F>
void each_case(const F& f) {
  for (const shapes::Case& c : shapes::kCases) f(c);
  for (const shapes::Case& c : shapes::kPrograms) f(c);
}

/// The program of a shape with about `nodes` nodes.
Graph of_nodes(Graph (*make)(int), int nodes) {
  constexpr int kTrial = 1000;
  const double per_op = static_cast<double>(shapes::count_nodes(make(kTrial))) / kTrial;
  return make(std::max(1, static_cast<int>(nodes / per_op)));
}

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  if (argc != 3) {
    each_case([](const shapes::Case& c) { std::puts(c.name); });
    std::puts(kSymbols);
    std::puts(kTransforms);
    return argc == 1 ? 0 : 2;
  }
  const std::string name = argv[1];
  const int n = std::atoi(argv[2]);
  try {
    Graph (*make)(int) = name == kTransforms ? shapes::softmax_chain
                         : name == kSymbols  ? shapes::many_symbols
                                             : nullptr;
    each_case([&](const shapes::Case& c) {
      if (name == c.name) make = c.make;
    });
    if (make == nullptr || n < 1) {
      std::fprintf(stderr, "'%s' is no shape, or '%s' no number of nodes\n", argv[1], argv[2]);
      return 2;
    }
    std::printf("{");
    Laps laps;
    Graph g = of_nodes(make, n);
    if (name == kTransforms) {
      transform(g, laps);
    } else {
      compile_and_run(std::move(g), laps);
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf(", \"peak_mb\": %.1f}\n", static_cast<double>(usage.ru_maxrss) / 1024);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
