// The twelve devices: names, aliases, priority.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rlx {

enum class Device : std::uint8_t { Cpu, Metal, Mlx, Ane, Cuda, Rocm, Tpu, Gpu, Vulkan, OpenGl, DirectX, WebGpu };
inline constexpr int kNumDevices = 12;

/// What is fixed about a device.
struct DeviceInfo {
  Device device;
  std::string_view id;            // "cpu"
  std::string_view name;          // "CPU"
  std::string_view build_option;  // "RLX_CPU"; empty: this version has no backend for it
  int priority;                   // 1 is tried first
};

/// All devices in declaration order.
std::span<const DeviceInfo> all_devices();
/// Throws InvalidArgument for a number that is no Device; so does every function that takes one.
const DeviceInfo& device_info(Device d);
/// A device from its id or an alias ("cuda", "nvidia", "coreml", "gl", ...), any case; none when unknown.
std::optional<Device> parse_device(std::string_view text);

}  // namespace rlx
