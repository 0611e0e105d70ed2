// Runtime and bucket symbols give the results of specialise, bit for bit, on programs whose extents affect every op.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "rlx/compiler/symbol_mode.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"
#include "tests/support/custom_ops.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using Program = Graph (*)();

// Element i of a tensor of any dtype: adjacent elements differ, both signs occur, numbers are small.
Tensor filled(const Shape& shape, std::uint32_t seed) {
  Tensor t = Tensor::zeros(shape);
  std::uint32_t state = seed * 2654435761u + 12345;
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    const double unit = static_cast<double>(state >> 8) / (1 << 24);
    t.set(i, shape.dtype() == DType::Bool ? (unit < 0.7 ? 1.0 : 0.0)
             : is_int(shape.dtype())      ? std::floor(unit * 8)
                                          : unit * 2 - 1);
  }
  return t;
}

NamedTensors inputs_of(const Graph& g, const SymbolBinding& values) {
  NamedTensors out;
  std::uint32_t seed = 1;
  for (NodeId id : g.leaves(OpKind::Input)) out.emplace(g.leaf_name(id), filled(g.shape(id).bind(values), seed++));
  return out;
}

void set_params(CompiledGraph& f) {
  std::uint32_t seed = 100;
  for (const IoInfo& p : f.params()) f.set_param(p.name, filled(p.shape, seed++));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && (a.size_bytes() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// The largest error, relative above 1 and absolute below.
double distance(const Tensor& a, const Tensor& b) {
  test::Worst worst;
  for (std::int64_t k = 0; k < a.num_elements(); ++k)
    worst.add(a.at(k), b.at(k), std::isfinite(b.at(k)) ? std::max(1.0, std::fabs(b.at(k))) : 1);
  return worst.value();
}

// Runs `build` in the given modes at every value, twice and in between other values, and compares with specialise and
// with the evaluator.
void compare(Program build, const SymbolModes& modes, const std::vector<SymbolBinding>& values, double tolerance = 2e-5,
             const Session& session = Session()) {
  CompileOptions options;
  options.symbol_modes = modes;
  CompiledGraph exact = session.compile(build());
  CompiledGraph f = session.compile_with(build(), options);
  set_params(exact);
  set_params(f);
  CompiledGraph twin = f.clone();
  const Graph source = build();
  for (int round = 0; round < 2; ++round)
    for (const SymbolBinding& at : values) {
      std::string text;
      for (const auto& [name, value] : at) text += concat_text(name, "=", value, " ");
      CAPTURE(text);
      NamedTensors inputs = inputs_of(source, at);
      NamedTensors all = inputs;
      std::uint32_t seed = 100;
      for (const IoInfo& p : f.params()) all.emplace(p.name, filled(p.shape, seed++));
      for (const IoInfo& s : f.states()) all.emplace(s.name, f.read_state(s.name));
      EvaluateResult oracle = evaluate_with_states(source, all);
      const std::vector<Tensor> expected = exact.run_typed(inputs), got = f.run_typed(inputs),
                                other = twin.run_typed(inputs);
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(same_bits(got[i], expected[i]));
        CHECK(same_bits(other[i], expected[i]));
        REQUIRE(got[i].shape() == oracle.outputs[i].shape());
        CHECK(distance(got[i], oracle.outputs[i]) <= tolerance);
      }
      for (const IoInfo& s : f.states()) {
        CHECK(same_bits(f.read_state(s.name), exact.read_state(s.name)));
        CHECK(distance(f.read_state(s.name), oracle.states.at(s.name)) <= tolerance);
      }
    }
}

std::vector<SymbolBinding> grid(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& axes) {
  std::vector<SymbolBinding> out{{}};
  for (const auto& [name, values] : axes) {
    std::vector<SymbolBinding> wider;
    for (const SymbolBinding& b : out)
      for (std::int64_t v : values) {
        SymbolBinding with = b;
        with.emplace(name, v);
        wider.push_back(std::move(with));
      }
    out = std::move(wider);
  }
  return out;
}

// -- programs --

Graph encoder() {
  Graph g("encoder");
  const Dim batch = g.symbol("batch", {.min = 1, .max = 4}), seq = g.symbol("seq", {.min = 1, .max = 40});
  Expr ids = g.input("ids", {{batch, seq}, DType::I32});
  Expr mask = g.input("mask", {{batch, seq}, DType::Bool});
  Expr positions = g.narrow(g.param("positions", {{40, 32}, DType::F32}), 0, 0, seq);
  Expr x = g.gather(g.param("table", {{50, 32}, DType::F32}), ids) + positions;
  for (const char* layer : {"a", "b"}) {
    ops::EncoderBlock block;
    block.num_heads = 2, block.head_dim = 16, block.mask = MaskKind::Custom;
    std::vector<Expr> operands{x};
    auto add = [&](const std::string& name, Dims dims) {
      operands.push_back(g.param(concat_text(layer, ".", name), {std::move(dims), DType::F32}));
    };
    for (const char* n : {"q", "k", "v", "o"}) {
      add(n, {32, 32});
      add(concat_text(n, "_bias"), {32});
    }
    add("g1", {32}), add("b1", {32}), add("up", {32, 64}), add("up_bias", {64}), add("down", {64, 32}),
        add("down_bias", {32});
    add("g2", {32}), add("b2", {32});
    operands.push_back(g.reshape(mask, {batch, 1, 1, seq}));
    x = g.encoder_block(block, operands);
  }
  g.set_outputs({g.mean(x, {1}), x});
  return g;
}

// One step of a decoder: new key rows are written to a cache (a state) at `at`, and queries see its first `kv` rows.
Graph decoder() {
  Graph g("decoder");
  const Dim kv = g.symbol("kv", {.min = 3, .max = 24}), step = g.symbol("step", {.min = 1, .max = 3});
  Expr x = g.input("x", {{1, step, 16}, DType::F32});
  Expr at = g.input("at", {{3}, DType::I32});
  Expr visible = g.input("visible", {{1, kv}, DType::Bool});
  Expr q = g.matmul(x, g.param("wq", {{16, 16}, DType::F32}));
  ops::Attention op;
  op.num_heads = 2, op.kv_heads = 1, op.head_dim = 8, op.mask = MaskKind::Custom;
  std::vector<Expr> rows;
  for (const char* name : {"keys", "values"}) {
    Expr cache = g.state(name, Tensor::zeros(Shape({1, 24, 8}, DType::F32)));
    Expr fresh = g.matmul(x, g.param(concat_text("w_", name), {{16, 8}, DType::F32}));
    Expr next = g.dynamic_update_slice(cache, fresh, at);
    g.set_state(name, next);
    rows.push_back(g.narrow(next, 1, 0, kv));
  }
  Expr y = g.attention(q, rows[0], rows[1], op, visible);
  op.mask = MaskKind::Causal;
  g.set_outputs({y, g.attention(q, rows[0], rows[1], op), g.sum(rows[0], {1})});
  return g;
}

Graph pieces() {  // concat and slices along the symbolic axis, extents that shrink as the symbol grows
  Graph g("pieces");
  const Dim n = g.symbol("n", {.min = 0, .max = 24});
  Expr x = g.input("x", {{n, 6}, DType::F32});
  Expr fill = g.expand(g.param("fill", {{1, 6}, DType::F32}), {Dim(24) - n, 6});
  Expr whole = g.concat({x, fill}, 0);          // [24, 6]
  Expr twice = g.concat({x, g.tanh(x), x}, 0);  // [3n, 6]
  Expr middle = g.narrow(twice, 0, n, n);       // tanh(x) again
  Expr half = g.narrow(x, 0, floordiv(n, Dim(2)), n - floordiv(n, Dim(2)));
  Expr columns = g.concat({g.t(x), g.t(middle)}, 1);  // [6, 2n]
  Expr back = g.narrow(columns, 1, n, n);             // strided rows
  Expr every = g.slice(twice, {0, 0}, {n * Dim(3), 6}, {2, 3});
  g.set_outputs({g.reverse(whole, {0}) + 1.0, g.exp(middle), half, g.reshape(back, {n * Dim(6)}), every * every,
                 g.pad(x, {1, 0}, {2, 1}, 7), g.sum(g.softmax(back, 1), {0}), g.narrow(whole, 0, Dim(24) - n, n)});
  return g;
}

Graph merged() {  // merges batch and sequence into one axis and splits them again
  Graph g("merged");
  const Dim b = g.symbol("b", {.min = 1, .max = 5}), s = g.symbol("s", {.min = 1, .max = 9, .divisor = 1});
  Expr x = g.input("x", {{b, s, 12}, DType::F32});
  Expr rows = g.reshape(x, {b * s, 12});
  Expr y = g.gelu(g.matmul(rows, g.param("w", {{12, 24}, DType::F32})) + g.param("bias", {{24}, DType::F32}));
  Expr heads = g.transpose(g.reshape(y, {b, s, 4, 6}), {0, 2, 1, 3});  // [b, 4, s, 6]
  Expr scores = g.softmax(g.matmul(heads, g.t(heads)) * 0.4, -1);      // [b, 4, s, s]
  Expr mixed = g.reshape(g.transpose(g.matmul(scores, heads), {0, 2, 1, 3}), {b * s, 24});
  Expr both = g.relu(mixed + y) * 0.5;
  g.set_outputs({g.reshape(both, {b, s, 24}), g.reshape(g.transpose(heads, {2, 0, 1, 3}), {s, b * Dim(24)}),
                 g.matmul(g.t(rows), rows),
                 g.reshape(g.expand(g.unsqueeze(x, 1), {b, 2, s, 12}), {b * Dim(2), s * Dim(12)})});
  return g;
}

Graph reductions() {
  Graph g("reductions");
  const Dim b = g.symbol("b", {.min = 1, .max = 6}), s = g.symbol("s", {.min = 2, .max = 70});
  Expr x = g.input("x", {{b, s, 5}, DType::F32});
  auto top = g.top_k(g.transpose(x, {0, 2, 1}), 2);
  Expr centred = x - g.mean(x, {1}, true);
  Expr variance = g.sum(g.square(centred), {1}) / g.cast(g.dim_size(x, 1), DType::F32);
  g.set_outputs({g.sum(x), g.mean(x, {0, 1}), g.reduce_max(x, {1}, true), variance, g.softmax(x, 1),
                 g.log_softmax(x, 0), g.cumsum(x, 1), g.cumulative(CumulativeKind::Max, x, 0, false, true), top.values,
                 top.indices, g.arg_max(x, 1), g.reduce_prod(g.narrow(x, 2, 0, 2), {0})});
  return g;
}

Graph positions() {  // tables computed from extents
  Graph g("positions");
  const Dim s = g.symbol("s", {.min = 1, .max = 33});
  Expr x = g.input("x", {{2, s, 16}, DType::F32});
  Expr angle = g.matmul(g.cast(g.iota(Shape({s, 1}, DType::I32), 0), DType::F32),
                        g.constant(Tensor::of<float>({1, 4}, std::vector<float>{1, 0.1f, 0.01f, 0.001f})));
  ops::Rope rope;
  rope.head_dim = 8, rope.n_rot = 8;
  Expr turned = g.rope(x, g.cos(angle), g.sin(angle), rope);
  Expr row = g.iota(Shape({s, s}, DType::I32), 0), column = g.iota(Shape({s, s}, DType::I32), 1);
  Expr bias = g.where(g.le(column, row), 0.0, -1e9);
  Expr scores = g.softmax(g.matmul(turned, g.t(x)) + bias, -1);
  Expr extent = g.cast(g.dim_size(x, 1), DType::F32);
  g.set_outputs({scores, turned, extent * g.sum(x, {1}),
                 g.matmul(x, g.param("w", {{16, 4}, DType::F32})) * g.rsqrt(extent) + 1.0});
  return g;
}

Graph other_dtypes() {
  Graph g("other_dtypes");
  const Dim n = g.symbol("n", {.min = 0, .max = 20});
  Expr i = g.input("i", {{n, 3}, DType::I64}), h = g.input("h", {{3, n}, DType::BF16}),
       d = g.input("d", {{n}, DType::F64});
  g.set_outputs({i * i + 1, g.sum(i, {0}), g.t(h), g.cast(h, DType::F32) * 2.0, g.cumsum(d, 0),
                 g.matmul(g.unsqueeze(d, 0), g.cast(i, DType::F64)),
                 g.scatter_add(g.expand(g.scalar(0, DType::F64), {8}), g.reshape(g.narrow(i, 1, 0, 1), {n}), d)});
  return g;
}

// Attention in primitives, with a symbolic number of heads and masks of every broadcast shape.
template <int kMask>
Graph written_attention() {
  Graph g("written_attention");
  const Dim b = g.symbol("b", {.min = 1, .max = 3}), h = g.symbol("h", {.min = 1, .max = 8});
  Expr q = g.input("q", {{b, h, 5, 8}, DType::F32}), k = g.input("k", {{b, h, 19, 8}, DType::F32}),
       v = g.input("v", {{b, h, 19, 8}, DType::F32});
  Expr s = g.matmul(q, g.transpose(k, {0, 1, 3, 2})) * 0.25;
  if (kMask == 1) s = g.where(g.input("mask", {{5, 19}, DType::Bool}), s, -HUGE_VAL);
  if (kMask == 2) s = s + g.input("bias", {{b, 1, 1, 19}, DType::F32});
  if (kMask == 3) s = s + g.input("bias", {{1, h, 5, 19}, DType::F32});
  if (kMask == 4) s = g.where(g.input("mask", {{b, h, 5, 19}, DType::Bool}), s, -1e30);
  g.set_outputs({g.matmul(g.softmax(s), v)});
  return g;
}

// The same with the head axis after the rows, as projections give them.
Graph written_rows_first() {
  Graph g("written_rows_first");
  const Dim s = g.symbol("s", {.min = 1, .max = 20}), h = g.symbol("h", {.min = 1, .max = 8});
  std::vector<Expr> x;
  for (const char* name : {"q", "k", "v"})
    x.push_back(g.transpose(g.input(name, {{2, s, h, 8}, DType::F32}), {0, 2, 1, 3}));
  Expr y = g.matmul(g.softmax(g.matmul(x[0], g.transpose(x[1], {0, 1, 3, 2})) * 0.5), x[2]);
  g.set_outputs({g.reshape(g.transpose(y, {0, 2, 1, 3}), {2, s, h * Dim(8)})});
  return g;
}

// Matmuls whose bias vectors and residuals have the same shape if the batch is 1.
Graph epilogues() {
  Graph g("epilogues");
  const Dim n = g.symbol("n", {.min = 1, .max = 9});
  Expr x = g.input("x", {{n, 48}, DType::F32}), r = g.input("r", {{n, 33}, DType::F32}),
       row = g.input("row", {{1, 33}, DType::F32}), gate = g.input("gate", {{n, 33}, DType::F32});
  auto product = [&](const char* name) { return g.matmul(x, g.param(name, {{48, 33}, DType::F32})); };
  g.set_outputs({product("a") + row, product("b") + row + r, product("c") + r + row, g.gelu(product("d") + r) * gate,
                 g.gelu(product("e") * 0.3 + row) + r, g.silu(product("f")) * gate + r, row - product("h")});
  return g;
}

const SymbolMode kRuntime = SymbolMode::runtime();

TEST_CASE("runtime symbols give the results of specialise") {
  SUBCASE("encoder, both symbols") {
    compare(encoder, {{"batch", kRuntime}, {"seq", kRuntime}},
            grid({{"batch", {4, 1, 3}}, {"seq", {40, 1, 2, 17, 32}}}));
  }
  SUBCASE("encoder, sequence alone") {
    compare(encoder, {{"seq", kRuntime}}, grid({{"batch", {1, 2}}, {"seq", {7, 40, 1, 16}}}));
  }
  SUBCASE("decoder") {
    compare(decoder, {{"kv", kRuntime}, {"step", kRuntime}}, grid({{"kv", {3, 4, 24, 11, 12}}, {"step", {1, 3, 2}}}));
  }
  SUBCASE("pieces") { compare(pieces, {{"n", kRuntime}}, grid({{"n", {24, 0, 1, 2, 13, 8}}})); }
  SUBCASE("merged axes") {
    compare(merged, {{"b", kRuntime}, {"s", kRuntime}}, grid({{"b", {1, 5, 2}}, {"s", {1, 9, 4}}}));
  }
  SUBCASE("merged axes, batch alone") { compare(merged, {{"b", kRuntime}}, grid({{"b", {1, 5, 2}}, {"s", {1, 6}}})); }
  SUBCASE("reductions") {
    compare(reductions, {{"b", kRuntime}, {"s", kRuntime}}, grid({{"b", {6, 1, 2}}, {"s", {70, 2, 33}}}));
  }
  SUBCASE("positions") { compare(positions, {{"s", kRuntime}}, grid({{"s", {33, 1, 2, 16, 9}}})); }
  SUBCASE("attention written out, symbolic heads") {
    const std::vector<SymbolBinding> at = grid({{"b", {1, 3, 2}}, {"h", {1, 8, 3}}});
    for (Program build :
         {written_attention<0>, written_attention<1>, written_attention<2>, written_attention<3>, written_attention<4>})
      for (const SymbolModes& modes : {SymbolModes{{"b", kRuntime}, {"h", kRuntime}}, SymbolModes{{"h", kRuntime}},
                                       SymbolModes{{"b", kRuntime}, {"h", SymbolMode::bucket({4, 8})}}})
        compare(build, modes, at);
    compare(written_rows_first, {{"s", kRuntime}, {"h", kRuntime}}, grid({{"s", {1, 20, 7}}, {"h", {1, 8, 3}}}));
  }
  SUBCASE("epilogues that look alike at one row") {
    compare(epilogues, {{"n", kRuntime}}, grid({{"n", {9, 1, 2, 5}}}));
  }
  SUBCASE("other dtypes") { compare(other_dtypes, {{"n", kRuntime}}, grid({{"n", {20, 0, 1, 7}}})); }
}

TEST_CASE("several threads and the reference backend take runtime symbols") {
  compare(encoder, {{"batch", kRuntime}, {"seq", kRuntime}}, grid({{"batch", {4, 1}}, {"seq", {40, 3}}}), 2e-5,
          Session().with_threads(3));
  for (Program build : {pieces, other_dtypes})
    compare(build, {{"n", kRuntime}}, grid({{"n", {20, 0, 7}}}), 1e-6, Session::on_backend("reference"));
  compare(decoder, {{"kv", kRuntime}, {"step", kRuntime}}, grid({{"kv", {24, 5}}, {"step", {1, 2}}}), 1e-6,
          Session::on_backend("reference"));
  compare(encoder, {{"batch", kRuntime}, {"seq", kRuntime}}, grid({{"batch", {4, 1}}, {"seq", {40, 3}}}), 0.1,
          Session().with_precision(Precision::BF16));
}

TEST_CASE("a donated input of runtime extents is written over at every extent") {
  CompileOptions options;
  options.symbol_modes = {{"n", kRuntime}};
  options.donate = {{"x", 0}};
  options.must_alias = true;
  Graph g("donor");
  const Dim n = g.symbol("n", {.min = 1, .max = 16});
  g.set_outputs({g.tanh(g.exp(g.input("x", {{n, 4}, DType::F32})))});
  CompiledGraph f = Session().compile_with(std::move(g), options);
  for (std::int64_t rows : {16, 3, 9}) {
    std::vector<float> x(static_cast<std::size_t>(rows * 4), 0.25f), apart(x.size());
    const std::int64_t dims[] = {rows, 4};
    const TensorView in{x.data(), DType::F32, dims, x.size() * 4};
    const MutableTensorView over{x.data(), DType::F32, {}, x.size() * 4},
        other{apart.data(), DType::F32, {}, x.size() * 4};
    f.run_into({&in, 1}, {&other, 1});
    f.run_into({&in, 1}, {&over, 1});
    CHECK(x == apart);
    CHECK(x[0] == doctest::Approx(std::tanh(std::exp(0.25))));
  }
}

TEST_CASE("bucket symbols give the results of specialise, one compile and one arena per bucket") {
  const SymbolMode ladder = SymbolMode::bucket({8, 16, 64});  // the last is cut to the symbol's own bound, 40
  compare(encoder, {{"batch", kRuntime}, {"seq", ladder}}, grid({{"batch", {4, 1}}, {"seq", {1, 8, 9, 40, 16, 33}}}));
  CompileOptions options;
  options.symbol_modes = {{"seq", ladder}};
  CompiledGraph f = Session().compile_with(encoder(), options);
  set_params(f);
  auto run = [&](std::int64_t batch, std::int64_t seq) {
    f.run_typed(inputs_of(encoder(), {{"batch", batch}, {"seq", seq}}));
    return &f.compile_result();
  };
  const CompileResult* eight = run(1, 3);
  const std::size_t small = f.arena_bytes(), prepared = f.prepared_bytes();
  CHECK(run(1, 8) == eight);
  CHECK(f.arena_bytes() == small);
  CHECK(run(1, 9) != eight);
  CHECK(f.arena_bytes() > small);
  CHECK(run(2, 5) != eight);  // another batch is another specialization
  CHECK(run(1, 7) == eight);
  CHECK(f.prepared_bytes() == prepared);
}

TEST_CASE("a runtime program compiles once, before its first run, and its weights can be prepared then") {
  CompileOptions options;
  options.symbol_modes = {{"batch", kRuntime}, {"seq", SymbolMode::runtime(20)}};
  CompiledGraph f = Session().compile_with(encoder(), options);
  const CompileResult* result = &f.compile_result();
  CHECK(result->lir.graph.symbols().at("seq").max == 20);
  CHECK(!result->lir.graph.is_static());
  CHECK(f.prepared_bytes() == 0);
  CHECK_THROWS_AS(f.finalize(), Error);  // no weights yet
  set_params(f);
  f.finalize();
  const std::size_t prepared = f.prepared_bytes();
  CHECK(prepared > 0);
  for (std::int64_t seq = 1; seq <= 20; ++seq)
    for (std::int64_t batch = 1; batch <= 4; ++batch)
      f.run_typed(inputs_of(encoder(), {{"batch", batch}, {"seq", seq}}));
  CHECK(&f.compile_result() == result);
  CHECK(f.prepared_bytes() == prepared);
}

TEST_CASE("symbolic graphs fuse as bound ones do") {
  for (Program build : {encoder, merged}) {
    const Graph g = build();
    CompileOptions bound, left;
    for (const auto& [name, info] : g.symbols()) {
      bound.dim_binding.emplace(name, info.max - 1);  // not the maximum, since a full slice would be removed
      left.symbol_modes.emplace(name, kRuntime);
    }
    const auto target = Session().target();
    const CompileResult a = CompilePipeline(target, bound).compile_graph(build()),
                        b = CompilePipeline(target, left).compile_graph(build());
    CHECK(a.fusion.fused == b.fusion.fused);
    CHECK(a.fusion.after == b.fusion.after);
    CHECK(a.fusion.missed.size() == b.fusion.missed.size());
    CHECK(a.lir.prepare.outputs().size() <= b.lir.prepare.outputs().size());
    int packed[2] = {0, 0};
    for (NodeId p : a.lir.graph.leaves(OpKind::Param)) packed[0] += !packed_layout_of(a.lir.graph, Value(p)).empty();
    for (NodeId p : b.lir.graph.leaves(OpKind::Param)) packed[1] += !packed_layout_of(b.lir.graph, Value(p)).empty();
    CHECK(packed[0] == packed[1]);
    CHECK(packed[0] > 0);
  }
}

// Cumulative sums over rows: padding must not count, values kept between runs must.
Graph running() {
  Graph g("running");
  const Dim n = g.symbol("n", {.min = 1, .max = 64});
  Expr x = g.input("x", {{n, 2}, DType::F32});
  Expr total = g.state("total", Tensor::zeros(Shape({2}, DType::F32))) + g.sum(x, {0});
  g.set_state("total", total);
  g.set_outputs({x * 2.0, total});
  return g;
}
NamedTensors rows(std::int64_t n) { return {{"x", Tensor::full(Shape({n, 2}, DType::F32), 1)}}; }

TEST_CASE("programs of other extents share weights, and each sets its own") {
  const auto compiled_for = [](std::int64_t most) {
    Graph g("layer");
    const Dim n = g.symbol("n", {.min = 1, .max = 4096});
    const Expr x = g.input("x", {{n, 64}, DType::F32});
    g.set_outputs({g.matmul(x, g.t(g.param("w", {{48, 64}, DType::F32}))) + g.param("b", {{48}, DType::F32})});
    CompileOptions options;
    options.symbol_modes = {{"n", SymbolMode::runtime(most)}};
    return Session().compile_with(std::move(g), options);
  };
  CompiledGraph few = compiled_for(8), many = compiled_for(4096);
  const Tensor w = Tensor::full(Shape({48, 64}, DType::F32), 0.5), b = Tensor::full(Shape({48}, DType::F32), 3);
  few.set_param("w", w), few.set_param("b", b);
  many.share_weights_from(few);
  CHECK(many.unset_params().empty());
  const auto last = [](CompiledGraph& f, std::int64_t n) {
    return f.run_typed({{"x", Tensor::full(Shape({n, 64}, DType::F32), 1)}})[0].at(n * 48 - 1);
  };
  CHECK(last(few, 8) == 35);
  const std::size_t held = few.prepared_bytes();
  CHECK(held >= w.size_bytes());
  CHECK(last(many, 4000) == 35);
  CHECK(few.prepared_bytes() == held);  // both read one copy
  CHECK(many.prepared_bytes() == held);
  many.set_param("b", Tensor::full(Shape({48}, DType::F32), 4));
  CHECK(last(many, 4000) == 36);
  CHECK(last(few, 8) == 35);
  CompiledGraph late = compiled_for(100);  // with weights that are set later
  CompiledGraph unset = compiled_for(8);
  late.share_weights_from(unset);
  CHECK(late.unset_params().size() == 2);
}

TEST_CASE("states, clones and an active extent at runtime extents") {
  for (const SymbolMode& mode : {SymbolMode::specialise(), kRuntime, SymbolMode::bucket({4, 64})}) {
    CompileOptions options;
    options.symbol_modes = {{"n", mode}};
    options.must_alias = true;
    CompiledGraph f = Session().compile_with(running(), options), other = Session().compile_with(running(), options);
    CHECK(f.run_typed(rows(3))[1].at(0) == 3);
    CompiledGraph twin = f.clone();
    CHECK(other.share_state_from(f) == 1);
    CHECK(other.run_typed(rows(20))[1].at(1) == 23);
    CHECK(f.run_typed(rows(5))[1].at(0) == 28);
    CHECK(f.set_active_extent(ActiveExtent{2, 8}));
    const std::vector<Tensor> out = f.run_typed(rows(8));
    CHECK(out[0].dims() == std::vector<std::int64_t>{2, 2});
    CHECK(out[1].at(0) == 30);
    CHECK(f.run_typed(rows(7))[1].at(0) == 37);  // not the padded batch
    CHECK(other.read_state("total").at(0) == 37);
    CHECK(twin.run_typed(rows(1))[1].at(0) == 4);  // has its own
    CHECK_THROWS_AS(f.run_typed(rows(65)), Error);
    CHECK(f.run_typed(rows(1))[1].at(0) == 38);  // a refused value does not change the states
  }
  CompileOptions options;
  options.symbol_modes = {{"kv", kRuntime}, {"step", kRuntime}};
  options.must_alias = true;
  Session().compile_with(decoder(), options);  // both caches are written in place whatever the extents
}

TEST_CASE("many values: the oldest go and come back, the program stays") {
  CompileOptions options;
  options.symbol_modes = {{"n", kRuntime}};
  CompiledGraph f = Session().compile_with(running(), options);
  const CompileResult* result = &f.compile_result();
  f.run_typed(rows(1));
  const std::size_t arena = f.arena_bytes();
  double total = 1;
  for (int round = 0; round < 2; ++round)
    for (std::int64_t n = 1; n <= 64; ++n) {
      total += static_cast<double>(n);
      const std::vector<Tensor> out = f.run_typed(rows(n));
      CHECK(out[0].dims()[0] == n);
      CHECK(out[1].at(0) == total);
    }
  CHECK(&f.compile_result() == result);
  CHECK(f.arena_bytes() == arena);
}

TEST_CASE("a program used all the time keeps its weights while others come and go") {
  for (const Session& session : {Session(), Session::on_backend("reference")}) {
    Graph g("scaled");
    Expr x = g.input("x", {{g.symbol("n"), 2}, DType::F32});
    g.set_outputs({x * g.param("scale", {{2}, DType::F32})});
    CompiledGraph f = session.compile(std::move(g));
    f.set_param("scale", {2, 3});
    for (std::int64_t n = 80; n > 1; --n) {  // downwards, because growing memory would bind everything again
      CHECK(f.run_typed(rows(n))[0].at(2 * n - 1) == 3);
      CHECK(f.run_typed(rows(1))[0].to_f32() == std::vector<float>{2, 3});
    }
  }
}

Graph symbolic_state() {
  Graph g("cache");
  const Dim n = g.symbol("n", {.min = 1, .max = 8});
  Expr cache = g.add(ops::State{"cache", {n, 2}, DType::F32, {}}, {});
  Expr next = cache + g.input("x", {{n, 2}, DType::F32});
  g.set_state("cache", next);
  g.set_outputs({next});
  return g;
}

TEST_CASE("dim_binding comes first: inputs and states have the shapes of its values") {
  CompileOptions options;
  options.dim_binding = {{"n", 3}};
  options.symbol_modes = {{"n", kRuntime}};
  CompiledGraph f = Session().compile_with(symbolic_state(), options);
  CHECK(f.inputs()[0].shape == Shape({3, 2}, DType::F32));
  f.run_typed(rows(3));
  CHECK(f.run_typed(rows(3))[0].to_f32() == std::vector<float>(6, 2));
  CHECK(f.read_state("cache").dims() == std::vector<std::int64_t>{3, 2});
  CHECK(test::contains(test::error_text([&] { f.run_typed(rows(4)); }), "[3, 2]"));
  options.dim_binding = {{"m", 3}};
  CHECK(test::contains(test::error_text([&] { Session().compile_with(symbolic_state(), options); }),
                       "has no symbol 'm'"));
  options.dim_binding = {{"n", 9}};
  CHECK(test::contains(test::error_text([&] { Session().compile_with(symbolic_state(), options); }),
                       "symbol 'n' = 9 is outside [1, 8]"));
}

TEST_CASE("a symbol that is not declared takes a mode by the bound given, or is specialised") {
  CompileOptions options;
  options.symbol_modes = {{"n", SymbolMode::runtime(16)}};
  Graph g("free");
  g.set_outputs({g.sum(g.input("x", {{Dim::symbol("b"), Dim::symbol("n")}, DType::F32}), {1})});
  CompiledGraph f = Session().compile_with(std::move(g), options);
  for (std::int64_t b : {1, 4})
    for (std::int64_t n : {16, 2, 9})
      CHECK(f.run_typed({{"x", Tensor::full(Shape({b, n}, DType::F32), 1)}})[0].to_f32() ==
            std::vector<float>(static_cast<std::size_t>(b), static_cast<float>(n)));
  CHECK(test::contains(test::error_text([&] {
                         f.run_typed({{"x", Tensor::zeros(Shape({1, 17}, DType::F32))}});
                       }),
                       "symbol 'n' = 17 is above its runtime bound 16"));
}

std::string compile_error(Graph g, SymbolModes modes) {
  CompileOptions options;
  options.symbol_modes = std::move(modes);
  return test::error_text([&] { Session().compile_with(std::move(g), options); });
}
std::string run_error(Program build, const std::string& symbol, const SymbolMode& mode, std::int64_t value) {
  CompileOptions options;
  options.symbol_modes = {{symbol, mode}};
  CompiledGraph f = Session().compile_with(build(), options);
  set_params(f);
  return test::error_text([&] { f.run_typed(inputs_of(build(), {{symbol, value}})); });
}
void check_holds(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  CHECK(test::contains(text, part));
}

Graph ops_of_others() {
  test::custom_ops();
  Graph g("others");
  const Dim n = g.symbol("n", {.min = 1, .max = 9});
  Expr x = g.input("x", {{n, 3}, DType::F32});
  Expr y = g.add(custom_op("test.scaled_tanh", 2.0), {x});          // a kernel
  Expr both = g.add(custom_op("test.sum_and_difference"), {x, y});  // decomposed
  g.set_outputs({g.add(custom_op("test.bare"), {both}) * 2.0, both.result(1), g.relu(y)});
  return g;
}

// Takes even numbers of rows only, which cannot be proved for a symbol.
Result<Shapes> infer_even(const InferContext& c) {
  const Dim& rows = c.input(0).dim(0);
  if (rows.is_static() && rows.value() % 2 != 0) return c.error("x ", c.input(0), " has an odd number of rows");
  return Shapes{c.input(0)};
}

Graph even_rows() {
  static const bool registered = [] {
    OpDef def = test::plain_record("test.even_rows");
    def.infer = infer_even;
    register_op(def);
    return true;
  }();
  (void)registered;
  Graph g("even");
  g.set_outputs(
      {g.add(custom_op("test.even_rows"), {g.input("x", {{g.symbol("n", {.min = 1, .max = 9}), 3}, DType::F32})})});
  return g;
}

TEST_CASE("ops of other projects: kernel, decomposition and reference rule at runtime extents") {
  compare(ops_of_others, {{"n", kRuntime}}, grid({{"n", {9, 1, 4}}}));
  CHECK(run_error(even_rows, "n", kRuntime, 4).empty());
  check_holds(run_error(even_rows, "n", kRuntime, 5), "test.even_rows: x [5, 3] f32 has an odd number of rows");
}

TEST_CASE("ladders of powers of two") {
  using Ladder = std::vector<std::int64_t>;
  CHECK(power_of_two_ladder(8, 256) == Ladder{8, 16, 32, 64, 128, 256});
  CHECK(power_of_two_ladder(5, 5) == Ladder{8});
  CHECK(power_of_two_ladder(1, 3) == Ladder{1, 2, 4});
  CHECK(test::contains(test::error_text([] { power_of_two_ladder(0, 4); }), "power_of_two_ladder(0, 4)"));
  CHECK_THROWS_AS(power_of_two_ladder(5, 4), Error);
}

Graph one_symbol() {
  Graph g("one");
  const Dim n = g.symbol("n", {.min = 2, .max = 48, .divisor = 2});
  g.set_outputs({g.relu(g.input("x", {{n, 4}, DType::F32}))});
  return g;
}
Graph unbounded() {
  Graph g("open");
  g.set_outputs({g.relu(g.input("x", {{g.symbol("rows"), 4}, DType::F32}))});
  return g;
}
Graph window() {  // fits up to n = 10 only, and the bounds allow more
  Graph g("window");
  const Dim n = g.symbol("n", {.min = 1, .max = 16});
  Expr x = g.input("x", {{n}, DType::F32});
  g.set_outputs({g.sum(g.narrow(g.param("table", {{20}, DType::F32}), 0, n, n) * x)});
  return g;
}

TEST_CASE("errors name the symbol, the value and what it leaves") {
  check_holds(run_error(one_symbol, "n", SymbolMode::runtime(16), 20), "symbol 'n' = 20 is above its runtime bound 16");
  check_holds(run_error(one_symbol, "n", kRuntime, 50), "symbol 'n' = 50 is outside [2, 48] or not a multiple of 2");
  check_holds(run_error(one_symbol, "n", kRuntime, 7), "symbol 'n' = 7 is outside [2, 48] or not a multiple of 2");
  check_holds(run_error(one_symbol, "n", SymbolMode::bucket({4, 8}), 10),
              "symbol 'n' = 10 is above the largest bucket of its ladder [4, 8]");
  check_holds(run_error(window, "n", kRuntime, 12), "slice does not fit with n = 12");
  CHECK(run_error(window, "n", kRuntime, 10).empty());

  const std::string open = compile_error(unbounded(), {{"rows", kRuntime}});
  check_holds(open, "runtime symbol 'rows' has no upper bound");
  check_holds(open, "SymbolMode::runtime(N)");
  check_holds(compile_error(unbounded(), {{"row", kRuntime}}), "did you mean 'rows'?");
  check_holds(compile_error(one_symbol(), {{"n", SymbolMode::runtime(1)}}), "the bound 1 is below its minimum 2");
  check_holds(compile_error(one_symbol(), {{"n", SymbolMode::bucket({8, 8})}}),
              "symbol 'n': the ladder [8, 8] must hold positive extents in ascending order");
  check_holds(compile_error(one_symbol(), {{"n", SymbolMode::bucket({})}}), "symbol 'n': the ladder []");
  for (const SymbolMode& mode : {SymbolMode::specialise(), kRuntime}) {
    const std::string state = compile_error(symbolic_state(), {{"n", mode}});
    check_holds(state, "state 'cache' [n, 2] f32 has a symbol");
    check_holds(state, "read a slice of it, or bind the symbol with dim_binding");
  }
  Graph weights("weights");
  const Dim n = weights.symbol("n", {.min = 1, .max = 8});
  weights.set_outputs({weights.input("x", {{n}, DType::F32}) + weights.param("w", {{n}, DType::F32})});
  check_holds(compile_error(std::move(weights), {{"n", kRuntime}}), "param 'w' [n] f32 has a runtime symbol");
}

}  // namespace
}  // namespace rlx
