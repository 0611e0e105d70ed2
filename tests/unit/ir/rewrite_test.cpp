// The rewriter: replacements, order, origins, leaves; and the matchers.
#include "rlx/ir/rewrite.h"

#include <doctest/doctest.h>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"

using namespace rlx;

namespace {

Rewritten commit(GraphRewriter& r, CommitOptions options = {}) {
  std::string before = print_text(r.source(), {.origins = true});
  Rewritten out = r.commit("test-pass", options);
  CHECK(print_text(r.source(), {.origins = true}) == before);  // the source is never changed
  CHECK(verify(out.graph, Level::Mir).empty());
  return out;
}

std::string body(const Graph& g) {
  std::string text = print_text(g, {.labels = false});
  return text.substr(text.find('\n') + 1);
}

const NodeId n0{0}, n1{1}, n2{2}, n3{3}, n4{4};

}  // namespace

TEST_CASE("rewrite: a replacement reaches users, outputs and state updates, at the place of the old node") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2] f32
    %1 = state() {name = "s"} : [2] f32
    %2 = relu(%0) : [2] f32
    %3 = add(%2, %1) : [2] f32
    %4 = exp(%3) : [2] f32
    return %4, %2
    set_state "s" %2
  })");
  GraphRewriter r(g);
  Expr x = r.expr(n0);
  r.replace(n2, r.stage().gelu(r.stage().neg(x)));
  CHECK(r.is_replaced(Value(n2)));
  CHECK(r.is_replaced(n2));
  CHECK_FALSE(r.is_replaced(n3));
  Rewritten out = commit(r);
  CHECK(out.changed);
  CHECK(body(out.graph) == R"(  %0 = input() {name = "x"} : [2] f32
  %1 = state() {name = "s"} : [2] f32
  %2 = neg(%0) : [2] f32
  %3 = gelu(%2) : [2] f32
  %4 = add(%3, %1) : [2] f32
  %5 = exp(%4) : [2] f32
  return %5, %3
  set_state "s" %3
}
)");
  CHECK(out.map(n0) == Value(n0));
  CHECK(out.map(n2) == Value(n3));
  CHECK(out.map(n4) == Value(NodeId{5}));
}

TEST_CASE("rewrite: nothing recorded gives the same graph; dead nodes go, leaves stay unless asked") {
  Graph g = parse_text(R"(graph @g {
    symbol n [1, 8]
    %0 = input() {name = "unused"} : [n] f32
    %1 = param() {name = "w"} : [2] f32
    %2 = state() {name = "s"} : [2] f32
    %3 = constant() {value = [2] f32 {1, 2}} : [2] f32
    %4 = input() {name = "x"} : [2] f32
    %5 = exp(%3) : [2] f32
    %6 = relu(%4) : [2] f32
    return %6
  })");
  GraphRewriter r(g);
  CHECK_FALSE(r.changed());
  Rewritten out = commit(r);
  CHECK(out.changed);  // the dead exp and its constant
  CHECK(out.graph.num_nodes() == 5);
  CHECK(out.graph.symbols() == g.symbols());
  CHECK_FALSE(out.map.has(NodeId{5}));
  GraphRewriter again(out.graph);
  Rewritten same = commit(again);
  CHECK_FALSE(same.changed);
  CHECK(same_graph(same.graph, out.graph));
  GraphRewriter strip(g);
  Rewritten bare = commit(strip, {.drop_params = true, .drop_states = true});
  CHECK(bare.graph.leaves(OpKind::Input).size() == 2);
  CHECK(bare.graph.num_nodes() == 3);
}

TEST_CASE("rewrite: staged nodes read the replacements of what they name, earlier or later") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2] f32
    %1 = relu(%0) : [2] f32
    %2 = exp(%1) : [2] f32
    %3 = neg(%2) : [2] f32
    return %3
  })");
  for (bool forward : {true, false}) {
    GraphRewriter r(g);
    auto step = [&](NodeId id) { r.replace(id, r.stage().square(r.expr(g.node(id).inputs[0]))); };
    if (forward)
      step(n1), step(n3);
    else
      step(n3), step(n1);
    r.replace(n2, Value(n1));  // replaces an old value by an old value that is itself replaced
    Rewritten out = commit(r);
    CHECK(body(out.graph) ==
          "  %0 = input() {name = \"x\"} : [2] f32\n  %1 = square(%0) : [2] f32\n  %2 = square(%1) : [2] f32\n  return "
          "%2\n}\n");
    CHECK(out.map(n2) == Value(n1));
  }
}

