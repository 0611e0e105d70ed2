// Names, claims and texts of fusion: targets, miss reasons, the report.
#include "rlx/passes/fusion.h"

#include <algorithm>
#include <set>

#include "rlx/ir/attr.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/passes.h"

namespace rlx {

std::string_view fusion_target_name(FusionTarget t) {
  static constexpr std::string_view kNames[kNumFusionTargets] = {"cpu", "metal", "mlx", "cuda", "rocm", "wgpu", "tpu"};
  if (static_cast<int>(t) >= kNumFusionTargets)
    detail::throw_no_enumerator("FusionTarget", static_cast<std::int64_t>(t));
  return kNames[static_cast<std::size_t>(t)];
}

std::string_view miss_reason_name(MissReason r) {
  switch (r) {
    case MissReason::MultiConsumer: return "multi_consumer";
    case MissReason::IsOutput: return "is_output";
    case MissReason::NonAddBiasConsumer: return "non_add_bias_consumer";
    case MissReason::BiasRankTooHigh: return "bias_rank_too_high";
    case MissReason::BiasLength: return "bias_length";
    case MissReason::UnsupportedEpilogueActivation: return "unsupported_epilogue_activation";
    case MissReason::NotClaimed: return "not_claimed";
    case MissReason::SharedMatmulCount: return "shared_matmul_count";
    case MissReason::WeightNotConstant: return "weight_not_constant";
    case MissReason::SwigluNotSharedInput: return "swiglu_not_shared_input";
    case MissReason::ShapeMismatch: return "shape_mismatch";
    case MissReason::AxisNotLast: return "axis_not_last";
    case MissReason::RegionTooLarge: return "region_too_large";
    case MissReason::NotFused: return "not_fused";
  }
  return "unknown";
}

std::string MissedFusion::text() const {
  std::string out = concat_text(pattern, " at ", node);
  if (!label.empty() && label != node.text()) out += concat_text(" \"", label, "\"");
  out += concat_text(": ", miss_reason_name(reason));
  if (!detail.empty()) out += concat_text(": ", detail);
  if (!hint.empty()) out += concat_text(" (hint: ", hint, ")");
  return out;
}

int FusionReport::fused_count(std::string_view pattern) const {
  auto it = fused.find(std::string(pattern));
  return it == fused.end() ? 0 : it->second;
}

int FusionReport::missed_count(std::string_view pattern) const {
  return static_cast<int>(
      std::count_if(missed.begin(), missed.end(), [&](const MissedFusion& m) { return m.pattern == pattern; }));
}

std::string FusionReport::summary_line() const {
  std::string out = concat_text("nodes=", nodes_before, "->", nodes_after);
  for (const auto& [pattern, count] : fused) out += concat_text(" fused_", pattern, "=", count);
  out += concat_text(" missed=", missed.size());
  return out;
}

std::string FusionReport::text() const {
  std::string out = summary_line() + "\n";
  // The kinds whose number changed, sorted by name.
  std::map<std::string, std::pair<int, int>> counts;
  for (const auto& [name, n] : before) counts[name].first = n;
  for (const auto& [name, n] : after) counts[name].second = n;
  for (const auto& [name, n] : counts)
    if (n.first != n.second) out += concat_text("  ", name, ": ", n.first, " -> ", n.second, "\n");
  for (const MissedFusion& m : missed) out += concat_text("  missed ", m.text(), "\n");
  return out;
}

std::map<std::string, int> op_histogram(const Graph& g) {
  std::map<std::string, int> out;
  for (const Node& n : g.nodes()) ++out[op_text_name(n.op)];
  return out;
}

FusionOptions FusionOptions::for_target(FusionTarget t) const {
  (void)fusion_target_name(t);  // throws for none
  FusionOptions out = *this;
  if (!out.max_region_steps) out.max_region_steps = t == FusionTarget::Cpu ? 0 : 32;
  if (!out.max_region_inputs) out.max_region_inputs = t == FusionTarget::Cpu ? 0 : 16;
  return out;
}

OpSet default_claims(FusionTarget target) {
  (void)fusion_target_name(target);  // throws for none
  // Every target claims these. The claim of DotGeneral covers MatMul, because canonicalization turns each MatMul into a
  // DotGeneral. A target with a backend here claims no more than that backend (device_ext_test).
  OpSet set{OpKind::MatMul, OpKind::DotGeneral, OpKind::ElementwiseRegion, OpKind::FusedDot};
  if (target != FusionTarget::Tpu) {
    set.add(OpKind::FusedResidualLN);
    set.add(OpKind::FusedResidualRmsNorm);
  }
  switch (target) {
    case FusionTarget::Cpu:
    case FusionTarget::Wgpu:
      set.add(OpKind::FusedSwiGLU);
      if (target == FusionTarget::Cpu) set.add(OpKind::FusedConv);
      break;
    case FusionTarget::Metal:
    case FusionTarget::Mlx: set.add(OpKind::FusedSwiGLU); break;
    case FusionTarget::Cuda:
    case FusionTarget::Rocm:
    case FusionTarget::Tpu: break;
  }
  return set;
}

const char* PassContext::refuses(const Expr& built, const Node& old) const {
  const NodeId id = built.value().node;
  if (!old.origin.label.empty()) built.graph().set_label(id, old.origin.label);
  return claims->refuses(built.graph(), id);
}

bool PassContext::together(const Graph& g, NodeId a, NodeId b) const {
  const std::string &first = g.node(a).origin.label, &second = g.node(b).origin.label;
  return !claims->places() || claims->place_of(first) == claims->place_of(second);
}

const char* PassContext::refuses(const GraphRewriter& r, const Expr& built, Value old) const {
  const Graph& g = r.source();
  if (!claims->places()) return refuses(built, g.node(old.node));
  // Collects the nodes that disappear: all nodes from `old` back to the operands of the new value. Views belong to
  // their operand, leaves never disappear.
  const std::vector<Value> read = r.reads(built);
  std::set<Value> met(read.begin(), read.end());
  std::vector<Value> open{old};
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    const Node& n = g.node(v.node);
    const OpDef& def = op_def(n.op);
    if (!met.insert(v).second || def.is_leaf()) continue;
    if (def.view != ViewKind::Always && !together(g, v.node, old.node))
      return "the nodes that it would replace are placed on several devices";
    open.insert(open.end(), n.inputs.begin(), n.inputs.end());
  }
  return refuses(built, g.node(old.node));
}

void PassContext::fused(std::string_view pattern) const {
  if (report) ++report->fused[std::string(pattern)];
}

void PassContext::missed(std::string_view pattern, const Graph& g, NodeId node, MissReason reason, std::string detail,
                         std::string hint) const {
  if (!report) return;
  report->missed.push_back(
      {std::string(pattern), node, node_label(g, node), reason, std::move(detail), std::move(hint), in_body});
}

}  // namespace rlx
