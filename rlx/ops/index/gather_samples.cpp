// Samples of Gather.
#include "rlx/ir/ops/indexing.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Gather>(SampleSet& s) {
  const Shape ids({3}, DType::I32);
  const auto i32 = [](Dims dims, std::int64_t bound) {
    return SampleInput(Shape(std::move(dims), DType::I32), Fill::Index, bound);
  };
  const auto i64 = [](Dims dims, std::int64_t bound) {
    return SampleInput(Shape(std::move(dims), DType::I64), Fill::Index, bound);
  };
  const auto outside = [](Dims dims) { return SampleInput(Shape(std::move(dims), DType::I32), Fill::Small); };
  const auto filled = [](std::vector<std::int64_t> axes, double value) {
    return ops::Gather{std::move(axes), IndexMode::Fill, value};
  };
  s.add("rows", {Shape({4, 2}, DType::F32), i32({3}, 4)}, ops::Gather{{0}});
  s.add("matrix of ids", {Shape({4, 2}, DType::F32), i64({2, 3}, 4)}, ops::Gather{{0}});
  s.add("columns", {Shape({2, 4}, DType::F64), i32({3}, 4)}, ops::Gather{{1}});
  s.add("middle axis", {Shape({2, 3, 2}, DType::F32), i32({2, 1}, 3)}, ops::Gather{{1}});
  s.add("scalar id", {Shape({3, 2}, DType::F32), i64({}, 3)}, ops::Gather{{0}});
  s.add("clamped", {Shape({2, 2}, DType::F32), outside({6})}, ops::Gather{{0}});
  s.add("filled", {Shape({2, 2}, DType::F32), outside({6})}, filled({0}, -2.5));
  s.add("half", {Shape({3}, DType::BF16), i32({3}, 3)}, ops::Gather{{0}});
  s.add("complex", {Shape({3}, DType::C64), i32({3}, 3)}, ops::Gather{{0}});
  s.add("elements", {Shape({3, 4}, DType::F32), i32({5}, 3), i64({5}, 4)}, ops::Gather{{0, 1}});
  s.add("elements, filled", {Shape({2, 2}, DType::F32), outside({7}), outside({7})}, filled({0, 1}, 0));
  s.add("axes apart", {Shape({3, 2, 4, 2}, DType::F32), i32({2, 2}, 3), i32({2, 2}, 4)}, ops::Gather{{0, 2}});
  s.add("last axes", {Shape({2, 3, 3}, DType::F64), outside({4}), i32({4}, 3)}, ops::Gather{{1, 2}});
  s.add_discrete("no ids", {Shape({3, 2}, DType::F32), i32({0}, 3)}, ops::Gather{{0}});
  s.add_discrete("of nothing, filled", {Shape({0, 2}, DType::F32), outside({3})}, filled({0}, 1));
  s.add_discrete("i64 table", {SampleInput(Shape({3, 2}, DType::I64), Fill::Small), i32({3}, 2)}, ops::Gather{{1}});
  s.add_discrete("i8, filled", {SampleInput(Shape({3, 2}, DType::I8), Fill::Small), outside({5})}, filled({1}, -128));
  s.add_discrete("bool table", {SampleInput(Shape({3}, DType::Bool), Fill::Boolean), i32({3}, 3)}, ops::Gather{{0}});
  s.add_discrete("bool, filled", {SampleInput(Shape({3}, DType::Bool), Fill::Boolean), outside({5})}, filled({0}, 1));
}

}  // namespace rlx::testing
