// Image functions (resize, pad, roll, triangles) as compositions of slices, gathers and Interpolate.
#include "rlx/functions/image.h"

#include <algorithm>
#include <string>

#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"

namespace rlx::nn {
namespace {

using building::At;
using building::fail;

Expr value_of_image(const Operand& x, const char* what) {
  if (x.is_scalar())
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text(what, ": x must be a value of a graph, got a number"),
         "make the number a value: g.scalar(x)");
  return x.expr();
}

// The index of the element of the axis [0, n) that padded position i copies.
std::int64_t padded_from(PadMode mode, std::int64_t i, std::int64_t n) {
  const auto wrapped = [](std::int64_t v, std::int64_t by) { return ((v % by) + by) % by; };
  switch (mode) {
    case PadMode::Edge: return std::clamp<std::int64_t>(i, 0, n - 1);
    case PadMode::Wrap: return wrapped(i, n);
    case PadMode::Reflect: {
      if (n == 1) return 0;
      const std::int64_t at = wrapped(i, 2 * (n - 1));
      return at < n ? at : 2 * (n - 1) - at;
    }
    case PadMode::Symmetric: break;
  }
  const std::int64_t at = wrapped(i, 2 * n);
  return at < n ? at : 2 * n - 1 - at;
}

// The padding of one side of an axis that has enough elements to copy.
Expr border(Graph& g, const At& at, const Expr& x, std::int64_t axis, std::int64_t amount, bool front, PadMode mode) {
  const Dim n = x.dim(static_cast<int>(axis));
  const auto part = [&](const Dim& start) { return g.narrow(at(x), axis, start, Dim(amount)); };
  switch (mode) {
    case PadMode::Edge: {
      Dims dims = x.shape().dims();
      dims[static_cast<std::size_t>(axis)] = Dim(amount);
      return g.expand(at(g.narrow(at(x), axis, front ? Dim(0) : n - 1, Dim(1))), dims);
    }
    case PadMode::Reflect: return g.reverse(at(part(front ? Dim(1) : n - 1 - amount)), {axis});
    case PadMode::Symmetric: return g.reverse(at(part(front ? Dim(0) : n - amount)), {axis});
    case PadMode::Wrap: break;
  }
  return part(front ? n - amount : Dim(0));
}

Expr padded_axis(Graph& g, const At& at, const Expr& x, std::int64_t axis, std::int64_t low, std::int64_t high,
                 PadMode mode) {
  if (low == 0 && high == 0) return x;
  const Dim& extent = x.dim(static_cast<int>(axis));
  if (extent.is_static(0))
    fail(at.loc, ErrorCode::InvalidArgument, concat_text("pad: axis ", axis, " of x ", x.shape(), " is empty"),
         "the axis has no elements to copy into the padding");
  const std::int64_t most = std::max(low, high), needed = mode == PadMode::Reflect ? most + 1
                                                          : mode == PadMode::Edge  ? 1
                                                                                   : most;
  if (extent.is_static() && extent.value() < needed) {
    const std::int64_t n = extent.value(), m = low + n + high;
    Tensor places = Tensor::zeros(Shape({Dim(m)}, DType::I32));
    for (std::int64_t i = 0; i < m; ++i) places.set_i64(i, padded_from(mode, i - low, n));
    return g.gather(at(x), at(g.constant(std::move(places), at.loc)), axis);
  }
  std::vector<Expr> parts;
  if (low > 0) parts.push_back(border(g, at, x, axis, low, true, mode));
  parts.push_back(x);
  if (high > 0) parts.push_back(border(g, at, x, axis, high, false, mode));
  return g.concat(parts, axis, {}, at.loc);
}

Expr triangle(Operand x, std::int64_t k, bool lower, const char* what) {
  const Expr v = value_of_image(x, what);
  if (v.rank() < 2)
    fail(x.loc(), ErrorCode::ShapeMismatch, concat_text(what, ": x must be [.., M, N], got ", v.shape()));
  Graph& g = v.graph();
  const At at{x.loc()};
  const Dim m = v.dim(-2), n = v.dim(-1);
  const DType t = count_dtype(g, {{m}, {n}});
  const std::int64_t far = std::int64_t{1} << (t == DType::I32 ? 30 : 60);  // larger than any extent, and small enough
                                                                            // that no sum overflows
  const Expr row = positions(g, m, 0, 2, t, x.loc()), column = positions(g, n, 1, 2, t, x.loc());
  const Expr shifted = g.add(at(row), at(g.constant(Tensor::scalar_i64(t, std::clamp(k, -far, far)), x.loc())));
  const Expr kept = lower ? g.le(at(column), at(shifted)) : g.ge(at(column), at(shifted));
  return g.where(at(kept), at(v), at(g.constant(Tensor::zeros(Shape({}, v.dtype())), x.loc())));
}

}  // namespace

Expr resize(Operand x, std::vector<std::int64_t> axes, std::vector<std::int64_t> sizes, const ResizeOptions& options) {
  const Expr v = value_of_image(x, "resize");
  if (axes.size() != sizes.size())
    fail(x.loc(), ErrorCode::InvalidArgument,
         concat_text("resize: ", sizes.size(), " sizes for ", axes.size(), " axes"));
  if (!options.scales.empty() && options.scales.size() != axes.size())
    fail(x.loc(), ErrorCode::InvalidArgument,
         concat_text("resize: ", options.scales.size(), " scales for ", axes.size(), " axes"));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i] = building::normalize_axis_at(x.loc(), axes[i], v.rank(), "resize");
    order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return axes[a] < axes[b]; });
  ops::Interpolate op;
  op.fn = options.kind, op.places = options.places, op.rounding = options.rounding;
  op.antialias = options.antialias, op.renormalize = options.renormalize, op.cubic_a = options.cubic_a;
  for (std::size_t i : order) {
    op.axes.push_back(axes[i]), op.sizes.push_back(sizes[i]);
    if (!options.scales.empty()) op.scales.push_back(options.scales[i]);
  }
  return v.graph().add(op, {v}, x.loc());
}

