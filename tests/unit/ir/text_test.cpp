// The text form: exact prints, and equality after parsing back.
#include "rlx/ir/text.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/verify.h"
#include "tests/unit/ir/sample_graph.h"

using namespace rlx;

namespace {

bool same_labels(const Graph& a, const Graph& b) {
  for (std::size_t i = 0; i < a.num_nodes(); ++i)
    if (a.nodes()[i].origin.label != b.nodes()[i].origin.label) return false;
  return true;
}

void expect_round_trip(const Graph& g) {
  std::string text = print_text(g);
  INFO(text);
  Graph back = parse_text(text);
  CHECK(same_graph(g, back));
  CHECK(g.name() == back.name());
  CHECK(same_labels(g, back));
  CHECK(print_text(back) == text);
}

void expect_constant(Tensor t, std::string_view printed) {
  Graph g("c");
  g.set_outputs({g.constant(t)});
  CHECK(print_node(g, NodeId{0}) ==
        concat_text("%0 = constant() {value = ", t.shape(), " ", printed, "} : ", t.shape()));
  expect_round_trip(g);
}

}  // namespace

TEST_CASE("text: a graph with everything prints as documented") {
  Graph g("all.of-it");
  Dim seq = g.symbol("seq", {0, 4096, 16});
  Expr x = g.input("x", Shape({1, seq, 8}, DType::F32));
  Expr w = g.param("w", Shape({8, 4}, DType::F32));
  Expr s = g.state("kv", Tensor::zeros(Shape({1, 2}, DType::F32)));
  Expr y = g.matmul(x, w);
  g.set_label(y.value().node, "layer0/q");
  auto top = g.top_k(g.gelu(y), 2);
  Expr first = g.reshape(g.slice(top.values, {0, 0, 0}, {1, 1, 2}), {1, 2});
  g.set_outputs({y, top.indices});
  g.set_state("kv", g.add(s, first));
  CHECK(print_text(g) == R"(graph @all.of-it {
  symbol seq [0, 4096] div 16
  %0 = input() {name = "x"} : [1, seq, 8] f32
  %1 = param() {name = "w"} : [8, 4] f32
  %2 = state() {name = "kv", init = [1, 2] f32 {0, 0}} : [1, 2] f32
  %3 = matmul(%0, %1) : [1, seq, 4] f32 @"layer0/q"
  %4 = gelu(%3) : [1, seq, 4] f32
  %5:2 = top_k(%4) {k = 2} : [1, seq, 2] f32, [1, seq, 2] i32
  %6 = slice(%5) {starts = [0, 0, 0], limits = [1, 1, 2], strides = [1, 1, 1]} : [1, 1, 2] f32
  %7 = reshape(%6) : [1, 2] f32
  %8 = add(%2, %7) : [1, 2] f32
  return %3, %5#1
  set_state "kv" %8
}
)");
  expect_round_trip(g);
}

TEST_CASE("text: every sample of every op survives a round trip") {
  int count = 0;
  test::for_each_op_sample([&](const OpDef& def, const testing::Sample& sample) {
    INFO(def.name, " / ", sample.name);
    Graph g = test::graph_of(sample);
    CHECK(verify(g, def.level).empty());
    expect_round_trip(g);
    ++count;
  });
  CHECK(count >= kNumOpKinds);
}

