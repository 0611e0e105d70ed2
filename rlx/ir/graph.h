// Graph: a pure tensor program as a list of nodes in topological order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/attr.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/lazy_field.h"
#include "rlx/ir/value.h"

namespace rlx {

/// One node: its op, its operands, the shape of each result, and its origin.
struct Node {
  OpBox op;
  std::vector<Value> inputs;
  std::vector<Shape> shapes;  // one per result
  Origin origin;

  /// The kind of the op.
  OpKind kind() const { return op.kind(); }
  /// The number of results; most ops have one.
  std::uint32_t num_results() const { return static_cast<std::uint32_t>(shapes.size()); }
  /// InvalidArgument for a result that the node does not have.
  const Shape& shape(std::uint32_t r = 0) const { return shapes[detail::checked_index("result", r, shapes.size())]; }
};

/// Facts about a symbol: inclusive bounds and a divisor of every value.
struct SymbolInfo {
  std::int64_t min = 0, max = std::int64_t{1} << 40;
  std::int64_t divisor = 1;
  friend bool operator==(const SymbolInfo&, const SymbolInfo&) = default;
};

class GraphModule;

namespace detail {
/// A bool that is false again once its object was moved from, as the containers beside it are empty then.
class MovableFlag {
 public:
  MovableFlag() = default;
  MovableFlag(const MovableFlag&) = default;
  MovableFlag& operator=(const MovableFlag&) = default;
  MovableFlag(MovableFlag&& other) noexcept : set_(std::exchange(other.set_, false)) {}
  MovableFlag& operator=(MovableFlag&& other) noexcept {
    set_ = std::exchange(other.set_, false);
    return *this;
  }
  MovableFlag& operator=(bool set) {
    set_ = set;
    return *this;
  }
  operator bool() const { return set_; }  // NOLINT(implicit)

 private:
  bool set_ = false;
};
}  // namespace detail

/// An index of the Inputs, Params and States of a list of nodes, by kind and by name.
class LeafIndex {
  friend class Graph;
  /// Adds the last node when it is a leaf.
  void add_last(const std::vector<Node>& nodes);
  /// The leaves of one kind, in node order.
  const std::vector<NodeId>& of(OpKind kind) const { return of_kind_[slot(kind)]; }
  /// The first leaf of this kind and name, or an invalid id.
  NodeId find(const std::vector<Node>& nodes, OpKind kind, std::string_view name) const;
  static bool knows(OpKind kind) { return kind == OpKind::Input || kind == OpKind::Param || kind == OpKind::State; }
  static std::size_t slot(OpKind kind) { return kind == OpKind::Input ? 0 : kind == OpKind::Param ? 1 : 2; }
  std::uint32_t& cell(const std::vector<Node>& nodes, OpKind kind, std::string_view name);
  std::vector<NodeId> of_kind_[3];
  std::vector<std::uint32_t> table_;  // open addressing: node of (kind, name); empty while there are few leaves
  std::size_t names_ = 0;             // cells in use
};

/// Owns nodes in topological order: a node uses only earlier nodes. Building appends nodes. Finished graphs are passed
/// as `const Graph&` and rewritten into new graphs (`GraphRewriter`). The builder functions (`g.matmul(x, w)`) are in
/// builder.h.
class Graph : public Builder {
 public:
  /// An empty graph. The name is for messages and files.
  explicit Graph(std::string name = "graph");
  // These are compiled once, in graph.cpp, so that other files do not instantiate the code of the containers.
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();
  /// The module (module.h) of a graph called `name` that `build(graph)` fills.
  template <class F>
  static GraphModule define(std::string name, F&& build);
  /// A copy of this graph as a module: at stage Hir when it holds HIR blocks, else Mir.
  GraphModule module() const;

  /// The name, for messages and files.
  const std::string& name() const { return name_; }
  /// Changes the name.
  void set_name(std::string name) { name_ = std::move(name); }

