// Samples of Quantize and DynamicQuantize.
#include <optional>

#include "rlx/ir/ops/quantize.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

Shape f32(Dims dims) { return Shape(std::move(dims), DType::F32); }

}  // namespace

template <>
void samples<ops::Quantize>(SampleSet& s) {
  constexpr std::uint32_t kScale = 1U << 1, kZero = 1U << 2;  // mask bits of scale and zero_point
  const auto op = [](DType t, bool zero = false, std::optional<std::int64_t> axis = {}, std::int64_t block = 0) {
    ops::Quantize o;
    o.axis = axis, o.block = block, o.dtype = t, o.present.bits = zero ? kScale | kZero : kScale;
    return o;
  };
  const auto scale = [](Dims dims, DType t = DType::F32) { return SampleInput(Shape(std::move(dims), t), Fill::Unit); };
  const auto zero = [](Dims dims, DType t) { return SampleInput(Shape(std::move(dims), t), Fill::Index, 10); };
  s.add_discrete("i8", {f32({2, 3}), scale({})}, op(DType::I8));
  s.add_discrete("u8 with zero point", {f32({2, 3}), scale({}), zero({}, DType::U8)}, op(DType::U8, true));
  s.add_discrete("a channel", {f32({2, 3, 2}), scale({3}), zero({3}, DType::I8)}, op(DType::I8, true, 1));
  s.add_discrete("blocks", {f32({5, 2}), scale({3, 2}), zero({3, 2}, DType::I16)}, op(DType::I16, true, 0, 2));
  s.add_discrete("i4", {f32({2, 4}), scale({4})}, op(DType::I4, false, 1));
  s.add_discrete("u4 with zero point", {f32({3, 3}), scale({}), zero({}, DType::U4)}, op(DType::U4, true));
  s.add_discrete("u16", {f32({4}), scale({}), zero({}, DType::U16)}, op(DType::U16, true));
  s.add_discrete("i32", {f32({4}), scale({})}, op(DType::I32));
  s.add_discrete("f8", {f32({2, 3}), scale({})}, op(DType::F8E4M3));
  s.add_discrete("f8e5m2", {f32({2, 3}), scale({3})}, op(DType::F8E5M2, false, 1));
  s.add_discrete("f4 with f8 scales", {f32({2, 4}), {Shape({2, 2}, DType::F8E4M3), Fill::Positive}},
                 op(DType::F4E2M1, false, 1, 2));
  s.add_discrete("bf16", {Shape({2, 3}, DType::BF16), scale({}, DType::BF16)}, op(DType::I8));
  s.add_discrete("f64", {Shape({2, 3}, DType::F64), scale({}, DType::F64)}, op(DType::I8));
  s.add_discrete("no elements", {f32({0, 3}), scale({3})}, op(DType::I8, false, 1));
  s.add_discrete("a scalar", {f32({}), scale({})}, op(DType::I8));
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    ops::Quantize blocks;
    blocks.scheme = static_cast<QuantScheme>(i), blocks.dtype = DType::U8;
    if (makes_blocks(blocks.scheme) && block_layout(blocks.scheme).scales == GroupScales::None)
      s.add_discrete(std::string(enum_name(blocks.scheme)), {f32({2, 64})}, blocks);
  }
  ops::Quantize rows;
  rows.scheme = QuantScheme::Q8_0, rows.dtype = DType::U8;
  s.add_discrete("q8_0 of f16 rows", {Shape({2, 1, 32}, DType::F16)}, rows);
  s.add_discrete("q8_0 of no rows", {f32({0, 32})}, rows);
}

template <>
void samples<ops::DynamicQuantize>(SampleSet& s) {
  const auto op = [](DType t, bool symmetric, std::optional<std::int64_t> axis = {}, std::int64_t block = 0) {
    ops::DynamicQuantize o;
    o.axis = axis, o.block = block, o.dtype = t, o.symmetric = symmetric;
    return o;
  };
  s.add("i8", {f32({2, 3})}, op(DType::I8, true));
  s.add("u8 of onnx", {f32({2, 3})}, op(DType::U8, false));
  s.add("i8 over the range", {f32({2, 3})}, op(DType::I8, false));
  s.add("u8 of positive values", {{f32({5}), Fill::Positive}}, op(DType::U8, false));
  s.add("a channel", {f32({2, 3, 2})}, op(DType::I8, true, 1));
  s.add("rows", {f32({2, 4})}, op(DType::I8, true, 1, 4));
  s.add("blocks", {f32({2, 5})}, op(DType::U8, false, 1, 2));
  s.add("i16", {f32({4})}, op(DType::I16, true));
  s.add_discrete("u4", {f32({2, 4})}, op(DType::U4, false, 0));
  s.add_discrete("i4 blocks", {f32({4, 2})}, op(DType::I4, true, 0, 2));
  s.add("bf16", {Shape({2, 3}, DType::BF16)}, op(DType::I8, true));
  s.add("f64", {Shape({2, 3}, DType::F64)}, op(DType::I8, true, 0));
  s.add("no elements", {f32({0, 3})}, op(DType::I8, true, 1));
  s.add("a scalar", {f32({})}, op(DType::U8, false));
}

}  // namespace rlx::testing
