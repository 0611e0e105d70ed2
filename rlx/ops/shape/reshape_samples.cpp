// Samples of Reshape.
#include "rlx/ir/ops/shape.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Reshape>(SampleSet& s) {
  s.add("flatten", {Shape({2, 3}, DType::F32)}, ops::Reshape{{6}});
  s.add("split", {Shape({2, 6}, DType::F64)}, ops::Reshape{{2, 3, 2}});
  s.add("ones", {Shape({2, 3}, DType::F32)}, ops::Reshape{{1, 2, 1, 3, 1}});
  s.add("to scalar", {Shape({1, 1}, DType::F32)}, ops::Reshape{{}});
  s.add("from scalar", {Shape({}, DType::F32)}, ops::Reshape{{1}});
  s.add("half", {Shape({4}, DType::BF16)}, ops::Reshape{{2, 2}});
  s.add("complex", {Shape({4}, DType::C64)}, ops::Reshape{{2, 2}});
  s.add_discrete("empty", {Shape({0, 3}, DType::F32)}, ops::Reshape{{5, 0}});
  s.add_discrete("i64", {SampleInput(Shape({2, 2}, DType::I64), Fill::Small)}, ops::Reshape{{4, 1}});
  s.add_discrete("bool", {SampleInput(Shape({3, 2}, DType::Bool), Fill::Boolean)}, ops::Reshape{{2, 3}});
}

}  // namespace rlx::testing
