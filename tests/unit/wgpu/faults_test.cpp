// Faults of wgpu-native, with a fake library that can fail in each of its functions. Each fault gives an error that
// names the device and the way out, nothing leaks, and a new session works.
#include <doctest/doctest.h>

#include <vector>

#include "rlx/device/device.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/run_memory.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"
#include "tests/wgpu/stand_in_backend.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::f32;
using test::StandIn;
using test::StandInAdapter;
using test::StandInFault;
using wgpu::abi::AdapterType;
using wgpu::abi::BackendType;

// s += x; last = x; the outputs are x and x * w. The fake library executes copies only, so only their values are right.
Graph sum_of_runs() {
  Graph g("counter");
  const Expr x = g.input("x", f32({4})), w = g.param("w", f32({4}));
  const Expr s = g.state("s", Tensor::zeros(f32({4}))), last = g.state("last", Tensor::zeros(f32({4})));
  g.set_state("s", s + x);
  g.set_state("last", x);
  g.set_outputs({x, x * w, last});
  return g;
}

// All uses of a device by a program. Nothing is called inside a CHECK, because a CHECK catches exceptions.
void use(const Session& session) {
  CompiledGraph f = session.compile(sum_of_runs());
  f.set_param("w", Tensor::full(f32({4}), 2));
  for (int i = 0; i < 2; ++i) {
    const std::vector<float> x(4, static_cast<float>(3 + i));
    const std::vector<float> out = f.run({{"x", x}})[0], last = f.read_state("last").to_f32();
    CHECK(out == x);
    CHECK(last == x);
  }
  const Tensor there = value_on(*session.open_device(), Tensor::full(f32({4}), 9));
  f.run_device({{"x", there}});
  const std::vector<float> before = f.run_device({{"x", there}})[2].to_host().to_f32();
  CHECK(before == std::vector<float>(4, 9));
}

constexpr const char* kFunctions[] = {"DeviceCreateBuffer",
                                      "DeviceCreateShaderModule",
                                      "DeviceCreateBindGroupLayout",
                                      "DeviceCreatePipelineLayout",
                                      "DeviceCreateComputePipeline",
                                      "DeviceCreateBindGroup",
                                      "DeviceCreateCommandEncoder",
                                      "QueueWriteBuffer",
                                      "QueueSubmitForIndex",
                                      "BufferMapAsync",
                                      "BufferGetConstMappedRange",
                                      "CommandEncoderBeginComputePass",
                                      "CommandEncoderCopyBufferToBuffer",
                                      "CommandEncoderFinish",
                                      "ComputePassEncoderDispatchWorkgroups",
                                      "DevicePoll"};

}  // namespace

TEST_CASE("wgpu: no adapter: what is missing, for each kind of device") {
  const StandIn stand_in;
  stand_in.control().set_adapters(nullptr, 0);
  CHECK(contains(StandIn::adapters(Device::Vulkan).reason, "no Vulkan driver was found (Debian: libvulkan1"));
  CHECK(contains(StandIn::adapters(Device::OpenGl).reason, "OpenGL ES 3.1 driver was found through EGL"));
  CHECK(contains(StandIn::adapters(Device::Gpu).reason, "no driver of Vulkan or OpenGL was found"));
  CHECK(contains(StandIn::adapters(Device::WebGpu).reason, "no driver of Vulkan or OpenGL was found"));
  CHECK(contains(StandIn::adapters(Device::DirectX).reason, "no driver of DirectX 12 was found"));
}

TEST_CASE("wgpu: a kind of device takes the adapters of its interface, hardware first, and RLX_GPU_ADAPTER chooses") {
  const StandIn stand_in;
  const StandInAdapter list[] = {{"raster", BackendType::Vulkan, AdapterType::Cpu},
                                 {"card", BackendType::OpenGl, AdapterType::DiscreteGpu},
                                 {"card", BackendType::D3d12, AdapterType::DiscreteGpu},
                                 {"chip", BackendType::D3d12, AdapterType::IntegratedGpu},
                                 {"card", BackendType::Vulkan, AdapterType::DiscreteGpu}};
  stand_in.control().set_adapters(list, std::size(list));
  const auto names = [](Device kind, std::string_view wanted = {}) {
    std::vector<std::string> out;
    for (const wgpu::AdapterFacts& a : StandIn::adapters(kind, wanted).list) out.push_back(a.text());
    return out;
  };
  using Names = std::vector<std::string>;
  CHECK(names(Device::DirectX) == Names{"card, DirectX 12, a driver", "chip, DirectX 12, a driver"});
  CHECK(names(Device::Vulkan) == Names{"card, Vulkan, a driver", "raster, Vulkan, a driver, software"});
  CHECK(names(Device::OpenGl) == Names{"card, OpenGL, a driver"});
  CHECK(names(Device::WebGpu).size() == 5);
  CHECK(names(Device::Gpu) == Names{"card, DirectX 12, a driver", "card, Vulkan, a driver", "card, OpenGL, a driver",
                                    "chip, DirectX 12, a driver", "raster, Vulkan, a driver, software"});
  CHECK(names(Device::DirectX, "CHIP") == Names{"chip, DirectX 12, a driver"});
  CHECK(names(Device::Gpu, "software").size() == 1);
  CHECK(StandIn::adapters(Device::Vulkan, "chip").reason ==
        "RLX_GPU_ADAPTER = 'chip' matches no adapter; the adapters are: raster, Vulkan, a driver, software; "
        "card, Vulkan, a driver");
}

