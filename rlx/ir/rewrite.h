// Graph rewriting: GraphRewriter records replacements against a const graph and rebuilds it once. Also the matchers
// that passes share. Rebuilder (rebuild.h) is the smaller tool for node-by-node copies in order.
//
//   GraphRewriter r(g);
//   for (NodeId id : r.nodes())
//     if (matches(g, id)) r.replace(id, r.stage().relu(r.expr(g.node(id).inputs[0])));
//   Rewritten out = r.commit("my-pass");        // out.graph, out.map: old value -> new value
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/value_map.h"

namespace rlx {

struct Rewritten {
  Graph graph;
  ValueMap map;
  bool changed = false;  // false: `graph` equals the source and `map` is the identity
};

/// What commit drops besides dead ops and constants. Inputs always stay, so the interface of a graph does not shrink.
struct CommitOptions {
  bool drop_params = false;  // Params that nothing reads
  bool drop_states = false;  // States that nothing reads and no update writes
};

/// Records replacements and new nodes over a graph that it never changes.
///
/// New nodes are built on `stage()`, a separate graph. Every builder function, `decompose_into` and `inline_body` work
/// on it. Values of the source enter the stage through `expr`, which follows replacements made before or later: a
/// reader of a replaced value reads its replacement. `original` gives the value itself even when it is replaced, for
/// wrapping: `replace(v, cast(original(v)))`. The nodes of a replacement take the position of the node they replace.
/// O(nodes + edges) in all.
class GraphRewriter {
 public:
  explicit GraphRewriter(const Graph& source);
  GraphRewriter(const GraphRewriter&) = delete;
  GraphRewriter& operator=(const GraphRewriter&) = delete;

  const Graph& source() const { return source_; }
  const UseIndex& uses() const { return uses_; }
  /// All node ids of the source in order.
  std::vector<NodeId> nodes() const;
  /// The graph to build new nodes on.
  Graph& stage() { return stage_; }
  /// A value of the source, or its replacement, on the stage.
  Expr expr(Value old);
  std::vector<Expr> exprs(const std::vector<Value>& old);
  /// A value of the source itself, even when it is replaced.
  Expr original(Value old);
  /// The values of the source that a value of the stage depends on.
  std::vector<Value> reads(const Expr& staged) const;

  /// Makes every reader of `old`, outputs and state updates included, read `now`. Shapes must agree. Replacing a value
  /// twice is an error.
  void replace(Value old, Expr now);
  /// The same with another value of the source as the replacement.
  void replace(Value old, Value now);
  /// Replaces each result of a node.
  void replace_node(NodeId old, const std::vector<Expr>& now);
  bool is_replaced(Value old) const;
  /// True when any result of the node is replaced.
  bool is_replaced(NodeId old) const;
  bool changed() const { return !replacements_.empty(); }

  /// Rebuilds what outputs, state updates and kept leaves need, in topological order. New nodes get `pass`, the label
  /// and line of the nodes they replace, and the list of replaced nodes. The rewriter cannot be used afterwards.
  Rewritten commit(std::string_view pass, CommitOptions options = {});

 private:
  friend class Commit;
  // A value that new nodes read from the source: an Input of the stage.
  struct Import {
    Value old;
    bool original;
  };
  struct Replacement {
    Value now;
    bool staged;
  };
  static std::uint64_t key(Value v) { return std::uint64_t{v.node.index} << 32 | v.result; }
  Expr import(Value old, bool original);

  const Graph& source_;
  UseIndex uses_;
  Graph stage_;
  std::unordered_map<std::uint32_t, Import> imports_;            // stage node -> source value
  std::unordered_map<std::uint64_t, Value> import_nodes_[2];     // source value -> stage value, by `original`
  std::unordered_map<std::uint64_t, Replacement> replacements_;  // source value -> replacement
  std::vector<Value> replaced_;                                  // in the order of the calls
};

// -- matchers --

/// A node seen as a matmul: lhs [batch.., M.., K] x rhs [batch.., K, N] -> [batch.., M.., N].
struct MatmulDims {
  Value lhs, rhs;
  Dims batch;                   // shared batch dims; empty when rhs is one matrix
  Dim m, n, k;                  // m: the product of lhs's free dims
  bool lhs_transposed = false;  // lhs is [batch.., K, M]
  bool rhs_transposed = false;  // rhs is [batch.., N, K]
  bool fused = false;           // FusedDot: an epilogue follows
};
using MatmulForm [[deprecated("now MatmulDims")]] = MatmulDims;
/// The operands and dimensions of a MatMul, DotGeneral or FusedDot with one contracted axis, leading batch axes, an rhs
/// with one free axis, and the contracted axis last in lhs (or first, when lhs has one free axis). None for other
/// nodes.
std::optional<MatmulDims> as_matmul(const Graph& g, NodeId id);

/// True for the ops that bodies of elementwise regions may hold, besides inputs and constants.
bool runs_per_element(OpKind kind);
/// The same for one node. It also holds for a Bitcast to a dtype of the same width.
bool runs_per_element(const Graph& g, NodeId id);

/// A FusedDot that is a FusedMatMulBiasAct: act(x w + bias), where bias is a vector along the last axis.
struct MatMulBiasAct {
  Value x, w, bias;
  std::optional<ActivationKind> activation;
};
/// The operands of such a node; none for other ops and other epilogues.
std::optional<MatMulBiasAct> as_matmul_bias_act(const Graph& g, NodeId id);

/// The number that every element of `v` equals, when `v` is a one-element constant or a view of one. None for complex
/// values.
std::optional<double> constant_scalar(const Graph& g, Value v);

/// True for a Param with ParamMode::Frozen: values derived from it are computed when it is set.
bool is_frozen_param(const Node& n);
/// True when `v` depends on frozen Params and Constants alone, and not on an Input, State, mutable Param or symbolic
/// dimension.
bool is_param_only(const Graph& g, Value v);
/// The same for every node at once, by node index.
std::vector<bool> param_only_nodes(const Graph& g);
/// The same for any number of values of a graph that only grows. Each node is examined once.
class ParamOnly {
 public:
  bool operator()(const Graph& g, Value v);

 private:
  std::vector<bool> nodes_;
};

}  // namespace rlx
