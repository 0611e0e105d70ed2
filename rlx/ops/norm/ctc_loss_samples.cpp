// Samples of CtcLoss.
#include "rlx/ir/ops/loss.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::CtcLoss>(SampleSet& s) {
  const auto index = [](Dims dims, std::int64_t bound, DType t = DType::I32) {
    return SampleInput(Shape(std::move(dims), t), Fill::Index, bound);
  };
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const ops::CtcLoss op{3};
  s.add("a batch", {f32({5, 2, 4}), index({2, 3}, 3), index({2}, 6), index({2}, 3)}, op);
  s.add("i64", {f32({4, 1, 4}), index({1, 2}, 3, DType::I64), index({1}, 5, DType::I64), index({1}, 2, DType::I64)},
        op);
  s.add("f64", {Shape({3, 2, 4}, DType::F64), index({2, 1}, 3), index({2}, 4), index({2}, 2)}, op);
  s.add_discrete("no targets", {f32({3, 2, 4}), index({2, 0}, 1), index({2}, 4), index({2}, 1)}, op);
  s.add_discrete("no steps", {f32({0, 2, 4}), index({2, 1}, 3), index({2}, 1), index({2}, 2)}, op);
  s.add_discrete("no elements", {f32({3, 0, 4}), index({0, 2}, 3), index({0}, 4), index({0}, 3)}, op);
  s.add_discrete("outside",
                 {f32({3, 6, 2}), SampleInput(Shape({6, 2}, DType::I32), Fill::Small),
                  SampleInput(Shape({6}, DType::I32), Fill::Small), SampleInput(Shape({6}, DType::I32), Fill::Small)},
                 ops::CtcLoss{0});
}

}  // namespace rlx::testing
