// Convolution functions. Layouts and paddings become attributes of ops::Conv.
#include "rlx/functions/conv.h"

#include <algorithm>
#include <limits>

#include "rlx/ir/build/building.h"
#include "rlx/ir/build/building_conv.h"
#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::nn {
namespace {

using building::At;
using building::fail;
using building::for_each_axis;

struct Amounts {
  std::vector<std::int64_t> low, high;
};

// The zeros to pad before and after spatial axes of extents x, for windows that span `spans` elements.
Amounts padding_amounts(SourceLoc loc, const char* what, const ConvPadding& p, const Dims& x,
                        const std::vector<Dim>& spans, const std::vector<std::int64_t>& strides) {
  const auto space = static_cast<int>(x.size());
  if (p.kind == ConvPadding::Kind::Valid)
    return {std::vector<std::int64_t>(x.size(), 0), std::vector<std::int64_t>(x.size(), 0)};
  if (p.kind == ConvPadding::Kind::Explicit) {
    constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::min();
    return {for_each_axis(loc, what, "padding", p.low, space, kAny),
            for_each_axis(loc, what, "padding", p.high, space, kAny)};
  }
  Amounts out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t stride = strides[i];
    if (!spans[i].is_static() || (stride != 1 && !x[i].is_static()))
      fail(loc, ErrorCode::Unsupported,
           concat_text(what, ": padding \"same\" is not known for an axis of ", x[i], " elements, a window of ",
                       spans[i], " and stride ", stride, ": an extent is symbolic"),
           "bind the symbol first, or give the padding as numbers");
    const std::int64_t left = stride == 1
                                  ? spans[i].value() - 1
                                  : std::max<std::int64_t>(0, ((x[i].value() + stride - 1) / stride - 1) * stride +
                                                                  spans[i].value() - x[i].value());
    const std::int64_t half = left / 2;
    out.low.push_back(p.kind == ConvPadding::Kind::Same ? half : left - half);
    out.high.push_back(left - out.low.back());
  }
  return out;
}

Expr conv_nd(const char* what, Expr x, Expr w, const ConvOptions& o, int space, SourceLoc loc) {
  building::require_conv_ranks(loc, what, x, w, space);
  ops::Conv op;
  op.strides = for_each_axis(loc, what, "strides", o.strides, space, 1);
  op.rhs_dilation = for_each_axis(loc, what, "dilation", o.dilation, space, 1);
  op.groups = o.groups;
  const int x_space = o.channels_last ? 1 : 2, w_space = o.channels_last ? 0 : 2;
  if (o.channels_last) {
    op.lhs_spec = {0, space + 1}, op.rhs_spec = {space + 1, space};
    for (int i = 0; i < space; ++i) op.lhs_spec.push_back(i + 1), op.rhs_spec.push_back(i);
    op.out_spec = op.lhs_spec;
  }
  Dims extents;
  std::vector<Dim> spans;
  for (int i = 0; i < space; ++i) {
    extents.push_back(x.dim(x_space + i));
    spans.push_back((w.dim(w_space + i) - Dim(1)) * Dim(op.rhs_dilation[static_cast<std::size_t>(i)]) + Dim(1));
  }
  Amounts around = padding_amounts(loc, what, o.padding, extents, spans, op.strides);
  op.low = std::move(around.low), op.high = std::move(around.high);
  const At at{loc};
  return x.graph().conv(at(x), at(w), std::move(op));
}

Expr transpose_nd(const char* what, Expr x, Expr w, const ConvTransposeOptions& o, int space, SourceLoc loc) {
  building::require_conv_ranks(loc, what, x, w, space);
  building::ConvArguments a;
  a.strides = for_each_axis(loc, what, "strides", o.strides, space, 1);
  a.low = a.high = for_each_axis(loc, what, "padding", o.padding, space, 0);
  a.dilation = for_each_axis(loc, what, "dilation", o.dilation, space, 1);
  a.output_padding = for_each_axis(loc, what, "output_padding", o.output_padding, space, 0);
  a.groups = o.groups;
  return building::transposed_conv(x.graph(), what, x, w, a, loc);
}

