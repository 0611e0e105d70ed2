// Claims as plain data: the ops a target has kernels for.
#pragma once

#include <bitset>
#include <initializer_list>

#include "rlx/ir/op.h"

namespace rlx {

class Graph;
struct NodeId;

/// The ops a target claims: a kind is in the set, and `accepts` (when given) agrees for the node's dtypes, ranks and
/// attributes. An `everything` set accepts all.
struct OpSet {
  std::bitset<kNumOpKinds> kinds;
  bool (*accepts)(const Graph&, NodeId) = nullptr;
  /// Nodes the target does not claim, but can run by their reference rules when they have no decomposition; null: none.
  bool (*on_host)(const Graph&, NodeId) = nullptr;
  /// What an ElementwiseRegion must keep to for `accepts` to agree; 0: not known. A region past one of them is refused
  /// before it is built: its operands, and its values and operands alive at once when its ops run in order.
  int max_region_inputs = 0, max_region_alive = 0;

  OpSet() = default;
  OpSet(std::initializer_list<OpKind> list) {
    for (OpKind k : list) add(k);
  }
  static OpSet everything() {
    OpSet s;
    s.kinds.set();
    return s;
  }
  void add(OpKind kind) { kinds.set(index(kind)); }
  void remove(OpKind kind) { kinds.reset(index(kind)); }
  /// True when the kind is claimed for some dtypes and shapes.
  bool has(OpKind kind) const { return kinds.test(index(kind)); }
  /// True when this very node can be run.
  bool claims(const Graph& g, NodeId id) const;

 private:
  static std::size_t index(OpKind kind) {
    const auto i = static_cast<std::size_t>(kind);
    if (i >= kNumOpKinds) detail::throw_no_enumerator("OpKind", static_cast<std::int64_t>(i));
    return i;
  }
};

}  // namespace rlx
