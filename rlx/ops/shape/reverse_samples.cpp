// Samples of Reverse.
#include "rlx/ir/ops/shape.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Reverse>(SampleSet& s) {
  s.add("vector", {Shape({3}, DType::F32)}, ops::Reverse{{0}});
  s.add("one of two", {Shape({2, 3}, DType::F32)}, ops::Reverse{{1}});
  s.add("both", {Shape({2, 3}, DType::F64)}, ops::Reverse{{0, 1}});
  s.add("none", {Shape({2}, DType::F32)}, ops::Reverse{});
  s.add("half", {Shape({3}, DType::F16)}, ops::Reverse{{0}});
  s.add("complex", {Shape({3}, DType::C64)}, ops::Reverse{{0}});
  s.add_discrete("empty", {Shape({0, 2}, DType::F32)}, ops::Reverse{{0, 1}});
  s.add_discrete("u8", {SampleInput(Shape({4}, DType::U8), Fill::Index, 200)}, ops::Reverse{{0}});
}

}  // namespace rlx::testing
