// The kernel entries of the emitter: for each kind of op, the nodes that StableHLO text can express, and how.
#pragma once

#include <span>
#include <vector>

#include "rlx/backends/tpu/writer.h"
#include "rlx/device/entry_table.h"
#include "rlx/ir/graph.h"

namespace rlx::tpu {

/// One node while its text is written: its operands are available, and its results are to be set.
class EmitContext {
 public:
  EmitContext(Writer& writer, const Graph& g, NodeId id, std::span<const Hlo> inputs)
      : w(writer), g_(g), id_(id), inputs_(inputs), results_(node().num_results()) {}

  const Graph& graph() const { return g_; }
  const Node& node() const { return g_.node(id_); }
  template <class Op>
  const Op& op() const {
    return node().op.as<Op>();
  }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  std::span<const Hlo> inputs() const { return inputs_; }
  const Hlo& in(int i) const { return inputs_[detail::checked_index("operand", i, inputs_.size())]; }
  /// Operand i broadcast to the dims of result 0.
  Hlo spread(int i) { return w.broadcast(in(i), dims()); }
  /// The dtype in the graph. In the text 4-bit values have a wider dtype (kept_as).
  DType in_dtype(int i) const { return g_.shape(node().inputs[static_cast<std::size_t>(i)]).dtype(); }
  DType dtype(std::uint32_t r = 0) const { return node().shape(r).dtype(); }
  Extents dims(std::uint32_t r = 0) const { return node().shape(r).static_dims(); }
  HloType type(std::uint32_t r = 0) const { return {kept_as(dtype(r)), dims(r)}; }

  void set(std::uint32_t r, Hlo v);
  void set(Hlo v) { set(0, std::move(v)); }
  const Hlos& results() const { return results_; }

  Writer& w;

 private:
  const Graph& g_;
  NodeId id_;
  std::span<const Hlo> inputs_;
  Hlos results_;
};

/// How nodes of a kind are written (device/entry_table.h). A kind has one kernel entry.
struct KernelEntry {
  OpKind kind;
  const char* (*refuses)(const Graph&, NodeId);  // also called with symbolic shapes
  void (*emit)(EmitContext&);
};

std::span<const KernelEntry> elementwise_entries();
std::span<const KernelEntry> move_entries();
std::span<const KernelEntry> index_entries();
std::span<const KernelEntry> order_entries();
std::span<const KernelEntry> reduce_entries();
std::span<const KernelEntry> dot_entries();
std::span<const KernelEntry> factor_entries();
std::span<const KernelEntry> grouped_entries();
std::span<const KernelEntry> random_entries();
std::span<const KernelEntry> control_entries();
std::span<const KernelEntry> collective_entries();
std::span<const KernelEntry> fft_entries();

/// All kernel entries.
const EntryTable<KernelEntry>& entry_table();
/// Writes every node of a graph and returns its outputs. `inputs` are its Inputs in node order.
Hlos emit_body(Writer& w, const Graph& g, std::span<const Hlo> inputs);
/// Null when a kernel entry takes every node of the graph, else the reason.
const char* body_refuses(const Graph& g);

// -- helpers of kernel entries --

/// `x` of dtype `from` converted to dtype `to`, by the rules of Tensor::cast.
Hlo cast(Writer& w, const Hlo& x, DType from, DType to);
/// Converts half-precision floats to F32. Others are unchanged.
inline Hlo widen(Writer& w, const Hlo& x) { return w.convert(x, computed_in(x.dtype)); }

/// The axes of a matmul, as in ops::DotGeneral.
struct DotAxes {
  std::span<const std::int64_t> lhs_contract, rhs_contract, lhs_batch{}, rhs_batch{};
};
/// The matmul of values of one dtype, with sums in `result`.
Hlo dot_general(Writer& w, const Hlo& lhs, const Hlo& rhs, const DotAxes& axes, DType result);
/// The operand dtype and the result dtype of a StableHLO dot, for operands of dtypes `lhs` and `rhs` and a graph result
/// of dtype `out`.
struct DotTypes {
  DType operands, result;
};
DotTypes dot_types(DType lhs, DType rhs, DType out);

/// The scan along `axis`, by a binary op with the identity `nothing`.
Hlo running(Writer& w, std::string_view op_name, const Hlo& x, const Hlo& nothing, std::int64_t axis, bool reverse);

/// The rows of `table` [R, ..] that a vector of indices names; indices are clamped.
Hlo rows_at(Writer& w, const Hlo& table, const Hlo& indices);
/// `into` [R, ..] with some rows replaced by those of `updates`. The indices are a vector without duplicates; those out
/// of range are dropped.
Hlo set_rows(Writer& w, const Hlo& into, const Hlo& indices, const Hlo& updates);
/// All operands sorted by the first one along `axis`, stable.
Hlos sorted(Writer& w, std::span<const Hlo> operands, std::int64_t axis, bool descending);

/// op(x) for a float, integer, complex or Bool value.
Hlo activation(Writer& w, const Hlo& x, const ops::Activation& op);
/// fn(a, b) for values of one type.
Hlo binary(Writer& w, const Hlo& a, const Hlo& b, BinaryKind fn);

}  // namespace rlx::tpu
