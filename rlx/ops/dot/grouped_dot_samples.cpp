// Samples of GroupedDot.
#include "rlx/ir/ops/linalg.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::GroupedDot>(SampleSet& s) {
  const ops::GroupedDot rows{GroupedKind::Rows, 0};
  const auto contract = [](std::int64_t groups) { return ops::GroupedDot{GroupedKind::Contract, groups}; };
  const auto ids = [](std::int64_t m, std::int64_t groups) {
    return SampleInput(Shape({m}, DType::I32), Fill::Index, groups);
  };
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const SampleInput outside(Shape({6}, DType::I64), Fill::Small);
  s.add("rows", {f32({5, 3}), f32({4, 3, 2}), ids(5, 4)}, rows);
  s.add("rows of no group", {f32({6, 3}), f32({2, 3, 2}), outside}, rows);
  s.add("one row", {f32({1, 2}), f32({3, 2, 2}), ids(1, 3)}, rows);
  s.add("depth 0", {f32({2, 0}), f32({3, 0, 2}), ids(2, 3)}, rows);
  s.add("rows in bf16", {Shape({4, 3}, DType::BF16), Shape({2, 3, 2}, DType::BF16), ids(4, 2)}, rows);
  s.add("sums", {f32({5, 3}), f32({5, 2}), ids(5, 4)}, contract(4));
  s.add("sums without some rows", {Shape({6, 3}, DType::F64), Shape({6, 2}, DType::F64), outside}, contract(2));
  s.add_discrete("no rows", {f32({0, 3}), f32({2, 3, 2}), ids(0, 1)}, rows);
  s.add_discrete("sums of no rows", {f32({0, 3}), f32({0, 2}), ids(0, 1)}, contract(2));
  s.add_discrete("rows, i32",
                 {SampleInput(Shape({4, 3}, DType::I32), Fill::Small),
                  SampleInput(Shape({2, 3, 2}, DType::I32), Fill::Small), ids(4, 2)},
                 rows);
  s.add_discrete("sums, c64", {Shape({4, 3}, DType::C64), Shape({4, 2}, DType::C64), ids(4, 2)}, contract(2));
}

}  // namespace rlx::testing
