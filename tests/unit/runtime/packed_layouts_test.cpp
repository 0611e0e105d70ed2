// Packed layouts through whole compiles: weights are packed in place from their sources, in their stored dtype, and
// matmuls read quantized values without dequantizing them first.
#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

Tensor values(std::vector<std::int64_t> dims, int seed, DType t = DType::F32) {
  Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
  for (std::int64_t i = 0; i < out.num_elements(); ++i)
    out.set(i, static_cast<double>((i * 7 + seed * 13) % 23 - 11) / 8);
  return out;
}

/// The packed layouts of the params of the run graph.
std::vector<PackedLayout> forms(const CompiledGraph& f) {
  const Graph& g = f.compile_result().lir.graph;
  std::vector<PackedLayout> out;
  for (NodeId p : g.leaves(OpKind::Param))
    if (!packed_layout_of(g, Value(p)).empty()) out.push_back(packed_layout_of(g, Value(p)));
  return out;
}

/// Runs `g` compiled and by the evaluator, and compares within `tolerance`.
CompiledGraph check_runs(const Graph& g, const NamedTensors& params, const NamedTensors& inputs,
                         double tolerance = 1e-4) {
  CompiledGraph f = Session().compile(g);
  for (const auto& [name, value] : params) f.set_param(name, value);
  NamedTensors all = params;
  for (const auto& [name, value] : inputs) all.insert_or_assign(name, value);
  const std::vector<Tensor> want = evaluate(g, all), got = f.run_typed(inputs);
  REQUIRE(want.size() == got.size());
  for (std::size_t o = 0; o < want.size(); ++o) {
    REQUIRE(got[o].shape() == want[o].shape());
    test::Worst worst;
    for (std::int64_t i = 0; i < want[o].num_elements(); ++i) worst.add(got[o].at(i), want[o].at(i));
    CHECK(worst.value() <= tolerance);
  }
  return f;
}

TEST_CASE("packed layouts: text and back, and what is no form") {
  for (const PackedLayout& f :
       {PackedLayout{}, PackedLayout{"panels", {48, 16, 1, 1}, 4096}, PackedLayout{"rows", {}, 0, 12, false}})
    CHECK(parse_packed_layout(packed_layout_text(f)) == f);
  CHECK(packed_layout_text(PackedLayout{"rows", {-1}, 8, 2, false}) == "rows(-1);8;count 2;lossy");
  for (const char* bad : {"panels", "(1);2", "panels(1;2", "panels(1,);2", "panels(1);", "panels(1);-2", "panels(1);2;",
                          "panels(1);2;count 0", "panels(1);2 ", "panels(1);99999999999999999999"}) {
    CAPTURE(bad);
    CHECK(parse_packed_layout(bad).bytes < 0);
  }
  const std::string text = "graph @g {\n  %0 = param() {name = \"w\", form = \"panels(\"} : [2, 2] f32\n  return %0\n}";
  CHECK(test::contains(test::error_text([&] { verify_or_throw(parse_text(text), Level::Lir, "the graph"); }),
                       "malformed packed layout 'panels('"));
}

TEST_CASE("packed layouts: a weight in half precision stays so, whatever lies between it and the product") {
  for (const DType stored : {DType::BF16, DType::F16}) {
    CAPTURE(dtype_name(stored));
    Graph g("half");
    Expr x = g.input("x", Shape({3, 64}, DType::F32));
    Expr a = g.cast(g.param("a", Shape({96, 64}, stored)), DType::F32),  // [N, K]
        b = g.cast(g.param("b", Shape({64, 80}, stored)), DType::F32);
    g.set_outputs({g.matmul(x, g.transpose(a, {1, 0})), g.relu(g.matmul(x, g.slice(b, {0, 16}, {64, 80})))});
    CompiledGraph f = check_runs(g, {{"a", values({96, 64}, 1, stored)}, {"b", values({64, 80}, 2, stored)}},
                                 {{"x", values({3, 64}, 3)}});
    const std::vector<PackedLayout> all = forms(f);
    REQUIRE(!all.empty());
    std::int64_t bytes = 0;
    for (const PackedLayout& layout : all) bytes += layout.bytes;
    CHECK(bytes == (96 + 64) * 64 * 2);
    CHECK(!op_histogram(f.compile_result().lir.graph).contains("cast"));
    CHECK(!op_histogram(f.compile_result().lir.prepare).contains("cast"));
  }
}

