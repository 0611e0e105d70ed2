// Kernel entries of reductions, scans and windows.
#include <algorithm>
#include <cmath>

#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/math/windows.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::tpu {
namespace {

enum class Fold : std::uint8_t { Sum, Prod, Max, Min };

// The StableHLO op that combines two elements.
std::string_view op_name(Fold fn, DType t) {
  switch (fn) {
    case Fold::Sum: return "add";
    case Fold::Prod: return "multiply";
    case Fold::Max: return t == DType::Bool ? "or" : "maximum";
    case Fold::Min: return t == DType::Bool ? "and" : "minimum";
  }
  return "";
}

// The identity of a fold.
Hlo identity(Writer& w, Fold fn, DType t) {
  if (fn == Fold::Sum) return w.scalar(t, 0);
  if (fn == Fold::Prod) return w.scalar(t, 1);
  const bool lowest = fn == Fold::Max;
  if (is_float(t)) return w.scalar(t, lowest ? -HUGE_VAL : HUGE_VAL);
  if (t == DType::Bool) return w.scalar(t, lowest ? 0 : 1);
  const std::uint64_t sign = std::uint64_t{1} << (dtype_bits(t) - 1);
  if (is_signed_int(t)) return w.scalar_bits(t, lowest ? sign : sign - 1);
  return w.scalar_bits(t, lowest ? 0 : ~std::uint64_t{0});
}

std::int64_t product_of(const std::vector<std::int64_t>& list) {
  std::int64_t n = 1;
  for (std::int64_t d : list) n *= d;
  return n;
}

// x / n for each part.
Hlo divided(Writer& w, const Hlo& x, std::int64_t n) {
  const auto count = static_cast<double>(n);
  if (!is_complex(x.dtype)) return w.div(x, w.full_like(x, count));
  const Hlo re = w.real(x), im = w.imag(x), by = w.full_like(re, count);
  return w.complex(w.div(re, by), w.div(im, by));
}

// Softmax has a kernel entry and is not decomposed, because XLA replaces the division by a broadcast sum by a
// multiplication with the reciprocal. That is accurate enough for a softmax; for divisions of a graph `quotient`
// prevents it.
void emit_softmax(EmitContext& c) {
  const std::int64_t axis = c.op<ops::Softmax>().axis;
  const std::int64_t axes[] = {axis};
  Writer& w = c.w;
  const Hlo x = widen(w, c.in(0));
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) others.push_back(i);
  // A row of -inf gives zeros.
  const Hlo top = w.reduce("maximum", x, identity(w, Fold::Max, x.dtype), axes);
  const Hlo shift = w.select(w.compare("EQ", top, -HUGE_VAL), 0, top);
  const Hlo e = w.op("exponential", w.sub(x, w.broadcast(shift, x.dims, others)));
  const Hlo sum = w.reduce("add", e, w.scalar(x.dtype, 0), axes);
  const Hlo total = w.select(w.compare("EQ", sum, 0), 1, sum);
  c.set(w.convert(w.div(e, w.broadcast(total, x.dims, others)), c.type().dtype));
}

void emit_reduce(EmitContext& c) {
  const auto& op = c.op<ops::Reduce>();
  Writer& w = c.w;
  const Fold fn = op.fn == ReduceKind::Prod  ? Fold::Prod
                  : op.fn == ReduceKind::Max ? Fold::Max
                  : op.fn == ReduceKind::Min ? Fold::Min
                                             : Fold::Sum;
  // Max and min of half-precision floats are exact in any wider dtype.
  const Hlo x = widen(w, c.in(0));
  Hlo y = w.reduce(op_name(fn, x.dtype), x, identity(w, fn, x.dtype), op.axes);
  if (op.fn == ReduceKind::Mean) {
    std::int64_t n = 1;
    for (std::int64_t axis : op.axes) n *= x.extent(axis);
    if (n != 1) y = divided(w, y, n);
  }
  c.set(w.reshape(w.convert(y, c.type().dtype), c.dims()));
}

// x shifted along an axis, filled with `nothing`.
Hlo moved(Writer& w, const Hlo& x, const Hlo& nothing, std::int64_t axis, std::int64_t by) {
  std::vector<std::int64_t> low(x.dims.size(), 0), high = low;
  low[static_cast<std::size_t>(axis)] = by;
  high[static_cast<std::size_t>(axis)] = -by;
  return w.pad(x, nothing, low, high, std::vector<std::int64_t>(x.dims.size(), 0));
}

void emit_cumulative(EmitContext& c) {
  const auto& op = c.op<ops::Cumulative>();
  Writer& w = c.w;
  const Fold fn = op.fn == CumulativeKind::Sum    ? Fold::Sum
                  : op.fn == CumulativeKind::Prod ? Fold::Prod
                  : op.fn == CumulativeKind::Max  ? Fold::Max
                                                  : Fold::Min;
  Hlo y = widen(w, c.in(0));
  const Hlo nothing = identity(w, fn, y.dtype);
  if (op.exclusive && y.extent(op.axis) > 0) y = moved(w, y, nothing, op.axis, op.reverse ? -1 : 1);
  y = running(w, op_name(fn, y.dtype), y, nothing, op.axis, op.reverse);
  c.set(w.convert(y, c.type().dtype));
}

// -- windows --

