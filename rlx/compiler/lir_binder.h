// Binds a planned program with runtime symbols to values, without compiling again.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rlx/compiler/sync_points.h"
#include "rlx/ir/module.h"
#include "rlx/ir/rewrite/graph_binder.h"

namespace rlx {

/// Binds the run graph and the plan of one LIR to values of its symbols. Takes about ten microseconds per hundred
/// nodes.
class LirBinder {
 public:
  /// `lir` must outlive the binder.
  explicit LirBinder(const LirModule& lir);
  /// The program at `values`: the same nodes, schedule and arena, with the shapes, sizes and views of these extents.
  /// `prepare` stays empty. Throws ShapeMismatch naming the node when extents that depend on the symbols do not fit (a
  /// slice past its end).
  LirModule bind(const SymbolBinding& values) const;
  /// The steps before a sync point at which only these values are known. The graph has the nodes before the sync point,
  /// and on a device that plans its own memory the sources as outputs.
  LirModule bind_until(const SyncPoint& cut, const SymbolBinding& values) const;

 private:
  // An extent that must not be negative and that the bounds do not prove.
  struct Condition {
    Dim value;
    NodeId node;
  };
  // `known`: the texts of the conditions so far.
  void collect(const Graph& g, const SymbolRanges& ranges, std::optional<NodeId> control, std::set<std::string>& known);
  void check_custom(const Graph& g, NodeId id) const;
  void check_conditions(const SymbolBinding& values, std::uint32_t nodes) const;

  const LirModule* lir_;
  GraphBinder graph_;
  std::vector<Condition> conditions_;
  std::vector<NodeId> custom_;
};

}  // namespace rlx