TEST_CASE("packed layouts: parts of one weight are read where they lie, and the weight is not kept beside them") {
  constexpr std::int64_t kD = 64;
  Graph g("qkv");
  Expr w = g.param("qkv", Shape({3 * kD, kD}, DType::F32));
  std::vector<Value> out;
  for (std::int64_t i = 0; i < 3; ++i) {
    Expr x = g.input(concat_text("x", i), Shape({5, kD}, DType::F32));
    out.push_back(g.matmul(x, g.transpose(g.slice(w, {i * kD, 0}, {(i + 1) * kD, kD}), {1, 0})).value());
  }
  g.set_outputs(out);
  const NamedTensors in{{"x0", values({5, kD}, 1)}, {"x1", values({5, kD}, 2)}, {"x2", values({5, kD}, 3)}};
  CompiledGraph f = check_runs(g, {{"qkv", values({3 * kD, kD}, 4)}}, in);
  CHECK(forms(f).size() == 3);
  CHECK(f.prepared_bytes() < 3 * kD * kD * 4 * 5 / 4);  // panels of 48 columns over 64
  // A new value reaches all three readers.
  NamedTensors all = in;
  all.insert_or_assign("qkv", values({3 * kD, kD}, 9));
  f.set_param("qkv", all.at("qkv"));
  const std::vector<Tensor> want = evaluate(g, all), got = f.run_typed(in);
  for (std::size_t o = 0; o < 3; ++o) CHECK(got[o].identical(want[o]));  // sums of multiples of 1/64: exact
}

TEST_CASE("packed layouts: rows of a tied embedding are read from the matmul's packed layout") {
  for (const DType stored : {DType::F32, DType::BF16}) {
    CAPTURE(dtype_name(stored));
    constexpr std::int64_t kVocabulary = 100, kD = 48;
    Graph g("tied");
    Expr table = g.cast(g.param("table", Shape({kVocabulary, kD}, stored)), DType::F32);
    Expr ids = g.input("ids", Shape({4}, DType::I32));
    Expr rows = g.gather(table, ids);
    g.set_outputs({rows, g.matmul(g.tanh(rows), g.transpose(table, {1, 0}))});
    const Tensor picked = Tensor::of<std::int32_t>({4}, std::vector<std::int32_t>{99, 0, 47, 48});
    CompiledGraph f = check_runs(g, {{"table", values({kVocabulary, kD}, 1, stored)}}, {{"ids", picked}});
    CHECK(forms(f).size() == 1);
    CHECK(f.compile_result().lir.prepare.outputs().size() == 1);
    CHECK(f.prepared_bytes() <= static_cast<std::size_t>((kVocabulary + 12) * kD) * (stored == DType::F32 ? 4 : 2));
  }
}

TEST_CASE("packed layouts: a checkpoint in another dtype than the param's goes into the form without a widened copy") {
  Graph g("declared");
  g.set_outputs({g.matmul(g.input("x", Shape({2, 64}, DType::F32)), g.param("w", Shape({64, 96}, DType::F32)))});
  for (const DType given : {DType::BF16, DType::F16, DType::F64}) {
    CAPTURE(dtype_name(given));
    CompiledGraph f = Session().compile(g);
    const Tensor w = values({64, 96}, 5).cast(given), x = values({2, 64}, 6);
    f.set_param("w", w);
    const Tensor want = evaluate(g, {{"x", x}, {"w", w.cast(DType::F32)}})[0];
    CHECK(f.run_typed({{"x", x}})[0].identical(want));  // exact sums
    CHECK(f.prepared_bytes() == 64 * 96 * 4);
  }
}

// -- quantized values --

struct Coded {
  const char* what;
  Shape codes;
  ops::Dequantize op;
  Dims scale;  // empty op.axis and no dims: one number
  bool zero_point;
  bool transposed;  // [N, K]
};

