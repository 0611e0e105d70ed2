// Lookup of leaves by kind and name, in graphs that were built, copied, moved and bound.
#include <doctest/doctest.h>

#include "rlx/ir/graph.h"
#include "rlx/ir/module.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/leaves.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

Node leaf(OpBox op) { return Node{std::move(op), {}, {Shape({2}, DType::F32)}, {}}; }

void check_leaves(const Graph& g, int n) {
  for (int i = 0; i < n; ++i) {
    const std::string at = std::to_string(i);
    REQUIRE(g.leaf_name(g.find_leaf(OpKind::Input, "i" + at)) == "i" + at);
    REQUIRE(g.leaf_name(g.find_leaf(OpKind::Param, "p" + at)) == "p" + at);
    REQUIRE(g.leaf_name(g.find_leaf(OpKind::State, "s" + at)) == "s" + at);
    REQUIRE(!g.find_leaf(OpKind::Input, "s" + at).valid());
    REQUIRE(!g.find_leaf(OpKind::State, "i" + at).valid());
  }
  CHECK(!g.find_leaf(OpKind::Input, "").valid());
  CHECK(!g.find_leaf(OpKind::Input, "i" + std::to_string(n)).valid());
  CHECK(!g.find_leaf(OpKind::Binary, "i0").valid());
  for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State}) {
    const std::vector<NodeId> ids = g.leaves(kind);
    REQUIRE(ids.size() == static_cast<std::size_t>(n));
    for (std::size_t k = 0; k < ids.size(); ++k) {
      CHECK(g.node(ids[k]).kind() == kind);
      CHECK((k == 0 || ids[k - 1] < ids[k]));
    }
  }
}

TEST_CASE("leaves are found by kind and name at every number of them, also in copies") {
  Graph g("leaves");
  const Dim rows = g.symbol("rows", {1, 8});
  for (int i = 0; i < 70; ++i) {
    const std::string at = std::to_string(i);
    Expr x = g.input("i" + at, {{rows}, DType::F32});
    g.param("p" + at, {{2}, DType::F32});
    g.set_state("s" + at, g.state("s" + at, Tensor::zeros({{2}, DType::F32})) + 1);
    g.set_outputs({x});
    check_leaves(g, i + 1);
  }
  check_leaves(g.bind({{"rows", 3}}), 70);
  Graph copy = g;
  copy.input("more", {{2}, DType::F32});
  CHECK(copy.find_leaf(OpKind::Input, "more").valid());
  check_leaves(g, 70);
  const Graph moved = std::move(g);
  check_leaves(moved, 70);
}

TEST_CASE("of two leaves with one kind and name, which verify refuses, the first is found") {
  for (int before : {0, 5, 40}) {
    Graph g("twice");
    for (int i = 0; i < before; ++i) g.input("x" + std::to_string(i), {{2}, DType::F32});
    const NodeId first = g.add_node(leaf(ops::Input{"twice", {2}, DType::F32}));
    g.add_node(leaf(ops::Input{"twice", {2}, DType::F32}));
    const NodeId param = g.add_node(leaf(ops::Param{"twice", {2}, DType::F32}));
    for (int i = 0; i < 40; ++i) g.input("y" + std::to_string(i), {{2}, DType::F32});
    CHECK(g.find_leaf(OpKind::Input, "twice") == first);
    CHECK(g.find_leaf(OpKind::Param, "twice") == param);
  }
}

TEST_CASE("a name that a leaf has is refused to another one, however it is added") {
  for (int before : {0, 40}) {
    CAPTURE(before);
    Graph g("twice");
    for (int i = 0; i < before; ++i) g.input("x" + std::to_string(i), {{2}, DType::F32});
    g.param("w", {{2}, DType::F32});
    const std::size_t nodes = g.num_nodes();
    const OpBox again[] = {ops::Param{"w", {2}, DType::F32}, ops::Input{"w", {2}, DType::F32},
                           ops::State{"w", {2}, DType::F32, {}}};
    for (const OpBox& op : again)
      CHECK(test::contains(test::error_text([&] { g.add(op, {}); }),
                           "graph 'twice' already has an input, param or state 'w'"));
    CHECK(test::contains(test::error_text([&] { g.state("w", Tensor::zeros({{2}, DType::F32})); }), "state 'w'"));
    CHECK(g.num_nodes() == nodes);
    g.add(ops::Param{"v", {2}, DType::F32}, {});
  }
}

TEST_CASE("set_state replaces the value that was set before, in any order of states, also after bind") {
  Graph g("states");
  std::vector<Expr> states;
  for (int i = 0; i < 30; ++i) {
    states.push_back(g.state("s" + std::to_string(i), Tensor::zeros({{2}, DType::F32})));
    if (i % 2) g.set_state("s" + std::to_string(i), states.back() + 1);
  }
  for (int i = 29; i >= 0; --i) g.set_state("s" + std::to_string(i), states[static_cast<std::size_t>(i)] * 2);
  Graph bound = g.bind({});
  bound.set_state("s7", bound.expr(states[7].value()));
  for (const Graph* each : {&g, &bound}) {
    REQUIRE(each->state_updates().size() == 30);
    std::vector<bool> seen(30);
    for (const Graph::StateUpdate& u : each->state_updates()) {
      const auto i = static_cast<std::size_t>(std::stoi(u.name.substr(1)));
      CHECK(!seen[i]);
      seen[i] = true;
      const Node& n = each->node(u.value.node);
      if (each == &bound && i == 7)
        CHECK(u.value == states[7].value());
      else
        CHECK((n.op.as<ops::Binary>().fn == BinaryKind::Mul && n.inputs[0] == states[i].value()));
    }
  }
}

}  // namespace
}  // namespace rlx
