// Matmuls with block-quantized weights through whole compiles, compared with F64 sums over the decoded weights, for
// every scheme, instruction set, policy and number of threads. Also tests the weights' layout and reading them back.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/registry.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"
#include "tests/support/guarded_program.h"

namespace rlx {
namespace {

constexpr QuantScheme kWithStrips[] = {QuantScheme::Q4_0, QuantScheme::Q4_1, QuantScheme::Q5_0, QuantScheme::Q5_1,
                                       QuantScheme::Q8_0, QuantScheme::Q4_K, QuantScheme::Q5_K, QuantScheme::Q6_K};
constexpr std::int64_t kBlockOfX = 32;

Tensor normals_of(std::vector<std::int64_t> dims, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), DType::F32));
  for (std::int64_t i = 0; i < out.num_elements(); ++i) out.set(i, static_cast<double>(normal(random)));
  return out;
}

// Weights [.., K] in blocks, and their decoded numbers.
struct BlockWeights {
  Tensor blocks, numbers;
  BlockWeights(QuantScheme s, std::vector<std::int64_t> dims, unsigned seed) : numbers(normals_of(dims, seed, 0.1F)) {
    const BlockLayout& l = block_layout(s);
    dims.back() = dims.back() / l.elements * l.bytes;
    blocks = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), DType::U8));
    auto* values = reinterpret_cast<float*>(numbers.mutable_data());
    const auto count = static_cast<std::size_t>(numbers.num_elements());
    quantize_blocks(s, {values, count}, {blocks.mutable_data(), blocks.size_bytes()});
    dequantize_blocks(s, {blocks.data(), blocks.size_bytes()}, {values, count});
  }
};

CompileOptions allowing(MatmulPrecision precision) {
  CompileOptions options;
  options.precision = PrecisionPolicy::with_matmul_precision(precision);
  return options;
}

// x [.., K] times the transpose of the decoded `blocks`.
Expr product(Graph& g, const Expr& x, const Expr& blocks, QuantScheme s) {
  return g.dot_general(x, g.dequantize(blocks, s), ops::DotGeneral{{x.rank() - 1}, {1}, {}, {}});
}

// The sum, and its allowed error by PrecisionPolicy::matmul, in addition to that of F32 sums.
struct Sum {
  double want = 0, loss = 0;
};
Sum sum_of(MatmulPrecision precision, const Tensor& x, const Tensor& w, std::int64_t row, std::int64_t column) {
  const std::int64_t k = w.shape().dim(-1).value();
  Sum out;
  double terms = 0;
  for (std::int64_t k0 = 0; k0 < k; k0 += kBlockOfX) {
    double weights = 0;
    test::Worst largest;
    for (std::int64_t i = k0; i < k0 + kBlockOfX; ++i) {
      const double xi = x.at(row * k + i), wi = w.at(column * k + i);
      out.want += xi * wi;
      terms += std::fabs(xi * wi);
      largest.add(xi, 0);
      weights += std::fabs(wi);
    }
    if (precision == MatmulPrecision::Int8)
      out.loss += largest.value() / 254 * weights, terms += largest.value() * weights;
  }
  out.loss += 4e-6 * terms;
  REQUIRE(std::isfinite(out.want + out.loss));
  return out;
}
double worst_share(MatmulPrecision precision, const Tensor& x, const Tensor& w, const Tensor& got) {
  const std::int64_t n = w.shape().dim(0).value(), m = got.num_elements() / n;
  test::Worst worst;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const Sum sum = sum_of(precision, x, w, i, j);
      worst.add(got.at(i * n + j), sum.want, sum.loss);
    }
  return worst.value();
}

