// Misuse of graphs, their values, and the functions that read and rewrite them.
#include <limits>
#include <memory>
#include <optional>

#include "rlx/ir/chain.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/op_set.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/custom.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/quant/calibration.h"
#include "rlx/ir/quant/quant_map.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/runtime/session.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;
using rlx::test::kHigh;

namespace {
const Shape kPair({2}, DType::F32);
constexpr auto kNoKind = static_cast<OpKind>(999);
constexpr NodeId kFarNode{99};

Graph small() {
  Graph g("small");
  g.set_outputs({g.exp(g.input("x", kPair))});
  return g;
}
}  // namespace

TEST_CASE("misuse: packed layouts") {
  Graph g("g");
  Expr x = g.input("x", Shape({2}, DType::F32));
  g.set_outputs({x});
  CHECK(packed_layout_of(g, x.value()).empty());
  CHECK(stored_bytes(g, x.value()) == 8);
  REFUSED("", packed_layout_of(g, Value(NodeId{7})));
  REFUSED("", stored_bytes(g, Value(NodeId{})));
  CHECK(parse_packed_layout("nonsense").bytes < 0);
  REFUSED("", ops::Relayout{}.source(0));
  REFUSED("cannot be repeated for 0 matrices", stacked(PackedLayout{"panels", {16}, 64}, 0));
  REFUSED("cannot be repeated for", stacked(PackedLayout{"panels", {16}, 64}, kHigh));
  REFUSED("not made of whole matrices", layout_of_one_matrix(PackedLayout{"panels", {16}, 65, 2}));
  REFUSED("not made of whole matrices", layout_of_one_matrix(PackedLayout{"panels", {16}, 64, 0}));
}

TEST_CASE("misuse: calibration records and maps of quantised values") {
  Graph g("g");
  const Expr codes = g.param("w", Shape({2}, DType::I8));
  g.set_outputs({g.dequantize(codes, Operand(g.scalar(1.0F))), g.dequantize(codes, Operand(g.scalar(2.0F)))});
  const QuantMap map(g);
  CHECK(map.find(Value(kFarNode)) == nullptr);
  CHECK(map.find(Value()) == nullptr);
  CHECK(map.find("") == nullptr);
  CHECK(map.find("w") == nullptr);  // two values would be "w"
  CHECK(CalibrationRecord::of(g).values_in(g).size() == 2);
  CHECK(QuantMap().find("w") == nullptr);
  CalibrationRecord r;
  REFUSED("finite and above 0", r.set("x", CalibrationEntry::per_tensor(0)));
  REFUSED("the entry has no scale", r.set("x", CalibrationEntry::per_channel(0, {})));
  REFUSED("axis -9223372036854775808 is negative", r.set("x", CalibrationEntry::per_channel(rlx::test::kLow, {1})));
  CHECK(r.entries().empty());
  CHECK(r.find("x") == nullptr);
  r.set("x", CalibrationEntry::per_channel(kHigh, {1}));
  REFUSED("no value with the path 'x'", r.values_in(g));
  REFUSED("no value with the path 'x'", r.values_in(Graph("empty")));
  REFUSED("has no axis", r.values_in(small()));
  REFUSED("expected 'calibration 1'", CalibrationRecord::parse("nonsense"));
}

