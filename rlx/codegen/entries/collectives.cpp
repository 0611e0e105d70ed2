// Kernel entries: collectives of one rank, which are copies.
#include "rlx/ir/ops/collectives.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/moves.h"

namespace rlx::codegen {
namespace {

template <class Op>
const char* takes_ranks(const Graph& g, NodeId id) {
  if (g.node(id).op.as<Op>().ranks != 1) return "it needs several ranks, but the device has no communicator";
  bool whole = true;
  for (const Shape& s : g.node(id).shapes) whole = whole && dtype_bits(s.dtype()) >= 8;
  return refuse_unless(whole, "kernels do not move single elements of 4 bits");
}

void write_zeros(NodeKernels& node) {
  const Ref out = node.out();
  const Dim words = floordiv(out.elements() * Dim(size_bytes(out.dtype)) + Dim(3), Dim(4));
  KernelBuilder k(node, "zeros");
  k << "if (THREAD >= " << k.size(Size(words)) << ") { return; }\n" << k.store_word(out, "THREAD", "0u");
  k.finish_threads(words);
}

void write_copies(NodeKernels& node) {
  for (int r = 0; r < static_cast<int>(node.node().num_results()); ++r)
    copy_elements(node, "one_rank", node.out(r), node.in(r));
}

// A rank that receives nothing gets zeros.
void write_permute(NodeKernels& node) { (node.op<ops::Permute>().pairs.empty() ? write_zeros : write_copies)(node); }

bool same_place(const Graph&, NodeId, int operand, int result) { return operand == result; }

template <class Op>
constexpr KernelEntry one_rank_row(void (*write)(NodeKernels&) = write_copies) {
  return {Op::kind, "one_rank", takes_ranks<Op>, write, nullptr, same_place};
}
constexpr KernelEntry kCollectiveEntries[] = {one_rank_row<ops::AllReduce>(),
                                              one_rank_row<ops::AllGather>(),
                                              one_rank_row<ops::ReduceScatter>(),
                                              one_rank_row<ops::AllToAll>(),
                                              one_rank_row<ops::Permute>(write_permute),
                                              one_rank_row<ops::AxisIndex>(write_zeros)};  // the only rank is number 0

}  // namespace

std::span<const KernelEntry> collective_entries() { return kCollectiveEntries; }

}  // namespace rlx::codegen