TEST_CASE("text: constants print shortest decimals, or bytes where decimals cannot say it") {
  const float inf = std::numeric_limits<float>::infinity();
  expect_constant(Tensor::of<float>({4}, std::vector<float>{0.1f, -0.0f, 3e-45f, 3.4028235e38f}),
                  "{0.1, -0, 3e-45, 3.4028235e+38}");
  expect_constant(Tensor::of<double>({2}, std::vector<double>{0.1, 1.0 / 3}), "{0.1, 0.3333333333333333}");
  expect_constant(Tensor::of<float>({1}, std::vector<float>{-inf}), "0x000080ff");
  expect_constant(Tensor::full(Shape({}, DType::BF16), 1.0 / 3), "{0.33398438}");
  expect_constant(Tensor::full(Shape({}, DType::F16), 65504), "{65504}");
  expect_constant(Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), 7}),
                  "{-9223372036854775808, 7}");
  expect_constant(Tensor::of<std::uint64_t>({1}, std::vector<std::uint64_t>{~0ull}), "{18446744073709551615}");
  expect_constant(Tensor::zeros(Shape({0, 3}, DType::I8)), "{}");
  Tensor bools = Tensor::zeros(Shape({2}, DType::Bool));
  bools.mutable_data()[1] = std::byte{1};
  expect_constant(bools, "{false, true}");
  bools.mutable_data()[0] = std::byte{2};  // true, but not the bytes that "true" stands for
  expect_constant(bools, "0x0201");
  Tensor c = Tensor::zeros(Shape({1}, DType::C64));
  const float parts[] = {1.5f, -2};
  std::memcpy(c.mutable_data(), parts, sizeof parts);
  expect_constant(c, "{(1.5, -2)}");
  Tensor i4 = Tensor::zeros(Shape({3}, DType::I4));
  for (int i = 0; i < 3; ++i) i4.set_i64(i, i - 8);
  expect_constant(i4, "{-8, -7, -6}");
  for (DType t : {DType::F8E4M3, DType::F8E5M2, DType::F4E2M1})
    expect_constant(Tensor::full(Shape({3}, t), 1.5), "{1.5, 1.5, 1.5}");
}

TEST_CASE("text: large constants are bytes, and can be left out of dumps") {
  Graph g("big");
  g.set_outputs({g.constant(Tensor::zeros(Shape({65}, DType::U8)))});
  expect_round_trip(g);
  CHECK(print_text(g).find(concat_text("[65] u8 0x", std::string(130, '0'))) != std::string::npos);
  CHECK(print_node(g, NodeId{0}, {.max_elements = 10}) == "%0 = constant() {value = [65] u8 ...} : [65] u8");
}

TEST_CASE("text: float attributes keep every bit") {
  Graph g("eps");
  // F64 here: an op that is computed in F32 refuses an eps that is 0 or infinite in F32.
  Expr x = g.input("x", Shape({2, 4}, DType::F64)), gamma = g.input("g", Shape({4}, DType::F64)),
       beta = g.input("b", Shape({4}, DType::F64));
  for (double eps : {1e-12, 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 0.0}) {
    Graph h = g;
    h.set_outputs({Value(h.add(ops::LayerNorm{{1}, eps, {0b110}}, {x.value(), gamma.value(), beta.value()}))});
    expect_round_trip(h);
  }
  CHECK(print_attrs(ops::LayerNorm{{1}, std::numeric_limits<double>::infinity(), {}}) == "axes = [1], eps = inf");
  CHECK(print_attrs(ops::LayerNorm{{1}, -std::numeric_limits<double>::infinity(), {}}) == "axes = [1], eps = -inf");
  CHECK(print_attrs(ops::LayerNorm{{1}, std::bit_cast<double>(0x7ff8000000000123ull), {}}) ==
        "axes = [1], eps = 0x7ff8000000000123");
}

TEST_CASE("text: sub-graphs nest in the braces") {
  auto body = std::make_shared<Graph>("epilogue");
  Expr acc = body->input("acc", Shape({2, 3}, DType::F32));
  body->set_outputs({body->gelu(acc)});
  Graph g("outer");
  Expr x = g.input("x", Shape({2, 4}, DType::F32)), w = g.param("w", Shape({4, 3}, DType::F32));
  ops::FusedDot dot;
  dot.lhs_contract = {1};
  dot.rhs_contract = {0};
  dot.epilogue = body;
  g.set_outputs({g.add(dot, {x.value(), w.value()})});
  CHECK(print_text(g) == R"(graph @outer {
  %0 = input() {name = "x"} : [2, 4] f32
  %1 = param() {name = "w"} : [4, 3] f32
  %2 = fused_dot(%0, %1) {lhs_contract = [1], rhs_contract = [0], epilogue = graph @epilogue {
      %0 = input() {name = "acc"} : [2, 3] f32
      %1 = gelu(%0) : [2, 3] f32
      return %1
    }} : [2, 3] f32
  return %2
}
)");
  expect_round_trip(g);
}

