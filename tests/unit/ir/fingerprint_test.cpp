// Fingerprints are stable, and differ for every relevant difference.
#include "rlx/ir/serial/fingerprint.h"

#include <doctest/doctest.h>

#include <set>

#include "rlx/ir/module.h"
#include "rlx/ir/text.h"
#include "tests/support/custom_ops.h"
#include "tests/unit/ir/sample_graph.h"

using namespace rlx;

namespace {

// Another value of the same attribute type.
AttrValue changed(const AttrField& f, const AttrValue& v) {
  if (std::holds_alternative<std::monostate>(v)) {
    if (f.type == AttrType::OptBool) return true;
    if (f.type == AttrType::OptF64) return 0.25;
    if (f.type == AttrType::OptDType) return DType::F32;
    return std::int64_t{0};
  }
  switch (f.type) {
    case AttrType::Bool:
    case AttrType::OptBool: return !std::get<bool>(v);
    case AttrType::I64:
    case AttrType::OptI64: return std::get<std::int64_t>(v) + 1;
    case AttrType::Operands: return std::get<std::int64_t>(v) ^ 2;
    case AttrType::F64:
    case AttrType::OptF64: return std::get<double>(v) + 0.5;
    case AttrType::Enum:
    case AttrType::OptEnum: return (std::get<std::int64_t>(v) + 1) % static_cast<std::int64_t>(f.enum_names.size());
    case AttrType::String: return std::get<std::string>(v) + "x";
    case AttrType::DType:
    case AttrType::OptDType: return std::get<DType>(v) == DType::F32 ? DType::F64 : DType::F32;
    case AttrType::DimList: {
      Dims d = std::get<Dims>(v);
      d.emplace_back(7);
      return d;
    }
    case AttrType::I64List:
    case AttrType::EnumList: {
      auto list = std::get<std::vector<std::int64_t>>(v);
      list.push_back(0);
      return list;
    }
    case AttrType::F64List: {
      auto list = std::get<std::vector<double>>(v);
      list.push_back(0);
      return list;
    }
    case AttrType::Bytes: {
      auto list = std::get<std::vector<std::byte>>(v);
      list.push_back(std::byte{1});
      return list;
    }
    case AttrType::Tensor: {
      const Tensor& t = std::get<Tensor>(v);
      if (t.empty() || t.size_bytes() == 0) return Tensor::full(Shape({3}, DType::F32), 1);
      Tensor other = Tensor::copy_of(t.data(), t.shape());
      other.mutable_data()[other.size_bytes() - 1] ^= std::byte{1};
      return other;
    }
    case AttrType::Body:
    case AttrType::OptBody: {
      Graph body = std::get<Subgraph>(v) ? *std::get<Subgraph>(v) : Graph("body");
      body.input("one more", Shape({}, DType::F32));
      return Subgraph(std::make_shared<const Graph>(std::move(body)));
    }
  }
  return v;
}

// The node alone: fingerprints and equality do not need a valid graph.
Graph graph_of(const OpBox& op) {
  Graph g("g");
  g.add_node(Node{op, {}, {Shape({2}, DType::F32)}, {}});
  return g;
}

}  // namespace

TEST_CASE("fingerprint: every attribute of every op counts, for equality too (reference fault A25)") {
  int count = 0;
  auto check_op = [&](const OpBox& op) {
    Graph g = graph_of(op);
    CHECK(same_op(op, op));
    for (const AttrField& f : attr_fields(op.kind())) {
      INFO(op_text_name(op), ".", f.name);
      std::shared_ptr<void> other = make_default_op(op.kind());
      for (const AttrField& k : attr_fields(op.kind())) k.set(other.get(), k.get(op.data()));
      OpBox copy(op.kind(), other);
      CHECK(same_op(op, copy));
      CHECK(fingerprint(graph_of(copy)) == fingerprint(g));
      CHECK(node_fingerprints(graph_of(copy)) == node_fingerprints(g));
      std::shared_ptr<void> mutated = make_default_op(op.kind());
      for (const AttrField& k : attr_fields(op.kind())) k.set(mutated.get(), k.get(op.data()));
      f.set(mutated.get(), changed(f, f.get(op.data())));
      OpBox box(op.kind(), mutated);
      CHECK_FALSE(same_op(op, box));
      CHECK(fingerprint(graph_of(box)) != fingerprint(g));
      CHECK(node_fingerprints(graph_of(box)) != node_fingerprints(g));
      CHECK_FALSE(same_graph(graph_of(box), g));
      ++count;
    }
  };
  for (int k = 0; k < kNumOpKinds; ++k) check_op(default_op(static_cast<OpKind>(k)));
  test::for_each_op_sample([&](const OpDef&, const testing::Sample& sample) { check_op(sample.op); });
  CHECK(count > 2 * kNumOpKinds);
}

