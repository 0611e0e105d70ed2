// Pooling as compositions of ReduceWindow.
#include "rlx/functions/pool.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"
#include "rlx/ir/math/windows.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::nn {
namespace {

using building::At;
using building::fail;

// The spatial axes of x. Their number is `entries` when the options' lists have more than one entry.
struct Space {
  // The limit of ReduceWindow's attributes. Products of two such numbers fit 64 bits.
  static constexpr std::int64_t kMost = std::int64_t{1} << 30;
  Expr x;
  SourceLoc loc;
  const char* what;
  std::int64_t first = 0, count = 0;

  Space(const Operand& operand, std::size_t entries, bool channels_last, const char* name)
      : loc(operand.loc()), what(name) {
    if (operand.is_scalar())
      refuse("x must be a value of a graph, got a number", "make the number a value: g.scalar(x)");
    x = operand.expr();
    const std::int64_t rank = x.rank(), behind = channels_last ? 1 : 0;
    count = entries > 1 ? static_cast<std::int64_t>(entries) : rank - 2;
    first = rank - behind - count;
    if (count < 1 || first < 0)
      refuse(concat_text("x ", x.shape(), " has no ", entries > 1 ? std::to_string(entries) + " " : "", "spatial axes"),
             "x must be [N, C, ..], or [N, .., C] with channels_last");
  }
  [[noreturn]] void refuse(const std::string& why, std::string hint = {}) const {
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": ", why), std::move(hint));
  }
  std::vector<std::int64_t> list(const char* name, const std::vector<std::int64_t>& values, std::int64_t least) const {
    std::vector<std::int64_t> out = values;
    if (out.size() == 1) out.assign(static_cast<std::size_t>(count), values[0]);
    if (out.size() != static_cast<std::size_t>(count))
      refuse(concat_text(name, " has ", values.size(), " entries for ", count, " spatial axes"));
    for (std::int64_t v : out) {
      if (v < least) refuse(concat_text(name, " ", v, " is below ", least));
      if (v > kMost) refuse(concat_text(name, " ", v, " is above ", kMost));
    }
    return out;
  }
  const Dim& extent(std::size_t i) const { return x.dim(static_cast<int>(first) + static_cast<int>(i)); }
  std::vector<std::int64_t> axes() const {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < count; ++i) out.push_back(first + i);
    return out;
  }
};

std::size_t entries_of(const PoolOptions& o) {
  return std::max({o.window.size(), o.strides.size(), o.low.size(), o.high.size(), o.dilation.size()});
}

struct Windows {
  std::vector<WindowAxis> axes;       // by spatial axis
  std::vector<std::int64_t> counted;  // high padding that averages count; the padding that ceil_mode adds is not
                                      // counted
};

Windows windows_of(const Space& s, const PoolOptions& o) {
  if (o.window.empty()) s.refuse("the window is empty", "give its extents: {.window = {2, 2}}");
  const auto window = s.list("window", o.window, 1);
  const auto strides = o.strides.empty() ? window : s.list("strides", o.strides, 1);
  const auto low = s.list("low", o.low, 0), high = o.high.empty() ? low : s.list("high", o.high, 0),
             dilation = s.list("dilation", o.dilation, 1);
  Windows w;
  for (std::size_t i = 0; i < window.size(); ++i) {
    WindowAxis a{window[i], strides[i], low[i], high[i], 1, dilation[i]};
    const bool needs_extent = o.padding != PoolPadding::Given || o.ceil_mode;
    if (needs_extent && !s.extent(i).is_static())
      s.refuse(concat_text("the extent of axis ", s.first + static_cast<std::int64_t>(i), " of x ", s.x.shape(),
                           " is not known, and ", o.ceil_mode ? "ceil_mode" : "padding", " depends on it"),
               "give the padding as numbers");
    if (o.padding != PoolPadding::Given) {
      const std::int64_t n = s.extent(i).value(), m = (n + a.stride - 1) / a.stride;
      const std::int64_t total = n == 0 ? 0 : std::max<std::int64_t>((m - 1) * a.stride + a.span() - n, 0);
      a.low = o.padding == PoolPadding::Same ? total / 2 : total - total / 2;
      a.high = total - a.low;
    }
    w.counted.push_back(a.high);
    if (o.ceil_mode) {
      const std::int64_t n = s.extent(i).value(), rest = a.low + n + a.high - a.span();
      if (rest >= 0) {
        std::int64_t m = (rest + a.stride - 1) / a.stride + 1;
        if ((m - 1) * a.stride >= n + a.low) --m;  // the last window must begin in x or in the low padding
        a.high = std::max(a.high, (m - 1) * a.stride + a.span() - n - a.low);
      }
    }
    w.axes.push_back(a);
  }
  return w;
}

