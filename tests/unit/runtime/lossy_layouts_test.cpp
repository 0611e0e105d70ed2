// Lossy packed layouts: none without allowed precision loss, never more loss than the policy states, only in matmuls;
// and the values that remain.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"
#include "tests/support/error_text.h"
#include "tests/support/guarded_program.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

constexpr double kExactly = 1e-5;  // of sums of |terms| around 100: F32 arithmetic

Tensor normals(std::vector<std::int64_t> dims, unsigned seed, double scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, scale);
  Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), DType::F32));
  for (std::int64_t i = 0; i < out.num_elements(); ++i) out.set(i, normal(random));
  return out;
}

CompileOptions with(MatmulPrecision precision, KeepValues keep = KeepValues::Yes) {
  CompileOptions options;
  options.precision = PrecisionPolicy::with_matmul_precision(precision, keep);
  return options;
}

const PackedLayout& packed_layout_of_param(const CompiledGraph& f, std::size_t which = 0) {
  const Graph& g = f.compile_result().lir.graph;
  return packed_layout_of(g, Value(g.leaves(OpKind::Param)[which]));
}

// The error bound of element (i, j) of x [M, K] times w [K, N], as PrecisionPolicy::matmul states.
double allowed(MatmulPrecision precision, const Tensor& x, const Tensor& w, std::int64_t i, std::int64_t j) {
  const std::int64_t k = w.shape().dim(0).value(), n = w.shape().dim(1).value();
  double terms = 0, of_x = 0;
  test::Worst largest;
  for (std::int64_t at = 0; at < k; ++at) {
    terms += std::fabs(x.at(i * k + at) * w.at(at * n + j));
    of_x += std::fabs(x.at(i * k + at));
    largest.add(w.at(at * n + j), 0);
  }
  const double int8 = of_x * largest.value() / 254;
  const double loss = precision == MatmulPrecision::Exact ? 0 : precision == MatmulPrecision::BF16 ? terms / 256 : int8;
  REQUIRE(std::isfinite(terms + int8));
  return loss + kExactly * (terms + 1e-30);
}

TEST_CASE("lossy layouts: no more is lost than the policy says, at every size and instruction set") {
  for (const std::string& isa : test::isas())
    for (const std::array<std::int64_t, 3>& extents :
         {std::array<std::int64_t, 3>{1, 1, 1}, {3, 7, 5}, {1, 384, 100}, {17, 33, 49}, {64, 256, 96}, {5, 64, 131}}) {
      const std::int64_t m = extents[0], k = extents[1], n = extents[2];
      const Tensor x = normals({m, k}, 1), w = normals({k, n}, 2, 0.05), bias = normals({n}, 3);
      for (const MatmulPrecision precision : {MatmulPrecision::Exact, MatmulPrecision::BF16, MatmulPrecision::Int8}) {
        INFO(isa, " ", m, "x", k, "x", n, " ", std::string(matmul_precision_name(precision)));
        Graph g("product");
        Expr p = g.matmul(g.input("x", x.shape()), g.param("w", w.shape()));
        g.set_outputs({p, g.relu(p * 0.5 + g.param("bias", bias.shape()))});
        const NamedTensors all{{"x", x}, {"w", w}, {"bias", bias}};
        const std::vector<Tensor> want = evaluate(g, all);
        CompiledGraph f = Session().with_isa(isa).compile_with(g, with(precision));
        f.set_param("w", w);
        f.set_param("bias", bias);
        const std::vector<Tensor> got = f.run_typed({{"x", x}});
        bool same = true;
        for (std::int64_t i = 0; i < m * n; ++i) {
          const double loss = allowed(precision, x, w, i / n, i % n);
          REQUIRE(test::difference(got[0].at(i), want[0].at(i)) <= loss);
          REQUIRE(test::difference(got[1].at(i), want[1].at(i)) <= 0.5 * loss + kExactly);
          same = same && got[0].at(i) == want[0].at(i);
        }
        if (k >= 64 && precision != MatmulPrecision::Exact) CHECK(!same);  // the lossy layout was read
        CHECK(packed_layout_of_param(f).lossless == (precision == MatmulPrecision::Exact));
      }
    }
}

