// `rlx run`: a graph file on npy inputs, on a device or by the reference rules.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/graph_file.h"
#include "cli/terminal.h"
#include "rlx/formats/npy.h"
#include "rlx/formats/safetensors.h"

namespace rlx::cli {
namespace {

struct RunArgs {
  std::string graph, weights, device = "cpu";
  std::vector<std::string> inputs, params, outputs;
  bool oracle = false, f64 = false, cast = false, print = false;
  int threads = 0;
  std::int64_t max_values = 1000;
};

// True when every value of `from` is a value of `to`, so that a conversion loses nothing.
bool widens(DType from, DType to) {
  if (is_float(from) && is_float(to)) return dtype_bits(from) < dtype_bits(to);
  if (is_signed_int(from) && is_signed_int(to)) return dtype_bits(from) < dtype_bits(to);
  return from == DType::C64 && to == DType::C128;
}

// The tensor in the dtype its leaf declares. Only exact conversions happen unasked.
Tensor fitted(const Tensor& t, const Shape& declared, const std::string& what, bool cast) {
  if (t.dtype() == declared.dtype()) return t;
  if (cast || widens(t.dtype(), declared.dtype())) return t.cast(declared.dtype());
  throw Error(ErrorCode::DTypeMismatch,
              concat_text(what, " is ", dtype_name(t.dtype()), ", the graph declares ", declared),
              "save it in that dtype, or give --cast to convert it");
}

std::string leaf_names(const Graph& g, OpKind kind) {
  std::string out;
  for (NodeId id : g.leaves(kind)) out += (out.empty() ? "" : ", ") + g.leaf_name(id);
  return out.empty() ? "none" : out;
}

// Binds "name=file" and, for inputs, files without a name in declaration order. An npz binds each of its arrays by
// name.
void bind_files(const Graph& g, OpKind kind, const std::string& what, const std::vector<std::string>& texts, bool cast,
                NamedTensors& values) {
  const std::vector<NodeId> leaves = g.leaves(kind);
  std::size_t next = 0;
  auto bind = [&](NodeId id, const Tensor& t, const std::string& path) {
    const std::string& name = g.leaf_name(id);
    const std::string label = concat_text(what, " '", name, "' (", path, ")");
    if (!values.emplace(name, fitted(t, g.node(id).shape(), label, cast)).second)
      throw Error(ErrorCode::InvalidArgument, concat_text(what, " '", name, "' is given twice"));
  };
  auto by_name = [&](const std::string& name) {
    const NodeId id = g.find_leaf(kind, name);
    if (id.valid()) return id;
    std::vector<std::string> names;
    for (NodeId leaf : leaves) names.push_back(g.leaf_name(leaf));
    const std::string near = closest_name(name, names);
    throw Error(ErrorCode::NotFound, concat_text("graph '", g.name(), "' has no ", what, " '", name, "'"),
                near.empty() ? concat_text("its ", what, "s: ", leaf_names(g, kind))
                             : concat_text("did you mean '", near, "'?"));
  };
  for (const std::string& text : texts) {
    const Binding b = split_binding(text);
    if (b.name.empty() && b.rest.ends_with(".npz")) {
      for (const NamedTensor& t : read_npz(b.rest)) bind(by_name(t.name), t.tensor, b.rest);
    } else if (!b.name.empty()) {
      bind(by_name(b.name), read_npy(b.rest), b.rest);
    } else {
      while (next < leaves.size() && values.contains(g.leaf_name(leaves[next]))) ++next;
      if (next == leaves.size())
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("'", b.rest, "': every ", what, " of graph '", g.name(), "' is bound already"),
                    concat_text("its ", what, "s: ", leaf_names(g, kind)));
      bind(leaves[next], read_npy(b.rest), b.rest);
    }
  }
}

// Params that no --param gave, from a safetensors file.
void bind_weights(const Graph& g, const std::string& path, NamedTensors& values) {
  const std::shared_ptr<const SafetensorsFile> file = SafetensorsFile::open(path);
  for (NodeId id : g.leaves(OpKind::Param)) {
    const std::string& name = g.leaf_name(id);
    if (values.contains(name)) continue;
    const Tensor t = SafetensorsFile::tensor(file, name);  // a missing one is an error with the nearest name
    const bool floats = is_float(t.dtype()) && is_float(g.node(id).shape().dtype());
    values.emplace(name, fitted(t, g.node(id).shape(), concat_text("weight '", name, "' (", path, ")"), floats));
  }
}

void require_all(const Graph& g, const NamedTensors& values) {
  for (OpKind kind : {OpKind::Input, OpKind::Param})
    for (NodeId id : g.leaves(kind))
      if (!values.contains(g.leaf_name(id)))
        throw Error(ErrorCode::NotFound,
                    concat_text(kind == OpKind::Input ? "input" : "param", " '", g.leaf_name(id), "' ",
                                g.node(id).shape(), " has no value"),
                    kind == OpKind::Input
                        ? concat_text("give --input ", g.leaf_name(id), "=FILE.npy")
                        : concat_text("give --param ", g.leaf_name(id), "=FILE.npy or --weights FILE.safetensors"));
}

EvaluateResult run_on_device(const RunArgs& args, Graph g, const NamedTensors& values) {
  NamedTensors inputs;
  std::vector<std::string> params;
  for (NodeId id : g.leaves(OpKind::Input)) inputs.emplace(g.leaf_name(id), values.at(g.leaf_name(id)));
  for (NodeId id : g.leaves(OpKind::Param)) params.push_back(g.leaf_name(id));
  CompiledGraph program = session_on(args.device).with_threads(args.threads).compile(std::move(g));
  for (const std::string& name : params) program.set_param(name, values.at(name));
  EvaluateResult result;
  result.outputs = program.run_typed(inputs);
  for (const IoInfo& state : program.states()) result.states.emplace(state.name, program.read_state(state.name));
  return result;
}

// Where results go: a file per output in order, files of states by name, or one archive with all.
struct OutputFiles {
  std::string archive;
  std::vector<std::string> outputs;
  std::vector<Binding> states;
};

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
      const std::string near = closest_name(b.name, names);
      throw Error(ErrorCode::NotFound, concat_text("graph '", g.name(), "' has no state '", b.name, "'"),
                  near.empty() ? concat_text("its states: ", leaf_names(g, OpKind::State))
                               : concat_text("did you mean '", near, "'?"));
    }
    files.states.push_back(std::move(b));
  }
  const std::size_t num_outputs = g.outputs().size();
  if (files.outputs.size() > num_outputs)
    throw Error(ErrorCode::InvalidArgument, concat_text("graph '", g.name(), "' has ", num_outputs,
                                                        " outputs, --output names ", files.outputs.size()));
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
                concat_text("graph '", g.name(), "' has neither outputs nor states: a run gives nothing"),
                "name its results at its end: return %3");
  if (args.f64) g = to_f64(g);
  const OutputFiles files = output_files(args, g);
  NamedTensors values;
  bind_files(g, OpKind::Input, "input", args.inputs, args.cast, values);
  bind_files(g, OpKind::Param, "param", args.params, args.cast, values);
  if (!args.weights.empty()) bind_weights(g, args.weights, values);
  require_all(g, values);
  write_results(args, files, args.oracle ? evaluate_with_states(g, values) : run_on_device(args, std::move(g), values));
}

}  // namespace

