// The documented module names lead to the same things as rlx:: itself.
#include <doctest/doctest.h>

#include <type_traits>

#include "rlx/rlx.h"

namespace {

static_assert(std::is_same_v<rlx::ir::Graph, rlx::Graph>);
static_assert(std::is_same_v<rlx::ir::DType, rlx::DType>);
static_assert(std::is_same_v<rlx::ir::HirModule, rlx::HirModule>);
static_assert(std::is_same_v<rlx::opt::CompilePipeline, rlx::CompilePipeline>);
static_assert(std::is_same_v<rlx::opt::FusionPolicy, rlx::FusionPolicy>);
static_assert(std::is_same_v<rlx::driver::Device, rlx::Device>);
static_assert(std::is_same_v<rlx::runtime::Session, rlx::Session>);
static_assert(std::is_same_v<rlx::quant::Element, rlx::Element>);
static_assert(std::is_same_v<rlx::ops::BinaryOp, rlx::BinaryKind>);
static_assert(std::is_same_v<rlx::ops::CmpOp, rlx::CompareKind>);

TEST_CASE("a program in the documented names compiles, is differentiated and runs") {
  rlx::ir::Graph g("square");
  rlx::ir::Expr x = g.input("x", rlx::ir::Shape({3}, rlx::ir::DType::F32));
  g.set_outputs({g.sum(g.square(x))});
  rlx::ir::Graph d = rlx::autodiff::value_and_grad(g, {"x"}).graph;
  rlx::runtime::CompiledGraph f = rlx::runtime::Session(rlx::driver::Device::Cpu).compile(std::move(d));
  CHECK(f.run({{"x", {1, 2, -3}}})[1] == std::vector<float>{2, 4, -6});
  CHECK(rlx::runtime::full_name(rlx::driver::Device::Cpu) == rlx::full_name(rlx::Device::Cpu));
  CHECK(rlx::opt::inspect_fusion(g, rlx::Session().target()).nodes_before > 0);
}

}  // namespace