std::vector<Coded> coded_cases(std::int64_t k, std::int64_t n) {
  std::vector<Coded> out;
  const auto affine = [&](const char* what, DType t, bool transposed, std::optional<std::int64_t> axis,
                          std::int64_t block, bool zero) {
    ops::Dequantize op;
    op.axis = axis, op.block = block;
    Dims dims = transposed ? Dims{n, k} : Dims{k, n}, scale;
    if (axis && block == 0) scale = {dims[static_cast<std::size_t>(*axis)]};
    if (axis && block > 0) {
      scale = dims;
      Dim& along = scale[static_cast<std::size_t>(*axis)];
      along = (along.value() + block - 1) / block;
    }
    out.push_back({what, Shape(dims, t), op, scale, zero, transposed});
  };
  affine("one scale", DType::I8, false, {}, 0, false);
  affine("columns of [K, N]", DType::I8, false, 1, 0, true);
  affine("columns of [N, K]", DType::U8, true, 0, 0, true);
  affine("blocks along K of [N, K]", DType::I8, true, 1, 32, true);
  affine("blocks along K of [K, N]", DType::U8, false, 0, 48, true);
  affine("4 bits in blocks", DType::U4, true, 1, 32, true);
  affine("4 bits, columns", DType::I4, false, 1, 0, false);
  affine("small floats", DType::F8E4M3, true, 0, 0, false);
  for (const QuantScheme scheme : {QuantScheme::Q8_0, QuantScheme::Q4_0, QuantScheme::Q4_K, QuantScheme::Q6_K}) {
    const BlockLayout& l = block_layout(scheme);
    if (k % l.elements != 0) continue;
    ops::Dequantize op;
    op.scheme = scheme;
    op.dims = {n, k};
    out.push_back(
        {quant_scheme_name(scheme).data(), Shape({n, k / l.elements * l.bytes}, DType::U8), op, {}, false, true});
  }
  return out;
}

Tensor coded_values(const Coded& c, std::int64_t k, std::int64_t n) {
  if (!is_block_scheme(c.op.scheme)) {
    Tensor out = Tensor::zeros(c.codes);
    const bool is_signed = c.codes.dtype() == DType::I8 || c.codes.dtype() == DType::I4;
    const std::int64_t range = dtype_bits(c.codes.dtype()) == 4 ? 16 : 200;
    for (std::int64_t i = 0; i < out.num_elements(); ++i) {
      if (c.codes.dtype() == DType::F8E4M3)
        out.set(i, static_cast<double>((i * 5) % 15 - 7));
      else
        out.set_i64(i, (i * 37 + i / 11) % range - (is_signed ? range / 2 : 0));
    }
    return out;
  }
  std::vector<float> x(static_cast<std::size_t>(k * n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 29 + i / 7) % 113) / 64 - 0.8F;
  Tensor out = Tensor::zeros(c.codes);
  quantize_blocks(c.op.scheme, x, {out.mutable_data(), out.size_bytes()});
  return out;
}

