// The limits of the machine that benches compare with: FMA peak, the best GEMM tile with everything in L1, the peak of
// int8 dot products of vectors (AMX is not used), and the rate of reading a buffer of the size of a model's weights
// again and again.
// usage: limits [isa] [threads] [MB to read: 42]; prints one JSON object: GFLOP/s, Gop/s and GB/s of all threads
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/before.h"
#include "rlx/backends/cpu/kernels.h"
#include "rlx/backends/cpu/limits.h"
#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"
#include "rlx/error.h"
#include "rlx/tensor/tensor.h"

namespace {

using rlx::cpu::KernelTable;

struct FreeDelete {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], FreeDelete>;

Floats floats(std::int64_t n) {
  Floats p(static_cast<float*>(std::aligned_alloc(64, (static_cast<std::size_t>(n) * sizeof(float) + 127) / 64 * 64)));
  for (std::int64_t i = 0; i < n; ++i)
    p[static_cast<std::size_t>(i)] = static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F;
  return p;
}

// The packed GEMM on one panel; A, B and C fit in L1.
double tile_peak(const KernelTable& k) {
  double best = 0;
  const std::int64_t n = k.packed_nr_f32(1 << 20);
  for (const std::int64_t depth : {96, 128})
    for (const std::int64_t m : {4, 6, 8, 12, 14, 16}) {
      Floats a = floats(m * depth), b = floats(k.packed_size_f32(depth, n)), c = floats(m * n);
      rlx::cpu::MatmulOperands g = rlx::cpu::packed_b_operands(m, n, depth);
      g.a = a.get(), g.b = b.get(), g.c = c.get();
      const auto& kernel = rlx::cpu::packed_b_kernel(k, rlx::cpu::PackedBType::F32);
      const auto plan = rlx::cpu::plan_matmul(&kernel, g, 1);
      best = std::max(best, rlx::cpu::best_rate(12, [&] {
                        for (int i = 0; i < 50; ++i)
                          for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk)
                            rlx::cpu::run_matmul(&kernel, g, plan, chunk, nullptr, nullptr);
                        return 100 * m * n * depth;
                      }));
    }
  return best;
}

// The median GB/s of reading `buffer` from end to end.
double read_rate(const rlx::Tensor& buffer) {
  std::vector<double> rates;
  for (int i = 0; i < 13; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t bytes = rlx::cpu::read_streams(buffer.data(), buffer.size_bytes());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(bytes) / seconds.count() / 1e9);
  }
  std::nth_element(rates.begin(), rates.begin() + 6, rates.end());
  return rates[6];
}

// All threads measure at the same time.
struct Peaks {
  double fma = 0, tile = 0, int8 = 0, read = 0;
};

Peaks measure(const KernelTable& k, int threads, std::int64_t read_bytes) {
  std::vector<Peaks> peaks(static_cast<std::size_t>(threads));
  std::atomic<int> arrived{0};
  const auto meet = [&](int round) {
    arrived.fetch_add(1);
    while (arrived.load() < round * threads) std::this_thread::yield();
  };
  const auto work = [&](int i) {
    Peaks& p = peaks[static_cast<std::size_t>(i)];
    meet(1);
    p.fma = rlx::cpu::fma_gflops(k);
    meet(2);
    p.tile = tile_peak(k);
    meet(3);
    p.int8 = rlx::cpu::best_rate(12, [&] { return k.interleaved->dot_peak(20000); });
    // Each thread reads its share. The buffers use huge pages, as packed weights do.
    const auto buffer = rlx::Tensor::zeros(rlx::Shape({rlx::Dim(read_bytes / threads)}, rlx::DType::U8));
    meet(4);
    p.read = read_rate(buffer);
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back(work, i);
  work(0);
  for (std::thread& w : workers) w.join();
  Peaks sum;
  for (const Peaks& p : peaks) sum.fma += p.fma, sum.tile += p.tile, sum.int8 += p.int8, sum.read += p.read;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  try {
    const auto isa = rlx::cpu::parse_isa(argc > 1 ? argv[1] : "best");
    const int threads = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
    const std::int64_t megabytes = argc > 3 ? std::max(1, std::atoi(argv[3])) : 42;
    const KernelTable& k = rlx::cpu::kernels_for(isa);
    const Peaks peaks = measure(k, threads, megabytes * 1'000'000);
    std::printf("{\"isa\":\"%s\",\"threads\":%d,\"fma_gflops\":%.2f,\"tile_gflops\":%.2f,\"int8_gops\":%.2f,",
                std::string(rlx::cpu::isa_name(isa)).c_str(), threads, peaks.fma, peaks.tile, peaks.int8);
    std::printf("\"read_gbytes\":%.2f}\n", peaks.read);
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
