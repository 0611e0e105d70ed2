// Samples of Iota and DimSize.
#include "rlx/ir/ops/shape.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Iota>(SampleSet& s) {
  s.add_discrete("vector", {}, ops::Iota{{5}, DType::I32, 0});
  s.add_discrete("rows", {}, ops::Iota{{3, 2, 2}, DType::I64, 0});
  s.add_discrete("columns", {}, ops::Iota{{2, 3}, DType::F32, 1});
  s.add_discrete("bf16 middle", {}, ops::Iota{{2, 3, 2}, DType::BF16, 1});
  s.add_discrete("wraps", {}, ops::Iota{{300}, DType::U8, 0});
  s.add_discrete("no elements", {}, ops::Iota{{2, 0}, DType::I32, 1});
}

template <>
void samples<ops::DimSize>(SampleSet& s) {
  s.add_discrete("first", {Shape({2, 3}, DType::F32)}, ops::DimSize{0});
  s.add_discrete("last", {Shape({2, 3}, DType::BF16)}, ops::DimSize{1});
  s.add_discrete("empty", {{Shape({0}, DType::I32), Fill::Small}}, ops::DimSize{0});
}

}  // namespace rlx::testing
