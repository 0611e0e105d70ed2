// The bindings of launches, by the rules of browsers, which the fake wgpu library enforces: every binding may be
// written, so two bindings of a launch must not overlap. Drivers are less strict.
#include <doctest/doctest.h>

#include <vector>

#include "rlx/device/device.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/session.h"
#include "tests/support/adam_step.h"
#include "tests/support/control_graphs.h"
#include "tests/support/decode_loop.h"
#include "tests/support/error_text.h"
#include "tests/support/samples.h"
#include "tests/support/shapes.h"
#include "tests/wgpu/stand_in_backend.h"

namespace rlx {
namespace {

using test::error_text;
using test::f32;
using test::StandIn;

NamedTensors values_of(const Graph& g) {
  NamedTensors out;
  for (NodeId id : g.leaves(OpKind::Input)) out.emplace(g.leaf_name(id), Tensor::zeros(g.shape(Value(id))));
  return out;
}

Tensor on_device(std::vector<float> v) {
  return to(Tensor::of<float>({static_cast<std::int64_t>(v.size())}, v), Device::WebGpu);
}

}  // namespace

TEST_CASE("wgpu: states that are updated in place, by rows too, are bound once") {
  const StandIn stand_in(Device::WebGpu);
  Graph g("rows");
  const Expr x = g.input("x", f32({1, 8})), at = g.input("at", Shape({2}, DType::I32));
  const Expr cache = g.state("cache", Tensor::zeros(f32({16, 8}))), s = g.state("s", Tensor::zeros(f32({1, 8})));
  const Expr next = g.dynamic_update_slice(cache, x, at);
  g.set_state("cache", next);
  g.set_state("s", s * 0.5 + x);
  g.set_outputs({g.sum(next, {0}), x * 2.0});
  CompiledGraph f = Session(Device::WebGpu).compile(std::move(g));
  CHECK(f.compile_result().lir.plan.state_copies.empty());
  for (int i = 0; i < 3; ++i)
    f.run_typed({{"x", Tensor::zeros(f32({1, 8}))}, {"at", Tensor::of<std::int32_t>({2}, {i, 0})}});
  CHECK(StandIn::broken() == "");
  CHECK(StandIn::refused() == "");
  CHECK(stand_in.control().calls("ComputePassEncoderDispatchWorkgroups") > 0);
}

TEST_CASE("wgpu: a training step, a decode loop, branches and loops are bound by the rules") {
  const StandIn stand_in(Device::WebGpu);
  const Session session(Device::WebGpu);
  for (const Graph& g : {test::adam_step(64), test::DecodeLoop::graph(), test::changing_places()}) {
    CAPTURE(g.name());
    CompiledGraph f = session.compile(Graph(g));
    for (int i = 0; i < 2; ++i) f.run_typed(values_of(g));
    CHECK(StandIn::broken() == "");
    CHECK(StandIn::refused() == "");
  }
}

TEST_CASE("wgpu: outputs that are inputs, or parts of them, or each other") {
  const StandIn stand_in(Device::WebGpu);
  Graph g("same");
  const Expr x = g.input("x", f32({6})), y = g.input("y", f32({6}));
  g.set_outputs(
      {x, g.reshape(x, {2, 3}), y, y, x + y, g.narrow(x, 0, 2, 3), g.narrow(x, 0, 2, 3) + g.narrow(y, 0, 0, 3)});
  CompiledGraph f = Session(Device::WebGpu).compile(std::move(g));
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{7, 8, 9, 10, 11, 12};
  const auto out = f.run({{"x", a}, {"y", b}});
  CHECK(out[0] == a);
  CHECK(out[1] == a);
  CHECK(out[2] == b);
  CHECK(out[3] == b);
  const std::vector<Tensor> there = f.run_device({{"x", on_device(a)}, {"y", on_device(b)}});
  CHECK(there[1].to_host().to_f32() == a);
  CHECK(StandIn::broken() == "");
  CHECK(StandIn::refused() == "");
}

TEST_CASE("wgpu: one tensor for two inputs of a launch, and for others again") {
  const StandIn stand_in(Device::WebGpu);
  Graph g("twice");
  const Expr x = g.input("x", f32({6})), y = g.input("y", f32({6}));
  g.set_outputs({x * y, g.sum(x - y, {0}), x});
  CompiledGraph f = Session(Device::WebGpu).compile(std::move(g));
  const std::vector<float> one{1, 2, 3, 4, 5, 6};
  const Tensor t = on_device(one), u = on_device({6, 5, 4, 3, 2, 1});
  for (int i = 0; i < 2; ++i)
    for (const Tensor& other : {t, u, t}) {
      const std::vector<float> out = f.run_device({{"x", t}, {"y", other}})[2].to_host().to_f32();
      CHECK(out == one);
    }
  CHECK(StandIn::broken() == "");
  CHECK(StandIn::refused() == "");
}

TEST_CASE("wgpu: a donated input whose bytes become an output's") {
  const StandIn stand_in(Device::WebGpu);
  Graph g("given");
  const Expr x = g.input("x", f32({6})), y = g.input("y", f32({6}));
  g.set_outputs({x * y, g.sum(y, {0})});
  CompileOptions options;
  options.donate = {{"x", 0}};
  CompiledGraph f = Session(Device::WebGpu).compile_with(std::move(g), options);
  for (int i = 0; i < 3; ++i) {
    NamedTensors in{{"x", on_device({1, 2, 3, 4, 5, 6})}, {"y", on_device({1, 1, 1, 1, 1, 1})}};
    f.run_device(std::move(in));
  }
  CHECK(StandIn::broken() == "");
  CHECK(StandIn::refused() == "");
}

TEST_CASE("wgpu: values without bytes have places of their own") {
  const StandIn stand_in(Device::WebGpu);
  Graph g("none");
  const Expr x = g.input("x", f32({0, 4})), y = g.input("y", f32({3, 4})), z = g.input("z", f32({0}));
  g.set_outputs({g.concat({x, y}, 0), g.sum(x, {0}), x + x, g.concat({z, z}, 0), g.matmul(y, g.transpose(x, {1, 0}))});
  CompiledGraph f = Session(Device::WebGpu).compile(std::move(g));
  for (int i = 0; i < 2; ++i)
    f.run_typed({{"x", Tensor::zeros(f32({0, 4}))}, {"y", Tensor::zeros(f32({3, 4}))}, {"z", Tensor::zeros(f32({0}))}});
  CHECK(StandIn::broken() == "");
  CHECK(StandIn::refused() == "");
}

}  // namespace rlx
