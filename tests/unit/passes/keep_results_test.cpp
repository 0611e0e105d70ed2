// Every pass keeps the results: layers under both fusion policies, each pass alone and all together.
#include "rlx/ir/ops/blocks.h"
#include "tests/support/needs.h"
#include "tests/support/shapes.h"
#include "tests/unit/ir/sample_graph.h"
#include "tests/unit/passes/pass_test.h"

using namespace rlx;
using namespace rlx::test;

namespace {

Graph encoder_graph(FusionPolicy policy) {
  Graph g("encoder");
  ops::EncoderBlock op;
  op.num_heads = 2, op.head_dim = 2, op.mask = MaskKind::Custom;
  std::vector<Expr> in{g.input("x", f32({2, 3, 4}))};
  const std::vector<Dims> dims{{4, 4}, {4}, {4, 4}, {4}, {4, 4}, {4}, {4, 4}, {4},
                               {4},    {4}, {4, 6}, {6}, {6, 4}, {4}, {4},    {4}};
  for (std::size_t i = 0; i < dims.size(); ++i) in.push_back(g.param(concat_text("w", i), f32(dims[i])));
  in.push_back(g.input("mask", Shape({2, 1, 1, 3}, DType::Bool)));
  std::vector<Expr> out = decompose_into(g, op, in, policy);
  g.set_outputs(out);
  return g;
}

Graph decoder_graph(FusionPolicy policy) {
  Graph g("decoder");
  ops::LlamaDecoderBlock op;
  op.num_heads = 2, op.kv_heads = 1, op.head_dim = 4;
  std::vector<Expr> in{g.input("x", f32({2, 3, 8}))};
  const std::vector<Dims> dims{{8}, {8, 8}, {8, 4}, {8, 4}, {8, 8}, {8}, {8, 6}, {8, 6}, {6, 8}};
  for (std::size_t i = 0; i < dims.size(); ++i) in.push_back(g.param(concat_text("w", i), f32(dims[i])));
  in.push_back(g.input("cos", f32({3, 2})));
  in.push_back(g.input("sin", f32({3, 2})));
  g.set_outputs(decompose_into(g, op, in, policy));
  return g;
}

}  // namespace

TEST_CASE("an encoder layer is the same after the passes") {
  for (FusionPolicy policy : {FusionPolicy::Fusable, FusionPolicy::Direct}) {
    const Graph g = encoder_graph(policy);
    FusionReport report;
    PassContext context;
    context.report = &report;
    Graph after = run_all(g, context);
    check_same_results(g, after, 1e-5);
    CHECK(count_ops(after, OpKind::FusedAttentionBlock) == 1);
    CHECK(count_ops(after, OpKind::FusedDot) == 2);
    CHECK(count_ops(after, OpKind::FusedResidualLN) == 2);
    CHECK(report.missed.empty());

    // Without the attention block, q, k and v are one matmul with one bias, read through slices.
    OpSet kinds = OpSet::everything();
    kinds.remove(OpKind::FusedAttentionBlock);
    context.claims = &kinds;
    after = run_all(g, context);
    check_same_results(g, after, 1e-5);
    CHECK(count_ops(after, OpKind::FusedDot) == 4);
    CHECK(count_ops(after, OpKind::DotGeneral) == 0);
    CHECK(count_ops(after, OpKind::Slice) == 3);
    CHECK(count_ops(after, OpKind::Binary) == 0);
    CHECK(count_ops(after, OpKind::Concat) == 2);
  }
}

TEST_CASE("a decoder layer is the same after the passes") {
  for (FusionPolicy policy : {FusionPolicy::Fusable, FusionPolicy::Direct}) {
    const Graph g = decoder_graph(policy);
    FusionReport report;
    PassContext context;
    context.report = &report;
    const Graph after = run_all(g, context);
    check_same_results(g, after, 1e-5);
    CHECK(count_ops(after, OpKind::FusedSwiGLU) == 1);
    CHECK(count_ops(after, OpKind::FusedResidualRmsNorm) == 1);
    CHECK(count_ops(after, OpKind::DotGeneral) + count_ops(after, OpKind::FusedDot) == 4);
    CHECK(count_ops(after, OpKind::Binary) == 0);  // the last residual is in the epilogue of the last matmul
  }
}

