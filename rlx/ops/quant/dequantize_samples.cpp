// Samples of Dequantize.
#include <optional>

#include "rlx/ir/ops/quantize.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Dequantize>(SampleSet& s) {
  constexpr std::uint32_t kScale = 1U << 1, kZero = 1U << 2, kGlobal = 1U << 3;
  const auto op = [](std::uint32_t present, std::optional<std::int64_t> axis = {}, std::int64_t block = 0,
                     DType to = DType::F32) {
    ops::Dequantize o;
    o.axis = axis, o.block = block, o.dtype = to, o.present.bits = present;
    return o;
  };
  const auto codes = [](Dims dims, DType t) { return SampleInput(Shape(std::move(dims), t), Fill::Small); };
  const auto scale = [](Dims dims, DType t = DType::F32) {
    return SampleInput(Shape(std::move(dims), t), Fill::Positive);
  };
  s.add("one scale", {codes({2, 3}, DType::I8), scale({})}, op(kScale));
  s.add("scale and zero point",
        {SampleInput(Shape({2, 3}, DType::U8), Fill::Index, 256), scale({}),
         SampleInput(Shape({}, DType::U8), Fill::Index, 256)},
        op(kScale | kZero));
  s.add("a channel", {codes({2, 3, 2}, DType::I8), scale({3}), codes({3}, DType::I8)}, op(kScale | kZero, 1));
  s.add("blocks", {codes({5, 4}, DType::I8), scale({3, 4}), codes({3, 4}, DType::I8)}, op(kScale | kZero, 0, 2));
  s.add("blocks of the last axis", {codes({2, 6}, DType::I16), scale({2, 2})}, op(kScale, 1, 3));
  s.add("one block", {codes({2, 3}, DType::I8), scale({2, 1})}, op(kScale, 1, 3));
  s.add("i4", {codes({2, 4}, DType::I4), scale({4})}, op(kScale, 1));
  s.add("u4 blocks",
        {SampleInput(Shape({4, 2}, DType::U4), Fill::Index, 16), scale({2, 2}),
         SampleInput(Shape({2, 2}, DType::U4), Fill::Index, 16)},
        op(kScale | kZero, 0, 2));
  s.add("f8", {SampleInput(Shape({2, 3}, DType::F8E4M3)), scale({})}, op(kScale));
  s.add("f8e5m2 alone", {SampleInput(Shape({4}, DType::F8E5M2))}, op(0));
  s.add("f4, f8 scales, global", {SampleInput(Shape({2, 4}, DType::F4E2M1)), scale({2, 2}, DType::F8E4M3), scale({})},
        op(kScale | kGlobal, 1, 2));
  s.add("i32", {SampleInput(Shape({3}, DType::I32), Fill::Index, 1 << 30), scale({})}, op(kScale));
  s.add("bf16 result", {codes({2, 3}, DType::I8), scale({3}, DType::BF16)}, op(kScale, 1, 0, DType::BF16));
  s.add("f64", {codes({2, 3}, DType::I8), scale({}, DType::F64)}, op(kScale, {}, 0, DType::F64));
  s.add("no elements", {codes({0, 3}, DType::I8), scale({3})}, op(kScale, 1));
  s.add("a scalar", {codes({}, DType::I8), scale({})}, op(kScale));
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    ops::Dequantize o;
    o.scheme = static_cast<QuantScheme>(i);
    const BlockLayout& l = block_layout(o.scheme);
    o.dims = {2, l.elements};
    s.add(std::string(enum_name(o.scheme)), {SampleInput(Shape({2, l.bytes}, DType::U8), Fill::Index, 256)}, o);
  }
  ops::Dequantize rows;
  rows.scheme = QuantScheme::Q8_0, rows.dims = {2, 3, 64}, rows.dtype = DType::F16;
  s.add("q8_0 rows to f16", {SampleInput(Shape({2, 3, 68}, DType::U8), Fill::Index, 256)}, rows);
  rows.dims = {0, 32}, rows.dtype = DType::F32;
  s.add("q8_0 no rows", {SampleInput(Shape({0, 34}, DType::U8), Fill::Index, 256)}, rows);
}

}  // namespace rlx::testing
