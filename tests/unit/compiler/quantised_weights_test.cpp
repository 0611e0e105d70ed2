// A quantized weight stays quantized through a whole compile, as a param or constant, and runs give the results of the
// reference rules.
#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"

namespace rlx {
namespace {

constexpr std::int64_t kWeightRows = 96, kWeightColumns = 512;

Tensor bytes(std::vector<std::int64_t> dims, DType t) {
  Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
  for (std::int64_t i = 0; i < out.num_elements(); ++i)
    out.set_i64(i, (i * 37 + i / 11) % 200 - (t == DType::I8 ? 100 : 0));
  return out;
}
// Random q4_k blocks whose F16 scales are small.
Tensor blocks() {
  Tensor out = bytes({kWeightRows, kWeightColumns / 256 * 144}, DType::U8);
  for (std::int64_t b = 0; b < out.num_elements(); b += 144)
    for (const auto& [at, value] : {std::pair{0, 0x66}, {1, 0x14}, {2, 0x01}, {3, 0x10}}) out.set_i64(b + at, value);
  return out;
}

// The weights of a graph, as params or as constants.
struct Weights {
  Graph& g;
  bool constants;
  NamedTensors params;
  Expr operator()(const std::string& name, Tensor value) {
    if (constants) return g.constant(std::move(value));
    const Shape shape = value.shape();
    params.emplace(name, std::move(value));
    return g.param(name, shape);
  }
};

struct Case {
  Graph g{"quantised"};
  Weights weight;
  std::size_t stored = 0;  // bytes of quantized values and scales
  explicit Case(bool constants) : weight{g, constants, {}} {
    Tensor q = bytes({kWeightColumns, kWeightRows}, DType::I8),
           s = Tensor::full(Shape({kWeightRows}, DType::F32), 0.01), b = blocks();
    // The table of blocks is read in two layouts: rows as stored, and split into fields for the matmul.
    stored = q.size_bytes() + s.size_bytes() + 2 * b.size_bytes();
    Expr x = g.input("x", Shape({2, kWeightColumns}, DType::F32)), ids = g.input("ids", Shape({3}, DType::I32));
    ops::Dequantize per_channel;
    per_channel.axis = 1;
    Expr codes = weight("b", b);
    g.set_outputs({g.dequant_matmul(x, weight("q", q), weight("s", s), per_channel),
                   g.dequant_matmul(x, codes, QuantScheme::Q4_K),
                   g.gather(g.dequantize(codes, QuantScheme::Q4_K), ids)});
  }
};

std::size_t constant_bytes(const Graph& g) {
  std::size_t sum = 0;
  for (const Node& n : g.nodes())
    if (n.kind() == OpKind::Constant) sum += n.shape().size_bytes();
  return sum;
}

TEST_CASE("quantised weights are not decoded ahead, and run right") {
  NamedTensors in{{"x", Tensor::zeros(Shape({2, kWeightColumns}, DType::F32))},
                  {"ids", Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{5, 95, 5})}};
  for (std::int64_t i = 0; i < 2 * kWeightColumns; ++i) in.at("x").set(i, static_cast<double>(i % 13) / 8 - 0.75);
  for (const bool constants : {false, true}) {
    CAPTURE(constants);
    Case c(constants);
    const CompileResult r = CompilePipeline(Session().target()).compile_graph(c.g);
    std::size_t kept = constant_bytes(r.lir.graph);
    for (Value v : r.lir.prepare.outputs()) kept += stored_bytes(r.lir.prepare, v);
    CHECK(kept <= c.stored + c.stored / 10 + 4096);  // plus small tables

    NamedTensors all = in;
    all.insert(c.weight.params.begin(), c.weight.params.end());
    const std::vector<Tensor> expected = evaluate(c.g, all);
    CompiledGraph f = Session().compile(c.g);
    for (const auto& [name, value] : c.weight.params) f.set_param(name, value);
    const std::vector<Tensor> got = f.run_typed(in);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::int64_t k = 0; k < got[i].num_elements(); ++k)
        CHECK(test::difference(got[i].at(k), expected[i].at(k)) <= 1e-3);
    CHECK(got[2].identical(expected[2]));  // dequantization is exact
  }
}

TEST_CASE("only the rows that a gather takes are decoded") {
  Case c(false);
  const CompileResult r = CompilePipeline(Session().target()).compile_graph(c.g);
  CHECK(r.fusion.fused_count("sink_dequantize") == 1);
}

TEST_CASE("rows of a quantised table by indices of any number") {
  Graph g("rows");
  const Dim n = g.symbol("n", {.min = 0, .max = 64, .divisor = 1});
  Expr ids = g.input("ids", Shape({n}, DType::I32)), codes = g.param("b", Shape({kWeightRows, 288}, DType::U8)),
       q = g.param("q", Shape({kWeightRows, 10}, DType::I8)), s = g.param("s", Shape({kWeightRows, 3}, DType::F32));
  ops::Dequantize op;
  op.axis = 1, op.block = 4;
  Expr rows = g.gather(g.dequantize(q, s, op), ids);
  g.set_outputs({g.gather(g.dequantize(codes, QuantScheme::Q4_K), ids), rows, g.quantize(rows, g.scalar(0.5)),
                 g.dynamic_quantize(rows).codes});
  CompileOptions options;
  options.symbol_modes["n"] = SymbolMode::runtime(64);
  CompiledGraph f = Session().compile_with(g, options);
  NamedTensors all{{"b", blocks()},
                   {"q", bytes({kWeightRows, 10}, DType::I8)},
                   {"s", Tensor::full(Shape({kWeightRows, 3}, DType::F32), 0.25)}};
  for (const auto& [name, value] : all) f.set_param(name, value);
  for (const std::int32_t count : {1, 7, 0}) {
    std::vector<std::int32_t> list;
    for (std::int32_t i = 0; i < count; ++i) list.push_back(i * 29 % 96);
    all.insert_or_assign("ids", Tensor::of<std::int32_t>({count}, list));
    const std::vector<Tensor> got = f.run_typed({{"ids", all.at("ids")}}), want = evaluate(g.bind({{"n", count}}), all);
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i].identical(want[i]));
  }
}

TEST_CASE("mixed precision leaves codes and scales alone") {
  Graph g("mixed");
  Expr x = g.input("x", Shape({2, 4}, DType::F32)), s = g.param("s", Shape({}, DType::F32)),
       codes = g.param("codes", Shape({4, 4}, DType::F4E2M1)), small = g.param("small", Shape({4, 2}, DType::F8E4M3));
  ops::FakeQuantize learned;
  learned.mode = ScaleMode::Learned;
  ops::Dequantize op;
  op.axis = 1, op.block = 2;
  Expr y = g.fake_quantize(x, learned, s).y;
  g.set_outputs({g.dequant_matmul(y, codes, small, op, std::nullopt, s), g.dynamic_quantize(y).codes});
  for (const Precision p : {Precision::F16, Precision::BF16}) {
    CompiledGraph f = Session().with_precision(p).compile(g);
    CHECK(f.outputs().size() == 2);
  }
}

}  // namespace
}  // namespace rlx
