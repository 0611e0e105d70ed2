// Common parts of backends: defaults for packed layouts, and the lower bound of a kernel's time from measured limits.
#include "rlx/device/backend.h"

#include <algorithm>

#include "rlx/ir/op_def.h"

namespace rlx {

void Executable::encode(NodeId, std::size_t, const ColumnRange&, DType, const std::byte*, std::byte*) const {
  check(false, "this backend makes no packed layouts");
}

void Executable::decode(NodeId, std::size_t, const std::byte*, DType, std::byte*) const {
  check(false, "this backend reads no packed layouts back");
}

double MachineLimits::floor_ns(const Cost& cost) const {
  const double bytes = cost.read_bytes + cost.write_bytes;
  double rate = bandwidth.empty() ? 0 : bandwidth.front().gb_per_s;
  for (const Bandwidth& b : bandwidth)
    if (static_cast<double>(b.bytes) <= bytes) rate = b.gb_per_s;  // a smaller buffer is never slower
  return std::max(gflops > 0 ? cost.flops / gflops : 0, rate > 0 ? bytes / rate : 0);
}

}  // namespace rlx
