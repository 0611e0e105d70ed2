// Peak arithmetic and the bandwidth of buffers of several sizes.
#include "rlx/backends/cpu/limits.h"

#include <cstring>
#include <vector>

namespace rlx::cpu {

double fma_gflops(const KernelTable& kernels) {
  return best_rate(12, [&] { return kernels.fma_peak_f32(20000); });
}

MachineLimits measure_limits(const KernelTable& kernels) {
  MachineLimits out;
  out.gflops = fma_gflops(kernels);
  // From the first-level cache to main memory. Reading is searching for a byte that is not there, moving is copying one
  // half to the other: the C library does both with the widest loads the processor has.
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
    check(!found, "a buffer of ones holds a two");
    out.bandwidth.push_back({bytes, std::max(read, moved)});
  }
  return out;
}

}  // namespace rlx::cpu
