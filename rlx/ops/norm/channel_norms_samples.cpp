// Samples of GroupNorm and BatchNorm.
#include "rlx/ir/ops/norm.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

template <class Op>
void add_channel_sample(SampleSet& s, std::string name, const Shape& x, std::int64_t axis, Op op,
                        std::uint32_t present) {
  op.present.bits = present;
  std::vector<SampleInput> in{x};
  const Dim channels = x.dim(static_cast<int>(axis));
  for (int place = 1; place < Op::def.inputs.count; ++place) {
    if (!op.present.has(place)) {
      if (place < 3) name += concat_text(", no ", Op::def.inputs.names[place]);
      continue;
    }
    const DType t = place < 3 ? x.dtype() : accumulator_dtype(x.dtype());
    in.emplace_back(Shape({channels}, t), place == 4 ? Fill::Positive : Fill::Normal);
  }
  s.add(std::move(name), std::move(in), std::move(op));
}

}  // namespace

template <>
void samples<ops::GroupNorm>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto groups = [](std::int64_t n, double eps = 1e-5) { return ops::GroupNorm{n, eps, {}}; };
  add_channel_sample(s, "two groups", f32({2, 4, 3, 2}), 1, groups(2), 0b110);
  add_channel_sample(s, "one group", f32({1, 3, 4}), 1, groups(1), 0b110);
  add_channel_sample(s, "each channel", f32({2, 3, 4}), 1, groups(3, 1e-3), 0b110);
  add_channel_sample(s, "no places", f32({3, 6}), 1, groups(2, 1e-2), 0b110);
  add_channel_sample(s, "three axes of places", f32({1, 2, 2, 3, 2}), 1, groups(1), 0b110);
  add_channel_sample(s, "no rows", f32({0, 4, 2}), 1, groups(2), 0b110);
  add_channel_sample(s, "f64", Shape({2, 4, 3}, DType::F64), 1, groups(2), 0b110);
  add_channel_sample(s, "bf16", Shape({1, 4, 3}, DType::BF16), 1, groups(2), 0b110);
  for (std::uint32_t present : {0U, 0b010U, 0b100U})
    add_channel_sample(s, "some", f32({2, 4, 3}), 1, groups(2), present);
}

template <>
void samples<ops::BatchNorm>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto norm = [](std::int64_t axis, double eps = 1e-5) { return ops::BatchNorm{axis, eps, {}}; };
  for (const std::uint32_t stats : {0b11000U, 0U}) {
    const std::string form = stats ? "given, " : "own, ";
    add_channel_sample(s, form + "images", f32({2, 3, 2, 4}), 1, norm(1), stats | 0b110);
    add_channel_sample(s, form + "rows", f32({5, 3}), 1, norm(1, 1e-3), stats | 0b110);
    add_channel_sample(s, form + "channels last", f32({2, 3, 4}), 2, norm(2), stats | 0b110);
    add_channel_sample(s, form + "channels first", f32({3, 4}), 0, norm(0), stats | 0b110);
    add_channel_sample(s, form + "f64", Shape({2, 3, 2}, DType::F64), 1, norm(1), stats | 0b110);
    add_channel_sample(s, form + "f16", Shape({2, 2, 4}, DType::F16), 1, norm(1), stats | 0b110);
    add_channel_sample(s, form + "no channels", f32({2, 0, 3}), 1, norm(1), stats | 0b110);
    for (std::uint32_t present : {0U, 0b010U, 0b100U})
      add_channel_sample(s, form + "some", f32({2, 3, 4}), 1, norm(1), stats | present);
  }
  add_channel_sample(s, "given, no rows", f32({0, 3}), 1, norm(1), 0b11110);
}

}  // namespace rlx::testing