TEST_CASE("lossy layouts: a skinny matmul has the bits that it has among many") {
  const Tensor x = normals({40, 200}, 4), w = normals({200, 150}, 5);
  for (const MatmulPrecision precision : {MatmulPrecision::Exact, MatmulPrecision::BF16, MatmulPrecision::Int8}) {
    CAPTURE(std::string(matmul_precision_name(precision)));
    const auto run = [&](std::int64_t rows) {
      Graph g("rows");
      g.set_outputs({g.matmul(g.input("x", Shape({rows, 200}, DType::F32)), g.param("w", w.shape()))});
      CompiledGraph f = Session().with_threads(rows > 1 ? 2 : 1).compile_with(g, with(precision));
      f.set_param("w", w);
      return f.run_typed({{"x", Tensor::copy_of(x.data(), Shape({rows, 200}, DType::F32))}})[0];
    };
    const Tensor all = run(40);
    for (const std::int64_t rows : {1, 2, 9, 33}) {
      const Tensor some = run(rows);
      CHECK(some.identical(Tensor::copy_of(all.data(), some.shape())));
    }
  }
}

TEST_CASE("lossy layouts: a matrix of a group is read in chunks of columns") {
  constexpr std::int64_t kRows = 9, kDepth = 600, kColumns = 320, kGroups = 2;
  const Tensor x = normals({kRows, kDepth}, 10), w = normals({kGroups, kDepth, kColumns}, 11);
  const Tensor ids = test::ints({kRows}, {1, 0, 1, 1, 0, 0, 1, 0, 1});
  Graph g("groups");
  g.set_outputs({g.grouped_dot(g.input("x", x.shape()), g.param("w", w.shape()), g.input("ids", ids.shape()))});
  const Tensor want = evaluate(g, {{"x", x}, {"w", w}, {"ids", ids}})[0];
  for (const std::string& isa : test::isas())
    for (const MatmulPrecision precision : {MatmulPrecision::Exact, MatmulPrecision::Int8}) {
      INFO(isa, " ", std::string(matmul_precision_name(precision)));
      CompiledGraph f = Session().with_isa(isa).compile_with(g, with(precision));
      f.set_param("w", w);
      CHECK(packed_layout_of_param(f).lossless == (precision == MatmulPrecision::Exact));
      const Tensor got = f.run_typed({{"x", x}, {"ids", ids}})[0];
      for (std::int64_t group = 0; group < kGroups; ++group) {
        Tensor one = Tensor::zeros(Shape({kDepth, kColumns}, DType::F32));
        for (std::int64_t i = 0; i < kDepth * kColumns; ++i) one.set(i, w.at(group * kDepth * kColumns + i));
        for (std::int64_t i = 0; i < kRows; ++i)
          for (std::int64_t j = 0; j < kColumns && ids.at(i) == static_cast<double>(group); j += 7)
            REQUIRE(test::difference(got.at(i * kColumns + j), want.at(i * kColumns + j)) <=
                    allowed(precision, x, one, i, j));
      }
    }
}

