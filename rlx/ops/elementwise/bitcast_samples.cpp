// Samples of Bitcast.
#include "rlx/ir/ops/elementwise.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Bitcast>(SampleSet& s) {
  // The derivative is zero by definition, so finite differences do not apply.
  const auto add = [&](std::string name, Dims dims, DType from, DType to, Fill fill = Fill::Normal,
                       std::int64_t bound = 1) {
    s.add_discrete(std::move(name), {{Shape(std::move(dims), from), fill, bound}}, ops::Bitcast{to});
  };
  constexpr std::int64_t kBytes = 120;  // finite numbers when it is the highest byte
  add("f32 as i32", {2, 3}, DType::F32, DType::I32);
  add("i32 as f32", {5}, DType::I32, DType::F32, Fill::Index, 1 << 30);
  add("f32 as u8", {3, 2}, DType::F32, DType::U8);
  add("u8 as f32", {3, 4}, DType::U8, DType::F32, Fill::Index, kBytes);
  add("f64 as u16", {3}, DType::F64, DType::U16);
  add("u32 as f64", {2, 2, 2}, DType::U32, DType::F64, Fill::Index, kBytes);
  add("i64 as u64", {3}, DType::I64, DType::U64, Fill::Small);
  add("bf16 as i16", {7}, DType::BF16, DType::I16);
  add("u16 as f16", {7}, DType::U16, DType::F16, Fill::Index, 30000);
  add("u32 as i8", {2, 3}, DType::U32, DType::I8, Fill::Index, 100000);
  add("u8 as f8e4m3", {5}, DType::U8, DType::F8E4M3, Fill::Index, kBytes);
  add("u8 as i4", {5}, DType::U8, DType::I4, Fill::Index, 250);
  add("u4 as u8", {3, 2}, DType::U4, DType::U8, Fill::Index, 16);
  add("the same dtype", {2, 3}, DType::F32, DType::F32);
  add("a scalar", {}, DType::F32, DType::U32);
  add("to a scalar", {2}, DType::U16, DType::F32, Fill::Index, 10000);
  add("no elements", {0, 4}, DType::U8, DType::I32, Fill::Small);
  add("many", {40, 300}, DType::F32, DType::I32);
}

}  // namespace rlx::testing
