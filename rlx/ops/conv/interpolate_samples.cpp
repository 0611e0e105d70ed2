// Samples of Interpolate.
#include "rlx/ir/ops/conv.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Interpolate>(SampleSet& s) {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  for (int i = 0; i < static_cast<int>(std::size(EnumNames<ResizeKind>::values)); ++i) {
    ops::Interpolate op;
    op.fn = static_cast<ResizeKind>(i);
    const std::string name(enum_name(op.fn));
    const auto with = [&](std::vector<std::int64_t> axes, std::vector<std::int64_t> sizes) {
      ops::Interpolate o = op;
      o.axes = std::move(axes), o.sizes = std::move(sizes);
      return o;
    };
    s.add(name + " twice", {f32({1, 2, 3, 4})}, with({2, 3}, {6, 8}));
    s.add(name + " to fewer", {f32({2, 7})}, with({1}, {3}));
    s.add(name + " up and down", {f32({5, 2, 3})}, with({0, 2}, {2, 7}));
    s.add(name + " half", {f32({6, 2})}, with({0}, {3}));
    s.add(name + " one element", {f32({1, 2})}, with({0}, {3}));
    s.add(name + " to one", {f32({4})}, with({0}, {1}));
    s.add(name + " the same", {f32({3})}, with({0}, {3}));
    s.add(name + " no rows", {f32({0, 3})}, with({1}, {5}));
    s.add(name + " over three axes", {f32({2, 3, 2})}, with({0, 1, 2}, {3, 2, 4}));
    for (int p = 1; p < static_cast<int>(std::size(EnumNames<ResizePlaces>::values)); ++p) {
      ops::Interpolate o = with({0}, {5});
      o.places = static_cast<ResizePlaces>(p);
      s.add(concat_text(name, " ", enum_name(o.places)), {f32({3, 2})}, o);
      o.sizes = {1};
      s.add(concat_text(name, " ", enum_name(o.places), " to one"), {f32({3, 2})}, o);
    }
    for (int r = 0; r < static_cast<int>(std::size(EnumNames<ResizeRounding>::values)); ++r) {
      ops::Interpolate o = with({0}, {5});
      o.rounding = static_cast<ResizeRounding>(r);
      if (op.fn == ResizeKind::Nearest) s.add(concat_text(name, " ", enum_name(o.rounding)), {f32({4})}, o);
    }
    ops::Interpolate smooth = with({1}, {3});
    smooth.antialias = true;
    s.add(name + " smoothed", {f32({2, 8})}, smooth);
    ops::Interpolate own = with({0}, {7});
    own.renormalize = true, own.cubic_a = -0.5;
    s.add(name + " renormalised", {f32({4, 2})}, own);
    own.scales = {1.7};
    s.add(name + " scaled", {f32({4})}, own);
    ops::Interpolate back = with({0, 1}, {3, 5});
    back.transposed = true;
    s.add(name + " transposed", {f32({6, 4})}, back);
    s.add(name + " f64", {Shape({3}, DType::F64)}, with({0}, {4}));
    s.add(name + " bf16", {Shape({3}, DType::BF16)}, with({0}, {5}));
    s.add(name + " complex", {Shape({3}, DType::C64)}, with({0}, {4}));
    if (op.fn == ResizeKind::Nearest) {
      s.add_discrete(name + " i32", {SampleInput(Shape({3}, DType::I32), Fill::Small)}, with({0}, {7}));
      s.add_discrete(name + " bool", {SampleInput(Shape({3}, DType::Bool), Fill::Boolean)}, with({0}, {6}));
    }
  }
  s.add("no axes", {f32({2})}, ops::Interpolate{});
}

}  // namespace rlx::testing
