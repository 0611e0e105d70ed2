// Slice: x[start : limit : stride] on every axis.
#include <algorithm>

#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

std::int64_t stride_of(const ops::Slice& op, std::size_t axis) { return op.strides.empty() ? 1 : op.strides[axis]; }

// A zero tensor of extents `full` with `g` at starts, starts + strides, ..: the inverse of the slice.
Expr put_back(Graph& g, Expr picked, const ops::Slice& op, const Shape& full) {
  const auto rank = static_cast<std::size_t>(full.rank());
  std::vector<std::int64_t> none(rank, 0), between(rank, 0);
  bool spread = false;
  for (std::size_t i = 0; i < rank; ++i) {
    // A stride past the end picks at most one element, so nothing goes between elements.
    if (building::bounds_of(g, picked.dim(static_cast<int>(i))).max <= 1) continue;
    between[i] = stride_of(op, i) - 1;
    spread = spread || between[i] > 0;
  }
  Expr x = spread ? g.pad(picked, none, none, 0, between) : picked;
  bool is_static = x.shape().is_static() && full.is_static();
  for (const Dim& start : op.starts) is_static = is_static && start.is_static();
  if (is_static) {
    std::vector<std::int64_t> low, high;
    for (std::size_t i = 0; i < rank; ++i) {
      low.push_back(op.starts[i].value());
      high.push_back(full.dims()[i].value() - low[i] - x.dim(static_cast<int>(i)).value());
    }
    return g.pad(x, low, high, 0);
  }
  for (std::size_t i = 0; i < rank; ++i) {  // pad takes integers: symbolic amounts are concatenated zeros
    const int axis = static_cast<int>(i);
    std::vector<Expr> parts{x};
    auto zeros = [&](const Dim& extent) {
      return g.expand(g.scalar(0, full.dtype()), x.shape().with_dim(axis, extent).dims());
    };
    const Dim before = op.starts[i], after = full.dims()[i] - op.starts[i] - x.dim(axis);
    if (!before.is_static(0)) parts.insert(parts.begin(), zeros(before));
    if (!after.is_static(0)) parts.push_back(zeros(after));
    if (parts.size() > 1) x = g.concat(parts, axis);
  }
  return x;
}

struct SliceRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::Slice>();
    const auto rank = static_cast<std::size_t>(x.rank());
    if (op.starts.size() != rank || op.limits.size() != rank || (!op.strides.empty() && op.strides.size() != rank))
      return c.attr_error("x ", x, " needs ", rank, " entries in each of starts, limits and strides, got ",
                          op.starts.size(), ", ", op.limits.size(), " and ", op.strides.size());
    Dims dims;
    for (std::size_t i = 0; i < rank; ++i) {
      const Dim &start = op.starts[i], &limit = op.limits[i], &extent = x.dims()[i];
      const std::int64_t stride = stride_of(op, i);
      if (stride < 1) return c.attr_error("stride ", stride, " of axis ", i, " is not positive");
      if (c.negative(start) || c.negative(limit) || c.negative(limit - start) || c.negative(extent - limit))
        return c.error("[", start, ", ", limit, ") is not a range of axis ", i, " of x ", x);
      const Dim length = limit - start;
      // Rounds up. With a stride near the largest integer, the sum of both overflows.
      constexpr std::int64_t kLargeStride = std::int64_t{1} << 32;
      dims.push_back(stride == 1             ? length
                     : stride < kLargeStride ? floordiv(length + (Dim(stride) - 1), Dim(stride))
                                             : floordiv(length - Dim(1), Dim(stride)) + Dim(1));
    }
    return make_shapes(Shape(std::move(dims), x.dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Slice>();
    const auto extents = a.in(0).dims();
    StridedView view{0, row_major_strides(extents)};
    for (std::size_t i = 0; i < op.starts.size(); ++i) {
      view.offset += op.starts[i].value() * view.strides[i];
      view.strides[i] *= std::min(stride_of(op, i), extents[i] + 1);  // a stride past the end picks one element
    }
    const auto dims = a.out().dims();
    copy_strided(a.out().dtype(), dims, a.out().mutable_data(), whole(dims), a.in(0).data(), view);
  }
  // Only the picked elements are read.
  static Cost cost(const CostContext& c) {
    const auto bytes = static_cast<double>(c.outputs[0].size_bytes());
    return {0, bytes, bytes};
  }
  static void vjp(VjpContext& c) {
    c.accumulate(0, put_back(c.graph(), c.cotangent(), c.op<ops::Slice>(), c.input(0).shape()));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) {
    ops::Slice op = c.op<ops::Slice>();
    op.starts.insert(op.starts.begin(), Dim(0));
    op.limits.insert(op.limits.begin(), c.batch_size());
    if (!op.strides.empty()) op.strides.insert(op.strides.begin(), 1);
    c.emit_lifted(std::move(op));
  }
  static constexpr AttrField attrs[] = {field<&ops::Slice::starts>("starts"), field<&ops::Slice::limits>("limits"),
                                        field<&ops::Slice::strides>("strides")};
};

}  // namespace

constinit const OpDef ops::Slice::def{.kind = kind,
                                      .name = "slice",
                                      .what = "A strided window of fixed position.",
                                      .inputs = inputs("x"),
                                      .attrs = SliceRules::attrs,
                                      .level = Level::Mir,
                                      .leaf = LeafKind::None,
                                      .elementwise = ElementwiseKind::No,
                                      .view = ViewKind::ByStrides,
                                      .precision = PrecisionCategory::DataMovement,
                                      .infer = SliceRules::infer,
                                      .decompose = none("a primitive"),
                                      .vjp = SliceRules::vjp,
                                      .jvp = SliceRules::jvp,
                                      .batch = SliceRules::batch,
                                      .reference = SliceRules::reference,
                                      .cost = SliceRules::cost};

}  // namespace rlx
