// The passes, runnable by name, and their shared context.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/passes/fusion.h"

namespace rlx {

class GraphRewriter;

/// What a pass may query, and where it records its results.
struct PassContext {
  const Claims* claims = &OpSet::everything();  // claims of the target
  FusionOptions options;
  FusionPolicy policy = FusionPolicy::Direct;
  FusionReport* report = nullptr;
  bool in_body = false;  // inside a body of a branch or loop; for the report

  /// Null when the target takes `built` as the replacement of node `old` of another graph; otherwise the refusal.
  /// Labels decide the device of a node, so `built` gets the label of `old` before its device is asked.
  const char* refuses(const Expr& built, const Node& old) const;
  /// The same for a value on the stage of `r` that replaces `old` and all nodes between `old` and the operands of
  /// `built`. Also refuses when these nodes are placed on several devices.
  const char* refuses(const GraphRewriter& r, const Expr& built, Value old) const;
  /// True when labels place both nodes on one device.
  bool together(const Graph& g, NodeId a, NodeId b) const;
  void fused(std::string_view pattern) const;
  void missed(std::string_view pattern, const Graph& g, NodeId node, MissReason reason, std::string detail,
              std::string hint = {}) const;
};

/// One rewrite of a graph. `run` returns the new graph, or none when nothing changed.
struct Pass {
  std::string_view name;  // "fuse-residual-layer-norm"
  std::string_view what;  // what it does and when that is legal
  std::optional<Graph> (*run)(const Graph& g, const PassContext& context);
};

extern const Pass lower_hir;
extern const Pass simplify_control_flow;
extern const Pass hoist_invariants;
extern const Pass canonicalize_convs;
extern const Pass canonicalize_dots;
extern const Pass fold_constants;
extern const Pass eliminate_common_subexpressions;
extern const Pass cancel_layout_ops;
extern const Pass reduce_broadcasts;
extern const Pass sink_dequantize;
extern const Pass fold_scale_shift;
extern const Pass recognize_activations;
extern const Pass recognize_norms;
extern const Pass recognize_attention;
extern const Pass merge_shared_input_dots;
extern const Pass fuse_dot_epilogue;
extern const Pass fuse_conv_epilogue;
extern const Pass fuse_residual_norm;
extern const Pass fuse_swiglu;
extern const Pass fuse_attention_block;
extern const Pass mark_elementwise_regions;
extern const Pass unfuse_elementwise_regions;
extern const Pass eliminate_dead_code;

/// All passes, in the order of the pipeline.
std::span<const Pass* const> all_passes();
/// The pass called `name`, or null.
const Pass* find_pass(std::string_view name);

/// The fusion passes for a target that claims these kinds, in order.
std::vector<const Pass*> fusion_passes_for_supported(const OpSet& claims, const FusionOptions& options);
std::vector<const Pass*> fusion_passes(FusionTarget target, const FusionOptions& options);

/// Called after each pass that changed the graph (for dumps and checks).
using PassObserver = void (*)(void* user, const Pass& pass, const Graph& after);
/// Runs `passes` in order, first inside the bodies of branches, loops and calls, innermost first. Dev builds verify
/// after each pass and name a pass that breaks an invariant.
Graph run_passes(Graph g, std::span<const Pass* const> passes, const PassContext& context,
                 PassObserver observer = nullptr, void* user = nullptr);
/// The same. None when no pass changed anything.
std::optional<Graph> changed_by_passes(const Graph& g, std::span<const Pass* const> passes, const PassContext& context,
                                       PassObserver observer = nullptr, void* user = nullptr);

}  // namespace rlx
