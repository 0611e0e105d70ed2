// Programs for wgpu compile on machines without a device.
#include <doctest/doctest.h>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/device.h"
#include "rlx/device/registry.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {

TEST_CASE("wgpu: a program's text is there without a device, a part for each kernel under its node's name") {
  Graph g("text");
  Expr x = g.input("x", test::f32({3, 5}));
  const auto scope = g.scope("twice");
  g.set_outputs({g.sum(x, {1}), g.tanh(x + x)});
  for (Device d : {Device::Gpu, Device::Vulkan, Device::OpenGl, Device::WebGpu}) {
    CAPTURE(device_info(d).id);
    const std::shared_ptr<const Backend> backend = backend_for(d);
    REQUIRE(backend);
    CHECK(backend->name() == "wgpu");
    const std::shared_ptr<const Target> target = backend->target({});
    CHECK(target->device() == d);
    CHECK(test::contains(std::string(target->name()), std::string(device_info(d).id) + " ("));
    CHECK(target->limits().max_buffer_bytes >= std::size_t{128} << 20);
    const CompileResult made = CompilePipeline(target, {}).compile_module(make_module(Graph(g)));
    const auto code = backend->compile_lir(made.lir, {});
    const std::string text = code->code();
    for (const LirStep& step : made.lir.plan.schedule) {
      CHECK(test::contains(code->kernel_name(step.node), " (wgsl)"));
      CHECK(test::contains(text, "// " + node_label(made.lir.graph, step.node)));
    }
    CHECK(test::contains(text, "@compute @workgroup_size("));
  }
}

TEST_CASE("wgpu: options of compiles are checked") {
  CHECK(test::contains(test::error_text([] {
                         (void)backend_for(Device::Vulkan)->compile_options({{"kernels", "fast"}});
                       }),
                       "pass hardware or software"));
}

}  // namespace rlx