// x [m, k] times the dequantized weight: with bias and activation, plain, and with a strided x.
TEST_CASE("coded products: every layout of codes, read where they lie") {
  for (const std::array<std::int64_t, 3>& extents :
       {std::array<std::int64_t, 3>{1, 256, 96}, {9, 512, 70}, {33, 256, 1}, {2, 96, 130}}) {
    const auto m = extents[0], k = extents[1], n = extents[2];
    for (const Coded& c : coded_cases(k, n)) {
      CAPTURE(c.what);
      CAPTURE(m);
      CAPTURE(k);
      CAPTURE(n);
      Graph g("coded");
      NamedTensors params{{"codes", coded_values(c, k, n)}, {"bias", values({n}, 2)}};
      Expr codes = g.param("codes", c.codes);
      std::optional<Operand> scale, zero;
      if (!is_block_scheme(c.op.scheme)) {
        Tensor s = Tensor::full(Shape(c.scale, DType::F32), 0.0625);
        for (std::int64_t i = 0; i < s.num_elements(); ++i) s.set(i, 0.03125 * static_cast<double>(1 + i % 3));
        scale = g.param("scale", s.shape());
        params.emplace("scale", s);
        if (c.zero_point) {
          Tensor z = Tensor::zeros(Shape(c.scale, c.codes.dtype()));
          for (std::int64_t i = 0; i < z.num_elements(); ++i) z.set_i64(i, i % 5);
          zero = g.param("zero", z.shape());
          params.emplace("zero", z);
        }
      }
      Expr w = is_block_scheme(c.op.scheme) ? g.dequantize(codes, c.op.scheme) : g.dequantize(codes, scale, c.op, zero);
      if (c.transposed) w = g.transpose(w, {1, 0});
      Expr x = g.input("x", Shape({m, k}, DType::F32)), wide = g.input("wide", Shape({m, k + 8}, DType::F32));
      g.set_outputs({g.matmul(x, w), g.relu(g.matmul(x, w) + g.param("bias", Shape({n}, DType::F32))),
                     g.matmul(g.slice(wide, {0, 4}, {m, k + 4}), w)});
      CompiledGraph f = check_runs(g, params, {{"x", values({m, k}, 1)}, {"wide", values({m, k + 8}, 3)}}, 2e-2);
      const LirModule& lir = f.compile_result().lir;
      int decoded = 0;
      for (std::uint32_t i = 0; i < lir.graph.num_nodes(); ++i)
        if (lir.graph.nodes()[i].kind() == OpKind::Dequantize) {
          CHECK(lir.plan.values[i][0].place == Place::None);
          ++decoded;
        }
      // Block schemes have their own lossless packed layout; other quantized values are read as they are.
      CHECK(decoded == (is_block_scheme(c.op.scheme) ? 0 : 1));
      CHECK(lir.plan.arena_bytes < static_cast<std::size_t>(m * n * 4 + 4 * m * (k + n) + 4096));
      CHECK(forms(f).size() == (is_block_scheme(c.op.scheme) ? 1 : 0));
      for (const PackedLayout& layout : forms(f)) CHECK(layout.lossless);
    }
  }
}

TEST_CASE("coded products: codes that a run makes stay until they are read, also where another reader wants numbers") {
  // The quantized values are dead after the second matmul; between the two, other values need memory.
  for (const bool also_decoded : {false, true}) {
    CAPTURE(also_decoded);
    Graph g("made");
    Expr x = g.input("x", Shape({8, 64}, DType::F32)), y = g.input("y", Shape({64, 64}, DType::F32));
    const auto q = g.dynamic_quantize(y);
    Expr w = g.dequantize(q.codes, q.scale);
    Expr a = g.matmul(x, w);
    for (int i = 0; i < 4; ++i) a = g.softmax(g.tanh(a) * 3.0, -1);
    Expr b = g.matmul(a, w);
    std::vector<Value> out{b.value()};
    if (also_decoded) out.push_back(g.exp(w).value());
    g.set_outputs(out);
    check_runs(g, {}, {{"x", values({8, 64}, 1)}, {"y", values({64, 64}, 2)}}, 1e-3);
  }
}

TEST_CASE("coded products: a set of projections of one x joins codes, not numbers") {
  Graph g("projections");
  Expr x = g.input("x", Shape({4, 256}, DType::F32));
  NamedTensors params;
  std::vector<Value> out;
  for (const char* name : {"q", "k", "v"}) {
    const Coded c = coded_cases(256, 64).back();  // q6_k
    params.emplace(name, coded_values(c, 256, 64));
    out.push_back(g.dequant_matmul(x, g.param(name, c.codes), c.op.scheme).value());
  }
  g.set_outputs(out);
  CompiledGraph f = check_runs(g, params, {{"x", values({4, 256}, 1)}}, 1e-2);
  CHECK(f.prepared_bytes() < 3 * 64 * 256 * 2);
  for (const auto& [name, count] : op_histogram(f.compile_result().lir.graph)) CHECK(name != "cast");
}

}  // namespace
}  // namespace rlx
