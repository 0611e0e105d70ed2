// Samples of Transpose.
#include "rlx/ir/ops/shape.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Transpose>(SampleSet& s) {
  s.add("matrix", {Shape({2, 3}, DType::F32)}, ops::Transpose{{1, 0}});
  s.add("rotate", {Shape({2, 3, 4}, DType::F32)}, ops::Transpose{{2, 0, 1}});
  s.add("heads", {Shape({1, 2, 3, 2}, DType::F64)}, ops::Transpose{{0, 2, 1, 3}});
  s.add("identity", {Shape({2, 2}, DType::F32)}, ops::Transpose{{0, 1}});
  s.add("scalar", {Shape({}, DType::F32)}, ops::Transpose{});
  s.add("half", {Shape({3, 2}, DType::F16)}, ops::Transpose{{1, 0}});
  s.add("complex", {Shape({3, 2}, DType::C128)}, ops::Transpose{{1, 0}});
  s.add_discrete("empty", {Shape({0, 3}, DType::F32)}, ops::Transpose{{1, 0}});
  s.add_discrete("i8", {SampleInput(Shape({2, 3}, DType::I8), Fill::Small)}, ops::Transpose{{1, 0}});
}

}  // namespace rlx::testing
