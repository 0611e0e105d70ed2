// Interpolate: axes resampled with weights that depend on shapes alone. A composite. It is linear, and its transpose is
// the same op.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/ir/math/resize.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr std::int64_t kMostOfAxis = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kFewTaps = 4;  // with more taps it becomes a matmul

Dims with_extent(Dims dims, std::int64_t axis, const Dim& d) {
  dims[static_cast<std::size_t>(axis)] = d;
  return dims;
}
// `dims` with two extents in place of `axis`.
Dims split_extent(Dims dims, std::int64_t axis, const Dim& first, const Dim& second) {
  dims[static_cast<std::size_t>(axis)] = first;
  dims.insert(dims.begin() + axis + 1, second);
  return dims;
}

// The weights or indices of tap k of each output, as [1.., m, 1..].
Expr tap_values(Graph& g, const ResizeTaps& taps, std::int64_t k, DType dtype) {
  Tensor t = Tensor::zeros(Shape({Dim(taps.outputs())}, dtype));
  for (std::int64_t o = 0; o < taps.outputs(); ++o) {
    const auto at = static_cast<std::size_t>(taps.begin[static_cast<std::size_t>(o)] + k);
    const bool there = taps.begin[static_cast<std::size_t>(o)] + k < taps.begin[static_cast<std::size_t>(o) + 1];
    if (dtype == DType::I32)
      t.set_i64(o, there ? taps.index[at] : -1);
    else
      store_element(t.mutable_data(), dtype, o, there ? taps.weight[at] : 0.0);
  }
  return g.constant(std::move(t));
}

// How often each of n elements is repeated when the taps only repeat elements; 0 for other taps.
std::int64_t repeats(const ResizeTaps& taps, std::int64_t n) {
  const std::int64_t m = taps.outputs();
  if (m % n != 0 || taps.index.size() != static_cast<std::size_t>(m)) return 0;
  for (std::int64_t o = 0; o < m; ++o)
    if (taps.index[static_cast<std::size_t>(o)] != o / (m / n) || taps.weight[static_cast<std::size_t>(o)] != 1)
      return 0;
  return m / n;
}

// x resampled along one axis, in its accumulator dtype.
Expr resized(Graph& g, const ops::Interpolate& op, std::size_t i, Expr x) {
  const std::int64_t axis = op.axes[i], n = x.dim(static_cast<int>(axis)).value(), m = op.sizes[i];
  // The map before transposition takes `from` elements to `to`.
  ops::Interpolate forward = op;
  forward.transposed = false;
  const std::int64_t from = op.transposed ? m : n, to = op.transposed ? n : m;
  forward.sizes[i] = to;
  const ResizeTaps taps = resize_taps(forward, i, from);
  const Dims& dims = x.shape().dims();
  if (const std::int64_t times = repeats(taps, from)) {
    if (times == 1) return x;
    if (op.transposed) return g.sum(g.reshape(x, split_extent(dims, axis, Dim(m), Dim(times))), {axis + 1});
    const Expr apart = g.reshape(x, split_extent(dims, axis, Dim(n), Dim(1)));
    return g.reshape(g.expand(apart, split_extent(dims, axis, Dim(n), Dim(times))), with_extent(dims, axis, Dim(m)));
  }
  if (op.fn == ResizeKind::Area && from % to == 0) {  // adjacent windows
    const std::int64_t width = from / to;
    if (!op.transposed) return g.mean(g.reshape(x, split_extent(dims, axis, Dim(m), Dim(width))), {axis + 1});
    const Expr share = g.reshape(x * (1 / static_cast<double>(width)), split_extent(dims, axis, Dim(n), Dim(1)));
    return g.reshape(g.expand(share, split_extent(dims, axis, Dim(n), Dim(width))), with_extent(dims, axis, Dim(m)));
  }
  const bool weighted = std::any_of(taps.weight.begin(), taps.weight.end(), [](double w) { return w != 1; });
  if (taps.widest() <= kFewTaps) {
    Expr y = op.transposed ? g.expand(g.constant(Tensor::zeros(Shape({}, x.dtype()))), with_extent(dims, axis, Dim(m)))
                           : Expr();
    for (std::int64_t k = 0; k < taps.widest(); ++k) {
      const Expr places = tap_values(g, taps, k, DType::I32);
      const auto weighted_by = [&](Expr v) {
        return weighted ? v * along_axis(tap_values(g, taps, k, x.dtype()), x.rank(), axis) : v;
      };
      if (op.transposed) {
        y = g.scatter_add(y, places, weighted_by(x), axis);
      } else {
        const Expr part = weighted_by(g.add(ops::Gather{{axis}, IndexMode::Fill, 0}, {x, places}));
        y = y.valid() ? y + part : part;
      }
    }
    return y;
  }
  Tensor matrix = Tensor::zeros(Shape({Dim(n), Dim(m)}, x.dtype()));
  for (std::int64_t o = 0; o < to; ++o)
    for (std::int64_t t = taps.begin[static_cast<std::size_t>(o)]; t < taps.begin[static_cast<std::size_t>(o) + 1];
         ++t) {
      const std::int64_t at = taps.index[static_cast<std::size_t>(t)], place = op.transposed ? o * m + at : at * m + o;
      const double w = load_element<double>(matrix.data(), x.dtype(), place) + taps.weight[static_cast<std::size_t>(t)];
      store_element(matrix.mutable_data(), x.dtype(), place, w);
    }
  std::vector<std::int64_t> perm = identity_perm(x.rank());
  std::rotate(perm.begin() + axis, perm.begin() + axis + 1, perm.end());
  return g.transpose(g.matmul(g.transpose(x, perm), g.constant(std::move(matrix))), inverse_perm(perm));
}