TEST_CASE("rewrite: original() wraps a value; without it the cycle is a named fault") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2] f32
    %1 = relu(%0) : [2] f32
    %2 = add(%1, %1) : [2] f32
    return %2
  })");
  GraphRewriter r(g);
  r.replace(n1, r.stage().exp(r.original(n1)));
  CHECK(body(commit(r).graph) ==
        "  %0 = input() {name = \"x\"} : [2] f32\n  %1 = relu(%0) : [2] f32\n  %2 = exp(%1) : [2] f32\n"
        "  %3 = add(%2, %2) : [2] f32\n  return %3\n}\n");
  GraphRewriter bad(g);
  bad.replace(n1, bad.stage().exp(bad.expr(n1)));
  CHECK_THROWS_WITH_AS(bad.commit("p"), doctest::Contains("pass p: a replacement reads the value it replaces"), Error);
  GraphRewriter swap(g);
  swap.replace(n1, Value(n2));
  swap.replace(n2, Value(n1));
  CHECK_THROWS_WITH_AS(swap.commit("p"), doctest::Contains("form a cycle"), Error);
}

TEST_CASE("rewrite: wrong replacements are faults that name both sides") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2] f32
    %1 = relu(%0) : [2] f32
    %2 = reduce_sum(%1) {axes = [0]} : [] f32
    return %1, %2
  })");
  GraphRewriter r(g);
  CHECK_THROWS_WITH_AS(r.replace(n1, r.stage().scalar(1)), doctest::Contains("does not have the type of %1"), Error);
  CHECK_THROWS_WITH_AS(r.replace(n1, Value(n2)), doctest::Contains("does not have the type of %1"), Error);
  r.replace(n1, Value(n0));
  CHECK_THROWS_WITH_AS(r.replace(n1, Value(n0)), doctest::Contains("%1 is replaced twice"), Error);
  Graph other("o");
  CHECK_THROWS_WITH_AS(r.replace(n0, other.input("y", Shape({2}, DType::F32))), doctest::Contains("new graph"), Error);
  CHECK_THROWS_AS(r.expr(Value(NodeId{9})), Error);
}

TEST_CASE("rewrite: results of a node are replaced one by one or together") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [4] f32
    %1:2 = top_k(%0) {k = 2} : [2] f32, [2] i32
    return %1#1, %1
  })");
  GraphRewriter one(g);
  one.replace(Value(n1, 1), one.stage().add(one.original(Value(n1, 1)), 1));
  CHECK(body(commit(one).graph) == R"(  %0 = input() {name = "x"} : [4] f32
  %1:2 = top_k(%0) {k = 2} : [2] f32, [2] i32
  %2 = constant() {value = [] i32 {1}} : [] i32
  %3 = add(%1#1, %2) : [2] i32
  return %3, %1
}
)");
  GraphRewriter both(g);
  auto top = both.stage().top_k(both.stage().neg(both.expr(n0)), 2);
  both.replace_node(n1, {top.values, top.indices});
  Rewritten out = commit(both);
  CHECK(out.graph.outputs() == std::vector<Value>{Value(n2, 1), Value(n2)});
  CHECK(out.map(Value(n1, 1)) == Value(n2, 1));
}

TEST_CASE("rewrite: origins keep label and line and list every node that went in") {
  Graph g("g");
  Expr x = g.input("x", Shape({2, 4}, DType::F32)), w = g.param("w", Shape({4, 3}, DType::F32)),
       b = g.param("b", Shape({3}, DType::F32));
  Expr y = g.matmul(x, w);
  Expr z = g.add(y, b);
  Expr a = g.gelu(z);
  g.set_outputs({a});
  g.set_label(z.value().node, "layer0/up");
  for (Expr e : {y, z, a}) g.origin(e.value().node).loc = {"model.cpp", static_cast<int>(10 + e.value().node.index)};
  GraphRewriter r(g);
  Graph& s = r.stage();
  r.replace(a, s.relu(s.matmul(r.expr(x), r.expr(w)) + r.expr(b)));
  Rewritten out = commit(r);
  CHECK(out.graph.num_nodes() == 6);
  for (std::uint32_t i = 3; i < 6; ++i) {
    const Origin& o = out.graph.node(NodeId{i}).origin;
    CHECK(o.label == "layer0/up");  // the replaced gelu had no label, the op that it absorbed has one
    CHECK(o.loc.line == 15);        // the user's line, not the pass's
    CHECK(o.pass == "test-pass");
    CHECK(o.from == std::vector<std::string>{"%3 matmul", "%4 add", "%5 gelu"});
  }
  CHECK(out.graph.node(n0).origin.pass.empty());
  // A second pass keeps the oldest names.
  GraphRewriter again(out.graph);
  again.replace(out.graph.outputs()[0], again.stage().relu(again.stage().matmul(again.expr(n0), again.expr(n1))));
  Graph last = commit(again).graph;
  CHECK(last.node(last.outputs()[0].node).origin.from == std::vector<std::string>{"%3 matmul", "%4 add", "%5 gelu"});
}

