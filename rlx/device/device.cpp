// Device names and aliases.
#include "rlx/device/device.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "rlx/error.h"

namespace rlx {
namespace {
constexpr DeviceInfo kDevices[kNumDevices] = {
    {Device::Cpu, "cpu", "CPU", "RLX_CPU", 12},
    {Device::Metal, "metal", "Metal", "", 5},
    {Device::Mlx, "mlx", "MLX", "", 4},
    {Device::Ane, "ane", "ANE", "", 6},
    {Device::Cuda, "cuda", "CUDA", "", 2},
    {Device::Rocm, "rocm", "ROCm", "", 3},
    {Device::Tpu, "tpu", "TPU", "RLX_TPU", 1},
    {Device::Gpu, "gpu", "GPU (wgpu)", "RLX_WGPU", 7},
    {Device::Vulkan, "vulkan", "Vulkan", "RLX_WGPU", 8},
    {Device::OpenGl, "opengl", "OpenGL", "RLX_WGPU", 10},
    {Device::DirectX, "directx", "DirectX 12", "", 9},
    {Device::WebGpu, "webgpu", "WebGPU", "RLX_WGPU", 11},
};

struct Alias {
  std::string_view text;
  Device device;
};
constexpr Alias kAliases[] = {
    {"mtl", Device::Metal}, {"coreml", Device::Ane},   {"neural-engine", Device::Ane}, {"nvidia", Device::Cuda},
    {"hip", Device::Rocm},  {"amd", Device::Rocm},     {"wgpu", Device::Gpu},          {"vk", Device::Vulkan},
    {"gl", Device::OpenGl}, {"dx12", Device::DirectX}, {"d3d12", Device::DirectX},
};
}  // namespace

std::span<const DeviceInfo> all_devices() { return kDevices; }
const DeviceInfo& device_info(Device d) {
  if (static_cast<int>(d) >= kNumDevices) detail::throw_no_enumerator("Device", static_cast<std::int64_t>(d));
  return kDevices[static_cast<int>(d)];
}

std::optional<Device> parse_device(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const DeviceInfo& d : kDevices)
    if (d.id == low) return d.device;
  for (const Alias& a : kAliases)
    if (a.text == low) return a.device;
  return std::nullopt;
}

std::optional<DeviceId> parse_device_id(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::optional<Device> kind = parse_device(text.substr(0, colon));
  if (!kind || colon == std::string_view::npos) return kind ? std::optional(DeviceId(*kind)) : std::nullopt;
  const std::string_view number = text.substr(colon + 1);
  int ordinal = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ordinal);
  if (error != std::errc() || end != number.data() + number.size() || ordinal < 0) return std::nullopt;
  return DeviceId(*kind, ordinal);
}

Diagnostic no_such_device(std::string_view text, std::vector<std::string> others) {
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos && parse_device(text.substr(0, colon)))
    return {ErrorCode::DeviceUnavailable,
            concat_text("device '", text, "': '", text.substr(colon + 1), "' is not an ordinal"), "",
            concat_text("ordinals count from 0: ", text.substr(0, colon), ":1 is the second of the kind")};
  for (const DeviceInfo& d : all_devices()) others.emplace_back(d.id);
  return {ErrorCode::DeviceUnavailable, concat_text("there is no device '", text, "'"), "",
          did_you_mean(text, others, quoted_names(others, 13))};
}

std::string device_text(DeviceId id) {
  std::string text(device_info(id.kind).id);
  return id.ordinal == 0 ? text : text + ":" + std::to_string(id.ordinal);
}
}  // namespace rlx
