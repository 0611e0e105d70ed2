// Samples of Scatter.
#include "rlx/ir/ops/indexing.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Scatter>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto f64 = [](Dims dims) { return Shape(std::move(dims), DType::F64); };
  const auto ids = [](Dims dims, std::int64_t bound, DType t = DType::I32) {
    return SampleInput(Shape(std::move(dims), t), Fill::Index, bound);
  };
  const auto outside = [](Dims dims) { return SampleInput(Shape(std::move(dims), DType::I32), Fill::Small); };
  const auto small = [](Dims dims, DType t) { return SampleInput(Shape(std::move(dims), t), Fill::Small); };
  for (int i = 0; i < static_cast<int>(std::size(EnumNames<ScatterKind>::values)); ++i) {
    const auto fn = static_cast<ScatterKind>(i);
    const bool orders = fn == ScatterKind::Min || fn == ScatterKind::Max;
    const auto op = [fn](std::vector<std::int64_t> axes, IndexMode mode = IndexMode::Drop) {
      return ops::Scatter{fn, std::move(axes), mode};
    };
    const std::string name(enum_name(fn));
    s.add(name + " rows", {f32({4, 2}), ids({3}, 4), f32({3, 2})}, op({0}));
    s.add(name + " duplicates", {f32({3}), ids({5}, 2, DType::I64), f32({5})}, op({0}));
    s.add(name + " dropped", {f64({2}), outside({6}), f64({6})}, op({0}));
    s.add(name + " clamped", {f64({2}), outside({6}), f64({6})}, op({0}, IndexMode::Clamp));
    s.add(name + " columns", {f32({2, 3}), ids({2, 2}, 3), f32({2, 2, 2})}, op({1}));
    s.add(name + " elements", {f32({3, 4}), ids({5}, 3), ids({5}, 4, DType::I64), f32({5})}, op({0, 1}));
    s.add(name + " axes apart", {f64({3, 2, 4, 2}), ids({2, 2}, 3), ids({2, 2}, 4), f64({2, 2, 2, 2})}, op({0, 2}));
    s.add(name + " later axes", {f32({2, 3, 2}), outside({4}), ids({4}, 2), f32({2, 4})}, op({1, 2}));
    s.add(name + " scalar id", {f32({3, 2}), ids({}, 3, DType::I64), f32({2})}, op({0}));
    s.add(name + " half", {Shape({3}, DType::BF16), ids({5}, 3), Shape({5}, DType::BF16)}, op({0}));
    s.add(name + " no updates", {f32({2, 2}), ids({0}, 1), f32({0, 2})}, op({0}));
    s.add_discrete(name + " i32", {small({3}, DType::I32), ids({4}, 3), small({4}, DType::I32)}, op({0}));
    s.add_discrete(name + " i8", {small({3}, DType::I8), ids({4}, 3), small({4}, DType::I8)}, op({0}));
    s.add_discrete(name + " ties", {small({3}, DType::F32), ids({6}, 3), small({6}, DType::F32)}, op({0}));
    s.add_discrete(name + " into nothing", {f32({0}), outside({3}), f32({3})}, op({0}));
    if (!orders) s.add(name + " complex", {Shape({3}, DType::C64), ids({3}, 3), Shape({3}, DType::C64)}, op({0}));
    if (orders || fn == ScatterKind::Set)
      s.add_discrete(name + " bool",
                     {SampleInput(Shape({3}, DType::Bool), Fill::Boolean), ids({4}, 3),
                      SampleInput(Shape({4}, DType::Bool), Fill::Boolean)},
                     op({0}));
  }
}

}  // namespace rlx::testing
