// `rlx run`: a graph file on npy inputs, on a device or by the reference rules.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/file_bindings.h"
#include "cli/graph_file.h"
#include "cli/memory_report.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/npy.h"

namespace rlx::cli {
namespace {

struct RunArgs {
  std::string graph, device = "cpu";
  FileBindings files;
  std::vector<std::string> outputs;
  bool oracle = false, f64 = false, print = false, memory = false, nan_check = false, inf_check = false;
  int threads = 0;
  std::int64_t max_values = 1000;
};

EvaluateResult run_on_device(const RunArgs& args, Graph g, const NamedTensors& values) {
  NamedTensors inputs;
  std::vector<std::string> params;
  for (NodeId id : g.leaves(OpKind::Input)) inputs.emplace(g.leaf_name(id), values.at(g.leaf_name(id)));
  for (NodeId id : g.leaves(OpKind::Param)) params.push_back(g.leaf_name(id));
  const Session session = session_on(args.device).with_threads(args.threads);
  CompileOptions options;
  if (args.nan_check) options.nan_check = NanCheck::Nan;
  if (args.inf_check) options.nan_check = NanCheck::NanOrInf;
  CompiledGraph program = session.compile_with(std::move(g), std::move(options));
  for (const std::string& name : params) program.set_param(name, values.at(name));
  EvaluateResult result;
  result.outputs = program.run_typed(inputs);
  for (const IoInfo& state : program.states()) result.states.emplace(state.name, program.read_state(state.name));
  if (args.memory) report_memory(*session.open_device(), program.prepared_bytes());
  return result;
}

// The destinations of results: a file for each output in order, files of states by name, or one archive with
// everything.
struct OutputFiles {
  std::string archive;
  std::vector<std::string> outputs;
  std::vector<Binding> states;
};

// Throws if two results would go to one file. Paths that are not regular files (/dev/null) may take several.
void require_places_of_their_own(const OutputFiles& files) {
  std::map<std::string, std::string> taken;  // the result and its path
  const auto take = [&](const std::string& path, const std::string& what) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) && !is_file(path)) return;
    const std::string place = std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored).string();
    const auto [known, added] = taken.emplace(place, what);
    if (!added)
      throw UsageError(ErrorCode::InvalidArgument,
                       concat_text("--output: ", known->second, " and ", what, " would both go to '", path, "'"),
                       "give each a separate file, or one FILE.npz for all");
  };
  for (std::size_t i = 0; i < files.outputs.size(); ++i) take(files.outputs[i], concat_text("out", i));
  for (const Binding& b : files.states) take(b.rest, concat_text("state '", b.name, "'"));
}

OutputFiles output_files(const RunArgs& args, const Graph& g) {
  OutputFiles files;
  if (args.outputs.size() == 1 && args.outputs[0].ends_with(".npz")) {
    files.archive = args.outputs[0];
    return files;
  }
  for (const std::string& text : args.outputs) {
    Binding b = split_binding(text);
    if (b.name.empty()) {
      files.outputs.push_back(b.rest);
      continue;
    }
    std::vector<std::string> names;
    for (NodeId leaf : g.leaves(OpKind::State)) names.push_back(g.leaf_name(leaf));
    if (std::find(names.begin(), names.end(), b.name) == names.end()) {
      throw UsageError(ErrorCode::NotFound, concat_text("graph '", g.name(), "' has no state '", b.name, "'"),
                       did_you_mean(b.name, names, concat_text("its states: ", leaf_names(g, OpKind::State))));
    }
    files.states.push_back(std::move(b));
  }
  const std::size_t num_outputs = g.outputs().size();
  if (files.outputs.size() > num_outputs)
    throw UsageError(ErrorCode::InvalidArgument, concat_text("graph '", g.name(), "' has ", num_outputs,
                                                             " outputs, but --output names ", files.outputs.size()));
  require_places_of_their_own(files);
  return files;
}

void write_results(const RunArgs& args, const OutputFiles& files, const EvaluateResult& result) {
  if (!files.archive.empty()) {
    std::vector<NamedTensor> named;
    for (std::size_t i = 0; i < result.outputs.size(); ++i) named.push_back({concat_text("out", i), result.outputs[i]});
    for (const auto& [name, value] : result.states) named.push_back({"state." + name, value});
    write_npz(files.archive, named);
  }
  for (std::size_t i = 0; i < files.outputs.size(); ++i) write_npy(files.outputs[i], result.outputs[i]);
  for (const Binding& b : files.states) write_npy(b.rest, result.states.at(b.name));
  if (!args.outputs.empty() && !args.print) return;
  Output out("-");
  for (std::size_t i = 0; i < result.outputs.size(); ++i)
    out.write(concat_text("out", i, ": ", tensor_text(result.outputs[i], args.max_values)));
  for (const auto& [name, value] : result.states)
    out.write(concat_text("state ", name, ": ", tensor_text(value, args.max_values)));
  out.close();
}

void run(const RunArgs& args) {
  Graph g = read_graph(args.graph);
  if (g.outputs().empty() && g.leaves(OpKind::State).empty())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("graph '", g.name(), "' has neither outputs nor states: it computes nothing"),
                "end the graph with its outputs: return %3");
  if (args.f64) g = to_f64(g);
  const OutputFiles files = output_files(args, g);
  const NamedTensors values = read_bindings(g, args.files);
  require_all(g, values);
  write_results(args, files, args.oracle ? evaluate_with_states(g, values) : run_on_device(args, std::move(g), values));
}

}  // namespace

void register_run(CommandLine& line) {
  auto args = std::make_shared<RunArgs>();
  const Command cmd = line.add_command("run", "Run a graph file on npy inputs");
  cmd.add_option("graph", args->graph, "Graph in text or binary form; - reads the standard input")
      .required()
      .type_name("FILE");
  add_file_bindings(cmd, args->files);
  cmd.add_option("-o,--output", args->outputs,
                 "FILE.npy for each output in order, NAME=FILE.npy for the final value of a state, or one FILE.npz "
                 "for all (states as state.NAME)")
      .type_name("[NAME=]FILE")
      .one_value_each();
  cmd.add_flag("--print", args->print, "Print the outputs and the states after the run (the default without --output)");
  cmd.add_option("--max-values", args->max_values, "Values printed per output")
      .show_default()
      .in_range(std::int64_t{0}, std::int64_t{1} << 40);
  const Argument device = add_device_option(cmd, args->device);
  const Argument oracle =
      cmd.add_flag("--oracle", args->oracle, "Evaluate op by op with the reference rules, in double inside each op")
          .excludes(device);
  add_memory_flag(cmd, args->memory).excludes(oracle);
  cmd.add_flag("--nan-check", args->nan_check,
               "Fail if a result holds NaN, and name the op, element and line it is from")
      .excludes(oracle);
  cmd.add_flag("--inf-check", args->inf_check, "The same for NaN and infinities").excludes(oracle);
  cmd.add_flag("--f64", args->f64, "Compute in F64: every float leaf and constant is converted first");
  add_threads_option(cmd, args->threads);
  cmd.callback([args] { run(*args); });
}

}  // namespace rlx::cli
