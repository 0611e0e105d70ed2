// DynamicSlice and DynamicUpdateSlice: a window whose position is a run-time value.
#include <algorithm>
#include <cstring>

#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// The error when `window` does not fit into x, or starts is not an index vector of x's rank.
std::optional<Diagnostic> check_window(const InferContext& c, const Shape& x, const Dims& window, const Shape& starts) {
  if (!is_index(starts.dtype())) return c.dtype_error("starts must be i32 or i64, not ", starts, "; cast it");
  if (starts.rank() != 1 || !(starts.dim(0) == Dim(x.rank())))
    return c.error("starts ", starts, " must hold one position per axis of x ", x);
  if (window.size() != static_cast<std::size_t>(x.rank()))
    return c.error("the window ", dims_text(window), " and x ", x, " have different ranks");
  for (std::size_t i = 0; i < window.size(); ++i)
    if (known_negative(window[i]) || known_negative(x.dims()[i] - window[i]))
      return c.error("the window ", dims_text(window), " does not fit into x ", x, " on axis ", i);
  return std::nullopt;
}

// The window inside a row-major tensor of extents `dims`, its starts clamped so that it fits.
StridedView window_at(std::span<const std::int64_t> dims, std::span<const std::int64_t> window, const Tensor& starts) {
  StridedView view = whole(dims);
  for (std::size_t i = 0; i < dims.size(); ++i)
    view.offset += std::clamp<std::int64_t>(starts.at_i64(static_cast<std::int64_t>(i)), 0, dims[i] - window[i]) * view.strides[i];
  return view;
}

struct DynamicSliceRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Dims& sizes = c.op<ops::DynamicSlice>().sizes;
    if (auto error = check_window(c, c.input(0), sizes, c.input(1))) return *error;
    return Shapes{Shape(sizes, c.input(0).dtype())};
  }
  static void reference(const RefArgs& a) {
    const auto dims = a.in(0).dims(), window = a.out().dims();
    copy_strided(a.out().dtype(), window, a.out().mutable_data(), whole(window), a.in(0).data(), window_at(dims, window, a.in(1)));
  }
  // Only the window is touched.
  static Cost cost(const CostContext& c) {
    const auto bytes = static_cast<double>(c.outputs[0].size_bytes());
    return {0, bytes, bytes};
  }
  static void samples(SampleSet& s) {
    const Shape one({1}, DType::I32), two({2}, DType::I64);
    s.add("vector", {Shape({5}, DType::F32), SampleInput(one, Fill::Index, 3)}, ops::DynamicSlice{{2}});
    s.add("matrix", {Shape({3, 4}, DType::F32), SampleInput(two, Fill::Index, 2)}, ops::DynamicSlice{{2, 3}});
    s.add("clamped", {Shape({3, 4}, DType::F64), SampleInput(two, Fill::Small)}, ops::DynamicSlice{{3, 2}});
    s.add("whole", {Shape({2, 2}, DType::F32), SampleInput(two, Fill::Small)}, ops::DynamicSlice{{2, 2}});
    s.add("scalar", {Shape({}, DType::F32), SampleInput(Shape({0}, DType::I32), Fill::Index)}, ops::DynamicSlice{});
    s.add("half", {Shape({4}, DType::F16), SampleInput(one, Fill::Index, 4)}, ops::DynamicSlice{{2}});
    s.add_discrete("empty window", {Shape({3}, DType::F32), SampleInput(one, Fill::Index, 3)}, ops::DynamicSlice{{0}});
    s.add_discrete("i32", {SampleInput(Shape({4}, DType::I32), Fill::Small), SampleInput(one, Fill::Index, 4)}, ops::DynamicSlice{{3}});
  }
  static constexpr AttrField attrs[] = {field<&ops::DynamicSlice::sizes>("sizes", AttrPlace::TypeDims)};
};

struct DynamicUpdateSliceRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &x = c.input(0), &update = c.input(1);
    if (auto error = c.check_same_dtype(0, 2)) return *error;
    if (auto error = check_window(c, x, update.dims(), c.input(2))) return *error;
    return Shapes{x};
  }
  static void reference(const RefArgs& a) {
    const auto dims = a.in(0).dims(), window = a.in(1).dims();
    std::byte* out = a.out().mutable_data();
    if (a.out().size_bytes() != 0) std::memcpy(out, a.in(0).data(), a.out().size_bytes());
    copy_strided(a.out().dtype(), window, out, window_at(dims, window, a.in(2)), a.in(1).data(), whole(window));
  }
  static void samples(SampleSet& s) {
    const Shape one({1}, DType::I32), two({2}, DType::I64);
    s.add("vector", {Shape({5}, DType::F32), Shape({2}, DType::F32), SampleInput(one, Fill::Index, 4)}, ops::DynamicUpdateSlice{});
    s.add("matrix", {Shape({3, 4}, DType::F64), Shape({2, 3}, DType::F64), SampleInput(two, Fill::Small)}, ops::DynamicUpdateSlice{});
    s.add("whole", {Shape({2, 2}, DType::F32), Shape({2, 2}, DType::F32), SampleInput(two, Fill::Small)}, ops::DynamicUpdateSlice{});
    s.add("empty update", {Shape({3}, DType::F32), Shape({0}, DType::F32), SampleInput(one, Fill::Index, 3)}, ops::DynamicUpdateSlice{});
    s.add("scalar", {Shape({}, DType::F32), Shape({}, DType::F32), SampleInput(Shape({0}, DType::I32), Fill::Index)},
          ops::DynamicUpdateSlice{});
    s.add("half", {Shape({4}, DType::BF16), Shape({2}, DType::BF16), SampleInput(one, Fill::Index, 3)}, ops::DynamicUpdateSlice{});
    s.add_discrete("i64", {SampleInput(Shape({4}, DType::I64), Fill::Small), SampleInput(Shape({1}, DType::I64), Fill::Small),
                           SampleInput(one, Fill::Index, 4)}, ops::DynamicUpdateSlice{});
  }
};

}  // namespace

constinit const OpDef ops::DynamicSlice::def{
    .kind = kind, .name = "dynamic_slice", .inputs = inputs("x", "starts"), .attrs = DynamicSliceRules::attrs, .level = Level::Mir,
    .infer = DynamicSliceRules::infer, .decompose = none("a primitive"), .reference = DynamicSliceRules::reference,
    .cost = DynamicSliceRules::cost, .samples = DynamicSliceRules::samples};

constinit const OpDef ops::DynamicUpdateSlice::def{
    .kind = kind, .name = "dynamic_update_slice", .inputs = inputs("x", "update", "starts"), .attrs = {}, .level = Level::Mir,
    .infer = DynamicUpdateSliceRules::infer, .decompose = none("a primitive"), .reference = DynamicUpdateSliceRules::reference,
    .cost = moves_bytes, .samples = DynamicUpdateSliceRules::samples};

}  // namespace rlx
