// The bodies of control-flow ops, seen from the graph that holds them.
#pragma once

#include <functional>
#include <optional>

#include "rlx/ir/graph.h"

namespace rlx {

/// How deep graphs may lie in graphs: what verify lets through can be stored and read back.
inline constexpr int kMaxBodyDepth = 64;

/// `g` with every body of its control-flow ops replaced by what `change` makes of it; none when it leaves them all. A
/// body that several ops share is asked about once.
std::optional<Graph> change_bodies(const Graph& g, const std::function<std::optional<Graph>(const Graph&)>& change);

/// The same; `change(node, body)` is asked for each node that holds a body, and gives null to leave it.
std::optional<Graph> change_bodies_of(const Graph& g, const std::function<Subgraph(NodeId, const Subgraph&)>& change);

/// The bodies of an op that are there, in the order of its attributes.
std::vector<Subgraph> body_graphs(const OpBox& op);

/// How the operands of a loop (Scan, While), which are the inputs of its body in the same order, divide into
/// invariants, carries and xs (of which the body takes rows); its results and the outputs of its body into carries and
/// ys (of which the body gives rows). Behind them a While also gives its trips.
struct LoopParts {
  std::size_t invariants = 0, carries = 0, xs = 0, ys = 0;
  std::size_t first_carry() const { return invariants; }
  std::size_t first_x() const { return invariants + carries; }
  std::size_t inputs() const { return invariants + carries + xs; }
  std::size_t outputs() const { return carries + ys; }
};
/// Of a Scan or While with its body; none of another op.
std::optional<LoopParts> loop_parts(const OpBox& op);

/// True when `test` holds for a body of one of its control-flow ops.
bool any_body(const Graph& g, const std::function<bool(const Graph&)>& test);

/// `op` with other bodies: `change(name, body)` gives the new one, or null to keep it.
OpBox with_bodies(const OpBox& op, const std::function<Subgraph(std::string_view, const Subgraph&)>& change);

}  // namespace rlx
