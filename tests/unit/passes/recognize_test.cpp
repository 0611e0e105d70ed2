// Ops that exporters write as primitives are recognized, and later patterns fuse them.
#include <optional>

#include "tests/support/exported_graphs.h"
#include "tests/support/shapes.h"
#include "tests/unit/passes/pass_test.h"

using namespace rlx;
using namespace rlx::test;

namespace {

enum class Mask { None, Added, Where, WhereLowest };

// softmax(mask(scale * q k^T)) v with `num_batch` batch axes; with `rows_first` the head axis comes after the rows.
Graph written_attention(int num_batch, bool rows_first, Mask mask, std::optional<double> softcap) {
  Graph g("attention");
  Dims lead(static_cast<std::size_t>(num_batch), Dim(2));
  auto operand = [&](const char* name, std::int64_t rows) {
    Dims dims = lead;
    if (rows_first) {
      Expr x = g.input(name, f32({2, rows, 2, 4}));
      return g.transpose(x, {0, 2, 1, 3});
    }
    dims.push_back(rows);
    dims.push_back(4);
    return g.input(name, f32(dims));
  };
  Expr q = operand("q", 3), k = operand("k", 5), v = operand("v", 5);
  Expr s = g.matmul(q, g.t(k)) * 0.7;
  if (softcap) s = g.tanh(s / *softcap) * *softcap;
  if (mask == Mask::Added) s = s + g.input("bias", f32({3, 5}));
  if (mask == Mask::Where || mask == Mask::WhereLowest) {
    Expr visible = g.input("visible", Shape({3, 5}, DType::Bool));
    s = g.where(visible, s, g.scalar(mask == Mask::Where ? -HUGE_VAL : -3e38));
  }
  g.set_outputs({g.matmul(g.softmax(s), v)});
  return g;
}

}  // namespace

TEST_CASE("an exported encoder layer fuses like the block") {
  const Graph g = exported_encoder_layer(2, 3, 2, 4, 6);
  FusionReport report;
  PassContext context;
  context.report = &report;
  const Graph after = run_all(g, context);
  check_same_results(g, after, 2e-5);
  INFO(report.text());
  CHECK(report.fused_count("gelu") == 1);
  CHECK(report.fused_count("softmax") == 1);
  CHECK(report.fused_count("layer_norm") == 2);
  CHECK(report.fused_count("attention") == 1);
  CHECK(count_ops(after, OpKind::FusedAttentionBlock) == 1);
  CHECK(count_ops(after, OpKind::FusedResidualLN) == 2);
  CHECK(count_ops(after, OpKind::FusedDot) == 2);
  CHECK(count_ops(after, OpKind::Transpose) == 0);
  CHECK(report.missed.empty());
}

TEST_CASE("written-out attention is recognised in every form") {
  for (int num_batch : {0, 1, 2})
    for (bool rows_first : {false, true})
      for (Mask mask : {Mask::None, Mask::Added, Mask::Where, Mask::WhereLowest})
        for (std::optional<double> softcap : {std::optional<double>(), std::optional<double>(1.5)}) {
          if (rows_first && num_batch != 2) continue;
          INFO(num_batch, " batch axes, rows first ", rows_first, ", mask ", static_cast<int>(mask), ", softcap ",
               softcap.value_or(0));
          const Graph g = written_attention(num_batch, rows_first, mask, softcap);
          const Graph after = run_all(g, PassContext{});
          CHECK(count_ops(after, OpKind::Attention) == 1);
          CHECK(count_ops(after, OpKind::DotGeneral) == 0);
          for (std::uint64_t seed = 1; seed <= 4; ++seed) check_same_results(g, after, 1e-5, seed);
        }
}

TEST_CASE("a row without keys keeps its meaning") {
  for (Mask mask : {Mask::Where, Mask::WhereLowest}) {
    const Graph g = written_attention(1, false, mask, {});
    const Graph after = run_all(g, PassContext{});
    REQUIRE(count_ops(after, OpKind::Attention) == 1);
    NamedTensors values = random_leaves(g, 3);
    values.insert_or_assign("visible", Tensor::zeros(Shape({3, 5}, DType::Bool)));
    const Tensor want = evaluate(g, values)[0], got = evaluate(after, values)[0];
    for (std::int64_t i = 0; i < want.num_elements(); ++i)
      CHECK(got.at(i) == doctest::Approx(want.at(i)).epsilon(1e-5));
  }
}

TEST_CASE("targets without the op keep what was written") {
  const Graph g = exported_encoder_layer(1, 2, 1, 4, 4);
  PassContext context;
  OpSet kinds = OpSet::everything();
  context.claims = &kinds;
  for (OpKind kind : {OpKind::Attention, OpKind::Softmax, OpKind::LayerNorm, OpKind::RmsNorm, OpKind::Activation,
                      OpKind::FusedAttentionBlock})
    kinds.remove(kind);
  const Graph after = run_all(g, context);
  check_same_results(g, after, 2e-5);
  for (OpKind kind : {OpKind::Attention, OpKind::Softmax, OpKind::LayerNorm}) CHECK(count_ops(after, kind) == 0);
}