TEST_CASE("quantised products: every scheme, instruction set, policy and size beside the decoded weights") {
  for (const std::string& isa : test::isas())
    for (const QuantScheme s : kWithStrips)
      for (const MatmulPrecision precision : {MatmulPrecision::Exact, MatmulPrecision::BF16, MatmulPrecision::Int8})
        for (const std::array<std::int64_t, 4>& of :
             {std::array<std::int64_t, 4>{1, 96, 2, 1}, {3, 37, 3, 2}, {21, 130, 1, 3}}) {
          const std::int64_t m = of[0], n = of[1], k = of[2] * block_layout(s).elements;
          INFO(isa, " ", quant_scheme_name(s), " ", matmul_precision_name(precision), " ", m, "x", n, "x", k);
          const BlockWeights w(s, {n, k}, 2);
          const Tensor x = normals_of({m, k}, 1);
          Graph g("product");
          g.set_outputs({product(g, g.input("x", x.shape()), g.param("w", w.blocks.shape()), s)});
          CompiledGraph f = Session()
                                .with_isa(isa)
                                .with_threads(static_cast<int>(of[3]))
                                .compile_with(std::move(g), allowing(precision));
          f.set_param("w", w.blocks);
          CHECK(worst_share(precision, x, w.numbers, f.run_typed({{"x", x}})[0]) <= 1);
        }
}

TEST_CASE("quantised products: exact ones have the bits of the product with the decoded weights") {
  for (const std::string& isa : test::isas())
    for (const QuantScheme s : kWithStrips)
      for (const std::int64_t m : {1, 11}) {
        INFO(isa, " ", quant_scheme_name(s), " ", m);
        const std::int64_t n = 70, k = 2 * block_layout(s).elements;
        const BlockWeights w(s, {n, k}, 3);
        const Tensor x = normals_of({m, k}, 4), bias = normals_of({n}, 5);
        const auto run = [&](bool coded) {
          Graph g("exact");
          Expr in = g.input("x", x.shape());
          Expr y = coded ? product(g, in, g.param("w", w.blocks.shape()), s)
                         : g.dot_general(in, g.param("w", w.numbers.shape()), ops::DotGeneral{{1}, {1}, {}, {}});
          g.set_outputs({y, g.relu(y + g.param("bias", bias.shape()))});
          CompiledGraph f = Session().with_isa(isa).compile(std::move(g));
          f.set_param("w", coded ? w.blocks : w.numbers);
          f.set_param("bias", bias);
          return f.run_typed({{"x", x}});
        };
        const std::vector<Tensor> got = run(true), want = run(false);
        CHECK(got[0].identical(want[0]));
        CHECK(got[1].identical(want[1]));
      }
}

TEST_CASE("quantised products: a row has the same bits among any number of rows and on any number of threads") {
  const std::int64_t n = 600, k = 256;
  for (const QuantScheme s : {QuantScheme::Q4_0, QuantScheme::Q8_0, QuantScheme::Q4_K, QuantScheme::Q6_K}) {
    CAPTURE(quant_scheme_name(s));
    const BlockWeights w(s, {n, k}, 6);
    const Tensor x = normals_of({64, k}, 7);
    const auto run = [&](std::int64_t m, int threads) {
      Graph g("rows");
      g.set_outputs({product(g, g.input("x", Shape({m, k}, DType::F32)), g.param("w", w.blocks.shape()), s)});
      CompiledGraph f = Session().with_threads(threads).compile_with(std::move(g), allowing(MatmulPrecision::Int8));
      f.set_param("w", w.blocks);
      return f.run_typed({{"x", Tensor::copy_of(x.data(), Shape({m, k}, DType::F32))}})[0];
    };
    const Tensor all = run(64, 1);
    for (std::int64_t m = 1; m <= 64; m += m < 9 ? 1 : 5) {
      CAPTURE(m);
      const Tensor some = run(m, static_cast<int>(m % 3 + 1));
      CHECK(some.identical(Tensor::copy_of(all.data(), some.shape())));
    }
  }
}