  // -- building --
  using Builder::add;  // g.add(a, b) is the sum
  /// Appends a node: infers and checks its result shapes. Throws the error of the shape rule with the node's text and
  /// the user's line.
  Expr add(OpBox op, std::vector<Value> inputs, SourceLoc loc = SourceLoc::current());
  /// The same for Exprs. A value of another graph is an error.
  Expr add(OpBox op, std::initializer_list<Expr> inputs, SourceLoc loc = SourceLoc::current());
  /// The same with operands given by name, in any order. Optional ones may be omitted. InvalidArgument naming an
  /// operand that is unknown, given twice or missing.
  Expr add_named(OpBox op, const std::vector<std::pair<std::string_view, Expr>>& operands,
                 SourceLoc loc = SourceLoc::current());
  /// Appends a node with known shapes and origin, for readers and rewriters. Checks its structure, but not its shapes.
  NodeId add_node(Node node);
  /// Reserves memory for `nodes` nodes in all. InvalidArgument for more than the range of ids.
  void reserve(std::size_t nodes) {
    (void)detail::checked_index("node", static_cast<std::int64_t>(nodes), 0xffffffffU);
    nodes_.reserve(nodes);
  }
  /// The handle of a stored value of this graph, for building. InvalidArgument when the graph does not have the value.
  Expr expr(Value v) { return Expr(this, v); }
  /// True when `v` is a result of a node of this graph.
  bool has(Value v) const { return v.node.index < nodes_.size() && v.result < nodes_[v.node.index].shapes.size(); }
  /// Declares what a run returns, in this order. InvalidArgument for a value of another graph.
  void set_outputs(std::vector<Value> outputs, SourceLoc loc = SourceLoc::current());
  void set_outputs(std::initializer_list<Expr> outputs, SourceLoc loc = SourceLoc::current());
  void set_outputs(const std::vector<Expr>& outputs, SourceLoc loc = SourceLoc::current());
  /// Declares the value of state `name` after a run. Shape and dtype must equal the state's.
  void set_state(const std::string& name, Value v, SourceLoc loc = SourceLoc::current());
  /// The same for an Expr. A value of another graph is an error.
  void set_state(const std::string& name, const Expr& v, SourceLoc loc = SourceLoc::current());
  /// The symbolic dimension `name`, with the bounds declared for it, by default those of SymbolInfo{}. InvalidArgument
  /// unless `name` is an identifier: letters, digits and _, not beginning with a digit.
  Dim symbol(const std::string& name);
  /// The same, and declares its bounds. InvalidArgument for invalid bounds, and for bounds that differ from those of an
  /// earlier call (the message names both). Bounds equal to SymbolInfo{} count as not declared.
  Dim symbol(const std::string& name, SymbolInfo info);
  /// A new symbol whose value in each run is `source`, an I64 scalar. `source` must not depend on the symbol, so nodes
  /// with the symbol in their shapes come after it. InvalidArgument for a name that is taken and in a body of control
  /// flow, ShapeMismatch for a source of another shape or dtype.
  Dim symbol(const std::string& name, SymbolInfo info, const Expr& source, SourceLoc loc = SourceLoc::current());
  /// Sets the source of a declared symbol, for readers and rewriters. `verify` checks it.
  void set_symbol_source(const std::string& name, Value source);
  /// Nodes built during the life of the scope get `label/` before their label. Scopes end in the reverse order of their
  /// begin.
  class LabelScope {
   public:
    /// Begins the scope.
    LabelScope(Graph& g, std::string label);
    ~LabelScope();
    LabelScope(const LabelScope&) = delete;
    LabelScope& operator=(const LabelScope&) = delete;

   private:
    std::shared_ptr<GraphLife::Block> life_;
    std::size_t old_size_;
  };
  /// Puts `label` in front of the labels of nodes, as long as the result lives.
  [[nodiscard]] LabelScope scope(std::string label) { return LabelScope(*this, std::move(label)); }
  /// Sets the label of a node, for messages and dumps.
  void set_label(NodeId id, std::string label);
  /// The origin of a node, for writing.
  Origin& origin(NodeId id) {
    require(id);
    return nodes_[id.index].origin;
  }

  // -- reading: InvalidArgument for a node or value that the graph does not have --
  /// The number of nodes. Node ids are 0 to num_nodes() - 1.
  std::size_t num_nodes() const { return nodes_.size(); }
  /// A node by its id.
  const Node& node(NodeId id) const {
    require(id);
    return nodes_[id.index];
  }
  /// All nodes, in topological order.
  const std::vector<Node>& nodes() const { return nodes_; }
  /// The inferred shape of a value.
  const Shape& shape(Value v) const {
    if (!has(v)) throw_no_value(v);
    return nodes_[v.node.index].shapes[v.result];
  }
  /// The values that a run returns.
  const std::vector<Value>& outputs() const { return outputs_; }
  /// Whether set_outputs was called, if only with no outputs.
  bool has_set_outputs() const { return has_set_outputs_; }
  /// The next value of a state.
  struct StateUpdate {
    std::string name;
    Value value;
    friend bool operator==(const StateUpdate&, const StateUpdate&) = default;
  };
  /// The states that a run changes.
  const std::vector<StateUpdate>& state_updates() const { return state_updates_; }
  /// The declared symbols with their bounds.
  const std::map<std::string, SymbolInfo>& symbols() const { return *symbols_; }
  /// The symbols whose values are computed during the run. The values of all others come from the extents of inputs.
  const std::map<std::string, Value>& symbol_sources() const { return *symbol_sources_; }
  /// Ordered ops (OpTrait::Ordered), in node order.
  const std::vector<NodeId>& ordered() const { return ordered_; }
  /// Replaces all symbols, for readers and rewriters. `verify` reports impossible bounds.
  void set_symbols(std::map<std::string, SymbolInfo> symbols) { symbols_ = std::move(symbols); }
  /// Ids of all Input, Param or State nodes in node order.
  std::vector<NodeId> leaves(OpKind kind) const;
  /// The Input, Param or State called `name`, or an invalid id. A table lookup.
  NodeId find_leaf(OpKind kind, std::string_view name) const;
  /// The name of an Input, Param or State node. InvalidArgument for another node.
  const std::string& leaf_name(NodeId id) const;
  /// True when no extent of a shape, an attribute or a body is symbolic. Known without a walk over the nodes.
  bool is_static() const { return nodes_.empty() || !any_dynamic_; }
  bool has_dynamic_dims() const { return !is_static(); }
  /// The symbols that shapes depend on, sorted.
  std::vector<std::string> dynamic_symbols() const;
  /// The graph with symbols replaced by integers and all shapes inferred again. Node ids stay the same.
  Graph bind(const SymbolBinding& binding) const;

