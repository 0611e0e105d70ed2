// Samples of Compare and Where.
#include "rlx/ir/ops/elementwise.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Compare>(SampleSet& s) {
  for (CompareKind fn :
       {CompareKind::Eq, CompareKind::Ne, CompareKind::Lt, CompareKind::Le, CompareKind::Gt, CompareKind::Ge}) {
    ops::Compare op{fn};
    std::string name(enum_name(fn));
    auto add = [&](DType t, Fill fill, std::int64_t bound) {
      s.add_discrete(concat_text(name, " ", dtype_name(t)),
                     {{Shape({3, 5}, t), fill, bound}, {Shape({5}, t), fill, bound}}, op);
    };
    for (DType t : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I8, DType::I32, DType::I64})
      add(t, Fill::Small, 1);
    for (DType t : {DType::U8, DType::U64}) add(t, Fill::Index, 3);
    add(DType::Bool, Fill::Boolean, 1);
  }
  s.add_discrete("eq c64", {{Shape({6}, DType::C64), Fill::Small}, {Shape({6}, DType::C64), Fill::Small}},
                 ops::Compare{CompareKind::Eq});
  s.add_discrete("no elements", {Shape({0}, DType::F32), Shape({2, 1}, DType::F32)}, ops::Compare{CompareKind::Lt});
  s.add_discrete("scalars", {Shape({}, DType::F32), Shape({}, DType::F32)}, ops::Compare{CompareKind::Lt});
}

template <>
void samples<ops::Where>(SampleSet& s) {
  auto cond = [](Dims dims) { return SampleInput(Shape(std::move(dims), DType::Bool), Fill::Boolean); };
  s.add("f32", {cond({2, 3}), Shape({2, 3}, DType::F32), Shape({2, 3}, DType::F32)}, ops::Where{});
  s.add("f64 column of conditions", {cond({2, 1}), Shape({3}, DType::F64), Shape({2, 3}, DType::F64)}, ops::Where{});
  s.add("scalar operands", {cond({4}), Shape({}, DType::F32), Shape({1}, DType::F32)}, ops::Where{});
  s.add("scalar condition", {cond({}), Shape({2, 1}, DType::F32), Shape({1, 2}, DType::F32)}, ops::Where{});
  s.add("no elements", {cond({0}), Shape({2, 1}, DType::F32), Shape({}, DType::F32)}, ops::Where{});
  s.add("c64", {cond({4}), Shape({4}, DType::C64), Shape({}, DType::C64)}, ops::Where{});
  for (DType t : {DType::BF16, DType::F16, DType::I8, DType::I32, DType::I64, DType::U8})
    s.add_discrete(std::string(dtype_name(t)),
                   {cond({5}), {Shape({5}, t), Fill::Index, 9}, {Shape({}, t), Fill::Index, 9}}, ops::Where{});
  s.add_discrete("bool", {cond({4}), cond({4}), cond({1})}, ops::Where{});
}

}  // namespace rlx::testing
