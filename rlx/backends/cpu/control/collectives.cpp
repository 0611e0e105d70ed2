// Collectives of a single rank, which copy. A device with a communicator runs the others.
#include <cstring>

#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/ops/collectives.h"

namespace rlx::cpu {
namespace {

struct OneRank {
  struct Part {
    std::byte *from = nullptr, *to = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Part> parts;
};
void run_rank_copies(OneRank& s, std::int64_t) {
  for (const OneRank::Part& p : s.parts) {
    if (!p.from)
      std::memset(p.to, 0, p.bytes);
    else if (p.from != p.to && p.bytes != 0)
      std::memmove(p.to, p.from, p.bytes);
  }
}

// An ordered op: the thread that runs the program runs it, after all earlier tasks and before all later ones.
void lower_copies(LowerContext& c) {
  auto& s = c.keep<OneRank>();
  s.parts.resize(c.node().num_results());  // not resized later: the binding keeps pointers to fields of its elements
  const auto* permute = c.node().op.get_if<ops::Permute>();
  const bool zeros = c.num_inputs() == 0 || (permute && permute->pairs.empty());
  double bytes = 0;
  for (std::size_t k = 0; k < s.parts.size(); ++k) {
    const int i = static_cast<int>(k);
    const View to = c.out(i);
    if (!zeros) c.point(s.parts[k].from, c.in(i));
    c.point(s.parts[k].to, to);
    s.parts[k].bytes = size_bytes(to.dtype, to.elements());
    bytes += static_cast<double>(s.parts[k].bytes);
  }
  c.step_alone<run_rank_copies>(s, bytes / 8);
}

template <class Op>
const char* refuses(const Graph& g, NodeId id) {
  return refuse_unless(g.node(id).op.as<Op>().ranks == 1, "it needs several ranks, but the cpu has no communicator");
}
bool same_place(const Graph&, NodeId, int operand, int result) { return operand == result; }

template <class Op>
constexpr KernelEntry one_rank_row() {
  KernelEntry row{Op::kind, "one_rank", refuses<Op>, lower_copies};
  row.in_place = same_place;
  return row;
}
constexpr KernelEntry kCollectivesEntries[] = {one_rank_row<ops::AllReduce>(),     one_rank_row<ops::AllGather>(),
                                               one_rank_row<ops::ReduceScatter>(), one_rank_row<ops::AllToAll>(),
                                               one_rank_row<ops::Permute>(),       one_rank_row<ops::AxisIndex>()};

}  // namespace

std::span<const KernelEntry> collective_entries() { return kCollectivesEntries; }

}  // namespace rlx::cpu