TEST_CASE("misuse: values of graphs") {
  const Expr empty;
  CHECK_FALSE(empty.valid());
  CHECK_FALSE(empty.value().node.valid());
  CHECK(empty.value().node.text() == NodeId().text());
  CHECK(Value().text() == NodeId().text());
  CHECK_FALSE(Expr(nullptr, Value()).valid());
  REFUSED("an empty Expr", empty.graph());
  REFUSED("an empty Expr", empty.shape());
  REFUSED("an empty Expr", empty.dtype());
  REFUSED("an empty Expr", empty.rank());
  REFUSED("an empty Expr", empty.dim(0));
  REFUSED("an empty Expr", empty.result(0));
  REFUSED("an empty Expr", empty + 1);
  REFUSED("an empty Expr", 1 - empty);
  REFUSED("an empty Expr", empty * empty);
  REFUSED("an empty Expr", 2.0 / empty);  // operator/
  REFUSED("an empty Expr", -empty);
  REFUSED("an empty Expr", empty < 1);      // operator<
  REFUSED("an empty Expr", 1 <= empty);     // operator<=
  REFUSED("an empty Expr", empty > empty);  // operator>
  REFUSED("an empty Expr", empty >= 2.0);   // operator>=
  REFUSED("an empty Expr", empty[0]);       // operator[]
  CHECK_FALSE(empty != Expr());             // operator!=

  auto graph = std::make_unique<Graph>("short_lived");
  const Expr x = graph->input("x", kPair);
  CHECK(x.belongs_to(*graph));
  CHECK(x == graph->expr(x));  // operator==
  CHECK(static_cast<Value>(x) == x.value());
  REFUSED("graph 'short_lived' has no value", Expr(graph.get(), kFarNode));
  REFUSED("graph 'short_lived' has no value", x.result(1));
  REFUSED("axis 1", x.dim(1));
  auto dead = [](const Expr& e, const char* what) {
    CAPTURE(what);
    CHECK(e.valid());
    CHECK(e.value().node.valid());
    REFUSED("after its graph was moved, compiled or destroyed", e.graph());
    REFUSED("after its graph was moved, compiled or destroyed", e.shape());
    REFUSED("after its graph was moved, compiled or destroyed", e.dtype());
    REFUSED("after its graph was moved, compiled or destroyed", e.rank());
    REFUSED("after its graph was moved, compiled or destroyed", e.dim(0));
    REFUSED("after its graph was moved, compiled or destroyed", e.result(0));
    REFUSED("after its graph was moved, compiled or destroyed", e + 1);
    REFUSED("after its graph was moved, compiled or destroyed", -e);
    Graph other("other");
    CHECK_FALSE(e.belongs_to(other));
    REFUSED("after its graph was moved, compiled or destroyed", other.exp(e));
    REFUSED("after its graph was moved, compiled or destroyed", other.set_outputs({e}));
  };
  Graph moved_to = std::move(*graph);
  dead(x, "moved");
  dead(
      [] {
        Graph g;
        return g.input("x", kPair);
      }(),
      "destroyed");
  Graph assigned;
  const Expr before = assigned.input("x", kPair);
  assigned = small();
  dead(before, "assigned to");
  Graph copied_to;
  const Expr mine = copied_to.input("x", kPair);
  copied_to = std::as_const(moved_to);
  dead(mine, "copied to");
  const Graph copy = moved_to;  // a copy is an independent graph
  const Expr y = moved_to.expr(NodeId{0});
  CHECK_FALSE(y.belongs_to(copy));
  CHECK(y.belongs_to(moved_to));

  Operand scalar(3), of_empty((Expr()));
  CHECK(scalar.is_scalar());
  CHECK(scalar.integer_bits() == 3);
  CHECK(scalar.scalar() == 3);
  CHECK_FALSE(scalar.is_float_scalar());
  CHECK_FALSE(scalar.expr().valid());
  CHECK(of_empty.loc().line > 0);
  CHECK(Operand(std::numeric_limits<double>::infinity()).is_float_scalar());
  REFUSED("an empty Expr", moved_to.exp(of_empty));
}