// Windows with more elements than this are read by a gather, because a slice for each element would need as many nodes.
constexpr std::int64_t kMostTaps = 64;

struct MovedAxis {
  int from, to;
};
// Replaces axis m.from of y by its windows. The elements of a window become a new axis m.to, before the axis of
// windows.
Expr windows_by_places(const Expr& y, MovedAxis m, std::int64_t size, const Dim& places, std::int64_t stride,
                       std::int64_t dilation, SourceLoc loc) {
  Graph& g = y.graph();
  const At at{loc};
  const DType t = count_dtype(g, {{y.dim(m.from)}});
  const auto spaced = [&](const Dim& n, std::int64_t axis, std::int64_t by) {
    return g.mul(at(positions(g, n, axis, 2, t, loc)), at(g.constant(Tensor::scalar_i64(t, by), loc)));
  };
  ops::Gather op;
  op.axes = {m.from};
  // These products do not overflow I32: an index that large would be outside of the axis.
  const Expr index = g.add(at(spaced(Dim(size), 0, dilation)), at(spaced(places, 1, places.is_static(1) ? 0 : stride)));
  const Expr cut = g.gather(at(y), {index}, op);
  std::vector<std::int64_t> perm;
  for (std::int64_t i = 0; i < cut.rank(); ++i)
    if (i != m.from) perm.push_back(i);
  perm.insert(perm.begin() + m.to, m.from);
  return g.transpose(at(cut), perm);
}

}  // namespace

Expr conv1d(Expr x, Expr w, const ConvOptions& o, SourceLoc loc) { return conv_nd("conv1d", x, w, o, 1, loc); }
Expr conv2d(Expr x, Expr w, const ConvOptions& o, SourceLoc loc) { return conv_nd("conv2d", x, w, o, 2, loc); }
Expr conv3d(Expr x, Expr w, const ConvOptions& o, SourceLoc loc) { return conv_nd("conv3d", x, w, o, 3, loc); }

Expr conv_transpose1d(Expr x, Expr w, const ConvTransposeOptions& o, SourceLoc loc) {
  return transpose_nd("conv_transpose1d", x, w, o, 1, loc);
}
Expr conv_transpose2d(Expr x, Expr w, const ConvTransposeOptions& o, SourceLoc loc) {
  return transpose_nd("conv_transpose2d", x, w, o, 2, loc);
}
Expr conv_transpose3d(Expr x, Expr w, const ConvTransposeOptions& o, SourceLoc loc) {
  return transpose_nd("conv_transpose3d", x, w, o, 3, loc);
}

Expr depthwise_conv1d(Expr x, Expr w, const ConvOptions& options, SourceLoc loc) {
  if (x.rank() != 3 || w.rank() != 2)
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text("depthwise_conv1d: needs x [B, S, C] and w [K, C], got ", x.shape(), " and ", w.shape()));
  if (options.groups != 1)
    fail(loc, ErrorCode::InvalidArgument,
         concat_text("depthwise_conv1d: groups is ", options.groups, ", but it must be 1: each channel is a group"));
  if (!x.dim(2).is_static() || !(x.dim(2) == w.dim(1)))
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text("depthwise_conv1d: x ", x.shape(), " has ", x.dim(2), " channels, w ", w.shape(), " has ",
                     w.dim(1)));
  ConvOptions o = options;
  o.channels_last = true;
  o.groups = std::max<std::int64_t>(1, x.dim(2).value());
  const At at{loc};
  return conv_nd("depthwise_conv1d", x, x.graph().reshape(at(w), {w.dim(0), Dim(1), w.dim(1)}), o, 1, loc);
}

