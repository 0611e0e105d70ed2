// Derivatives of modules: the transforms for callers that hold a GraphModule at stage Hir or Mir.
//
// HIR blocks on the path are decomposed; the result is at stage Mir unless blocks off the path remain. A module at
// stage Lir is refused with InvalidArgument: planned programs are not differentiated. Other errors as in reverse.h.
#pragma once

#include <vector>

#include "rlx/ir/module.h"
#include "rlx/transforms/transform.h"

namespace rlx {

/// A transformed module; the other fields as in TransformResult.
struct ModuleTransformResult {
  GraphModule module;
  std::map<Value, Value> ids;
  std::vector<std::string> added_inputs;
};

/// `grad_with_loss` of the module's graph.
ModuleTransformResult grad_with_loss_module(const GraphModule& forward, const std::vector<Wrt>& wrt);
/// `jvp` of the module's graph.
ModuleTransformResult jvp_module(const GraphModule& forward, const std::vector<Wrt>& tangent_for);

/// `forward` in which every op that depends on a float or complex leaf has derivative rules of its own, or none at all:
/// blocks, fused ops and other composites are decomposed. Outputs, leaves and states are those of `forward`; `grad` and
/// `jvp` do the same on the way, so this is for looking at what they differentiate.
TransformResult prepare_graph_for_ad(const Graph& forward);
/// The same for a module.
ModuleTransformResult prepare_module_for_ad(const GraphModule& forward);

}  // namespace rlx
