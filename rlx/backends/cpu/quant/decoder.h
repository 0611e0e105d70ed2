// Decodes the quantized values of a Dequantize to floats, some elements at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/ops/quantize.h"

namespace rlx::cpu {

/// Why a Decoder cannot read the quantized values of Dequantize node `id`; null when it can.
const char* decoder_refuses(const Graph& g, NodeId id);

/// The elements of a Dequantize in row-major order, each rounded as the op defines.
class Decoder {
 public:
  /// Points into the operands of node `id`. Call it once; the object must not move afterwards.
  void point(LowerContext& c, NodeId id);
  /// Ranges must start and end at multiples of this, or at the last element: the elements of a block.
  std::int64_t grain() const { return grain_; }
  /// Bytes of quantized values per element, for estimates.
  double packed_a_bytes() const { return code_bytes_; }
  /// Decodes elements [first, first + count).
  void read(std::int64_t first, std::int64_t count, float* to) const;

 private:
  void read_run(std::int64_t first, std::int64_t count, std::int64_t scale, std::int64_t step, float* to) const;
  float scale_at(std::int64_t i) const;

  QuantScheme scheme_ = QuantScheme::Affine;
  DType dtype_ = DType::I8, scale_dtype_ = DType::F32;
  const std::byte *quants_ = nullptr, *scale_ = nullptr, *zero_ = nullptr;
  const float* global_ = nullptr;
  bool has_scale_ = false, has_zero_ = false, has_global_ = false, has_axis_ = false;
  std::int64_t inner_ = 1, extent_ = 1, block_ = 0, blocks_ = 1;
  std::int64_t grain_ = 1;
  double code_bytes_ = 1;
};

}  // namespace rlx::cpu
