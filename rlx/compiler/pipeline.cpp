// The order of the compiler, readable from top to bottom.
#include "rlx/compiler/pipeline.h"

#include <algorithm>

#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/weights.h"
#include "rlx/driver/registry.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rebuild.h"
#include "rlx/ir/verify.h"

namespace rlx {

FusionTarget fusion_target_for(Device d) {
  switch (d) {
    case Device::Metal: return FusionTarget::Metal;
    case Device::Mlx: return FusionTarget::Mlx;
    case Device::Cuda: return FusionTarget::Cuda;
    case Device::Rocm: return FusionTarget::Rocm;
    case Device::Gpu:
    case Device::Vulkan:
    case Device::WebGpu: return FusionTarget::Wgpu;
    case Device::Tpu: return FusionTarget::Tpu;
    case Device::Cpu:
    case Device::Ane:
    case Device::OpenGl:
    case Device::DirectX: break;
  }
  return FusionTarget::Cpu;
}

OpSet supported_for_target(FusionTarget t) {
  for (Device d : registered_devices())
    if (fusion_target_for(d) == t) return backend_for(d)->target({}).claims;
  return default_claims(t);
}

CompilePipeline::CompilePipeline(TargetInfo target, CompileOptions options) : target_(std::move(target)), options_(std::move(options)) {
  if (options_.supported_ops) target_.claims = *options_.supported_ops;
}

PassContext CompilePipeline::context(FusionReport* report) const {
  PassContext c;
  c.claims = target_.claims;
  c.options = options_.fusion.for_target(fusion_target_for(target_.device));
  c.policy = options_.policy;
  c.report = report;
  return c;
}

void CompilePipeline::keep(std::string name, const Graph& g) {
  if (options_.keep_stages) stages_.push_back({std::move(name), g});
}

void CompilePipeline::observe(void* self, const Pass& pass, const Graph& after) {
  static_cast<CompilePipeline*>(self)->keep(std::string(pass.name), after);
}

MirModule CompilePipeline::lower_hir(const HirModule& m) {
  const Pass* passes[] = {&rlx::lower_hir};
  PassContext c = context(nullptr);
  c.policy = m.direct ? options_.policy : FusionPolicy::Fusable;
  return MirModule{run_passes(m.graph, passes, c, observe, this)};
}

MirModule CompilePipeline::optimize_with_report(const MirModule& m, FusionReport& report) {
  report.before = op_histogram(m.graph);
  report.nodes_before = m.graph.num_nodes();
  PassContext c = context(&report);

  // 1. Canonical forms: one kind of dot, no dead or repeated work, constants evaluated.
  std::vector<const Pass*> canonical = {&canonicalize_dots, &cancel_layout_ops};
  if (options_.constant_folding) canonical.push_back(&fold_constants);
  canonical.push_back(&eliminate_common_subexpressions);
  if (options_.dce) canonical.push_back(&eliminate_dead_code);
  Graph g = run_passes(m.graph, canonical, c, observe, this);

  // 2. Fusion, most specific first: what a block pattern takes, later passes cannot.
  g = run_passes(std::move(g), fusion_passes_for_supported(c.claims, options_.fusion), c, observe, this);
  if (options_.dce) g = drop_dead(g);

  report.after = op_histogram(g);
  report.nodes_after = g.num_nodes();
  if (options_.assert_fusion_clean && !report.missed.empty())
    throw Error(Diagnostic{ErrorCode::Unsupported, concat_text("fusion is not clean: ", report.missed.size(), " patterns were missed"), report.text(),
                           "rewrite the graph as the hints say, or compile without assert_fusion_clean"});
  return MirModule{std::move(g)};
}

MirModule CompilePipeline::legalize(const MirModule& m, KernelDispatchReport& report) {
  Graph g = legalize_or_rewrite_for_backend(m.graph, target_.claims, target_.name, &report, options_.kernel_dispatch.value_or(KernelDispatchConfig{}));
  keep("legalize", g);
  return MirModule{std::move(g)};
}

// Every symbol that is left has an upper extent to plan for, and the target takes it.
void CompilePipeline::check_runtime_symbols(const Graph& g) const {
  for (const Node& n : g.nodes())
    for (const Shape& s : n.shapes)
      for (const std::string& name : s.symbols()) {
        auto mode = options_.symbol_modes.find(name);
        if (mode == options_.symbol_modes.end() || mode->second.kind == SymbolMode::Kind::Specialise)
          throw Error(ErrorCode::Unsupported, concat_text("graph '", g.name(), "' has unbound symbols: '", name, "'"),
                      "bind them with dim_binding, or run it: shapes are taken from the inputs");
        if (!target_.runtime_symbols)
          throw Error(ErrorCode::Unsupported, concat_text(target_.name, " takes no runtime symbols: '", name, "' must be specialised"));
      }
}

LirModule CompilePipeline::plan_lir(const MirModule& m) {
  if (!m.graph.is_static()) check_runtime_symbols(m.graph);
  SplitProgram split = split_weights(m.graph, target_);
  LirModule lir;
  lir.plan = plan_memory(split.run, target_, donated(split.run));
  lir.graph = std::move(split.run);
  lir.prepare = std::move(split.prepare);
  if (options_.must_alias)
    if (std::string copies = inspect_copies(lir); !copies.empty())
      throw Error(Diagnostic{ErrorCode::Unsupported, concat_text("graph '", lir.graph.name(), "' is compiled with must_alias and cannot be updated in place everywhere"),
                             copies, "change the graph as the reasons say, or compile without must_alias"});
  return lir;
}

std::vector<LirAlias> CompilePipeline::donated(const Graph& g) const {
  const std::vector<NodeId> inputs = g.leaves(OpKind::Input);
  std::vector<LirAlias> out;
  for (const Donation& d : options_.donate) {
    std::vector<std::string> names;
    for (NodeId id : inputs) names.push_back(g.leaf_name(id));
    auto it = std::find(names.begin(), names.end(), d.input);
    if (it == names.end()) {
      std::string near = closest_name(d.input, names);
      throw Error(ErrorCode::NotFound, concat_text("donated input '", d.input, "' is no input of graph '", g.name(), "'"),
                  near.empty() ? std::string() : concat_text("did you mean '", near, "'?"));
    }
    LirAlias a{static_cast<std::uint32_t>(it - names.begin()), static_cast<std::uint32_t>(d.output), {}};
    if (d.output >= g.outputs().size())
      throw Error(ErrorCode::InvalidArgument, concat_text("input '", d.input, "' is donated to output ", d.output, ", graph '", g.name(), "' has ", g.outputs().size()));
    const Shape &from = g.shape(inputs[a.input]), &to = g.shape(g.outputs()[d.output]);
    if (!(from == to))
      throw Error(ErrorCode::ShapeMismatch, concat_text("input '", d.input, "' ", from, " is donated to output ", d.output, " ", to), "both need equal dims and dtype");
    for (const LirAlias& other : out)
      if (other.input == a.input || other.output == a.output)
        throw Error(ErrorCode::InvalidArgument, concat_text("input '", d.input, "' and output ", d.output, ": one of them is donated twice"));
    out.push_back(std::move(a));
  }
  return out;
}

CompileResult CompilePipeline::compile_module(GraphModule module) {
  CompileResult result;
  stages_.clear();
  if (module.stage() == GraphStage::Lir) {
    result.lir = module.lir();
    return result;
  }
  HirModule hir{std::move(module).into_graph(), true};
  // The API boundary: a graph from anywhere is verified before it is believed.
  verify_or_throw(hir.graph, Level::Hir, "the graph given to compile");
  check_symbol_modes(hir.graph, options_.symbol_modes, options_.dim_binding);
  if (!options_.dim_binding.empty()) hir.graph = hir.graph.bind(options_.dim_binding);
  hir.graph.set_symbols(plan_symbols(hir.graph, options_.symbol_modes));
  keep("hir", hir.graph);

  MirModule mir = lower_hir(hir);
  mir = optimize_with_report(mir, result.fusion);
  if (!options_.precision.is_f32()) {  // after fusion: casts must not hide patterns
    mir.graph = drop_dead(apply_precision(mir.graph, options_.precision));
    keep("mixed-precision", mir.graph);
  }
  mir = legalize(mir, result.dispatch);
  // Decomposition may have made dots, scalars and copies that the canonical passes know how to shrink.
  if (options_.constant_folding) {
    const Pass* cleanup[] = {&cancel_layout_ops, &fold_constants, &eliminate_common_subexpressions};
    Graph cleaned = drop_dead(run_passes(mir.graph, cleanup, context(nullptr), observe, this));
    KernelDispatchReport again;
    Graph legal = rewrite_for_backend(cleaned, target_.claims, target_.name, again, options_.kernel_dispatch.value_or(KernelDispatchConfig{}));
    if (again.compile_ready()) mir.graph = std::move(legal);
  }
  result.lir = plan_lir(mir);
  keep("lir", result.lir.graph);
  result.stages = std::move(stages_);
  return result;
}

}  // namespace rlx