TEST_CASE("misuse: graphs") {
  Graph g("g"), other("other");
  const Expr x = g.input("x", kPair), foreign = other.input("q", kPair);
  g.state("s", Tensor::zeros(kPair));
  for (const NodeId id : {kFarNode, NodeId()}) {
    CHECK_FALSE(g.has(id));
    REFUSED("graph 'g' has no value", g.node(id));
    REFUSED("graph 'g' has no value", g.expr(id));
    REFUSED("graph 'g' has no value", g.origin(id));
    REFUSED("graph 'g' has no value", g.set_label(id, "l"));
    REFUSED("graph 'g' has no value", g.shape(id));
    REFUSED("graph 'g' has no value", g.leaf_name(id));
    REFUSED("graph 'g' has no value", node_label(g, id));
    REFUSED("graph 'g' has no value", node_text(g, id));
    REFUSED("graph 'g' has no value", node_where(g, id));
    REFUSED("graph 'g' has no value", print_node(g, id));
    REFUSED("does not belong to graph 'g'", g.set_outputs(std::vector<Value>{id}));
    REFUSED("does not belong to graph 'g'", g.add(ops::Activation{}, std::vector<Value>{id}));
  }
  REFUSED("has no value %0#7", g.shape(Value(NodeId{0}, 7)));
  REFUSED("belongs to graph 'other', not to 'g'", g.add(ops::Activation{}, {foreign}));
  REFUSED("belongs to graph 'other', not to 'g'", g.set_outputs({foreign}));
  REFUSED("belongs to graph 'other', not to 'g'", g.set_outputs(std::vector<Expr>{foreign}));
  REFUSED("belongs to graph 'other', not to 'g'", g.set_state("s", foreign));
  REFUSED("an empty Expr", g.set_state("s", Expr()));
  REFUSED("graph 'g' has no value", g.set_state("s", Value(kFarNode)));
  REFUSED("has no state 'x'", g.set_state("x", x));
  REFUSED("has no state ''", g.set_state("", x));
  REFUSED("its new value", g.set_state("s", g.input("long", Shape({3}, DType::F32))));
  REFUSED("is not an input, param or state", g.leaf_name(g.exp(x).value().node));
  REFUSED("takes (", g.add(ops::MatMul{}, {x}));
  CHECK(test::contains(test::error_text([&] {
                         g.add_node(Node{ops::Activation{}, {Value(kFarNode)}, {kPair}, {}});
                       }),
                       "is no result of an earlier node"));
  REFUSED("no result 3", g.node(NodeId{0}).shape(3));
  CHECK(g.node(NodeId{0}).num_results() == 1);
  CHECK(g.node(NodeId{0}).kind() == OpKind::Input);

  REFUSED("there is no node", g.reserve(~std::size_t{0}));
  REFUSED("is not a symbol name", g.symbol(""));
  REFUSED("are not valid", g.symbol("n", {5, 2}));
  REFUSED("are not valid", g.symbol("n", {-1, 2}));
  REFUSED("are not valid", g.symbol("n", {1, 2, 0}));
  CHECK(built_at({}).empty());
  CHECK(g.symbols().empty());
  Graph impossible("impossible");
  impossible.set_symbols({{"n", {5, 2}}});  // for readers: `verify` looks at them
  CHECK_FALSE(verify(impossible, Level::Mir).empty());
  REFUSED("'n' = 3 is outside [4, 8]", check_symbol_value("n", {4, 8}, 3));
  REFUSED("not a multiple", check_symbol_value("n", {4, 8, 4}, 5));
  Graph dynamic("dynamic");
  dynamic.input("x", Shape({dynamic.symbol("n", {2, 4})}, DType::F32));
  const Expr length = dynamic.dim_size(dynamic.expr(Value(NodeId{0})), 0);
  REFUSED("is declared already", dynamic.symbol("n", {0, 4}, length));
  REFUSED("takes its value from %0", dynamic.symbol("m", {0, 4}, dynamic.expr(Value(NodeId{0}))));
  REFUSED("an empty Expr", dynamic.symbol("m", {0, 4}, Expr()));
  REFUSED("has no value", dynamic.set_symbol_source("m", kFarNode));
  REFUSED("is declared with bounds [2, 4], and again with bounds [2, 8]", dynamic.symbol("n", {2, 8}));
  REFUSED("is declared with bounds [2, 4], and again with bounds [2, 4] with divisor 2",
          dynamic.symbol("n", {2, 4, 2}));
  REFUSED("is outside [2, 4]", dynamic.bind({{"n", 9}}));
  CHECK(dynamic.bind({{"unknown", 9}}).has_dynamic_dims());
  CHECK(symbol_ranges(dynamic).size() == 1);
  CHECK(dynamic.dynamic_symbols() == std::vector<std::string>{"n"});

  CHECK_FALSE(g.find_leaf(OpKind::Input, "").valid());
  CHECK(test::error_text([&] { CHECK_FALSE(g.find_leaf(OpKind::Activation, "x").valid()); }).find("report") ==
        std::string::npos);
  CHECK(g.leaves(kNoKind).empty());

  // A moved-from graph is empty and may be used again.
  Graph source("source");
  source.set_outputs({source.exp(source.input("x", kPair))});
  const Graph taken = std::move(source);
  CHECK(source.num_nodes() == 0);  // NOLINT(bugprone-use-after-move)
  CHECK(source.nodes().empty());
  CHECK(source.outputs().empty());
  CHECK(source.state_updates().empty());
  CHECK(source.is_static());
  CHECK(source.name().empty());
  CHECK_FALSE(source.has_set_outputs());  // so that it is not compiled a second time, as a program of nothing
  REFUSED("has no outputs", Session().compile(std::move(source)));
  Graph extents("extents"), of_extents;
  extents.input("x", Shape({extents.symbol("n")}, DType::F32));
  of_extents = std::move(extents);
  extents.input("x", kPair);  // NOLINT(bugprone-use-after-move)
  CHECK(extents.is_static());
  source.set_name("again");
  source.set_outputs({source.exp(source.input("x", kPair))});
  CHECK(print_text(source) != print_text(taken));

  // A scope that outlives its graph, and a scope whose graph is moved while it is open.
  auto graph = std::make_unique<Graph>("scoped");
  {
    auto scope = graph->scope("a");
    graph.reset();
  }
  Graph labelled("labelled"), heir;
  {
    auto scope = labelled.scope("outer");
    heir = std::move(labelled);
  }
  CHECK(node_label(labelled, labelled.input("x", kPair).value().node) == "x");  // NOLINT(bugprone-use-after-move)
  CHECK_FALSE(test::error_text([] { (void)Graph::define("d", [](Graph& d) { d.set_outputs({Expr()}); }); }).empty());
  CHECK(Graph("").module().graph().num_nodes() == 0);
}