TEST_CASE("quantised products: kernels name themselves, and are asked for by the policy") {
  const BlockWeights w(QuantScheme::Q4_0, {48, 64}, 8);
  for (const MatmulPrecision precision : {MatmulPrecision::Exact, MatmulPrecision::BF16, MatmulPrecision::Int8}) {
    Graph g("named");
    g.set_outputs(
        {product(g, g.input("x", Shape({2, 64}, DType::F32)), g.param("w", w.blocks.shape()), QuantScheme::Q4_0)});
    const std::shared_ptr<const Backend> backend = backend_for(Device::Cpu);
    CompileResult r = CompilePipeline(backend->target({}), allowing(precision)).compile_graph(std::move(g));
    const NodeId node = r.lir.plan.schedule.back().node;
    const auto exe = backend->compile_lir(std::move(r.lir), {});
    const std::string name = exe->kernel_name(node);
    CHECK(name.rfind(precision == MatmulPrecision::Int8 ? "gemm_interleaved_int8 (" : "gemm_interleaved_f32 (", 0) ==
          0);
  }
}

TEST_CASE("quantised products: projections of one x are joined from their blocks, bytes come back when rows are set") {
  const std::int64_t k = 256;
  Graph g("projections");
  Expr x = g.input("x", Shape({3, k}, DType::F32));
  NamedTensors params, numbers;
  std::vector<Value> out;
  for (const auto& [name, n] : {std::pair{"q", 40}, {"k", 24}, {"v", 33}}) {
    const BlockWeights w(QuantScheme::Q6_K, {n, k}, static_cast<unsigned>(n));
    params.emplace(name, w.blocks);
    numbers.emplace(name, w.numbers);
    out.push_back(product(g, x, g.param(name, w.blocks.shape()), QuantScheme::Q6_K).value());
  }
  g.set_outputs(out);
  CompiledGraph f = Session().compile_with(std::move(g), allowing(MatmulPrecision::Int8));
  const LirModule& lir = f.compile_result().lir;
  CHECK(lir.plan.schedule.size() <= 4);  // one matmul, and copies of its parts
  for (const Node& n : lir.prepare.nodes()) CHECK((n.kind() == OpKind::Param || n.kind() == OpKind::Relayout));
  for (const auto& [name, value] : params) f.set_param(name, value);
  const Tensor in = normals_of({3, k}, 9);
  std::vector<Tensor> got = f.run_typed({{"x", in}});
  int i = 0;
  for (const char* name : {"q", "k", "v"})
    CHECK(worst_share(MatmulPrecision::Int8, in, numbers.at(name), got[static_cast<std::size_t>(i++)]) <= 1);
  // A param that is stored only in its packed layout: after a row is written, the others are decoded from it.
  const BlockWeights row(QuantScheme::Q6_K, {2, k}, 77);
  f.set_param("k", row.blocks, Rows{5, 2});
  const std::vector<Tensor> after = f.run_typed({{"x", in}});
  CHECK(after[0].identical(got[0]));
  CHECK(after[2].identical(got[2]));
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t j = 0; j < 24; ++j) {
      if (j != 5 && j != 6) {
        CHECK(after[1].at(r * 24 + j) == got[1].at(r * 24 + j));
        continue;
      }
      const Sum sum = sum_of(MatmulPrecision::Int8, in, row.numbers, r, j - 5);
      CHECK(test::difference(after[1].at(r * 24 + j), sum.want) <= sum.loss);
    }
}

