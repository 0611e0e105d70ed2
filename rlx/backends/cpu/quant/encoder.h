// Numbers as blocks of a scheme: a step of its own, or part of a kernel that stores the blocks elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/runs.h"

namespace rlx::cpu {

/// Why a Quantize cannot be encoded by an Encoder; null when it can.
const char* encoder_refuses(const Graph& g, NodeId quantize);

/// What a Quantize reads, and the blocks it makes of it. It stays where it is once it points.
class Encoder {
 public:
  void point(LowerContext& c, NodeId quantize);
  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_bytes() const { return bytes_; }
  /// Writes blocks [first, end), counted in row-major order, one behind the other.
  void write(std::int64_t first, std::int64_t end, std::byte* y) const;
  /// An estimate of the time of a block, and the blocks of so many ns.
  double block_ns() const { return scheme_ == QuantScheme::Q8_0 ? 6 : 300; }
  std::int64_t blocks_of(double ns) const { return static_cast<std::int64_t>(ns / block_ns()); }

 private:
  QuantScheme scheme_ = QuantScheme::Q8_0;
  std::int64_t blocks_ = 0, bytes_ = 0, elements_ = 32;
  Runs runs_{};
  const float* x_ = nullptr;
  void (*encode_q8_0_)(const float*, std::int64_t, std::uint8_t*) = nullptr;
};

}  // namespace rlx::cpu