TEST_CASE("misuse: numbered values") {
  const Graph g = small();
  const ValueSlots slots(g), none;
  const UseIndex uses(g);
  for (const Value v : {Value(kFarNode), Value(), Value(NodeId{0}, 1)}) {
    CHECK_FALSE(slots.knows(v));
    REFUSED("is not a value of the graph", slots(v));  // operator()
    REFUSED("is not a value of the graph", uses.uses(v));
    REFUSED("is not a value of the graph", uses.use_count(v));
    REFUSED("is not a value of the graph", uses.is_output(v));
    REFUSED("is not a value of the graph", uses.single_use(v));
  }
  CHECK(none.size() == 0);
  REFUSED("is not a value of the graph", none(Value(NodeId{0})));
  ValueMap map(g);
  CHECK_FALSE(map(Value(kFarNode)).node.valid());  // operator()
  CHECK_FALSE(map.has(Value()));
  CHECK_FALSE(ValueMap()(Value(NodeId{0})).node.valid());
  CHECK_FALSE(ValueMap::identity(g).then(ValueMap()).has(Value(NodeId{0})));
  REFUSED("is not a value of the graph", map.set(Value(kFarNode), Value(NodeId{0})));
}

TEST_CASE("misuse: ops and their attributes") {
  REFUSED("999 is not a value of OpKind", op_def(kNoKind));
  REFUSED("999 is not a value of OpKind", make_default_op(kNoKind));
  REFUSED("999 is not a value of OpKind", default_op(kNoKind));
  REFUSED("999 is not a value of OpKind", attr_fields(kNoKind));
  REFUSED("the op has no attributes", OpBox(OpKind::Activation, nullptr));
  OpBox taken(ops::Activation{ActivationKind::Relu});
  const OpBox taker = std::move(taken);
  Graph used("used");
  REFUSED("moved from", used.add(taken, {used.input("x", kPair)}));
  CHECK(test::contains(test::error_text([&] { (void)taken.as<ops::Activation>(); }), "moved from"));
  const OpBox relu(ops::Activation{ActivationKind::Relu}), wild(ops::Activation{static_cast<ActivationKind>(200)});
  CHECK(test::contains(test::error_text([&] { (void)relu.as<ops::MatMul>(); }), "op read as another kind"));
  CHECK(relu.get_if<ops::MatMul>() == nullptr);
  CHECK_FALSE(relu.is<ops::MatMul>());
  CHECK(op_text_name(wild) == "activation");
  REFUSED("200 is not a value of the attribute's type", enum_name(static_cast<ActivationKind>(200)));
  CHECK_FALSE(same_op(relu, wild));
  CHECK_FALSE(same_attr(AttrValue(), AttrValue(1.0)));
  CHECK(print_attrs(relu).empty());
  REFUSED("out of range", infer_shapes(wild, std::vector<Shape>{kPair}).value());
  REFUSED("takes (", infer_shapes(relu, ShapeRefs()).value());
  CHECK_FALSE(find_op("").has_value());
  CHECK_FALSE(find_op(std::string(100000, 'x')).has_value());
  CHECK_FALSE(runs_per_element(OpKind::MatMul));
  CHECK_FALSE(op_def(relu).is_leaf());
  REFUSED("999 is not a value of OpKind", is_named_leaf(kNoKind));
  REFUSED("200 is not a value of ActivationKind", function_row(static_cast<ActivationKind>(200)));
  REFUSED("200 is not a value of BinaryKind", binary_row(static_cast<BinaryKind>(200)));
  REFUSED("200 is not a value of ActivationKind", function_params(wild.as<ops::Activation>()));
  REFUSED("200 is not a value of ActivationKind", has_own_params(wild.as<ops::Activation>()));
  OpSet set;
  REFUSED("999 is not a value of OpKind", set.add(kNoKind));
  REFUSED("999 is not a value of OpKind", set.remove(kNoKind));
  REFUSED("999 is not a value of OpKind", set.has(kNoKind));
  REFUSED("999 is not a value of OpKind", OpSet({kNoKind}));
  REFUSED("has no value", OpSet::everything().refuses(small(), kFarNode));
  REFUSED("has no value", OpSet::everything().claims(small(), kFarNode));
}

