// Graphs, devices, symbols and printed tensors of the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/runtime/session.h"

namespace rlx::cli {

/// The graph in `path` ("-": the standard input), text or binary form, verified. Errors: those of the readers, with the
/// place.
Graph read_graph(const std::string& path);

/// "name=rest" split at the first '='; an argument without one, or one that is the path of a file, has an empty name.
struct Binding {
  std::string name, rest;
};
Binding split_binding(const std::string& text);

/// A device as the command line names it, with options of its backend.
struct NamedDevice {
  DeviceId id;
  DeviceOptions options;
};
/// The help text of --device.
inline constexpr const char* kDeviceUsage =
    "device to run on (`rlx devices` lists them), maybe with options: vulkan, tpu:1, \"tpu,plugin=PATH,cache=FOLDER\"";
/// The device called `text`: an id or alias, with an optional ordinal ("cuda:1"), then options that `rlx devices
/// --options` lists (",kernels=hardware"), whose values hold no commas. UsageError names the nearest.
NamedDevice device_called(const std::string& text);
/// A session on the device called `text`, which may also be the name of a backend ("reference").
Session session_on(const std::string& text);

/// A session that only compiles: the device may be absent (Session::for_target).
Session plan_session_on(const std::string& text);

/// The target of a device, and why the device cannot be used here ("" if it can).
struct NamedTarget {
  std::shared_ptr<const Target> target;
  std::string absent;
};
/// The target of the device called `text`, which may be absent (Session::for_target).
NamedTarget target_on(const std::string& text);

/// `text` as symbol values: "batch=8". Errors: UsageError for an unknown symbol, naming those of `g`, for no number and
/// for one outside the symbol's bounds.
SymbolBinding parse_symbols(const Graph& g, const std::vector<std::string>& texts);

/// Names the symbols of `g` that `binding` gives no value: "dimensions 'batch', 'seq' have no value"; "" if all have
/// one.
std::string without_value(const Graph& g, const SymbolBinding& binding);
/// Example options that give these symbols values within their bounds: "--bind batch=16 --bind seq=16".
std::string bind_options(const Graph& g, const SymbolBinding& binding);

/// Shape and values for people: one line per row of the last axis, shortest digits that read back; at most
/// `max_values`.
std::string tensor_text(const Tensor& t, std::int64_t max_values);

}  // namespace rlx::cli
