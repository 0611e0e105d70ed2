// The wgpu backend: one object for each kind of device that it serves.
#include <charconv>
#include <memory>
#include <string>

#include "rlx/backends/wgpu/adapters.h"
#include "rlx/backends/wgpu/device.h"
#include "rlx/backends/wgpu/differences.h"
#include "rlx/backends/wgpu/driver_cache.h"
#include "rlx/backends/wgpu/executable.h"
#include "rlx/backends/wgpu/target.h"
#include "rlx/device/device.h"
#include "rlx/device/registry.h"

namespace rlx {
namespace {

class WgpuBackend final : public Backend {
 public:
  explicit WgpuBackend(Device kind) : kind_(kind) {}
  std::string_view name() const override { return "wgpu"; }
  Presence probe(Device kind) const noexcept override {
    try {
      const wgpu::Adapters& found = wgpu::adapters_of(kind);
      if (found.list.empty()) return {0, found.reason};
      const bool software = found.list.front().software() && !wgpu::software_allowed();
      if (software && kind == Device::Gpu)
        return {0, concat_text("the only adapter is ", found.list.front().text(),
                               "; use device vulkan or opengl to get it, or set RLX_GPU_ALLOW_SOFTWARE=1")};
      return {static_cast<int>(found.list.size()), {}, software};
    } catch (const std::bad_alloc&) {
      return {0, "out of memory"};  // fits the small-string buffer
    } catch (const std::exception& e) {
      return {0, e.what()};
    }
  }
  std::string describe(Device kind) const override {
    std::string out;
    for (const wgpu::AdapterFacts& a : wgpu::adapters_of(kind).list)
      out += concat_text(out.empty() ? "" : "; ", a.text(), ", values of up to ",
                         a.limits.storage_buffer_binding_size >> 20, " MiB");
    return out;
  }
  std::span<const Difference> differences() const override { return wgpu::kDifferences; }
  std::span<const DeviceOptionInfo> option_infos() const override {
    static constexpr DeviceOptionInfo infos[] = {
        {"memory", "limit of the bytes in buffers (default: what the driver allows)", true},
        {"kernels", "hardware or software: which kernels are written (default: by the adapter)", false},
    };
    return infos;
  }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions& options) const override {
    std::size_t memory = 0;
    if (const auto it = options.find("memory"); it != options.end()) {
      const char* const end = it->second.data() + it->second.size();
      const auto read = std::from_chars(it->second.data(), end, memory);
      if (read.ec != std::errc() || read.ptr != end || memory == 0)
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("device ", device_text(id), ", option memory = '", it->second,
                                "': it is not a number of bytes"),
                    "pass a number from 1 on");
    }
    const wgpu::Adapters& found = wgpu::adapters_of(id.kind);
    const wgpu::AdapterFacts& adapter = found.list.at(static_cast<std::size_t>(id.ordinal));  // probed before
    if (const std::string folder = wgpu::full_cache(adapter.driver); !folder.empty())
      throw Error(ErrorCode::DeviceUnavailable,
                  concat_text("device ", device_text(id), " (", adapter.text(), ") cannot be opened: the disk of ",
                              folder, ", Mesa's shader cache, is full, and Mesa would then end this process"),
                  "free space there, or set MESA_SHADER_CACHE_DIR to another folder or MESA_SHADER_CACHE_DISABLE=true");
    auto gpu = std::make_shared<wgpu::Gpu>(*found.api, adapter, id.kind == Device::WebGpu, device_text(id));
    return std::make_shared<wgpu::WgpuDevice>(id, std::move(gpu), memory);
  }
  std::shared_ptr<const Target> target(const BackendOptions&) const override { return wgpu::target_of(kind_); }
  BackendOptions compile_options(const DeviceOptions& options) const override {
    if (const auto it = options.find("kernels");
        it != options.end() && it->second != "hardware" && it->second != "software")
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("invalid option kernels = '", it->second, "' for a wgpu device"),
                  "pass hardware or software");
    return Backend::compile_options(options);
  }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& options) const override {
    codegen::Dialect dialect = wgpu::dialect_of(kind_);
    if (const auto it = options.options.find("kernels"); it != options.options.end())
      dialect.software = it->second == "software";
    return std::make_unique<wgpu::WgpuExecutable>(std::move(lir), dialect);
  }

 private:
  Device kind_;
};

constexpr Device kDevices[] = {Device::Gpu, Device::Vulkan, Device::OpenGl, Device::WebGpu};

}  // namespace

extern const BackendEntry wgpu_backend;
const BackendEntry wgpu_backend{"wgpu", kDevices, [](Device kind) -> const Backend& {
                                  static const WgpuBackend gpu(Device::Gpu), vulkan(Device::Vulkan), gl(Device::OpenGl),
                                      web(Device::WebGpu);
                                  switch (kind) {
                                    case Device::Vulkan: return vulkan;
                                    case Device::OpenGl: return gl;
                                    case Device::WebGpu: return web;
                                    default: return gpu;
                                  }
                                }};

}  // namespace rlx
