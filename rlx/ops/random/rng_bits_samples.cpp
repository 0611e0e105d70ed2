// Samples of RngBits.
#include "rlx/ir/ops/random.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::RngBits>(SampleSet& s) {
  const auto key = [](Dims dims) { return SampleInput(Shape(std::move(dims), DType::U32), Fill::Index, 1 << 30); };
  const auto first = [](Dims dims) { return SampleInput(Shape(std::move(dims), DType::U64), Fill::Index, 1 << 30); };
  s.add_discrete("u32", {key({2})}, ops::RngBits{{3, 5}, DType::U32});
  s.add_discrete("u64", {key({2})}, ops::RngBits{{7}, DType::U64});
  s.add_discrete("u16 of keys", {key({3, 2})}, ops::RngBits{{4}, DType::U16});
  s.add_discrete("u8", {key({2})}, ops::RngBits{{9}, DType::U8});
  s.add_discrete("scalar", {key({2})}, ops::RngBits{{}, DType::U32});
  s.add_discrete("from a place on", {key({2}), first({})}, ops::RngBits{{5}, DType::U32});
  s.add_discrete("places of keys", {key({2, 3, 2}), first({2, 3})}, ops::RngBits{{2}, DType::U64});
  s.add_discrete("one place for all keys", {key({2, 3, 2}), first({})}, ops::RngBits{{2}, DType::U32});
  s.add_discrete("no keys", {key({0, 2})}, ops::RngBits{{3}, DType::U32});
  s.add_discrete("no elements", {key({2})}, ops::RngBits{{0, 3}, DType::U32});
}

}  // namespace rlx::testing
