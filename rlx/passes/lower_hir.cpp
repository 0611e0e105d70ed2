// lower-hir: lowers HIR blocks to MIR ops.
#include "rlx/ir/module.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

std::optional<Graph> run_lower_hir(const Graph& g, const PassContext& context) {
  if (!holds_blocks(g)) return std::nullopt;
  return lower_blocks(g, context.policy);
}

}  // namespace

const Pass lower_hir{"lower-hir",
                     "Lowers HIR blocks to MIR ops: to fused ops with FusionPolicy::Direct, to chains of primitives "
                     "with Fusable. Always legal.",
                     run_lower_hir};

}  // namespace rlx
