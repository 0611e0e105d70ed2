// The capabilities of this build and this machine, by device.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/device.h"
#include "rlx/ir/graph.h"

namespace rlx {

/// True when the device can be used now.
bool is_available(Device d) noexcept;
/// Why it cannot be used; empty when it can.
std::string unavailable_reason(Device d) noexcept;
/// Usable devices in declaration order.
std::vector<Device> available_devices();
/// The usable devices among Metal, Mlx and Gpu (Apple builds only).
std::vector<Device> available_apple_devices();
/// The usable device of highest priority. Software that emulates hardware does not count.
Device fastest_device();
/// The first in priority order that is in `devices`; otherwise the first of `devices`; Cpu when it is empty.
Device fastest_among(std::span<const Device> devices);
/// Display name.
std::string full_name(Device d);
/// True when the device is usable, and it has a kernel for `op` with some dtype or attributes, or the op decomposes.
bool supports(Device d, OpKind op);
/// True when the device is usable and every node of `g` can be compiled for it, with the claims, symbol values and HIR
/// policy of `options`.
bool supports_graph_with_options(Device d, const Graph& g, const CompileOptions& options);
inline bool supports_graph(Device d, const Graph& g) { return supports_graph_with_options(d, g, {}); }
/// Usable devices that support `g`.
std::vector<Device> devices_for(const Graph& g);
/// The legalization of a compile, without a plan. Needs no live device. Throws one error that lists every node that
/// cannot run.
Graph legalize_graph_for_device_with_options(const Graph& g, Device d, const CompileOptions& options,
                                             KernelDispatchReport* report = nullptr);
inline Graph legalize_graph_for_device(const Graph& g, Device d, KernelDispatchReport* report = nullptr) {
  return legalize_graph_for_device_with_options(g, d, {}, report);
}
/// Legalizes a copy of `g` and reports how each kind of op reaches the device (DispatchPath).
KernelDispatchReport dispatch_report_for_device_with_options(const Graph& g, Device d, const CompileOptions& options);
inline KernelDispatchReport dispatch_report_for_device(const Graph& g, Device d) {
  return dispatch_report_for_device_with_options(g, d, {});
}
/// The first node that the device cannot run (index and kind), or none. For an unusable device: node 0.
std::optional<std::pair<std::size_t, OpKind>> first_unsupported_op_with_options(Device d, const Graph& g,
                                                                                const CompileOptions& options);
inline std::optional<std::pair<std::size_t, OpKind>> first_unsupported_op(Device d, const Graph& g) {
  return first_unsupported_op_with_options(d, g, {});
}
/// True when programs of the device have run_slots: wherever the device can be used, since the runtime keeps results in
/// host memory of the program.
bool supports_run_slots(Device d);
/// The value on that device: the value itself if it is already there, else a copy that is complete before the device
/// uses it.
Tensor to(const Tensor& value, DeviceId device);
/// The same for a device opened by a session, possibly with options: `to(x, *session.open_device())`.
Tensor to(const Tensor& value, OpenDevice& device);
/// Blocks until everything submitted to the device is done.
void drain_device(Device d);

}  // namespace rlx
