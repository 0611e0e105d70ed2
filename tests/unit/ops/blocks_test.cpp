// HIR blocks against NumPy under both fusion policies, and the ops that each policy emits.
#include <doctest/doctest.h>

#include "rlx/ir/ops/blocks.h"
#include "tests/support/count_ops.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// Weight n of a block: scale 0.3 + 0.05 n, offset 0.1 (n mod 3).
Tensor weight(int n, std::vector<std::int64_t> dims) {
  return sequence(std::move(dims), 0.3 + 0.05 * n, 0.1 * (n % 3));
}

std::vector<Tensor> encoder_operands() {
  const std::vector<std::vector<std::int64_t>> dims{{4, 4}, {4}, {4, 4}, {4}, {4, 4}, {4}, {4, 4}, {4},
                                                    {4},    {4}, {4, 3}, {3}, {3, 4}, {4}, {4},    {4}};
  std::vector<Tensor> in{sequence({1, 3, 4})};
  for (int n = 0; n < 16; ++n) in.push_back(weight(n, dims[static_cast<std::size_t>(n)]));
  return in;
}

ops::EncoderBlock encoder(MaskKind mask) {
  ops::EncoderBlock op;
  op.num_heads = 2, op.head_dim = 2, op.mask = mask, op.eps = 0.1;
  return op;
}

Graph lowered(const OpBox& op, const std::vector<Tensor>& in, FusionPolicy policy) {
  Graph g;
  std::vector<Expr> operands;
  for (const Tensor& t : in) operands.push_back(g.input("in" + std::to_string(operands.size()), t.shape()));
  g.set_outputs(decompose_into(g, op, operands, policy));
  return g;
}

}  // namespace

TEST_CASE("encoder_block is BERT's post-norm layer") {
  auto in = encoder_operands();
  expect_close(run_op(encoder(MaskKind::None), in)[0],
               {-0.1269929122, 0.6963584853, -0.3420638831, 3.4788632051, -0.1779250978, 0.5920911499, -0.3597005885,
                3.5392665432, -0.0460082854, 0.8583747409, -0.3448501173, 3.2416272186});
  in.push_back(doubles({1, 3}, {1, 1, 0}));
  expect_close(run_op(encoder(MaskKind::Custom), in)[0],
               {-0.1265095748, 0.7001888832, -0.3414986661, 3.474328157, -0.095760432, 0.6838807384, -0.3658461522,
                3.4328929002, -0.0526680638, 0.8739387692, -0.3428808305, 3.2097088283});
}

TEST_CASE("llama_decoder_block: pre-norms, rotated grouped heads, causal, gated feed-forward") {
  ops::LlamaDecoderBlock op;
  op.num_heads = 2, op.kv_heads = 1, op.head_dim = 2, op.eps = 0.1;
  const std::vector<std::vector<std::int64_t>> dims{{4}, {4, 4}, {4, 2}, {4, 2}, {4, 4}, {4}, {4, 3}, {4, 3}, {3, 4}};
  std::vector<Tensor> in{sequence({1, 2, 4})};
  for (int n = 0; n < 9; ++n) in.push_back(weight(n, dims[static_cast<std::size_t>(n)]));
  in.push_back(doubles({2, 1}, {0.9, 0.6}));
  in.push_back(doubles({2, 1}, {0.2, 0.8}));
  expect_close(run_op(op, in)[0], {-1.3234657306, 0.6558127617, -0.3291933945, 1.1578436036, 0.2044849777,
                                   -0.6941289901, 1.051991035, 0.0351188692});
}

TEST_CASE("linear blocks: bias, activation, two products at once") {
  Tensor x = sequence({2, 3}), w = sequence({3, 2}, 0.5), b = doubles({2}, {0.5, -0.25});
  const std::vector<double> expected{0.9438709008, -0.0296926457, -0.1447575448, 0.3457312306};
  expect_close(run_op(ops::Linear{ActivationKind::Gelu, true}, {x, w, b})[0], expected);
  expect_close(run_op(ops::LinearFused{ActivationKind::Gelu}, {x, w, b})[0], expected);
  auto pair = run_op(ops::SharedLinearPair{},
                     {doubles({1, 2}, {1, 2}), doubles({2, 1}, {3, 4}), doubles({2, 2}, {1, 0, 0, 1})});
  expect_close(pair[0], {11});
  expect_close(pair[1], {1, 2});
}

TEST_CASE("Direct emits fused ops, Fusable primitive chains") {
  const Graph direct = lowered(encoder(MaskKind::None), encoder_operands(), FusionPolicy::Direct);
  CHECK(count_ops(direct, OpKind::FusedDot) == 4);  // q, k and v in one matmul
  CHECK(count_ops(direct, OpKind::FusedResidualLN) == 2);
  CHECK(count_ops(direct, OpKind::MatMul) == 0);
  CHECK(count_ops(direct, OpKind::LayerNorm) == 0);
  const Graph fusable = lowered(encoder(MaskKind::None), encoder_operands(), FusionPolicy::Fusable);
  CHECK(count_ops(fusable, OpKind::FusedDot) == 0);
  CHECK(count_ops(fusable, OpKind::FusedResidualLN) == 0);
  CHECK(count_ops(fusable, OpKind::MatMul) == 6);
  CHECK(count_ops(fusable, OpKind::LayerNorm) == 2);
  const std::vector<Tensor> linear{sequence({2, 3}), sequence({3, 2}), sequence({2})};
  CHECK(count_ops(lowered(ops::LinearFused{}, linear, FusionPolicy::Fusable), OpKind::FusedDot) ==
        1);  // fused under either policy
}

TEST_CASE("block shape rules name the operand") {
  std::vector<Shape> shapes;
  for (const Tensor& t : encoder_operands()) shapes.push_back(t.shape());
  CHECK(infer_error(encoder(MaskKind::None), shapes).empty());
  CHECK(contains(infer_error(encoder(MaskKind::Custom), shapes), "ln2_gamma, ln2_beta, mask)"));
  auto wrong = shapes;
  wrong[13] = Shape({4, 4}, DType::F64);
  CHECK(contains(infer_error(encoder(MaskKind::None), wrong), "w_down must be [3, 4]"));
  wrong = shapes;
  wrong[11] = Shape({4}, DType::F64);
  CHECK(contains(infer_error(encoder(MaskKind::None), wrong), "w_up"));
  CHECK(contains(infer_error(ops::Linear{std::nullopt, true}, {Shape({2, 3}, DType::F32), Shape({3, 2}, DType::F32)}),
                 "bias"));
  CHECK(contains(infer_error(ops::Linear{std::nullopt, false}, {Shape({2, 3}, DType::F32), Shape({2, 3}, DType::F32)}),
                 "w must be [3, N]"));
  CHECK(contains(
      infer_error(ops::Linear{ActivationKind::Not, false}, {Shape({2, 3}, DType::F32), Shape({3, 2}, DType::F32)}),
      "not"));
}
