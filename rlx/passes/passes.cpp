// The list of passes, and the function that runs them.
#include "rlx/passes/passes.h"

#include <map>

#include "rlx/base/trace.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/verify.h"

namespace rlx {

std::span<const Pass* const> all_passes() {
  static constexpr const Pass* kPasses[] = {
      &lower_hir,
      &simplify_control_flow,
      &hoist_invariants,
      &canonicalize_convs,
      &canonicalize_dots,
      &cancel_layout_ops,
      &reduce_broadcasts,
      &sink_dequantize,
      &fold_constants,
      &eliminate_common_subexpressions,
      &eliminate_dead_code,
      &fold_scale_shift,
      &recognize_activations,
      &recognize_norms,
      &recognize_attention,
      &merge_shared_input_dots,
      &fuse_attention_block,
      &fuse_swiglu,
      &fuse_residual_norm,
      &fuse_dot_epilogue,
      &fuse_conv_epilogue,
      &mark_elementwise_regions,
      &unfuse_elementwise_regions,
  };
  return kPasses;
}

const Pass* find_pass(std::string_view name) {
  for (const Pass* p : all_passes())
    if (p->name == name) return p;
  return nullptr;
}

std::vector<const Pass*> fusion_passes_for_supported(const OpSet& claims, const FusionOptions& options) {
  std::vector<const Pass*> out;
  if (options.skip_fusion) return out;
  // Before norms and regions take the scales. What is added to products is a bias afterwards.
  if (claims.has(OpKind::DotGeneral) || claims.has(OpKind::Conv)) out.push_back(&fold_scale_shift);
  // Then recognize ops that were written out of simpler ones, because the patterns below look for these ops.
  if (claims.has(OpKind::Activation)) out.push_back(&recognize_activations);
  if (claims.has(OpKind::Softmax) || claims.has(OpKind::LayerNorm) || claims.has(OpKind::RmsNorm))
    out.push_back(&recognize_norms);
  if (claims.has(OpKind::Attention)) out.push_back(&recognize_attention);
  if (claims.has(OpKind::DotGeneral) || claims.has(OpKind::FusedDot)) out.push_back(&merge_shared_input_dots);
  // The widest patterns come first, because later passes cannot match what a block took. Both passes read the halves
  // and thirds of joined matmuls.
  if (claims.has(OpKind::FusedAttentionBlock)) out.push_back(&fuse_attention_block);
  if (claims.has(OpKind::FusedSwiGLU)) out.push_back(&fuse_swiglu);
  // Before the epilogues: a residual add belongs to the norm that reads it if the target has that kernel.
  if (claims.has(OpKind::FusedResidualLN) || claims.has(OpKind::FusedResidualRmsNorm))
    out.push_back(&fuse_residual_norm);
  if (claims.has(OpKind::FusedDot)) out.push_back(&fuse_dot_epilogue);
  if (claims.has(OpKind::FusedConv)) out.push_back(&fuse_conv_epilogue);
  // Last: regions take what no other pattern took.
  const bool regions = claims.has(OpKind::ElementwiseRegion) && !options.unfuse_elementwise_regions;
  out.push_back(regions ? &mark_elementwise_regions : &unfuse_elementwise_regions);
  out.push_back(&eliminate_dead_code);
  return out;
}

std::vector<const Pass*> fusion_passes(FusionTarget target, const FusionOptions& options) {
  return fusion_passes_for_supported(default_claims(target), options);
}

std::optional<Graph> changed_by_passes(const Graph& source, std::span<const Pass* const> passes,
                                       const PassContext& context, PassObserver observer, void* user) {
  // When an outer pass moves ops out of bodies (an inlined call), all passes have already run on them there.
  PassContext inside = context;
  inside.in_body = true;
  // Passes that start by inlining calls drop the bodies of their derivatives.
  const bool inlines = !passes.empty() && passes.front() == &simplify_control_flow;
  std::map<const Graph*, Subgraph> done;  // a body that several ops share is changed once
  std::optional<Graph> changed = change_bodies_of(source, [&](NodeId id, const Subgraph& body) -> Subgraph {
    const auto* call = source.node(id).op.get_if<ops::Call>();
    if (inlines && call && body != call->body) return nullptr;
    const auto [it, fresh] = done.try_emplace(body.get());
    if (fresh)
      if (std::optional<Graph> now = changed_by_passes(*body, passes, inside))
        it->second = std::make_shared<const Graph>(std::move(*now));
    return it->second;
  });
  for (const Pass* pass : passes) {
    if (!pass)
      throw Error(ErrorCode::InvalidArgument, "one of the passes is a null pointer",
                  "find_pass returns null for an unknown name");
    const TraceSpan span("compile", pass->name, context.in_body ? "a body" : "");
    std::optional<Graph> after = pass->run(changed ? *changed : source, context);
    if (!after) continue;
    changed = std::move(after);
#ifdef RLX_VERIFY
    Level level = Level::Mir;
    for (const Node& n : changed->nodes())
      if (op_def(n.op).level != Level::Mir) level = op_def(n.op).level;
    verify_or_throw(*changed, level, concat_text("pass ", pass->name));
#endif
    if (observer) observer(user, *pass, *changed);
  }
  return changed;
}

Graph run_passes(Graph g, std::span<const Pass* const> passes, const PassContext& context, PassObserver observer,
                 void* user) {
  std::optional<Graph> changed = changed_by_passes(g, passes, context, observer, user);
  return changed ? std::move(*changed) : std::move(g);
}

}  // namespace rlx