Expr im2col(Expr x, const std::vector<std::int64_t>& window, const ConvOptions& o,
            const std::vector<std::int64_t>& lhs_dilation, SourceLoc loc) {
  const int space = x.rank() - 2;
  if (space < 1) fail(loc, ErrorCode::ShapeMismatch, concat_text("im2col: x must be [N, C, X..], not ", x.shape()));
  if (o.groups != 1 || o.channels_last)
    fail(loc, ErrorCode::InvalidArgument, "im2col: groups and channels_last are not supported; x must be [N, C, X..]");
  if (window.size() != static_cast<std::size_t>(space))
    fail(loc, ErrorCode::InvalidArgument,
         concat_text("im2col: the window has ", window.size(), " extents for ", space, " spatial axes"));
  const auto sizes = for_each_axis(loc, "im2col", "window", window, space, 1);
  const auto strides = for_each_axis(loc, "im2col", "strides", o.strides, space, 1);
  const auto dilation = for_each_axis(loc, "im2col", "dilation", o.dilation, space, 1);
  const auto spread = for_each_axis(loc, "im2col", "lhs_dilation", lhs_dilation, space, 1);
  const At at{loc};
  Graph& g = x.graph();
  Dims extents;
  std::vector<Dim> spans;
  std::vector<std::int64_t> interior{0, 0};
  for (int i = 0; i < space; ++i) {
    const auto a = static_cast<std::size_t>(i);
    const Dim& extent = x.dim(i + 2);
    extents.push_back(spread[a] == 1 ? extent : max(extent * Dim(spread[a]) - Dim(spread[a] - 1), Dim(0)));
    spans.emplace_back((sizes[a] - 1) * dilation[a] + 1);
    interior.push_back(spread[a] - 1);
  }
  Amounts around = padding_amounts(loc, "im2col", o.padding, extents, spans, strides);
  for (auto* amounts : {&around.low, &around.high}) amounts->insert(amounts->begin(), 2, 0);
  Expr y = g.pad(at(x), around.low, around.high, at(0), interior);
  // Processes one spatial axis after the other. The new axes of window elements come before the spatial axes.
  Dims results;
  for (int i = 0; i < space; ++i) {
    const auto a = static_cast<std::size_t>(i);
    const int axis = 2 + 2 * i;  // after the axes of window elements made so far
    const Dim steps = y.dim(axis) - spans[a];
    const Dim places = steps.is_static() ? Dim(steps.value() < 0 ? 0 : steps.value() / strides[a] + 1)
                                         : floordiv(steps, Dim(strides[a])) + Dim(1);
    results.push_back(places);
    if (places.is_static(0)) {  // no window fits: the result is empty, and the window may have any size
      Dims dims = y.shape().dims();
      dims[static_cast<std::size_t>(axis)] = Dim(0);
      dims.insert(dims.begin() + 2 + i, Dim(sizes[a]));
      y = g.expand(at(g.scalar(0, y.dtype(), loc)), dims);
      continue;
    }
    if (sizes[a] > kMostTaps) {
      y = windows_by_places(y, {axis, 2 + i}, sizes[a], places, strides[a], dilation[a], loc);
      continue;
    }
    std::vector<Expr> taps;
    for (std::int64_t t = 0; t < sizes[a]; ++t) {
      Dims first(static_cast<std::size_t>(y.rank()), Dim(0)), end = y.shape().dims();
      std::vector<std::int64_t> steps_of(static_cast<std::size_t>(y.rank()), 1);
      first[static_cast<std::size_t>(axis)] = Dim(t * dilation[a]);
      end[static_cast<std::size_t>(axis)] = Dim(t * dilation[a]) + (places - Dim(1)) * Dim(strides[a]) + Dim(1);
      steps_of[static_cast<std::size_t>(axis)] = strides[a];
      const Expr part = g.slice(at(y), first, end, steps_of);
      Dims dims = part.shape().dims();
      dims[static_cast<std::size_t>(axis)] = places;
      dims.insert(dims.begin() + 2 + i, Dim(1));
      // [N, C, window.., 1, spatial axes done.., this axis, ..]
      taps.push_back(g.reshape(at(part), dims));
    }
    y = g.concat(taps, 2 + i, {}, loc);
  }
  Dims dims{y.dim(0), y.dim(1)};
  for (std::int64_t k : sizes) dims[1] = dims[1] * Dim(k);
  dims.insert(dims.end(), results.begin(), results.end());
  return g.reshape(at(y), dims);
}

}  // namespace rlx::nn