TEST_CASE("text: what people write by hand is read: names as ids, comments, free layout") {
  Graph g = parse_text(R"(// a comment
graph @hand { %x = input() { name = "x" } : [2, 2*n + 1] f32  // the input
  symbol n
  %twice
    = add(%x, %x) : [2, 1 + n + n] f32
  return %twice })");
  CHECK(g.num_nodes() == 2);
  CHECK(g.symbols().count("n") == 1);
  CHECK(print_node(g, NodeId{1}) == "%1 = add(%0, %0) : [2, 2*n + 1] f32");
  CHECK(g.outputs() == std::vector<Value>{Value(NodeId{1})});
}

TEST_CASE("text: names with any character survive") {
  Graph g("a \"b\"\n\\c\x01\xc3\xa9");
  Expr x = g.input("x\t\"y\"\x7f", Shape({}, DType::F32));
  g.set_label(x.value().node, "caf\xc3\xa9/%1");
  g.set_outputs({x});
  expect_round_trip(g);
}

TEST_CASE("text: origins print as comments only when asked") {
  Graph g("o");
  Expr x = g.input("x", Shape({2}, DType::F32));
  g.set_outputs({x});
  Origin& o = g.origin(x.value().node);
  o.loc = {"model.cpp", 41};
  o.pass = "fuse";
  o.from = {"%3 add", "%4 gelu"};
  CHECK(print_node(g, NodeId{0}) == "%0 = input() {name = \"x\"} : [2] f32");
  CHECK(print_node(g, NodeId{0}, {.origins = true}) ==
        "%0 = input() {name = \"x\"} : [2] f32  // model.cpp:41 by fuse <- %3 add, %4 gelu");
  CHECK(same_graph(parse_text(print_text(g, {.origins = true})), g));
}

TEST_CASE("text: an optional attribute may be unset where its default is set, and the other way round") {
  Graph g("a");
  Expr q = g.input("q", Shape({1, 2, 4}, DType::F32));
  ops::Attention op;
  op.num_heads = 2;
  op.kv_heads = 2;
  op.head_dim = 2;
  op.scale = 0.25;
  g.set_outputs({g.add(op, {q.value(), q.value(), q.value()})});
  CHECK(print_node(g, NodeId{1}) ==
        "%1:2 = attention(%0, %0, %0) {num_heads = 2, kv_heads = 2, head_dim = 2, scale = 0.25} : [1, 2, 4] f32, "
        "[1, 2, 2] f32");
  expect_round_trip(g);
  CHECK(parse_text(R"(graph @a {
    %0 = input() {name = "q"} : [1, 2, 4] f32
    %1:2 = attention(%0, %0, %0) {num_heads = 2, kv_heads = 2, head_dim = 2, scale = none}
      : [1, 2, 4] f32, [1, 2, 2] f32
  })")
            .node(NodeId{1})
            .op.as<ops::Attention>()
            .scale == std::nullopt);
}

TEST_CASE("text: a node in a message shows its attributes, bodies and constants in short") {
  Graph g;
  Expr x = g.input("x", Shape({2, 8}, DType::F32));
  Expr y = g.add(ops::Attention{.num_heads = 2, .kv_heads = 2, .head_dim = 4},
                 {g.reshape(x, {1, 2, 8}), g.reshape(x, {1, 2, 8}), g.reshape(x, {1, 2, 8})});
  CHECK(node_text(g, y.value().node) ==
        "%4:2 = attention(%1, %2, %3) {num_heads = 2, kv_heads = 2, head_dim = 4} : [1, 2, 8] f32, [1, 2, 2] f32");
  Expr c = g.constant(Tensor::zeros(Shape({100}, DType::F32)));
  CHECK(node_text(g, c.value().node) == "%5 = constant() {value = [100] f32 ...} : [100] f32");
  // An invalid op is printed too, because error messages use this text.
  Graph broken;
  broken.add_node(Node{ops::Reduce{static_cast<ReduceKind>(77), {}, false}, {}, {Shape({}, DType::F32)}, {}});
  CHECK(node_text(broken, NodeId{0}).find("reduce") != std::string::npos);
}
