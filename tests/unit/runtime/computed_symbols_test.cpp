// Symbols whose values a run computes, from weights, states and other values: the host sync points, the results of each
// way of running, and refusals.
#include <algorithm>
#include <cstring>
#include <optional>

#include <doctest/doctest.h>

#include "rlx/compiler/sync_points.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

std::vector<float> ramp() { return {1, 2, 3, 4, 5, 6, 7, 8}; }
std::vector<float> ones(std::size_t set) {
  std::vector<float> out(8, 0);
  std::fill(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(set), 1.0F);
  return out;
}

// Outputs: the first n of 2 x [8], where n is the sum of the weights w [8]; the sum of x; n.
Graph by_weights() {
  Graph g("by_weights");
  const Expr x = g.input("x", f32({8})), w = g.param("w", f32({8}));
  const Expr count = g.cast(g.sum(w * g.expand(g.sum(x) * 0.0 + 1.0, {8})), DType::I64);
  const Dim n = g.symbol("n", {.min = 1, .max = 7}, count);
  g.set_outputs({g.narrow(x * 2.0, 0, 0, n), g.sum(x), count});
  return g;
}

// The same program with f32 outputs only.
Graph doubled() {
  Graph g = by_weights();
  const std::vector<Value> outputs = g.outputs();
  g.set_outputs({outputs[0], outputs[1]});
  return g;
}

TensorView view(const std::vector<float>& v) { return {v.data(), DType::F32, {}, v.size() * sizeof(float)}; }

}  // namespace

TEST_CASE("each way of running gives what the weights say, also after they change") {
  for (int threads : {1, 2}) {
    CompiledGraph f = Session().with_threads(threads).compile(doubled());
    const std::vector<float> x = ramp();
    const TensorView in = view(x);
    for (std::size_t n : {3U, 7U, 1U, 3U}) {
      CAPTURE(n);
      f.set_param("w", ones(n));
      std::vector<float> want;
      for (std::size_t i = 0; i < n; ++i) want.push_back(2 * x[i]);
      CHECK(f.run({{"x", x}})[0] == want);
      CHECK(f.run({{"x", x}})[1] == std::vector<float>{36});
      CHECK(f.run_device({{"x", Tensor::of<float>({8}, x)}})[0].to_host().to_f32() == want);
      const std::span<const Slot> slots = f.run_slots({&in, 1});
      REQUIRE(slots[0].count == static_cast<std::int64_t>(n));
      CHECK(std::memcmp(f.arena_ptr() + slots[0].offset, want.data(), n * sizeof(float)) == 0);
      const std::vector<TensorView> raw = f.run_raw({{"x", x}});
      CHECK(std::vector<std::int64_t>(raw[0].dims.begin(), raw[0].dims.end()) ==
            std::vector<std::int64_t>{static_cast<std::int64_t>(n)});
      std::vector<float> room(n), sum(1);
      const MutableTensorView out[] = {{room.data(), DType::F32, {}, n * 4}, {sum.data(), DType::F32, {}, 4}};
      f.run_into({&in, 1}, out);
      CHECK(room == want);
      f.commit_no_wait({{"x", x}});
      CHECK(f.sync_pending()[0].count == static_cast<std::int64_t>(n));
      CHECK(f.run_pipelined({{{"x", x}}, {{"x", x}}})[1][0] == want);
      CHECK(f.clone().run({{"x", x}})[0] == want);
      bool multiplies = false;
      for (const NodeTime& t : f.profile({&in, 1})) multiplies = multiplies || t.op != "slice";
      CHECK(multiplies);  // of the steps before the sync point too
    }
    CHECK(f.outputs()[0].shape.dim(0) == Dim::symbol("n"));
  }
}

TEST_CASE("room of another extent is an error that says which one came") {
  CompiledGraph f = Session().compile(doubled());
  f.set_param("w", ones(5));
  const std::vector<float> x = ramp();
  const TensorView in = view(x);
  std::vector<float> room(8), sum(1);
  const MutableTensorView out[] = {{room.data(), DType::F32, {}, 32}, {sum.data(), DType::F32, {}, 4}};
  CHECK(contains(error_text([&] {
                   f.run_into({&in, 1}, out);
                 }),
                 "output 'out0' is [5] f32 (20 bytes), the view has 32"));
}

