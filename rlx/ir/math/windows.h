// The geometry of windows, for rules, reference loops and functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "rlx/tensor/dim.h"

namespace rlx {

/// The elements of an axis inside a window: first, first + step, .., `count` of them.
struct WindowTaps {
  std::int64_t first = 0, step = 1, count = 0;
};

/// The windows along one axis.
struct WindowAxis {
  std::int64_t window = 1, stride = 1, low = 0, high = 0, base = 1, dilation = 1;

  /// True when every element is its own window.
  bool plain() const { return window == 1 && stride == 1 && low == 0 && high == 0 && base == 1; }
  /// Positions that a window covers.
  std::int64_t span() const { return (window - 1) * dilation + 1; }
  /// Positions that n elements take when zeros are inserted between them.
  std::int64_t spread(std::int64_t n) const { return n == 0 ? 0 : (n - 1) * base + 1; }
  /// The number of windows over n elements.
  std::int64_t outputs(std::int64_t n) const {
    const std::int64_t places = low + spread(n) + high;
    return places < span() ? 0 : (places - span()) / stride + 1;
  }
  Dim outputs(const Dim& n) const {
    if (n.is_static()) return Dim(outputs(n.value()));
    const Dim spread = base == 1 ? n : max((n - 1) * Dim(base) + 1, Dim(0));
    return floordiv(spread + Dim(low + high - span() + stride), Dim(stride));
  }
  /// The elements inside window o of an axis of n elements.
  WindowTaps taps(std::int64_t o, std::int64_t n) const {
    const std::int64_t begin = o * stride - low, last_place = begin + span() - 1;
    WindowTaps t;
    if (n == 0 || last_place < 0) return t;
    std::int64_t i = begin <= 0 ? 0 : (begin + base - 1) / base;
    const std::int64_t last = std::min(last_place / base, n - 1);
    if (dilation > 1)
      while (i <= last && (i * base - begin) % dilation != 0) ++i;
    if (i > last) return t;
    t.first = i;
    if (dilation > 1) {
      std::int64_t a = base, b = dilation;  // the least step whose positions are multiples of the dilation
      while (b != 0) a = std::exchange(b, a % b);
      t.step = dilation / a;
    }
    t.count = (last - i) / t.step + 1;
    return t;
  }
};

/// The windows along all axes of an op that has the lists of ReduceWindow.
template <class Op>
std::vector<WindowAxis> window_axes(const Op& op) {
  const auto at = [](const std::vector<std::int64_t>& list, std::size_t i, std::int64_t otherwise) {
    return list.empty() ? otherwise : list[i];
  };
  std::vector<WindowAxis> out;
  for (std::size_t i = 0; i < op.window.size(); ++i)
    out.push_back({op.window[i], at(op.strides, i, 1), at(op.low, i, 0), at(op.high, i, 0), at(op.base_dilation, i, 1),
                   at(op.window_dilation, i, 1)});
  return out;
}
/// Writes the windows of all axes into the lists of an op.
template <class Op>
void set_window_axes(Op& op, const std::vector<WindowAxis>& axes) {
  for (auto* list : {&op.window, &op.strides, &op.low, &op.high, &op.base_dilation, &op.window_dilation}) list->clear();
  for (const WindowAxis& a : axes) {
    op.window.push_back(a.window), op.strides.push_back(a.stride), op.low.push_back(a.low), op.high.push_back(a.high);
    op.base_dilation.push_back(a.base), op.window_dilation.push_back(a.dilation);
  }
}

/// The windows of the transposed sums: they distribute m results to n elements.
inline WindowAxis transposed(const WindowAxis& a, std::int64_t n, std::int64_t m) {
  WindowAxis t{a.window, a.base, a.span() - 1 - a.low, 0, a.stride, a.dilation};
  t.high = (n - 1) * a.base + a.span() - t.low - ((m - 1) * a.stride + 1);
  return t;
}

}  // namespace rlx
