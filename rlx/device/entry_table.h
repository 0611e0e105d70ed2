// Tables of rows: a row says which nodes of a kind it runs and how. Everything that the compiler learns about a backend
// is read from its rows; what a row makes of a node is the backend's affair.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/op_def.h"

namespace rlx {

/// The rows of a backend by kind. A Row has at least
///   OpKind kind;
///   const char* (*refuses)(const Graph&, NodeId);  // null when the row runs the node, else why not
/// Several rows may serve a kind: the first that accepts a node runs it.
template <class Row>
class RowTable {
 public:
  using Families = std::initializer_list<std::span<const Row>>;
  /// Special families come before general ones; `nothing` is said of a kind without a row.
  explicit RowTable(Families families, const char* nothing = "there is no kernel of this kind") : nothing_(nothing) {
    for (std::span<const Row> family : families)
      for (const Row& row : family) rows_[static_cast<std::size_t>(row.kind)].push_back(&row);
    for (const OpDef* def : all_op_defs())
      if (def->is_leaf() || !of(def->kind).empty()) kinds_.add(def->kind);
  }

  /// The rows of a kind, in their order.
  std::span<const Row* const> of(OpKind kind) const { return rows_[static_cast<std::size_t>(kind)]; }
  /// The row that runs a node, or null.
  const Row* find(const Graph& g, NodeId id) const {
    for (const Row* row : of(g.node(id).kind()))
      if (!row->refuses(g, id)) return row;
    return nullptr;
  }
  /// Null when some row runs the node, and for a leaf, which needs none; else why the one that takes most does not.
  const char* refuses(const Graph& g, NodeId id) const {
    const OpKind kind = g.node(id).kind();
    if (op_def(kind).is_leaf()) return nullptr;
    const char* why = nothing_;
    for (const Row* row : of(kind))
      if (why = row->refuses(g, id); !why) break;
    return why;
  }
  /// Every kind that has a row, and the leaves.
  const OpSet& kinds() const { return kinds_; }

 private:
  std::array<std::vector<const Row*>, kNumOpKinds> rows_;
  OpSet kinds_;
  const char* nothing_;
};

/// A target whose rows answer for nodes. Beside what a table needs, a Row has, as Target says them and null for never,
///   bool (*reads_strided)(const Graph&, NodeId, int operand);
///   bool (*reads_encoded)(const Graph&, NodeId, int operand);
///   bool (*in_place)(const Graph&, NodeId, int operand, int result);
///   std::uint32_t skips_unread;  // bit r: result r needs no place when nobody reads it
template <class Row>
class RowTarget : public Target {
 public:
  explicit RowTarget(const RowTable<Row>& rows) : rows_(rows) {}
  const OpSet& kinds() const override { return rows_.kinds(); }
  const char* refuses(const Graph& g, NodeId id) const override { return rows_.refuses(g, id); }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    const Row* row = rows_.find(g, id);
    return row && row->reads_strided && row->reads_strided(g, id, operand);
  }
  bool reads_encoded(const Graph& g, NodeId id, int operand) const override {
    const Row* row = rows_.find(g, id);
    return row && row->reads_encoded && row->reads_encoded(g, id, operand);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    const Row* row = rows_.find(g, id);
    return row && row->in_place && row->in_place(g, id, operand, result);
  }
  bool skips_unread(const Graph& g, NodeId id, int result) const override {
    const Row* row = rows_.find(g, id);
    return row && result < 32 && (row->skips_unread >> result & 1U) != 0;
  }

 protected:
  const RowTable<Row>& rows_;
};

// -- helpers of rows --

inline const Shape& in_shape(const Graph& g, NodeId id, int i) {
  return g.shape(g.node(id).inputs[static_cast<std::size_t>(i)]);
}
inline DType in_dtype(const Graph& g, NodeId id, int i) { return in_shape(g, id, i).dtype(); }
/// True when the value is no other operand of the node too: what a kernel asks that still reads others when it writes.
inline bool is_sole_operand(const Graph& g, NodeId id, int i) {
  const std::vector<Value>& in = g.node(id).inputs;
  return std::count(in.begin(), in.end(), in[static_cast<std::size_t>(i)]) == 1;
}
/// Answers of `refuses`.
constexpr const char* refuse_unless(bool ok, const char* why) { return ok ? nullptr : why; }
inline const char* never_refuses(const Graph&, NodeId) { return nullptr; }

}  // namespace rlx
