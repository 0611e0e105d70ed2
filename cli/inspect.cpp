// `rlx inspect`: what a compile makes of a graph, stage by stage.
#include <algorithm>
#include <map>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/graph_file.h"
#include "cli/made_up.h"
#include "cli/model_names.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/text.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/passes/passes.h"
#include "rlx/report/report.h"
#include "rlx/runtime/reports.h"

namespace rlx::cli {
namespace {

struct InspectArgs {
  std::string graph, model, device = "cpu", save, html;
  std::vector<std::string> bindings, stages;
  std::int64_t batch = 1, sequence = 16;
  bool list = false, text = false, code = false, summary = false, no_fusion = false, fusable = false, profile = false;
};

Graph load(const InspectArgs& args) {
  if (args.graph.empty() == args.model.empty())
    throw UsageError(ErrorCode::InvalidArgument,
                     args.graph.empty() ? "there is nothing to inspect: no graph and no model is given"
                                        : "both a graph and a model are given",
                     "give either a graph file or --model DIR");
  if (!args.graph.empty()) return read_graph(args.graph);
  const std::string model = model_path(args.model);
  const SentenceModelConfig config = read_sentence_config(model);
  if (config.encoder.family != "bert" || !config.dense.empty()) {
    EncoderGraphOptions options = encoder_graph_options(config);
    options.batch = args.batch, options.sequence = args.sequence;
    return build_encoder(config.encoder, open_encoder_weights(model, config.encoder, options), options);
  }
  BertGraphOptions options;
  options.batch = args.batch;
  options.sequence = args.sequence;
  options.pooling = config.pooling;
  options.normalize = config.normalize;
  return build_sentence_encoder(config.bert, options);
}

struct Section {
  std::string name, what, text;
};

constexpr std::string_view kGiven = "the graph as given",
                           kPlanned = "the planned program: run graph, weight preparation, buffers and schedule",
                           kFused = "fused patterns, and missed fusions with the reason",
                           kDispatched = "how each kind of op reaches the device";

// The reports and every kept stage, in the order of the compile.
std::vector<Section> sections(const CompileResult& result, bool as_text) {
  auto graph_text = [&](const Graph& g) {
    return as_text ? print_text(g, TextOptions{.origins = true, .max_elements = 8}) : inspect_graph(g);
  };
  std::vector<Section> out;
  std::map<std::string, int> runs;  // a pass may run again: the name of its stage has the number of the run
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    const PipelineStage& stage = result.stages[i];
    if (stage.name == "lir") continue;  // shown with its plan
    std::string text = graph_text(stage.graph), before = i > 0 ? graph_text(result.stages[i - 1].graph) : "";
    if (text == before)
      text = "unchanged\n";
    else if (i > 0)
      text.insert(0, inspect_graph_diff(result.stages[i - 1].graph, stage.graph) + "\n");
    const int run = ++runs[stage.name];
    out.push_back({run == 1 ? stage.name : concat_text(stage.name, "-", run),
                   std::string(i == 0 ? kGiven : "after the pass"), text});
  }
  if (!result.source)
    out.push_back({"lir", std::string(kPlanned), inspect_devices(result.lir) + inspect_lir(result.lir)});
  out.push_back({"fusion", std::string(kFused), result.fusion.text()});
  out.push_back({"dispatch", std::string(kDispatched), result.dispatch.text()});
  return out;
}

// The note that says how to see the plan of a program with symbolic dimensions.
std::string plan_hint(const CompileResult& result) {
  return concat_text("the plan needs values: ", bind_options(result.lir.graph, {}));
}

std::string summary(const CompileResult& result, const NamedTarget& on) {
  std::string out = concat_text("target: ", on.target->name(), "\n");
  if (!on.absent.empty()) out += concat_text("the device is not available, so this is only a plan: ", on.absent, "\n");
  if (result.source)
    out += concat_text(inspect_graph_stats(result.lir.graph), "buffer plan: none, ",
                       without_value(result.lir.graph, {}), "; ", plan_hint(result));
  else
    out += inspect_lir_stats(result.lir);
  if (out.back() != '\n') out += '\n';
  return out + inspect_devices(result.lir) + inspect_copies(result.lir) + "fusion: " + result.fusion.summary_line() +
         "\n";
}

// All stages that a compile may have, for --list without a graph.
void list_stages() {
  Output out("-");
  auto line = [&](std::string_view name, std::string_view what) {
    out.write(concat_text("== ", name, ": ", what, "\n"));
  };
  line("hir", kGiven);
  for (const Pass* pass : all_passes()) line(pass->name, pass->what);
  line("legalize", "ops that the device has no kernel for are decomposed");
  line("NAME-2", "the second run of the pass NAME or of legalize; NAME-3 and so on likewise");
  line("lir", kPlanned);
  line("fusion", kFused);
  line("dispatch", kDispatched);
  out.close();
}

constexpr int kProfiles = 15;

// The HTML report with measured times. The program runs on generated inputs and weights.
std::string profiled_page(const InspectArgs& args, Graph g, const CompileOptions& options) {
  const Graph bound = options.dim_binding.empty() ? g : g.bind(options.dim_binding);
  if (const std::string missing = without_value(bound, {}); !missing.empty())
    throw UsageError(ErrorCode::InvalidArgument, missing,
                     concat_text("the profile needs values: ", bind_options(bound, {})));
  std::vector<Tensor> inputs;
  std::map<std::string, Tensor> params;
  std::uint64_t seed = 0;
  for (NodeId id : bound.leaves(OpKind::Input)) inputs.push_back(made_up_values(bound.shape(id), false, ++seed));
  for (NodeId id : bound.leaves(OpKind::Param))
    params.emplace(bound.leaf_name(id), made_up_values(bound.shape(id), true, ++seed));
  const Session session = session_on(args.device);
  CompiledGraph program = session.compile_with(std::move(g), options);
  for (const auto& [name, value] : params) program.set_param(name, value);
  std::vector<TensorView> views;
  for (const Tensor& t : inputs) views.push_back(t.view());
  ReportOptions page;
  page.times = median_profile(program, views, kProfiles);
  const bool on_cpu = session.target()->name().starts_with("cpu");
  if (on_cpu) page.limits = one_thread_limits(Device::Cpu);
  page.times_note = concat_text("Medians of ", kProfiles, " runs, step by step", on_cpu ? " on one thread" : "",
                                ", with made-up inputs and weights");
  return inspect_html(program, page);
}

void write_report(const InspectArgs& args, Graph g, const CompileOptions& options) {
  const std::string page =
      args.profile ? profiled_page(args, std::move(g), options)
                   : inspect_html(CompilePipeline(target_on(args.device).target, options).compile_graph(std::move(g)));
  Output file(args.html);
  file.write(page);
  file.close();
}

void write_code(const InspectArgs& args, Graph g, const CompileOptions& options) {
  const Graph bound = options.dim_binding.empty() ? g : g.bind(options.dim_binding);
  if (const std::string missing = without_value(bound, {}); !missing.empty())
    throw UsageError(ErrorCode::InvalidArgument, missing,
                     concat_text("device code needs values: ", bind_options(bound, {})));
  const std::string text = plan_session_on(args.device).compile_with(std::move(g), options).code();
  if (text.empty())
    throw UsageError(
        ErrorCode::Unsupported, concat_text("device ", args.device, " has no device code"),
        "the kernels of the cpu are part of rlx; code is generated for devices with a backend in this build");
  Output out("-");
  out.write(text);
  out.close();
}

void run(const InspectArgs& args) {
  if (args.list && args.graph.empty() && args.model.empty()) return list_stages();
  Graph g = load(args);
  if (!args.save.empty()) {
    Output file(args.save);
    file.write(print_text(g));
    file.close();
    return;
  }
  CompileOptions options;
  options.dim_binding = parse_symbols(g, args.bindings);
  options.fusion.skip_fusion = args.no_fusion;
  options.policy = args.fusable ? FusionPolicy::Fusable : FusionPolicy::Direct;
  options.keep_stages = true;
  options.trace = env_trace();
  if (!args.html.empty()) return write_report(args, std::move(g), options);
  if (args.code) return write_code(args, std::move(g), options);
  const NamedTarget on = target_on(args.device);
  const CompileResult result = CompilePipeline(on.target, options).compile_graph(std::move(g));

  Output out("-");
  if (args.summary) {
    out.write(summary(result, on));
    return out.close();
  }
  const std::vector<Section> all = sections(result, args.text);
  for (const std::string& stage : args.stages)
    if (std::none_of(all.begin(), all.end(), [&](const Section& s) { return s.name == stage; })) {
      std::vector<std::string> names;
      for (const Section& s : all) names.push_back(s.name);
      throw UsageError(ErrorCode::NotFound, concat_text("this compile has no stage '", stage, "'"),
                       stage == "lir" ? plan_hint(result) : did_you_mean(stage, names, "--list lists the stages"));
    }
  if (!args.list && args.stages.empty()) out.write(summary(result, on) + "\n");
  for (const Section& s : all) {
    if (!args.stages.empty() && std::find(args.stages.begin(), args.stages.end(), s.name) == args.stages.end())
      continue;
    out.write(concat_text("== ", s.name, ": ", s.what, "\n"));
    if (args.list) continue;
    out.write(s.text);
    out.write(s.text.empty() || s.text.back() != '\n' ? "\n\n" : "\n");
  }
  out.close();
}

}  // namespace

