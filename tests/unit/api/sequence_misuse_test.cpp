// Misuse of recurrent layers and model layers.
#include "rlx/functions/blocks.h"
#include "rlx/functions/sequence.h"
#include "rlx/ir/ops/sequence.h"
#include "rlx/runtime/subgraph_cache.h"
#include "tests/unit/api/misuse.h"

namespace rlx {
namespace {

const Shape kSteps3({3, 2, 4}, DType::F32), kMatrix83({8, 3}, DType::F32);

TEST_CASE("misuse: recurrences and scans") {
  Graph g("g"), other("other");
  const Expr x = g.input("x", kSteps3), w = g.input("w", kMatrix83), far = other.input("x", kSteps3), dead{};
  const nn::RecurrentWeights wrong{w, w, {}, {}};
  REFUSED("takes (", g.rnn(ops::Rnn{}, {}));
  REFUSED("takes (", g.gru(ops::Gru{}, {x}));
  REFUSED("r must be", g.lstm(ops::Lstm{}, {x, x}));
  REFUSED("takes (", g.selective_scan(ops::SelectiveScan{}, {x, x}));
  REFUSED("takes (", g.mamba2(ops::Mamba2{}, {}));
  REFUSED("belongs to graph 'other'", g.gated_delta_net(ops::GatedDeltaNet{}, {far, far, far, far, far}));
  REFUSED("must be", nn::lstm(x, {wrong}));
  const nn::RecurrentWeights narrow{w, g.input("r", Shape({8, 2}, DType::F32)), {}, {}};
  REFUSED("w must be [1, 8, 4] for x [3, 2, 4] f32 of 4 features, got [1, 8, 3] f32", nn::lstm(x, {narrow}));
  REFUSED("the weights have 0 entries", nn::gru(x, {}));
  REFUSED("x must be a value of a graph", nn::rnn(1.0, {wrong}));
  REFUSED("must be", nn::lstm_cell(w, w, w, wrong));
  REFUSED("does not hold 3 gates", nn::gru_cell(w, w, wrong));
  REFUSED("x must be a value of a graph", nn::rnn_cell(1.0, w, wrong));
  REFUSED("belongs to graph 'other'", nn::selective_scan(x, far, x, x, x));
  REFUSED("x must be [B, S, H, P]", nn::mamba2(x, x, x, x, x));
  REFUSED("q must be [B, S, G, K]", nn::gated_delta_net(x, x, x, x, x));
  REFUSED("w is [8, 3]", nn::causal_conv1d(x, w));
  CHECK_FALSE(test::error_text([&] { (void)nn::causal_conv1d(x, dead); }).empty());
}

TEST_CASE("misuse: pieces of models") {
  Graph g("g");
  const Expr x = g.input("x", kSteps3), w = g.input("w", kMatrix83);
  REFUSED("w must be", nn::linear_bias(x, w, w));
  REFUSED("w must be", nn::linear_bias_act(x, w, w, ActivationKind::Relu));
  REFUSED("w1 must be", nn::shared_matmul_pair(x, w, w));
  REFUSED("columns", nn::swiglu_ffn(x, w, w, w));
  CHECK_FALSE(test::error_text([&] { (void)nn::fused_swiglu_ffn(x, w, w); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)nn::lora_matmul(x, w, w, w, 1.0); }).empty());
  REFUSED("x must be a value of a graph", nn::rope_n(1.0, x, x, 4, 4));
  REFUSED("head_dim must be a multiple of 4", nn::axial_rope2d(x, {1, 1, 6, 1, 1e4, 1}));
  REFUSED("is not a kind of attention mask", nn::attention_kind("sliding:"));
  REFUSED("left_pad must be a value of a graph", nn::depthwise_conv1d_causal(x, w, 1.0));
  REFUSED("embed is missing", nn::qwen35_mtp_head({}));
}

TEST_CASE("misuse: branches and loops of the host") {
  Graph one("one"), other("one"), none("none");
  one.set_outputs({one.neg(one.input("x", kMatrix83))});
  other.set_outputs({other.abs(other.input("x", kMatrix83))});
  const Session session;
  SubgraphCache cache;
  (void)cache.get(session, one);
  REFUSED("another graph called 'one'", cache.get(session, other));
  const Tensor two = Tensor::zeros(Shape({2}, DType::F32)), yes = Tensor::scalar(DType::F32, 1);
  REFUSED("must have one element", run_if(cache, session, two, one, one, {}));
  CHECK_FALSE(test::error_text([&] { (void)run_if(cache, session, Tensor(), one, one, {}); }).empty());
  REFUSED("an input 'x'", run_if(cache, session, yes, one, one, {}));
  REFUSED("got 1 values for 0 names", run_while(cache, session, one, one, {two}, {}));
  REFUSED("has no output", run_while(cache, session, none, one, {two}, {"x"}));
}

}  // namespace
}  // namespace rlx
