// Measures the peak performance of one thread of this machine.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/device/backend.h"

namespace rlx::cpu {

/// The best rate of `work` over `rounds` runs of about 5 ms each, in units per ns. `work` returns the units it did.
template <class F>
double best_rate(int rounds, F&& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int i = 0; i < rounds; ++i) {
    double units = 0, ns = 0;
    const auto start = Clock::now();
    while (ns < 5e6) {
      units += static_cast<double>(work());
      ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    }
    best = std::max(best, units / ns);
  }
  return best;
}

/// Reads a buffer of 64-byte cache lines as eight streams with prefetch, which keeps as many misses in flight as
/// possible. From main memory this is faster than the loops of the C library. Returns the number of bytes read: whole
/// lines of each stream.
std::size_t read_streams(const std::byte* data, std::size_t bytes);
/// GFLOP/s of an FMA loop on registers.
double fma_gflops(const KernelTable& kernels);
/// Measures one thread with these kernels. It takes a third of a second.
MachineLimits measure_limits(const KernelTable& kernels);

}  // namespace rlx::cpu
