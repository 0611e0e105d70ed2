// ValueMap: the new value of each value of a rewritten graph.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Old value -> new value of a rewrite. An invalid node means that the value no longer exists.
class ValueMap {
 public:
  ValueMap() = default;
  /// A map of all values of `g`, each without a new value.
  explicit ValueMap(const Graph& g);
  /// Maps every value of `g` to itself.
  static ValueMap identity(const Graph& g);
  /// The new value, or an invalid one (`!v.node.valid()`) when the old value has none or is unknown.
  Value operator()(Value old) const;
  bool has(Value old) const { return (*this)(old).node.valid(); }
  void set(Value old, Value now);
  /// The composition: this map, then `next`.
  ValueMap then(const ValueMap& next) const;

 private:
  ValueSlots slot_;
  std::vector<Value> values_;
};

}  // namespace rlx
