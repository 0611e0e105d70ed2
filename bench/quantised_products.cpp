// Matmuls with weights in GGUF blocks: a chain of layers [3072, 1024] and [1024, 3072], which reads each weight once
// per run. GEMV and skinny GEMM are compared with a plain read of as many bytes, large GEMM with the peak of the int8
// matmul loop. Limit and matmul are interleaved, so other load on the machine meets both. Times are wall-clock time
// and, for shared machines, CPU time.
// usage: quantised_products [threads: 1] [scheme: all] [isa] [exact]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/backends/cpu/limits.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/rlx.h"
#include "rlx/threads/thread_pool.h"

namespace {

using namespace rlx;

constexpr std::int64_t kNarrow = 1024, kWide = 3072;

struct Time {
  double clock, processors;  // seconds
};
Time now() {
  return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
          static_cast<double>(std::clock()) / CLOCKS_PER_SEC};
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Quantized blocks of small random numbers.
Tensor weights(QuantScheme s, std::int64_t rows, std::int64_t k) {
  const BlockLayout& l = block_layout(s);
  std::vector<float> numbers(static_cast<std::size_t>(rows * k));
  std::uint32_t state = 1;
  for (float& v : numbers) {
    state = state * 1664525U + 1013904223U;
    v = (static_cast<float>(state >> 8) / 8388608.0F - 1.0F) / 24;
  }
  Tensor out = Tensor::zeros(Shape({rows, k / l.elements * l.bytes}, DType::U8));
  quantize_blocks(s, numbers, {out.mutable_data(), out.size_bytes()});
  return out;
}

struct Settings {
  int threads = 1;
  std::string isa;
  MatmulPrecision precision = MatmulPrecision::Int8;
};

struct Chain {
  CompiledGraph run;
  double bytes;  // of the quantized blocks
};
Chain chain_of(const Settings& set, QuantScheme s, std::int64_t m, std::int64_t pairs) {
  const Tensor up = weights(s, kWide, kNarrow), down = weights(s, kNarrow, kWide);
  Graph g("chain");
  Expr x = g.input("x", Shape({m, kNarrow}, DType::F32));
  for (std::int64_t i = 0; i < 2 * pairs; ++i) {
    const Expr w = g.dequantize(g.param(concat_text("w", i), (i % 2 == 0 ? up : down).shape()), s);
    x = g.dot_general(x, w, ops::DotGeneral{{1}, {1}, {}, {}});
  }
  g.set_outputs({x});
  CompileOptions options;
  options.precision = PrecisionPolicy::with_matmul_precision(set.precision);
  Chain chain{Session().with_threads(set.threads).with_isa(set.isa).compile_with(std::move(g), options),
              static_cast<double>(pairs) * static_cast<double>(up.size_bytes() + down.size_bytes())};
  for (std::int64_t i = 0; i < 2 * pairs; ++i) chain.run.set_param(concat_text("w", i), i % 2 == 0 ? up : down);
  return chain;
}

void measure(const Settings& set, QuantScheme s, std::int64_t m) {
  const bool few = m <= 8;
  const std::int64_t pairs = few ? 24 : 4;
  Chain chain = chain_of(set, s, m, pairs);
  const Tensor x = Tensor::full(Shape({m, kNarrow}, DType::F32), 0.5);
  const Tensor buffer = Tensor::zeros(Shape({Dim(static_cast<std::int64_t>(chain.bytes))}, DType::U8));
  const cpu::InterleavedKernels& kernels = *cpu::kernels_for(cpu::parse_isa(set.isa)).interleaved;
  const std::size_t share = buffer.size_bytes() / static_cast<std::size_t>(set.threads) / 4096 * 4096;
  const auto limit = [&] {
    ThreadPool::process().parallel_for(
        set.threads,
        [&](std::int64_t i) {
          if (few)
            cpu::read_streams(buffer.data() + static_cast<std::size_t>(i) * share, share);
          else
            kernels.dot_peak(200'000);
        },
        set.threads);
  };
  const double limit_units =
      few ? static_cast<double>(share) * set.threads : static_cast<double>(kernels.dot_peak(1)) * 200'000 * set.threads;
  const double units = few ? chain.bytes : 4.0 * static_cast<double>(m * pairs) * kNarrow * kWide;
  std::vector<double> rates, shares, shares_of_time, limits;
  chain.run.run_typed({{"x", x}});
  for (int round = 0; round < 15; ++round) {
    const Time begin = now();
    limit();
    const Time middle = now();
    chain.run.run_typed({{"x", x}});
    const Time end = now();
    limits.push_back(limit_units / (middle.clock - begin.clock) / 1e9);
    rates.push_back(units / (end.clock - middle.clock) / 1e9);
    shares.push_back(rates.back() / limits.back());
    shares_of_time.push_back(units / limit_units * (middle.processors - begin.processors) /
                             (end.processors - middle.processors));
  }
  std::printf("%-5s M %3lld  best %7.1f %s, %s %7.1f; median share of it %3.0f %%, by processors' time %3.0f %%\n",
              std::string(quant_scheme_name(s)).c_str(), static_cast<long long>(m),
              *std::max_element(rates.begin(), rates.end()), few ? "GB/s" : "Gop/s", few ? "plain read" : "peak",
              *std::max_element(limits.begin(), limits.end()), 100 * median(shares), 100 * median(shares_of_time));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  try {
    Settings set;
    set.threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
    const std::string scheme = argc > 2 ? argv[2] : "all";
    set.isa = argc > 3 ? argv[3] : "";
    if (argc > 4 && std::string(argv[4]) == "exact") set.precision = MatmulPrecision::Exact;
    std::printf("%d threads, %s, %s\n", set.threads, std::string(cpu::isa_name(cpu::parse_isa(set.isa))).c_str(),
                std::string(matmul_precision_name(set.precision)).c_str());
    for (const QuantScheme s : {QuantScheme::Q4_0, QuantScheme::Q8_0, QuantScheme::Q4_K, QuantScheme::Q6_K})
      if (scheme == "all" || scheme == quant_scheme_name(s))
        for (const std::int64_t m : {1, 4, 8, 32, 128, 512}) measure(set, s, m);
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
