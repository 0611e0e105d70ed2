// Placement in programs over several devices. Bodies get the device of the node that holds them before the first pass.
// An opaque device gets only graphs whose nodes it takes in that very graph.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "rlx/ir/inspect.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/text.h"
#include "tests/adversarial/check_on_adversarial.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/random_program.h"
#include "tests/support/segment_programs.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;
using test::f32;

const DeviceId kOther{AdversarialScope::kDevice, 1};

CompileOptions sent(std::vector<Placement> placement) {
  CompileOptions options;
  options.placement = std::move(placement);
  return options;
}

// Elementwise ops that fuse. The number distinguishes them from others.
Expr fusing(Graph& g, Expr x, double number) { return g.tanh(x * number + 0.25) - 0.5; }

// More axes than the cpu's regions allow; the adversarial test device's allow any number.
const Dims kManyAxes{3, 1, 1, 1, 1, 1, 1, 1, 4};

// A scan under the label "c" of a carry with those extents and that dtype over rows. Its body contains a branch.
Graph labelled_scan(const Dims& dims, DType dtype = DType::F32) {
  Graph g("labelled");
  Dims many = dims;
  many.insert(many.begin(), Dim(5));
  const Expr x = g.input("x", Shape(dims, dtype)), rows = g.input("rows", Shape(many, dtype));
  LoopResult r;
  {
    const auto label = g.scope("c");
    r = g.scan(x, rows, [&](Graph& b, const ExprList& c, const ExprList& row) {
      const Expr y = fusing(b, c[0], 0.5) + row[0];
      const ExprList z = b.cond(
          b.gt(b.sum(row[0]), 0.0), [&](Graph& t) { return ExprList{fusing(t, y, 0.75)}; },
          [&](Graph& t) { return ExprList{fusing(t, y, 0.125)}; });
      return LoopStep{z[0], {fusing(b, y, 2)}};
    });
  }
  g.set_outputs({fusing(g, r.carries[0], 3), r.ys[0]});
  return g;
}

int kinds_in(const Graph& g, OpKind kind) {
  int count = 0;
  for (const Node& n : g.nodes()) {
    count += n.kind() == kind ? 1 : 0;
    if (op_def(n.op).bodies == BodyKind::Programs)
      for (const Subgraph& body : body_graphs(n.op)) count += kinds_in(*body, kind);
  }
  return count;
}

// The number of nodes of a kind in the bodies of the only loop of `g`.
int kinds_in_bodies(const Graph& g, OpKind kind) {
  int count = 0;
  (void)any_body(g, [&](const Graph& body) {
    count += kinds_in(body, kind);
    return false;
  });
  return count;
}

}  // namespace

TEST_CASE("placement: what a loop on the cpu holds is fused as the cpu can, branches within too") {
  for (test::AdversarialOptions mode : test::adversarial_modes())
    for (const bool control : {false, true}) {
      if (control) mode.refuse = test::AdversarialOptions::control_flow();
      for (const Dims& dims : {kManyAxes, Dims{3, 4}}) {
        INFO(test::mode_name(mode), ", loops refused: ", control, ", ", dims.size(), " axes");
        const AdversarialScope adversary(mode);
        const Graph g = labelled_scan(dims);
        const CompileOptions options = sent({{"c", Device::Cpu}});
        (void)test::check_on_adversarial(g, test::drawn(g), options);
        const CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
        const Graph& run = f.compile_result().lir.graph;
        CHECK((kinds_in_bodies(run, OpKind::ElementwiseRegion) > 0) == (dims != kManyAxes));
        CHECK(kinds_in(run, OpKind::ElementwiseRegion) > 0);
      }
    }
}

TEST_CASE("placement: what a loop on the cpu holds is fused although the first device takes no region") {
  for (test::AdversarialOptions mode : test::adversarial_modes({.refuse = {OpKind::ElementwiseRegion}})) {
    CAPTURE(test::mode_name(mode));
    const AdversarialScope adversary(mode);
    const Graph g = labelled_scan({3, 4});
    const CompileOptions options = sent({{"c", Device::Cpu}});
    (void)test::check_on_adversarial(g, test::drawn(g), options);
    const CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
    const Graph& run = f.compile_result().lir.graph;
    CHECK(kinds_in_bodies(run, OpKind::ElementwiseRegion) > 0);
    CHECK(kinds_in(run, OpKind::ElementwiseRegion) == kinds_in_bodies(run, OpKind::ElementwiseRegion));
    // The report is about the device that it names, not about the cpu.
    CHECK(f.compile_result().dispatch.supported_claim_count ==
          Session(AdversarialScope::kDevice).target()->kinds().count());
  }
}

