// unfuse-elementwise-regions: expands regions back into the ops they hold.
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

std::optional<Graph> run_unfuse_elementwise_regions(const Graph& g, const PassContext& context) {
  return replace_nodes(g, unfuse_elementwise_regions.name, [&](Rebuilder& r, NodeId id) -> Replacement {
    const auto* region = g.node(id).op.get_if<ops::ElementwiseRegion>();
    if (!region || (!context.options.unfuse_elementwise_regions && context.claims->claims(g, id))) return std::nullopt;
    return inline_body(r.graph(), *region->body, r.operands(id));
  });
}

}  // namespace

const Pass unfuse_elementwise_regions{
    "unfuse-elementwise-regions",
    "Replaces regions that the target does not claim (or all, by option) by their ops. Always legal.",
    run_unfuse_elementwise_regions};

}  // namespace rlx
