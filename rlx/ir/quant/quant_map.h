// Which values of a graph are numbers that codes stand for: a view, read from the nodes that say so.
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

/// How a value is quantised: what the Dequantize that makes it says, or the FakeQuantize.
struct QuantEntry {
  Value value;  // the numbers
  /// Where they come from: the node's label, with "/" and the name of the leaf that holds the codes (of a FakeQuantize
  /// the numbers) where the label is only a scope, which that leaf or another entry has too; without a label the name
  /// of that leaf of codes, else "%7"; and with "/%7" behind it where another entry would have the same.
  std::string path;
  QuantScheme scheme = QuantScheme::Affine;
  std::optional<std::int64_t> axis{};  // of affine scales: each index along it has its own
  std::int64_t block = 0;              // above 0: or as many neighbours
  DType code_dtype = DType::I8;
  double bits = 8;    // of an element: of its code, or of its share of a block
  bool fake = false;  // numbers as codes would give them back: there are no codes
  std::optional<Value> codes{}, scale{}, zero_point{}, global_scale{};
};

/// The quantised values of a graph. It holds nothing that the graph does not say: after a rewrite, make another.
class QuantMap {
 public:
  QuantMap() = default;
  /// Of every Dequantize and FakeQuantize of `g`; those inside bodies are values of the bodies' graphs.
  explicit QuantMap(const Graph& g);
  /// In the order of the nodes.
  std::span<const QuantEntry> entries() const { return entries_; }
  /// The entry of a value, or null for one that is not quantised.
  const QuantEntry* find(Value v) const;
  /// The entry of that path, which no other has, or null.
  const QuantEntry* find(std::string_view path) const;
  /// One line an entry: "%3 layer0/w: q4_k, 4.5 bits".
  std::string text() const;

 private:
  std::vector<QuantEntry> entries_;
};

}  // namespace rlx
