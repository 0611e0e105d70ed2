// Maps of values from one graph to another.
#include "rlx/ir/value_map.h"

namespace rlx {

ValueMap::ValueMap(const Graph& g) : slot_(g), values_(slot_.size()) {}

ValueMap ValueMap::identity(const Graph& g) {
  ValueMap m(g);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    for (std::uint32_t r = 0; r < g.nodes()[i].num_results(); ++r) m.set(Value(NodeId{i}, r), Value(NodeId{i}, r));
  return m;
}

Value ValueMap::operator()(Value old) const { return slot_.knows(old) ? values_[slot_(old)] : Value(); }

void ValueMap::set(Value old, Value now) {
  values_[slot_(old)] = now;
}

ValueMap ValueMap::then(const ValueMap& next) const {
  ValueMap out = *this;
  for (Value& v : out.values_)
    if (v.node.valid()) v = next(v);
  return out;
}

}  // namespace rlx
