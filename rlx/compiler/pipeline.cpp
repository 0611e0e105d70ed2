// The compile pipeline, in order from top to bottom.
#include "rlx/compiler/pipeline.h"

#include <algorithm>

#include "rlx/base/stop_request.h"
#include "rlx/base/trace.h"
#include "rlx/compiler/check_lir.h"
#include "rlx/compiler/dispatch_record.h"
#include "rlx/compiler/legalize_partition.h"
#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/norm_variances.h"
#include "rlx/compiler/partition.h"
#include "rlx/compiler/placement.h"
#include "rlx/compiler/split_weights.h"
#include "rlx/device/registry.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/ir/verify.h"

namespace rlx {

namespace {
constexpr std::string_view kEncodePattern = "encode_in_place";

// Reports which Quantize results their reader encodes itself, and which it could but does not. The planner has decided.
void report_encoded(const LirModule& lir, const Target& target, FusionReport& report) {
  const Graph& g = lir.graph;
  if (lir.plan.opaque ||
      std::none_of(g.nodes().begin(), g.nodes().end(), [](const Node& n) { return n.kind() == OpKind::Quantize; }))
    return;
  const UseIndex uses(g);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Value codes(NodeId{i});
    if (g.node(codes.node).kind() != OpKind::Quantize) continue;
    if (lir.plan.at(codes).place == Place::None) {
      ++report.fused[std::string(kEncodePattern)];
      continue;
    }
    const auto of = uses.uses(codes);
    const auto encodes = [&](const UseIndex::Use& u) {
      return target.reads_encoded(g, u.user, static_cast<int>(u.operand));
    };
    const auto able = std::find_if(of.begin(), of.end(), encodes);
    if (able == of.end()) continue;
    const bool output = uses.is_output(codes);
    report.missed.push_back({std::string(kEncodePattern), able->user, node_label(g, able->user),
                             output ? MissReason::IsOutput : MissReason::MultiConsumer,
                             output ? concat_text(codes, " is an output of the graph")
                                    : concat_text(codes, " has ", uses.use_count(codes), " readers, of which ",
                                                  std::count_if(of.begin(), of.end(), encodes), " can encode it"),
                             "let the other readers take the operand of quantize"});
  }
}
}  // namespace

FusionTarget fusion_target_for(Device d) {
  (void)device_info(d);  // throws for none
  switch (d) {
    case Device::Metal: return FusionTarget::Metal;
    case Device::Mlx: return FusionTarget::Mlx;
    case Device::Cuda: return FusionTarget::Cuda;
    case Device::Rocm: return FusionTarget::Rocm;
    case Device::Gpu:
    case Device::Vulkan:
    case Device::OpenGl:
    case Device::WebGpu: return FusionTarget::Wgpu;
    case Device::Tpu: return FusionTarget::Tpu;
    case Device::Cpu:
    case Device::Ane:
    case Device::DirectX: break;
  }
  return FusionTarget::Cpu;
}

OpSet supported_for_target(FusionTarget t) {
  for (Device d : registered_devices())
    if (fusion_target_for(d) == t) return backend_for(d)->target({})->kinds();
  return default_claims(t);
}

std::shared_ptr<const Target> target_with_options(std::shared_ptr<const Target> target, const CompileOptions& options) {
  if (!target)
    throw Error(ErrorCode::InvalidArgument, "no target was given to compile for (a null pointer)",
                "pass the target of a session: session.target()");
  if (options.supported_ops) target = limited_to(std::move(target), *options.supported_ops);
  if (options.arena_alignment) {
    const std::size_t a = *options.arena_alignment;
    if (a == 0 || (a & (a - 1)) != 0)
      throw Error(ErrorCode::InvalidArgument, concat_text("arena_alignment = ", a, " is not a power of two"),
                  "give 64, 128, 4096, ...");
    constexpr std::size_t kLargest = std::size_t{1} << 30;
    if (a > kLargest)
      throw Error(ErrorCode::InvalidArgument, concat_text("arena_alignment = ", a, " bytes is more than a GiB"),
                  "give the size of a page or of a cache line: 64, 4096, 2097152");
    target = with_alignment(std::move(target), a);
  }
  return target;
}

CompilePipeline::CompilePipeline(std::shared_ptr<const Target> target, CompileOptions options)
    : target_(target_with_options(std::move(target), options)), options_(std::move(options)) {}

PassContext CompilePipeline::context(FusionReport* report) const {
  PassContext c;
  if (!options_.placement.empty() && !placed_) placed_ = program_target(target_, options_).target;
  c.claims = placed_ ? placed_.get() : target_.get();
  c.options = options_.fusion.for_target(fusion_target_for(target_->device()));
  c.report = report;
  return c;
}