TEST_CASE("placement: labels in bodies say otherwise, but on the cpu, which runs what it holds") {
  for (test::AdversarialOptions mode : test::adversarial_modes({.refuse = test::AdversarialOptions::control_flow()}))
    for (const DeviceId holder : {kOther, DeviceId(Device::Cpu)}) {
      INFO(test::mode_name(mode), ", the loop on ", device_text(holder));
      const AdversarialScope adversary(mode);
      Graph g("otherwise");
      Dims rows{3};
      rows.insert(rows.end(), kManyAxes.begin(), kManyAxes.end());
      const Expr x = g.input("x", Shape(kManyAxes, DType::F32)), fixed = g.input("fixed", Shape(kManyAxes, DType::F32));
      LoopResult r;
      {
        const auto label = g.scope("c");
        r = g.scan(x, g.input("rows", Shape(rows, DType::F32)), [&](Graph& b, const ExprList& c, const ExprList& row) {
          const auto inner = b.scope("there");
          // The last sort is loop-invariant, and so computed before the loop.
          return LoopStep{b.sort(fusing(b, c[0], 0.5) + row[0], 0) + b.sort(fixed * x, 0)};
        });
      }
      g.set_outputs({r.carries[0]});
      const bool on_cpu = holder.kind == Device::Cpu;
      const CompileOptions options = sent({{"c", holder}, {"there", on_cpu ? kOther : DeviceId(Device::Cpu)}});
      (void)test::check_on_adversarial(g, test::drawn(g), options);
      const CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
      const LirModule& lir = f.compile_result().lir;
      CHECK(lir.others == std::vector<DeviceId>{kOther, Device::Cpu});
      CHECK(kinds_in(lir.graph, OpKind::ElementwiseRegion) == 0);  // the cpu claims no regions with that many axes
      CHECK(kinds_in(lir.graph, OpKind::Sort) - kinds_in_bodies(lir.graph, OpKind::Sort) == 1);
      for (std::uint32_t i = 0; i < lir.graph.num_nodes(); ++i)
        if (lir.graph.nodes()[i].kind() == OpKind::Sort) CHECK(lir.plan.node_device(NodeId{i}) == 2);
    }
}

TEST_CASE("placement: a loop of another device holds steps that go back to the first") {
  for (test::AdversarialOptions mode : test::adversarial_modes({.refuse = test::AdversarialOptions::control_flow()})) {
    INFO(test::mode_name(mode));
    const AdversarialScope adversary(mode);
    Graph g("back");
    const Expr x = g.input("x", f32({4})), rows = g.input("rows", f32({3, 4}));
    LoopResult r;
    {
      const auto there = g.scope("there");
      r = g.scan(x, rows, [](Graph& b, const ExprList& c, const ExprList& row) {
        const auto back = b.scope("back");
        return LoopStep{b.tanh(c[0] + row[0])};
      });
    }
    g.set_outputs({r.carries[0]});
    (void)test::check_on_adversarial(g, test::drawn(g),
                                     sent({{"there", kOther}, {"back", {AdversarialScope::kDevice, 0}}}));
  }
}

TEST_CASE("placement: one body that two nodes hold goes with each of them") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    const AdversarialScope adversary(mode);
    Graph g = labelled_scan({3, 4}, DType::F64);
    NodeId scan;
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
      if (g.nodes()[i].kind() == OpKind::Scan) scan = NodeId{i};
    std::vector<Value> operands = g.node(scan).inputs;
    operands[0] = g.input("other", Shape({3, 4}, DType::F64)).value();
    const Expr again = g.add(g.node(scan).op, operands);  // has the same body and no label
    g.set_outputs({g.expr(Value(scan, 0)) + again});
    const CompileOptions options = sent({{"c", Device::Cpu}});
    (void)test::check_on_adversarial(g, test::drawn(g), options);
    const CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
    CHECK(kinds_in_bodies(f.compile_result().lir.graph, OpKind::ElementwiseRegion) > 0);  // regions of the device
  }
}

