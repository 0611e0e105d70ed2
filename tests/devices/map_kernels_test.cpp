// What samples are too short for: the passes of long reductions, sorts and scatters, many operands, numbers at the
// edges, and the same kernels with extents that only a run knows.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "rlx/ir/functions.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/transforms/vmap.h"
#include "tests/devices/differences.h"
#include "tests/devices/test_device.h"
#include "tests/support/run_check.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::kInf;

const std::vector<double>& edges() {
  static const std::vector<double> values = {NAN,   kInf, -kInf, 0.0,  -0.0,  1.0,      -1.0,      0.5,      -0.5,
                                             2.0,   -2.0, 3.0,   -3.0, 7.5,   -7.5,     60.0,      -60.0,    90.0,
                                             -90.0, 1e4,  -1e4,  3e38, -3e38, 0x1p-126, -0x1p-126, 0x1p-140, -0x1p-127};
  return values;
}

Tensor tensor_of(const std::vector<double>& values, DType t) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values).cast(t);
}

// Zeros may have either sign where the larger of both is asked for.
enum class Zeros : std::uint8_t { Signed, Either };

// Whether the device may give `got` for `want`: numbers to within `places`, all else exactly.
bool may_be(const Tensor& got, const Tensor& want, std::int64_t i, double places, Zeros zeros) {
  if (!is_float(got.dtype())) return got.at_i64(i) == want.at_i64(i);
  const double x = got.at(i), y = want.at(i);
  if (x == 0 && y == 0) return zeros == Zeros::Either || std::signbit(x) == std::signbit(y);
  if (test::ulps(got.dtype(), x, y) <= places) return true;
  const double smallest = test::smallest_normal(got.dtype());
  // A result, or one of two parts that it is the sum of.
  return test::takes_subnormals_for_zero() && std::fabs(y) < 2 * smallest && std::fabs(x - y) <= smallest;
}

// Runs `g` on the device, all of it, and compares with the evaluator; on one that takes subnormal numbers for 0 also
// with what the evaluator makes of zeros in their place.
void expect_same(const std::string& name, const Graph& g, const NamedTensors& values, double places,
                 Zeros zeros = Zeros::Signed) {
  const Tensor want = evaluate(g, values).at(0);
  const bool flushes = test::takes_subnormals_for_zero();
  const Tensor of_zeros = flushes ? evaluate(g, test::without_subnormals(values)).at(0) : want;
  CompiledGraph f = Session(test::test_device()).compile(Graph(g));
  REQUIRE_MESSAGE(test::host_part(f).empty(), name, ": ", test::host_part(f));
  const Tensor got = f.run_typed(values).at(0);
  for (std::int64_t i = 0; i < want.num_elements(); ++i) {
    const bool same = may_be(got, want, i, places, zeros) || (flushes && may_be(got, of_zeros, i, places, zeros));
    CHECK_MESSAGE(same, name, ", element ", i, ": ", got.at(i), ", the evaluator says ", want.at(i));
  }
}

double places_of(DType t) { return t == DType::F32 ? 4 : 1; }
constexpr DType kFloats[] = {DType::F32, DType::F16, DType::BF16};

struct LongCase {
  const char* name;
  std::function<void(Graph&)> build;
};

Expr f32_input(Graph& g, const char* name, Dims dims) { return g.input(name, {std::move(dims), DType::F32}); }

// Inputs named i.. are indices below 40 and some outside; the others are drawn.
NamedTensors values_of(const Graph& g) {
  NamedTensors values;
  std::uint64_t seed = 5;
  for (NodeId id : g.leaves(OpKind::Input)) {
    const std::string name(g.leaf_name(id));
    const Shape& s = g.shape(id);
    const Fill fill = name[0] == 'i' ? Fill::Index : is_float(s.dtype()) ? Fill::Normal : Fill::Small;
    values.emplace(name, test::draw(s, fill, 40, seed++));
  }
  return values;
}

