// Encodes floats as blocks of a scheme, as a task of its own or in a kernel that stores the blocks elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/runs.h"

namespace rlx::cpu {

/// Why an Encoder cannot run a Quantize; null when it can.
const char* encoder_refuses(const Graph& g, NodeId quantize);

/// The operand of a Quantize and the blocks made of it. The object must not move after it points to its operand.
class Encoder {
 public:
  void point(LowerContext& c, NodeId quantize);
  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_bytes() const { return bytes_; }
  /// Writes blocks [first, end), counted in row-major order, to adjacent memory.
  void write(std::int64_t first, std::int64_t end, std::byte* y) const;
  /// The estimated time of a block, and the number of blocks that take `ns`.
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