TEST_CASE("lossy layouts: int8 takes a byte a value and a scale a column, halves two; the rest reads the values") {
  Graph g("tied");
  constexpr std::int64_t kVocabulary = 96, kD = 64;
  Expr table = g.param("table", Shape({kVocabulary, kD}, DType::F32));
  Expr rows = g.gather(table, g.input("ids", Shape({4}, DType::I32)));
  g.set_outputs({rows, g.matmul(g.tanh(rows), g.transpose(table, {1, 0})), g.sum(table)});
  const Tensor values = normals({kVocabulary, kD}, 6), ids = test::ints({4}, {95, 0, 47, 48});
  const std::vector<Tensor> want = evaluate(g, {{"table", values}, {"ids", ids}});
  for (const MatmulPrecision precision : {MatmulPrecision::BF16, MatmulPrecision::Int8}) {
    CompiledGraph f = Session().compile_with(g, with(precision));
    f.set_param("table", values);
    const std::vector<Tensor> got = f.run_typed({{"ids", ids}});
    CHECK(got[0].identical(want[0]));
    CHECK(test::difference(got[2].at(0), want[2].at(0)) < 1e-3);
    CHECK(!got[1].identical(want[1]));
    const std::int64_t bytes =
        precision == MatmulPrecision::BF16 ? 2 * kVocabulary * kD : kVocabulary * kD + 4 * kVocabulary;
    CHECK(f.prepared_bytes() == static_cast<std::size_t>(bytes + 4 * kVocabulary * kD + 4));  // plus the sum
  }
}

TEST_CASE("lossy layouts: beside weights in blocks those that are numbers stay as they are") {
  for (const bool blocks : {false, true}) {
    Graph g("router");
    const Expr x = g.input("x", Shape({3, 64}, DType::F32));
    Expr y = g.matmul(x, g.param("router", Shape({64, 8}, DType::F32)));
    if (blocks) {
      const Expr codes = g.param("experts", Shape({8, 2 * 34}, DType::U8));
      y = g.add(y, g.mul(g.matmul(x, g.transpose(g.dequantize(codes, QuantScheme::Q8_0), {1, 0})), 0.0));
    }
    g.set_outputs({y});
    CompiledGraph f = Session().compile_with(g, with(MatmulPrecision::Int8)), exact = Session().compile(g);
    const Tensor w = normals({64, 8}, 17), in = normals({3, 64}, 18);
    for (CompiledGraph* c : {&f, &exact}) {
      c->set_param("router", w);
      if (blocks) c->set_param("experts", Tensor::zeros(Shape({8, 2 * 34}, DType::U8)));
    }
    CHECK(f.run_typed({{"x", in}})[0].identical(exact.run_typed({{"x", in}})[0]) == blocks);
  }
}

TEST_CASE("lossy layouts: the values behind them stay, or are let go and asking is an error") {
  Graph g("kept");
  g.set_outputs(
      {g.matmul(g.input("x", Shape({g.symbol("n"), 64}, DType::F32)), g.param("w", Shape({64, 96}, DType::F32)))});
  const Tensor w = normals({64, 96}, 7), x = normals({3, 64}, 8);
  const std::size_t layout = 64 * 96 + 4 * 96, raw = 4 * 64 * 96;
  CompiledGraph kept = Session().compile_with(g, with(MatmulPrecision::Int8)),
                dropped = Session().compile_with(g, with(MatmulPrecision::Int8, KeepValues::No));
  for (CompiledGraph* f : {&kept, &dropped}) {
    f->set_param("w", w);
    const Tensor first = f->run_typed({{"x", x}})[0];
    CHECK(f->prepared_bytes() == (f == &kept ? layout + raw : layout));
    f->set_param("w", normals({64, 96}, 9));  // setting a new value needs no old one
    CHECK(!f->run_typed({{"x", x}})[0].identical(first));
    CompiledGraph clone = f->clone();
    f->set_param("w", w);
    CHECK(f->run_typed({{"x", x}})[0].identical(first));
    CHECK(!clone.run_typed({{"x", x}})[0].identical(first));
    // Another length, which reads the same packed layout.
    CHECK(f->run_typed({{"x", normals({9, 64}, 8)}})[0].shape().dim(0) == 9);
    CHECK(f->prepared_bytes() == (f == &kept ? layout + raw : layout));
  }
  const Tensor row = normals({1, 96}, 10);
  CHECK_NOTHROW(kept.set_param("w", row, {2, 1}));
  const std::string why = test::error_text([&] { dropped.set_param("w", row, {2, 1}); });
  CHECK(test::contains(why, "the values of param 'w' were freed: only a lossy packed layout remains"));
  CHECK(test::contains(why, "KeepValues::Yes"));
}

