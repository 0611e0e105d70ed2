// A matmul as its kernels see it: batches of [M, K] x [K, N] with an elementwise epilogue.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/codegen/decoder.h"
#include "rlx/codegen/walk.h"
#include "rlx/ir/attr.h"

namespace rlx::codegen {

/// One operand of a matmul.
struct DotOperand {
  enum class Fours { None, Free, Contract };  // the axes along which four consecutive elements are contiguous
  std::string name;                           // "x", "w"
  Ref ref;                                    // of a quantized operand: the dense result of its Dequantize
  bool encoded = false;
  Walk batch, free, contract;
  Fours fours = Fours::None;
};

/// Operand i of a node with the roles of its axes. With `encoded` the kernel entry decodes the operand.
DotOperand dot_operand(NodeKernels& node, int i, const char* name, bool encoded, const std::vector<int>& batch,
                       const std::vector<int>& free, const std::vector<int>& contract);

/// The axes of a DotGeneral or FusedDot.
struct DotAxesOf {
  std::vector<int> lhs_batch, rhs_batch, lhs_free, rhs_free, lhs_contract, rhs_contract;
};
DotAxesOf axes_of_dot(const Graph& g, NodeId id);
/// The epilogue body, or null.
const Graph* epilogue_of(const Graph& g, NodeId id);
/// Null when DotWriter can write the epilogue of the node, else the reason.
const char* epilogue_refuses(const Graph& g, NodeId id);

/// A matmul: batches of [M, K] x [K, N].
struct Dot {
  /// The node's operands. `encoded` says that operand 1 is a Dequantize, whose quantized values the kernels read.
  Dot(NodeKernels& node, bool encoded);
  /// A matmul of other operands, of equal dtypes.
  Dot(NodeKernels& node, DotOperand x, DotOperand w);
  NodeKernels& node;
  DotOperand x, w;
  Dim batches = 1, m = 1, n = 1, k = 1;
  DType accumulator;               // the dtype of the sum
  std::string type;                // the WGSL type of the computation
  std::optional<Ref> groups = {};  // where w has a matrix per group instead of per batch: the group of each batch
};

/// Reads one operand in one kernel.
class DotReader {
 public:
  DotReader(KernelBuilder& k, const Dot& dot, const DotOperand& operand);
  /// Offsets from the start of the value: of a batch, of a free index, and of a contracted index.
  std::string batch(std::string_view b);
  std::string free(std::string_view i);
  std::string contract(std::string_view i);
  /// The element at an index, in the type of the computation; `four` reads four elements as a vec4.
  std::string element(std::string_view index);
  std::string four(std::string_view index);
  /// The number of consecutive elements along K that share one scale, which is then read once for all of them; 0 for
  /// none.
  int group() const;
  std::string scale(std::string_view index) const { return decoder_->scale(index); }
  std::string four(std::string_view index, std::string_view scale);
  DotOperand::Fours fours() const { return operand_.fours; }

 private:
  std::string settled_four(const std::string& v);
  KernelBuilder& k_;
  const DotOperand& operand_;
  std::string type_;
  std::optional<Decoder> decoder_;
};

/// Stores the accumulators of a kernel: in the result, through the epilogue, or in scratch for `finish_dot`.
class DotWriter {
 public:
  /// Stores in the result.
  DotWriter(KernelBuilder& k, const Dot& dot) : DotWriter(k, dot, dot.node.out(), true) {}
  /// Stores in `parts` [S, B, M, N].
  DotWriter(KernelBuilder& k, const Dot& dot, const Ref& parts) : DotWriter(k, dot, parts, false) {}
  /// Statements that store `value` at (b, m, n), which are u32 names in range. With parts, b counts parts and batches.
  std::string put(std::string_view value);
  /// The same for the vec4 `value` from column n on, a multiple of 4. Columns beyond the last are not stored.
  std::string put_four(std::string_view value);
  /// The value after the epilogue, as an expression of the result's compute type.
  std::string finished(std::string_view value);

 private:
  DotWriter(KernelBuilder& k, const Dot& dot, Ref to, bool finishes);
  void define_finish();
  KernelBuilder& k_;
  const Dot& dot_;
  Ref to_;
  bool finishes_, calls_ = false;
};

/// True when a thread may store four consecutive elements of a row in the result, from a multiple of 4 on.
bool stores_fours(const Dot& dot);
/// True when single elements of the result can be stored.
inline bool stores_single(const Dot& dot) { return size_bytes(dot.node.out().dtype) == 4; }
/// Adds the kernel that sums `parts` [S, B, M, N] in order and applies the epilogue.
void finish_dot(const Dot& dot, const Ref& parts);

}  // namespace rlx::codegen