namespace {

/// The ops of random programs: elementwise ops of several shapes and dtypes, matmuls, norms, layout ops.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1), g_("random") {
    const std::vector<Dims> dims{{3, 4}, {4}, {1, 4}, {3, 1}, {2, 3, 4}, {}, {4, 4}, {2, 1, 4}, {1}};
    for (const Dims& d : dims) {
      values_.push_back(g_.input(concat_text("x", values_.size()), f32(d)));
      values_.push_back(g_.param(concat_text("w", values_.size()), f32(d)));
      values_.push_back(g_.constant(random_tensor(f32(d), next())));
    }
  }

  Graph build() && {
    for (int step = 0; step < 24; ++step) grow();
    std::vector<Expr> outputs{values_.back()};
    for (int i = 0; i < 3; ++i) outputs.push_back(any());
    g_.set_outputs(outputs);
    return std::move(g_);
  }

 private:
  std::uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ >> 8;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  // Prefers recent values, so chains get long.
  Expr any() {
    return below(3) == 0 ? values_[below(values_.size())]
                         : values_[values_.size() - 1 - below(std::min<std::size_t>(values_.size(), 4))];
  }

  void grow() {
    Expr a = any(), b = any();
    try {
      switch (below(17)) {
        case 14:
        case 15: {  // a linear layer, sometimes two of the same x, sometimes with a transposed weight
          const Expr w = values_[6 * 3 + 1], bias = values_[1 * 3 + 1];
          Expr y = g_.matmul(a, below(2) ? w : g_.t(w));
          if (below(2)) y = y + bias;
          if (below(2)) y = g_.matmul(a, values_[6 * 3 + 2]) + y;
          if (below(2)) y = g_.silu(y * 0.5);
          return keep(y);
        }
        case 16:
          return keep(g_.transpose(g_.matmul(values_[4 * 3], g_.transpose(values_[4 * 3 + 1], {0, 2, 1})), {1, 0, 2}));
        case 0:
        case 1:
        case 2: {
          constexpr BinaryKind kinds[] = {BinaryKind::Add, BinaryKind::Add, BinaryKind::Mul,
                                          BinaryKind::Sub, BinaryKind::Max, BinaryKind::Min};
          return keep(g_.binary(kinds[below(6)], a, b));
        }
        case 3:
        case 4: {
          constexpr ActivationKind kinds[] = {ActivationKind::Gelu, ActivationKind::Silu, ActivationKind::Tanh,
                                              ActivationKind::Sigmoid, ActivationKind::Relu};
          return keep(g_.activation(kinds[below(5)], a));
        }
        case 5: return keep(g_.where(g_.lt(a, b), a, b));
        case 6:
        case 7: return keep(g_.matmul(a, b));
        case 8: return keep(g_.layer_norm(a + b, values_[1 * 3], values_[1 * 3 + 1], 1e-2));
        case 9: return keep(g_.rms_norm(a + b, values_[1 * 3 + 1], values_[1 * 3 + 2], 1e-2));
        case 10: {
          std::vector<std::int64_t> perm;
          for (int i = a.rank(); i-- > 0;) perm.push_back(i);
          return keep(g_.transpose(a, perm));
        }
        case 11: return keep(g_.expand(a, {2, 3, 4}));
        case 12: return keep(a * g_.sigmoid(a));
        case 13: return keep(g_.cast(g_.cast(a, DType::F64), DType::F32) * 1.0 + 0.5);
      }
    } catch (const Error&) {
      // the shapes do not fit: another op is drawn
    }
  }
  void keep(Expr e) { values_.push_back(e); }

  std::uint64_t state_;
  Graph g_;
  std::vector<Expr> values_;
};

double tolerance_of(const Graph& g) {
  double worst = 1e-9;
  for (const Node& n : g.nodes())
    for (const Shape& s : n.shapes) {
      if (s.dtype() == DType::F32 || s.dtype() == DType::C64) worst = std::max(worst, 2e-5);
      if (s.dtype() == DType::F16) worst = std::max(worst, 1e-2);
      if (s.dtype() == DType::BF16) worst = std::max(worst, 5e-2);
    }
  return worst;
}

}  // namespace

TEST_CASE("random graphs are the same after each pass and after all") {
  FusionReport report;
  for (std::uint64_t seed = 1; seed <= test::repetitions(std::uint64_t{120}); ++seed) {
    const Graph g = RandomGraph(seed).build();
    PassContext context;
    context.report = &report;
    for (const Pass* pass : all_passes()) {
      INFO("seed ", seed, ", pass ", pass->name);
      if (std::optional<Graph> after = pass->run(g, context)) check_same_results(g, *after, 1e-4, seed);
    }
    INFO("seed ", seed);
    check_same_results(g, run_all(g, context), 1e-4, seed);
    OpSet kinds = OpSet::everything();
    kinds.remove(OpKind::ElementwiseRegion);
    context.claims = &kinds;
    check_same_results(g, run_all(g, context), 1e-4, seed);
  }
  // The graphs contain the patterns of the passes.
  for (const char* pattern : {"matmul_bias_act", "matmul_epilogue", "shared_input_matmul", "residual_ln",
                              "residual_rms_norm", "elementwise_region"}) {
    INFO(report.summary_line());
    CHECK_MESSAGE(report.fused_count(pattern) >= test::repetitions(5), pattern);
  }
}

TEST_CASE("every op sample is the same after the passes") {
  for_each_op_sample([](const OpDef& def, const testing::Sample& sample) {
    const Graph g = graph_of(sample);
    INFO(def.name, " ", sample.name);
    if (op_def(sample.op.kind()).level == Level::Lir) return;
    check_same_results(g, run_all(g, PassContext{}), tolerance_of(g));
  });
}
