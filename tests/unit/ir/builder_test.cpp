// Builder functions: short names, declared shapes, modules by definition.
#include "rlx/ir/builder.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/module.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ir/text.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

using test::f32;

// The fn of the node that a builder function appends last.
template <class Op, class Call>
auto fn_of(DType dtype, Call&& call) {
  Graph g("g");
  Expr e = call(g, g.input("x", Shape({4}, dtype)), g.input("y", Shape({4}, dtype)));
  const OpBox& op = g.node(e.value().node).op;
  REQUIRE(op.is<Op>());
  return op.as<Op>().fn;
}

TEST_CASE("each short name is its kind") {
#define UNARY(Kind, call, text, params) {ActivationKind::Kind, text, [](Graph& g, Expr x) { return g.call(x); }},
  const struct {
    ActivationKind kind;
    const char* text;
    Expr (*call)(Graph&, Expr);
  } unary[] = {RLX_FOR_EACH_FUNCTION(UNARY)};
#undef UNARY
  CHECK(std::size(unary) == static_cast<std::size_t>(kNumActivationKinds));
  for (const auto& u : unary) {
    CAPTURE(u.text);
    Graph g("g");
    const DType dtype = contains(function_row(u.kind).dtypes, DType::F32) ? DType::F32 : DType::I32;
    Expr e = u.call(g, g.input("x", Shape({4}, dtype)));
    const OpBox& op = g.node(e.value().node).op;
    CHECK(op.as<ops::Activation>().fn == u.kind);
    CHECK(has_own_params(op.as<ops::Activation>()));
    CHECK(op_text_name(op) == u.text);
  }
  CHECK(fn_of<ops::Binary>(DType::I32, [](Graph& g, Expr x, Expr y) { return g.shl(x, y); }) == BinaryKind::Shl);
  CHECK(fn_of<ops::Binary>(DType::I32, [](Graph& g, Expr x, Expr y) { return g.shr(x, y); }) == BinaryKind::Shr);
  using C = CumulativeKind;
  CHECK(fn_of<ops::Cumulative>(DType::F32, [](Graph& g, Expr x, Expr) { return g.cumprod(x, 0); }) == C::Prod);
  CHECK(fn_of<ops::Cumulative>(DType::F32, [](Graph& g, Expr x, Expr) { return g.cummax(x, -1); }) == C::Max);
  CHECK(fn_of<ops::Cumulative>(DType::F32, [](Graph& g, Expr x, Expr) { return g.cummin(x, 0); }) == C::Min);
}

TEST_CASE("the running names pass their options on") {
  Graph g("g");
  Expr x = g.input("x", f32({4}));
  g.set_outputs({g.cumprod(x, 0), g.cumprod(x, 0, true), g.cummax(x, 0, false, true), g.cummin(x, 0)});
  const std::vector<Tensor> y = evaluate(g, {{"x", Tensor::of<float>({4}, {2, 1, 3, -1})}});
  CHECK(y[0].to_f32() == std::vector<float>{2, 2, 6, -6});
  CHECK(y[1].to_f32() == std::vector<float>{1, 2, 2, 6});
  CHECK(y[2].to_f32() == std::vector<float>{3, 3, 3, -1});
  CHECK(y[3].to_f32() == std::vector<float>{2, 1, 1, -1});
}

TEST_CASE("mm and sm are matmul and softmax") {
  Graph g("g");
  Expr x = g.input("x", f32({2, 4}));
  CHECK(g.node(g.mm(x, g.t(x)).value().node).kind() == OpKind::MatMul);
  CHECK(g.node(g.sm(x).value().node).op.as<ops::Softmax>().axis == 1);
}