TEST_CASE("placement: products under the very label that is placed stay there when they are joined") {
  const AdversarialScope adversary;
  Graph g("joined");
  const Expr x = g.input("x", f32({4, 8}));
  ExprList products;
  {
    const auto label = g.scope("there");
    for (const char* name : {"q", "k", "v"}) products.push_back(g.matmul(x, g.param(name, f32({8, 8}))));
  }
  g.set_outputs(products);
  const CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), sent({{"there", kOther}}));
  const LirModule& lir = f.compile_result().lir;
  for (std::uint32_t i = 0; i < lir.graph.num_nodes(); ++i)
    if (lir.graph.nodes()[i].kind() == OpKind::DotGeneral) CHECK(lir.plan.node_device(NodeId{i}) == 1);
}

TEST_CASE("placement: nothing is joined across devices, whatever the target could fuse") {
  struct Case {
    const char* name;
    Graph (*build)();
  };
  // Nodes under the labels "a" and "b" and without a label. The nodes of one label have a kernel on their device.
  const Case cases[] = {
      {"a layer begins with the activation behind the product of the other",
       [] {
         Graph g("layers");
         Expr x = g.input("x", f32({4, 8}));
         for (const char* label : {"a", "b"}) {
           const auto scope = g.scope(label);
           x = g.matmul(g.relu(x), g.param(label, f32({8, 8})));
         }
         g.set_outputs({x});
         return g;
       }},
      {"a bias and its product",
       [] {
         Graph g("head");
         Expr x = g.matmul(g.input("x", f32({4, 8})), g.param("w", f32({8, 8})));
         const auto scope = g.scope("a");
         g.set_outputs({g.gelu(x + g.param("bias", f32({8})))});
         return g;
       }},
      {"elementwise chains",
       [] {
         Graph g("chain");
         Expr x = g.input("x", f32({4, 8}));
         for (const char* label : {"a", "b"}) {
           const auto scope = g.scope(label);
           x = g.exp(x) * 0.5;
         }
         g.set_outputs({g.tanh(x) * 2.0});
         return g;
       }},
      {"equal nodes",
       [] {
         Graph g("equal");
         const Expr x = g.input("x", f32({4, 8}));
         ExprList out;
         for (const char* label : {"a", "b"}) {
           const auto scope = g.scope(label);
           out.push_back(g.cumsum(x, 1));
         }
         g.set_outputs(out);
         return g;
       }},
      {"products of one value",
       [] {
         Graph g("shared");
         const Expr x = g.input("x", f32({4, 8}));
         ExprList out;
         for (const char* label : {"a", "a", "b", "b"}) {
           const auto scope = g.scope(label);
           out.push_back(g.matmul(x, g.param(label + std::to_string(out.size()), f32({8, 8}))));
         }
         g.set_outputs(out);
         return g;
       }},
      {"a softmax and a gelu written out, a residual and its norm",
       [] {
         Graph g("written");
         Expr x = g.input("x", f32({4, 8}));
         Expr e;
         {
           const auto scope = g.scope("a");
           e = g.exp(x - g.reduce(ReduceKind::Max, x, {1}, true));
         }
         {
           const auto scope = g.scope("b");
           x = e / g.sum(e, {1}, true) + x;
         }
         Expr f;
         {
           const auto scope = g.scope("a");
           x = g.layer_norm(x, g.param("gamma", f32({8})), g.param("beta", f32({8})), 1e-5);
           f = g.erf(x * 0.70710678118654752440);
         }
         g.set_outputs({(f + 1.0) * x * 0.5});
         return g;
       }},
  };
  for (const test::AdversarialOptions& mode : test::adversarial_modes())
    for (const Case& c : cases)
      for (const DeviceId a : {kOther, DeviceId(Device::Cpu)}) {
        INFO(test::mode_name(mode), ", ", c.name, ", a on ", device_text(a));
        const AdversarialScope adversary(mode);
        const Graph g = c.build();
        CompileOptions options = sent({{"a", a}, {"b", a == kOther ? DeviceId(Device::Cpu) : kOther}});
        std::set<std::string> labels;
        for (const Node& n : g.nodes())
          if (!op_def(n.op).is_leaf()) labels.insert(n.origin.label);
        std::erase_if(options.placement, [&](const Placement& p) { return !labels.contains(p.label); });
        (void)test::check_on_adversarial(g, test::drawn(g), options);
        const CompiledGraph compiled = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
        const LirModule& lir = compiled.compile_result().lir;
        // Every labelled node runs on the device of its label. Every other node runs on the program's own device.
        std::set<std::uint32_t> devices;
        for (std::uint32_t i = 0; i < lir.graph.num_nodes(); ++i) {
          const Node& n = lir.graph.nodes()[i];
          if (op_def(n.op).is_leaf() || n.kind() == OpKind::Transfer) continue;
          const std::uint32_t number = lir.plan.node_device(NodeId{i});
          const DeviceId on = number == 0 ? DeviceId{AdversarialScope::kDevice, 0} : lir.others[number - 1];
          devices.insert(number);
          for (const Placement& p : options.placement)
            if (n.origin.label == p.label) CHECK(device_text(on) == device_text(p.device));
          if (n.origin.label.empty()) CHECK(device_text(on) == device_text({AdversarialScope::kDevice, 0}));
        }
        CHECK(devices.size() == labels.size());
      }
}

