// Samples of SelectAndScatter.
#include "rlx/ir/ops/conv.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::SelectAndScatter>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto max = ReduceKind::Max, min = ReduceKind::Min;
  s.add("max by two", {f32({1, 2, 4, 6}), f32({1, 2, 2, 3})}, ops::SelectAndScatter{max, {1, 1, 2, 2}, {1, 1, 2, 2}});
  s.add("max three by three, padded", {f32({2, 5, 4}), f32({2, 3, 4})},
        ops::SelectAndScatter{max, {1, 3, 3}, {1, 2, 1}, {0, 1, 1}, {0, 1, 1}});
  s.add("min channels last", {f32({1, 5, 4, 3}), f32({1, 3, 4, 3})},
        ops::SelectAndScatter{min, {1, 3, 2, 1}, {1, 2, 1, 1}, {0, 1, 0, 0}, {0, 1, 1, 0}});
  s.add("min dilated", {f32({2, 9}), f32({2, 3})},
        ops::SelectAndScatter{min, {1, 3}, {1, 2}, {0, 2}, {0, 1}, {}, {1, 3}});
  s.add("max spread", {f32({4, 2}), f32({8, 2})}, ops::SelectAndScatter{max, {3, 1}, {1, 1}, {2, 0}, {1, 0}, {2, 1}});
  s.add("max windows of gaps", {f32({3}), f32({5})}, ops::SelectAndScatter{max, {2}, {2}, {4}, {3}});
  s.add("max of nothing", {f32({2, 0}), f32({2, 2})}, ops::SelectAndScatter{max, {1, 2}, {1, 1}, {0, 1}, {0, 2}});
  s.add("max smaller than a window", {f32({2, 2}), f32({2, 0})}, ops::SelectAndScatter{max, {1, 3}});
  s.add("max scalar", {f32({}), f32({})}, ops::SelectAndScatter{max, {}});
  s.add("max f64", {Shape({5}, DType::F64), Shape({3}, DType::F64)}, ops::SelectAndScatter{max, {2}, {2}, {1}, {0}});
  s.add("min f16", {Shape({6}, DType::F16), Shape({4}, DType::F16)}, ops::SelectAndScatter{min, {3}});
  s.add("max of integers", {SampleInput(Shape({6}, DType::I32), Fill::Small), f32({5})},
        ops::SelectAndScatter{max, {2}});
  s.add_discrete("max ties", {SampleInput(f32({1, 5, 5}), Fill::Small), f32({1, 5, 3})},
                 ops::SelectAndScatter{max, {1, 3, 3}, {1, 1, 2}, {0, 1, 1}, {0, 1, 1}});
  s.add_discrete("min ties, channels last", {SampleInput(f32({5, 5, 2}), Fill::Small), f32({5, 3, 2})},
                 ops::SelectAndScatter{min, {3, 3, 1}, {1, 2, 1}, {1, 1, 0}, {1, 1, 0}});
  s.add_discrete("max i32",
                 {SampleInput(Shape({6}, DType::I32), Fill::Small), SampleInput(Shape({4}, DType::I32), Fill::Small)},
                 ops::SelectAndScatter{max, {3}});
}

}  // namespace rlx::testing