// Every general builder function with a right and a wrong declared result.
TEST_CASE("a declared shape is checked against the inferred one, in every family") {
  using Call = std::function<Expr(Graph&, const DeclaredShape&)>;
  struct Family {
    const char* name;
    Shape shape;
    Call call;
  };
  auto x = [](Graph& g) { return g.input("x", f32({2, 3, 4})); };
  auto vec = [](Graph& g, const char* name, std::int64_t n) { return g.param(name, f32({n})); };
  auto attention = [](Graph& g, const DeclaredShape& s) {
    ops::Attention op;
    op.num_heads = op.kv_heads = 2;
    op.head_dim = 2;
    Expr q = g.input("q", f32({2, 3, 4}));
    return g.attention(q, q, q, op, std::nullopt, s);
  };
  auto rope = [](Graph& g, const DeclaredShape& s) {
    ops::Rope op;
    op.head_dim = 4;
    op.n_rot = 0;
    Expr table = g.input("table", f32({3, 2}));
    return g.rope(g.input("q", f32({2, 3, 4})), table, table, op, s);
  };
  const Family families[] = {
      {"gelu", f32({2, 3, 4}),
       [&](Graph& g, const DeclaredShape& s) { return g.activation(ActivationKind::Gelu, x(g), s); }},
      {"add", f32({2, 3, 4}),
       [&](Graph& g, const DeclaredShape& s) { return g.binary(BinaryKind::Add, x(g), vec(g, "v", 4), s); }},
      {"lt", Shape({2, 3, 4}, DType::Bool),
       [&](Graph& g, const DeclaredShape& s) { return g.compare(CompareKind::Lt, x(g), 0, s); }},
      {"where", f32({2, 3, 4}),
       [&](Graph& g, const DeclaredShape& s) { return g.where(g.input("c", Shape({4}, DType::Bool)), x(g), 0, s); }},
      {"cast", Shape({2, 3, 4}, DType::I32),
       [&](Graph& g, const DeclaredShape& s) { return g.cast(x(g), DType::I32, s); }},
      {"clamp", f32({2, 3, 4}), [&](Graph& g, const DeclaredShape& s) { return g.clamp(x(g), -1, 1, s); }},
      {"reshape", f32({6, 4}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.reshape(x(g), {-1, 4}, s);
       }},
      {"transpose", f32({4, 2, 3}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.transpose(x(g), {2, 0, 1}, s);
       }},
      {"expand", f32({5, 2, 3, 4}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.expand(x(g), {5, 2, 3, 4}, s);
       }},
      {"slice", f32({1, 3, 2}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.slice(x(g), {0, 0, 0}, {1, 3, 4}, {1, 1, 2}, s);
       }},
      {"slice", f32({2, 1, 4}), [&](Graph& g, const DeclaredShape& s) { return g.narrow(x(g), 1, 2, 1, s); }},
      {"concat", f32({2, 6, 4}),
       [&](Graph& g, const DeclaredShape& s) {
         Expr v = x(g);
         return g.concat({v, v}, 1, s);
       }},
      {"pad", f32({2, 3, 7}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.pad(x(g), {0, 0, 1}, {0, 0, 2}, 0, {}, s);
       }},
      {"gather", f32({2, 5, 4}),
       [&](Graph& g, const DeclaredShape& s) { return g.gather(x(g), g.input("i", Shape({5}, DType::I32)), 1, s); }},
      {"scatter_add", f32({2, 3, 4}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.scatter_add(x(g), g.input("i", Shape({5}, DType::I32)), g.input("u", f32({2, 5, 4})), 1, s);
       }},
      {"reduce_sum", f32({2, 1, 4}),
       [&](Graph& g, const DeclaredShape& s) { return g.reduce(ReduceKind::Sum, x(g), {1}, true, s); }},
      {"cumulative_sum", f32({2, 3, 4}),
       [&](Graph& g, const DeclaredShape& s) { return g.cumulative(CumulativeKind::Sum, x(g), 1, false, false, s); }},
      {"softmax", f32({2, 3, 4}), [&](Graph& g, const DeclaredShape& s) { return g.softmax(x(g), -1, s); }},
      {"log_softmax", f32({2, 3, 4}), [&](Graph& g, const DeclaredShape& s) { return g.log_softmax(x(g), -1, s); }},
      {"matmul", f32({2, 3, 5}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.matmul(x(g), g.param("w", f32({4, 5})), s);
       }},
      {"dot_general", f32({2, 3, 5}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.dot_general(x(g), g.param("w", f32({5, 4})), ops::DotGeneral{{2}, {1}, {}, {}}, s);
       }},
      {"layer_norm", f32({2, 3, 4}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.layer_norm(x(g), vec(g, "g", 4), vec(g, "b", 4), 1e-5, {-1}, s);
       }},
      {"rms_norm", f32({2, 3, 4}),
       [&](Graph& g, const DeclaredShape& s) {
         return g.rms_norm(x(g), vec(g, "g", 4), vec(g, "b", 4), 1e-6, {-1}, s);
       }},
      {"attention", f32({2, 3, 4}), attention},
      {"rope", f32({2, 3, 4}), rope},
  };
  for (const Family& f : families) {
    CAPTURE(f.name);
    Graph g("g");
    CHECK(f.call(g, f.shape).shape() == f.shape);
    Graph undeclared("g");
    CHECK(f.call(undeclared, {}).shape() == f.shape);
    Graph wrong("g");
    Dims longer = f.shape.dims();
    longer.push_back(7);
    const std::string text = error_text([&] { (void)f.call(wrong, {longer, f.shape.dtype()}); });
    CHECK(contains(text, concat_text(f.name, ": inferred ", f.shape, ", declared ", Shape(longer, f.shape.dtype()))));
    CHECK(contains(text, "builder_test.cpp"));
    Graph other("g");
    CHECK(contains(error_text([&] { (void)f.call(other, {f.shape.dims(), DType::F64}); }), "declared"));
  }
}