void CompilePipeline::keep(std::string name, const Graph& g) {
  if (!options_.keep_stages) return;
  place_misses();
  stages_.push_back({std::move(name), g});
}

// Assigns new misses to the last kept stage. A miss refers to nodes of that stage's graph, because the graph changes
// only where a stage is kept.
void CompilePipeline::place_misses() {
  if (!report_ || stages_.empty()) return;
  for (; placed_misses_ < report_->missed.size(); ++placed_misses_)
    report_->missed[placed_misses_].stage = stages_.size() - 1;
}

void CompilePipeline::observe(void* self, const Pass& pass, const Graph& after) {
  StopRequest::check();
  static_cast<CompilePipeline*>(self)->keep(std::string(pass.name), after);
}

MirModule CompilePipeline::lower_hir(HirModule m) {
  const Pass* passes[] = {&rlx::lower_hir};
  PassContext c = context(nullptr);
  c.policy = options_.policy.value_or(m.policy);
  Graph g = label_bodies(std::move(m.graph), options_.placement);
  return MirModule{run_passes(std::move(g), passes, c, observe, this)};
}

MirModule CompilePipeline::optimize_with_report(MirModule m, FusionReport& report) {
  struct Told {  // also when a pass throws
    FusionReport*& report;
    ~Told() { report = nullptr; }
  } const told{report_ = &report};
  placed_misses_ = report.missed.size();
  report.before = op_histogram(m.graph);
  report.nodes_before = m.graph.num_nodes();
  PassContext c = context(&report);

  // 1. Canonicalization: one kind of dot, no dead or repeated work, constants evaluated.
  std::vector<const Pass*> canonical = {&simplify_control_flow, &canonicalize_convs, &canonicalize_dots,
                                        &cancel_layout_ops,     &reduce_broadcasts,  &sink_dequantize};
  if (options_.constant_folding) canonical.push_back(&fold_constants);
  canonical.push_back(&eliminate_common_subexpressions);
  if (options_.dce) canonical.push_back(&eliminate_dead_code);
  canonical.push_back(&hoist_invariants);
  canonical.push_back(&simplify_control_flow);  // predicates may be constants now, and operands unread
  Graph g = run_passes(std::move(m.graph), canonical, c, observe, this);

  // 2. Fusion, most specific pattern first, because later passes cannot match what an earlier pattern took.
  std::vector<const Pass*> fusion = fusion_passes_for_supported(c.claims->kinds(), options_.fusion);
  // A subgraph that is no complete norm may still be the variance of one. Regions would absorb its squares.
  if (const auto norms = std::find(fusion.begin(), fusion.end(), &recognize_norms); norms != fusion.end())
    fusion.insert(norms + 1, &norm_variances);
  g = run_passes(std::move(g), fusion, c, observe, this);
  if (options_.dce) g = drop_dead(std::move(g));

  place_misses();
  report.after = op_histogram(g);
  report.nodes_after = g.num_nodes();
  if (options_.assert_fusion_clean && !report.missed.empty())
    throw Error(Diagnostic{
        ErrorCode::Unsupported, concat_text("fusion is not clean: ", report.missed.size(), " patterns were missed"),
        report.text(), "rewrite the graph as the hints say, or compile without assert_fusion_clean"});
  return MirModule{std::move(g)};
}

Legalized CompilePipeline::legalize_graph(Graph g) {
  return legalized(std::move(g), *program_target(target_, options_).target, target_->name(), kernel_dispatch());
}

// Of the device named, not of the others in the program.
KernelDispatchReport CompilePipeline::report_of(const DispatchRecord& record) const {
  return dispatch_report(record, *target_, target_->name(), kernel_dispatch());
}

Legalized CompilePipeline::legalize_or_throw(MirModule m) {
  const TraceSpan span("compile", "legalize");
  // Passes may have merged nodes of a body under a label that has no placement.
  Legalized legal = legalize_graph(label_bodies(std::move(m.graph), options_.placement));
  require_legal(legal, *program_target(target_, options_).target, target_->name());
  keep("legalize", legal.graph);
  return legal;
}

MirModule CompilePipeline::legalize(MirModule m, KernelDispatchReport& report) {
  Legalized legal = legalize_or_throw(std::move(m));
  report = report_of(legal.record);
  return MirModule{std::move(legal.graph)};
}