TEST_CASE("misuse: operands by name") {
  Graph g("g");
  Graph other("other");
  const Expr x = g.input("x", kPair), foreign = other.input("x", kPair);
  const OpBox linear(ops::Linear{});
  REFUSED("linear has no operand 'y'", find_operand(linear, 2, "y"));
  REFUSED("operand 'bias' is missing", operand_index(linear, 2, "bias"));
  CHECK(operand_name(linear, 2, 7) == "operand");
  CHECK(operand_name(linear, 2, -1) == "operand");
  CHECK(check_operand_count(linear, 1).has_value());
  CHECK(check_operand_count(linear, -1).has_value());
  CHECK(check_operand_count(linear, 1 << 30).has_value());
  const NamedOperand unknown[] = {{"y", x.value()}}, twice[] = {{"x", x.value()}, {"x", x.value()}};
  CHECK(place_operands(linear, unknown).error().code == ErrorCode::InvalidArgument);
  CHECK(place_operands(linear, twice).error().code == ErrorCode::InvalidArgument);
  CHECK(place_operands(linear, {}).error().message == "linear: operand 'x' is missing");
  REFUSED("there is no operand 'y'", g.add_named(ops::Linear{}, {{"y", x}}));
  REFUSED("exclude the operand 'bias'", g.add_named(ops::Linear{}, {{"x", x}, {"w", x}, {"bias", x}}));
  REFUSED("belongs to graph", g.add_named(ops::Linear{}, {{"x", foreign}}));
  REFUSED("an empty Expr", g.add_named(ops::Linear{}, {{"x", Expr()}}));
}

