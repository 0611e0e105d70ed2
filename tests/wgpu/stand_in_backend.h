// The backend of wgpu on devices of the stand-in, for tests: what programs, streams and faults do where no driver is.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "rlx/backends/wgpu/device.h"
#include "rlx/backends/wgpu/library.h"
#include "rlx/device/registry.h"
#include "tests/support/paths.h"
#include "tests/wgpu/stand_in.h"

namespace rlx::test {

inline std::string stand_in_path() { return build_path("tests/libwgpu_stand_in.so"); }

/// While it is there, a device is the stand-in's first adapter of that sort.
class StandIn {
 public:
  explicit StandIn(Device kind = Device::Vulkan) : kind_(kind) {
    control().reset();
    register_backend(kind, std::make_shared<OnStandIn>(backend_for(kind)));
  }
  ~StandIn() { register_backend(kind_, nullptr); }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  static const StandInControl& control() {
    static const auto* const there = [] {
      void* const library = ::dlopen(stand_in_path().c_str(), RTLD_NOW | RTLD_LOCAL);
      REQUIRE_MESSAGE(library, ::dlerror());
      return static_cast<const StandInControl*>(::dlsym(library, "stand_in"));
    }();
    return *there;
  }
  static const wgpu::abi::Api& api() {
    static const wgpu::abi::Api functions = [] {
      const std::string path[] = {stand_in_path()};
      const Result<wgpu::abi::Api> opened = wgpu::open_library(path);
      REQUIRE_MESSAGE(opened.ok(), opened.error().text());
      return *opened;
    }();
    return functions;
  }
  /// The adapters of a kind, as they are set now.
  static wgpu::Adapters adapters(Device kind, std::string_view wanted = {}) {
    return wgpu::find_adapters(api(), kind, wanted);
  }
  /// What no run may do; "" when nothing was.
  static std::string broken() {
    const char* const what = control().broken();
    return what ? what : "";
  }
  /// The same in browsers.
  static std::string refused() {
    const char* const what = control().refused();
    return what ? what : "";
  }

 private:
  class OnStandIn final : public Backend {
   public:
    explicit OnStandIn(std::shared_ptr<const Backend> wgpu) : wgpu_(std::move(wgpu)) {}
    std::string_view name() const override { return wgpu_->name(); }
    Presence probe(Device) const noexcept override { return {1}; }
    std::span<const DeviceOptionInfo> option_infos() const override { return wgpu_->option_infos(); }
    BackendOptions compile_options(const DeviceOptions& o) const override { return wgpu_->compile_options(o); }
    std::shared_ptr<const Target> target(const BackendOptions& o) const override { return wgpu_->target(o); }
    std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& o) const override {
      return wgpu_->compile_lir(std::move(lir), o);
    }
    std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions& options) const override {
      const auto memory = options.find("memory");
      // Its adapter is asked by errors as long as it is there.
      const auto found = std::make_shared<const wgpu::Adapters>(adapters(id.kind));
      const std::shared_ptr<wgpu::Gpu> gpu(
          new wgpu::Gpu(api(), found->list.at(0), id.kind == Device::WebGpu, device_text(id)), [found](wgpu::Gpu* g) {
            delete g;
            for (const wgpu::AdapterFacts& a : found->list) api().AdapterRelease(a.handle);
          });
      return std::make_shared<wgpu::WgpuDevice>(id, gpu, memory == options.end() ? 0 : std::stoull(memory->second));
    }

   private:
    std::shared_ptr<const Backend> wgpu_;
  };

  Device kind_;
};

}  // namespace rlx::test