const std::vector<LongCase>& long_cases() {
  static const std::vector<LongCase> cases = {
      {"rows of several groups",
       [](Graph& g) {
         g.set_outputs({g.sum(f32_input(g, "x", {3, 40000}), {1})});
       }},
      {"one row of many groups", [](Graph& g) { g.set_outputs({g.sum(f32_input(g, "x", {1100000}), {0})}); }},
      {"columns in several passes",
       [](Graph& g) {
         g.set_outputs({g.sum(f32_input(g, "x", {5000, 36}), {0})});
       }},
      {"axes apart",
       [](Graph& g) {
         g.set_outputs({g.sum(f32_input(g, "x", {70, 33, 90}), {0, 2})});
       }},
      {"the largest of long rows",
       [](Graph& g) {
         const Expr x = f32_input(g, "x", {3, 40001});
         g.set_outputs({g.reduce_max(x, {1}), g.arg_max(x, 1), g.arg_min(x, 1)});
       }},
      {"half rows",
       [](Graph& g) {
         const Expr x = g.input("x", {{7, 300}, DType::F16});
         g.set_outputs({g.sum(x, {1}), g.reduce_max(x, {1}), g.arg_max(x, 1)});
       }},
      {"bytes",
       [](Graph& g) {
         g.set_outputs({g.sum(g.input("x", {{9, 700}, DType::I8}), {1})});
       }},
      {"long lines",
       [](Graph& g) {
         const Expr x = f32_input(g, "x", {2, 70000});
         g.set_outputs({g.cumsum(x, 1), g.cummax(x, 1, true, true)});
       }},
      {"lines of columns",
       [](Graph& g) {
         g.set_outputs({g.cumsum(f32_input(g, "x", {600, 5}), 0, true, true)});
       }},
      {"half lines",
       [](Graph& g) {
         g.set_outputs({g.cumsum(g.input("x", {{3, 555}, DType::BF16}), 1)});
       }},
      {"sorts of a block",
       [](Graph& g) {
         const Expr s = g.add(ops::Sort{1, false}, {f32_input(g, "x", {5, 700}), g.input("y", {{5, 700}, DType::I8})});
         g.set_outputs({s, s.result(1)});
       }},
      {"sorts of several blocks",
       [](Graph& g) {
         const Expr x = g.input("x", {{2, 5000}, DType::I32}), at = g.iota(Shape({2, 5000}, DType::I32), 1);
         const Expr s = g.add(ops::Sort{1, true}, {x, at});
         g.set_outputs({s, s.result(1)});
       }},
      {"sorts of columns",
       [](Graph& g) {
         const Expr x = g.input("x", {{1500, 3}, DType::I32}), at = g.iota(Shape({1500, 3}, DType::I64), 0);
         const Expr s = g.add(ops::Sort{0, false}, {x, at});
         g.set_outputs({s, s.result(1)});
       }},
      {"the largest few of many",
       [](Graph& g) {
         const Graph::TopKResult t = g.top_k(f32_input(g, "x", {3, 50000}), 40);
         g.set_outputs({t.values, t.indices});
       }},
      {"the largest many of many",
       [](Graph& g) {
         const Graph::TopKResult t = g.top_k(g.input("x", {{2, 3000}, DType::F16}), 1000);
         g.set_outputs({t.values, t.indices});
       }},
      {"updates of few columns",
       [](Graph& g) {
         const Expr x = f32_input(g, "x", {37}), u = f32_input(g, "u", {3000});
         const Expr i = g.input("i", {{3000}, DType::I32});
         g.set_outputs({g.add(ops::Scatter{ScatterKind::Add, {0}, IndexMode::Drop}, {x, i, u}),
                        g.add(ops::Scatter{ScatterKind::Set, {0}, IndexMode::Clamp}, {x, i, u}),
                        g.add(ops::Scatter{ScatterKind::Max, {0}, IndexMode::Drop}, {x, i, u})});
       }},
      {"updates of half elements",
       [](Graph& g) {
         const Expr x = g.input("x", {{38, 3}, DType::BF16}), u = g.input("u", {{900, 3}, DType::BF16});
         const Expr i = g.input("i", {{900}, DType::I64});
         g.set_outputs({g.add(ops::Scatter{ScatterKind::Add, {0}, IndexMode::Drop}, {x, i, u}),
                        g.add(ops::Scatter{ScatterKind::Set, {0}, IndexMode::Drop}, {x, i, u})});
       }},
      {"updates of rows",
       [](Graph& g) {
         const Expr x = f32_input(g, "x", {38, 64}), u = f32_input(g, "u", {800, 64});
         const Expr i = g.input("i", {{800}, DType::I32});
         g.set_outputs({g.add(ops::Scatter{ScatterKind::Add, {0}, IndexMode::Drop}, {x, i, u})});
       }},
      {"many operands",
       [](Graph& g) {
         std::vector<Expr> parts, bytes;
         for (int i = 0; i < 15; ++i) {
           parts.push_back(g.input("x" + std::to_string(i), {{3, i}, DType::F32}));
           bytes.push_back(g.input("y" + std::to_string(i), {{2, 2 * i + 1}, DType::I8}));
         }
         g.set_outputs({g.concat(parts, 1), g.concat(bytes, 1)});
       }},
      {"more groups than a dimension has",
       [](Graph& g) { g.set_outputs({g.cast(g.iota(Shape({16800001}, DType::I32), 0), DType::I8)}); }},
  };
  return cases;
}

}  // namespace