TEST_CASE("quantised products: the layers of a scan read the strips of a stack") {
  const std::int64_t layers = 5, k = 64;
  for (const MatmulPrecision precision : {MatmulPrecision::Exact, MatmulPrecision::Int8}) {
    CAPTURE(matmul_precision_name(precision));
    const BlockWeights w(QuantScheme::Q4_0, {layers, k, k}, 10);
    const Tensor x = normals_of({2, k}, 11);
    Graph g("stack");
    const LoopResult r = g.scan(g.input("x", x.shape()), {g.param("w", w.blocks.shape())},
                                [&](Graph& s, const ExprList& c, const ExprList& row) {
                                  return LoopStep{product(s, c[0], row[0], QuantScheme::Q4_0)};
                                });
    g.set_outputs({r.carries[0]});
    CompiledGraph f = Session().with_threads(2).compile_with(std::move(g), allowing(precision));
    const Graph& run = f.compile_result().lir.graph;
    REQUIRE(run.leaves(OpKind::Param).size() == 1);
    const PackedLayout& form = packed_layout_of(run, Value(run.leaves(OpKind::Param)[0]));
    CHECK(form.id == "strips");
    CHECK(form.count == layers);
    f.set_param("w", w.blocks);
    const Tensor got = f.run_typed({{"x", x}})[0];
    // Layer by layer, each as a program of its own.
    Tensor at = x;
    for (std::int64_t l = 0; l < layers; ++l) {
      Graph one("layer");
      const Shape s({k, k / 32 * 18}, DType::U8);
      one.set_outputs({product(one, one.input("x", x.shape()), one.param("w", s), QuantScheme::Q4_0)});
      CompiledGraph h = Session().compile_with(std::move(one), allowing(precision));
      h.set_param("w", Tensor::copy_of(w.blocks.data() + static_cast<std::size_t>(l) * s.size_bytes(), s));
      at = h.run_typed({{"x", at}})[0];
    }
    CHECK(got.identical(at));
  }
}

TEST_CASE("quantised products: products that could run at once take turns with the memory of their codes") {
  const std::int64_t m = 24, n = 512, k = 512;
  Graph g("turns");
  std::vector<Value> out;
  NamedTensors in;
  CompiledGraph f = [&] {
    for (const char* name : {"a", "b", "c", "d"}) {
      const BlockWeights w(QuantScheme::Q4_0, {n, k}, static_cast<unsigned>(name[0]));
      in.emplace(concat_text("x", name), normals_of({m, k}, static_cast<unsigned>(name[0])));
      in.emplace(concat_text("w", name), w.blocks);
      Expr x = g.input(concat_text("x", name), Shape({m, k}, DType::F32));
      out.push_back(
          g.relu(product(g, x, g.param(concat_text("w", name), w.blocks.shape()), QuantScheme::Q4_0)).value());
    }
    g.set_outputs(out);
    return Session().with_threads(3).compile_with(std::move(g), allowing(MatmulPrecision::Int8));
  }();
  NamedTensors xs;
  for (const auto& [name, value] : in) {
    if (name[0] == 'w')
      f.set_param(name, value);
    else
      xs.emplace(name, value);
  }
  const std::vector<Tensor> first = f.run_typed(xs);
  for (int turn = 0; turn < 200; ++turn) {
    const std::vector<Tensor> got = f.run_typed(xs);
    for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i].identical(first[i]));
  }
  int i = 0;
  for (const char* name : {"a", "b", "c", "d"}) {
    const BlockWeights w(QuantScheme::Q4_0, {n, k}, static_cast<unsigned>(name[0]));
    Tensor want = first[static_cast<std::size_t>(i++)];
    for (const std::int64_t at : {0L, 5000L, m * n - 1}) {
      const Sum sum = sum_of(MatmulPrecision::Int8, in.at(concat_text("x", name)), w.numbers, at / n, at % n);
      CHECK(test::difference(want.at(at), std::max(sum.want, 0.0)) <= sum.loss);
    }
  }
}

TEST_CASE("quantised products: a row with NaN or an infinity is NaN where x is rounded, and no other") {
  const std::int64_t n = 40, k = 96;
  const BlockWeights w(QuantScheme::Q4_0, {n, k}, 12);
  Tensor x = normals_of({4, k}, 13);
  x.set(1 * k + 70, std::nan(""));
  x.set(2 * k + 3, HUGE_VAL);
  Graph g("special");
  g.set_outputs({product(g, g.input("x", x.shape()), g.param("w", w.blocks.shape()), QuantScheme::Q4_0)});
  CompiledGraph f = Session().compile_with(std::move(g), allowing(MatmulPrecision::Int8));
  f.set_param("w", w.blocks);
  const Tensor got = f.run_typed({{"x", x}})[0];
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < n; ++j) CHECK(std::isnan(got.at(i * n + j)) == (i == 1 || i == 2));
}

}  // namespace
}  // namespace rlx