TEST_CASE("wgpu: devices of DirectX open like others; on this system there are none") {
  const StandIn stand_in;
  const StandInAdapter card{"card", BackendType::D3d12, AdapterType::DiscreteGpu};
  stand_in.control().set_adapters(&card, 1);
  const wgpu::Adapters found = StandIn::adapters(Device::DirectX);
  REQUIRE(found.list.size() == 1);
  const auto gpu = std::make_shared<wgpu::Gpu>(*found.api, found.list[0], false, "directx");
  const auto device = std::make_shared<wgpu::WgpuDevice>(Device::DirectX, gpu, 0);
  const std::vector<float> x{1, 2, 3};
  const std::shared_ptr<Buffer> buffer = device->allocate(12, BufferUse::Values);
  device->stream(0)->upload(std::as_bytes(std::span(x)), BufferView(*buffer, 0, 12));
  std::vector<float> back(3);
  buffer->read(std::as_writable_bytes(std::span(back)));
  CHECK(back == x);
#ifndef _WIN32
  CHECK(wgpu::adapters_of(Device::DirectX).reason == "DirectX 12 exists on Windows only");
#endif
  CHECK(contains(error_text([] { Session session(Device::DirectX); }), "this version has no DirectX 12 backend"));
}

TEST_CASE("wgpu: webgpu asks for WebGPU's default limits, others for all that the adapter has") {
  const StandIn stand_in;
  const StandInAdapter card{"card", BackendType::Vulkan, AdapterType::DiscreteGpu, 3U << 30, std::uint64_t{4} << 30};
  stand_in.control().set_adapters(&card, 1);
  const wgpu::Adapters found = StandIn::adapters(Device::WebGpu);
  const auto web = std::make_shared<wgpu::Gpu>(*found.api, found.list.at(0), true, "webgpu");
  const auto all = std::make_shared<wgpu::Gpu>(*found.api, found.list.at(0), false, "vulkan");
  CHECK(web->limits().storage_buffer_binding_size == wgpu::default_limits().storage_buffer_binding_size);
  CHECK(web->limits().buffer_size == wgpu::default_limits().buffer_size);
  CHECK(web->limits().storage_buffers_per_stage == wgpu::default_limits().storage_buffers_per_stage);
  CHECK(web->limits().workgroup_storage_size == wgpu::default_limits().workgroup_storage_size);
  CHECK_FALSE(web->timestamps());
  CHECK(all->limits().storage_buffer_binding_size == card.binding_bytes);
  CHECK(all->limits().buffer_size == card.buffer_bytes);
  const auto device = std::make_shared<wgpu::WgpuDevice>(Device::WebGpu, web, 0);
  CHECK(contains(error_text([&] { (void)device->allocate(257 << 20, BufferUse::Values); }),
                 "device webgpu has no memory for 269484032 bytes of values, the limit is 268435456"));
  const TargetLimits limits = require_backend(Device::WebGpu)->target({})->limits();
  CHECK(limits.max_buffer_bytes == std::size_t{128} << 20);
  CHECK(limits.max_bindings == 7);
  CHECK(limits.view_alignment == 256);
}

TEST_CASE("wgpu: an adapter that cannot be opened") {
  const StandIn stand_in;
  stand_in.control().fault("AdapterRequestDevice", 0, StandInFault::Invalid, 1);
  const std::string text = error_text([] { Session session(Device::Vulkan); });
  CHECK_MESSAGE(contains(text,
                         "device unavailable: device vulkan (stand-in, Vulkan, a driver) cannot be opened: the driver "
                         "says no"),
                text);
  use(Session(Device::Vulkan));
}

TEST_CASE("wgpu: a device that is lost at any call: told by the next that matters, and a new session works") {
  const StandIn stand_in;
  const std::size_t before = stand_in.control().live();
  for (const char* function : kFunctions)
    for (const StandInFault how : {StandInFault::Lost, StandInFault::Silent}) {
      std::size_t nth = 0;
      for (;; ++nth) {
        CAPTURE(std::string(function));
        CAPTURE(nth);
        CAPTURE(how == StandInFault::Lost);
        const Session session(Device::Vulkan);
        stand_in.control().fault(function, nth, how, 1);
        std::string text = error_text([&] { use(session); });
        const bool happened = stand_in.control().faulted();
        if (happened && text.empty()) text = error_text([&] { use(session); });  // it failed in the last call
        if (!happened) {
          CHECK(text.empty());
          break;
        }
        CHECK_MESSAGE(contains(text, "device lost: "), text);
        CHECK_MESSAGE(contains(text, "device vulkan"), text);
        CHECK_MESSAGE(contains(text, "was lost"), text);
        CHECK_MESSAGE(contains(text, "make a new session"), text);
        CHECK(session.open_device()->lost());
        use(Session(Device::Vulkan));
        CHECK(StandIn::broken() == "");
      }
      CHECK_MESSAGE(nth > 0, function, " is never called");
    }
  CHECK(stand_in.control().live() == before);
}