std::string window_attributes(const std::vector<WindowAxis>& axes, bool padded) {
  std::vector<std::int64_t> window, strides, dilations, bases;
  std::string padding;
  for (const WindowAxis& a : axes) {
    window.push_back(a.window), strides.push_back(a.stride);
    dilations.push_back(a.dilation), bases.push_back(padded ? a.base : 1);
    padding += concat_text(padding.empty() ? "[" : ", [", padded ? a.low : 0, ", ", padded ? a.high : 0, "]");
  }
  return concat_text("window_dimensions = ", i64_array(window), ", window_strides = ", i64_array(strides),
                     ", base_dilations = ", i64_array(bases), ", window_dilations = ", i64_array(dilations),
                     ", padding = dense<[", padding, "]> : tensor<", axes.size(), "x2xi64>");
}
bool crops(const std::vector<WindowAxis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const WindowAxis& a) { return a.low < 0 || a.high < 0; });
}
// x after dilation and padding, for windows with negative padding.
Hlo spread_and_padded(Writer& w, const Hlo& x, const Hlo& nothing, const std::vector<WindowAxis>& axes) {
  std::vector<std::int64_t> low, high, between;
  for (const WindowAxis& a : axes) low.push_back(a.low), high.push_back(a.high), between.push_back(a.base - 1);
  return w.pad(x, nothing, low, high, between);
}

// The better of two extrema of a window. The result does not depend on their order, since XLA chooses the order. (So
// SelectAndScatter runs as places and a scatter: XLA's own op returns one of several equal elements, not the first.)
Hlos better(Writer& w, const Hlos& v, bool max) {
  const Hlo &a = v[0], &a_place = v[1], &b = v[2], &b_place = v[3];
  const auto invert = [&](const Hlo& x) { return w.op("not", x); };
  Hlo beats = w.compare(max ? "GT" : "LT", b, a), equal = w.compare("EQ", a, b);
  if (is_float(a.dtype)) {
    const Hlo a_nan = w.is_nan(a), b_nan = w.is_nan(b);
    beats = w.both(invert(a_nan), w.either(b_nan, beats));
    equal = w.either(equal, w.both(a_nan, b_nan));
  }
  const Hlo sooner = w.both(equal, w.compare("LT", b_place, a_place));
  const Hlo wins = w.either(w.compare("LT", a_place, 0), w.either(beats, sooner));
  const Hlo takes = w.both(w.compare("GE", b_place, 0), wins);
  return {w.select(takes, b, a), w.select(takes, b_place, a_place)};
}

void emit_reduce_window(EmitContext& c) {
  const auto& op = c.op<ops::ReduceWindow>();
  Writer& w = c.w;
  const Fold fn = op.fn == ReduceKind::Prod  ? Fold::Prod
                  : op.fn == ReduceKind::Max ? Fold::Max
                  : op.fn == ReduceKind::Min ? Fold::Min
                                             : Fold::Sum;
  const bool extremum = fn == Fold::Max || fn == Fold::Min;
  const Hlo x = widen(w, c.in(0));
  const std::vector<WindowAxis> axes = window_axes(op);
  if (axes.empty() || product_of(c.dims()) == 0) {
    c.set(axes.empty() ? c.in(0) : w.full(c.type().dtype, 0, c.dims()));
    if (extremum) c.set(1, w.full(c.type(1).dtype, 0, c.dims(1)));
    return;
  }
  const bool padded = !crops(axes);
  const std::string attributes = window_attributes(axes, padded);
  const Hlo nothing = identity(w, fn, x.dtype);
  const auto ready = [&](const Hlo& v, const Hlo& fill) { return padded ? v : spread_and_padded(w, v, fill, axes); };
  const Hlo operands[] = {ready(x, nothing), nothing};
  const HloType result[] = {{x.dtype, c.dims()}}, scalars[] = {{x.dtype, {}}, {x.dtype, {}}};
  const std::string_view name = op_name(fn, x.dtype);
  Hlo y = w.with_regions("reduce_window", operands, result,
                         {{scalars, [&](const Hlos& v) { return Hlos{w.op(name, v[0], v[1])}; }}}, attributes)[0];
  if (op.fn == ReduceKind::Mean) y = divided(w, y, product_of(op.window));
  c.set(w.convert(y, c.type().dtype));
  if (!extremum) return;
  const DType t = c.type(1).dtype;
  const Hlo place = w.reshape(w.iota(t, {x.elements()}, 0), x.dims), nowhere = w.scalar(t, -1);
  const Hlo pairs[] = {operands[0], ready(place, nowhere), nothing, nowhere};
  const HloType both[] = {{x.dtype, c.dims()}, {t, c.dims()}};
  const HloType four[] = {{x.dtype, {}}, {t, {}}, {x.dtype, {}}, {t, {}}};
  c.set(1, w.with_regions("reduce_window", pairs, both,
                          {{four, [&](const Hlos& v) { return better(w, v, fn == Fold::Max); }}}, attributes)[1]);
}

}  // namespace

// Doubling: after k steps each element is the fold of the 2^k elements that end with it.
Hlo running(Writer& w, std::string_view name, const Hlo& x, const Hlo& nothing, std::int64_t axis, bool reverse) {
  Hlo y = x;
  for (std::int64_t step = 1; step < x.extent(axis); step *= 2)
    y = w.op(name, y, moved(w, y, nothing, axis, reverse ? -step : step));
  return y;
}

std::span<const KernelEntry> reduce_entries() {
  static constexpr KernelEntry kRows[] = {
      {OpKind::Reduce, never_refuses, emit_reduce},
      {OpKind::Cumulative, never_refuses, emit_cumulative},
      {OpKind::Softmax, never_refuses, emit_softmax},
      {OpKind::ReduceWindow, never_refuses, emit_reduce_window},
  };
  return kRows;
}

}  // namespace rlx::tpu
