// Samples of DynamicSlice and DynamicUpdateSlice.
#include "rlx/ir/ops/indexing.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::DynamicSlice>(SampleSet& s) {
  const Shape one({1}, DType::I32), two({2}, DType::I64);
  s.add("vector", {Shape({5}, DType::F32), SampleInput(one, Fill::Index, 3)}, ops::DynamicSlice{{2}});
  s.add("matrix", {Shape({3, 4}, DType::F32), SampleInput(two, Fill::Index, 2)}, ops::DynamicSlice{{2, 3}});
  s.add("clamped", {Shape({3, 4}, DType::F64), SampleInput(two, Fill::Small)}, ops::DynamicSlice{{3, 2}});
  s.add("whole", {Shape({2, 2}, DType::F32), SampleInput(two, Fill::Small)}, ops::DynamicSlice{{2, 2}});
  s.add("scalar", {Shape({}, DType::F32), SampleInput(Shape({0}, DType::I32), Fill::Index)}, ops::DynamicSlice{});
  s.add("half", {Shape({4}, DType::F16), SampleInput(one, Fill::Index, 4)}, ops::DynamicSlice{{2}});
  s.add_discrete("empty window", {Shape({3}, DType::F32), SampleInput(one, Fill::Index, 3)}, ops::DynamicSlice{{0}});
  s.add_discrete("i32", {SampleInput(Shape({4}, DType::I32), Fill::Small), SampleInput(one, Fill::Index, 4)},
                 ops::DynamicSlice{{3}});
}

template <>
void samples<ops::DynamicUpdateSlice>(SampleSet& s) {
  const Shape one({1}, DType::I32), two({2}, DType::I64);
  s.add("vector", {Shape({5}, DType::F32), Shape({2}, DType::F32), SampleInput(one, Fill::Index, 4)},
        ops::DynamicUpdateSlice{});
  s.add("matrix", {Shape({3, 4}, DType::F64), Shape({2, 3}, DType::F64), SampleInput(two, Fill::Small)},
        ops::DynamicUpdateSlice{});
  s.add("whole", {Shape({2, 2}, DType::F32), Shape({2, 2}, DType::F32), SampleInput(two, Fill::Small)},
        ops::DynamicUpdateSlice{});
  s.add("empty update", {Shape({3}, DType::F32), Shape({0}, DType::F32), SampleInput(one, Fill::Index, 3)},
        ops::DynamicUpdateSlice{});
  s.add("scalar", {Shape({}, DType::F32), Shape({}, DType::F32), SampleInput(Shape({0}, DType::I32), Fill::Index)},
        ops::DynamicUpdateSlice{});
  s.add("half", {Shape({4}, DType::BF16), Shape({2}, DType::BF16), SampleInput(one, Fill::Index, 3)},
        ops::DynamicUpdateSlice{});
  s.add_discrete("i64",
                 {SampleInput(Shape({4}, DType::I64), Fill::Small), SampleInput(Shape({1}, DType::I64), Fill::Small),
                  SampleInput(one, Fill::Index, 4)},
                 ops::DynamicUpdateSlice{});
}

}  // namespace rlx::testing
