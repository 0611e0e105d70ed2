// Samples of Clamp and StopGradient.
#include "rlx/ir/ops/elementwise.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Clamp>(SampleSet& s) {
  auto in = [](Dims dims, DType t, Fill fill = Fill::Normal) { return SampleInput(Shape(std::move(dims), t), fill); };
  s.add("scalar bounds", {in({2, 4}, DType::F32), in({}, DType::F32, Fill::Unit), in({}, DType::F32, Fill::Positive)},
        ops::Clamp{});
  s.add("row bounds", {in({2, 3}, DType::F64), in({3}, DType::F64), in({2, 1}, DType::F64)}, ops::Clamp{});
  s.add("bounds stretch x", {in({1}, DType::F32), in({2, 1}, DType::F32), in({3}, DType::F32)}, ops::Clamp{});
  s.add("no elements", {in({0, 2}, DType::F32), in({}, DType::F32), in({2}, DType::F32)}, ops::Clamp{});
  s.add_discrete("i32",
                 {in({7}, DType::I32, Fill::Small), in({}, DType::I32, Fill::Small), in({7}, DType::I32, Fill::Small)},
                 ops::Clamp{});
  s.add_discrete("bf16", {in({4}, DType::BF16), in({}, DType::BF16, Fill::Unit), in({}, DType::BF16, Fill::Positive)},
                 ops::Clamp{});
}

template <>
void samples<ops::StopGradient>(SampleSet& s) {
  // The derivative is zero by definition, so finite differences do not apply.
  s.add_discrete("f32", {Shape({2, 3}, DType::F32)}, ops::StopGradient{});
  s.add_discrete("i64", {{Shape({}, DType::I64), Fill::Small}}, ops::StopGradient{});
  s.add_discrete("no elements", {Shape({0}, DType::F32)}, ops::StopGradient{});
}

}  // namespace rlx::testing
