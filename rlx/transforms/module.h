// Derivatives of modules: the transforms for callers with a GraphModule at stage Hir or Mir.
//
// HIR blocks on the path are decomposed. The result is at stage Mir unless blocks off the path remain. A module at
// stage Lir is an InvalidArgument error, because planned programs are not differentiated. Other errors as in reverse.h.
#pragma once

#include <vector>

#include "rlx/ir/module.h"
#include "rlx/transforms/transform.h"

namespace rlx {

/// A transformed module. The other fields are as in TransformResult.
struct ModuleTransformResult {
  GraphModule module;
  std::map<Value, Value> ids;
  std::vector<std::string> added_inputs;
};

/// `grad_with_loss` of the module's graph.
ModuleTransformResult grad_with_loss_module(const GraphModule& forward, const std::vector<Wrt>& wrt);
/// `jvp` of the module's graph.
ModuleTransformResult jvp_module(const GraphModule& forward, const std::vector<Wrt>& tangent_for);

/// Decomposes `forward` until every op that depends on a float or complex leaf has its own derivative rules, or none at
/// all: blocks, fused ops and other composites are decomposed. Outputs, leaves and states are those of `forward`.
/// `grad` and `jvp` do the same internally, so this function serves to inspect the graph that they differentiate.
TransformResult prepare_graph_for_ad(const Graph& forward);
/// The same for a module.
ModuleTransformResult prepare_module_for_ad(const GraphModule& forward);

}  // namespace rlx