TEST_CASE("fingerprint: no two ops, default or sample, share one") {
  std::set<Fingerprint> seen;
  for (int k = 0; k < kNumOpKinds; ++k)
    CHECK(seen.insert(fingerprint(graph_of(default_op(static_cast<OpKind>(k))))).second);
}

TEST_CASE("fingerprint: structure counts, names and origins do not") {
  const std::string text = R"(graph @g {
    symbol n [0, 64]
    %0 = input() {name = "x"} : [n, 2] f32
    %1 = input() {name = "y"} : [n, 2] f32
    %2 = sub(%0, %1) : [n, 2] f32
    %3:2 = top_k(%2) {k = 1} : [n, 1] f32, [n, 1] i32
    return %3, %2
  })";
  Graph g = parse_text(text);
  auto differs = [&](std::string_view from, std::string_view to) {
    std::string other = text;
    std::size_t at = other.find(from);
    REQUIRE(at != std::string::npos);
    other.replace(at, from.size(), to);
    Graph h = parse_text(other);
    CHECK(same_graph(g, h) == (fingerprint(g) == fingerprint(h)));
    return fingerprint(g) != fingerprint(h);
  };
  CHECK(differs("sub(%0, %1)", "sub(%1, %0)"));
  CHECK(differs("= sub(", "= add("));
  CHECK(differs("\"x\"", "\"z\""));
  CHECK(differs("[0, 64]", "[0, 65]"));
  CHECK(differs("[0, 64]", "[0, 64] div 2"));
  CHECK(differs("return %3, %2", "return %2, %3"));
  CHECK(differs("return %3, %2", "return %3, %3"));
  CHECK(differs("return %3, %2", "return %3#1, %2"));
  CHECK_FALSE(differs("@g", "@other"));
  g.origin(NodeId{2}).label = "renamed";
  CHECK(fingerprint(g) == fingerprint(parse_text(text)));
  CHECK(same_graph(g, parse_text(text)));
}

TEST_CASE("fingerprint: of a node it is what the node computes, wherever it stands") {
  const Graph g = parse_text(R"(graph @g {
    %0 = param() {name = "w"} : [2] f32
    %1 = exp(%0) : [2] f32
    %2 = param() {name = "v"} : [2] f32
    %3 = exp(%0) : [2] f32
    %4 = sub(%1, %2) : [2] f32
    %5 = sub(%2, %1) : [2] f32
    %6 = sub(%3, %2) : [2] f32
    %7:2 = top_k(%4) {k = 1} : [1] f32, [1] i32
    %8 = neg(%7) : [1] f32
    %9 = cast(%7#1) : [1] f32
    %10 = exp(%9) : [1] f32
    %11 = exp(%8) : [1] f32
    return %10, %11
  })");
  const std::vector<Fingerprint> of = node_fingerprints(g);
  REQUIRE(of.size() == g.num_nodes());
  CHECK(of[1] == of[3]);
  CHECK(of[4] == of[6]);
  CHECK(of[4] != of[5]);
  CHECK(of[0] != of[2]);
  CHECK(of[10] != of[11]);
  const Graph other = parse_text(R"(graph @other {
    %0 = param() {name = "v"} : [2] f32
    %1 = param() {name = "w"} : [2] f32
    %2 = exp(%1) : [2] f32
    %3 = sub(%2, %0) : [2] f32
    return %3
  })");
  CHECK(node_fingerprints(other)[3] == of[4]);
  // The same node, except that it reads another result of its operand.
  const auto last = [](std::string_view result) {
    return node_fingerprints(parse_text(concat_text(R"(graph @g {
      %0 = param() {name = "w"} : [2] f32
      %1:2 = test.sum_and_difference(%0, %0) : [2] f32, [2] f32
      %2 = exp()",
                                                    result, R"() : [2] f32
      return %2
    })")))[2];
  };
  test::custom_ops();
  CHECK(last("%1") != last("%1#1"));
}

