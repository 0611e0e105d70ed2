// Availability, priority and support queries.
#include "rlx/runtime/device_ext.h"

#include <algorithm>

#include "rlx/driver/registry.h"
#include "rlx/ir/op_def.h"

namespace rlx {
namespace {

// What a compile asks of a device: its target under the options, and the graph as legalisation gets it.
std::shared_ptr<const Target> target_of(Device d, const CompileOptions& options) {
  return target_with_options(require_backend(d)->target({}), options);
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

std::string unavailable_reason(Device d) noexcept {
  try {
    Presence there = probe_device(d);
    return there.count > 0 ? std::string() : std::move(there.reason);
  } catch (const std::bad_alloc&) {
    return "out of memory";  // lies inside the string
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
  // Node by node, so that the answer names a node of the graph that was given.
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
  return d == Device::Cpu || d == Device::Metal || d == Device::Mlx || d == Device::Cuda || d == Device::Rocm;
}

void drain_device(Device d) {
  (void)require_backend(d);
  for (const std::shared_ptr<OpenDevice>& device : opened_devices(d)) device->drain();
}

}  // namespace rlx