 private:
  friend class BodyScope;
  friend class LabelScope;
  friend class Expr;
  void require(NodeId id) const {
    if (id.index >= nodes_.size()) throw_no_value(id);
  }
  [[noreturn]] void throw_no_value(Value v) const;
  std::string name_;
  std::vector<Node> nodes_;
  detail::MovableFlag any_dynamic_;
  LeafIndex leaves_;
  std::vector<Value> outputs_;
  detail::MovableFlag has_set_outputs_;
  std::vector<StateUpdate> state_updates_;
  std::vector<std::uint32_t> update_of_state_;  // by position among the states: 1 + position in state_updates_, or 0
  LazyField<std::map<std::string, SymbolInfo>> symbols_;  // bodies are many and have none
  LazyField<std::map<std::string, Value>> symbol_sources_;
  std::vector<NodeId> ordered_;
  std::string label_prefix_;
  GraphLife life_;
};

/// Numbers all values of a graph 0, 1, .. in node order. The results of a node get adjacent numbers.
class ValueSlots {
 public:
  ValueSlots() = default;
  explicit ValueSlots(const Graph& g);
  /// InvalidArgument for a value that the graph did not have.
  std::uint32_t operator()(Value v) const {
    if (!knows(v)) throw_no_value(v);
    return first_[v.node.index] + v.result;
  }
  bool knows(Value v) const {
    return v.node.index + std::size_t{1} < first_.size() && v.result < first_[v.node.index + 1] - first_[v.node.index];
  }
  std::size_t size() const { return first_.empty() ? 0 : first_.back(); }

 private:
  [[noreturn]] static void throw_no_value(Value v);
  std::vector<std::uint32_t> first_;  // node -> slot of its result 0; the last entry is the number of slots
};

/// The uses of every value: for each result, its (user, operand position) pairs, plus output and state uses.
/// InvalidArgument for values that the graph did not have.
class UseIndex {
 public:
  struct Use {
    NodeId user;
    std::uint32_t operand;
  };
  explicit UseIndex(const Graph& g);
  std::span<const Use> uses(Value v) const;
  /// The number of uses by nodes, outputs, state updates and symbols.
  int use_count(Value v) const;
  bool is_output(Value v) const;  // an output, a state update or the source of a symbol
  /// True when exactly one operand reads v and v is not an output.
  bool single_use(Value v) const { return !is_output(v) && uses(v).size() == 1; }

 private:
  ValueSlots slot_;
  std::vector<std::uint32_t> begin_;  // slot -> first use
  std::vector<Use> uses_;
  std::vector<std::uint8_t> output_count_;
};

/// Throws InvalidArgument naming the symbol, the value, and the violated bounds or divisor.
void check_symbol_value(std::string_view symbol, const SymbolInfo& info, std::int64_t value);
/// Bounds of every declared symbol.
SymbolRanges symbol_ranges(const Graph& g);

/// The label of a node: its origin's label, else its leaf name, else "%7".
std::string node_label(const Graph& g, NodeId id);
/// One line for messages: "%7 = softmax(%3) {axis = 1} : [4, 8] f32". Bodies and large constants are abbreviated
/// (text.cpp).
std::string node_text(const Graph& g, NodeId id);
/// The node line, its label and the user's source line, for error messages.
std::string node_where(const Graph& g, NodeId id);
/// "   built at file.cpp:12", the end of such a message; empty for an unknown line.
std::string built_at(SourceLoc loc);

inline Expr::Expr(Graph* graph, Value value) : value_(value) {
  if (!graph) return;
  if (!graph->has(value)) graph->throw_no_value(value);
  life_ = graph->life_.of(*graph);
}

inline const Shape& Expr::shape() const { return graph().shape(value_); }

}  // namespace rlx
