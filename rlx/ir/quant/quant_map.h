// QuantMap: the quantized values of a graph, a view computed from its nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/tensor/block_schemes.h"

namespace rlx {

/// The quantization of a value, from its Dequantize or FakeQuantize.
struct QuantEntry {
  Value value;  // the dequantized value
  /// The path of the value. It is the node's label. When the label is only a scope, which the leaf of quantized values
  /// (of a FakeQuantize: of numbers) or another entry has too, "/" and the name of that leaf follow. A node without a
  /// label has the name of its leaf of quantized values, else "%7". "/%7" follows when another entry would have the
  /// same path.
  std::string path;
  QuantScheme scheme = QuantScheme::Affine;
  std::optional<std::int64_t> axis{};  // of affine scales: the axis where each index has its own scale
  std::int64_t block = 0;              // above 0: the number of neighbours along it that share a scale
  union {
    DType quantized_dtype = DType::I8;
    [[deprecated("now quantized_dtype")]] DType code_dtype;
  };
  double bits = 8;    // bits of an element: of its quantized value, or its share of a block
  bool fake = false;  // quantized and dequantized numbers: there are no stored quantized values
  std::optional<Value> codes{}, scale{}, zero_point{}, global_scale{};
};

/// The quantized values of a graph. It holds nothing besides the graph's own data; make another one after a rewrite.
class QuantMap {
 public:
  QuantMap() = default;
  /// The map of every Dequantize and FakeQuantize of `g`. Those inside bodies belong to the graphs of the bodies.
  explicit QuantMap(const Graph& g);
  /// In the order of the nodes.
  std::span<const QuantEntry> entries() const { return entries_; }
  /// The entry of a value, or null when the value is not quantized.
  const QuantEntry* find(Value v) const;
  /// The entry of a path, or null. Paths are unique.
  const QuantEntry* find(std::string_view path) const;
  /// One line per entry: "%3 layer0/w: q4_k, 4.5 bits".
  std::string text() const;

 private:
  std::vector<QuantEntry> entries_;
};

}  // namespace rlx