Expr interpolate(Operand x, const std::vector<std::int64_t>& sizes, ResizeKind kind, bool align_corners, bool antialias,
                 const std::vector<double>& scales) {
  const Expr v = value_of_image(x, "interpolate");
  if (sizes.empty() || static_cast<std::int64_t>(sizes.size()) + 1 > v.rank())
    fail(x.loc(), ErrorCode::InvalidArgument,
         concat_text("interpolate: ", sizes.size(), " sizes for the spatial axes of x ", v.shape()),
         "x must be [N, C, ..]; give one size for each axis after C");
  ResizeOptions o;
  o.kind = kind;
  o.places = align_corners                 ? ResizePlaces::AlignCorners
             : kind == ResizeKind::Nearest ? ResizePlaces::Asymmetric
                                           : ResizePlaces::HalfPixel;
  o.rounding = ResizeRounding::Floor;
  o.antialias = antialias, o.renormalize = false;
  o.cubic_a = antialias ? -0.5 : -0.75;
  o.scales = scales;
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    axes.push_back(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(sizes.size()));
  return resize(x, axes, sizes, o);
}

Expr resize_nearest2x(Operand x) {
  const Expr v = value_of_image(x, "resize_nearest2x");
  if (v.rank() != 4)
    fail(x.loc(), ErrorCode::ShapeMismatch, concat_text("resize_nearest2x: x must be [N, C, H, W], got ", v.shape()));
  // Repeats elements by an expand, so that extents may be symbols.
  Graph& g = v.graph();
  const At at{x.loc()};
  const Dims& d = v.shape().dims();
  const Expr apart = g.reshape(at(v), {d[0], d[1], d[2], Dim(1), d[3], Dim(1)});
  return g.reshape(at(g.expand(at(apart), {d[0], d[1], d[2], Dim(2), d[3], Dim(2)})),
                   {d[0], d[1], d[2] * Dim(2), d[3] * Dim(2)});
}

Expr pad(Operand x, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high, PadMode mode) {
  Expr v = value_of_image(x, "pad");
  const auto rank = static_cast<std::size_t>(v.rank());
  if (low.size() != rank || high.size() != rank)
    fail(x.loc(), ErrorCode::InvalidArgument,
         concat_text("pad: ", low.size(), " and ", high.size(), " amounts for the axes of x ", v.shape()));
  constexpr std::int64_t kMostAmount = std::int64_t{1} << 60;  // so that sums of amounts and extents fit 64 bits
  for (const auto* amounts : {&low, &high})
    for (std::int64_t a : *amounts) {
      if (a < 0)
        fail(x.loc(), ErrorCode::InvalidArgument, concat_text("pad: the amount ", a, " is negative"),
             "use slice to remove elements");
      if (a > kMostAmount)
        fail(x.loc(), ErrorCode::InvalidArgument, concat_text("pad: the amount ", a, " is too large"));
    }
  for (std::size_t i = 0; i < rank; ++i)
    v = padded_axis(v.graph(), At{x.loc()}, v, static_cast<std::int64_t>(i), low[i], high[i], mode);
  return v;
}

Expr roll(Operand x, const std::vector<std::int64_t>& shifts, const std::vector<std::int64_t>& axes) {
  Expr v = value_of_image(x, "roll");
  if (shifts.size() != axes.size())
    fail(x.loc(), ErrorCode::InvalidArgument,
         concat_text("roll: ", shifts.size(), " shifts for ", axes.size(), " axes"));
  Graph& g = v.graph();
  const At at{x.loc()};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = building::normalize_axis_at(x.loc(), axes[i], v.rank(), "roll");
    const Dim n = v.dim(static_cast<int>(axis));
    if (n.is_static(0)) continue;
    const Dim by = mod(Dim(shifts[i]), n);  // from 0 to n - 1
    if (by.is_static(0)) continue;
    v = g.concat({g.narrow(at(v), axis, n - by, by), g.narrow(at(v), axis, Dim(0), n - by)}, axis, {}, x.loc());
  }
  return v;
}

Expr tile(Operand x, const std::vector<std::int64_t>& repeats) {
  const Expr v = value_of_image(x, "tile");
  Graph& g = v.graph();
  const At at{x.loc()};
  const std::size_t rank = std::max(repeats.size(), static_cast<std::size_t>(v.rank()));
  Dims apart, repeated, joined;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t missing = rank - static_cast<std::size_t>(v.rank()), ones = rank - repeats.size();
    const Dim n = i < missing ? Dim(1) : v.shape().dims()[i - missing];
    const std::int64_t times = i < ones ? 1 : repeats[i - ones];
    if (times < 0) fail(x.loc(), ErrorCode::InvalidArgument, concat_text("tile: ", times, " repeats"));
    apart.insert(apart.end(), {Dim(1), n});
    repeated.insert(repeated.end(), {Dim(times), n});
    joined.push_back(n * Dim(times));
  }
  return g.reshape(at(g.expand(at(g.reshape(at(v), apart)), repeated)), joined);
}

Expr tril(Operand x, std::int64_t k) { return triangle(x, k, true, "tril"); }
Expr triu(Operand x, std::int64_t k) { return triangle(x, k, false, "triu"); }

}  // namespace rlx::nn