TEST_CASE("parts: a device of whole values that takes no stop_gradient is given none") {
  test::AdversarialOptions mode;
  mode.opaque = true;
  mode.refuse = {OpKind::StopGradient};
  for (const bool cut : {false, true}) {
    CAPTURE(cut);
    const AdversarialScope adversary(mode);
    Graph g("views");
    const Expr x = g.input("x", f32({4})), s = g.state("s", Tensor::full(f32({4}), 2)), w = g.param("w", f32({4}));
    const ExprList y = g.cond(
        g.gt(g.sum(x), 0.0), [&](Graph& t) { return ExprList{t.stop_gradient(x) + 1.0}; },
        [&](Graph& t) { return ExprList{t.stop_gradient(x)}; });
    Expr z = g.tanh(g.stop_gradient(g.exp(y[0])));
    {
      const auto label = g.scope("there");
      z = g.stop_gradient(g.stop_gradient(z) * x);
    }
    g.set_state("s", g.stop_gradient(s));
    g.set_outputs({z, g.stop_gradient(x), s, x + g.exp(g.stop_gradient(g.sin(w)))});
    const CompileOptions options = cut ? sent({{"there", kOther}}) : CompileOptions();
    (void)test::check_on_adversarial(g, test::drawn(g), options);
    const CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
    CHECK(kinds_in(f.compile_result().lir.graph, OpKind::StopGradient) == 0);
    CHECK(f.compile_result().lir.plan.parts.size() == (cut ? 2 : 0));
  }
}

TEST_CASE(
    "parts: what a device takes only among what it makes itself is written out or sent to the cpu where it is cut") {
  for (const bool control : {false, true}) {
    CAPTURE(control);
    test::AdversarialOptions mode;
    mode.opaque = true;
    mode.refuse_on_inputs = {OpKind::Softmax, OpKind::Sort};
    if (control) mode.refuse = test::AdversarialOptions::control_flow();
    const AdversarialScope adversary(mode);
    Graph g("alone");
    const Expr x = g.input("x", f32({4, 6})), w = g.param("w", f32({6, 6}));
    const Expr made = g.matmul(x, w), more = g.matmul(made, w);
    Expr apart;
    {
      const auto label = g.scope("there");
      // The device would claim both together with the matmul that they read.
      apart = g.softmax(made, 1) + g.sort(more, 1);
    }
    const LoopResult r =
        g.scan(apart, g.input("rows", f32({3, 4, 6})), [&](Graph& b, const ExprList& c, const ExprList& row) {
          const Expr product = b.matmul(c[0], w);
          const auto label = b.scope("there");
          return LoopStep{b.softmax(product, 1) + row[0]};
        });
    g.set_outputs({g.softmax(g.matmul(r.carries[0], w), 1)});
    CHECK(test::check_on_adversarial(g, test::drawn(g), sent({{"there", kOther}})) ==
          (control ? "host:sort scan " : "host:sort "));
    const CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), sent({{"there", kOther}}));
    CHECK(contains(f.compile_result().dispatch.text(), "rewritten: the test asks it to refuse what reads an input"));
    const LirModule& lir = f.compile_result().lir;
    CHECK(lir.others == std::vector<DeviceId>{kOther, Device::Cpu});
    for (std::uint32_t i = 0; i < lir.graph.num_nodes(); ++i)
      if (lir.graph.nodes()[i].kind() == OpKind::Sort) CHECK(lir.plan.node_device(NodeId{i}) == 2);
    // Where host fallback is disabled, the error names the device of the node.
    CompileOptions strict = sent({{"there", kOther}});
    strict.kernel_dispatch.emplace().host_fallback = false;
    CHECK(contains(error_text([&] { Session(AdversarialScope::kDevice).compile_with(Graph(g), strict); }),
                   "sort has no kernel on adversarial (opaque) in a partition of graph 'alone'"));
  }
}