Expr windowed(const Space& s, ReduceKind fn, const Expr& x, const std::vector<WindowAxis>& axes) {
  std::vector<WindowAxis> all(static_cast<std::size_t>(x.rank()));
  std::copy(axes.begin(), axes.end(), all.begin() + s.first);
  ops::ReduceWindow op;
  op.fn = fn;
  set_window_axes(op, all);
  return x.graph().reduce_window(Operand(x, s.loc), op);
}

// The number of elements that each window of axis i averages, as [1.., m, 1..] of x's rank. nullopt when every window
// averages all its elements.
std::optional<Expr> counts(const Space& s, const Windows& w, std::size_t i, bool padding_counts) {
  const WindowAxis& a = w.axes[i];
  WindowAxis over = a;  // sums ones
  const std::int64_t before = padding_counts ? a.low : 0, behind = padding_counts ? w.counted[i] : 0;
  over.low -= before, over.high -= behind;
  const Dim n = s.extent(i) + Dim(before + behind);
  if (over.low == 0 && over.high == 0) return std::nullopt;
  Graph& g = s.x.graph();
  const At at{s.loc};
  const DType t = accumulator_dtype(s.x.dtype());
  const Expr ones = g.expand(at(g.scalar(1, t, s.loc)), {n});
  ops::ReduceWindow sum;
  set_window_axes(sum, {over});
  const Expr made = g.reduce_window(at(ones), sum);
  Dims dims(static_cast<std::size_t>(s.x.rank()), Dim(1));
  dims[static_cast<std::size_t>(s.first) + i] = made.dim(0);
  return g.reshape(at(made), dims);
}

Expr mean_of_windows(const Space& s, const Windows& w, bool padding_counts) {
  Graph& g = s.x.graph();
  const At at{s.loc};
  if (!is_inexact(s.x.dtype())) s.refuse(concat_text("x must be float or complex, not ", s.x.shape()), "cast it first");
  std::optional<Expr> count;
  double rest = 1;
  for (std::size_t i = 0; i < w.axes.size(); ++i) {
    if (const auto c = counts(s, w, i, padding_counts))
      count = count ? g.mul(at(*count), at(*c)) : *c;
    else
      rest *= static_cast<double>(w.axes[i].window);
  }
  if (!count) return windowed(s, ReduceKind::Mean, s.x, w.axes);
  const DType t = s.x.dtype(), wide = accumulator_dtype(t);
  const Expr sums = windowed(s, ReduceKind::Sum, g.cast(at(s.x), wide), w.axes);
  return g.cast(at(g.div(at(sums), at(g.mul(at(*count), at(rest))))), t);
}

}  // namespace

Expr pool(ReduceKind fn, Operand x, const PoolOptions& options) {
  const Space s(x, entries_of(options), options.channels_last, "pool");
  const Windows w = windows_of(s, options);
  return fn == ReduceKind::Mean ? mean_of_windows(s, w, options.count_include_pad) : windowed(s, fn, s.x, w.axes);
}
Expr max_pool(Operand x, const PoolOptions& options) { return pool(ReduceKind::Max, x, options); }
Expr min_pool(Operand x, const PoolOptions& options) { return pool(ReduceKind::Min, x, options); }
Expr avg_pool(Operand x, const PoolOptions& options) { return pool(ReduceKind::Mean, x, options); }
Expr sum_pool(Operand x, const PoolOptions& options) { return pool(ReduceKind::Sum, x, options); }
Expr prod_pool(Operand x, const PoolOptions& options) { return pool(ReduceKind::Prod, x, options); }

Expr lp_pool(Operand x, double p, const PoolOptions& options) {
  const Space s(x, entries_of(options), options.channels_last, "lp_pool");
  if (!(p > 0) || !std::isfinite(p)) s.refuse(concat_text("p must be a finite number > 0, got ", p));
  if (!is_float(s.x.dtype())) s.refuse(concat_text("x must be float, not ", s.x.shape()), "cast it first");
  const Windows w = windows_of(s, options);
  Graph& g = s.x.graph();
  const At at{s.loc};
  const DType t = s.x.dtype();
  const Expr wide = g.cast(at(s.x), accumulator_dtype(t));
  const Expr powers = p == 2 ? g.square(at(wide)) : p == 1 ? g.abs(at(wide)) : g.pow(at(g.abs(at(wide))), at(p));
  const Expr sums = windowed(s, ReduceKind::Sum, powers, w.axes);
  return g.cast(at(p == 2 ? g.sqrt(at(sums)) : p == 1 ? sums : g.pow(at(sums), at(1 / p))), t);
}

