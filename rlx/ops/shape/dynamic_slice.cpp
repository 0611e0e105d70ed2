// DynamicSlice and DynamicUpdateSlice: a window at a run-time position.
#include <algorithm>
#include <cstring>

#include "rlx/ir/ops/indexing.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// The error when `window` does not fit into x, or starts is not an index vector of x's rank.
std::optional<Diagnostic> check_window(const InferContext& c, const Shape& x, const Dims& window, const Shape& starts) {
  if (!is_index(starts.dtype())) return c.dtype_error("starts must be i32 or i64, not ", starts, "; cast it");
  if (starts.rank() != 1 || !(starts.dim(0) == Dim(x.rank())))
    return c.error("starts ", starts, " must have one position for each axis of x ", x);
  if (window.size() != static_cast<std::size_t>(x.rank()))
    return c.error("the window ", dims_text(window), " and x ", x, " have different ranks");
  for (std::size_t i = 0; i < window.size(); ++i)
    if (c.negative(window[i]) || c.negative(x.dims()[i] - window[i]))
      return c.error("the window ", dims_text(window), " does not fit into x ", x, " on axis ", i);
  return std::nullopt;
}

// The window inside a row-major tensor of extents `dims`. Its starts are clamped so that it fits.
StridedView window_at(std::span<const std::int64_t> dims, std::span<const std::int64_t> window, const Tensor& starts) {
  StridedView view = whole(dims);
  for (std::size_t i = 0; i < dims.size(); ++i)
    view.offset +=
        std::clamp<std::int64_t>(starts.at_i64(static_cast<std::int64_t>(i)), 0, dims[i] - window[i]) * view.strides[i];
  return view;
}

// starts [rank] with a leading zero, for a window that spans the batch axis.
Expr with_batch_start(Graph& g, Expr starts) {
  return g.concat({g.constant(Tensor::zeros(Shape({1}, starts.dtype()))), starts}, 0);
}

// Batched starts [B, rank] of axis `axis`, clamped so that a window of `size` fits, in dtype `t`: [B, 1, .., 1] with
// rank + 1 axes.
Expr clamped_start(Graph& g, Expr starts, std::int64_t axis, const Dim& extent, const Dim& size, DType t) {
  const std::int64_t rank = starts.dim(1).value();
  Dims dims(static_cast<std::size_t>(rank) + 1, Dim(1));
  dims[0] = starts.dim(0);
  const Expr start = g.reshape(g.cast(g.narrow(starts, 1, Dim(axis), Dim(1)), t), dims);
  return g.min(g.max(start, 0), dim_value(g, extent, t) - dim_value(g, size, t));
}

// The index into the flattened x of the element at `coordinates` (one tensor per axis, broadcast together) of each
// batch entry.
Expr flat_index(Graph& g, const std::vector<Expr>& coordinates, const Dims& dims, bool batched, const Dim& batch) {
  const DType t = coordinates[0].dtype();
  Expr index;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Expr term = coordinates[i] * dims_product(g, std::span(dims).subspan(i + 1), t);
    index = index.valid() ? index + term : term;
  }
  if (batched) index = index + positions(g, batch, 0, static_cast<int>(dims.size()) + 1, t) * dims_product(g, dims, t);
  return index;
}

Expr flattened(Graph& g, Expr x) { return g.reshape(x, {x.shape().num_elements_dim()}); }

struct DynamicSliceRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Dims& sizes = c.op<ops::DynamicSlice>().sizes;
    if (auto error = check_window(c, c.input(0), sizes, c.input(1))) return *error;
    return make_shapes(Shape(sizes, c.input(0).dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto dims = a.in(0).dims(), window = a.out().dims();
    copy_strided(a.out().dtype(), window, a.out().mutable_data(), whole(window), a.in(0).data(),
                 window_at(dims, window, a.in(1)));
  }
  // Only the window is read or written.
  static Cost cost(const CostContext& c) {
    const auto bytes = static_cast<double>(c.outputs[0].size_bytes());
    return {0, bytes, bytes};
  }
  static void vjp(VjpContext& c) {
    if (c.wants(0))
      c.accumulate(0, c.graph().dynamic_update_slice(c.zeros(c.input(0).shape()), c.cotangent(), c.input(1)));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().add(c.box(), {c.tangent(0), c.input(1)}));
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    const Dims& sizes = c.op<ops::DynamicSlice>().sizes;
    const Expr x = c.input(0), starts = c.input(1);
    if (sizes.empty()) return c.set_result(c.lifted(0));
    if (!c.is_batched(1))
      return c.set_result(g.dynamic_slice(x, with_batch_start(g, starts), prepend(c.batch_size(), sizes)));
    const Dims dims(x.shape().dims().begin() + (c.is_batched(0) ? 1 : 0), x.shape().dims().end());
    const DType t = count_dtype(g, {prepend(c.batch_size(), dims)}, starts.dtype());
    std::vector<Expr> coordinates;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto axis = static_cast<std::int64_t>(i);
      coordinates.push_back(clamped_start(g, starts, axis, dims[i], sizes[i], t) +
                            positions(g, sizes[i], axis + 1, static_cast<int>(sizes.size()) + 1, t));
    }
    c.set_result(g.gather(flattened(g, x), flat_index(g, coordinates, dims, c.is_batched(0), c.batch_size()), 0));
  }
  static constexpr AttrField attrs[] = {field<&ops::DynamicSlice::sizes>("sizes", AttrPlace::TypeDims)};
};

