// Performance of a device with resident values: a chain of elementwise ops, fused and not, square matmuls, and the
// first and later runs of MiniLM at several shapes, with the launches per layer.
// usage: device DEVICE [ROUNDS]        RLX_MODEL_DIR: the MiniLM folder (default .models/all-minilm-l6-v2)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/device/device.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A compiled program with its inputs on the device.
struct Timed {
  CompiledGraph compiled;
  NamedTensors inputs;
  double first_ms = 0;
  std::vector<double> ms;

  Timed(Graph g, Device device, const CompileOptions& options)
      : compiled(Session(device).compile_with(std::move(g), options)) {
    for (const IoInfo& in : compiled.inputs()) inputs.emplace(in.name, to(Tensor::full(in.shape, 0.01), device));
    for (const IoInfo& p : compiled.params()) compiled.set_param(p.name, Tensor::full(p.shape, 0.001));
    const auto start = Clock::now();
    run();
    first_ms = ms_since(start), ms.clear();
  }
  void run() {
    const auto start = Clock::now();
    for (const Tensor& t : compiled.run_device(inputs))
      if (t.buffer()) t.buffer()->written().wait();
    ms.push_back(ms_since(start));
  }
  double median() {
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
  }
};

// Eight elementwise ops on two operands of 4 Mi elements.
Graph chain() {
  Graph g("chain");
  const Shape s({4 << 20}, DType::F32);
  const Expr x = g.input("x", s), y = g.input("y", s);
  g.set_outputs({g.relu((g.abs((x + y) * x - y) + x) * y - x)});
  return g;
}

Graph product(std::int64_t n) {
  Graph g("product");
  g.set_outputs({g.matmul(g.input("a", {{n, n}, DType::F32}), g.input("b", {{n, n}, DType::F32}))});
  return g;
}

void chains(Device device, int rounds) {
  CompileOptions unfused;
  unfused.fusion.skip_fusion = true;
  Timed one(chain(), device, {}), eight(chain(), device, unfused);
  for (int i = 0; i < rounds; ++i) one.run(), eight.run();
  std::printf("chain of 8 ops, 4 Mi elements: %.2f ms, unfused %.2f ms: %.2f times as fast (goal 5); %.1f GB/s\n",
              one.median(), eight.median(), eight.median() / one.median(), 3 * (4 << 20) * 4 / one.median() / 1e6);
}

void products(Device device, int rounds) {
  for (const std::int64_t n : {256, 512, 1024}) {
    Timed t(product(n), device, {});
    for (int i = 0; i < rounds; ++i) t.run();
    const double best = *std::min_element(t.ms.begin(), t.ms.end()), flops = 2.0 * static_cast<double>(n * n * n);
    std::printf("product %lld: %.2f ms, %.2f GFLOP/s (best %.2f), first run %.0f ms\n", static_cast<long long>(n),
                t.median(), flops / t.median() / 1e6, flops / best / 1e6, t.first_ms);
  }
}

// The sentence encoder from token ids to embeddings, compiled as SentenceEncoder does.
void minilm(Device device, const std::string& folder, int rounds) {
  const SentenceModelConfig config = read_sentence_config(folder);
  for (const auto& [batch, seq] : {std::pair<std::int64_t, std::int64_t>{1, 16}, {8, 32}}) {
    const auto start = Clock::now();
    Graph g = build_sentence_encoder(config.bert);
    CompileOptions options;
    options.dim_binding = {{"batch", batch}, {"seq", seq}};
    CompiledGraph f = Session(device).compile_with(std::move(g), options);
    load_checkpoint(f, open_checkpoint(weights_path(folder)), folder);
    NamedTensors inputs;
    for (const IoInfo& in : f.inputs())
      inputs.emplace(in.name, Tensor::full(in.shape, in.name == "input_ids" ? 2003 : 1));
    f.run_typed(inputs);
    const double first = ms_since(start);
    std::vector<double> ms;
    for (int i = 0; i < rounds; ++i) {
      const auto begin = Clock::now();
      f.run_typed(inputs);
      ms.push_back(ms_since(begin));
    }
    std::sort(ms.begin(), ms.end());
    const std::size_t steps = f.compile_result().lir.plan.schedule.size();
    std::printf("MiniLM %lldx%lld: %.2f ms, from the graph to the first result %.0f ms; %zu steps\n",
                static_cast<long long>(batch), static_cast<long long>(seq), ms[ms.size() / 2], first, steps);
  }
}

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  const char* name = argc > 1 ? argv[1] : "vulkan";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
  const auto device = parse_device(name);
  if (!device) return std::fprintf(stderr, "error: no device is called %s\n", name), 2;
  try {
    std::printf("%s, medians of %d runs\n", full_name(*device).c_str(), rounds);
    chains(*device, rounds);
    products(*device, rounds);
    const char* chosen = std::getenv("RLX_MODEL_DIR");
    const std::string folder = chosen ? chosen : ".models/all-minilm-l6-v2";
    if (std::filesystem::exists(folder)) minilm(*device, folder, rounds);
  } catch (const Error& e) {
    return std::fprintf(stderr, "error: %s\n", e.what()), 1;
  }
  return 0;
}
