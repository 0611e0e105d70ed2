// Every pass keeps the results: layers under both policies, one by one and all together.
#include "tests/unit/passes/pass_test.h"

using namespace rlx;
using namespace rlx::test;

namespace {

Shape f32(Dims dims) { return Shape(std::move(dims), DType::F32); }

Graph encoder_graph(FusionPolicy policy) {
  Graph g("encoder");
  ops::EncoderBlock op;
  op.num_heads = 2, op.head_dim = 2, op.mask = MaskKind::Custom;
  std::vector<Expr> in{g.input("x", f32({2, 3, 4}))};
  const std::vector<Dims> dims{{4, 4}, {4}, {4, 4}, {4}, {4, 4}, {4}, {4, 4}, {4}, {4}, {4}, {4, 6}, {6}, {6, 4}, {4}, {4}, {4}};
  for (std::size_t i = 0; i < dims.size(); ++i) in.push_back(g.param(concat_text("w", i), f32(dims[i])));
  in.push_back(g.input("mask", Shape({2, 3}, DType::Bool)));
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
    PassContext context;
    FusionReport report;
    context.report = &report;
    const Graph after = run_all(g, context);
    check_same_results(g, after, 1e-5);
    CHECK(count(after, OpKind::FusedDot) + count(after, OpKind::FusedAttentionBlock) * 2 == 4);
    CHECK(count(after, OpKind::FusedResidualLN) == 2);
  }
}

TEST_CASE("a decoder layer is the same after the passes") {
  for (FusionPolicy policy : {FusionPolicy::Fusable, FusionPolicy::Direct}) {
    const Graph g = decoder_graph(policy);
    PassContext context;
    FusionReport report;
    context.report = &report;
    const Graph after = run_all(g, context);
    check_same_results(g, after, 1e-5);
  }
}
