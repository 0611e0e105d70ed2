// Samples of FakeQuantizeLsq.
#include "rlx/ir/ops/quantize.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::FakeQuantizeLsq>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto scale = [](Dims dims, DType t = DType::F32) {
    return SampleInput(Shape(std::move(dims), t), Fill::Positive);
  };
  s.add_discrete("a tensor", {f32({2, 3}), scale({})}, ops::FakeQuantizeLsq{8, {}});
  s.add_discrete("a channel", {f32({2, 3, 2}), scale({3})}, ops::FakeQuantizeLsq{4, 1});
  s.add_discrete("two bits", {f32({5}), scale({5})}, ops::FakeQuantizeLsq{2, 0});
  s.add_discrete("bf16", {Shape({2, 4}, DType::BF16), scale({})}, ops::FakeQuantizeLsq{3, {}});
  s.add_discrete("f64", {Shape({3}, DType::F64), scale({}, DType::F64)}, ops::FakeQuantizeLsq{8, {}});
  s.add_discrete("no elements", {f32({0, 3}), scale({3})}, ops::FakeQuantizeLsq{8, 1});
  s.add_discrete("a scalar", {f32({}), scale({})}, ops::FakeQuantizeLsq{8, {}});
}

}  // namespace rlx::testing
