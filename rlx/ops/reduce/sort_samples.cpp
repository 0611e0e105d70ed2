// Samples of Sort.
#include "rlx/ir/ops/indexing.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Sort>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto small = [](Dims dims, DType t) { return SampleInput(Shape(std::move(dims), t), Fill::Small); };
  s.add("vector", {f32({7})}, ops::Sort{});
  s.add("descending", {f32({7})}, ops::Sort{0, true});
  s.add("rows", {f32({2, 5})}, ops::Sort{1, false});
  s.add("columns with values", {Shape({4, 2}, DType::F64), Shape({4, 2}, DType::F64)}, ops::Sort{0, false});
  s.add("middle axis", {f32({2, 3, 2}), f32({2, 3, 2})}, ops::Sort{1, true});
  s.add("values of other dtypes",
        {f32({2, 4}), small({2, 4}, DType::I64), SampleInput(Shape({2, 4}, DType::Bool), Fill::Boolean)},
        ops::Sort{1, false});
  s.add("values of 4 bits", {f32({2, 5}), small({2, 5}, DType::I4)}, ops::Sort{1, false});
  s.add("complex values", {f32({2, 4}), Shape({2, 4}, DType::C64)}, ops::Sort{1, false});
  s.add("half", {Shape({5}, DType::F16)}, ops::Sort{});
  s.add("bf16", {Shape({5}, DType::BF16)}, ops::Sort{0, true});
  s.add("one", {f32({3, 1})}, ops::Sort{1, false});
  s.add_discrete("ties", {small({2, 9}, DType::F32), small({2, 9}, DType::I32)}, ops::Sort{1, false});
  s.add_discrete("ties, descending", {small({2, 9}, DType::F32), small({2, 9}, DType::I32)}, ops::Sort{1, true});
  s.add_discrete("i64", {small({6}, DType::I64)}, ops::Sort{0, true});
  s.add_discrete("u8", {SampleInput(Shape({6}, DType::U8), Fill::Index, 256)}, ops::Sort{});
  s.add_discrete("bool keys", {SampleInput(Shape({5}, DType::Bool), Fill::Boolean), small({5}, DType::I8)},
                 ops::Sort{});
  s.add_discrete("nothing", {f32({2, 0}), f32({2, 0})}, ops::Sort{1, false});
  s.add_discrete("no rows", {f32({0, 3})}, ops::Sort{1, false});
}

}  // namespace rlx::testing