IndexedPool max_pool_with_indices(Operand x, const PoolOptions& options) {
  const Space s(x, entries_of(options), options.channels_last, "max_pool_with_indices");
  const Expr y = windowed(s, ReduceKind::Max, s.x, windows_of(s, options).axes), places = y.result(1);
  Graph& g = s.x.graph();
  const At at{s.loc};
  const DType t = places.dtype();
  Dims space;
  for (std::int64_t i = 0; i < s.count; ++i) space.push_back(s.extent(static_cast<std::size_t>(i)));
  Expr plane = places;
  if (options.channels_last) plane = g.div(at(plane), at(dim_value(g, s.x.dim(-1), t)));
  plane = g.mod(at(plane), at(dims_product(g, space, t)));
  return {y, g.where(at(g.lt(at(places), at(0))), at(places), at(plane))};
}

Expr max_unpool(Operand x, Operand indices, const Dims& space) {
  const Space s(x, std::max<std::size_t>(space.size(), 2), false, "max_unpool");
  const auto count = static_cast<std::int64_t>(space.size());
  Graph& g = s.x.graph();
  const At at{s.loc};
  const Expr places = building::own_at(g, indices, s.loc);
  if (count < 1 || count > s.x.rank()) s.refuse(concat_text("space has ", count, " axes, x is ", s.x.shape()));
  if (!is_int(places.dtype()) || places.shape().dims() != s.x.shape().dims())
    s.refuse(concat_text("indices must be integers with the dimensions of x ", s.x.shape(), ", got ", places.shape()));
  Dims rows(s.x.shape().dims().begin(), s.x.shape().dims().end() - count);
  Dims flat = rows, plane = rows, out = rows;
  Dim elements(1), of_x(1);
  for (const Dim& d : space) elements = elements * d, out.push_back(d);
  for (std::int64_t i = s.x.rank() - count; i < s.x.rank(); ++i) of_x = of_x * s.x.dim(static_cast<int>(i));
  flat.push_back(of_x);
  plane.push_back(elements);
  const Expr zeros = g.expand(at(g.scalar(0, s.x.dtype(), s.loc)), plane);
  const Expr put = g.put_along_axis(at(zeros), at(g.reshape(at(places), flat)), at(g.reshape(at(s.x), flat)),
                                    static_cast<std::int64_t>(rows.size()));
  return g.reshape(at(put), out);
}

Expr adaptive_avg_pool(Operand x, const std::vector<std::int64_t>& sizes, bool channels_last) {
  const Space s(x, sizes.size(), channels_last, "adaptive_avg_pool");
  ops::Interpolate op;
  op.fn = ResizeKind::Area;
  op.axes = s.axes();
  op.sizes = s.list("sizes", sizes, 1);
  return s.x.graph().add(op, {s.x}, s.loc);
}

Expr adaptive_max_pool(Operand x, const std::vector<std::int64_t>& sizes, bool channels_last) {
  const Space s(x, sizes.size(), channels_last, "adaptive_max_pool");
  Graph& g = s.x.graph();
  const At at{s.loc};
  const auto wanted = s.list("sizes", sizes, 1);
  Expr y = s.x;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::int64_t axis = s.first + static_cast<std::int64_t>(i), m = wanted[i];
    if (!s.extent(i).is_static() || s.extent(i).is_static(0))
      s.refuse(concat_text("the extent of axis ", axis, " of x ", s.x.shape(), " is 0 or not known"));
    const std::int64_t n = s.extent(i).value();
    if (n % m == 0) {
      std::vector<WindowAxis> one(static_cast<std::size_t>(s.count));
      one[i].window = one[i].stride = n / m;
      y = windowed(s, ReduceKind::Max, y, one);
      continue;
    }
    // All windows get the size of the largest. A smaller window repeats its last element.
    std::int64_t widest = m % n == 0 ? 1 : 2;  // the case of more windows than elements
    const auto first = [&](std::int64_t o) { return o * n / m; };
    const auto last = [&](std::int64_t o) { return ((o + 1) * n + m - 1) / m - 1; };
    for (std::int64_t o = 0; m < n && o < m; ++o) widest = std::max(widest, last(o) - first(o) + 1);
    Tensor places = Tensor::zeros(Shape({Dim(m), Dim(widest)}, DType::I32));
    for (std::int64_t o = 0; o < m; ++o)
      for (std::int64_t k = 0; k < widest; ++k) places.set_i64(o * widest + k, std::min(first(o) + k, last(o)));
    y = g.reduce_max(at(g.gather(at(y), at(g.constant(std::move(places), s.loc)), axis)), {axis + 1});
  }
  return y;
}

Expr global_pool(ReduceKind fn, Operand x, bool channels_last) {
  const Space s(x, 1, channels_last, "global_pool");
  return s.x.graph().reduce(fn, x, s.axes(), true);
}

}  // namespace rlx::nn
