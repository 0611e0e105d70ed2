// Samples of Binary.
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Binary>(SampleSet& s) {
  auto pair = [](const BinaryRow& r, Dims a, Dims b, DType t) {
    return std::vector<SampleInput>{{Shape(std::move(a), t), r.fill_a}, {Shape(std::move(b), t), r.fill_b}};
  };
  for (int i = 0; i < kNumBinaryKinds; ++i) {
    const BinaryRow& r = binary_row(static_cast<BinaryKind>(i));
    if (r.differentiable == 0) continue;  // every sample must have a derivative
    ops::Binary op{r.fn};
    std::string name(enum_name(r.fn));
    if (r.real) {
      const auto add = r.differentiable == 2 ? &SampleSet::add : &SampleSet::add_discrete;
      (s.*add)(name + " f32", pair(r, {2, 3}, {2, 3}, DType::F32), op);
      (s.*add)(name + " f64 row", pair(r, {2, 3}, {3}, DType::F64), op);
      (s.*add)(name + " left scalar", pair(r, {}, {2, 2}, DType::F32), op);
      s.add_discrete(name + " bf16", pair(r, {3}, {3}, DType::BF16), op);
      s.add_discrete(name + " f16", pair(r, {3}, {3}, DType::F16), op);
    }
    if (r.complex) s.add(name + " c64", pair(r, {2, 2}, {2}, DType::C64), op);
    if (r.signed_int) {
      for (DType t : {DType::I8, DType::I32, DType::I64})
        s.add_discrete(concat_text(name, " ", dtype_name(t)),
                       {{Shape({7}, t), Fill::Small}, {Shape({2, 7}, t), Fill::Small}}, op);
      for (DType t : {DType::U8, DType::U64})
        s.add_discrete(concat_text(name, " ", dtype_name(t)),
                       {{Shape({7}, t), Fill::Index, 9}, {Shape({2, 7}, t), Fill::Index, 4}}, op);
    }
    if (contains(r.dtypes, DType::Bool))
      s.add_discrete(name + " bool",
                     {{Shape({4, 1}, DType::Bool), Fill::Boolean}, {Shape({4}, DType::Bool), Fill::Boolean}}, op);
  }
  ops::Binary mul{BinaryKind::Mul}, max{BinaryKind::Max};
  s.add("both sides stretch", {Shape({2, 1, 3}, DType::F32), Shape({4, 1}, DType::F32)}, mul);
  s.add("right scalar", {Shape({2, 3}, DType::F32), Shape({}, DType::F32)}, mul);
  s.add("scalars", {Shape({}, DType::F32), Shape({}, DType::F32)}, mul);
  s.add("size one stays", {Shape({1, 1}, DType::F32), Shape({1}, DType::F32)}, max);
  s.add("no elements", {Shape({0, 3}, DType::F32), Shape({3}, DType::F32)}, mul);
  s.add("one stretches to none", {Shape({1, 3}, DType::F32), Shape({0, 1}, DType::F32)}, max);
  s.add_discrete("ties", {{Shape({16}, DType::F32), Fill::Small}, {Shape({16}, DType::F32), Fill::Small}}, max);
}

}  // namespace rlx::testing
