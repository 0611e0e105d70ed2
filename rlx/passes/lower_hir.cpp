// lower-hir: HIR blocks become MIR ops.
#include "rlx/ir/op_def.h"
#include "rlx/ir/rebuild.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

bool is_hir(const Node& n) { return op_def(n.op).level == Level::Hir; }

bool holds_hir(const Graph& g) {
  for (const Node& n : g.nodes())
    if (is_hir(n)) return true;
  return false;
}

std::optional<Graph> run(const Graph& g, const PassContext& context) {
  if (!holds_hir(g)) return std::nullopt;
  // A block may decompose into blocks; each round removes one level of nesting.
  Graph current = g;
  while (holds_hir(current)) {
    Rebuilder r(current, lower_hir.name);
    for (std::uint32_t i = 0; i < current.num_nodes(); ++i) {
      NodeId id{i};
      const Node& n = current.node(id);
      if (is_hir(n))
        r.replace(id, decompose_into(r.graph(), n.op, r.operands(id), context.policy));
      else
        r.copy(id);
    }
    current = std::move(r).finish();
  }
  return current;
}

}  // namespace

const Pass lower_hir{"lower-hir",
                     "Writes HIR blocks as MIR ops: fused ones under FusionPolicy::Direct, primitive chains under "
                     "Fusable. Always legal.",
                     run};

}  // namespace rlx