TEST_SUITE_BEGIN("conformance");

TEST_CASE("device: functions at infinities, zeros, NaN and far from 0 are those of the evaluator") {
  if (!test::generated_kernels_here()) return;
  for (int i = 0; i < kNumActivationKinds; ++i) {
    const auto fn = static_cast<ActivationKind>(i);
    if (!function_row(fn).real) continue;
    if (fn == ActivationKind::Lgamma || fn == ActivationKind::Digamma || fn == ActivationKind::Polygamma)
      continue;  // known_gaps.txt
    for (DType t : kFloats) {
      Graph g("edges");
      g.set_outputs({g.activation(fn, g.input("x", {{static_cast<std::int64_t>(edges().size())}, t}))});
      expect_same(concat_text(enum_name(fn), " ", dtype_name(t)), g, {{"x", tensor_of(edges(), t)}}, places_of(t));
    }
  }
}

TEST_CASE("device: binary functions, comparisons and clamps at every pair of edges are those of the evaluator") {
  if (!test::generated_kernels_here()) return;
  std::vector<double> a, b;
  for (double x : edges())
    for (double y : edges()) a.push_back(x), b.push_back(y);
  const auto n = static_cast<std::int64_t>(a.size());
  for (DType t : kFloats) {
    const NamedTensors values{{"x", tensor_of(a, t)}, {"y", tensor_of(b, t)}};
    const auto run = [&](const std::string& name, const std::function<Expr(Graph&, Expr, Expr)>& build) {
      Graph g("pairs");
      const Expr x = g.input("x", {{n}, t}), y = g.input("y", {{n}, t});
      g.set_outputs({build(g, x, y)});
      expect_same(concat_text(name, " ", dtype_name(t)), g, values, places_of(t),
                  name == "max" || name == "min" || name == "clamp" ? Zeros::Either : Zeros::Signed);
    };
    for (BinaryKind fn : {BinaryKind::Add, BinaryKind::Sub, BinaryKind::Mul, BinaryKind::Div, BinaryKind::Max,
                          BinaryKind::Min, BinaryKind::Pow, BinaryKind::Mod, BinaryKind::Atan2, BinaryKind::Rem,
                          BinaryKind::Hypot, BinaryKind::LogAddExp})
      run(std::string(enum_name(fn)), [&](Graph& g, Expr x, Expr y) { return g.binary(fn, x, y); });
    for (CompareKind fn :
         {CompareKind::Eq, CompareKind::Ne, CompareKind::Lt, CompareKind::Le, CompareKind::Gt, CompareKind::Ge})
      run(std::string(enum_name(fn)), [&](Graph& g, Expr x, Expr y) { return g.add(ops::Compare{fn}, {x, y}); });
    run("clamp", [&](Graph& g, Expr x, Expr y) { return g.add(ops::Clamp{}, {x, y, g.scalar(2.0, t)}); });
    run("x - x", [&](Graph& g, Expr x, Expr y) { return g.add(ops::Binary{BinaryKind::Sub}, {x * y, x * y}); });
  }
}