void register_inspect(CommandLine& line) {
  auto args = std::make_shared<InspectArgs>();
  const Command cmd = line.add_command("inspect", "Show every stage of a compile: graphs, fusion, buffers");
  cmd.add_option("graph", args->graph, "Graph in text or binary form; - reads the standard input").type_name("FILE");
  const Argument model = cmd.add_option("-m,--model", args->model,
                                        "Model folder: its encoder is built and compiled (weights are not loaded)")
                             .type_name("DIR");
  cmd.add_option("--batch", args->batch, "Texts of the model's batch").show_default().in_range(1, 1 << 30).needs(model);
  cmd.add_option("--seq", args->sequence, "Tokens per text of the model's batch")
      .show_default()
      .in_range(1, 1 << 30)
      .needs(model);
  cmd.add_option("-b,--bind", args->bindings, "Value of a symbolic dimension; the buffer plan needs all of them")
      .type_name("SYMBOL=N")
      .one_value_each();
  add_device_option(cmd, args->device);
  cmd.add_option("-s,--stage", args->stages, "Show only these stages, separated by commas")
      .delimiter(',')
      .type_name("NAME")
      .one_value_each();
  cmd.add_flag("--list", args->list, "List the stages of this compile, or without a graph all possible stages");
  cmd.add_flag("--summary", args->summary, "Sizes and counts only");
  cmd.add_flag("--text", args->text, "Graphs in text form instead of the table");
  cmd.add_flag("--code", args->code,
               "Only the device code: StableHLO of a tpu, WGSL of a gpu; the device may be absent");
  cmd.add_flag("--no-fusion", args->no_fusion, "Compile without fusion");
  cmd.add_flag("--fusable", args->fusable, "Lower HIR blocks to chains of primitives and let the passes fuse them");
  cmd.add_option("--save", args->save, "Write the graph itself, before any stage, in text form to FILE")
      .type_name("FILE");
  const Argument html =
      cmd.add_option("--html", args->html, "Write all of it to FILE as an HTML report").type_name("FILE");
  cmd.add_flag("--profile", args->profile, "Run the graph on made-up values, for the times in the report").needs(html);
  cmd.callback([args] { run(*args); });
}

}  // namespace rlx::cli
