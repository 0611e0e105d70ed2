// The bodies of control-flow ops, seen from the graph that holds them.
#pragma once

#include <functional>
#include <optional>

#include "rlx/ir/graph.h"

namespace rlx {

/// The largest nesting depth of graphs. Graphs that verify accepts can be stored and read back.
inline constexpr int kMaxBodyDepth = 64;

/// `g` with every body of its control-flow ops replaced by the result of `change`; none when `change` leaves all of
/// them. A body that several ops share is passed once.
std::optional<Graph> change_bodies(const Graph& g, const std::function<std::optional<Graph>(const Graph&)>& change);

/// The same, where `change(node, body)` is called for each node that holds a body and returns null to leave it.
std::optional<Graph> change_bodies_of(const Graph& g, const std::function<Subgraph(NodeId, const Subgraph&)>& change);

/// The bodies that an op has, in the order of its attributes.
std::vector<Subgraph> body_graphs(const OpBox& op);

/// The parts of a loop (Scan, While). Its operands, which are the inputs of its body in the same order, are invariants,
/// carries and xs (the body takes their rows). Its results and the outputs of its body are carries and ys (the body
/// gives their rows). A While has the number of iterations as an additional last result.
struct LoopParts {
  std::size_t invariants = 0, carries = 0, xs = 0, ys = 0;
  std::size_t first_carry() const { return invariants; }
  std::size_t first_x() const { return invariants + carries; }
  std::size_t inputs() const { return invariants + carries + xs; }
  std::size_t outputs() const { return carries + ys; }
};
/// The parts of a Scan or While with its body; none for another op.
std::optional<LoopParts> loop_parts(const OpBox& op);

/// True when `test` holds for a body of one of the graph's control-flow ops.
bool any_body(const Graph& g, const std::function<bool(const Graph&)>& test);

/// `op` with other bodies: `change(name, body)` returns the new body, or null to keep it.
OpBox with_bodies(const OpBox& op, const std::function<Subgraph(std::string_view, const Subgraph&)>& change);

}  // namespace rlx
