// The adapters of this machine: what wgpu-native finds for a kind of device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/backends/wgpu/abi.h"
#include "rlx/tensor/buffer.h"

namespace rlx::wgpu {

/// What is known of an adapter before it is opened.
struct AdapterFacts {
  abi::Adapter handle = nullptr;
  std::string name, driver;  // "llvmpipe (LLVM 15.0.6, 256 bits)", "Mesa 22.3.6"
  abi::BackendType backend{};
  abi::AdapterType type{};
  abi::Limits limits{};
  bool timestamps = false;
  /// A rasteriser that runs on the cpu.
  bool software() const { return type == abi::AdapterType::Cpu; }
  /// A rasteriser of Mesa, which stops the loops of a thread without a word after 65,535 steps, all loops of a kernel
  /// together.
  bool cuts_loops() const { return software() && name.find("llvmpipe") != std::string::npos; }
  bool gl() const { return backend == abi::BackendType::OpenGl || backend == abi::BackendType::OpenGlEs; }
  /// "llvmpipe (LLVM 15.0.6, 256 bits), Vulkan, Mesa 22.3.6, software".
  std::string text() const;
};

/// Steps that such an adapter runs for sure.
inline constexpr std::int64_t kMostSteps = 65000;

/// What a kind of device can be opened on, hardware first; the place in the list is the ordinal. Where it is empty,
/// `reason` says why and what helps.
struct Adapters {
  const abi::Api* api = nullptr;
  std::vector<AdapterFacts> list;
  std::string reason;
};

/// Those of Gpu, Vulkan, OpenGl, DirectX or WebGpu: looked for once for each library and RLX_GPU_ADAPTER, which leaves
/// those whose name or driver has it as a part.
const Adapters& adapters_of(Device kind);

/// The same of a library, looked for now: those of the kind's interface, of which `wanted` is a part of name or driver.
Adapters find_adapters(const abi::Api& api, Device kind, std::string_view wanted);

/// True when software adapters may be chosen for whoever does not ask for them: RLX_GPU_ALLOW_SOFTWARE.
bool software_allowed();

/// The limits that every WebGPU device has; those of adapters are at least these.
abi::Limits default_limits();

}  // namespace rlx::wgpu
