// Where the values of a graph went in its rewritten form.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Old value -> new value of a rewrite; an invalid node means the value is gone.
class ValueMap {
 public:
  ValueMap() = default;
  /// A map of all values of `g`, each gone.
  explicit ValueMap(const Graph& g);
  /// Every value of `g` to itself.
  static ValueMap identity(const Graph& g);
  /// The new value, or an invalid one (`!v.node.valid()`) when the old one is gone or unknown.
  Value operator()(Value old) const;
  bool has(Value old) const { return (*this)(old).node.valid(); }
  void set(Value old, Value now);
  /// First this map, then `next`.
  ValueMap then(const ValueMap& next) const;

 private:
  ValueSlots slot_;
  std::vector<Value> values_;
};

}  // namespace rlx