TEST_CASE("a declared shape reads like a shape where it is written") {
  Graph g("g");
  Expr x = g.input("x", f32({2, 4})), w = g.param("w", f32({4, 3}));
  CHECK(g.matmul(x, w, {{2, 3}, DType::F32}).rank() == 2);
  CHECK(g.matmul(x, w, f32({2, 3})).rank() == 2);
  CHECK(contains(error_text([&] {
                   (void)g.matmul(x, w, {{2, 4}, DType::F32});
                 }),
                 "inferred [2, 3] f32, declared [2, 4] f32"));
}

TEST_CASE("define builds a module; its stage says whether it holds blocks") {
  int calls = 0;
  const GraphModule plain = Graph::define("plain", [&](Graph& g) {
    ++calls;
    g.set_outputs({g.exp(g.input("x", f32({2})))});
  });
  CHECK(calls == 1);
  CHECK(plain.stage() == GraphStage::Mir);
  CHECK(plain.graph().name() == "plain");
  CHECK(plain.graph().outputs().size() == 1);
  const GraphModule block = Graph::define("block", [](Graph& g) {
    g.set_outputs({g.linear(g.input("x", f32({2, 4})), g.param("w", f32({4, 3})))});
  });
  CHECK(block.stage() == GraphStage::Hir);
  CHECK(holds_blocks(block.graph()));
  CHECK(!holds_blocks(block.hir().lower_to_mir().graph));
  CHECK(plain.graph().module().stage() == GraphStage::Mir);
}

TEST_CASE("a scalar constant that its integer dtype does not hold is an error with value, dtype, range and line") {
  Graph g("g");
  CHECK(
      contains(error_text([&] { (void)g.scalar(300, DType::U8); }), "300 is not a value of u8, which holds 0 to 255"));
  CHECK(contains(error_text([&] { (void)g.scalar(300, DType::U8); }), concat_text("builder_test.cpp:", __LINE__)));
  CHECK(contains(error_text([&] { (void)g.scalar(-1, DType::U64); }), "-1 is not a value of u64"));
  CHECK(contains(error_text([&] { (void)g.scalar(2.5, DType::I32); }), "2.5 is not a value of i32"));
  CHECK(contains(error_text([&] { (void)g.scalar(1e30, DType::I64); }), "is not a value of i64"));
  CHECK(contains(error_text([&] { (void)g.scalar(~std::uint64_t{0}, DType::I64); }),
                 "18446744073709551615 is not a value of i64"));
  CHECK(g.num_nodes() == 0);
  // All digits of a 64-bit integer are kept, which a double could not hold.
  g.set_outputs({g.scalar((std::int64_t{1} << 53) + 1, DType::I64), g.scalar(~std::uint64_t{0}, DType::U64),
                 g.scalar(255, DType::U8), g.scalar(-3.0, DType::I8), g.scalar(7), g.scalar(true, DType::Bool)});
  const std::vector<Tensor> y = evaluate(g, {});
  CHECK(y[0].at_i64(0) == (std::int64_t{1} << 53) + 1);
  CHECK(y[1].identical(Tensor::of<std::uint64_t>({}, std::vector<std::uint64_t>{~std::uint64_t{0}})));
  CHECK(y[2].at_i64(0) == 255);
  CHECK(y[3].at_i64(0) == -3);
  CHECK(y[4].identical(Tensor::scalar(DType::F32, 7)));
  CHECK(y[5].at_i64(0) == 1);
}

