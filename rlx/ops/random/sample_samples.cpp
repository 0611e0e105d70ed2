// Samples of Sample.
#include "rlx/ir/ops/random.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Sample>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto positive = [&](Dims dims) { return SampleInput(f32(std::move(dims)), Fill::Positive); };
  const auto k = [](Dims dims, std::int64_t bound) {
    return SampleInput(Shape(std::move(dims), DType::I32), Fill::Index, bound);
  };
  const auto unit = [&](Dims dims) { return SampleInput(f32(std::move(dims)), Fill::Boolean); };
  const auto key = [](std::int64_t b) {
    return SampleInput(Shape({b, 2}, DType::U32), Fill::Index, std::int64_t{1} << 32);
  };
  const auto with = [](std::uint32_t bits) {
    ops::Sample op;
    op.present.bits = bits;
    return op;
  };
  s.add_discrete("one for all", {f32({2, 7}), positive({}), k({}, 1), positive({}), key(2)}, with(0));
  s.add_discrete("greedy or not", {f32({3, 7}), unit({3}), k({3}, 4), positive({3}), key(3)}, with(0));
  s.add_discrete("min_p", {f32({2, 5}), positive({2}), k({}, 1), positive({}), key(2), unit({})}, with(1U << 5));
  s.add_discrete("masked",
                 {f32({2, 40}), positive({}), k({2}, 9), positive({2}), key(2),
                  SampleInput(Shape({2, 2}, DType::U32), Fill::Index, std::int64_t{1} << 32)},
                 with(1U << 6));
  s.add_discrete("bf16", {Shape({2, 9}, DType::BF16), positive({}), k({}, 3), positive({}), key(2)}, with(0));
  s.add_discrete("f64", {Shape({2, 9}, DType::F64), positive({}), k({}, 3), positive({}), key(2)}, with(0));
  s.add_discrete("no rows", {f32({0, 9}), positive({}), k({}, 3), positive({}), key(0)}, with(0));
}

}  // namespace rlx::testing
