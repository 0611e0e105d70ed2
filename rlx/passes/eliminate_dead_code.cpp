// eliminate-dead-code: drops nodes that no root of the graph needs.
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

std::optional<Graph> run_eliminate_dead_code(const Graph& g, const PassContext&) {
  if (all_live(g)) return std::nullopt;
  return drop_dead(g);
}

}  // namespace

const Pass eliminate_dead_code{"eliminate-dead-code",
                               "Removes nodes that no output, state update, symbol or ordered op needs. Inputs, params "
                               "and states stay: they are the interface.",
                               run_eliminate_dead_code};

}  // namespace rlx