TEST_CASE("errors of builder calls name the user's line: axes, leaves of one name, values of another graph") {
  Graph g("g"), other("other");
  const Expr x = g.input("x", f32({2, 3})), y = other.input("y", f32({2, 3})),
             s = g.state("s", Tensor::zeros(f32({2})));
  const std::string place = "builder_test.cpp:";
  // Each on one line, so that its number is known.
  // clang-format off
  struct Call {
    int line;
    std::function<void()> make;
  };
  const Call cases[] = {
      {__LINE__, [&] { (void)g.softmax(x, 7); }},
      {__LINE__, [&] { (void)g.sum(x, {5}); }},
      {__LINE__, [&] { (void)g.sum(x, {0, 0}); }},
      {__LINE__, [&] { (void)g.transpose(x, {0, -4}); }},
      {__LINE__, [&] { (void)g.concat({x, x}, 2); }},
      {__LINE__, [&] { (void)g.iota(f32({2}), 1); }},
      {__LINE__, [&] { (void)g.gather(x, g.cast(x, DType::I32), 2); }},
      {__LINE__, [&] { (void)g.unsqueeze(x, 4); }},
      {__LINE__, [&] { (void)g.squeeze(x, 1); }},
      {__LINE__, [&] { (void)g.narrow(x, 3, 0, 1); }},
      {__LINE__, [&] { (void)g.layer_norm(x, s, s, 1e-5, {2}); }},
      {__LINE__, [&] { (void)g.dot_general(x, x, {.lhs_contract = {2}, .rhs_contract = {1}}); }},
      {__LINE__, [&] { (void)g.reshape(x, {-1, -1}); }},
      {__LINE__, [&] { (void)g.input("x", f32({1})); }},
      {__LINE__, [&] { (void)g.param("x", f32({1})); }},
      {__LINE__, [&] { (void)g.state("x", Tensor::zeros(f32({1}))); }},
      {__LINE__, [&] { (void)(x + y); }},
      {__LINE__, [&] { (void)g.relu(y); }},
      {__LINE__, [&] { (void)g.concat({x, y}, 0); }},
      {__LINE__, [&] { (void)g.add(ops::StopGradient{}, {y}); }},
      {__LINE__, [&] { g.set_outputs({y}); }},
      {__LINE__, [&] { g.set_outputs(std::vector<Value>{Value(NodeId{99})}); }},
      {__LINE__, [&] { g.set_state("s", y); }},
      {__LINE__, [&] { g.set_state("none", x); }},
  };
  // clang-format on
  for (const Call& call : cases) {
    const std::string text = error_text(call.make);
    CHECK_MESSAGE(contains(text, concat_text(place, call.line)), "line ", call.line, ": ", text);
  }
}

TEST_CASE("bounds of a symbol are declared once: again the same, or no bounds, is the same dimension") {
  Graph g("g");
  const Dim n = g.symbol("n", {1, 8});
  CHECK(g.symbol("n", {1, 8}) == n);
  CHECK(g.symbol("n") == n);
  CHECK(g.symbols().at("n") == SymbolInfo{1, 8});
  const std::string text = error_text([&] { (void)g.symbol("n", {1, 16}); });
  CHECK_MESSAGE(contains(text, "symbol 'n' of graph 'g' is declared with bounds [1, 8], and again with bounds [1, 16]"),
                text);
  CHECK(contains(error_text([&] { (void)g.symbol("n", {}); }), "and again with bounds [0, "));
  CHECK(g.symbols().at("n") == SymbolInfo{1, 8});
  // A first use without bounds leaves them open.
  (void)g.symbol("m");
  (void)g.symbol("m", {2, 4, 2});
  CHECK(g.symbols().at("m") == SymbolInfo{2, 4, 2});
}

