// Samples of SoftmaxCrossEntropy.
#include "rlx/ir/ops/loss.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::SoftmaxCrossEntropy>(SampleSet& s) {
  const auto classes = [](Dims dims, std::int64_t n, DType t = DType::I32) {
    return SampleInput(Shape(std::move(dims), t), Fill::Index, n);
  };
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto weights = [](Dims dims) { return SampleInput(Shape(std::move(dims), DType::F32), Fill::Positive); };
  const ops::SoftmaxCrossEntropy op{};
  s.add("rows", {f32({3, 5}), classes({3}, 5)}, op);
  s.add("i64", {f32({2, 3, 4}), classes({2, 3}, 4, DType::I64)}, op);
  s.add("a row", {f32({7}), classes({}, 7)}, op);
  s.add("one class", {f32({2, 1}), classes({2}, 1)}, op);
  s.add("distributions", {f32({3, 4}), weights({3, 4})}, op);
  s.add("a distribution", {f32({5}), weights({5})}, op);
  s.add("f64", {Shape({2, 3}, DType::F64), classes({2}, 3)}, op);
  s.add("bf16", {Shape({2, 6}, DType::BF16), classes({2}, 6)}, op);
  s.add("f16", {Shape({2, 6}, DType::F16), classes({2}, 6)}, op);
  s.add_discrete("no rows", {f32({0, 3}), classes({0}, 3)}, op);
  s.add_discrete("no classes", {f32({2, 0}), classes({2}, 1)}, op);
  s.add_discrete("classes outside", {f32({5, 2}), SampleInput(Shape({5}, DType::I32), Fill::Small)}, op);
}

}  // namespace rlx::testing
