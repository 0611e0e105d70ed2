// Device queries: available devices, their support, and the reasons for "not available".
#include "rlx/runtime/device_ext.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/compiler/preset_target.h"
#include "rlx/device/registry.h"
#include "rlx/passes/passes.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"

namespace rlx {
namespace {

TEST_CASE("the cpu is here and supports the table; what is not built supports nothing and says why") {
  CHECK(is_available(Device::Cpu));
  for (OpKind op : {OpKind::Activation, OpKind::Binary, OpKind::DotGeneral, OpKind::LlamaDecoderBlock})
    CHECK(supports(Device::Cpu, op));
  CHECK(!is_available(Device::Cuda));
  CHECK(!supports(Device::Cuda, OpKind::Binary));
  CHECK(unavailable_reason(Device::Cuda) == "this version has no CUDA backend");
  CHECK(test::contains(test::error_text([] { Session s(Device::Rocm); }),
                       "device ROCm is not available: this version has no ROCm backend"));
  CHECK(supports_run_slots(Device::Cpu));
  CHECK(!supports_run_slots(Device::Cuda));
  for (const DeviceInfo& d : all_devices()) CHECK(supports_run_slots(d.device) == is_available(d.device));
}

TEST_CASE("fusion passes of a target with a backend in this build: each may fire") {
  for (Device d : registered_devices()) {
    const OpSet claimed = backend_for(d)->target({})->kinds();
    for (const Pass* pass : fusion_passes(fusion_target_for(d), {})) {
      CAPTURE(std::string(device_info(d).id));
      const std::vector<const Pass*> real = fusion_passes_for_supported(claimed, {});
      CHECK_MESSAGE((std::find(real.begin(), real.end(), pass) != real.end()), pass->name);
    }
  }
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
  const std::vector<Device> here = available_devices();
  CHECK(std::find(here.begin(), here.end(), Device::Cpu) != here.end());
  CHECK(std::find(here.begin(), here.end(), fastest_device()) != here.end());
  CHECK(!probe_device(fastest_device()).software);
  CHECK(parse_device("NVIDIA") == Device::Cuda);
  CHECK(!parse_device("abacus"));
}

TEST_CASE("graphs are probed by the compiler's own legalisation") {
  Graph g("probe");
  Expr x = g.input("x", {{2, 4}, DType::F32});
  g.set_outputs({g.gelu(g.matmul(x, g.param("w", {{4, 4}, DType::F32})))});
  CHECK(supports_graph(Device::Cpu, g));
  CHECK(devices_for(g).at(0) == Device::Cpu);
  CHECK(!first_unsupported_op(Device::Cpu, g));
  auto none = first_unsupported_op(Device::Mlx, g);
  REQUIRE(none);
  CHECK(none->first == 0);
  KernelDispatchReport report = dispatch_report_for_device(g, Device::Cpu);
  CHECK(report.compile_ready());
  REQUIRE(report.summaries.size() == 2);  // the matmul as dot_general or in its packed layout, and gelu
  for (const KindDispatch& k : report.summaries) CHECK(k.node_count == 1);
  const Graph legal = legalize_graph_for_device(g, Device::Cpu);
  for (const Node& n : legal.nodes()) CHECK(n.kind() != OpKind::MatMul);  // a composite without a kernel
  CHECK(legal.shape(legal.outputs().at(0)) == g.shape(g.outputs()[0]));
  // A device that is not available, by its documented claims.
  const Graph there = legalize_graph_for_device(g, Device::Cuda, &report);
  for (const Node& n : there.nodes()) CHECK(preset_target(Device::Cuda)->has(n.kind()));
  CHECK(test::contains(report.text(), "cuda (documented preset)"));
}

TEST_CASE("programs compile for devices that are not there, and say why they cannot run") {
  for (Device d : {Device::Cuda, Device::Rocm, Device::Metal, Device::Mlx}) {
    CAPTURE(device_info(d).id);
    Graph g("layer");
    Expr x = g.input("x", Shape({2, 4}, DType::F32)), w = g.param("w", Shape({4, 8}, DType::F32));
    g.set_outputs({g.softmax(g.gelu(g.matmul(x, w)), 1)});
    CompiledGraph f = Session::for_target(d).compile(std::move(g));
    CHECK(f.device() == d);
    CHECK(f.compile_result().dispatch.compile_ready());
    CHECK(f.compile_result().lir.plan.opaque == (d == Device::Mlx));
    CHECK(f.compile_result().lir.plan.opaque == f.compile_result().lir.plan.values.empty());
    CHECK(test::contains(test::error_text([&] { f.set_param("w", std::vector<float>(32, 1)); }), "cannot run"));
    const std::string text = test::error_text([&] { f.run({{"x", std::vector<float>(8)}}); });
    CHECK_MESSAGE(test::contains(text, concat_text("graph 'layer' was compiled for ", device_info(d).name)), text);
    CHECK_MESSAGE(test::contains(text, "this version has no"), text);
    CHECK_MESSAGE(test::contains(text, "run it with a Session on one of"), text);
  }
  // Ops without a documented claim run on the cpu if the policy allows that; else they are refused with that reason.
  for (Device d : {Device::Metal, Device::Cuda, Device::Ane}) {
    CAPTURE(device_info(d).id);
    Graph g("sorted");
    g.set_outputs({g.exp(g.sort(g.exp(g.input("x", Shape({4}, DType::F32))), 0))});
    CompiledGraph f = Session::for_target(d).compile(Graph(g));
    CHECK(test::contains(f.compile_result().dispatch.text(), "sort: 1 host-fallback"));
    const std::string run = test::error_text([&] { f.run({{"x", std::vector<float>(4)}}); });
    CHECK_MESSAGE(test::contains(run, "graph 'sorted' was compiled for "), run);  // not for a part of it
    CompileOptions alone;
    alone.kernel_dispatch.emplace().host_fallback = false;
    const std::string text = test::error_text([&] { (void)Session::for_target(d).compile_with(std::move(g), alone); });
    CHECK_MESSAGE(test::contains(text, "the documentation of the device does not list the op"), text);
    CHECK_MESSAGE(test::contains(text, "hint: write it in ops that the device has, or pick another device"), text);
  }
  // Every call that would give values to a plan says so, on every device.
  for (Device d : {Device::Cpu, Device::Cuda, Device::Tpu}) {
    CAPTURE(device_info(d).id);
    Graph g("plan");
    Expr s = g.state("s", Tensor::zeros({{2, 2}, DType::F32}));
    g.set_state("s", g.matmul(s, g.param("w", {{2, 2}, DType::F32})));
    g.set_outputs({s});
    CompiledGraph f = Session::for_target(d).compile(std::move(g));
    const Tensor whole = Tensor::zeros({{2, 2}, DType::F32}), row = Tensor::zeros({{1, 2}, DType::F32});
    const auto refused = [&](auto call) {
      const std::string text = test::error_text(call);
      CHECK_MESSAGE(test::contains(text, "graph 'plan' was compiled for "), text);
      CHECK_MESSAGE(test::contains(text, "by Session::for_target and cannot run"), text);
    };
    refused([&] { f.set_param("w", whole); });
    refused([&] { f.write_state("s", whole); });
    refused([&] { f.write_state("s", row, Rows{0, 1}); });
    refused([&] { f.prepare_shape({}); });
    refused([&] { f.run(); });
  }
  // If the backend is available, its kernel entries answer, and a value larger than a binding is refused by name.
  CHECK(Session::for_target(Device::Cpu).target()->name() == Session(Device::Cpu).target()->name());
  Graph large("large");
  Expr y = large.input("x", Shape({1 << 26}, DType::F32));
  large.set_outputs({large.softmax(large.exp(y), 0)});
  const std::string text =
      test::error_text([&] { (void)Session::for_target(Device::WebGpu).compile(std::move(large)); });
  CHECK_MESSAGE(test::contains(text, "is larger than webgpu ("), text);
  CHECK_MESSAGE(test::contains(text, "allows (134217728)"), text);
}

TEST_CASE("a program for devices that are not there may use any ordinal, and a label has one device") {
  Graph g("two");
  const Expr x = g.input("x", Shape({2, 4}, DType::F32));
  {
    const auto scope = g.scope("layer1");
    g.set_outputs({g.tanh(x)});
  }
  CHECK(Session::for_target({Device::Cuda, 1}).compile(Graph(g)).device() == Device::Cuda);
  CompileOptions options;
  options.placement = {{"layer1", {Device::Cuda, 1}}};
  const CompiledGraph f = Session::for_target(Device::Cuda).compile_with(Graph(g), options);
  CHECK(f.compile_result().lir.others == std::vector<DeviceId>{{Device::Cuda, 1}});
  options.placement.push_back({"layer1", {Device::Cuda, 2}});
  CHECK(
      test::contains(test::error_text([&] { (void)Session::for_target(Device::Cuda).compile_with(Graph(g), options); }),
                     "label 'layer1' is placed on cuda:1 and on cuda:2"));
  CHECK(test::contains(test::error_text([&] {
                         (void)Session::for_target({Device::Cuda, -1});
                       }),
                       "ordinals count from 0"));
}

TEST_CASE("claims of a target: the kernel table when built, the documented list when not") {
  CHECK(supported_for_target(FusionTarget::Cpu).has(OpKind::FusedDot));
  CHECK(supported_for_target(FusionTarget::Cuda).has(OpKind::FusedResidualLN));
  CHECK(!supported_for_target(FusionTarget::Cuda).has(OpKind::FusedSwiGLU));
  CHECK(fusion_target_for(Device::Vulkan) == FusionTarget::Wgpu);
}

TEST_CASE("a device's full name says what serves it; draining needs a backend, not work") {
  const std::string full = full_name(Device::Cpu);
  CHECK(full.substr(0, 10) == "CPU: cpu (");
  CHECK(test::contains(full, " thread"));
  CHECK(full_name(Device::Mlx) == "MLX");
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