TEST_CASE("misuse: contexts of rules") {
  Graph g("g");
  const OpBox box(ops::Activation{});
  const std::vector<Expr> in{g.input("x", kPair)}, nothing(1);
  const std::vector<Shape> shapes{kPair};
  const ShapeRefs operands(shapes);
  const std::vector<bool> batched{false};
  const InferContext infer(box, operands);
  REFUSED("no operand 1", operands.at(1));
  REFUSED("no operand 1", infer.input(1));
  REFUSED("no operand -1", infer.input(-1));
  REFUSED("has no operand 'bias'", infer.has("bias"));
  REFUSED("has no operand 'bias'", infer.index("bias"));
  CHECK(infer.check_axis(std::numeric_limits<std::int64_t>::min(), kPair).has_value());
  REFUSED("no operand 1", infer.check_same_dtype(0, 2));
  CHECK(infer.negative(Dim(-1)));
  CHECK(infer.num_inputs() == 1);
  CHECK(infer.error().message.ends_with(": "));
  CHECK(infer.dtype_error("").code == ErrorCode::DTypeMismatch);
  CHECK(infer.attr_error("").code == ErrorCode::InvalidArgument);
  CHECK(test::contains(test::error_text([&] { (void)infer.op<ops::MatMul>(); }), "read as another kind"));

  const Tensor tensor = Tensor::zeros(kPair);
  Tensor room = Tensor::zeros(kPair);
  const RefArgs args{box, std::span(&tensor, 1), std::span(&room, 1)};
  REFUSED("no operand 1", args.in(1));
  REFUSED("no result 2", args.out(2));
  REFUSED("has no operand ''", args.has(""));

  const BuildContext build(g, box, in, shapes);
  REFUSED("no operand 4", build.input(4));
  REFUSED("has no operand 'bias'", build.has("bias"));
  REFUSED("has no operand 'bias'", build.index("bias"));
  REFUSED("has no operand 'bias'", build.optional_input("bias"));
  REFUSED("no result 4", build.result_shape(4));
  REFUSED("77 is not a DType", build.zeros(Shape({2}, static_cast<DType>(77))));
  REFUSED("77 is not a DType", build.full(Shape({2}, static_cast<DType>(77)), 1));
  DecomposeContext decompose(g, box, in, shapes, FusionPolicy::Direct);
  REFUSED("no result 1", decompose.set_result(1, in[0]));
  CHECK_FALSE(decompose.results()[0].valid());
  VjpContext vjp(g, box, in, in, shapes, nothing);
  REFUSED("no result 1", vjp.output(1));
  REFUSED("no result 1", vjp.has_cotangent(1));
  REFUSED("no result -1", vjp.cotangent(-1));
  REFUSED("no operand 1", vjp.wants(1));
  REFUSED("no operand 1", vjp.accumulate(1, in[0]));
  REFUSED("an empty Expr", vjp.accumulate(0, Expr()));
  CHECK_FALSE(vjp.gradients()[0].valid());
  REFUSED("no residual 0", vjp.residual(0));
  CHECK(vjp.num_residuals() == 0);
  REFUSED("reads notes, but no augment rule made any", vjp.notes<int>());
  const std::vector<bool> one(1, true);
  const AugmentContext augment(box, shapes, shapes, one, one);
  REFUSED("no operand 1", augment.input(1));
  REFUSED("no operand -1", augment.is_active(-1));
  REFUSED("no result 1", augment.result_shape(1));
  REFUSED("no result 1", augment.is_reached(1));
  CHECK(augment.box().kind() == box.kind());
  CHECK(augment.num_inputs() + augment.num_results() == 2);
  JvpContext jvp(g, box, in, in, shapes, nothing);
  REFUSED("no result 1", jvp.output(1));
  REFUSED("no operand 1", jvp.has_tangent(1));
  REFUSED("no operand 1", jvp.tangent(1));
  REFUSED("no result 1", jvp.set_tangent(1, in[0]));
  REFUSED("no result 1", jvp.add_tangent(1, in[0]));
  CHECK_FALSE(jvp.result_tangents()[0].valid());
  REFUSED("no result 1", jvp.replace_output(1, in[0]));
  CHECK_FALSE(jvp.replaced_outputs()[0].valid());
  BatchContext batch(g, box, in, shapes, batched, Dim(3));
  REFUSED("no operand 1", batch.is_batched(1));
  REFUSED("no operand 1", batch.rank(1));
  REFUSED("no operand 1", batch.lifted(1));
  REFUSED("no operand 1", batch.aligned(1, 2));
  REFUSED("no result 1", batch.set_result(1, in[0]));
  REFUSED("takes (", batch.emit_lifted(ops::MatMul{}));
  Graph other("other");
  const Expr stranger = other.input("q", kPair);
  REFUSED("returns a value of another graph", decompose.set_result(0, stranger));
  REFUSED("returns a value of another graph", vjp.accumulate(0, stranger));
  REFUSED("returns a value of another graph", jvp.set_tangent(0, stranger));
  REFUSED("returns a value of another graph", jvp.add_tangent(0, stranger));
  REFUSED("returns a value of another graph", batch.set_result(0, stranger));
  const CostContext cost{box, shapes, shapes};
  REFUSED("no result 1", cost.elements(1));
  const std::vector<Shape> open{Shape({Dim::symbol("n")}, DType::F32)};
  REFUSED("dimension n has no value", CostContext{box, open, open}.with_flops(1));

  const Rule<int()> absent = none("because"), derived = by_decomposition;
  REFUSED("because", absent());  // operator()
  REFUSED("it is derived", derived());
  CHECK_FALSE(absent.has());
  CHECK(derived.reason() == nullptr);
  REFUSED("says so", check_rule(false, OpBox(ops::Custom{"acme.misused", {}}), "says so"));
}

