// The cost of a new sequence length for MiniLM in each symbol mode, and the cost of a run in each mode.
// usage: new_shapes MODEL_DIR [threads]; lengths 1 to 256 in a batch of 1, each new to the compiled graph
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;
using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point t) { return std::chrono::duration<double, std::micro>(Clock::now() - t).count(); }

double at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void measure(const char* name, const SymbolMode& mode, const SentenceModelConfig& config,
             const std::shared_ptr<const WeightLoader>& weights, int threads) {
  constexpr std::int64_t kLongest = 256;
  CompileOptions options;
  options.symbol_modes = {{"seq", mode}};
  if (mode.kind != SymbolMode::Kind::Specialise) options.symbol_modes.emplace("batch", SymbolMode::runtime(1));
  BertGraphOptions graph;
  graph.pooling = config.pooling;
  graph.normalize = config.normalize;
  CompiledGraph f = Session().with_threads(threads).compile_with(build_sentence_encoder(config.bert, graph), options);
  f.load_params(weights, LoadMode::Subset);
  auto prepare = [&](std::int64_t length) {
    const std::vector<std::vector<std::int64_t>> dims{{1, length}, {1, length}};
    const auto t = Clock::now();
    f.prepare_shape(dims);
    return us_since(t);
  };
  prepare(kLongest);  // the first compile, with the weights
  std::vector<double> fresh;
  for (std::int64_t length = 1; length < kLongest; ++length) fresh.push_back(prepare(length));

  std::vector<std::int32_t> ids(static_cast<std::size_t>(kLongest), 2000);
  std::vector<float> mask(static_cast<std::size_t>(kLongest), 1.0F),
      out(static_cast<std::size_t>(config.bert.hidden_size));
  std::string runs;
  for (std::int64_t length : {16, 77, 128}) {
    const std::int64_t dims[] = {1, length};
    const auto n = static_cast<std::size_t>(length);
    const TensorView inputs[] = {{ids.data(), DType::I32, dims, n * 4}, {mask.data(), DType::F32, dims, n * 4}};
    MutableTensorView output{out.data(), DType::F32, {}, out.size() * 4};
    std::vector<double> us;
    for (int i = 0; i < 60; ++i) {
      const auto t = Clock::now();
      f.run_into(inputs, {&output, 1});
      us.push_back(us_since(t));
    }
    char text[64];
    std::snprintf(text, sizeof text, "  1x%lld %.0f", static_cast<long long>(length), at(us, 0.3));
    runs += text;
  }
  std::printf(
      "%-12s new length: p50 %8.1f us, p90 %8.1f, most %8.1f, sum %7.1f ms   arena %5.2f MB   runs (us):%s\n", name,
      at(fresh, 0.5), at(fresh, 0.9), at(fresh, 1),
      [&] {
        double s = 0;
        for (double v : fresh) s += v;
        return s / 1e3;
      }(),
      static_cast<double>(f.arena_bytes()) / 1e6, runs.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  if (argc < 2) {
    std::fprintf(stderr, "usage: new_shapes MODEL_DIR [threads]\n");
    return 2;
  }
  try {
    const SentenceModelConfig config = read_sentence_config(argv[1]);
    const std::shared_ptr<const WeightLoader> weights = open_checkpoint(weights_path(argv[1]));
    const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
    measure("specialise", SymbolMode::specialise(), config, weights, threads);
    measure("bucket", SymbolMode::bucket(power_of_two_ladder(8, 256)), config, weights, threads);
    measure("runtime", SymbolMode::runtime(256), config, weights, threads);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
