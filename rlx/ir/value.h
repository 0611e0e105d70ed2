// Values of a graph: node ids, edges, source lines, origins, and the handles that users build with.
#pragma once

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "rlx/error.h"
#include "rlx/tensor/shape.h"

namespace rlx {

class BodyScope;
class Graph;
class Index;

/// Position of a node in its graph; text "%7". Converts to the node's result 0.
struct NodeId {
  std::uint32_t index = 0xffffffffu;
  friend bool operator==(NodeId, NodeId) = default;
  friend auto operator<=>(NodeId, NodeId) = default;
  /// False for a default-constructed id.
  bool valid() const { return index != 0xffffffffu; }
  /// "%7".
  std::string text() const { return "%" + std::to_string(index); }
};

/// One result of a node: the stored edge. Text "%3", or "%3#1" for a later result.
struct Value {
  NodeId node;
  std::uint32_t result = 0;
  Value() = default;
  Value(NodeId n, std::uint32_t r = 0) : node(n), result(r) {}  // NOLINT(implicit)
  friend bool operator==(const Value&, const Value&) = default;
  friend auto operator<=>(const Value&, const Value&) = default;
  /// "%3", or "%3#1" for a later result.
  std::string text() const { return result ? node.text() + "#" + std::to_string(result) : node.text(); }
};

/// A source line of the user, taken at the call by default arguments.
struct SourceLoc {
  const char* file = "";
  int line = 0;
  static constexpr SourceLoc current(const char* f = __builtin_FILE(), int l = __builtin_LINE()) { return {f, l}; }
};

/// The origin of a node; rewrites keep it.
struct Origin {
  std::string label;              // "layer0/q_proj"; empty when the user gave none
  SourceLoc loc;                  // the user's line
  std::string pass;               // last pass that made or replaced the node
  std::vector<std::string> from;  // the nodes it replaced, oldest first: "%3 matmul"
  friend bool operator==(const Origin& a, const Origin& b) {
    return a.label == b.label && a.pass == b.pass && a.from == b.from && a.loc.line == b.loc.line;
  }
};
using NodeOrigin = Origin;

/// Ties the handles that users hold to the graph that made them. Copies and moves of a graph are separate graphs.
/// Handles become dead when their graph is moved from, assigned to or destroyed.
class GraphLife {
 public:
  struct Block {
    Graph* graph = nullptr;      // null: dead
    BodyScope* scope = nullptr;  // for a body under construction: its enclosing scope
  };
  GraphLife() = default;
  GraphLife(const GraphLife&) {}
  GraphLife(GraphLife&& other) noexcept { other.end(); }
  GraphLife& operator=(const GraphLife&) {
    end();
    return *this;
  }
  GraphLife& operator=(GraphLife&& other) noexcept {
    end();
    other.end();
    return *this;
  }
  ~GraphLife() { end(); }
  const std::shared_ptr<Block>& of(Graph& graph);

 private:
  void end() noexcept;
  std::shared_ptr<Block> block_;
};

/// The answer of == and != on Exprs, which compare identity. It is a bool, but no operand: `g.where(a == b, x, y)` does
/// not compile.
class SameValue {
 public:
  constexpr SameValue(bool same) : same_(same) {}    // NOLINT(implicit)
  constexpr operator bool() const { return same_; }  // NOLINT(implicit)

 private:
  bool same_;
};

/// A value of a graph under construction. Operators on it append nodes. It is dead once its graph is moved, compiled or
/// destroyed. A dead or empty Expr throws InvalidArgument from everything but valid(), value() and ==.
class Expr {
 public:
  Expr() = default;
  /// Result `value.result` of a node of `graph`; empty when `graph` is null. InvalidArgument for a value that the graph
  /// does not have.
  Expr(Graph* graph, Value value);
  /// False for an empty Expr. True for a dead one: it does not show whether the graph still exists.
  bool valid() const { return life_ != nullptr; }
  /// The graph that made this value.
  Graph& graph() const {
    if (!life_ || !life_->graph) throw_no_graph();
    return *life_->graph;
  }
  /// True when `graph` is alive and made this value.
  bool belongs_to(const Graph& graph) const { return life_ && life_->graph == &graph; }
  /// The stored edge: node and result.
  Value value() const { return value_; }
  operator Value() const { return value_; }  // NOLINT(implicit)
  /// The inferred shape; its dtype, rank and dimensions are also available alone.
  const Shape& shape() const;
  DType dtype() const { return shape().dtype(); }
  int rank() const { return shape().rank(); }
  const Dim& dim(int axis) const { return shape().dim(axis); }
  /// Another result of the same node; InvalidArgument when it has none.
  Expr result(std::uint32_t r) const { return Expr(&graph(), Value(value_.node, r)); }
  /// Part of the value, as in NumPy (index.h): `x[0]`, `x[-1]`, `x[Slice{1, 4}]`, `x[ids]`.
  Expr operator[](const Index& entry) const;
  /// The same with an entry for each axis: `x[{0, Slice{}, kNewAxis}]`.
  Expr operator[](std::initializer_list<Index> entries) const;
  /// Whether both are the same value of the same graph. The elementwise comparisons are g.eq and g.ne.
  friend SameValue operator==(const Expr& a, const Expr& b) { return a.life_ == b.life_ && a.value_ == b.value_; }
  /// Whether they are not.
  friend SameValue operator!=(const Expr& a, const Expr& b) { return !(a == b); }

 private:
  [[noreturn]] void throw_no_graph() const;
  std::shared_ptr<GraphLife::Block> life_;
  Value value_;
};

/// An argument of a builder function: a value, or a weakly typed scalar that becomes a constant of the other operand's
/// dtype. Records the user's line.
class Operand {
 public:
  Operand(Expr e, SourceLoc loc = SourceLoc::current()) : expr_(e), loc_(loc) {}  // NOLINT(implicit)
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T scalar, SourceLoc loc = SourceLoc::current())  // NOLINT(implicit)
      : loc_(loc),
        scalar_(static_cast<double>(scalar)),
        is_scalar_(true),
        is_float_scalar_(std::is_floating_point_v<T>) {
    if constexpr (std::is_integral_v<T>) integer_bits_ = static_cast<std::uint64_t>(scalar);
  }
  Operand(SameValue, SourceLoc = SourceLoc::current()) = delete;  // == is identity: write g.eq(a, b) or g.ne(a, b)
  /// True for a number. The next calls are about it.
  bool is_scalar() const { return is_scalar_; }
  bool is_float_scalar() const { return is_float_scalar_; }
  double scalar() const { return scalar_; }
  /// The two's complement of an integer scalar. With the sign of scalar() it represents every C++ integer exactly.
  std::uint64_t integer_bits() const { return integer_bits_; }
  /// The value; empty for a number.
  const Expr& expr() const { return expr_; }
  /// The user's line.
  SourceLoc loc() const { return loc_; }

 private:
  Expr expr_;
  SourceLoc loc_;
  double scalar_ = 0;
  std::uint64_t integer_bits_ = 0;
  bool is_scalar_ = false, is_float_scalar_ = false;
};

}  // namespace rlx
