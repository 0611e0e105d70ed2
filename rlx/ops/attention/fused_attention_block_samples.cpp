// Samples of FusedAttentionBlock.
#include "rlx/ir/ops/fused.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::FusedAttentionBlock>(SampleSet& s) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  ops::FusedAttentionBlock op;
  op.num_heads = 2, op.kv_heads = 2, op.head_dim = 2;
  s.add("plain", {f32({1, 3, 3}), f32({3, 12}), f32({4, 2})}, op);
  op.has_bias = true;
  s.add("bias", {f32({2, 2, 3}), f32({3, 12}), f32({4, 3}), f32({12}), f32({3})}, op);
  op.mask = MaskKind::Custom;
  s.add("bias and mask",
        {f32({2, 2, 3}), f32({3, 12}), f32({4, 3}), f32({12}), f32({3}),
         SampleInput(Shape({2, 1, 1, 2}, DType::Bool), Fill::Boolean)},
        op);
  op.has_bias = false, op.mask = MaskKind::Causal, op.kv_heads = 1, op.scale = 0.4, op.softcap = 2.0;
  s.add("grouped, causal, scale, softcap", {f32({1, 3, 2}), f32({2, 8}), f32({4, 2})}, op);
  op.mask = MaskKind::Bias, op.scale.reset(), op.softcap.reset();
  s.add("score bias", {f32({1, 2, 2}), f32({2, 8}), f32({4, 2}), f32({2, 2, 2})}, op);
  op.mask = MaskKind::SlidingWindow, op.window = 1;
  s.add("window", {f32({1, 3, 2}), f32({2, 8}), f32({4, 2})}, op);
  op.mask = MaskKind::Causal, op.window = 0, op.has_rope = true;
  s.add("rotated", {f32({1, 3, 2}), f32({2, 8}), f32({4, 2}), f32({3, 1}), f32({3, 1})}, op);
  op.pairing = RopePairing::Interleaved, op.head_dim = 4, op.n_rot = 2, op.has_bias = true;
  s.add("rotated in part, bias",
        {f32({1, 3, 2}), f32({2, 16}), f32({8, 2}), f32({16}), f32({2}), f32({3, 2}), f32({3, 2})}, op);
}

}  // namespace rlx::testing
