// Parts that the transforms share: leaf lookup, dependence, on-the-fly decomposition, pruning, origins.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/transforms/transform.h"

namespace rlx::walk {

/// The forward value an entry names. `who` starts the error text.
Value resolve(const Graph& forward, const Wrt& wrt, std::string_view who);
/// resolve(), and an error unless it is an Input, Param or State.
Value resolve_leaf(const Graph& forward, const Wrt& wrt, std::string_view who);
/// Error unless the dtype of v is float or complex.
void require_inexact(const Graph& forward, Value v, std::string_view who);

/// Per slot: whether the value depends on one of `roots`. With `inexact_only` the dependence ends where
/// derivatives do, at integers and stop_gradient.
std::vector<bool> dependents(const Graph& g, std::span<const Value> roots, bool inexact_only);

/// What the rule of an op says.
enum class RuleState { Has, Derived, None };
template <class Fn>
RuleState state_of(const Rule<Fn>& rule) {
  return rule.has() ? RuleState::Has : rule.derived() ? RuleState::Derived : RuleState::None;
}

/// A copy of `forward` (nodes, outputs, state updates, symbols) in which every node that depends on `roots` and whose
/// rule is derived is replaced by its decomposition, repeatedly; `roots` follow.
struct Prepared {
  Graph graph;
  std::map<Value, Value> ids;
  std::vector<Value> roots;
};
Prepared prepare(const Graph& forward, std::vector<Value> roots, bool inexact_only, RuleState (*rule)(const OpDef&));

/// The error for a node whose op lacks a rule: "grad: op has no derivative: reason", with a way out.
[[noreturn]] void throw_no_rule(const Graph& g, NodeId id, std::string_view who, std::string_view what,
                                const char* reason, std::string_view way_out);
/// The way out of a derivative that an op does not have.
inline constexpr std::string_view kAvoidOp = "keep such ops off the path, for example with stop_gradient";

/// Marks nodes from `first` on as made by `pass` for node `source`.
void stamp(Graph& g, std::size_t first, NodeId source, std::string_view pass);

/// `name`, or with a number behind it when the graph already has such a leaf.
std::string fresh_leaf_name(const Graph& g, std::string name);

/// The graph without nodes that no output or state update needs; leaves stay. Composes the new ids into `ids`.
Graph prune(const Graph& g, std::map<Value, Value>& ids);

/// Copies one node of `from`, whose operands `ids` knows, into `to`, and adds its results to `ids`.
void copy_node(Graph& to, const Graph& from, NodeId id, std::map<Value, Value>& ids);
/// first, then second; values that the second map does not know are absent.
std::map<Value, Value> compose(const std::map<Value, Value>& first, const std::map<Value, Value>& second);

/// Copies every node of `from` into `to`; `replace` may give another value for a node's result 0 (leaves). Returns the
/// ids.
std::map<Value, Value> copy_nodes(Graph& to, const Graph& from, const std::function<Expr(NodeId)>& replace = {});

}  // namespace rlx::walk
