// Rows of generated kernels: which kernels run which node. Everything that the compiler learns about a device with
// generated kernels is read from the rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "rlx/codegen/kernel_builder.h"
#include "rlx/driver/target.h"

namespace rlx::codegen {

/// How one kind of node is run. Several rows may serve a kind; the first that accepts a node writes it.
struct Row {
  OpKind kind;
  const char* kernel;  // for reports: "softmax"
  /// Null when kernels can run this node (dtypes, attributes, extents, which may be symbolic), else why not.
  const char* (*refuses)(const Graph&, NodeId);
  /// Adds the node's kernels.
  void (*write)(NodeKernels&);
  /// See Target; null = never.
  bool (*reads_strided)(const Graph&, NodeId, int operand) = nullptr;
  bool (*in_place)(const Graph&, NodeId, int operand, int result) = nullptr;
  bool (*reads_encoded)(const Graph&, NodeId, int operand) = nullptr;
  std::uint32_t skips_unread = 0;  // bit r: result r needs no place when nobody reads it (NodeKernels::is_read)
};

/// The families of rows, special ones before general ones.
std::span<const Row> dot_rows();
std::span<const Row> grouped_rows();
std::span<const Row> attention_rows();
std::span<const Row> norm_rows();
std::span<const Row> elementwise_rows();
std::span<const Row> move_rows();
std::span<const Row> reduce_rows();
std::span<const Row> index_rows();
std::span<const Row> sort_rows();
std::span<const Row> random_rows();
std::span<const Row> collective_rows();

/// The row that runs a node, or null.
const Row* find_row(const Graph& g, NodeId id);
/// Null when some row runs the node; else why the one that takes most does not.
const char* rows_refuse(const Graph& g, NodeId id);
/// Every kind that has a row, and the leaves.
const OpSet& row_kinds();
/// The kernels of a step of a planned program.
NodeLaunches launches_of(const LirModule& lir, NodeId id, const Dialect& dialect);

// -- helpers of rows --

inline const Shape& in_shape(const Graph& g, NodeId id, int i) {
  return g.shape(g.node(id).inputs[static_cast<std::size_t>(i)]);
}
constexpr const char* refuse_unless(bool ok, const char* why) { return ok ? nullptr : why; }
/// Refuses operands and results of dtypes that kernels do not compute with.
const char* refuse_dtypes(const Graph& g, NodeId id);

}  // namespace rlx::codegen
