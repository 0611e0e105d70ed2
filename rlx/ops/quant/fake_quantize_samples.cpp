// Samples of FakeQuantize.
#include <optional>

#include "rlx/ir/ops/quantize.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::FakeQuantize>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto scale = [](Dims dims, DType t = DType::F32) {
    return SampleInput(Shape(std::move(dims), t), Fill::Positive);
  };
  const auto op = [](std::int64_t bits, ScaleMode mode, StraightThrough ste, std::optional<std::int64_t> axis = {}) {
    return ops::FakeQuantize{bits, axis, ste, mode, 0.75};
  };
  // Straight-through derivatives differ from finite differences by design. Unit tests check their values.
  s.add_discrete("batch, 8 bits", {f32({2, 3})}, op(8, ScaleMode::PerBatch, StraightThrough::ClippedIdentity));
  s.add_discrete("batch, 4 bits, a channel", {f32({2, 3, 2})},
                 op(4, ScaleMode::PerBatch, StraightThrough::Identity, 1));
  s.add_discrete("ema", {f32({2, 3}), scale({})}, op(8, ScaleMode::Ema, StraightThrough::Tanh));
  s.add_discrete("ema, a channel", {f32({2, 3}), {f32({3}), Fill::Unit}},
                 op(3, ScaleMode::Ema, StraightThrough::HardTanh, 1));
  s.add_discrete("fixed", {f32({2, 3}), scale({})}, op(2, ScaleMode::Fixed, StraightThrough::ClippedIdentity));
  s.add_discrete("fixed, tanh", {f32({2, 3}), scale({2})}, op(2, ScaleMode::Fixed, StraightThrough::Tanh, 0));
  s.add_discrete("learned", {f32({2, 3}), scale({})}, op(2, ScaleMode::Learned, StraightThrough::ClippedIdentity));
  s.add_discrete("learned, a channel", {f32({2, 3}), scale({3})},
                 op(4, ScaleMode::Learned, StraightThrough::HardTanh, 1));
  s.add_discrete("bf16", {Shape({2, 4}, DType::BF16)}, op(8, ScaleMode::PerBatch, StraightThrough::ClippedIdentity));
  s.add_discrete("f64", {Shape({3}, DType::F64), scale({}, DType::F64)},
                 op(8, ScaleMode::Learned, StraightThrough::Identity));
  s.add_discrete("no elements", {f32({0, 3})}, op(8, ScaleMode::PerBatch, StraightThrough::ClippedIdentity, 1));
  s.add_discrete("a scalar", {f32({})}, op(8, ScaleMode::PerBatch, StraightThrough::ClippedIdentity));
}

}  // namespace rlx::testing