TEST_CASE("parts: what a device refuses of the preparation of weights, as it is given it, the host evaluates") {
  test::AdversarialOptions mode;
  mode.opaque = true;
  mode.refuse_on_inputs = {OpKind::If, OpKind::Binary};
  const AdversarialScope adversary(mode);
  Graph g("weights");
  const Expr w = g.param("w", f32({4})), p = g.param("p", Shape({}, DType::Bool));
  const ExprList y = g.cond(
      p,
      [&](Graph& t) {
        const ExprList inner = t.cond(
            p, [&](Graph& b) { return ExprList{b.tanh(w)}; }, [&](Graph& b) { return ExprList{b.sin(w)}; });
        return ExprList{inner[0] + 1.0};
      },
      [&](Graph& t) { return ExprList{t.exp(w)}; });
  g.set_outputs({g.tanh(g.input("x", f32({4}))) + y[0]});
  (void)test::check_on_adversarial(g, test::drawn(g));
}

namespace {

// Puts labels a, b and c at random on all nodes outside bodies and on some inside.
Graph with_random_labels(const Graph& from, test::Dice& dice, int percent) {
  std::optional<Graph> inside =
      change_bodies(from, [&](const Graph& body) { return std::optional(with_random_labels(body, dice, 25)); });
  Graph g = inside ? std::move(*inside) : from;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (!op_def(g.nodes()[i].kind()).is_leaf() && dice.chance(percent))
      g.set_label(NodeId{i}, concat_text(dice.chance(33) ? "a" : dice.chance(50) ? "b" : "c", "/n", i));
  return g;
}

bool any_label(const Graph& g, std::string_view start) {
  return std::any_of(g.nodes().begin(), g.nodes().end(),
                     [&](const Node& n) { return n.origin.label.starts_with(start); }) ||
         any_body(g, [&](const Graph& body) { return any_label(body, start); });
}

}  // namespace

TEST_CASE("placement: random programs with labels in bodies, devices that refuse at random, either mode") {
  static constexpr OpKind kFused[] = {OpKind::ElementwiseRegion, OpKind::FusedDot,   OpKind::DotGeneral,
                                      OpKind::StopGradient,      OpKind::Activation, OpKind::Softmax};
  const std::vector<std::uint64_t> seeds = test::seeds(200);
  int split = 0;
  for (const std::uint64_t seed : seeds) {
    test::Dice dice(seed * 77 + 5);
    test::RandomProgram p = test::random_program(seed);
    p.graph = with_random_labels(p.graph, dice, 100);
    test::AdversarialOptions mode;
    mode.seed = seed;
    mode.opaque = dice.chance(70);
    if (dice.chance(40)) mode.refuse = test::AdversarialOptions::control_flow();
    for (const OpKind kind : kFused) {
      if (dice.chance(12)) mode.refuse.add(kind);
      if (dice.chance(15)) mode.refuse_on_inputs.add(kind);
    }
    for (std::int64_t n = dice.below(3); n > 0; --n) {
      const OpKind kind = dice.any(p.graph.nodes()).kind();
      if (!op_def(kind).is_leaf()) (dice.chance(50) ? mode.refuse : mode.refuse_on_inputs).add(kind);
    }
    CompileOptions options;
    if (any_label(p.graph, "a/")) options.placement.push_back({"a", kOther});
    if (any_label(p.graph, "b/") && dice.chance(60)) options.placement.push_back({"b", Device::Cpu});
    if (any_label(p.graph, "c/") && dice.chance(50)) options.placement.push_back({"c", {AdversarialScope::kDevice, 0}});
    split += options.placement.empty() ? 0 : 1;
    INFO("seed ", seed, ", ", test::mode_name(mode), "\n", print_text(p.graph));
    const AdversarialScope adversary(mode);
    test::check_program(p, Session(AdversarialScope::kDevice), options);
  }
  CHECK(split > (seeds.size() == 200 ? 200 / 2 : 0));
}

}  // namespace rlx