TEST_CASE("wgpu: a call that is refused is told with the device and what it was for, and the session goes on") {
  const StandIn stand_in;
  const std::size_t before = stand_in.control().live();
  for (const char* function : kFunctions) {
    const std::string name = function;
    if (name == "QueueSubmitForIndex" || name == "DevicePoll") continue;  // the library ends the process if this fails
    std::size_t nth = 0;
    for (;; ++nth) {
      CAPTURE(std::string(function));
      CAPTURE(nth);
      const Session session(Device::Vulkan);
      stand_in.control().fault(function, nth, StandInFault::Invalid, 1);
      const std::string text = error_text([&] { use(session); });
      if (!stand_in.control().faulted()) break;
      CHECK_MESSAGE(contains(text, "device vulkan"), text);
      if (name == "BufferGetConstMappedRange")  // said to be there, and is not
        CHECK_MESSAGE(contains(text, "was lost: results could not be copied to the host"), text);
      else
        CHECK_MESSAGE((contains(text, "this is not valid") && contains(text, "please report it")), text);
      use(Session(Device::Vulkan));
      CHECK(StandIn::broken() == "");
    }
    CHECK_MESSAGE(nth > 0, function, " is never called");
  }
  CHECK(stand_in.control().live() == before);
}

TEST_CASE("wgpu: a driver without memory: asked again when the queue has drained, then told") {
  const StandIn stand_in;
  const Session session(Device::Vulkan);
  use(session);
  OpenDevice& device = *session.open_device();
  const std::shared_ptr<Buffer> held = device.allocate(100, BufferUse::Values);
  stand_in.control().fault("DeviceCreateBuffer", 0, StandInFault::OutOfMemory, 1);
  CHECK(device.allocate(1000, BufferUse::Values)->bytes() == 1000);
  CHECK(stand_in.control().faulted());
  stand_in.control().fault("DeviceCreateBuffer", 0, StandInFault::OutOfMemory, 2);
  const std::string text = error_text([&] { (void)device.allocate(1000, BufferUse::Values); });
  CHECK_MESSAGE(contains(text, "out of memory: device vulkan has no memory for 1000 bytes of values"), text);
  CHECK_MESSAGE(contains(text, "in use are 100 bytes for values: free what is not needed"), text);
  use(session);
  CHECK(StandIn::broken() == "");
}

TEST_CASE("wgpu: results that the library says it cannot bring lose the device") {
  const StandIn stand_in;
  const Session session(Device::Vulkan);
  stand_in.control().fault("BufferMapAsync", 1, StandInFault::MapFails, 1);
  const std::string text = error_text([&] { use(session); });
  CHECK_MESSAGE(contains(text, "device vulkan (stand-in, Vulkan, a driver) was lost: results could not be copied"),
                text);
  CHECK(session.open_device()->lost());
  use(Session(Device::Vulkan));
  CHECK(StandIn::broken() == "");
}

TEST_CASE("wgpu: a value that a run makes larger than a binding may be names kernel, node and both sizes") {
  const StandIn stand_in;
  const StandInAdapter small{"small", BackendType::Vulkan, AdapterType::DiscreteGpu, 4096, 1 << 20};
  stand_in.control().set_adapters(&small, 1);
  Graph g("open");
  const Expr x = g.input("x", {{g.symbol("n", {.max = 100000})}, DType::F32});
  g.set_outputs({x * 2.0, x});
  CompiledGraph f = Session(Device::Vulkan).compile(std::move(g));
  CHECK(f.run({{"x", std::vector<float>(100, 7)}})[1] == std::vector<float>(100, 7));
  const std::string text = error_text([&] { (void)f.run({{"x", std::vector<float>(2000, 7)}}); });
  CHECK_MESSAGE(contains(text, "device vulkan binds at most 4096 bytes of a value, but kernel "), text);
  CHECK_MESSAGE(contains(text, "needs 8000"), text);
  CHECK_MESSAGE(contains(text, "%"), text);  // the node
  CHECK_MESSAGE(contains(text, "CompileOptions::placement"), text);
  CHECK(f.run({{"x", std::vector<float>(100, 7)}})[1] == std::vector<float>(100, 7));
  CHECK(StandIn::broken() == "");
}

}  // namespace rlx
