// `rlx devices`: every device rlx knows, whether this build and machine can use it, and why not; which dtypes run on
// it; the environment variables that change what runs.
#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "rlx/driver/registry.h"
#include "rlx/driver/thread_pool.h"
#include "rlx/formats/json.h"
#include "rlx/ir/op_def.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/env.h"

namespace rlx::cli {
namespace {

void list_environment(bool json_format) {
  Output out("-");
  if (json_format) {
    JsonWriter json;
    json.begin_array();
    for (const EnvVariable& v : env_variables()) {
      json.begin_object().member("name", v.name).member("what", v.what);
      if (const auto value = env_get(v.name)) json.member("value", *value);
      json.end_object();
    }
    out.write(json.end_array().take() + "\n");
  } else {
    for (const EnvVariable& v : env_variables()) {
      char line[64];
      std::snprintf(line, sizeof line, "%-20s ", std::string(v.name).c_str());
      const auto value = env_get(v.name);
      out.write(concat_text(line, v.what, value ? concat_text(" (now: ", *value, ")") : "", "\n"));
    }
  }
  out.close();
}

std::vector<DeviceInfo> by_priority() {
  std::vector<DeviceInfo> devices(all_devices().begin(), all_devices().end());
  std::sort(devices.begin(), devices.end(),
            [](const DeviceInfo& a, const DeviceInfo& b) { return a.priority < b.priority; });
  return devices;
}

void list_devices(bool json_format) {
  const std::vector<DeviceInfo> devices = by_priority();
  Output out("-");
  if (json_format) {
    JsonWriter json;
    json.begin_array();
    for (const DeviceInfo& d : devices) {
      const std::string reason = unavailable_reason(d.device);
      json.begin_object()
          .member("id", d.id)
          .member("name", d.name)
          .member("priority", d.priority)
          .member("available", reason.empty());
      if (reason.empty())
        json.member("backend", backend_for(d.device)->name());
      else
        json.member("reason", reason);
      json.end_object();
    }
    out.write(json.end_array().take() + "\n");
  } else {
    out.write("in order of preference:\n");
    for (const DeviceInfo& d : devices) {
      const std::string reason = unavailable_reason(d.device);
      char line[64];
      std::snprintf(line, sizeof line, "  %-9s %-12s ", std::string(d.id).c_str(), std::string(d.name).c_str());
      std::string state = reason.empty() ? concat_text("available, backend ", backend_for(d.device)->name()) : reason;
      if (reason.empty() && d.device == Device::Cpu) state += concat_text(", ", available_cpus(), " threads");
      out.write(concat_text(line, state, "\n"));
    }
  }
  out.close();
}

// -- dtypes --

// The sample with `t` in place of the dtype of its data; none when the op does not take `t`.
std::optional<Graph> with_dtype(const Sample& sample, DType t) {
  const auto is_data = [](const SampleInput& in) { return in.fill != Fill::Index && in.fill != Fill::Boolean; };
  const auto data = std::find_if(sample.inputs.begin(), sample.inputs.end(), is_data);
  // Stored operands of another float dtype than what is computed with: the sample is about neither.
  for (const SampleInput& in : sample.inputs)
    if (is_data(in) && is_float(in.shape.dtype()) && is_float(data->shape.dtype()) &&
        !is_storage_only(in.shape.dtype()) && !is_storage_only(data->shape.dtype()) &&
        in.shape.dtype() != data->shape.dtype())
      return std::nullopt;
  try {
    Graph g("sample");
    std::vector<Value> operands;
    for (const SampleInput& in : sample.inputs) {
      const bool replaced = is_data(in) && in.shape.dtype() == data->shape.dtype();
      operands.push_back(g.input(concat_text("x", operands.size()), replaced ? in.shape.with_dtype(t) : in.shape));
    }
    const Expr e = g.add(sample.op, operands);
    if (data == sample.inputs.end() && e.shape().dtype() != t) return std::nullopt;
    std::vector<Value> outputs;
    for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) outputs.push_back(e.result(r));
    g.set_outputs(std::move(outputs));
    return g;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += concat_text(out.empty() ? "`" : ", `", name, "`");
  return out;
}

// Which ops take a dtype, and what a device makes of them, told by the compiler's own legalisation.
struct DTypeOps {
  std::vector<std::string> kernels, parts, missing;

