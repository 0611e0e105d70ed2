// The adapters of this machine that wgpu-native finds for a kind of device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/backends/wgpu/abi.h"
#include "rlx/tensor/buffer.h"

namespace rlx::wgpu {

/// The properties of an adapter that is not opened yet.
struct AdapterFacts {
  abi::Adapter handle = nullptr;
  std::string name, driver;  // "llvmpipe (LLVM 15.0.6, 256 bits)", "Mesa 22.3.6"
  abi::BackendType backend{};
  abi::AdapterType type{};
  abi::Limits limits{};
  bool timestamps = false;
  /// True for a software rasterizer.
  bool software() const { return type == abi::AdapterType::Cpu; }
  /// True for Mesa's rasterizer. It silently stops the loops of a thread after 65,535 iterations, counted over all
  /// loops of a kernel.
  bool limits_loop_length() const { return software() && name.find("llvmpipe") != std::string::npos; }
  bool gl() const { return backend == abi::BackendType::OpenGl || backend == abi::BackendType::OpenGlEs; }
  /// "llvmpipe (LLVM 15.0.6, 256 bits), Vulkan, Mesa 22.3.6, software".
  std::string text() const;
};

/// Loops of a kernel with up to this many iterations in all run to their end on such an adapter.
inline constexpr std::int64_t kMostSteps = 65000;

/// The adapters that a kind of device can be opened on, hardware first; the index in the list is the ordinal. When the
/// list is empty, `reason` says why and what helps.
struct Adapters {
  const abi::Api* api = nullptr;
  std::vector<AdapterFacts> list;
  std::string reason;
};

/// The adapters of Gpu, Vulkan, OpenGl, DirectX or WebGpu. They are looked up once per library and RLX_GPU_ADAPTER.
/// That variable keeps the adapters whose name or driver contains it.
const Adapters& adapters_of(Device kind);

/// The same for a library, without a cache: the adapters of the kind's interface whose name or driver contains
/// `wanted`.
Adapters find_adapters(const abi::Api& api, Device kind, std::string_view wanted);

/// True when software adapters may be chosen without being requested: RLX_GPU_ALLOW_SOFTWARE.
bool software_allowed();

/// The limits that every WebGPU device has. Adapters have at least these.
abi::Limits default_limits();

}  // namespace rlx::wgpu
