// Callbacks that misuse what calls them: bodies of control flow, custom kernels, rules of custom ops.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/ir/custom_op.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

namespace {
const Shape kFour({4}, DType::F32);

std::function<void()> in_kernel;  // what the kernel of acme.calls_back does first

std::optional<Diagnostic> plus_one(const KernelCall& call) {
  if (in_kernel) in_kernel();
  const auto x = call.inputs[0].as<float>();
  const auto y = call.outputs[0].as<float>();
  for (std::size_t i = 0; i < x->size(); ++i) (*y)[i] = (*x)[i] + 1;
  return std::nullopt;
}

CompiledGraph calls_back() {
  if (registered_op("acme.calls_back") == nullptr)
    register_op(CustomOpDef("acme.calls_back")
                    .inputs("x")
                    .infer([](const InferContext& c) -> Result<Shapes> { return Shapes{c.input(0)}; })
                    .reference([](const RefArgs& a) {
                      for (std::int64_t i = 0; i < a.in(0).num_elements(); ++i) a.out().set(i, a.in(0).at(i) + 1);
                    })
                    .kernel(plus_one));
  Graph g("calls_back");
  g.set_outputs({g.add(custom_op("acme.calls_back"), {g.input("x", kFour)})});
  return Session().compile(std::move(g));
}

CompiledGraph twice() {
  Graph g("twice");
  g.set_outputs({2 * g.input("x", kFour)});
  return Session().compile(std::move(g));
}

const NamedTensors kOnes{{"x", Tensor::full(kFour, 1)}};

struct InKernel {
  explicit InKernel(std::function<void()> f) { in_kernel = std::move(f); }
  ~InKernel() { in_kernel = nullptr; }
  InKernel(const InKernel&) = delete;
  InKernel& operator=(const InKernel&) = delete;
};
}  // namespace

TEST_CASE("misuse: a kernel destroys or replaces the program that runs it") {
  auto program = std::make_unique<CompiledGraph>(calls_back());
  {
    CompiledGraph* const at = program.release();
    const InKernel destroys([at] { delete at; });
    CHECK(at->run_typed(kOnes)[0].at(0) == 2);  // the run goes on
  }
  CompiledGraph replaced = calls_back();
  {
    const InKernel replaces([&] { replaced = twice(); });
    CHECK(replaced.run_typed(kOnes)[0].at(3) == 2);
  }
  CHECK(replaced.run_typed(kOnes)[0].at(3) == 2);  // 2 * 1
  // From another thread of the same run nobody waits for itself either: the destructor waits for the run.
  std::optional<CompiledGraph> other(calls_back());
  std::atomic<bool> inside{false};
  {
    const InKernel waits([&] {
      inside = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    Tensor result;
    std::thread runs([&] { result = other->run_typed(kOnes)[0]; });
    while (!inside) std::this_thread::yield();
    other.reset();
    runs.join();
    CHECK(result.at(0) == 2);
  }
}

TEST_CASE("misuse: bodies that move or destroy graphs") {
  const auto scan = [](Graph& g, const Expr& x, const std::function<Expr(Graph&, const Expr&)>& step) {
    return g.scan({x}, {}, [&](Graph& b, const ExprList& c, const ExprList&) { return LoopStep{step(b, c[0])}; },
                  {.length = Dim(3)});
  };
  Graph to;
  {
    Graph g("g");
    const Expr x = g.input("x", kFour);
    REFUSED("moved, assigned to or destroyed the graph that the body is built in",
            scan(g, x, [&](Graph&, const Expr& c) {
              to = std::move(g);
              return c + 1;
            }));
  }
  {
    auto g = std::make_unique<Graph>("g");
    const Expr x = g->input("x", kFour);
    REFUSED("moved, assigned to or destroyed the graph that the body is built in",
            scan(*g, x, [&](Graph&, const Expr& c) {
              g.reset();
              return c + 1;
            }));
  }
  {
    Graph g("g");
    const Expr x = g.input("x", kFour);
    REFUSED("moved, assigned to or destroyed the graph that it was given", scan(g, x, [&](Graph& b, const Expr&) {
              b = Graph("b");
              return b.scalar(1.0F);
            }));
    g.set_outputs(scan(g, x, [&](Graph&, const Expr& c) { return c + x; }).carries);  // the graph is whole
    CHECK(Session().compile(std::move(g)).run_typed(kOnes)[0].at(0) == 4);
  }
}

TEST_CASE("misuse: bodies without end") {
  Graph g("g");
  const Expr x = g.input("x", kFour);
  std::function<Expr(Graph&, const Expr&)> endless = [&](Graph& at, const Expr& v) {
    return at.call("f", ExprList{v}, [&](Graph& b, const ExprList& a) { return ExprList{endless(b, a[0])}; })[0];
  };
  REFUSED("f: sub-graphs are nested more than 64 deep", endless(g, x));
  int left = 64;
  std::function<Expr(Graph&, const Expr&)> deepest = [&](Graph& at, const Expr& v) {
    if (left-- == 0) return v + 1;
    return at.call("f", ExprList{v}, [&](Graph& b, const ExprList& a) { return ExprList{deepest(b, a[0])}; })[0];
  };
  g.set_outputs({deepest(g, x)});
  CHECK(Session().compile(std::move(g)).run_typed(kOnes)[0].at(0) == 2);
}

TEST_CASE("misuse: derivative rules of custom ops that give other shapes") {
  using Vjp = void (*)(VjpContext&);
  const auto gradient = [](const char* name, Vjp rule) {
    register_op(CustomOpDef(name)
                    .inputs("x")
                    .infer([](const InferContext& c) -> Result<Shapes> { return Shapes{c.input(0)}; })
                    .reference([](const RefArgs&) {})
                    .vjp(rule));
    Graph g("g");
    g.set_outputs({g.sum(g.add(custom_op(name), {g.input("x", kFour)}))});
    (void)value_and_grad(g, {"x"});
  };
  REFUSED("the vjp rule of acme.low_rank gives [] f32 as the gradient of operand 0, which is [4] f32",
          gradient("acme.low_rank", [](VjpContext& c) { c.accumulate(0, c.graph().sum(c.cotangent())); }));
  REFUSED("the vjp rule of acme.short gives [2] f32 as the gradient of operand 0, which is [4] f32",
          gradient("acme.short", [](VjpContext& c) { c.accumulate(0, c.graph().narrow(c.cotangent(), 0, 0, 2)); }));
  gradient("acme.stretched", [](VjpContext& c) { c.accumulate(0, c.graph().expand(c.cotangent(), {3, 4})); });
}
