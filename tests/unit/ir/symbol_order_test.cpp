// The stages in which a run can know its symbols, and graphs sorted by stage.
#include <doctest/doctest.h>

#include "rlx/ir/graph.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "tests/support/error_text.h"

namespace rlx::test {

TEST_CASE("symbols of one turn are known together, those made of others come later; leaves and sources come first") {
  Graph g("turns");
  const Expr x = g.input("x", Shape({8}, DType::F32)), k = g.input("k", Shape({8}, DType::I64));
  const Expr late = g.exp(x);  // no source of a symbol needs it
  const Dim a = g.symbol("a", {0, 8}, g.sum(k)), b = g.symbol("b", {0, 8}, g.reduce_max(k, {0}));
  const Expr part = g.narrow(k, 0, 0, a);
  const Dim c = g.symbol("c", {0, 8}, g.sum(part));
  const Expr y = g.input("y", Shape({8}, DType::F32));
  g.set_outputs({g.narrow(late, 0, 0, b), g.narrow(y, 0, 0, c), g.slice(x, {c}, {c + Dim(1)})});
  const auto order = symbol_order(g);
  REQUIRE(order.has_value());
  CHECK(order->stages == std::vector<std::vector<std::string>>{{"a", "b"}, {"c"}});
  CHECK(order->stage[part.value().node.index] == 1);
  CHECK(order->stage[late.value().node.index] == 2);
  CHECK(in_symbol_order(g));
  CHECK(has_symbols(g.nodes().back()));  // a symbol in its attributes only
  CHECK(symbols_of(g.nodes().back()) == std::vector<std::string>{"c"});

  const Graph sorted = sorted_by_symbols(g);
  CHECK(sorted.nodes()[2].kind() == OpKind::Input);  // y, which was built late
  CHECK(sorted.symbol_sources().at("c").node < sorted.outputs()[0].node);
  std::uint32_t exp_at = 0;
  for (std::uint32_t i = 0; i < sorted.num_nodes(); ++i)
    if (sorted.nodes()[i].kind() == OpKind::Activation) exp_at = i;
  CHECK(exp_at > sorted.symbol_sources().at("c").node.index);
}

TEST_CASE("ordered ops keep their order: what a source needs brings those before it along") {
  Graph g("ordered");
  const Expr x = g.input("x", Shape({8}, DType::F32));
  const Expr first = g.all_reduce(x, ReduceKind::Sum, "data", 1);
  const Expr second = g.all_reduce(g.sum(x), ReduceKind::Sum, "data", 1);
  const Expr third = g.all_reduce(x * 2.0, ReduceKind::Sum, "data", 1);
  g.set_outputs({g.first(third, g.cast(second, DType::I64)), first});
  const auto order = symbol_order(g);
  REQUIRE(order.has_value());
  CHECK(order->stage[first.value().node.index] == 0);
  CHECK(order->stage[third.value().node.index] == 1);
  const Graph sorted = sorted_by_symbols(g);
  REQUIRE(sorted.ordered().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(sorted.node(sorted.ordered()[i]).shape() == g.node(g.ordered()[i]).shape());
}

TEST_CASE("a source that needs its own symbol is named") {
  Graph g("circle");
  const Expr k = g.input("k", Shape({8}, DType::I64));
  const Dim a = g.symbol("a", {0, 8}, g.sum(k));
  const Expr part = g.narrow(k, 0, 0, a);
  g.set_outputs({part});
  g.set_symbol_source("a", g.sum(part).value());
  SymbolCircle circle;
  CHECK_FALSE(symbol_order(g, &circle).has_value());
  CHECK(circle.symbol == "a");
  CHECK(circle.node == part.value().node);
  CHECK_FALSE(in_symbol_order(g));
  CHECK(contains(error_text([&] { (void)sorted_by_symbols(g); }),
                 "symbol 'a' is used by the computation of its own value"));
}

}  // namespace rlx::test