  DTypeOps(Device device, DType t) {
    for (const OpDef* def : all_op_defs()) {
      if (def->is_leaf() || def->level == Level::Lir || !def->samples.has()) continue;
      SampleSet samples;
      def->samples(samples);
      bool taken = false, parted = false, refused = false;
      for (const Sample& sample : samples.all()) {
        const std::optional<Graph> g = with_dtype(sample, t);
        if (!g) continue;
        taken = true;
        const KernelDispatchReport report = dispatch_report_for_device(*g, device);
        refused |= !report.compile_ready();
        for (const KindDispatch& d : report.summaries) parted |= d.path == DispatchPath::Rewritten;
        parted |= def->level == Level::Hir;
      }
      if (taken) (refused ? missing : parted ? parts : kernels).emplace_back(def->name);
    }
  }
};

std::string dtypes_page() {
  std::string out =
      "# Devices and dtypes\n\nGenerated by `rlx devices --dtypes -o docs/devices.md`: every op sample is tried with "
      "every "
      "dtype, and the compiler's own\nlegalisation says what a device makes of it. Nothing is computed in a narrower "
      "type "
      "than the graph says: what a device cannot run is an\nerror of the compile that names it. Types of which only a "
      "few "
      "ops are listed are storage: cast before computing.\n\nOps that take the dtype, by how they run: **kernel** as "
      "they "
      "are, *parts* as the ops of their decomposition.\n\n| dtype | bits |";
  std::string line = "|---|---|";
  std::vector<Device> devices = registered_devices();
  for (Device d : devices) {
    out += concat_text(" ", device_info(d).id, " |");
    line += "---|";
  }
  out += "\n" + line + "\n";
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    out += concat_text("| `", dtype_name(t), "` | ", dtype_bits(t), " |");
    for (Device d : devices) {
      const DTypeOps ops(d, t);
      constexpr std::size_t kListed = 24;
      const bool few = ops.kernels.size() + ops.parts.size() <= kListed;
      std::string cell;
      for (const auto& [how, names] : {std::pair{"**kernel**", &ops.kernels}, std::pair{"*parts*", &ops.parts}})
        if (!names->empty())
          cell += concat_text(cell.empty() ? "" : "; ", how, " ", few ? listed(*names) : concat_text(names->size()));
      if (!ops.missing.empty()) cell += concat_text(cell.empty() ? "" : "; ", "not ", listed(ops.missing));
      out += concat_text(" ", cell.empty() ? "no op" : cell, " |");
    }
    out += '\n';
  }
  out +=
      "\n## Devices\n\nIn order of preference; `rlx devices` says which can be used on a machine.\n\n| device | id | "
      "in this "
      "version |\n|---|---|---|\n";
  for (const DeviceInfo& d : by_priority())
    out += concat_text("| ", d.name, " | `", d.id, "` | ",
                       d.build_option.empty() ? "no backend" : concat_text("`", d.build_option, "`, on by default"),
                       " |\n");
  return out;
}

}  // namespace

void register_devices(CLI::App& app) {
  struct Args {
    std::string format = "text", output;
    bool environment = false, dtypes = false;
  };
  auto args = std::make_shared<Args>();
  CLI::App* cmd = app.add_subcommand("devices", "List devices and whether they can be used here");
  auto* format = cmd->add_option("--format", args->format, "text or json")
                     ->check(CLI::IsMember({"text", "json"}))
                     ->capture_default_str();
  auto* environment =
      cmd->add_flag("--env", args->environment, "the environment variables rlx reads, instead of the devices");
  auto* dtypes = cmd->add_flag("--dtypes", args->dtypes, "which dtypes run on which device, as a page: docs/devices.md")
                     ->excludes(format)
                     ->excludes(environment);
  cmd->add_option("-o,--output", args->output, "file for --dtypes instead of the standard output")
      ->type_name("FILE")
      ->needs(dtypes);
  cmd->callback([args] {
    if (!args->dtypes) return (args->environment ? list_environment : list_devices)(args->format == "json");
    Output out(args->output);
    out.write(dtypes_page());
    out.close();
  });
}

}  // namespace rlx::cli