TEST_CASE("lossy layouts: the matrices of a scan, and sources of 16 bits") {
  const Tensor x = normals({4, 48}, 12), stack = normals({3, 48, 48}, 13, 0.1),
               half = normals({96, 48}, 14, 0.1).cast(DType::F16);
  Graph g("layers");
  const LoopResult r =
      g.scan(g.input("x", x.shape()), g.param("stack", stack.shape()),
             [](Graph& b, const ExprList& c, const ExprList& row) { return LoopStep{b.matmul(c[0], row[0])}; });
  g.set_outputs({g.matmul(r.carries[0], g.transpose(g.cast(g.param("half", half.shape()), DType::F32), {1, 0}))});
  const Tensor want = evaluate(g, {{"x", x}, {"stack", stack}, {"half", half}})[0];
  CompiledGraph f = Session().compile_with(g, with(MatmulPrecision::Int8, KeepValues::No));
  f.set_param("stack", stack);
  f.set_param("half", half);
  const Tensor got = f.run_typed({{"x", x}})[0];
  test::Worst largest, worst;
  for (std::int64_t i = 0; i < want.num_elements(); ++i) largest.add(want.at(i), 0);
  REQUIRE(std::isfinite(largest.value()));
  for (std::int64_t i = 0; i < want.num_elements(); ++i) worst.add(got.at(i), want.at(i), largest.value());
  CHECK(worst.value() > 1e-5);
  CHECK(worst.value() < 0.05);
  const std::size_t bytes = 3 * (48 * 48 + 4 * 48) + 96 * 48 + 4 * 96;
  CHECK(f.prepared_bytes() == bytes);
}

TEST_CASE("lossy layouts: what is not finite spoils its column and no other; the smallest numbers are not lost") {
  constexpr std::int64_t kK = 40, kN = 20;
  Tensor w = normals({kK, kN}, 11);
  w.set(5 * kN + 3, test::kNan);
  w.set(7 * kN + 11, -test::kInf);
  for (std::int64_t k = 0; k < kK; ++k) w.set(k * kN + 13, 0), w.set(k * kN + 17, static_cast<double>(k % 5) * 2e-45);
  Graph g("odd");
  g.set_outputs({g.matmul(g.input("x", Shape({2, kK}, DType::F32)), g.param("w", w.shape()))});
  Tensor x = Tensor::full(Shape({2, kK}, DType::F32), 1);
  CompiledGraph f = Session().compile_with(g, with(MatmulPrecision::Int8));
  f.set_param("w", w);
  const Tensor got = f.run_typed({{"x", x}})[0], want = evaluate(g, {{"x", x}, {"w", w}})[0];
  for (std::int64_t j = 0; j < kN; ++j) {
    CAPTURE(j);
    if (j == 3 || j == 11) {
      CHECK(std::isnan(got.at(j)));
      continue;
    }
    CHECK(test::difference(got.at(j), want.at(j)) <= allowed(MatmulPrecision::Int8, x, w, 0, j));
    if (j == 13) CHECK(got.at(j) == 0);
    if (j == 17) CHECK(got.at(j) == want.at(j));
  }
}

TEST_CASE("lossy layouts: a policy that is none is refused") {
  CHECK(
      test::contains(test::error_text([] { PrecisionPolicy::with_matmul_precision(static_cast<MatmulPrecision>(7)); }),
                     "7 is not a value of MatmulPrecision"));
  PrecisionPolicy policy;
  policy.matmul_precision = static_cast<MatmulPrecision>(9);
  CHECK(
      test::contains(test::error_text([&] { Session().with_policy(policy); }), "9 is not a value of MatmulPrecision"));
  CHECK(Session().policy().matmul_precision == MatmulPrecision::Exact);
}

}  // namespace
}  // namespace rlx
