// The twelve kinds of devices: names, aliases, priorities.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/error.h"
#include "rlx/tensor/buffer.h"

namespace rlx {

/// Constant properties of a device kind.
struct DeviceInfo {
  Device device;
  std::string_view id;            // "cpu"
  std::string_view name;          // "CPU"
  std::string_view build_option;  // "RLX_CPU"; empty: this version has no backend for it
  int priority;                   // 1 is tried first
};

/// All devices in declaration order.
std::span<const DeviceInfo> all_devices();
/// InvalidArgument for a number that is not an enumerator of Device, as in every function that takes a Device.
const DeviceInfo& device_info(Device d);
/// A device from its id or an alias ("cuda", "nvidia", "coreml", "gl", ...), any case; none when unknown.
std::optional<Device> parse_device(std::string_view text);
/// The same with an ordinal after a colon ("cuda:1"); without one the first device.
std::optional<DeviceId> parse_device_id(std::string_view text);
/// The error for a `text` that is not a device: its ordinal is invalid, or its kind is unknown. The hint is the most
/// similar kind or entry of `others`.
Diagnostic no_such_device(std::string_view text, std::vector<std::string> others = {});
/// "cuda:1"; "cuda" for the first device.
std::string device_text(DeviceId id);

}  // namespace rlx