struct DynamicUpdateSliceRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &x = c.input(0), &update = c.input(1);
    if (auto error = c.check_same_dtype(0, 2)) return *error;
    if (auto error = check_window(c, x, update.dims(), c.input(2))) return *error;
    return make_shapes(x);
  }
  static void reference(const RefArgs& a) {
    const auto dims = a.in(0).dims(), window = a.in(1).dims();
    std::byte* out = a.out().mutable_data();
    if (a.out().size_bytes() != 0) std::memcpy(out, a.in(0).data(), a.out().size_bytes());
    copy_strided(a.out().dtype(), window, out, window_at(dims, window, a.in(2)), a.in(1).data(), whole(window));
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    Graph& g = c.graph();
    const Shape& update = c.input(1).shape();
    c.accumulate(0, g.dynamic_update_slice(c.cotangent(), c.zeros(update), c.input(2)));
    c.accumulate(1, g.dynamic_slice(c.cotangent(), c.input(2), update.dims()));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0) || c.has_tangent(1))
      c.set_tangent(c.graph().add(c.box(), {c.tangent(0), c.tangent(1), c.input(2)}));
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    const Expr x = c.lifted(0), starts = c.input(2);
    if (!c.is_batched(2)) return c.set_result(g.dynamic_update_slice(x, c.lifted(1), with_batch_start(g, starts)));
    const Expr update = c.input(1);
    const Dims dims(x.shape().dims().begin() + 1, x.shape().dims().end());
    const Dims sizes(update.shape().dims().begin() + (c.is_batched(1) ? 1 : 0), update.shape().dims().end());
    if (sizes.empty()) return c.set_result(c.lifted(1));
    for (const Dim& size : sizes)
      if (size.is_static(0)) return c.set_result(x);
    // Every element of the result computes its position in the window.
    const DType t = count_dtype(g, {prepend(c.batch_size(), dims)}, starts.dtype());
    std::vector<Expr> coordinates;
    Expr inside;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const auto axis = static_cast<std::int64_t>(i);
      const Expr size = dim_value(g, sizes[i], t);
      const Expr at = positions(g, dims[i], axis + 1, static_cast<int>(dims.size()) + 1, t) -
                      clamped_start(g, starts, axis, dims[i], sizes[i], t);
      const Expr hit = g.bit_and(g.ge(at, 0), g.lt(at, size));
      inside = inside.valid() ? g.bit_and(inside, hit) : hit;
      coordinates.push_back(g.min(g.max(at, 0), size - 1));
    }
    const Expr index = flat_index(g, coordinates, sizes, c.is_batched(1), c.batch_size());
    ops::Gather pick;  // a window that turns out empty has no index to clamp to, and its elements are not used
    if (!update.shape().is_static()) pick.mode = IndexMode::Fill;
    c.set_result(g.where(inside, g.gather(flattened(g, update), {index}, pick), x));
  }
};

}  // namespace

constinit const OpDef ops::DynamicSlice::def{
    .kind = kind,
    .name = "dynamic_slice",
    .what = "A window of fixed size at a position given at run time, clamped so that it fits.",
    .inputs = inputs("x", "starts"),
    .attrs = DynamicSliceRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::DataMovement,
    .infer = DynamicSliceRules::infer,
    .decompose = none("a primitive"),
    .vjp = DynamicSliceRules::vjp,
    .jvp = DynamicSliceRules::jvp,
    .batch = DynamicSliceRules::batch,
    .reference = DynamicSliceRules::reference,
    .cost = DynamicSliceRules::cost};

constinit const OpDef ops::DynamicUpdateSlice::def{.kind = kind,
                                                   .name = "dynamic_update_slice",
                                                   .what = "x with a window at a run-time position replaced.",
                                                   .inputs = inputs("x", "update", "starts"),
                                                   .attrs = {},
                                                   .level = Level::Mir,
                                                   .leaf = LeafKind::None,
                                                   .elementwise = ElementwiseKind::No,
                                                   .view = ViewKind::None,
                                                   .precision = PrecisionCategory::DataMovement,
                                                   .infer = DynamicUpdateSliceRules::infer,
                                                   .decompose = none("a primitive"),
                                                   .vjp = DynamicUpdateSliceRules::vjp,
                                                   .jvp = DynamicUpdateSliceRules::jvp,
                                                   .batch = DynamicUpdateSliceRules::batch,
                                                   .reference = DynamicUpdateSliceRules::reference,
                                                   .cost = moves_bytes,
                                                   .updates = UpdateKind::Yes};

}  // namespace rlx
