// Attention in both of its tiles and cut along the keys; with products and norms at extents that a run knows, and
// beside NaN and infinities.
#include <doctest/doctest.h>

#include <limits>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/linalg.h"
#include "tests/devices/forms.h"
#include "tests/devices/test_device.h"
#include "tests/support/run_check.h"

namespace rlx {

TEST_SUITE_BEGIN("kernel_variants");

TEST_CASE("device: attention in tiles of many and of few rows, and cut along the keys") {
  if (!test::generated_kernels_here()) return;
  for (const MaskKind mask : {MaskKind::None, MaskKind::Causal, MaskKind::SlidingWindow})
    for (const auto& [rows, keys] : {std::pair{70, 70}, std::pair{2, 100}, std::pair{1, 1100}, std::pair{37, 600}})
      for (const auto& [width, kv] : {std::pair{16, 2}, std::pair{6, 1}}) {
        const int queries = rows, depth = width;  // clang captures no structured bindings
        CAPTURE(enum_name(mask));
        CAPTURE(queries);
        CAPTURE(depth);
        Graph g("attention");
        ops::Attention op;
        op.num_heads = 2, op.kv_heads = kv, op.head_dim = depth, op.mask = mask, op.window = 40;
        const Expr y = g.add(op, {g.input("q", Shape({2, queries, 2 * depth}, DType::F32)),
                                  g.input("k", Shape({2, keys, kv * depth}, DType::F32)),
                                  g.input("v", Shape({2, keys, kv * depth}, DType::F32))});
        g.set_outputs({y, y.result(1)});
        const char* name = queries > 8 ? "attention_f32" : keys > 512 ? "attention_merge" : "attention_few_f32";
        test::expect_packed_layouts(g, name);
      }
}

TEST_CASE("device: products, norms and attention of extents that a run knows") {
  if (!test::generated_kernels_here()) return;
  Graph g("symbolic");
  const Dim n = g.symbol("n", {.min = 1, .max = 300});
  const Expr x = g.input("x", Shape({2, n, 32}, DType::F32));
  ops::Attention op;
  op.num_heads = op.kv_heads = 2, op.head_dim = 16, op.mask = MaskKind::Causal;
  const Expr y = g.add(op, {x, x, x});
  const Expr z = g.matmul(y, g.input("w", Shape({32, 24}, DType::F32)));
  g.set_outputs({g.softmax(g.dot_general(z, x, ops::DotGeneral{{1}, {1}, {0}, {0}}), 2), g.softmax(z, 1), y.result(1)});
  for (const char* kernels : {"software", "hardware"}) {
    INFO("kernels for ", std::string(kernels));
    CompileOptions options;
    options.symbol_modes.emplace("n", SymbolMode::runtime());
    CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", kernels}}).compile_with(Graph(g), options);
    CHECK(test::host_part(f) == "");
    for (std::int64_t of : {1, 8, 33, 130}) {
      CAPTURE(of);
      const Graph bound = g.bind({{"n", of}});
      const NamedTensors values = test::packed_values(bound);
      test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(bound, values));
    }
  }
}

TEST_CASE("device: NaN and infinities in products, softmax and attention") {
  if (!test::generated_kernels_here()) return;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t queries : {2, 12}) {
    CAPTURE(queries);
    Graph g("special");
    const Expr q = g.input("q", Shape({1, queries, 4}, DType::F32)), k = g.input("k", Shape({1, 5, 4}, DType::F32)),
               v = g.input("v", Shape({1, 5, 4}, DType::F32)), mask = g.input("m", Shape({queries, 5}, DType::F32));
    ops::Attention row_major_layout, biased;
    row_major_layout.head_dim = biased.head_dim = 4, biased.mask = MaskKind::Bias;
    const Expr y = g.add(biased, {q, k, v, mask}), z = g.add(row_major_layout, {q, k, v});
    g.set_outputs(
        {y, y.result(1), z, z.result(1), g.softmax(mask, 1), g.softmax(mask, 0), g.matmul(mask, g.reshape(k, {5, 4}))});
    NamedTensors values = test::packed_values(g);
    const auto put = [&](const char* name, std::int64_t i, double x) {
      const Tensor& old = values.at(name);
      Tensor t = Tensor::copy_of(old.data(), old.shape());
      t.set(i, x);
      values.insert_or_assign(name, t);
    };
    SUBCASE("a row that sees nothing, and one that sees the largest numbers") {
      for (int j = 0; j < 5; ++j) put("m", j, -inf);
      put("m", 6, 3e38), put("m", 7, -3e38);
    }
    SUBCASE("NaN at a hidden key, and an infinite value there") {
      for (std::int64_t i = 0; i < queries; ++i) put("m", i * 5 + 2, -inf), put("m", i * 5 + 3, -inf);
      put("v", 8, nan), put("v", 13, inf), put("k", 8, nan);
    }
    SUBCASE("NaN and +inf among the scores") { put("m", 1, nan), put("m", 7, inf), put("v", 4, inf); }
    SUBCASE("NaN of a query") { put("q", 3, nan), put("q", 5, inf); }
    for (const char* kernels : {"software", "hardware"}) {
      INFO("kernels for ", std::string(kernels));
      CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", kernels}}).compile(Graph(g));
      test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(g, values));
    }
  }
}

TEST_SUITE_END();

}  // namespace rlx