TEST_CASE("errors show long names by their first bytes, whole characters, and their size") {
  Graph g("g");
  const std::string name = std::string(79, 'n') + "\u00e9" + std::string((1 << 20) - 81, 'm');
  const Expr x = g.input(name, f32({2}));
  const std::string shown = std::string(79, 'n') + "\u2026 (1048576 bytes)";
  const std::string twice = error_text([&] { (void)g.input(name, f32({2})); });
  CHECK_MESSAGE(contains(twice, "already has an input, param or state '" + shown + "'"), twice.substr(0, 500));
  CHECK(twice.size() < 1000);
  const std::string where = node_where(g, x.value().node);
  CHECK_MESSAGE(contains(where, "{name = \"" + shown + "\"}"), where.substr(0, 500));
  const std::string missing = error_text([&] { (void)evaluate(g, {{name + "x", Tensor::zeros(f32({2}))}}); });
  CHECK(contains(missing, "no input, param or state '" + std::string(79, 'n') + "\u2026 (1048577 bytes)'"));
  CHECK(missing.size() < 1000);
  const std::string unset = error_text([&] { g.set_state(name, x); });
  CHECK(unset.size() < 1000);
  // A name that is a sentence or a path is shown completely.
  const std::string path(256, 'p');
  CHECK(contains(error_text([&] { g.set_state(path, x); }), "has no state '" + path + "'"));
  // Unquoted text is not a name, and graphs are printed completely.
  CHECK(concat_text("a ", path, "b").size() == 259);
  CHECK(print_text(g).size() > name.size());
}

TEST_CASE("an integer scalar that the dtype beside it cannot hold is an error with both names and the line") {
  Graph g("g");
  const Expr u8 = g.input("u8", Shape({1}, DType::U8)), i8 = g.input("i8", Shape({1}, DType::I8)),
             i64 = g.input("i64", Shape({1}, DType::I64)), u64 = g.input("u64", Shape({1}, DType::U64));
  CHECK(contains(error_text([&] { (void)g.gt(u8, -1); }), "-1 is not a value of u8, which holds 0 to 255"));
  CHECK(contains(error_text([&] { (void)g.max(u8, -1); }), "-1 is not a value of u8"));
  CHECK(contains(error_text([&] { (void)g.clamp(u8, 0, 300); }), "300 is not a value of u8"));
  CHECK(contains(error_text([&] { (void)(u8 + 300); }), "builder_test.cpp:"));
  CHECK(contains(error_text([&] { (void)g.pad(u8, {1}, {0}, -3); }), "-3 is not a value of u8"));
  CHECK(contains(error_text([&] { (void)g.pad(i8, {1}, {0}, 0.5); }),
                 "0.5 is not a value of i8, which holds -128 to 127"));
  CHECK(contains(error_text([&] { (void)g.pad(i8, {1}, {0}, HUGE_VAL); }), "is not a value of i8"));
  CHECK(contains(error_text([&] { (void)g.add(i8, -129); }), "-129 is not a value of i8"));
  CHECK(
      contains(error_text([&] { (void)g.add(i64, ~std::uint64_t{0}); }), "18446744073709551615 is not a value of i64"));
  CHECK(contains(error_text([&] { (void)g.where(g.gt(u8, 1), std::int64_t{1} << 40, 0); }), "is not a value of i32"));
  // The ends of each range are values.
  g.set_outputs({g.max(u8, 255), g.min(i8, -128), g.min(i64, std::numeric_limits<std::int64_t>::min()),
                 g.max(u64, ~std::uint64_t{0}), g.pad(i8, {1}, {0}, -2.0)});
  const std::vector<Tensor> y = evaluate(g, {{"u8", Tensor::scalar_i64(DType::U8, 1).reshaped({1})},
                                             {"i8", Tensor::scalar_i64(DType::I8, 1).reshaped({1})},
                                             {"i64", Tensor::scalar_i64(DType::I64, 1).reshaped({1})},
                                             {"u64", Tensor::scalar_i64(DType::U64, 1).reshaped({1})}});
  CHECK(y[0].at_i64(0) == 255);
  CHECK(y[1].at_i64(0) == -128);
  CHECK(y[2].at_i64(0) == std::numeric_limits<std::int64_t>::min());
  CHECK(y[3].values<std::uint64_t>()[0] == ~std::uint64_t{0});
  CHECK(y[4].at_i64(0) == -2);
}

