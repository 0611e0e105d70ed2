// Codes of quantised values, decoded where they are read.
#pragma once

#include <string>
#include <string_view>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// Null when kernels can decode what the Dequantize `id` does, else why not.
const char* decoder_refuses(const Graph& g, NodeId id);
/// Bindings that the codes and what belongs to them take.
std::size_t decoder_operands(const Graph& g, NodeId id);

/// The functions that decode elements of one Dequantize, in one kernel: to f32, before the rounding to its dtype.
class Decoder {
 public:
  /// `name` begins the names of the functions.
  Decoder(KernelBuilder& k, NodeId id, std::string_view name);
  /// The element with row-major number `i`, a u32 expression.
  std::string element(std::string_view i);
  /// Elements i to i + 3, for an i that is a multiple of 4, as a vec4. The last dimension is a multiple of 4.
  std::string four(std::string_view i);
  /// How many neighbours, from a multiple of that on, have one scale; 0 when it depends on more than the last axis.
  int group() const;
  /// Of blocks: the scale of the group of element i, and what is added then, as a vec2; and elements i to i + 3 with
  /// it.
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
