// Derivatives of modules.
#include "rlx/transforms/module.h"

#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/walk.h"

namespace rlx {
namespace {

const Graph& differentiable(const GraphModule& m, std::string_view who) {
  if (m.stage() == GraphStage::Lir)
    throw Error(ErrorCode::InvalidArgument, concat_text(who, ": the module is at stage lir"),
                "transform the module at stage hir or mir, then compile the result");
  return m.graph();
}

ModuleTransformResult wrap(TransformResult r) {
  return {make_module(std::move(r.graph)), std::move(r.ids), std::move(r.added_inputs)};
}

}  // namespace

ModuleTransformResult grad_with_loss_module(const GraphModule& forward, const std::vector<Wrt>& wrt) {
  return wrap(grad_with_loss(differentiable(forward, "grad_with_loss_module"), wrt));
}

ModuleTransformResult jvp_module(const GraphModule& forward, const std::vector<Wrt>& tangent_for) {
  return wrap(jvp(differentiable(forward, "jvp_module"), tangent_for));
}

TransformResult prepare_graph_for_ad(const Graph& forward) {
  std::vector<Value> leaves;
  for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
    for (NodeId id : forward.leaves(kind))
      if (is_inexact(forward.shape(id).dtype())) leaves.emplace_back(id);
  walk::Prepared p = walk::prepare(forward, std::move(leaves), true, [](const OpDef& def) {
    const bool derived = def.vjp.derived() || def.jvp.derived();
    return derived ? walk::RuleState::Derived : walk::state_of(def.vjp);
  });
  return {std::move(p.graph), std::move(p.ids), {}};
}

ModuleTransformResult prepare_module_for_ad(const GraphModule& forward) {
  return wrap(prepare_graph_for_ad(differentiable(forward, "prepare_module_for_ad")));
}

}  // namespace rlx
