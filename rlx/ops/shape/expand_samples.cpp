// Samples of Expand.
#include "rlx/ir/ops/shape.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Expand>(SampleSet& s) {
  s.add("rows", {Shape({3}, DType::F32)}, ops::Expand{{2, 3}});
  s.add("columns", {Shape({2, 1}, DType::F32)}, ops::Expand{{2, 3}});
  s.add("both", {Shape({1, 3, 1}, DType::F64)}, ops::Expand{{2, 2, 3, 2}});
  s.add("scalar", {Shape({}, DType::F32)}, ops::Expand{{2, 2}});
  s.add("nothing to do", {Shape({2}, DType::F32)}, ops::Expand{{2}});
  s.add("half", {Shape({1}, DType::BF16)}, ops::Expand{{3}});
  s.add("complex", {Shape({1, 2}, DType::C64)}, ops::Expand{{2, 2}});
  s.add_discrete("to empty", {Shape({1, 2}, DType::F32)}, ops::Expand{{0, 2}});
  s.add_discrete("bool", {SampleInput(Shape({2, 1}, DType::Bool), Fill::Boolean)}, ops::Expand{{2, 2}});
}

}  // namespace rlx::testing