TEST_CASE("rewrite: a node shared by several replacements lists them all") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2, 4] f32
    %1 = param() {name = "a"} : [4, 2] f32
    %2 = param() {name = "b"} : [4, 2] f32
    %3 = matmul(%0, %1) : [2, 2] f32 @"q"
    %4 = matmul(%0, %2) : [2, 2] f32 @"k"
    return %3, %4
  })");
  GraphRewriter r(g);
  Graph& s = r.stage();
  Expr joined = s.matmul(r.expr(n0), s.concat({r.expr(n1), r.expr(n2)}, 1));
  r.replace(n3, s.narrow(joined, 1, 0, 2));
  r.replace(n4, s.narrow(joined, 1, 2, 2));
  Graph out = commit(r).graph;
  const Origin& product = out.node(n4).origin;
  CHECK(out.node(n4).op.is<ops::MatMul>());
  CHECK(product.from == std::vector<std::string>{"%3 matmul", "%4 matmul"});
  CHECK(out.node(out.outputs()[1].node).origin.from == std::vector<std::string>{"%4 matmul"});
  CHECK(out.node(out.outputs()[1].node).origin.label == "k");
}

TEST_CASE("rewrite: two leaves of one name stay two leaves") {
  Graph g("dup");
  Expr a = g.input("x", Shape({2}, DType::F32));
  NodeId b = g.add_node(Node{ops::Param{"x", {2}, DType::F32}, {}, {a.shape()}, {}});
  g.set_outputs({g.add(a, g.expr(b))});
  GraphRewriter r(g);
  Graph out = r.commit("p").graph;
  CHECK(same_graph(out, g));
}

TEST_CASE("rewrite: builder functions and decompositions work on the stage") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2, 3] f32
    %1 = log_softmax(%0) {axis = 1} : [2, 3] f32
    return %1
  })");
  GraphRewriter r(g);
  std::vector<Expr> operands = r.exprs(g.node(n1).inputs);
  r.replace_node(n1, decompose_into(r.stage(), g.node(n1).op, operands));
  Graph out = commit(r).graph;
  CHECK(out.num_nodes() > 3);
  CHECK(out.leaves(OpKind::Input).size() == 1);
  for (const Node& n : out.nodes()) CHECK(n.kind() != OpKind::LogSoftmax);
}

TEST_CASE("rewrite: a chain of a hundred thousand nodes needs no call stack and linear time") {
  Graph g("deep");
  Value v = g.input("x", Shape({2}, DType::F32));
  for (int i = 0; i < 100000; ++i)
    v = Value(g.add_node(Node{ops::Activation{ActivationKind::Relu}, {v}, {g.shape(v)}, {}}));
  g.set_outputs(std::vector<Value>{v});
  GraphRewriter r(g);
  for (NodeId id : r.nodes())
    if (g.node(id).kind() == OpKind::Activation) r.replace(id, r.stage().neg(r.expr(g.node(id).inputs[0])));
  Rewritten out = r.commit("p");
  CHECK(out.graph.num_nodes() == 100001);
  CHECK(out.graph.nodes().back().op.as<ops::Activation>().fn == ActivationKind::Neg);
}

TEST_CASE("value maps compose, and say what is gone") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2] f32
    %1 = exp(%0) : [2] f32
    %2 = relu(%0) : [2] f32
    return %2
  })");
  GraphRewriter r(g);
  Rewritten first = r.commit("a");
  GraphRewriter s(first.graph);
  s.replace(n1, s.stage().neg(s.stage().neg(s.expr(n0))));
  Rewritten second = s.commit("b");
  ValueMap both = first.map.then(second.map);
  CHECK(both(n0) == Value(n0));
  CHECK_FALSE(both.has(n1));
  CHECK(both(n2) == Value(n2));
  CHECK_FALSE(both.has(NodeId{77}));
  CHECK_FALSE(both.has(Value(n0, 5)));
  CHECK(ValueMap::identity(g)(n2) == Value(n2));
}