// Decomposition may have made dots, scalars and copies that the canonicalization passes can shrink. Their result is
// used if it is still legal.
void CompilePipeline::clean_up(Legalized& legal) {
  const Pass* cleanup[] = {&cancel_layout_ops, &reduce_broadcasts, &fold_constants, &eliminate_common_subexpressions};
  std::optional<Graph> changed = changed_by_passes(legal.graph, cleanup, context(nullptr), observe, this);
  if (changed || !all_live(legal.graph)) {
    Legalized again = legalize_graph(changed ? drop_dead(std::move(*changed)) : drop_dead(legal.graph));
    if (!again.record.unsupported.empty()) return;
    legal.graph = std::move(again.graph);
    legal.record.continue_with(std::move(again.record));
  }
  keep("legalize", legal.graph);
}

// True when every open symbol has an upper extent to plan for.
bool CompilePipeline::has_extents(const Graph& g) const {
  const std::vector<std::string> open = g.dynamic_symbols();
  return std::all_of(open.begin(), open.end(), [&](const std::string& name) {
    auto mode = options_.symbol_modes.find(name);
    return mode != options_.symbol_modes.end() && mode->second.kind != SymbolMode::Kind::Specialise;
  });
}

// The same check as an error, which also says when the target does not take runtime symbols.
void CompilePipeline::check_runtime_symbols(const Graph& g) const {
  for (const Node& n : g.nodes())
    for (const Shape& s : n.shapes)
      for (const std::string& name : s.symbols()) {
        auto mode = options_.symbol_modes.find(name);
        if (mode == options_.symbol_modes.end() || mode->second.kind == SymbolMode::Kind::Specialise)
          throw Error(ErrorCode::Unsupported, concat_text("graph '", g.name(), "' has unbound symbols: '", name, "'"),
                      "bind them with dim_binding, or run it: shapes are taken from the inputs");
        if (!target_->runtime_symbols())
          throw Error(ErrorCode::Unsupported, concat_text(target_->name(), " does not support runtime symbols: '", name,
                                                          "' must be specialised"));
      }
}

LirModule CompilePipeline::plan_lir(const MirModule& m) {
  DispatchRecord record;
  return plan_graph(m.graph, record);
}

LirModule CompilePipeline::plan_graph(const Graph& legal, DispatchRecord& record) {
  const TraceSpan span("compile", "plan");
  if (!legal.is_static()) check_runtime_symbols(legal);
  const ProgramTarget program = program_target(target_, options_);
  const MatmulPrecision allowed_loss = options_.precision ? options_.precision->of_matmuls() : MatmulPrecision::Exact;
  SplitProgram split = [&] {
    const TraceSpan weights("compile", "separate weights");
    return split_weights(legal, *program.target, allowed_loss);
  }();
  LirModule lir;
  // On an opaque device the partitions of the program define the transfers.
  if (program.target->opaque()) {
    Legalized parts = legalize_partition(std::move(split.run), *program.target, kernel_dispatch());
    split.run = std::move(parts.graph);
    record.continue_with(std::move(parts.record));
  } else if (!program.others.empty()) {
    split.run = insert_transfers(split.run, *program.target);
  }
  if (!split.run.symbol_sources().empty()) split.run = sorted_by_symbols(split.run);
  {
    const TraceSpan memory("compile", "plan memory");
    lir.plan = plan_memory(split.run, *program.target, donated(split.run));
  }
  lir.others = program.others;
  if (program.host_segments) {
    const auto host = static_cast<std::uint32_t>(lir.others.size());
    const bool used = lir.plan.opaque ? last_device(lir.plan) == host : runs_on(split.run, *program.target, host);
    if (!used) lir.others.pop_back();
  }
  lir.graph = std::move(split.run);
  // A device may be asked to prepare weights too.
  lir.prepare = lir.plan.opaque ? without_views(std::move(split.prepare)) : std::move(split.prepare);
  if (lir.plan.opaque) record.left = planned_nodes(lir, *program.target, kernel_dispatch());
  const std::vector<NodeId> states = lir.graph.leaves(OpKind::State);
  for (std::uint32_t i = 0; i < states.size() && lir.plan.opaque; ++i)
    if (const auto it = options_.on_failure.find(lir.graph.leaf_name(states[i]));
        it != options_.on_failure.end() && it->second == OnFailure::Keep)
      lir.plan.state_copies.push_back(
          {Value(states[i]), i, "OnFailure::Keep on an opaque device needs a second buffer"});
  if (options_.must_alias)
    if (std::string copies = inspect_copies(lir); !copies.empty())
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text("graph '", lir.graph.name(),
                                         "' is compiled with must_alias and cannot be updated in place everywhere"),
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
      throw Error(ErrorCode::NotFound,
                  concat_text("donated input '", d.input, "' is not an input of graph '", g.name(), "'"),
                  did_you_mean(d.input, names));
    }
    LirAlias a{static_cast<std::uint32_t>(it - names.begin()), static_cast<std::uint32_t>(d.output), {}};
    if (d.output >= g.outputs().size())
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("input '", d.input, "' is donated to output ", d.output, ", but graph '", g.name(),
                              "' has ", g.outputs().size(), " outputs"));
    const Shape &from = g.shape(inputs[a.input]), &to = g.shape(g.outputs()[d.output]);
    if (!(from == to))
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("input '", d.input, "' ", from, " is donated to output ", d.output, " ", to),
                  "both need equal dims and dtype");
    for (const LirAlias& other : out)
      if (other.input == a.input || other.output == a.output)
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("input '", d.input, "' and output ", d.output, ": one of them is donated twice"));
    out.push_back(std::move(a));
  }
  return out;
}