TEST_CASE("a value outside the bounds names symbol, value and node, and the next run works") {
  CompiledGraph f = Session().compile(doubled());
  f.set_param("w", ones(8));
  const std::string why = error_text([&] { (void)f.run({{"x", ramp()}}); });
  CHECK(contains(why, "symbol 'n' = 8 is outside [1, 7]"));
  CHECK(contains(why, "cast"));
  f.set_param("w", ones(0));
  CHECK(contains(error_text([&] { (void)f.run({{"x", ramp()}}); }), "symbol 'n' = 0"));
  f.set_param("w", ones(2));
  CHECK(f.run({{"x", ramp()}})[0] == std::vector<float>{2, 4});

  CompileOptions options;
  options.symbol_modes["n"] = SymbolMode::runtime(4);
  CompiledGraph less = Session().compile_with(doubled(), options);
  less.set_param("w", ones(5));
  CHECK(contains(error_text([&] { (void)less.run({{"x", ramp()}}); }), "symbol 'n' = 5 is outside [1, 4]"));
  less.set_param("w", ones(4));
  CHECK(less.run({{"x", ramp()}})[0].size() == 4);
}

TEST_CASE("a divisor holds for computed values") {
  Graph g("pairs");
  const Expr x = g.input("x", f32({8})), p = g.param("p", Shape({}, DType::I64), ParamMode::Mutable);
  const Dim n = g.symbol("n", {.min = 0, .max = 8, .divisor = 2}, p);
  g.set_outputs({g.sum(g.reshape(g.narrow(x, 0, 0, n), {floordiv(n, Dim(2)), Dim(2)}), {1})});
  CompiledGraph f = Session().compile(std::move(g));
  for (std::int64_t n2 : {0, 4, 8}) {
    f.set_param("p", Tensor::scalar_i64(DType::I64, n2));
    CHECK(f.run({{"x", ramp()}})[0].size() == static_cast<std::size_t>(n2 / 2));
  }
  f.set_param("p", Tensor::scalar_i64(DType::I64, 3));
  CHECK(contains(error_text([&] { (void)f.run({{"x", ramp()}}); }), "not a multiple of 2"));
}

TEST_CASE("a state that each run changes decides the extent; a cache that is read by it is updated in place") {
  Graph g("growing");
  const Expr x = g.input("x", f32({1, 2})), length = g.state("length", Tensor::scalar_i64(DType::I64, 0));
  const Expr cache = g.state("cache", Tensor::zeros(f32({4, 2})));
  const Expr zero = g.constant(Tensor::zeros(Shape({1}, DType::I64)));
  const Expr next = length + 1;
  const Expr written = g.dynamic_update_slice(cache, x, g.concat({g.reshape(next - 1, {1}), zero}, 0));
  g.set_state("cache", written);
  g.set_state("length", next);
  const Dim n = g.value_dim(next, 4);
  g.set_outputs({g.sum(g.narrow(written, 0, 0, n), {0}), g.narrow(written, 0, 0, n)});
  CompiledGraph f = Session().compile(Graph(g));
  CHECK(f.compile_result().lir.plan.update_copies.empty());
  float sum = 0;
  for (int run = 1; run <= 4; ++run) {
    const auto v = static_cast<float>(run);
    const auto out = f.run({{"x", {v, -v}}});
    sum += v;
    CHECK(out[0] == std::vector<float>{sum, -sum});
    CHECK(out[1].size() == static_cast<std::size_t>(2 * run));
    CHECK(f.read_state("length").at_i64(0) == run);
  }
  CHECK(contains(error_text([&] { (void)f.run({{"x", {1, 1}}}); }), "= 5 is outside [0, 4]"));
  CHECK(f.read_state("length").at_i64(0) == 4);  // it was not written before the sync point
  f.reset();
  CHECK(f.run({{"x", {1, 1}}})[1].size() == 2);
}