void register_run(CLI::App& app) {
  auto args = std::make_shared<RunArgs>();
  CLI::App* cmd = app.add_subcommand("run", "Run a graph file on npy inputs");
  cmd->add_option("graph", args->graph, "graph in text or binary form; - reads the standard input")
      ->required()
      ->type_name("FILE");
  cmd->add_option("-i,--input", args->inputs,
                  "FILE.npy for the next input, NAME=FILE.npy, or FILE.npz with all of them")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  cmd->add_option("-p,--param", args->params, "a weight, as --input")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  cmd->add_option("-w,--weights", args->weights, "safetensors file with the weights that no --param gives")
      ->type_name("FILE");
  cmd->add_option(
         "-o,--output", args->outputs,
         "FILE.npy for each output in order, NAME=FILE.npy for the value a state is left with, or one FILE.npz "
         "for all (states as state.NAME)")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  cmd->add_flag("--print", args->print,
                "print the outputs and the states after the run (the default without --output)");
  cmd->add_option("--max-values", args->max_values, "values printed per output")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  auto* device =
      cmd->add_option("-d,--device", args->device, "a device of `rlx devices`, or reference")->capture_default_str();
  cmd->add_flag("--oracle", args->oracle, "evaluate op by op with the reference rules, in double inside each op")
      ->excludes(device);
  cmd->add_flag("--f64", args->f64, "compute in F64: every float leaf and constant is converted first");
  cmd->add_flag("--cast", args->cast, "convert inputs and params whose dtype differs, even when that rounds");
  cmd->add_option("--threads", args->threads, "0: as many as the machine grants")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  cmd->callback([args] { run(*args); });
}

}  // namespace rlx::cli