TEST_CASE("device: integers at the ends of their ranges are those of the evaluator") {
  if (!test::generated_kernels_here()) return;
  for (DType t : {DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32}) {
    const double bits = dtype_bits(t), low = is_signed_int(t) ? -std::exp2(bits - 1) : 0,
                 high = std::exp2(is_signed_int(t) ? bits - 1 : bits) - 1;
    const std::vector<double> some = {low, low + 1, 0, 1, 2, 3, 7, bits - 1, bits, bits + 1, high - 1, high};
    std::vector<double> a, b;
    for (double x : some)
      for (double y : some)
        for (double sign : {1.0, -1.0})
          if (sign > 0 || is_signed_int(t)) a.push_back(x), b.push_back(std::max(low, std::min(high, sign * y)));
    const auto n = static_cast<std::int64_t>(a.size());
    for (BinaryKind fn : {BinaryKind::Add, BinaryKind::Sub, BinaryKind::Mul, BinaryKind::Div, BinaryKind::Max,
                          BinaryKind::Min, BinaryKind::Pow, BinaryKind::Mod, BinaryKind::BitAnd, BinaryKind::BitOr,
                          BinaryKind::BitXor, BinaryKind::Shl, BinaryKind::Shr, BinaryKind::Rem}) {
      Graph g("pairs");
      const Expr x = g.input("x", {{n}, t}), y = g.input("y", {{n}, t});
      // In a region the step's result is read as it would be stored.
      g.set_outputs({g.cast(g.binary(fn, x, y), DType::I32)});
      expect_same(concat_text(enum_name(fn), " ", dtype_name(t)), g, {{"x", tensor_of(a, t)}, {"y", tensor_of(b, t)}},
                  0);
    }
  }
}

TEST_CASE("device: counts of bits are those of the evaluator") {
  if (!test::generated_kernels_here()) return;
  for (DType t : {DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32})
    for (ActivationKind fn : {ActivationKind::Popcount, ActivationKind::Clz}) {
      const double bits = dtype_bits(t), low = is_signed_int(t) ? -std::exp2(bits - 1) : 0,
                   high = std::exp2(is_signed_int(t) ? bits - 1 : bits) - 1;
      const std::vector<double> x = {low, low + 1, 0, 1, 2, 100, high - 1, high, is_signed_int(t) ? -1.0 : 3.0};
      Graph g("bits");
      g.set_outputs({g.activation(fn, g.input("x", {{static_cast<std::int64_t>(x.size())}, t}))});
      expect_same(concat_text(enum_name(fn), " ", dtype_name(t)), g, {{"x", tensor_of(x, t)}}, 0);
    }
}

TEST_CASE("device: quotients and products by constants at every edge are those of the evaluator") {
  if (!test::generated_kernels_here()) return;
  for (DType t : kFloats)
    for (double by : edges()) {
      if (by != 0 && std::fabs(by) < 0x1p-126) continue;  // subnormal: may be 0
      Graph g("quotients");
      const Expr x = g.input("x", {{static_cast<std::int64_t>(edges().size())}, t});
      const Expr c = g.constant(Tensor::full(Shape({}, t), by));
      g.set_outputs({x / c, x * c, c * x});
      expect_same(concat_text("x / ", by, ", x * it ", dtype_name(t)), g, {{"x", tensor_of(edges(), t)}}, places_of(t));
    }
}

TEST_CASE("device: casts of edges are those of the evaluator") {
  if (!test::generated_kernels_here()) return;
  std::vector<double> some = edges();
  for (double x : {127.5, -128.5, 255.9, 32767.6, -32769.0, 65535.5, 65519.0, 65520.0, 2147483520.0, 2147483648.0,
                   -2147483648.0, 4294967040.0, 4294967296.0, 1e-3, 5.9e-8})
    some.push_back(x);
  std::vector<double> whole = {0,          1,     2,     127,   128,   255,           256,         2049,     2051,
                               32767,      32768, 65535, 65519, 65520, 16777217,      16777219,    33554433, 2147483583,
                               2147483647, -1,    -128,  -129,  -2049, -2147483648.0, 4294967295.0};
  constexpr DType kAll[] = {DType::F32, DType::F16, DType::BF16, DType::I8,  DType::I16,
                            DType::I32, DType::U8,  DType::U16,  DType::U32, DType::Bool};
  for (DType from : kAll)
    for (DType to : kAll) {
      if (from == to) continue;
      const Tensor x = tensor_of(is_float(from) ? some : whole, from);
      Graph g("cast");
      g.set_outputs({g.cast(g.input("x", x.shape()), to)});
      expect_same(concat_text(dtype_name(from), " to ", dtype_name(to)), g, {{"x", x}}, 0.5);
    }
}

