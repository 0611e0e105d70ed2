// Kernel entries of generated kernels: which kernels run which node.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "rlx/codegen/kernel_builder.h"
#include "rlx/device/entry_table.h"

namespace rlx::codegen {

/// How one kind of node is run (device/entry_table.h).
struct KernelEntry {
  OpKind kind;
  const char* kernel;  // for reports: "softmax"
  /// Null when kernels can run this node (dtypes, attributes, extents, which may be symbolic), else the reason.
  const char* (*refuses)(const Graph&, NodeId);
  /// Adds the node's kernels.
  void (*write)(NodeKernels&);
  /// See Target; null = never.
  bool (*reads_strided)(const Graph&, NodeId, int operand) = nullptr;
  bool (*in_place)(const Graph&, NodeId, int operand, int result) = nullptr;
  bool (*reads_encoded)(const Graph&, NodeId, int operand) = nullptr;
  std::uint32_t skips_unread = 0;  // bit r: result r needs no memory when nobody reads it (NodeKernels::is_read)
  /// An upper bound of the scratch of the node's kernels, where it may exceed the node's own values and extents are
  /// known, else nothing; null = never.
  ScratchBytes (*scratch_bytes)(const Graph&, NodeId) = nullptr;
  /// An upper bound of the loop iterations of one thread, where it grows with extents; null = small. It is evaluated on
  /// the graph from which kernels are written, since the symbols left there decide which kernels these are.
  Dim (*steps)(const Graph&, NodeId, const Dialect&) = nullptr;
};

/// The families of kernel entries, special ones before general ones.
std::span<const KernelEntry> dot_entries();
std::span<const KernelEntry> grouped_entries();
std::span<const KernelEntry> attention_entries();
std::span<const KernelEntry> norm_entries();
std::span<const KernelEntry> elementwise_entries();
std::span<const KernelEntry> move_entries();
std::span<const KernelEntry> reduce_entries();
std::span<const KernelEntry> index_entries();
std::span<const KernelEntry> sort_entries();
std::span<const KernelEntry> random_entries();
std::span<const KernelEntry> collective_entries();

/// All kernel entries.
const EntryTable<KernelEntry>& entry_table();
/// The kernels of a step of a planned program.
NodeLaunches launches_of(const LirModule& lir, NodeId id, const Dialect& dialect);

// -- helpers of kernel entries --

/// Refuses a kernel with more bindings than devices allow.
inline const char* refuse_many(std::size_t bindings) {
  return refuse_unless(bindings <= static_cast<std::size_t>(Dialect{}.max_bindings),
                       "it has more operands than a kernel can bind");
}
/// Refuses operands and results of dtypes that kernels do not compute with.
const char* refuse_node_dtypes(const Graph& g, const Node& n);
inline const char* refuse_dtypes(const Graph& g, NodeId id) { return refuse_node_dtypes(g, g.node(id)); }
/// An answer for `scratch_bytes`: a result of a dtype narrower than a word, computed in words.
ScratchBytes widened_bytes(const Graph& g, NodeId id);

}  // namespace rlx::codegen