TEST_CASE("a state that is written before the stop is invalid when the value is refused, as after any run that fails") {
  Graph g("sum");
  const Expr x = g.input("x", f32({4})), total = g.state("total", Tensor::zeros(f32({4})));
  const Expr next = total + x;
  g.set_state("total", next);
  g.set_outputs({g.first(x, g.cast(g.sum(next), DType::I64))});
  CompileOptions options;
  options.must_alias = true;
  CompiledGraph f = Session().compile_with(std::move(g), options);
  CHECK(f.run({{"x", {1, 1, 0, 0}}})[0].size() == 2);
  CHECK(f.run({{"x", {0, 0, 1, 0}}})[0].size() == 3);
  CHECK(contains(error_text([&] { (void)f.run({{"x", {2, 0, 0, 0}}}); }), "= 5 is outside [0, 4]"));
  CHECK(contains(error_text([&] { (void)f.run({{"x", {1, 0, 0, 0}}}); }), "a failed run left state 'total' invalid"));
  CHECK(contains(error_text([&] { (void)f.read_state("total"); }), "invalid"));
  f.write_state("total", Tensor::full(f32({4}), 0.5));
  CHECK(f.run({{"x", {1, 0, 0, 0}}})[0].size() == 3);
}

TEST_CASE("a failed value leaves states that nothing wrote before the stop as they were") {
  Graph g("guarded");
  const Expr x = g.input("x", f32({8})), total = g.state("total", Tensor::zeros(f32({})));
  const Expr p = g.param("p", Shape({}, DType::I64), ParamMode::Mutable);
  const Expr part = g.narrow(x, 0, 0, g.value_dim(p, 8));
  g.set_state("total", total + g.sum(part));
  g.set_outputs({total});
  CompiledGraph f = Session().compile(std::move(g));
  f.set_param("p", Tensor::scalar_i64(DType::I64, 2));
  (void)f.run({{"x", ramp()}});
  f.set_param("p", Tensor::scalar_i64(DType::I64, 9));
  CHECK(contains(error_text([&] { (void)f.run({{"x", ramp()}}); }), "= 9 is outside [0, 8]"));
  CHECK(f.read_state("total").at(0) == 3);
  f.set_param("p", Tensor::scalar_i64(DType::I64, 8));
  CHECK(f.run({{"x", ramp()}})[0] == std::vector<float>{3});
  CHECK(f.read_state("total").at(0) == 39);
}

TEST_CASE("one symbol decides what another is computed from: a stop for each, one for those known together") {
  Graph g("chain");
  const Expr x = g.input("x", f32({8})), w = g.param("w", f32({8}));
  const Expr first = g.narrow(x, 0, 0, g.symbol("a", {0, 8}, g.cast(g.sum(w), DType::I64)));
  const Expr twin = g.narrow(x, 0, 0, g.symbol("b", {0, 8}, g.cast(g.sum(w * w), DType::I64)));
  const Expr small = g.cast(g.lt(first, 3.5), DType::I64);
  const Dim c = g.symbol("c", {0, 8}, g.sum(small));
  g.set_outputs({first, twin, g.narrow(x, 0, 0, c)});
  CompiledGraph f = Session().compile(std::move(g));
  const LirModule& lir = f.compile_result().lir;
  const std::vector<SyncPoint> cuts = sync_points(lir.graph, lir.plan.schedule);
  REQUIRE(cuts.size() == 2);
  CHECK(cuts[0].symbols == std::vector<std::string>{"a", "b"});
  CHECK(cuts[1].symbols == std::vector<std::string>{"c"});
  for (std::size_t n : {0U, 2U, 5U, 8U, 2U}) {
    f.set_param("w", ones(n));
    const auto out = f.run({{"x", ramp()}});
    CHECK(out[0].size() == n);
    CHECK(out[1].size() == n);
    CHECK(out[2].size() == std::min<std::size_t>(n, 3));
  }
}