TEST_CASE("device: casts between integers of two words and of one are those of the evaluator") {
  if (!test::generated_kernels_here()) return;
  constexpr DType kWide[] = {DType::I64, DType::U64};
  constexpr DType kAll[] = {DType::I8,  DType::I16,  DType::I32, DType::U8, DType::U16,
                            DType::U32, DType::Bool, DType::I64, DType::U64};
  const std::vector<std::int64_t> some = {
      0,     1,          -1,         127,        -128,       255,         256,
      65535, 2147483647, 2147483648, 4294967295, 4294967296, -2147483649, (std::int64_t{1} << 62) + 5};
  const auto check = [&](DType from, DType to) {
    Tensor x = Tensor::zeros(Shape({static_cast<std::int64_t>(some.size())}, from));
    for (std::size_t i = 0; i < some.size(); ++i) x.set_i64(static_cast<std::int64_t>(i), some[i]);
    Graph g("cast");
    g.set_outputs({g.cast(g.input("x", x.shape()), to)});
    expect_same(concat_text(dtype_name(from), " to ", dtype_name(to)), g, {{"x", x}}, 0);
  };
  for (DType wide : kWide)
    for (DType other : kAll) {
      if (wide == other) continue;
      check(wide, other);
      check(other, wide);
    }
}

TEST_CASE("device: what needs several passes agrees with the exact result") {
  if (!test::generated_kernels_here()) return;
  for (const LongCase& c : long_cases()) {
    DOCTEST_SUBCASE(c.name) {
      Graph g("long");
      c.build(g);
      const NamedTensors values = values_of(g);
      CompiledGraph f = Session(test::test_device()).compile(Graph(g));
      CHECK_MESSAGE(test::host_part(f).empty(), test::host_part(f));
      test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(g, values, test::device_subnormals()));
    }
  }
}

TEST_CASE("device: a sum of equal elements keeps its digits") {
  if (!test::generated_kernels_here()) return;
  for (Dims dims : {Dims{1, 1000000}, Dims{1000000, 2}}) {
    Graph g("ones");
    const Expr x = g.input("x", {dims, DType::F32});
    const std::int64_t axis = dims[0].is_static(1) ? 1 : 0;
    g.set_outputs({g.sum(x, {axis})});
    const Tensor got =
        Session(test::test_device()).compile(Graph(g)).run_typed({{"x", Tensor::full(x.shape(), 0.1)}}).at(0);
    CHECK(got.at(0) == doctest::Approx(static_cast<double>(0.1F) * 1e6).epsilon(1e-6));
  }
}

TEST_CASE("device: every op over a batch that a run knows") {
  if (!test::generated_kernels_here()) return;
  std::size_t number = 0;  // of an op: kernels of runtime extents are texts of their own, which take long to compile
  test::for_each_run_sample([&](const OpDef&, const testing::Sample& sample) {
    if (sample.inputs.empty() || !test::in_share(number++)) return;
    if (const auto* d = sample.op.get_if<ops::GroupedDot>(); d && d->fn == GroupedKind::Contract) return;
    // Likewise (ops/conv/conv.cpp): unit/ops/conv/conv_test.cpp batches x alone.
    if (sample.op.is<ops::Conv>() || sample.op.is<ops::FusedConv>()) return;
    Graph g = test::sample_graph(sample);
    InAxes axes;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      if (dtype_bits(sample.inputs[k].shape.dtype()) < 8) return;
      axes.emplace("x" + std::to_string(k), 0);
    }
    const Graph batched = vmap(g, axes, g.symbol("n", {.min = 1, .max = 4})).graph;
    CompileOptions options;
    options.symbol_modes["n"] = SymbolMode::runtime();
    CompiledGraph f = Session(test::test_device()).compile_with(Graph(batched), options);
    for (const std::int64_t n : {3, 1}) {
      NamedTensors values;
      for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
        const testing::SampleInput& in = sample.inputs[k];
        Dims dims = in.shape.dims();
        dims.insert(dims.begin(), Dim(n));
        values.emplace("x" + std::to_string(k), test::draw(Shape(dims, in.shape.dtype()), in.fill, in.bound, 31 + k));
      }
      INFO("n = ", n);
      test::expect_within_bound(f.run_typed(values),
                                test::evaluate_bounded(vmap(g, axes, Dim(n)).graph, values, test::device_subnormals()));
    }
  });
}

TEST_SUITE_END();

}  // namespace rlx
