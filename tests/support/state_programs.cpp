// Programs with small values: only the failing call matters.
#include "tests/support/state_programs.h"

#include <utility>

#include "tests/support/shapes.h"

namespace rlx::test {
namespace {

Expr scale_of(Graph& g) { return g.state("scale", Tensor::full(f32({4}), 2)); }

// One graph: total += x; count += 1. Outputs: the total before, x * scale.
StateProgram one_graph() {
  Graph g("one_graph");
  const Expr x = g.input("x", f32({4})), total = g.state("total", Tensor::zeros(f32({4})));
  const Expr count = g.state("count", Tensor::zeros(f32({})));
  g.set_state("total", total + x);
  g.set_state("count", count + 1.0);
  g.set_outputs({total, x * scale_of(g)});
  return {"one graph", std::move(g), {{"x", Tensor::full(f32({4}), 1)}}};
}

// Three layers with a state each. The middle one runs on another device.
StateProgram layers_on_two() {
  Graph g("layers_on_two");
  Expr y = g.input("x", f32({4, 4})) * scale_of(g);
  const Expr w = g.constant(Tensor::full(f32({4, 4}), 0.25));
  for (const char* layer : {"l0", "l1", "l2"}) {
    const auto label = g.scope(layer);
    const Expr next = g.state(concat_text("s_", layer), Tensor::zeros(f32({4, 4}))) + g.tanh(g.matmul(y, w));
    g.set_state(concat_text("s_", layer), next);
    y = y + next * 0.5;
  }
  g.set_outputs({y});
  return {"two devices", std::move(g), {{"x", Tensor::full(f32({4, 4}), 1)}}, {}, "l1"};
}

// The states are swapped, with a sort between them that the cpu runs.
StateProgram host_segment() {
  Graph g("host_segment");
  const Expr x = g.input("x", f32({4})), a = g.state("a", Tensor::zeros(f32({4})));
  const Expr b = g.state("b", Tensor::full(f32({4}), 1));
  const Expr sorted = g.sort(a * 0.5 - x);
  g.set_state("a", b + sorted);
  g.set_state("b", a);
  g.set_outputs({sorted * scale_of(g)});
  return {"a host segment", std::move(g), {{"x", Tensor::full(f32({4}), 1)}}, {OpKind::Sort}};
}

// Host-controlled: a state is the carry of a scan, another one that of a while loop, and one goes through a branch.
StateProgram host_controlled() {
  Graph g("host_controlled");
  const Expr rows = g.input("rows", f32({3, 4})), scale = scale_of(g);
  const Expr a = g.state("a", Tensor::zeros(f32({4}))), b = g.state("b", Tensor::full(f32({4}), 1));
  const Expr c = g.state("c", Tensor::full(f32({4}), 3));
  const LoopResult scan = g.scan(a, rows, [&](Graph& in, const ExprList& carries, const ExprList& row) {
    return LoopStep{carries[0] + row[0] * scale, in.tanh(row[0])};
  });
  g.set_state("a", scan.carries[0]);
  const LoopResult loop = g.while_loop(
      {g.scalar(0.0, DType::I32), b}, [](Graph& in, const ExprList& at) { return in.lt(at[0], 3); },
      [](Graph&, const ExprList& at) {
        return LoopStep{{at[0] + 1, at[1] + 1.0}, {}};
      });
  g.set_state("b", loop.carries[1]);
  const ExprList branch = g.cond(
      g.gt(g.sum(rows), 0.0), [&](Graph&) { return ExprList{c + 1.0}; }, [&](Graph&) { return ExprList{c * 0.5}; });
  g.set_state("c", branch[0]);
  g.set_outputs({scan.ys[0]});
  return {"loops and a branch that the host drives",
          std::move(g),
          {{"rows", Tensor::full(f32({3, 4}), 1)}},
          AdversarialOptions::control_flow()};
}

// The run has a host sync point for an extent that it computes.
StateProgram computed_extent() {
  Graph g("computed_extent");
  const Expr x = g.input("x", f32({4})), total = g.state("total", Tensor::zeros(f32({4})));
  g.set_state("total", total + x);
  g.set_outputs({g.first(x, g.cast(g.sum(scale_of(g)) * 0.25, DType::I64)) + 1.0});
  return {"an extent that the run computes", std::move(g), {{"x", Tensor::full(f32({4}), 1)}}};
}

}  // namespace

AdversarialOptions StateProgram::mode() const {
  AdversarialOptions options;
  options.opaque = true;
  options.refuse = refused;
  return options;
}

CompiledGraph StateProgram::compile() const {
  CompileOptions options;
  if (!elsewhere.empty()) options.placement = {{elsewhere, DeviceId{AdversarialScope::kDevice, 1}}};
  return Session(AdversarialScope::kDevice).compile_with(Graph(graph), options);
}

std::vector<StateProgram> state_programs() {
  std::vector<StateProgram> all;
  for (auto* make : {one_graph, layers_on_two, host_segment, host_controlled, computed_extent}) all.push_back(make());
  return all;
}

std::vector<Tensor> valid_states(const CompiledGraph& f) {
  std::vector<Tensor> out;
  for (const IoInfo& s : f.states()) {
    Result<Tensor> value = attempt([&] { return f.read_state(s.name); });
    if (!value.ok() && value.error().message.find("invalid") == std::string::npos) throw Error(value.error());
    out.push_back(value.ok() ? std::move(value).value() : Tensor());
  }
  return out;
}

}  // namespace rlx::test
