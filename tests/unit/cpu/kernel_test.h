// Helpers of the kernel tests: the instruction sets of this machine, aligned buffers with guard zones, random values.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "rlx/backends/cpu/kernels.h"
#include "tests/support/closeness.h"

namespace rlx::cpu::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The kernel tables of every instruction set that this machine can run.
inline std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> out;
  for (const Isa isa : {Isa::Generic, Isa::Sse4, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (isa_supported(isa)) out.push_back(&kernels_for(isa));
  }
  return out;
}

/// A float buffer, 64-byte aligned, with guard values on both sides that `intact` checks.
class Buffer {
 public:
  explicit Buffer(std::int64_t n, float fill = 0.0F)
      : n_(n), storage_(static_cast<std::size_t>(n) + 2 * kGuard + 16, kGuardValue) {
    const auto at = reinterpret_cast<std::uintptr_t>(storage_.data() + kGuard);
    data_ = storage_.data() + kGuard + (64 - at % 64) % 64 / 4;
    for (std::int64_t i = 0; i < n; ++i) data_[i] = fill;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() { return data_; }
  const float* data() const { return data_; }
  float& operator[](std::int64_t i) { return data_[i]; }
  float operator[](std::int64_t i) const { return data_[i]; }
  std::int64_t size() const { return n_; }
  bool intact() const {
    for (const float* p = storage_.data(); p < data_; ++p) {
      if (*p != kGuardValue) return false;
    }
    for (const float* p = data_ + n_; p < storage_.data() + storage_.size(); ++p) {
      if (*p != kGuardValue) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 32;
  static constexpr float kGuardValue = 12345.5F;
  std::int64_t n_;
  std::vector<float> storage_;
  float* data_ = nullptr;
};

inline void randomize(Buffer& b, unsigned seed, float lo = -1.0F, float hi = 1.0F) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> dist(lo, hi);
  for (std::int64_t i = 0; i < b.size(); ++i) b[i] = dist(rng);
}

/// The distance of `got` from `want` in ulp of a float at `want`.
inline double ulp_error(float got, double want) { return rlx::test::ulps(DType::F32, static_cast<double>(got), want); }

using rlx::test::Worst;

}  // namespace rlx::cpu::test
