// Samples of Rope.
#include "rlx/ir/ops/rope.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

void positioned_samples(SampleSet& s, ops::Rope op) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  const auto at = [](Dims d) { return SampleInput(Shape(std::move(d), DType::I32), Fill::Index, 6); };
  op.present.bits = 1U << 3;
  s.add("positions", {f32({2, 3, 8}), f32({5, 2}), f32({5, 2}), at({3})}, op);
  s.add("positions of each entry", {f32({2, 3, 8}), f32({5, 2}), f32({5, 2}), at({2, 3})}, op);
  s.add("positions in own tables", {f32({2, 3, 8}), f32({2, 5, 2}), f32({2, 5, 2}), at({3})}, op);
  s.add("positions of each entry in own tables", {f32({2, 3, 8}), f32({2, 5, 3}), f32({2, 5, 3}), at({2, 3})}, op);
  s.add("positions in a table of batch 1", {f32({2, 3, 8}), f32({1, 5, 2}), f32({1, 5, 2}), at({2, 3})}, op);
  op.layout = HeadLayout::HeadsFirst, op.pairing = RopePairing::Interleaved, op.inverse = true;
  s.add("positions, few rows", {f32({2, 2, 3, 4}), f32({2, 2}), f32({2, 2}), at({2, 3})}, op);
}

}  // namespace

template <>
void samples<ops::Rope>(SampleSet& s) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  auto op = [](std::int64_t d, std::int64_t n, RopePairing p, HeadLayout l, bool inverse = false) {
    return ops::Rope{d, n, p, l, inverse, {}};
  };
  using P = RopePairing;
  using L = HeadLayout;
  s.add("half", {f32({2, 3, 8}), f32({3, 2}), f32({3, 2})}, op(4, 4, P::Half, L::Merged));
  s.add("interleaved", {f32({2, 3, 8}), f32({3, 2}), f32({3, 2})}, op(4, 4, P::Interleaved, L::Merged));
  s.add("partial, wide table", {f32({1, 2, 12}), f32({2, 3}), f32({2, 3})}, op(6, 4, P::Half, L::Merged));
  s.add("partial interleaved", {f32({1, 2, 2, 6}), f32({2, 1}), f32({2, 1})}, op(6, 2, P::Interleaved, L::HeadsInner));
  s.add("heads first, own positions", {f32({2, 2, 3, 4}), f32({2, 3, 2}), f32({2, 3, 2})},
        op(4, 4, P::Half, L::HeadsFirst));
  s.add("heads inner, shared batch table", {f32({2, 3, 2, 4}), f32({1, 3, 2}), f32({1, 3, 2})},
        op(4, 4, P::Interleaved, L::HeadsInner));
  s.add("long table", {f32({1, 2, 4}), f32({5, 4}), f32({5, 4})}, op(4, 4, P::Half, L::Merged));
  s.add("inverse", {f32({1, 3, 8}), f32({3, 2}), f32({3, 2})}, op(4, 4, P::Half, L::Merged, true));
  s.add("inverse interleaved partial", {f32({1, 2, 2, 6}), f32({2, 2}), f32({2, 2})},
        op(6, 4, P::Interleaved, L::HeadsFirst, true));
  s.add("no positions", {f32({1, 0, 4}), f32({0, 2}), f32({0, 2})}, op(4, 4, P::Half, L::Merged));
  s.add("f64", {Shape({1, 2, 4}, DType::F64), Shape({2, 2}, DType::F64), Shape({2, 2}, DType::F64)},
        op(4, 4, P::Half, L::Merged));
  s.add("bf16", {Shape({1, 2, 4}, DType::BF16), Shape({2, 2}, DType::BF16), Shape({2, 2}, DType::BF16)},
        op(4, 4, P::Half, L::Merged));
  positioned_samples(s, op(4, 4, P::Half, L::Merged));
}

}  // namespace rlx::testing
