// The verifier catches each broken invariant and names the node.
#include "rlx/ir/verify.h"

#include <doctest/doctest.h>

#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/text.h"

using namespace rlx;

namespace {

const Shape kVec({2}, DType::F32);
const OpBox kRelu = ops::Activation{ActivationKind::Relu};
const NodeId kFirst{0};

// All messages, one per line.
std::string problems(const Graph& g, Level level = Level::Mir) {
  std::string out;
  for (const Diagnostic& d : verify(g, level)) out += (out.empty() ? "" : "\n") + d.message;
  return out;
}

Graph with_input() {
  Graph g("g");
  g.input("x", kVec);
  return g;
}

}  // namespace

TEST_CASE("verify: a sound graph has no problems") {
  Graph g = with_input();
  g.set_outputs({g.relu(g.expr(kFirst))});
  CHECK(problems(g) == "");
  CHECK_NOTHROW(verify_or_throw(g, Level::Mir, "test"));
}

TEST_CASE("verify: stored shapes are those the rule gives, and an unsound node is reported once") {
  Graph g = with_input();
  NodeId bad = g.add_node(Node{kRelu, {Value(kFirst)}, {Shape({3}, DType::F32)}, {}});
  g.add_node(Node{kRelu, {Value(bad)}, {Shape({3}, DType::F32)}, {}});
  CHECK(problems(g) == "relu: the results should be [2] f32");
  Graph h = with_input();
  h.add_node(Node{kRelu, {Value(kFirst)}, {}, {}});
  CHECK(problems(h) == "relu: has no results");
  Graph two = with_input();
  two.add_node(Node{kRelu, {Value(kFirst)}, {kVec, kVec}, {}});
  CHECK(problems(two) == "relu: the results should be [2] f32");
}

TEST_CASE("verify: operand counts, attribute ranges and dtypes come from the shape rules") {
  Graph g = with_input();
  g.add_node(Node{kRelu, {Value(kFirst), Value(kFirst)}, {kVec}, {}});
  CHECK(problems(g).find("relu: got 2 operands") == 0);
  Graph axis = with_input();
  axis.add_node(Node{ops::Softmax{7}, {Value(kFirst)}, {kVec}, {}});
  CHECK(problems(axis) == "softmax: axis 7 is outside [2] f32");
  Graph index = with_input();
  index.add_node(Node{ops::Gather{{0}}, {Value(kFirst), Value(kFirst)}, {kVec}, {}});
  CHECK(problems(index).find("gather: ") == 0);
  CHECK(problems(index).find("f32") != std::string::npos);  // float indices
  Graph enumerator = with_input();
  enumerator.add_node(Node{ops::Activation{static_cast<ActivationKind>(200)}, {Value(kFirst)}, {kVec}, {}});
  CHECK(problems(enumerator).find("attribute 'fn' is 200, outside its enum") != std::string::npos);
}

TEST_CASE("verify: ops stay in their level") {
  Graph g = parse_text(R"(graph @g {
    %0 = input() {name = "x"} : [2, 4] f32
    %1 = param() {name = "w"} : [4, 3] f32
    %2 = linear(%0, %1) : [2, 3] f32
    return %2
  })");
  CHECK(problems(g, Level::Hir) == "");
  CHECK(problems(g, Level::Mir) == "linear: linear is a HIR op, but the graph is at level MIR");
  CHECK(problems(g, Level::Lir) == "linear: linear is a HIR op, but the graph is at level LIR");
  CHECK(verify(g, Level::Mir)[0].hint == "lower the graph first");
}

TEST_CASE("verify: leaf names are distinct across kinds") {
  Graph g = with_input();
  g.add_node(Node{ops::Param{"x", {2}, DType::F32}, {}, {kVec}, {}});
  CHECK(problems(g) == "param: the name 'x' is already used by %0");
}