TEST_CASE("misuse: decomposing and inlining") {
  Graph g("g"), other("other");
  const Expr x = g.input("x", kPair);
  const std::vector<Expr> own{x}, foreign{other.input("q", kPair)}, empty(1);
  REFUSED("has no decomposition", decompose_into(g, ops::Input{"x", {}, DType::F32}, {}));
  REFUSED("an empty Expr", decompose_into(g, ops::Softmax{0}, empty));
  REFUSED("belongs to graph 'other'", decompose_into(g, ops::Softmax{0}, foreign));
  REFUSED("outside", decompose_into(g, ops::Softmax{5}, own));
  const Graph body = small();
  REFUSED("does not belong to graph 'g'", inline_body(g, body, foreign));
  REFUSED("does not belong to graph 'g'", inline_body(g, body, empty));
  REFUSED("inputs, got 0 operands", inline_body(g, body, {}));
  REFUSED("inputs, got 5 operands", inline_body(g, body, std::vector<Expr>(5, x)));
  REFUSED("into itself", inline_body(g, g, own));
  Graph counts("counts");
  counts.set_state("n", counts.state("n", Tensor::zeros(kPair)) + 1.0);
  REFUSED("sets states", inline_body(g, counts, {}));
}

TEST_CASE("misuse: rewriting") {
  const Graph g = small();
  GraphRewriter r(g);
  auto refused = [](auto call) { CHECK_FALSE(test::error_text(call).empty()); };
  refused([&] { (void)r.expr(Value(kFarNode)); });
  refused([&] { (void)r.exprs({Value(kFarNode)}); });
  refused([&] { (void)r.original(Value(kFarNode)); });
  refused([&] { r.replace(Value(kFarNode), Value(NodeId{0})); });
  refused([&] { r.replace(Value(NodeId{0}), Expr()); });
  refused([&] { r.replace_node(NodeId{0}, {}); });
  refused([&] { r.replace_node(kFarNode, {}); });
  refused([&] { (void)r.is_replaced(kFarNode); });
  CHECK_FALSE(r.is_replaced(Value(kFarNode)));
  Graph elsewhere("elsewhere");
  refused([&] { r.replace(Value(NodeId{1}), elsewhere.input("x", kPair)); });
  refused([&] { (void)r.reads(elsewhere.input("y", kPair)); });
  refused([&] { (void)r.reads(Expr()); });
  CHECK_FALSE(r.changed());
  CHECK_FALSE(r.commit("none").changed);
  REFUSED("has no value", as_matmul(g, kFarNode));
  REFUSED("has no value", as_matmul_bias_act(g, kFarNode));
  REFUSED("has no value", constant_scalar(g, Value(kFarNode)));
  REFUSED("has no value", is_param_only(g, Value(kFarNode)));
  ParamOnly param_only;
  REFUSED("has no value", param_only(g, Value(kFarNode)));  // operator()
  CHECK(param_only_nodes(Graph()).empty());
  CHECK_FALSE(is_frozen_param(g.node(NodeId{0})));
  Graph no_body("no_body");
  no_body.set_outputs(
      {no_body.matmul(no_body.param("w", Shape({2, 2}, DType::F32)), no_body.input("y", Shape({2, 2}, DType::F32)))});
  CHECK_FALSE(test::error_text([&] { (void)chain_of(no_body); }).empty());
}

