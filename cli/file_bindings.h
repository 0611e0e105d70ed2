// Inputs and params of a graph from files of the command line.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"

namespace rlx::cli {

/// The values of --input, --param, --weights and --cast.
struct FileBindings {
  std::vector<std::string> inputs, params;
  std::string weights;
  bool cast = false;
};

/// Adds these options to a command; `to` must live as long as the command.
void add_file_bindings(Command command, FileBindings& to);

/// The tensors of the files by the names of the leaves of `g`, in the dtypes these declare. Errors: those of the
/// readers, NotFound for a name that `g` does not have, DTypeMismatch for a lossy conversion
/// without --cast.
NamedTensors read_bindings(const Graph& g, const FileBindings& files);
/// Throws NotFound naming the first input or param of `g` without a value, and the option that gives it one.
void require_all(const Graph& g, const NamedTensors& values);

/// The names of all leaves of a kind: "x, mask", or "none".
std::string leaf_names(const Graph& g, OpKind kind);

}  // namespace rlx::cli
