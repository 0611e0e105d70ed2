// Samples of Cast.
#include "rlx/ir/ops/elementwise.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Cast>(SampleSet& s) {
  s.add("f32 to f64", {Shape({2, 3}, DType::F32)}, ops::Cast{DType::F64});
  s.add("f64 to f64", {Shape({2}, DType::F64)}, ops::Cast{DType::F64});
  s.add("f64 to c128", {Shape({2}, DType::F64)}, ops::Cast{DType::C128});
  s.add("c128 to f64", {Shape({2}, DType::C128)}, ops::Cast{DType::F64});
  s.add("no elements", {Shape({0, 2}, DType::F32)}, ops::Cast{DType::F64});
  s.add_discrete("scalar", {Shape({}, DType::F32)}, ops::Cast{DType::BF16});
  for (int i = 0; i < kNumDTypes; ++i) {
    auto t = static_cast<DType>(i);
    s.add_discrete(concat_text("f32 to ", dtype_name(t)), {{Shape({2, 4}, DType::F32), Fill::Positive}}, ops::Cast{t});
    if (!is_storage_only(t))
      s.add_discrete(concat_text(dtype_name(t), " to f32"), {{Shape({6}, t), Fill::Index, 2}}, ops::Cast{DType::F32});
  }
  s.add_discrete("i64 to i8", {{Shape({4}, DType::I64), Fill::Index, 1000}}, ops::Cast{DType::I8});
  s.add_discrete("i32 to bool", {{Shape({9}, DType::I32), Fill::Small}}, ops::Cast{DType::Bool});
  s.add_discrete("i64 to bf16", {{Shape({4}, DType::I64), Fill::Index, 100000}}, ops::Cast{DType::BF16});
}

}  // namespace rlx::testing
