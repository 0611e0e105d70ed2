// Samples of ReduceWindow.
#include "rlx/ir/ops/conv.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::ReduceWindow>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  for (int i = 0; i < static_cast<int>(std::size(EnumNames<ReduceKind>::values)); ++i) {
    const auto fn = static_cast<ReduceKind>(i);
    const std::string name(enum_name(fn));
    const auto op = [&](std::vector<std::int64_t> window, std::vector<std::int64_t> strides = {},
                        std::vector<std::int64_t> low = {}, std::vector<std::int64_t> high = {},
                        std::vector<std::int64_t> base = {}, std::vector<std::int64_t> dilation = {}) {
      return ops::ReduceWindow{fn, window, strides, low, high, base, dilation};
    };
    const Fill fill = fn == ReduceKind::Prod ? Fill::Positive : Fill::Normal;
    const auto in = [&](Dims dims) { return SampleInput(f32(std::move(dims)), fill); };
    s.add(name + " of a vector", {in({7})}, op({3}));
    s.add(name + " by two", {in({1, 2, 4, 6})}, op({1, 1, 2, 2}, {1, 1, 2, 2}));
    s.add(name + " three by three, padded", {in({2, 5, 4})}, op({1, 3, 3}, {1, 2, 1}, {0, 1, 1}, {0, 1, 1}));
    s.add(name + " channels last", {in({1, 5, 4, 3})}, op({1, 3, 2, 1}, {1, 2, 1, 1}, {0, 1, 0, 0}, {0, 1, 1, 0}));
    s.add(name + " dilated", {in({2, 9})}, op({1, 3}, {1, 2}, {0, 2}, {0, 1}, {}, {1, 3}));
    s.add(name + " spread", {in({4, 2})}, op({3, 1}, {1, 1}, {2, 0}, {1, 0}, {2, 1}));
    s.add(name + " spread and dilated", {in({4})}, op({3}, {2}, {3}, {4}, {3}, {2}));
    s.add(name + " cropped", {in({8})}, op({2}, {3}, {-1}, {-2}));
    s.add(name + " over three axes", {in({1, 3, 4, 4})}, op({1, 2, 3, 2}, {1, 1, 2, 2}, {0, 0, 1, 0}, {0, 1, 1, 0}));
    s.add(name + " windows of gaps", {in({3})}, op({2}, {2}, {4}, {3}));
    s.add(name + " smaller than a window", {in({2, 2})}, op({1, 3}));
    s.add(name + " of nothing", {in({2, 0})}, op({1, 2}, {1, 1}, {0, 1}, {0, 2}));
    s.add(name + " scalar", {in({})}, op({}));
    s.add(name + " f64", {SampleInput(Shape({5}, DType::F64), fill)}, op({2}, {2}, {1}, {0}));
    s.add(name + " bf16", {SampleInput(Shape({6}, DType::BF16), fill)}, op({3}, {2}));
    if (fn != ReduceKind::Mean) {
      s.add_discrete(name + " i32", {SampleInput(Shape({2, 5}, DType::I32), Fill::Small)},
                     op({2, 2}, {}, {0, 1}, {0, 0}));
      s.add_discrete(name + " u8", {SampleInput(Shape({6}, DType::U8), Fill::Index, 200)}, op({3}));
    }
    if (fn == ReduceKind::Max || fn == ReduceKind::Min) {
      s.add_discrete(name + " bool", {SampleInput(Shape({6}, DType::Bool), Fill::Boolean)}, op({2}, {2}));
      s.add_discrete(name + " ties", {SampleInput(f32({1, 5, 5}), Fill::Small)},
                     op({1, 3, 3}, {1, 1, 2}, {0, 1, 1}, {0, 1, 1}));
      s.add_discrete(name + " ties, channels last", {SampleInput(f32({5, 5, 2}), Fill::Small)},
                     op({3, 3, 1}, {1, 2, 1}, {1, 1, 0}, {1, 1, 0}));
    } else {
      s.add(name + " complex", {Shape({4}, DType::C64)}, op({2}));
    }
  }
}

}  // namespace rlx::testing
