// Samples of Linear, LinearFused, SharedLinearPair, EncoderBlock, ResidualRmsNorm and ResidualLayerNorm.
#include <optional>

#include "rlx/ir/ops/blocks.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

template <class Op>
void residual_block_samples(SampleSet& s) {
  const Shape x({2, 3, 4}, DType::F32), v({4}, DType::F32);
  s.add("rank 3", {x, x, v, v}, Op{1e-3});
  s.add("f64", {Shape({2, 3}, DType::F64), Shape({2, 3}, DType::F64), Shape({3}, DType::F64), Shape({3}, DType::F64)},
        Op{1e-5});
}

}  // namespace

template <>
void samples<ops::Linear>(SampleSet& s) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  s.add("plain", {f32({2, 3}), f32({3, 2})}, ops::Linear{std::nullopt, false});
  s.add("bias", {f32({2, 2, 3}), f32({3, 2}), f32({2})}, ops::Linear{std::nullopt, true});
  s.add("bias gelu", {f32({2, 3}), f32({3, 4}), f32({4})}, ops::Linear{ActivationKind::Gelu, true});
  s.add("tanh", {f32({2, 3}), f32({3, 4})}, ops::Linear{ActivationKind::Tanh, false});
  s.add("vector", {f32({3}), f32({3, 2}), f32({2})}, ops::Linear{std::nullopt, true});
  s.add("no rows", {f32({0, 3}), f32({3, 2}), f32({2})}, ops::Linear{ActivationKind::Silu, true});
}

template <>
void samples<ops::LinearFused>(SampleSet& s) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  s.add("bias", {f32({2, 3}), f32({3, 2}), f32({2})}, ops::LinearFused{std::nullopt});
  s.add("gelu", {f32({2, 2, 3}), f32({3, 2}), f32({2})}, ops::LinearFused{ActivationKind::Gelu});
}

template <>
void samples<ops::SharedLinearPair>(SampleSet& s) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  s.add("different widths", {f32({2, 3}), f32({3, 2}), f32({3, 4})}, ops::SharedLinearPair{});
  s.add("rank 3", {f32({2, 1, 3}), f32({3, 2}), f32({3, 2})}, ops::SharedLinearPair{});
}

template <>
void samples<ops::EncoderBlock>(SampleSet& s) {
  auto in = [](int batch, int seq, int e, int inner, int ffn, DType t) {
    const Shape wide({inner}, t), vec({e}, t);
    std::vector<SampleInput> v{Shape({batch, seq, e}, t)};
    for (int i = 0; i < 3; ++i) {
      v.push_back(Shape({e, inner}, t));
      v.push_back(wide);
    }
    for (const Shape& shape :
         {Shape({inner, e}, t), vec, vec, vec, Shape({e, ffn}, t), Shape({ffn}, t), Shape({ffn, e}, t), vec, vec, vec})
      v.push_back(shape);
    return v;
  };
  ops::EncoderBlock op;
  op.num_heads = 2, op.head_dim = 2, op.eps = 1e-3;
  s.add("plain", in(1, 2, 3, 4, 5, DType::F64), op);
  op.mask = MaskKind::Custom;
  auto masked = in(2, 2, 4, 4, 3, DType::F32);
  masked.push_back(SampleInput(Shape({2, 1, 1, 2}, DType::F32), Fill::Boolean));
  s.add("mask", std::move(masked), op);
}

template <>
void samples<ops::ResidualRmsNorm>(SampleSet& s) {
  residual_block_samples<ops::ResidualRmsNorm>(s);
}

template <>
void samples<ops::ResidualLayerNorm>(SampleSet& s) {
  residual_block_samples<ops::ResidualLayerNorm>(s);
}

}  // namespace rlx::testing
