// Decoding of quantized values inside the kernels that read them.
#pragma once

#include <string>
#include <string_view>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// Null when kernels can decode the Dequantize `id`, else the reason.
const char* decoder_refuses(const Graph& g, NodeId id);
/// The number of bindings that the quantized values, scales and zero points take.
std::size_t decoder_operands(const Graph& g, NodeId id);

/// The functions of one kernel that decode elements of one Dequantize. Results are f32, before they are rounded to the
/// dtype of the Dequantize.
class Decoder {
 public:
  /// `name` is the prefix of the functions' names.
  Decoder(KernelBuilder& k, NodeId id, std::string_view name);
  /// Element `i` in row-major order; `i` is a u32 expression.
  std::string element(std::string_view i);
  /// Elements i to i + 3 as a vec4. `i` and the last extent are multiples of 4.
  std::string four(std::string_view i);
  /// The number of consecutive elements that share one scale, starting at a multiple of that number; 0 when the scale
  /// depends on more than the last axis.
  int group() const;
  /// For block schemes: the scale and the addend of the group of element i, as a vec2; and elements i to i + 3 decoded
  /// with them.
  std::string scale(std::string_view i) const;
  std::string four(std::string_view i, std::string_view scale) const;

 private:
  void affine();
  void blocks();
  std::string code(std::string_view i) const;
  std::string scale_place(std::string_view i) const;
  KernelBuilder& k_;
  const Graph& g_;
  NodeId id_;
  std::string name_;
};

}  // namespace rlx::codegen