HirModule bind_module(GraphModule module, CompileOptions& options) {
  const FusionPolicy policy = module.stage() == GraphStage::Hir ? module.hir().policy : FusionPolicy::Direct;
  HirModule hir{std::move(module).into_graph(), policy};
  // The API boundary: a graph from outside is verified first.
  verify_or_throw(hir.graph, Level::Hir, "the graph given to compile");
  check_symbol_modes(hir.graph, options.symbol_modes, options.dim_binding);
  if (options.dim_binding.empty()) return hir;
  hir.graph = hir.graph.bind(options.dim_binding);
  for (const auto& [name, value] : options.dim_binding) options.symbol_modes.erase(name);
  options.dim_binding.clear();
  return hir;
}

std::vector<std::string> CompileResult::dynamic_symbols() const {
  return source ? source->module.graph.dynamic_symbols() : std::vector<std::string>();
}

CompileResult CompileResult::specialize(const SymbolBinding& binding) const {
  if (binding.empty()) return *this;
  if (!source)
    throw Error(ErrorCode::NotFound,
                concat_text("program '", lir.graph.name(), "' has no unbound symbol '", binding.begin()->first, "'"),
                "it has no dynamic dims: run it as it is");
  CompileOptions options = source->options;
  options.dim_binding = binding;
  return CompilePipeline(source->target, std::move(options)).compile_module(GraphModule(source->module));
}

CompileResult CompilePipeline::compile_module(GraphModule module) {
  const TraceScope traced(options_.trace.get());
  const TraceSpan span("compile", "compile", module.graph().name());
  CompileResult result;
  stages_.clear();
  if (module.stage() == GraphStage::Lir) {
    const ProgramTarget program = program_target(target_, options_);
    check_lir(module.lir(), *program.target, program.others);
    result.lir = std::move(module).into_lir();
    return result;
  }
  CompileOptions rest = options_;
  HirModule hir = bind_module(std::move(module), rest);
  check_placement(hir.graph, options_);
  check_mesh(hir.graph, options_.mesh, target_->name(), false);
  const std::map<std::string, SymbolInfo> declared = hir.graph.symbols();
  hir.graph.set_symbols(plan_symbols(hir.graph, rest.symbol_modes));
  keep("hir", hir.graph);

  // Only symbols that stay open need the source again.
  MirModule mir = hir.graph.is_static() ? lower_hir(std::move(hir)) : lower_hir(hir);
  mir = optimize_with_report(std::move(mir), result.fusion);
  if (options_.precision && !options_.precision->is_f32()) {  // after fusion: casts must not hide patterns
    const Pass* once[] = {&hoist_invariants,
                          &simplify_control_flow};  // weights of bodies are cast outside, so they are prepared once
    mir.graph =
        run_passes(drop_dead(apply_precision(mir.graph, *options_.precision)), once, context(nullptr), observe, this);
    keep("mixed-precision", mir.graph);
  }
  Legalized program = legalize_or_throw(std::move(mir));
  if (options_.constant_folding) clean_up(program);
  if (has_extents(program.graph)) {
    result.lir = plan_graph(program.graph, program.record);
    report_encoded(result.lir, *program_target(target_, options_).target, result.fusion);
    keep("lir", result.lir.graph);
  } else {
    hir.graph.set_symbols(declared);
    result.source = std::make_shared<const CompileTemplate>(CompileTemplate{std::move(hir), target_, std::move(rest)});
    result.lir.graph = std::move(program.graph);
  }
  result.dispatch = report_of(program.record);
  result.stages = std::move(stages_);
  return result;
}

}  // namespace rlx
