// A product as its kernels see it: two operands of K by M and K by N in batches, and what happens to each element.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/codegen/decoder.h"
#include "rlx/codegen/walk.h"
#include "rlx/ir/attr.h"

namespace rlx::codegen {

/// One operand of a product.
struct DotOperand {
  enum class Fours { None, Free, Contract };  // along what four elements lie together
  std::string name;                           // "x", "w"
  Ref ref;                                    // of an encoded one what it is decoded to, dense
  bool encoded = false;
  Walk batch, free, contract;
  Fours fours = Fours::None;
};

/// Operand i of a node by the roles of its axes; the row decodes an encoded one.
DotOperand dot_operand(NodeKernels& node, int i, const char* name, bool encoded, const std::vector<int>& batch,
                       const std::vector<int>& free, const std::vector<int>& contract);

/// The axes of a DotGeneral or FusedDot.
struct DotAxesOf {
  std::vector<int> lhs_batch, rhs_batch, lhs_free, rhs_free, lhs_contract, rhs_contract;
};
DotAxesOf axes_of_dot(const Graph& g, NodeId id);
/// The body that the accumulator runs through, or null.
const Graph* epilogue_of(const Graph& g, NodeId id);
/// Null when `Epilogue` writes the body, else why not.
const char* epilogue_refuses(const Graph& g, NodeId id);

/// A product: batches of [M, K] x [K, N].
struct Dot {
  /// The node's operands; operand 1 is decoded where it is codes, and `encoded` says that the row reads them.
  Dot(NodeKernels& node, bool encoded);
  /// A product of other operands, of equal dtypes.
  Dot(NodeKernels& node, DotOperand x, DotOperand w);
  NodeKernels& node;
  DotOperand x, w;
  Dim batches = 1, m = 1, n = 1, k = 1;
  DType accumulator;               // the dtype of the product
  std::string type;                // what it is computed in
  std::optional<Ref> groups = {};  // where w has a matrix for each group, not for each batch: the group of each batch
};

/// Reads of one operand, in one kernel.
class DotReader {
 public:
  DotReader(KernelBuilder& k, const Dot& dot, const DotOperand& operand);
  /// Indices from where the value begins: of a batch; to add for a free number, and for a contracted one.
  std::string batch(std::string_view b);
  std::string free(std::string_view i);
  std::string contract(std::string_view i);
  /// The element at an index, in the product's type; four as a vec4.
  std::string element(std::string_view index);
  std::string four(std::string_view index);
  /// How many neighbours along what is contracted have one scale, which is then read once for all: 0 for none.
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

/// Where a kernel leaves the accumulators: in the result, through the epilogue, or in scratch for `finish_dot`.
class DotWriter {
 public:
  /// Into the result.
  DotWriter(KernelBuilder& k, const Dot& dot) : DotWriter(k, dot, dot.node.out(), true) {}
  /// Into `parts` [S, B, M, N].
  DotWriter(KernelBuilder& k, const Dot& dot, const Ref& parts) : DotWriter(k, dot, parts, false) {}
  /// Statements that store `value` at (b, m, n), which is there; names of u32. With parts, b counts them and batches.
  std::string put(std::string_view value);
  /// The same of the vec4 `value` from column n on, a multiple of 4; columns behind the last are left out.
  std::string put_four(std::string_view value);
  /// An expression of the result's compute type.
  std::string finished(std::string_view value);

 private:
  DotWriter(KernelBuilder& k, const Dot& dot, Ref to, bool finishes);
  void define_finish();
  KernelBuilder& k_;
  const Dot& dot_;
  Ref to_;
  bool finishes_, calls_ = false;
};

/// True when a thread that has four neighbours of a row, from a multiple of 4 on, may store them in the result.
bool stores_fours(const Dot& dot);
/// True when the result's elements can be stored one by one.
inline bool stores_single(const Dot& dot) { return size_bytes(dot.node.out().dtype) == 4; }
/// Adds the kernel that adds up `parts` [S, B, M, N] in order and finishes the elements.
void finish_dot(const Dot& dot, const Ref& parts);

}  // namespace rlx::codegen
