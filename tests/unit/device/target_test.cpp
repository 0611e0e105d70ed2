// Targets give the reason of a refusal, and can be restricted without changing their other answers.
#include "rlx/device/target.h"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "rlx/device/registry.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

std::shared_ptr<const Target> cpu() { return backend_for(Device::Cpu)->target({}); }

std::string why(const Graph& g, Expr e, const Target& target) {
  const char* text = target.refuses(g, e.value().node);
  return text ? text : "taken";
}

// A transposition with one axis more than the generic kernels take.
Expr deep_transpose(Graph& g) {
  std::vector<std::int64_t> order(17);
  std::iota(order.rbegin(), order.rend(), 0);
  return g.transpose(g.input("deep", {std::vector<Dim>(17, Dim(2)), DType::F32}), order);
}

TEST_CASE("target: the cpu's rows say why they refuse a node") {
  Graph g("g");
  const Expr x = g.input("x", {{2, 3}, DType::F32}), wide = g.cast(x, DType::F64);
  CHECK(why(g, x, *cpu()) == "taken");
  CHECK(why(g, g.softmax(x, 0), *cpu()) == "taken");  // the tuned entry refuses the axis, the generic takes it
  CHECK(why(g, g.layer_norm(wide, g.input("a", {{3}, DType::F64}), g.input("b", {{3}, DType::F64})), *cpu()) ==
        "taken");
  CHECK(why(g, g.rms_norm(x, g.input("c", {{2}, DType::F32}), g.input("d", {{2}, DType::F32}), 1e-6, {0}), *cpu()) ==
        "it does not run along the last axes");
  CHECK(why(g, deep_transpose(g), *cpu()) == "it has more axes than the kernel supports");
}

TEST_CASE("target: kinds left out are refused by that reason, the others as before; alignment only grows") {
  Graph g("g");
  const Expr x = g.input("x", {{2, 3}, DType::F32});
  const Expr relu = g.relu(x), sum = g.sum(x);
  const auto few = limited_to(cpu(), OpSet{OpKind::Activation, OpKind::Transfer});
  CHECK(why(g, relu, *few) == "taken");
  CHECK(why(g, sum, *few) == "the target does not list this kind of op as supported");
  CHECK(few->kinds().count() == 1);  // transfer has no kernel
  CHECK(few->name() == cpu()->name());
  CHECK(few->limits().alignment == cpu()->limits().alignment);
  CHECK(with_alignment(few, 4096)->limits().alignment == 4096);
  CHECK(with_alignment(with_alignment(few, 4096), 64)->limits().alignment == 4096);
  CHECK(why(g, sum, *with_alignment(few, 4096)) == "the target does not list this kind of op as supported");
}

TEST_CASE("target: the error of a refused node gives the reason") {
  Graph g("g");
  g.set_outputs({deep_transpose(g)});
  CompileOptions options;
  options.kernel_dispatch = KernelDispatchConfig{};
  options.kernel_dispatch->host_fallback = false;
  const std::string text = error_text([&] { (void)Session().compile_with(std::move(g), options); });
  CHECK_MESSAGE(contains(text, "has no kernel on cpu"), text);
  CHECK_MESSAGE(contains(text, "it has more axes than the kernel supports"), text);
}

}  // namespace
}  // namespace rlx
