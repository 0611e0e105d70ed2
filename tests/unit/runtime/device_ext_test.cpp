// Device queries: what is here, what it supports, and the reasons for "not available".
#include "rlx/runtime/device_ext.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/driver/registry.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"

namespace rlx {
namespace {

TEST_CASE("the cpu is here and supports the table; what is not built supports nothing and says why") {
  CHECK(is_available(Device::Cpu));
  for (OpKind op : {OpKind::Activation, OpKind::Binary, OpKind::DotGeneral, OpKind::LlamaDecoderBlock})
    CHECK(supports(Device::Cpu, op));
  CHECK(!is_available(Device::OpenGl));
  CHECK(!supports(Device::OpenGl, OpKind::Binary));
  CHECK(unavailable_reason(Device::OpenGl) == "this version has no OpenGL backend");
  CHECK(test::contains(test::error_text([] { Session s(Device::Tpu); }),
                       "device TPU is not available: this version has no TPU backend"));
  CHECK(supports_run_slots(Device::Cpu));
  CHECK(!supports_run_slots(Device::WebGpu));
}

TEST_CASE("a build option that messages name exists in the build") {
  const std::string build = test::read_file(test::source_path("CMakeLists.txt"));
  for (const DeviceInfo& d : all_devices())
    if (!d.build_option.empty())
      CHECK_MESSAGE(test::contains(build, concat_text("option(", d.build_option, " ")), d.build_option);
  for (Device d : registered_devices()) CHECK(!device_info(d).build_option.empty());
}

TEST_CASE("priority order") {
  const Device some[] = {Device::Cpu, Device::Metal, Device::Mlx};
  CHECK(fastest_among(some) == Device::Mlx);
  CHECK(fastest_among({}) == Device::Cpu);
  CHECK(available_devices() == std::vector<Device>{Device::Cpu});  // the only one of this version
  CHECK(fastest_device() == Device::Cpu);
  CHECK(parse_device("NVIDIA") == Device::Cuda);
  CHECK(!parse_device("abacus"));
}

TEST_CASE("graphs are probed by the compiler's own legalisation") {
  Graph g("probe");
  Expr x = g.input("x", {{2, 4}, DType::F32});
  g.set_outputs({g.gelu(g.matmul(x, g.param("w", {{4, 4}, DType::F32})))});
  CHECK(supports_graph(Device::Cpu, g));
  CHECK(devices_for(g) == std::vector<Device>{Device::Cpu});
  CHECK(!first_unsupported_op(Device::Cpu, g));
  auto none = first_unsupported_op(Device::Tpu, g);
  REQUIRE(none);
  CHECK(none->first == 0);
  KernelDispatchReport report = dispatch_report_for_device(g, Device::Cpu);
  CHECK(report.compile_ready());
  REQUIRE(report.summaries.size() == 2);  // the product as dot_general or in its packed form, and gelu
  for (const KindDispatch& k : report.summaries) CHECK(k.node_count == 1);
  const Graph legal = legalize_graph_for_device(g, Device::Cpu);
  for (const Node& n : legal.nodes()) CHECK(n.kind() != OpKind::MatMul);  // a composite without a kernel
  CHECK(legal.shape(legal.outputs().at(0)) == g.shape(g.outputs()[0]));
  CHECK(test::contains(test::error_text([&] { (void)legalize_graph_for_device(g, Device::Cuda); }),
                       "device CUDA is not available: this version has no CUDA backend"));
}

TEST_CASE("claims of a target: the kernel table when built, the documented list when not") {
  CHECK(supported_for_target(FusionTarget::Cpu).has(OpKind::PackedDot));
  CHECK(supported_for_target(FusionTarget::Tpu).has(OpKind::FusedResidualLN));
  CHECK(!supported_for_target(FusionTarget::Tpu).has(OpKind::FusedSwiGLU));
  CHECK(fusion_target_for(Device::Vulkan) == FusionTarget::Wgpu);
}

TEST_CASE("a device's full name says what serves it; draining needs a backend, not work") {
  const std::string full = full_name(Device::Cpu);
  CHECK(full.substr(0, 10) == "CPU: cpu (");
  CHECK(test::contains(full, " thread"));
  CHECK(full_name(Device::Tpu) == "TPU");
  drain_device(Device::Cpu);
  CHECK(test::contains(test::error_text([] { drain_device(Device::Cuda); }), "CUDA"));
}

TEST_CASE("apple devices are those of them that are here") {
  const std::vector<Device> apple = available_apple_devices(), all = available_devices();
  for (Device d : apple) {
    CHECK((d == Device::Metal || d == Device::Mlx || d == Device::Gpu));
    CHECK(std::find(all.begin(), all.end(), d) != all.end());
  }
#ifndef __APPLE__
  CHECK(apple.empty());
#endif
}

}  // namespace
}  // namespace rlx