TEST_CASE("matchers: as_matmul sees products with and without batch, in either orientation") {
  auto form = [](const std::string& line, const std::string& a, const std::string& b) {
    Graph g = parse_text("graph @g { %0 = input() {name = \"a\"} : " + a + "\n%1 = input() {name = \"b\"} : " + b +
                         "\n%2 = " + line + "}");
    return as_matmul(g, n2);
  };
  auto m = form("dot_general(%0, %1) {lhs_contract = [2], rhs_contract = [0]} : [2, s, 5] f32", "[2, s, 4] f32",
                "[4, 5] f32");
  REQUIRE(m);
  CHECK(m->lhs == Value(n0));
  CHECK(m->rhs == Value(n1));
  CHECK(m->m == Dim(2) * Dim::symbol("s"));
  CHECK(m->n == Dim(5));
  CHECK(m->k == Dim(4));
  CHECK(m->batch.empty());
  CHECK_FALSE(m->rhs_transposed);
  CHECK_FALSE(m->fused);
  m = form("dot_general(%0, %1) {lhs_contract = [1], rhs_contract = [1]} : [3, 5] f32", "[3, 4] f32", "[5, 4] f32");
  REQUIRE(m);
  CHECK(m->rhs_transposed);
  CHECK_FALSE(m->lhs_transposed);
  CHECK(m->n == Dim(5));
  m = form("dot_general(%0, %1) {lhs_contract = [0], rhs_contract = [0]} : [3, 5] f32", "[4, 3] f32", "[4, 5] f32");
  REQUIRE(m);
  CHECK(m->lhs_transposed);
  CHECK(m->m == Dim(3));
  m = form(
      "dot_general(%0, %1) {lhs_contract = [3], rhs_contract = [3], lhs_batch = [0, 1], rhs_batch = [0, 1]} : [2, 3, "
      "4, 6] f32",
      "[2, 3, 4, 5] f32", "[2, 3, 6, 5] f32");
  REQUIRE(m);
  CHECK(m->batch == Dims{2, 3});
  CHECK(m->rhs_transposed);
  CHECK(m->m == Dim(4));
  CHECK(m->n == Dim(6));
  m = form("matmul(%0, %1) : [2, 4, 6] f32", "[2, 4, 5] f32", "[2, 5, 6] f32");
  REQUIRE(m);
  CHECK(m->batch == Dims{2});
  CHECK_FALSE(form("matmul(%0, %1) : [2, 4, 6] f32", "[1, 4, 5] f32", "[2, 5, 6] f32"));  // broadcast batch
  CHECK_FALSE(
      form("dot_general(%0, %1) {lhs_contract = [0, 1], rhs_contract = [0, 1]} : [] f32", "[2, 3] f32", "[2, 3] f32"));
  CHECK_FALSE(form("dot_general(%0, %1) {lhs_contract = [0], rhs_contract = [0]} : [3, 4, 5] f32", "[2, 3, 4] f32",
                   "[2, 5] f32"));
  CHECK_FALSE(form("dot_general(%0, %1) {lhs_contract = [1], rhs_contract = [0]} : [3, 5, 6] f32", "[3, 4] f32",
                   "[4, 5, 6] f32"));
  CHECK_FALSE(form("add(%0, %1) : [2] f32", "[2] f32", "[2] f32"));
}

TEST_CASE("matchers: constants and weights") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2] f32
    %1 = param() {name = "w"} : [2] f32
    %2 = constant() {value = [] f32 {0.5}} : [] f32
    %3 = expand(%2) : [2] f32
    %4 = reshape(%3) : [2, 1] f32
    %5 = constant() {value = [2] f32 {1, 1}} : [2] f32
    %6 = add(%1, %5) : [2] f32
    %7 = add(%6, %0) : [2] f32
    %8 = state() {name = "s"} : [2] f32
    %9 = exp(%8) : [2] f32
    %10 = iota() : [n] i32
    return %7
  })");
  CHECK(constant_scalar(g, NodeId{2}) == 0.5);
  CHECK(constant_scalar(g, NodeId{4}) == 0.5);
  CHECK_FALSE(constant_scalar(g, NodeId{5}));
  CHECK_FALSE(constant_scalar(g, NodeId{0}));
  std::vector<bool> expected = {false, true, true, true, true, true, true, false, false, false, false};
  CHECK(param_only_nodes(g) == expected);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) CHECK(is_param_only(g, NodeId{i}) == expected[i]);
}
