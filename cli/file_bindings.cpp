// Reading npy, npz and safetensors files for the leaves of a graph.
#include "cli/file_bindings.h"

#include <memory>

#include "cli/arguments.h"
#include "cli/graph_file.h"
#include "cli/usage.h"
#include "rlx/formats/npy.h"
#include "rlx/formats/safetensors.h"

namespace rlx::cli {
namespace {

// True when every value of `from` is a value of `to`, so that a conversion loses nothing.
bool widens(DType from, DType to) {
  if (is_float(from) && is_float(to)) return dtype_bits(from) < dtype_bits(to);
  if (is_signed_int(from) && is_signed_int(to)) return dtype_bits(from) < dtype_bits(to);
  return from == DType::C64 && to == DType::C128;
}

// The tensor in the dtype that its leaf declares. Without --cast only lossless conversions are made.
Tensor fitted(const Tensor& t, const Shape& declared, const std::string& what, bool cast) {
  if (t.dtype() == declared.dtype()) return t;
  if (cast || widens(t.dtype(), declared.dtype())) return t.cast(declared.dtype());
  throw Error(ErrorCode::DTypeMismatch,
              concat_text(what, " is ", dtype_name(t.dtype()), ", but the graph declares ", declared),
              "save it in that dtype, or give --cast to convert it");
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
      throw UsageError(ErrorCode::InvalidArgument, concat_text(what, " '", name, "' is given twice"));
  };
  auto by_name = [&](const std::string& name) {
    const NodeId id = g.find_leaf(kind, name);
    if (id.valid()) return id;
    std::vector<std::string> names;
    for (NodeId leaf : leaves) names.push_back(g.leaf_name(leaf));
    throw UsageError(ErrorCode::NotFound, concat_text("graph '", g.name(), "' has no ", what, " '", name, "'"),
                     did_you_mean(name, names, concat_text("its ", what, "s: ", leaf_names(g, kind))));
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
        throw UsageError(ErrorCode::InvalidArgument,
                         concat_text("'", b.rest, "': every ", what, " of graph '", g.name(), "' is bound already"),
                         concat_text("its ", what, "s: ", leaf_names(g, kind)));
      bind(leaves[next], read_npy(b.rest), b.rest);
    }
  }
}

// Reads params that no --param set from a safetensors file.
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

}  // namespace

std::string leaf_names(const Graph& g, OpKind kind) {
  std::string out;
  for (NodeId id : g.leaves(kind)) out += (out.empty() ? "" : ", ") + g.leaf_name(id);
  return out.empty() ? "none" : out;
}

void require_all(const Graph& g, const NamedTensors& values) {
  for (OpKind kind : {OpKind::Input, OpKind::Param})
    for (NodeId id : g.leaves(kind))
      if (!values.contains(g.leaf_name(id)))
        throw UsageError(ErrorCode::NotFound,
                         concat_text(kind == OpKind::Input ? "input" : "param", " '", g.leaf_name(id), "' ",
                                     g.node(id).shape(), " has no value"),
                         kind == OpKind::Input ? concat_text("give --input ", g.leaf_name(id), "=FILE.npy")
                                               : concat_text("give --param ", g.leaf_name(id),
                                                             "=FILE.npy or --weights FILE.safetensors"));
}

NamedTensors read_bindings(const Graph& g, const FileBindings& files) {
  NamedTensors values;
  bind_files(g, OpKind::Input, "input", files.inputs, files.cast, values);
  bind_files(g, OpKind::Param, "param", files.params, files.cast, values);
  if (!files.weights.empty()) bind_weights(g, files.weights, values);
  return values;
}

void add_file_bindings(Command command, FileBindings& to) {
  command
      .add_option("-i,--input", to.inputs, "FILE.npy for the next input, NAME=FILE.npy, or FILE.npz with all of them")
      .type_name("[NAME=]FILE")
      .one_value_each();
  command.add_option("-p,--param", to.params, "A weight, given like --input").type_name("[NAME=]FILE").one_value_each();
  command.add_option("-w,--weights", to.weights, "Safetensors file with the weights that no --param gives")
      .type_name("FILE");
  command.add_flag("--cast", to.cast, "Convert inputs and params whose dtype differs, even when that rounds");
}

}  // namespace rlx::cli