TEST_CASE("thousands of runs with changing values, more of them than stay bound") {
  Graph g("many");
  const Expr x = g.input("x", f32({100})), p = g.param("p", Shape({}, DType::I64), ParamMode::Mutable);
  const Dim n = g.value_dim(p + 0, 100);
  g.set_outputs({g.sum(g.narrow(x, 0, 0, n)), g.narrow(x, 0, 0, n)});
  CompiledGraph f = Session().compile(std::move(g));
  std::vector<float> x100(100);
  for (std::size_t i = 0; i < 100; ++i) x100[i] = static_cast<float>(i);
  for (std::int64_t run = 0; run < 2000; ++run) {
    const std::int64_t v = (run * 37) % 101;
    f.set_param("p", Tensor::scalar_i64(DType::I64, v));
    const auto out = f.run({{"x", x100}});
    REQUIRE(out[0][0] == static_cast<float>(v * (v - 1) / 2));
    REQUIRE(out[1].size() == static_cast<std::size_t>(v));
  }
}

TEST_CASE("extents of inputs, symbols that inputs decide and computed ones together") {
  Graph g("mixed");
  const Dim rows = g.symbol("rows", {.min = 1, .max = 6});
  const Expr x = g.input("x", f32({rows, 4})), k = g.input("k", Shape({}, DType::I64));
  const Expr w = g.param("w", f32({4}));
  const Dim n = g.value_dim(k, 4);                                     // it depends on inputs
  const Expr part = g.narrow(x, 1, 0, n);                              // [rows, n]
  const Expr over = g.cast(g.gt(g.sum(x * w, {1}), 0.0), DType::I64);  // [rows]
  const Dim m = g.value_dim(g.min(g.sum(over), g.dim_size(x, 0)), 6);  // it is computed in the run
  g.set_outputs({g.narrow(part, 0, 0, m), g.sum(part)});
  for (const bool runtime : {false, true}) {
    CompileOptions options;
    if (runtime) options.symbol_modes["rows"] = SymbolMode::runtime();
    CompiledGraph f = Session().compile_with(Graph(g), options);
    f.set_param("w", {1, 1, 1, 1});
    for (std::int64_t r : {2, 6, 3})
      for (std::int64_t c : {0, 3, 4}) {
        CAPTURE(r);
        CAPTURE(c);
        const NamedTensors in{{"x", sequence({r, 4}, 1, 0, DType::F32)}, {"k", Tensor::scalar_i64(DType::I64, c)}};
        NamedTensors all = in;
        all.emplace("w", Tensor::full(f32({4}), 1));
        const std::vector<Tensor> want = evaluate(g, all), got = f.run_typed(in);
        for (std::size_t i = 0; i < want.size(); ++i) expect_close(got[i], want[i], 1e-6);
      }
  }
}

TEST_CASE("handles and sticky inputs follow an extent that the run computes") {
  CompiledGraph f = Session().compile(doubled());
  f.bind_handle("out0", Tensor::zeros(f32({1})));
  f.set_input("x", ramp());
  for (std::size_t n : {4U, 2U}) {
    f.set_param("w", ones(n));
    (void)f.run({});
    CHECK(f.read_handle("out0").num_elements() == static_cast<std::int64_t>(n));
  }
}

TEST_CASE("what a computed symbol cannot be is refused when compiling, by name") {
  const auto compiled = [](SymbolInfo info, std::optional<SymbolMode> mode) {
    return error_text([&] {
      Graph g("refused");
      const Expr x = g.input("x", f32({8})), p = g.param("p", Shape({}, DType::I64));
      g.set_outputs({g.narrow(x, 0, 0, g.symbol("n", info, p))});
      CompileOptions options;
      if (mode) options.symbol_modes["n"] = *mode;
      (void)Session().compile_with(std::move(g), options);
    });
  };
  CHECK(compiled({0, 8}, {}).empty());
  CHECK(compiled({}, SymbolMode::runtime(8)).empty());
  CHECK(
      contains(compiled({}, {}), "symbol 'n' of graph 'refused' takes its value from the run and has no upper bound"));
  CHECK(contains(compiled({0, 8}, SymbolMode::bucket({4, 8})), "it cannot be specialised or bucketed"));
  CHECK(contains(compiled({0, 8}, SymbolMode::specialise()), "symbol_modes"));
}