TEST_CASE("fingerprint: state updates and sub-graph contents count") {
  const std::string text = R"(graph @g {
    %0 = state() {name = "s", init = [2] f32 {0, 0}} : [2] f32
    %1 = exp(%0) : [2] f32
    %2 = elementwise_region(%1) {body = graph @b {
      %0 = input() {name = "a"} : [2] f32
      %1 = relu(%0) : [2] f32
      return %1
    }} : [2] f32
    set_state "s" %1
  })";
  Graph g = parse_text(text);
  for (auto [from, to] : {std::pair("\"s\" %1", "\"s\" %2"), std::pair("relu", "gelu"), std::pair("{0, 0}", "{0, 1}"),
                          std::pair("{0, 0}", "{0, -0}")}) {
    std::string other = text;
    other.replace(other.find(from), std::string(from).size(), to);
    CHECK(fingerprint(parse_text(other)) != fingerprint(g));
    CHECK_FALSE(same_graph(parse_text(other), g));
  }
  std::string renamed = text;
  renamed.replace(renamed.find("@b"), 2, "@c");
  CHECK(fingerprint(parse_text(renamed)) == fingerprint(g));
}

TEST_CASE("fingerprint: the value is fixed across runs, compilers and machines") {
  Graph g = parse_text(R"(graph @g {
    symbol n
    %0 = input() {name = "x"} : [n, 2] f32
    %1 = constant() {value = [2] f32 {1, -2.5}} : [2] f32
    %2 = add(%0, %1) : [n, 2] f32
    %3 = softmax(%2) {axis = 1} : [n, 2] f32
    return %3
  })");
  CHECK(fingerprint(g).text() == "60184c7f8bfbef8ca90cb4b37c864802");
  CHECK(fingerprint_bytes("abc", 3).text() == "06b05ab6733a618578af5f94892f3950");  // xxh3-128 of "abc", seed 0
}

TEST_CASE("fingerprint: of a planned program it covers the plan and the preparation") {
  LirModule a{parse_text("graph @g { %0 = input() {name = \"x\"} : [2] f32\n return %0 }"), {}, Graph("prepare")};
  a.plan.values = {{LirValue{}}};
  LirModule b = a;
  CHECK(fingerprint(a) == fingerprint(b));
  b.plan.values[0][0].offset = 64;
  CHECK(fingerprint(a) != fingerprint(b));
  b = a;
  b.plan.schedule.push_back({NodeId{0}, {}});
  CHECK(fingerprint(a) != fingerprint(b));
  b = a;
  b.prepare.input("w", Shape({1}, DType::F32));
  CHECK(fingerprint(a) != fingerprint(b));
}

TEST_CASE("fingerprint: graphs that differ in their own constants alone have one structure") {
  const auto made = [](const char* constant, const char* in_body) {
    return parse_text(concat_text(R"(graph @g {
    %0 = input() {name = "x"} : [2] f32
    %1 = constant() {value = )",
                                  constant, R"(} : [2] f32
    %2 = add(%0, %1) : [2] f32
    %3 = call(%2) {body = graph @b {
      %0 = input() {name = "a"} : [2] f32
      %1 = constant() {value = )",
                                  in_body, R"(} : [2] f32
      %2 = mul(%0, %1) : [2] f32
      return %2
    }} : [2] f32
    return %3
  })"));
  };
  const Graph g = made("[2] f32 {1, 2}", "[2] f32 {1, 1}");
  const Graph other = made("[2] f32 {3, -4}", "[2] f32 {1, 1}");
  CHECK(fingerprint(g) != fingerprint(other));
  CHECK(structure_fingerprint(g) == structure_fingerprint(other));
  CHECK(structure_fingerprint(g) != structure_fingerprint(made("[2] f32 {1, 2}", "[2] f32 {1, 2}")));
  CHECK(structure_fingerprint(g) != fingerprint(g));
}