TEST_CASE("verify: sub-graphs are closed and sound") {
  auto outer = [](const Graph& body) {
    Graph g = with_input();
    ops::ElementwiseRegion op;
    op.body = std::make_shared<const Graph>(body);
    g.add_node(Node{op, {Value(kFirst)}, {kVec}, {}});
    return problems(g);
  };
  Graph body("body");
  body.set_outputs({body.relu(body.input("a", kVec))});
  CHECK(outer(body) == "");
  Graph param = body;
  param.param("w", kVec);
  CHECK(outer(param).find("param: a sub-graph may have only inputs, constants and ops") == 0);
  Graph state = body;
  state.state("s", Tensor::zeros(kVec));
  state.set_state("s", state.expr(kFirst));
  CHECK(outer(state).find("state: a sub-graph may have only inputs, constants and ops") == 0);
  CHECK(outer(state).find("a sub-graph sets state 's'") != std::string::npos);
  Graph wrong = body;
  wrong.add_node(Node{kRelu, {Value(kFirst)}, {Shape({9}, DType::F32)}, {}});
  CHECK(outer(wrong) == "relu: the results should be [2] f32");
  Graph g = with_input();
  g.add_node(Node{ops::ElementwiseRegion{}, {Value(kFirst)}, {kVec}, {}});
  CHECK(problems(g) == "elementwise_region: attribute 'body' is not set");
}

TEST_CASE("verify: symbols have possible bounds") {
  Graph g = with_input();
  g.set_symbols({{"n", {5, 4, 1}}, {"m", {0, 4, 0}}});
  CHECK(problems(g) == "symbol m has impossible bounds [0, 4] div 0\nsymbol n has impossible bounds [5, 4] div 1");
}

TEST_CASE("packed layouts: only of prepared weights, and in bodies those of the operands") {
  const auto text_of = [](const Graph& g, Level level) {
    std::string all;
    for (const Diagnostic& d : verify(g, level)) all += d.text() + "\n";
    return all;
  };
  const PackedLayout panels{"panels", {16, 8, 0, 1}, 1024};
  const auto with_input = [&](const PackedLayout& form) {
    Graph g("g");
    ops::Input x{"x", {4, 4}, DType::F32};
    x.form = form;
    g.set_outputs({Value(g.add_node(Node{x, {}, {Shape({4, 4}, DType::F32)}, {}}))});
    return g;
  };
  CHECK(text_of(with_input({}), Level::Lir).empty());
  CHECK(text_of(with_input(panels), Level::Mir).find("'x' has the packed layout 'panels(") != std::string::npos);
  CHECK(text_of(with_input(panels), Level::Lir).find("remove the packed layout") != std::string::npos);

  // A scan over two matrices in a packed layout; its body takes one of them per step.
  const auto scan_with = [&](const PackedLayout& taken) {
    Graph body("step");
    const Expr h = body.input("h", Shape({4, 4}, DType::F32));
    ops::Input row{"w", {4, 4}, DType::F32};
    row.form = taken;
    (void)body.add_node(Node{row, {}, {Shape({4, 4}, DType::F32)}, {}});
    body.set_outputs({h});
    Graph g("g");
    const Expr x = g.input("x", Shape({4, 4}, DType::F32));
    const Shape stack({2, 4, 4}, DType::F32);
    const NodeId w = g.add_node(
        Node{ops::Param{"w", stack.dims(), DType::F32, ParamMode::Frozen, stacked(panels, 2)}, {}, {stack}, {}});
    ops::Scan op;
    op.carries = 1, op.length = {2}, op.body = std::make_shared<const Graph>(std::move(body));
    g.set_outputs({Value(g.add_node(Node{op, {x.value(), Value(w)}, {Shape({4, 4}, DType::F32)}, {}}))});
    return g;
  };
  CHECK(text_of(scan_with(panels), Level::Lir).empty());
  for (const PackedLayout& other : {PackedLayout{}, stacked(panels, 2), PackedLayout{"panels", {8, 8, 0, 1}, 1024}})
    CHECK(text_of(scan_with(other), Level::Lir).find("'w' of the body has the packed layout") != std::string::npos);
}

TEST_CASE("verify_or_throw names the maker, the graph, the node and how many more problems there are") {
  Graph g("net");
  Expr x = g.input("x", kVec);
  for (int i = 0; i < 3; ++i) g.add_node(Node{kRelu, {x.value()}, {Shape({3}, DType::F32)}, {}});
  g.origin(NodeId{1}).label = "layer0";
  try {
    verify_or_throw(g, Level::Mir, "pass fuse-dot");
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(std::string(e.what()) ==
          "shape mismatch: pass fuse-dot: graph 'net': relu: the results should be [2] f32\n"
          "  %1 = relu(%0) : [3] f32   \"layer0\"\n  and 2 more problems");
  }
}