TEST_CASE("a body computes no extents of its own") {
  Graph g("inside");
  const Expr x = g.input("x", f32({8})), p = g.param("p", Shape({}, DType::I64));
  CHECK(contains(error_text([&] {
                   (void)g.call("part", {x}, [&](Graph& b, const ExprList& v) {
                     return ExprList{b.sum(b.narrow(v[0], 0, 0, b.value_dim(p, 8)))};
                   });
                 }),
                 "a body of control flow cannot compute extents"));
}

TEST_CASE("an extent of the graph is used inside bodies, also where no shape shows it") {
  Graph g("used");
  const Expr x = g.input("x", f32({8})), p = g.param("p", Shape({}, DType::I64), ParamMode::Mutable);
  const Dim n = g.value_dim(p, 6);
  const ExprList out = g.cond(
      g.gt(g.sum(x), 0.0), {x}, [&](Graph& b, const ExprList& v) { return ExprList{b.slice(v[0], {n}, {n + Dim(2)})}; },
      [&](Graph& b, const ExprList& v) { return ExprList{b.narrow(v[0], 0, 0, 2)}; });
  g.set_outputs({out[0], g.slice(x, {n}, {n + Dim(1)})});
  CompiledGraph f = Session().compile(Graph(g));
  for (std::int64_t v : {0, 3, 6}) {
    f.set_param("p", Tensor::scalar_i64(DType::I64, v));
    const auto got = f.run({{"x", ramp()}});
    CHECK(got[0] == std::vector<float>{static_cast<float>(v + 1), static_cast<float>(v + 2)});
    CHECK(got[1] == std::vector<float>{static_cast<float>(v + 1)});
    const auto want = evaluate(g, {{"x", Tensor::of<float>({8}, ramp())}, {"p", Tensor::scalar_i64(DType::I64, v)}});
    expect_close(want[0], {static_cast<double>(v + 1), static_cast<double>(v + 2)});
  }
}

TEST_CASE("reduced precision leaves the values of symbols alone") {
  for (const PrecisionPolicy& half : {PrecisionPolicy::always_bf16(), PrecisionPolicy::always_f16()}) {
    CompileOptions options;
    options.precision = half;
    CompiledGraph f = Session().compile_with(doubled(), options);
    for (std::size_t n : {1U, 5U}) {
      f.set_param("w", ones(n));
      CHECK(f.run({{"x", ramp()}})[0].size() == n);
    }
  }
}

TEST_CASE("to derivatives a computed extent is a number") {
  Graph g("loss");
  const Expr x = g.input("x", Shape({8}, DType::F64)), w = g.param("w", Shape({8}, DType::F64));
  const Expr part = g.first(x * g.sum(w), g.cast(g.sum(w), DType::I64));
  g.set_outputs({g.sum(part * part)});
  const GradResult d = value_and_grad(g, {"x", "w"});
  CompiledGraph f = Session().compile(Graph(d.graph));
  for (std::int64_t n : {0, 3, 8, 3}) {
    const double scale = static_cast<double>(n);
    Tensor weights = Tensor::zeros(Shape({8}, DType::F64)), dx = weights, dw = weights;
    for (std::int64_t i = 0; i < n; ++i) weights.set(i, 1);
    const Tensor values = sequence({8});
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      dx.set(i, 2 * values.at(i) * scale * scale);
      squares += values.at(i) * values.at(i);
    }
    for (std::int64_t i = 0; i < 8; ++i) dw.set(i, 2 * scale * squares);
    f.set_param("w", weights);
    const std::vector<Tensor> got = f.run_typed({{"x", values}});
    expect_close(got[0], {squares * scale * scale});
    expect_close(got[1], dx);
    expect_close(got[2], dw);
  }
}

}  // namespace rlx::test
