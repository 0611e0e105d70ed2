// Samples of Concat.
#include "rlx/ir/ops/shape.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Concat>(SampleSet& s) {
  s.add("vectors", {Shape({2}, DType::F32), Shape({3}, DType::F32)}, ops::Concat{0});
  s.add("columns", {Shape({2, 1}, DType::F32), Shape({2, 2}, DType::F32), Shape({2, 1}, DType::F32)}, ops::Concat{1});
  s.add("middle axis", {Shape({2, 1, 2}, DType::F64), Shape({2, 2, 2}, DType::F64)}, ops::Concat{1});
  s.add("one operand", {Shape({2, 2}, DType::F32)}, ops::Concat{0});
  s.add("with an empty one", {Shape({2, 0}, DType::F32), Shape({2, 2}, DType::F32)}, ops::Concat{1});
  s.add("half", {Shape({1}, DType::BF16), Shape({2}, DType::BF16)}, ops::Concat{0});
  s.add("complex", {Shape({1}, DType::C64), Shape({2}, DType::C64)}, ops::Concat{0});
  s.add_discrete(
      "i64", {SampleInput(Shape({1, 2}, DType::I64), Fill::Small), SampleInput(Shape({2, 2}, DType::I64), Fill::Small)},
      ops::Concat{0});
}

}  // namespace rlx::testing