struct InterpolateRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::Interpolate>();
    if (auto e = check_axes(c, op.axes, x)) return *e;
    if (!std::is_sorted(op.axes.begin(), op.axes.end()))
      return c.attr_error("axes ", dims_text(op.axes), " must be sorted");
    if (op.sizes.size() != op.axes.size())
      return c.attr_error("needs one size for each axis, got ", op.sizes.size(), " sizes for ", op.axes.size(),
                          " axes");
    if (!op.scales.empty() && op.scales.size() != op.axes.size())
      return c.attr_error("needs one scale for each axis, got ", op.scales.size(), " scales for ", op.axes.size(),
                          " axes");
    for (double s : op.scales)
      if (!(s >= 0) || !std::isfinite(s)) return c.attr_error("a scale must be a finite number >= 0, got ", s);
    if (!std::isfinite(op.cubic_a)) return c.attr_error("cubic_a must be a finite number, got ", op.cubic_a);
    if (is_storage_only(x.dtype()))
      return c.dtype_error("x has a storage dtype, which cannot be computed with: ", x, "; cast it first");
    const bool adds = op.fn != ResizeKind::Nearest || op.transposed;
    if (adds && !is_inexact(x.dtype()) && (op.fn != ResizeKind::Nearest || x.dtype() == DType::Bool))
      return c.dtype_error("x must be float or complex, not ", x, "; cast it first");
    Dims dims = x.dims();
    for (std::size_t i = 0; i < op.axes.size(); ++i) {
      Dim& d = dims[static_cast<std::size_t>(op.axes[i])];
      if (!d.is_static()) return c.error("the extent of axis ", op.axes[i], " of x ", x, " is not known");
      if (d.value() < 1 || d.value() > kMostOfAxis)
        return c.error("axis ", op.axes[i], " of x ", x, " has no elements, or too many, to resample");
      if (op.sizes[i] < 1 || op.sizes[i] > kMostOfAxis)
        return c.attr_error("size ", op.sizes[i], " of axis ", op.axes[i], " is not in [1, ", kMostOfAxis, "]");
      d = Dim(op.sizes[i]);
    }
    return make_shapes(Shape(std::move(dims), x.dtype()));
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::Interpolate>();
    Expr y = widen(c.input(0));
    for (std::size_t i = 0; i < op.axes.size(); ++i) y = resized(c.graph(), op, i, y);
    c.set_result(round_to(y, c.result_shape().dtype()));
  }
  static void vjp(VjpContext& c) {
    if (c.wants(0)) c.accumulate(0, c.graph().add(other_way(c), {c.cotangent()}));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) {
    ops::Interpolate op = c.op<ops::Interpolate>();
    op.axes = shifted(op.axes);
    c.emit_lifted(std::move(op));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Interpolate>();
    visit_accumulator(a.in(0).dtype(), [&]<class A>(A) {
      std::vector<A> x = load_all<A>(a.in(0));
      std::vector<std::int64_t> dims = a.in(0).dims();
      for (std::size_t i = 0; i < op.axes.size(); ++i) x = along<A>(op, i, x, dims);
      store_all(a.out(), x);
    });
  }
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::Interpolate>();
    return c.with_flops(static_cast<double>(4 * op.axes.size()) * c.elements());
  }
  static constexpr AttrField attrs[] = {field<&ops::Interpolate::fn>("fn", AttrPlace::Suffix),
                                        field<&ops::Interpolate::axes>("axes"),
                                        field<&ops::Interpolate::sizes>("sizes"),
                                        field<&ops::Interpolate::scales>("scales"),
                                        field<&ops::Interpolate::places>("places"),
                                        field<&ops::Interpolate::rounding>("rounding"),
                                        field<&ops::Interpolate::antialias>("antialias"),
                                        field<&ops::Interpolate::renormalize>("renormalize"),
                                        field<&ops::Interpolate::transposed>("transposed"),
                                        field<&ops::Interpolate::cubic_a>("cubic_a")};

 private:
  static ops::Interpolate other_way(const BuildContext& c) {
    ops::Interpolate op = c.op<ops::Interpolate>();
    op.transposed = !op.transposed;
    for (std::size_t i = 0; i < op.axes.size(); ++i) op.sizes[i] = c.input(0).dim(static_cast<int>(op.axes[i])).value();
    return op;
  }
  template <class A>
  static std::vector<A> along(const ops::Interpolate& op, std::size_t i, const std::vector<A>& x,
                              std::vector<std::int64_t>& dims) {
    const AxisSplit s = split_at(dims, op.axes[i]);
    const ResizeTaps taps = resize_taps(op, i, s.extent);
    const std::int64_t m = op.sizes[i];
    std::vector<A> y(static_cast<std::size_t>(s.outer * m * s.inner), A{});
    for (std::int64_t outer = 0; outer < s.outer; ++outer)
      for (std::int64_t o = 0; o < m; ++o)
        for (std::int64_t t = taps.begin[static_cast<std::size_t>(o)]; t < taps.begin[static_cast<std::size_t>(o) + 1];
             ++t)
          for (std::int64_t k = 0; k < s.inner; ++k) {
            A& sum = y[static_cast<std::size_t>((outer * m + o) * s.inner + k)];
            const A v =
                x[static_cast<std::size_t>((outer * s.extent + taps.index[static_cast<std::size_t>(t)]) * s.inner + k)];
            if constexpr (std::is_integral_v<A>)
              sum = wrapping_add(sum, v);  // for Nearest, whose weights are 1
            else
              sum += v * taps.weight[static_cast<std::size_t>(t)];
          }
    dims[static_cast<std::size_t>(op.axes[i])] = m;
    return y;
  }
};

}  // namespace

constinit const OpDef ops::Interpolate::def{.kind = kind,
                                            .name = "interpolate",
                                            .what = "Resizes axes: nearest, linear, cubic, mean or Lanczos.",
                                            .inputs = inputs("x"),
                                            .attrs = InterpolateRules::attrs,
                                            .level = Level::Mir,
                                            .leaf = LeafKind::None,
                                            .elementwise = ElementwiseKind::No,
                                            .view = ViewKind::None,
                                            .precision = PrecisionCategory::Reduction,
                                            .infer = InterpolateRules::infer,
                                            .decompose = InterpolateRules::decompose,
                                            .vjp = InterpolateRules::vjp,
                                            .jvp = InterpolateRules::jvp,
                                            .batch = InterpolateRules::batch,
                                            .reference = InterpolateRules::reference,
                                            .cost = InterpolateRules::cost};

}  // namespace rlx
