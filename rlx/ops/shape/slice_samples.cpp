// Samples of Slice.
#include "rlx/ir/ops/shape.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Slice>(SampleSet& s) {
  s.add("middle", {Shape({5}, DType::F32)}, ops::Slice{{1}, {4}, {1}});
  s.add("strided", {Shape({7, 3}, DType::F32)}, ops::Slice{{1, 0}, {7, 3}, {3, 2}});
  s.add("all", {Shape({2, 3}, DType::F64)}, ops::Slice{{0, 0}, {2, 3}, {1, 1}});
  s.add("narrow", {Shape({2, 4, 2}, DType::F32)}, ops::Slice{{0, 3, 0}, {2, 4, 2}, {1, 1, 1}});
  s.add("stride past the end", {Shape({3}, DType::F32)}, ops::Slice{{0}, {3}, {9}});
  s.add("scalar", {Shape({}, DType::F32)}, ops::Slice{});
  s.add("half", {Shape({4}, DType::F16)}, ops::Slice{{0}, {4}, {2}});
  s.add("complex", {Shape({4}, DType::C64)}, ops::Slice{{1}, {3}, {1}});
  s.add_discrete("empty", {Shape({3, 2}, DType::F32)}, ops::Slice{{3, 0}, {3, 2}, {1, 1}});
  s.add_discrete("i32", {SampleInput(Shape({6}, DType::I32), Fill::Small)}, ops::Slice{{0}, {5}, {2}});
  s.add_discrete("bool", {SampleInput(Shape({3}, DType::Bool), Fill::Boolean)}, ops::Slice{{1}, {3}, {1}});
}

}  // namespace rlx::testing