TEST_CASE("misuse: evaluation") {
  const Graph g = small();
  const Tensor right = Tensor::zeros(kPair);
  REFUSED("no value for 'x'", evaluate(g));
  REFUSED("has no input, param or state 'y'", evaluate(g, {{"x", right}, {"y", right}}));
  REFUSED("'x' is declared [2] f32, got [3]", evaluate(g, {{"x", Tensor::zeros(Shape({3}, DType::F32))}}));
  CHECK_FALSE(test::error_text([&] { (void)evaluate(g, {{"x", Tensor::zeros(Shape({2}, DType::I32))}}); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)evaluate_with_states(g, {{"x", Tensor()}}); }).empty());
  CHECK(evaluate(Graph()).empty());
  CHECK(evaluate_with_states(Graph(), {}).states.empty());
  REFUSED("takes (", evaluate_op(ops::Softmax{0}, {}));
  CHECK_FALSE(test::error_text([&] { (void)evaluate_op(ops::Softmax{0}, std::vector<Tensor>(1)); }).empty());
  REFUSED("got [3]", solve_symbols(g, {{"x", {3}}}));
  CHECK(solve_symbols(g, {{"unknown", {3}}}).empty());
  CHECK(to_f64(Graph()).num_nodes() == 0);
}

TEST_CASE("misuse: text, bytes and checks of graphs") {
  REFUSED("expected 'graph'", parse_text(""));
  REFUSED("expected 'graph'", parse_text(std::string_view("\0\xff", 2), ""));
  REFUSED("", parse_text(std::string(100000, '{')));
  CHECK_FALSE(print_text(Graph()).empty());
  CHECK_FALSE(print_text(small(), TextOptions{true, true, true, -1, 0}).empty());
  REFUSED("", from_bytes({}));
  REFUSED("", from_bytes(std::span<const std::byte>(), ""));
  CHECK(from_bytes(to_bytes(Graph())).num_nodes() == 0);
  CHECK(graph_bytes_header({}).size() == kGraphBytesHeaderSize);
  struct Counter : ByteSink {
    std::size_t bytes = 0;
    void write(const void*, std::size_t size) override { bytes += size; }
  } counter;
  encode_graph(Graph(), EncodeParts::All, counter);
  CHECK(counter.bytes > 0);
  REFUSED("out of range", encode_node(Node{ops::Activation{static_cast<ActivationKind>(200)}, {}, {}, {}}, counter));
  CHECK(node_fingerprints(Graph()).empty());
  CHECK(fingerprint(Graph()) == fingerprint(Graph("named")));
  CHECK(fingerprint_bytes(nullptr, 0) == fingerprint_bytes("", 0));
  REFUSED("null pointer", fingerprint_bytes(nullptr, 4));
  CHECK(Fingerprint().text() == std::string(32, '0'));
  CHECK_FALSE(same_graph(Graph(), small()));
  Graph broken("broken");
  broken.add_node(Node{ops::Activation{}, {}, {}, {}});
  CHECK_FALSE(verify(broken, Level::Mir).empty());
  REFUSED("broken", verify_or_throw(broken, Level::Mir, ""));
}
