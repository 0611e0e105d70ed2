// Named operands: which ones a node has, their positions, how they are set, and the errors.
#include "rlx/ir/input_spec.h"

#include <doctest/doctest.h>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/text.h"
#include "tests/support/error_text.h"

using namespace rlx;

TEST_CASE("operands: places follow what the attributes say is there") {
  ops::FusedResidualLN with, without;
  with.present.bits = 0b11100;
  without.present.bits = 0b11000;
  CHECK(find_operand(with, 5, "bias") == 2);
  CHECK(find_operand(with, 5, "gamma") == 3);
  CHECK(find_operand(without, 4, "bias") == std::nullopt);
  CHECK(find_operand(without, 4, "gamma") == 2);
  CHECK(operand_name(with, 5, 2) == "bias");
  CHECK(operand_name(without, 4, 2) == "gamma");
  CHECK(operand_index(without, 4, "beta") == 3);
  CHECK(test::error_text([&] { (void)operand_index(without, 4, "bias"); }).find("operand 'bias' is missing") !=
        std::string::npos);
  CHECK(op_def(OpKind::FusedResidualLN).inputs.text() == "x, residual, [bias], [gamma], [beta]");
  CHECK(op_def(OpKind::Concat).inputs.text() == "xs...");
  // A rule that asks for an operand that its record does not name is an internal error.
  CHECK_THROWS_AS((void)find_operand(with, 5, "scale"), Error);
}

TEST_CASE("operands: the number of them is checked against what is said to be there") {
  ops::FusedResidualLN op;
  op.present.bits = 0b11000;
  CHECK_FALSE(check_operand_count(op, 4));
  CHECK(check_operand_count(op, 5)->message == "fused_residual_ln: got 5 operands, takes (x, residual, gamma, beta)");
  op.present.bits = 0b11100;
  CHECK(check_operand_count(op, 4)->message ==
        "fused_residual_ln: got 4 operands, takes (x, residual, bias, gamma, beta)");
  CHECK(check_operand_count(ops::Attention{}, 4)->message == "attention: got 4 operands, takes (q, k, v)");
  ops::Attention masked;  // the mask by its kind, the others by name
  masked.mask = MaskKind::Custom;
  CHECK_FALSE(check_operand_count(masked, 4));
  masked.present.bits = 1U << 4;
  CHECK_FALSE(check_operand_count(masked, 5));
  CHECK(find_operand(masked, 5, "kv_len") == 4);
  masked.mask = MaskKind::Causal;
  CHECK(find_operand(masked, 4, "kv_len") == 3);
  CHECK(check_operand_count(masked, 5)->message == "attention: got 5 operands, takes (q, k, v, kv_len)");
  CHECK(check_operand_count(ops::Binary{}, 1)->message == "add: got 1 operands, takes (a, b)");
}

TEST_CASE("operands: given by name in any order they are placed in the order of the record") {
  ops::FusedResidualLN op;
  const Value v[] = {Value(NodeId{0}), Value(NodeId{1}), Value(NodeId{2}), Value(NodeId{3}), Value(NodeId{4})};
  const NamedOperand named[] = {{"beta", v[4]}, {"x", v[0]}, {"bias", v[2]}, {"residual", v[1]}, {"gamma", v[3]}};
  const Result<PlacedOperands> placed = place_operands(op, named);
  REQUIRE(placed.ok());
  CHECK(placed->inputs == std::vector<Value>(std::begin(v), std::end(v)));
  CHECK(placed->op.as<ops::FusedResidualLN>().present.bits == 0b11100);
  const NamedOperand linear[] = {{"x", v[0]}, {"w", v[1]}, {"bias", v[2]}};
  CHECK(place_operands(ops::Linear{}, linear).error().message == "linear: the attributes exclude the operand 'bias'");
  const NamedOperand twice[] = {{"x", v[0]}, {"x", v[1]}};
  CHECK(place_operands(op, twice).error().message == "fused_residual_ln: operand 'x' is given twice");
  ops::Attention attention;
  attention.mask = MaskKind::Bias;
  const NamedOperand lengths[] = {{"q", v[0]}, {"k", v[1]}, {"kv_len", v[4]}, {"v", v[2]}, {"mask", v[3]}};
  const Result<PlacedOperands> by_length = place_operands(attention, lengths);
  REQUIRE(by_length.ok());
  CHECK(by_length->inputs == std::vector<Value>(std::begin(v), std::end(v)));
  CHECK(by_length->op.as<ops::Attention>().present.bits == 1U << 4);  // not the mask: its kind says that it is there
  attention.mask = MaskKind::Causal;
  CHECK(place_operands(attention, lengths).error().message == "attention: the attributes exclude the operand 'mask'");
  const NamedOperand few[] = {{"x", v[0]}, {"gamma", v[1]}};
  CHECK(place_operands(op, few).error().message == "fused_residual_ln: operand 'residual' is missing");
  const NamedOperand wrong[] = {{"gama", v[0]}};
  const Diagnostic d = place_operands(op, wrong).error();
  CHECK(d.message == "fused_residual_ln: there is no operand 'gama', takes (x, residual, [bias], [gamma], [beta])");
  CHECK(d.hint.find("gamma") != std::string::npos);
  CHECK(place_operands(ops::Concat{}, few).error().message == "concat: the operands (xs...) have no names");
}

TEST_CASE("operands: a graph takes them by name") {
  Graph g;
  const Shape m({2, 3}, DType::F32), v({3}, DType::F32);
  Expr x = g.input("x", m), r = g.input("r", m), gamma = g.input("gamma", v), beta = g.input("beta", v);
  Expr y = g.add_named(ops::FusedResidualLN{}, {{"gamma", gamma}, {"beta", beta}, {"x", x}, {"residual", r}});
  CHECK(g.node(y.value().node).inputs == std::vector<Value>{x.value(), r.value(), gamma.value(), beta.value()});
  CHECK(test::error_text([&] {
          g.add_named(ops::FusedResidualLN{}, {{"x", x}});
        }).find("'residual' is missing") != std::string::npos);
}

TEST_CASE("operands: text takes names where an attribute says who is there, and prints as before") {
  const char* text = R"(graph @g {
  %0 = input() {name = "x"} : [2, 3] f32
  %1 = input() {name = "v"} : [3] f32
  %2 = input() {name = "w"} : [3, 3] f32
  %3 = linear(%0, bias=%1, w=%2) {has_bias = true}
  return %3
}
)";
  const std::string printed = print_text(parse_text(text));
  CHECK(printed.find("%3 = linear(%0, %2, %1) {has_bias = true} : [2, 3] f32") != std::string::npos);
  CHECK(print_text(parse_text(printed)) == printed);
}
