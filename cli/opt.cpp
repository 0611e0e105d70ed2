// `rlx opt`: runs passes on a graph file and prints the result.
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/graph_file.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/passes/passes.h"

namespace rlx::cli {
namespace {

struct OptArgs {
  std::string graph, output, target;
  std::vector<std::string> passes, bindings;
  bool list = false, report = false, diff = false, origins = false, binary = false, fusable = false;
};

FusionPolicy policy_of(const OptArgs& args) { return args.fusable ? FusionPolicy::Fusable : FusionPolicy::Direct; }

void list_passes() {
  Output out("-");
  std::size_t width = 0;
  for (const Pass* pass : all_passes()) width = std::max(width, pass->name.size());
  for (const Pass* pass : all_passes())
    out.write(concat_text(pass->name, std::string(width + 2 - pass->name.size(), ' '), pass->what, "\n"));
  out.close();
}

std::vector<const Pass*> chosen_passes(const std::vector<std::string>& names) {
  std::vector<const Pass*> out;
  for (const std::string& name : names) {
    if (name == "all") {
      out.insert(out.end(), all_passes().begin(), all_passes().end());
      continue;
    }
    const Pass* pass = find_pass(name);
    if (!pass) {
      std::vector<std::string> known;
      for (const Pass* p : all_passes()) known.emplace_back(p->name);
      throw UsageError(ErrorCode::NotFound, concat_text("there is no pass '", name, "'"),
                       did_you_mean(name, known, "`rlx opt --list` lists them"));
    }
    out.push_back(pass);
  }
  return out;
}

// The named target, or cpu. A device that is not available is replaced by its documented preset, with a note.
std::shared_ptr<const Target> target_of(const OptArgs& args) {
  const NamedTarget on = target_on(args.target.empty() ? "cpu" : args.target);
  if (!on.absent.empty())
    std::fprintf(stderr, "note: the target is %s, since the device is not available: %s\n",
                 std::string(on.target->name()).c_str(), on.absent.c_str());
  return on.target;
}

// Runs the named passes. They fuse only what the target has kernels for; without a target, everything.
Graph run_named_passes(const OptArgs& args, const Graph& g, FusionReport& report) {
  report.nodes_before = g.num_nodes();
  report.before = op_histogram(g);
  PassContext context;
  std::shared_ptr<const Target> target;
  if (!args.target.empty()) target = target_of(args), context.claims = target.get();
  context.policy = policy_of(args);
  context.report = &report;
  Graph after = run_passes(g, chosen_passes(args.passes), context);
  report.nodes_after = after.num_nodes();
  report.after = op_histogram(after);
  return after;
}

// Runs the passes that a compile for the target runs before legalization.
Graph run_default_pipeline(const OptArgs& args, const Graph& g, FusionReport& report) {
  CompileOptions options;
  options.policy = policy_of(args);
  CompilePipeline pipeline(target_of(args), options);
  return pipeline.optimize_with_report(pipeline.lower_hir(HirModule{g}), report).graph;
}

void run(const OptArgs& args) {
  if (args.list) return list_passes();
  if (args.graph.empty())
    throw UsageError(ErrorCode::InvalidArgument, "no graph file is given",
                     "give a graph file, or - for the standard input");
  Graph g = read_graph(args.graph);
  if (!args.bindings.empty()) g = g.bind(parse_symbols(g, args.bindings));
  FusionReport report;
  const Graph after = args.passes.empty() ? run_default_pipeline(args, g, report) : run_named_passes(args, g, report);

  Output out(args.output);
  if (args.diff) {
    out.write(inspect_graph_diff(g, after));
  } else if (args.binary) {
    const std::vector<std::byte> bytes = to_bytes(after);
    out.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } else {
    out.write(print_text(after, TextOptions{.origins = args.origins}));
  }
  out.close();
  if (args.report) std::fprintf(stderr, "%s\n", report.text().c_str());
}

}  // namespace

void register_opt(CommandLine& line) {
  auto args = std::make_shared<OptArgs>();
  const Command cmd = line.add_command("opt", "Run compiler passes on a graph file and print the result");
  cmd.add_option("graph", args->graph, "Graph in text or binary form; - reads the standard input").type_name("FILE");
  cmd.add_option("-p,--pass", args->passes,
                 "Passes in order, separated by commas; `all`: every pass (default: those of a compile for the target)")
      .delimiter(',')
      .type_name("NAME")
      .one_value_each();
  cmd.add_flag("--list", args->list, "List the passes: what each does and when that is legal");
  cmd.add_option("-t,--target", args->target,
                 "Fuse only what this device has kernels for: one of `rlx devices`, available or not, or reference "
                 "(default: with --pass no limit, else cpu)")
      .type_name("DEVICE");
  cmd.add_flag("--fusable", args->fusable, "Lower HIR blocks to chains of primitives instead of fused ops");
  cmd.add_option("-b,--bind", args->bindings, "Fix a symbolic dimension first").type_name("SYMBOL=N").one_value_each();
  cmd.add_option("-o,--output", args->output, "File for the result instead of the standard output").type_name("FILE");
  const Argument diff =
      cmd.add_flag("--diff", args->diff, "Print how many ops of each kind changed instead of the graph");
  cmd.add_flag("--binary", args->binary, "Write the binary form").excludes(diff);
  cmd.add_flag("--origins", args->origins, "Print where each node came from");
  cmd.add_flag("--report", args->report, "Print the fused patterns and the missed fusions to the standard error");
  cmd.callback([args] { run(*args); });
}

}  // namespace rlx::cli
