// The request loop of both sides of bench/gemm. It answers "M N K seconds" lines with the time of one matmul, its
// error, and CPU time over wall time of the measured section.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <vector>

/// One matmul c [M, N] = a [M, K] x b [K, N] of an engine. The functions own their data.
struct GemmSide {
  float* a = nullptr;
  float* b = nullptr;
  const float* c = nullptr;
  std::function<void()> pack, run;
  std::string kernel;  // empty: unknown
};

/// Reads requests until the input ends. `make(m, n, k)` gives the matmul to fill, check and time.
inline void answer_gemm_requests(const std::function<GemmSide(std::int64_t, std::int64_t, std::int64_t)>& make) {
  using Clock = std::chrono::steady_clock;
  const auto us_since = [](Clock::time_point t) {
    return std::chrono::duration<double, std::micro>(Clock::now() - t).count();
  };
  long long m = 0, n = 0, k = 0;
  double seconds = 0;
  while (std::scanf("%lld %lld %lld %lf", &m, &n, &k, &seconds) == 4) {
    const GemmSide side = make(m, n, k);
    for (long long i = 0; i < m * k; ++i) side.a[i] = static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F;
    for (long long i = 0; i < k * n; ++i) side.b[i] = static_cast<float>(i * 104729 % 1000) / 500.0F - 1.0F;
    side.pack();
    const auto warm = Clock::now();
    while (us_since(warm) < 0.05e6) side.run();
    std::vector<double> us;
    const std::clock_t used = std::clock();
    const auto begin = Clock::now();
    while (us_since(begin) < seconds * 1e6 || us.size() < 5) {
      const auto t = Clock::now();
      side.run();
      us.push_back(us_since(t));
    }
    const double cpus = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC / (us_since(begin) / 1e6);
    std::sort(us.begin(), us.end());
    double error = 0;
    for (long long t = 0; t < 50; ++t) {
      const long long i = t * 37 % m, j = t * 101 % n;
      double x = 0;
      for (long long d = 0; d < k; ++d)
        x += static_cast<double>(side.a[i * k + d]) * static_cast<double>(side.b[d * n + j]);
      const double off = std::fabs(x - static_cast<double>(side.c[i * n + j]));
      if (!(off <= error)) error = std::isnan(off) ? std::numeric_limits<double>::max() : off;  // NaN is the worst
    }
    std::printf("{\"p50_us\":%.3f,\"p10_us\":%.3f,\"n\":%zu,\"cpus\":%.3f,\"error\":%.2e,\"kernel\":\"%s\"}\n",
                us[us.size() / 2], us[us.size() / 10], us.size(), cpus, error, side.kernel.c_str());
    std::fflush(stdout);
  }
}
