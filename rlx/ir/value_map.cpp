// Maps of values from one graph to another.
#include "rlx/ir/value_map.h"

namespace rlx {

ValueMap::ValueMap(const Graph& g) {
  first_.reserve(g.num_nodes() + 1);
  std::uint32_t slots = 0;
  for (const Node& n : g.nodes()) {
    first_.push_back(slots);
    slots += n.num_results();
  }
  first_.push_back(slots);
  values_.resize(slots);
}

ValueMap ValueMap::identity(const Graph& g) {
  ValueMap m(g);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    for (std::uint32_t r = 0; r < g.nodes()[i].num_results(); ++r) m.set(Value(NodeId{i}, r), Value(NodeId{i}, r));
  return m;
}

Value ValueMap::operator()(Value old) const {
  if (first_.empty() || old.node.index >= first_.size() - 1) return {};
  std::uint32_t slot = first_[old.node.index] + old.result;
  return slot < first_[old.node.index + 1] ? values_[slot] : Value();
}

void ValueMap::set(Value old, Value now) {
  check(old.node.index + 1 < first_.size(), "value outside the map");
  std::uint32_t slot = first_[old.node.index] + old.result;
  check(slot < first_[old.node.index + 1], "result outside the map");
  values_[slot] = now;
}

ValueMap ValueMap::then(const ValueMap& next) const {
  ValueMap out = *this;
  for (Value& v : out.values_)
    if (v.node.valid()) v = next(v);
  return out;
}

}  // namespace rlx
