// Measures peak arithmetic, and bandwidth for buffers of several sizes.
#include "rlx/backends/cpu/limits.h"

#include <cstring>
#include <vector>

namespace rlx::cpu {

double fma_gflops(const KernelTable& kernels) {
  return best_rate(12, [&] { return kernels.fma_peak_f32(20000); });
}

std::size_t read_streams(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kStreams = 8, kLine = 64, kAhead = 8 * kLine;
  const std::size_t length = bytes / kStreams / kLine * kLine;
  std::uint64_t sums[kStreams] = {};
  for (std::size_t at = 0; at < length; at += kLine)
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * length + at;
      __builtin_prefetch(line + kAhead);
      std::uint64_t first = 0, last = 0;  // the first and last bytes of the line; the line is loaded as a whole
      std::memcpy(&first, line, sizeof first);
      std::memcpy(&last, line + kLine - sizeof last, sizeof last);
      sums[s] += first ^ last;
    }
  volatile std::uint64_t keep = 0;
  for (const std::uint64_t sum : sums) keep = keep + sum;
  return length * kStreams;
}

MachineLimits measure_limits(const KernelTable& kernels) {
  MachineLimits out;
  out.gflops = fma_gflops(kernels);
  // Buffer sizes from the L1 cache to main memory. memchr for a missing byte and memcpy between the halves use the
  // widest loads of the processor, which matters in the caches. Many streams matter in main memory.
  for (const std::size_t bytes : {std::size_t{16} << 10, std::size_t{256} << 10, std::size_t{1} << 20,
                                  std::size_t{4} << 20, std::size_t{16} << 20, std::size_t{64} << 20}) {
    std::vector<unsigned char> buffer(bytes, 1);
    bool found = false;
    const double read = best_rate(4, [&] {
      found = found || std::memchr(buffer.data(), 2, bytes) != nullptr;
      return bytes;
    });
    const double moved = best_rate(4, [&] {
      std::memcpy(buffer.data(), buffer.data() + bytes / 2, bytes / 2);
      return bytes;
    });
    const double streamed =
        best_rate(4, [&] { return read_streams(reinterpret_cast<const std::byte*>(buffer.data()), bytes); });
    check(!found, "the bandwidth measurement read bytes that nobody wrote");
    out.bandwidth.push_back({bytes, std::max({read, moved, streamed})});
  }
  return out;
}

}  // namespace rlx::cpu
