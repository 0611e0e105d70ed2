// Queries of availability, priority and support.
#include "rlx/runtime/device_ext.h"

#include <algorithm>
#include <mutex>

#include "rlx/base/forks.h"
#include "rlx/compiler/preset_target.h"
#include "rlx/device/plugin_backend.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"
#include "rlx/runtime/absent_device.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/run_memory.h"

namespace rlx {
namespace {

// The target of a device under the options of a compile, and the graph as legalization receives it.
std::shared_ptr<const Target> target_of(Device d, const CompileOptions& options) {
  (void)load_listed_plugins();
  return target_with_options(target_or_preset(d), options);
}

KernelDispatchConfig dispatch_of(const CompileOptions& options) {
  return options.kernel_dispatch.value_or(KernelDispatchConfig{});
}

Graph lowered(const Graph& g, const CompileOptions& options) {
  PassContext context;
  context.policy = options.policy.value_or(context.policy);
  const Pass* passes[] = {&lower_hir, &canonicalize_dots};
  return run_passes(options.dim_binding.empty() ? g : g.bind(options.dim_binding), passes, context);
}

}  // namespace

std::string load_listed_plugins() {
  // The text loaded last. A later change of the variable takes effect too.
  static auto& mutex = *new ProcessMutex;
  static auto &known = *new std::string, &trouble = *new std::string;
  const std::string listed = env_get("RLX_PLUGINS").value_or("");
  std::lock_guard lock(mutex);
  if (listed == known) return trouble;
  known = listed;
  trouble.clear();
  for (std::size_t at = 0; at < listed.size();) {
    const std::size_t end = std::min(listed.find(':', at), listed.size());
    const std::string path = listed.substr(at, end - at);
    at = end + 1;
    if (path.empty()) continue;
    try {
      (void)load_plugin(path);
    } catch (const Error& e) {
      trouble += concat_text(trouble.empty() ? "RLX_PLUGINS: " : "; ", e.diagnostic().message);
    }
  }
  return trouble;
}

std::string unavailable_reason(Device d) noexcept {
  try {
    const std::string trouble = load_listed_plugins();
    Presence there = probe_device(d);
    if (there.count > 0) return {};
    return trouble.empty() ? std::move(there.reason) : concat_text(there.reason, "; ", trouble);
  } catch (const std::bad_alloc&) {
    return "out of memory";  // std::string stores it inline, without an allocation
  } catch (const std::exception& e) {
    return e.what();
  }
}

bool is_available(Device d) noexcept { return unavailable_reason(d).empty(); }

std::vector<Device> available_devices() {
  std::vector<Device> out;
  for (const DeviceInfo& info : all_devices())
    if (is_available(info.device)) out.push_back(info.device);
  return out;
}

std::vector<Device> available_apple_devices() {
  std::vector<Device> out;
#ifdef __APPLE__
  for (Device d : {Device::Metal, Device::Mlx, Device::Gpu})
    if (is_available(d)) out.push_back(d);
#endif
  return out;
}

Device fastest_device() {
  std::vector<Device> devices = available_devices();
  std::erase_if(devices, [](Device d) { return probe_device(d).software; });
  return fastest_among(devices);
}

Device fastest_among(std::span<const Device> devices) {
  auto best = std::min_element(devices.begin(), devices.end(),
                               [](Device a, Device b) { return device_info(a).priority < device_info(b).priority; });
  return best == devices.end() ? Device::Cpu : *best;
}

std::string full_name(Device d) {
  auto b = backend_for(d);
  if (!b || b->probe(d).count == 0) return std::string(device_info(d).name);
  return concat_text(device_info(d).name, ": ", b->target({})->name());
}

bool supports(Device d, OpKind op) {
  if (!is_available(d)) return false;
  const OpDef& def = op_def(op);
  return def.is_leaf() || def.decompose.has() || backend_for(d)->target({})->has(op);
}

bool supports_graph_with_options(Device d, const Graph& g, const CompileOptions& options) {
  return is_available(d) && dispatch_report_for_device_with_options(g, d, options).compile_ready();
}

std::vector<Device> devices_for(const Graph& g) {
  std::vector<Device> out;
  for (Device d : available_devices())
    if (supports_graph(d, g)) out.push_back(d);
  return out;
}

Graph legalize_graph_for_device_with_options(const Graph& g, Device d, const CompileOptions& options,
                                             KernelDispatchReport* report) {
  const auto target = target_of(d, options);
  return legalize_or_rewrite_for_backend(lowered(g, options), *target, target->name(), report, dispatch_of(options));
}

KernelDispatchReport dispatch_report_for_device_with_options(const Graph& g, Device d, const CompileOptions& options) {
  const auto target = target_of(d, options);
  KernelDispatchReport report;
  rewrite_for_backend(lowered(g, options), *target, target->name(), report, dispatch_of(options));
  return report;
}

std::optional<std::pair<std::size_t, OpKind>> first_unsupported_op_with_options(Device d, const Graph& source,
                                                                                const CompileOptions& options) {
  const Graph g = options.dim_binding.empty() ? source : source.bind(options.dim_binding);
  if (g.num_nodes() == 0) return std::nullopt;
  if (!is_available(d)) return std::pair{std::size_t{0}, g.nodes()[0].kind()};
  const auto target = target_of(d, options);
  // Node by node, so that the answer names a node of the caller's graph.
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    if (needs_no_kernel(n) || target->claims(g, NodeId{i})) continue;
    Graph one("probe");
    std::vector<Value> operands;
    for (std::size_t k = 0; k < n.inputs.size(); ++k)
      operands.push_back(one.input("x" + std::to_string(k), g.shape(n.inputs[k])));
    Expr e = one.add(n.op, operands);
    std::vector<Value> outputs;
    for (std::uint32_t r = 0; r < n.num_results(); ++r) outputs.push_back(e.result(r));
    one.set_outputs(outputs);
    KernelDispatchReport report;
    rewrite_for_backend(lowered(one, options), *target, target->name(), report, dispatch_of(options));
    if (!report.compile_ready()) return std::pair{std::size_t{i}, n.kind()};
  }
  return std::nullopt;
}

bool supports_run_slots(Device d) {
  return is_available(d);  // the runtime keeps the results of every device in host memory of the program
}

namespace {
// True when sessions can use the value in place. False on a lost device, and on a device opened by a backend that is
// gone.
bool is_reached(const Tensor& value) {
  const OpenDevice* const on = value.buffer() ? value.buffer()->opened() : nullptr;
  if (!on) return true;
  const auto open = opened_devices(value.device().kind);
  return !on->lost() && std::any_of(open.begin(), open.end(), [&](const auto& d) { return d.get() == on; });
}
}  // namespace

namespace {
void require_value(const Tensor& value, DeviceId id) {
  if (value.empty())
    throw Error(ErrorCode::InvalidArgument, concat_text("to ", device_text(id), ": an empty tensor was given"),
                "the tensor was never given a value, or was moved from");
}
}  // namespace

Tensor to(const Tensor& value, DeviceId id) {
  require_value(value, id);
  if (value.device() == id && is_reached(value)) return value;
  return value_on(*open_device(require_backend(id.kind), id), value.to_host());
}

Tensor to(const Tensor& value, OpenDevice& device) {
  require_value(value, device.id());
  if (value.buffer() && value.buffer()->opened() == &device) return value;
  return value_on(device, value.to_host());
}

void drain_device(Device d) {
  (void)require_backend(d);
  for (const std::shared_ptr<OpenDevice>& device : opened_devices(d)) device->drain();
}

}  // namespace rlx
