// rlx's packed f32 matrix product for bench/gemm: requests "M N K seconds" in, JSON lines out.
// usage: gemm_worker THREADS [isa]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "rlx/backends/cpu/kernels/kernels.h"
#include "rlx/driver/thread_pool.h"
#include "rlx/error.h"

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point t) { return std::chrono::duration<double, std::micro>(Clock::now() - t).count(); }

struct FreeDelete {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float, FreeDelete>;

Floats floats(std::int64_t n) { return Floats(static_cast<float*>(std::aligned_alloc(64, (static_cast<std::size_t>(n) * sizeof(float) + 127) / 64 * 64))); }

void answer(const rlx::cpu::KernelTable& kernels, rlx::ThreadPool& pool, std::int64_t m, std::int64_t n, std::int64_t k, double seconds) {
  Floats a = floats(m * k), b = floats(k * n), packed = floats(kernels.packed_size_f32(k, n)), c = floats(m * n);
  for (std::int64_t i = 0; i < m * k; ++i) a.get()[i] = static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F;
  for (std::int64_t i = 0; i < k * n; ++i) b.get()[i] = static_cast<float>(i * 104729 % 1000) / 500.0F - 1.0F;
  kernels.pack_b_f32(b.get(), n, 1, k, n, 0, n, packed.get());
  rlx::cpu::GemmF32 g;
  g.m = m, g.n = n, g.k = k, g.a = a.get(), g.lda = k, g.b_packed = packed.get(), g.c = c.get(), g.ldc = n;
  const rlx::cpu::GemmPlan plan = kernels.gemm_plan_f32(m, n, k, pool.threads());
  const auto run = [&] {
    if (pool.threads() == 1) {
      for (std::int64_t i = 0; i < plan.chunks; ++i) kernels.gemm_f32(g, plan, i);
    } else {
      pool.parallel_for(plan.chunks, [&](std::int64_t i) { kernels.gemm_f32(g, plan, i); });
    }
  };
  const auto warm = Clock::now();
  while (us_since(warm) < 0.05e6) run();
  std::vector<double> us;
  const auto begin = Clock::now();
  while (us_since(begin) < seconds * 1e6 || us.size() < 5) {
    const auto t = Clock::now();
    run();
    us.push_back(us_since(t));
  }
  std::sort(us.begin(), us.end());
  double error = 0;
  for (std::int64_t t = 0; t < 50; ++t) {
    const std::int64_t i = t * 37 % m, j = t * 101 % n;
    double x = 0;
    for (std::int64_t d = 0; d < k; ++d) x += static_cast<double>(a.get()[i * k + d]) * static_cast<double>(b.get()[d * n + j]);
    error = std::max(error, std::fabs(x - static_cast<double>(c.get()[i * n + j])));
  }
  std::printf("{\"p50_us\":%.3f,\"p10_us\":%.3f,\"n\":%zu,\"error\":%.2e}\n", us[us.size() / 2], us[us.size() / 10], us.size(), error);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rlx::ThreadPool pool(argc > 1 ? std::atoi(argv[1]) : 1);
    const auto& kernels = rlx::cpu::kernels_for(rlx::cpu::parse_isa(argc > 2 ? argv[2] : "best"));
    std::printf("{\"version\":\"rlx (%s)\"}\n", std::string(rlx::cpu::isa_name(kernels.isa)).c_str());
    std::fflush(stdout);
    long long m = 0, n = 0, k = 0;
    double seconds = 0;
    while (std::scanf("%lld %lld %lld %lf", &m, &n, &k, &seconds) == 4) {
      answer(kernels, pool, m, n, k, seconds);
      std::fflush(stdout);
    }
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