// Under the sanitizers (float-cast-overflow) this also shows that no scalar passes through an integer on its way.
TEST_CASE("a float scalar of any size stays what it is") {
  Graph g("g");
  const Expr x = g.input("x", Shape({1}, DType::F64));
  g.set_outputs({g.add(x, HUGE_VAL), g.add(x, -HUGE_VAL), g.add(x, NAN), g.add(x, 1e300)});
  const std::vector<Tensor> y = evaluate(g, {{"x", Tensor::of<double>({1}, {1})}});
  CHECK(y[0].at(0) == HUGE_VAL);
  CHECK(y[1].at(0) == -HUGE_VAL);
  CHECK(std::isnan(y[2].at(0)));
  CHECK(y[3].at(0) == 1e300);
}

TEST_CASE("unary minus records the user's line, as the other operators do") {
  Graph g("g");
  const Expr x = g.input("x", f32({2}));
  const Expr minus = -x;
  const int line = __LINE__ - 1;
  CHECK(g.node(minus.value().node).origin.loc.line == line);
  CHECK(contains(g.node(minus.value().node).origin.loc.file, "builder_test.cpp"));
}

TEST_CASE("operands of norms, attention, rope and blocks are promoted; what is stored takes the dtype of its place") {
  Graph g("g");
  const Expr half = g.input("half", Shape({1, 2, 4}, DType::BF16)), wide = g.input("wide", f32({1, 2, 4}));
  const Expr vec = g.param("vec", f32({4})), square = g.param("square", f32({4, 4})), table = g.param("t", f32({2, 2}));
  ops::Attention attention;
  attention.head_dim = 4;
  ops::Rope rope;
  rope.head_dim = rope.n_rot = 4;
  CHECK(g.layer_norm(half, vec, vec).dtype() == DType::F32);
  CHECK(g.rms_norm(half, vec, vec).dtype() == DType::F32);
  // Keys and values are only stored; the dtype of the queries decides that of the result.
  CHECK(g.attention(half, wide, wide, attention).dtype() == DType::BF16);
  CHECK(g.attention(wide, half, half, attention).dtype() == DType::F32);
  CHECK(g.attention(half, wide, wide, attention).result(1).dtype() == DType::F32);
  CHECK(g.rope(half, table, table, rope).dtype() == DType::F32);
  CHECK(g.linear(half, square, vec).dtype() == DType::F32);
  CHECK(g.linear_fused(half, square, vec).dtype() == DType::F32);
  CHECK(g.shared_linear_pair(half, square, square).second.dtype() == DType::F32);
  CHECK(g.swiglu(half, square, square, square).dtype() == DType::F32);
  CHECK(g.residual_layer_norm(half, half, vec, vec).dtype() == DType::F32);
  CHECK(g.residual_rms_norm(half, wide, vec, vec).dtype() == DType::F32);
  ops::EncoderBlock block;
  block.num_heads = 1;
  block.head_dim = 4;
  block.mask = MaskKind::Custom;
  std::vector<Expr> operands = {half};
  for (int i = 0; i < 4; ++i) operands.insert(operands.end(), {square, vec});
  operands.insert(operands.end(), {vec, vec, square, vec, square, vec, vec, vec});
  operands.push_back(g.input("mask", Shape({1, 2}, DType::Bool)));
  CHECK(g.encoder_block(block, operands).dtype() == DType::F32);

  const Expr rows = g.input("rows", Shape({2}, DType::I32)), state = g.input("s", Shape({3, 4}, DType::BF16));
  CHECK(g.scatter_add(state, rows, g.input("u", f32({2, 4}))).dtype() == DType::BF16);
  CHECK(g.dynamic_update_slice(state, g.input("v", f32({1, 4})), rows).dtype() == DType::BF16);
  const Expr whole = g.input("whole", Shape({3, 4}, DType::I32));
  CHECK(contains(error_text([&] { (void)g.scatter_add(whole, rows, g.input("w", f32({2, 4}))); }), "dtype"));
}

}  // namespace
}  // namespace rlx
