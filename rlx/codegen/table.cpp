// The table of rows, and what rows have in common.
#include <algorithm>
#include <array>

#include "rlx/codegen/row.h"
#include "rlx/ir/op_def.h"

namespace rlx::codegen {
namespace {

using Family = std::span<const Row> (*)();
constexpr Family kFamilies[] = {dot_rows,    grouped_rows, attention_rows, norm_rows,   elementwise_rows, move_rows,
                                reduce_rows, index_rows,   sort_rows,      random_rows, collective_rows};

using ByKind = std::array<std::vector<const Row*>, kNumOpKinds>;
const ByKind& by_kind() {
  static const ByKind table = [] {
    ByKind t;
    for (Family family : kFamilies)
      for (const Row& row : family()) t[static_cast<std::size_t>(row.kind)].push_back(&row);
    return t;
  }();
  return table;
}

}  // namespace

const Row* find_row(const Graph& g, NodeId id) {
  for (const Row* row : by_kind()[static_cast<std::size_t>(g.node(id).kind())])
    if (!row->refuses(g, id)) return row;
  return nullptr;
}

const char* rows_refuse(const Graph& g, NodeId id) {
  const char* why = "there is no kernel of this kind";
  for (const Row* row : by_kind()[static_cast<std::size_t>(g.node(id).kind())])
    if (why = row->refuses(g, id); !why) break;
  return why;
}

const OpSet& row_kinds() {
  static const OpSet kinds = [] {
    OpSet set;
    for (const OpDef* def : all_op_defs())
      if (def->is_leaf() || !by_kind()[static_cast<std::size_t>(def->kind)].empty()) set.add(def->kind);
    return set;
  }();
  return kinds;
}

NodeLaunches launches_of(const LirModule& lir, NodeId id, const Dialect& dialect) {
  const Row* row = find_row(lir.graph, id);
  check(row != nullptr, concat_text("no row for a planned step: ", op_text_name(lir.graph.node(id).op)));
  NodeKernels node(lir, id, dialect);
  row->write(node);
  return node.take();
}

const char* refuse_dtypes(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  bool ok = true;
  for (Value v : n.inputs) ok = ok && computes(g.shape(v).dtype());
  for (const Shape& s : n.shapes) ok = ok && computes(s.dtype());
  return refuse_unless(ok, "WGSL has no type for the dtype of an operand or result");
}

}  // namespace rlx::codegen
