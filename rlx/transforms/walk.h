// Functions shared by the transforms: leaf lookup, dependence, on-the-fly decomposition, pruning, origins.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/transforms/transform.h"

namespace rlx::walk {

/// The forward value that an entry names. `who` starts the error text.
Value resolve(const Graph& forward, const Wrt& wrt, std::string_view who);
/// The same, with an error unless the value is an Input, Param or State.
Value resolve_leaf(const Graph& forward, const Wrt& wrt, std::string_view who);
/// Throws unless the dtype of v is float or complex.
void require_inexact(const Graph& forward, Value v, std::string_view who);

/// Per slot: true when the value depends on one of `roots`. With `inexact_only` the dependence ends where derivatives
/// end, at integers and stop_gradient.
std::vector<bool> dependents(const Graph& g, std::span<const Value> roots, bool inexact_only);

/// The answer of an op's rule.
enum class RuleState { Has, Derived, None };
template <class Fn>
RuleState state_of(const Rule<Fn>& rule) {
  return rule.has() ? RuleState::Has : rule.derived() ? RuleState::Derived : RuleState::None;
}

/// A copy of `forward` (nodes, outputs, state updates, symbols) in which every node that depends on `roots` and has a
/// derived rule is replaced by its decomposition, repeatedly. `roots` are updated.
struct Prepared {
  Graph graph;
  std::map<Value, Value> ids;
  std::vector<Value> roots;
};
Prepared prepare(const Graph& forward, std::vector<Value> roots, bool inexact_only, RuleState (*rule)(const OpDef&));

/// Throws the error for a node whose op lacks a rule: "grad: op has no derivative: reason", with `way_out` as its hint.
[[noreturn]] void throw_no_rule(const Graph& g, NodeId id, std::string_view who, std::string_view what,
                                const char* reason, std::string_view way_out);
/// The hint for an op without a derivative.
inline constexpr std::string_view kAvoidOp = "exclude such ops, for example with stop_gradient";

/// Marks nodes from `first` on as made by `pass` for node `source`.
void stamp(Graph& g, std::size_t first, NodeId source, std::string_view pass);

/// `name`, followed by a number if the graph already has such a leaf.
std::string fresh_leaf_name(const Graph& g, std::string name);

/// The graph without nodes that no output or state update needs. Leaves stay. Composes the new ids into `ids`.
Graph prune(const Graph& g, std::map<Value, Value>& ids);

/// Copies one node of `from` into `to` and adds its results to `ids`, which must hold its operands.
void copy_node(Graph& to, const Graph& from, NodeId id, std::map<Value, Value>& ids);
/// Applies `first`, then `second`. Values that `second` does not map are absent.
std::map<Value, Value> compose(const std::map<Value, Value>& first, const std::map<Value, Value>& second);

/// Copies every node of `from` into `to`. `replace` may give another value for a node's result 0 (leaves). Returns the
/// ids.
std::map<Value, Value> copy_nodes(Graph& to, const Graph& from, const std::function<Expr(NodeId)>& replace = {});

}  // namespace rlx::walk
