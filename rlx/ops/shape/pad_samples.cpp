// Samples of Pad.
#include "rlx/ir/ops/shape.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Pad>(SampleSet& s) {
  const Shape value({}, DType::F32);
  s.add("around", {Shape({2, 3}, DType::F32), value}, ops::Pad{{1, 0}, {0, 2}, {0, 0}});
  s.add("between", {Shape({3}, DType::F32), value}, ops::Pad{{0}, {0}, {2}});
  s.add("crop", {Shape({5}, DType::F32), value}, ops::Pad{{-1}, {-2}, {0}});
  s.add("crop, pad and spread", {Shape({4, 3}, DType::F64), Shape({}, DType::F64)}, ops::Pad{{-1, 2}, {3, -1}, {1, 2}});
  s.add("empty operand", {Shape({0, 2}, DType::F32), value}, ops::Pad{{1, 0}, {1, 0}, {3, 0}});
  s.add("to nothing", {Shape({2}, DType::F32), value}, ops::Pad{{-1}, {-1}, {0}});
  s.add("scalar", {Shape({}, DType::F32), value}, ops::Pad{});
  s.add("half", {Shape({2}, DType::BF16), Shape({}, DType::BF16)}, ops::Pad{{1}, {1}, {1}});
  s.add("complex", {Shape({2}, DType::C64), Shape({}, DType::C64)}, ops::Pad{{1}, {0}, {0}});
  s.add_discrete("i32",
                 {SampleInput(Shape({2}, DType::I32), Fill::Small), SampleInput(Shape({}, DType::I32), Fill::Small)},
                 ops::Pad{{0}, {2}, {1}});
  s.add_discrete(
      "bool", {SampleInput(Shape({2}, DType::Bool), Fill::Boolean), SampleInput(Shape({}, DType::Bool), Fill::Boolean)},
      ops::Pad{{1}, {1}, {0}});
}

}  // namespace rlx::testing
