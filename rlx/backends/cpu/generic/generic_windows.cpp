// Windows of every dtype, over any axes.
#include <algorithm>
#include <cmath>

#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/math/windows.h"
#include "rlx/ir/ops/conv.h"

namespace rlx::cpu {
namespace {

const char* windows_refuse(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(in_shape(g, id, 0))) return why;
  return refuse_storage_only(in_dtype(g, id, 0));
}

// Computes one result at a time. The elements of a window of x are visited in row-major order.
template <class A>
struct WindowStep {
  int rank = 0;
  WindowAxis axes[kGenericMaxRank] = {};
  std::int64_t x_dims[kGenericMaxRank] = {}, x_strides[kGenericMaxRank] = {}, dims[kGenericMaxRank] = {};
  ReduceKind fn = ReduceKind::Sum;
  A identity{};
  double places = 1;
  const void* x = nullptr;
  void *y = nullptr, *place = nullptr;
  bool places_i64 = false;
  LoadBlock<A> load = nullptr;
  StoreBlock<A> store = nullptr;
  std::int64_t results = 0, per_chunk = 1;

  // Folds a run of the last axis into acc. `at` is the element of the extremum.
  void fold(std::int64_t first, std::int64_t step, std::int64_t count, A& acc, std::int64_t& at) const {
    A values[kGenericBlock];
    for (std::int64_t i = 0; i < count; i += kGenericBlock) {
      const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, count - i));
      load(x, first + i * step, step, n, values);
      switch (fn) {
        case ReduceKind::Sum:
        case ReduceKind::Mean:
          for (int k = 0; k < n; ++k) acc = add_vd(acc, values[k]);
          break;
        case ReduceKind::Prod:
          for (int k = 0; k < n; ++k) acc = mul_vd(acc, values[k]);
          break;
        case ReduceKind::Max:
        case ReduceKind::Min:
          for (int k = 0; k < n; ++k)
            if (at < 0 || wide_beats(values[k], acc, fn == ReduceKind::Max))
              acc = values[k], at = first + (i + k) * step;
          break;
      }
    }
  }
  // Folds the window whose elements along each axis are `taps`.
  void window(const WindowTaps* taps, A& acc, std::int64_t& at) const {
    std::int64_t element = 0;
    for (int a = 0; a < rank; ++a) {
      if (taps[a].count == 0) return;
      element += taps[a].first * x_strides[a];
    }
    if (rank == 0) return fold(0, 0, 1, acc, at);
    const int last = rank - 1;
    std::int64_t index[kGenericMaxRank] = {};
    for (;;) {
      fold(element, taps[last].step * x_strides[last], taps[last].count, acc, at);
      int a = last - 1;
      for (; a >= 0; --a) {
        const std::int64_t step = taps[a].step * x_strides[a];
        element += step;
        if (++index[a] < taps[a].count) break;
        element -= step * taps[a].count;
        index[a] = 0;
      }
      if (a < 0) return;
    }
  }
  static void run(const WindowStep& s, std::int64_t chunk) {
    const std::int64_t begin = chunk * s.per_chunk, end = std::min(s.results, begin + s.per_chunk);
    std::int64_t index[kGenericMaxRank] = {}, rest = begin;
    WindowTaps taps[kGenericMaxRank];
    for (int a = s.rank - 1; a >= 0; --a) {
      index[a] = rest % s.dims[a];
      rest /= s.dims[a];
      taps[a] = s.axes[a].taps(index[a], s.x_dims[a]);
    }
    for (std::int64_t r = begin; r < end; ++r) {
      A acc = s.identity;
      std::int64_t at = -1;
      s.window(taps, acc, at);
      if constexpr (!std::is_integral_v<A>) {
        if (s.fn == ReduceKind::Mean) acc /= s.places;
      }
      if (s.y != nullptr) s.store(s.y, r, 1, 1, &acc);
      if (s.place != nullptr) {
        if (s.places_i64)
          static_cast<std::int64_t*>(s.place)[r] = at;
        else
          static_cast<std::int32_t*>(s.place)[r] = static_cast<std::int32_t>(at);
      }
      for (int a = s.rank - 1; a >= 0; --a) {
        if (++index[a] == s.dims[a]) index[a] = 0;
        taps[a] = s.axes[a].taps(index[a], s.x_dims[a]);
        if (index[a] != 0) break;
      }
    }
  }
};

void lower_reduce_window(LowerContext& c) {
  const auto& op = c.op<ops::ReduceWindow>();
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  check(x.dense(), "the operand of a window op is not row-major");
  visit_f64(x.dtype, [&]<class A>(A) {
    auto& s = c.keep<WindowStep<A>>();
    const std::vector<WindowAxis> axes = window_axes(op);
    const std::vector<std::int64_t> strides = row_major_strides(x.dims);
    s.rank = x.rank();
    double places = 1;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      s.axes[a] = axes[a], s.x_dims[a] = x.dims[a], s.x_strides[a] = strides[a], s.dims[a] = y.dims[a];
      places *= static_cast<double>(axes[a].window);
    }
    s.fn = kernel_kind(op.fn);
    s.places = places;
    const bool extremum = s.fn == ReduceKind::Max || s.fn == ReduceKind::Min;
    if (s.fn == ReduceKind::Prod) s.identity = A(1);
    if (extremum) s.identity = wide_extreme<A>(x.dtype, s.fn == ReduceKind::Max);
    s.load = load_block<A>(x.dtype);
    s.store = store_block<A>(y.dtype);
    s.results = y.elements();
    c.point(s.x, x);
    if (c.is_read(0)) c.point(s.y, y);
    if (extremum && c.is_read(1)) {
      s.places_i64 = c.out(1).dtype == DType::I64;
      c.point(s.place, c.out(1));
    }
    const double held = std::min(places, static_cast<double>(std::max<std::int64_t>(1, x.elements())));
    s.per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(2048 / (1 + held))));
    c.step<WindowStep<A>::run>(s, (s.results + s.per_chunk - 1) / s.per_chunk,
                               (10 + 2 * held) * static_cast<double>(s.results));
  });
}

constexpr KernelEntry kRows[] = {
    {.kind = OpKind::ReduceWindow,
     .kernel = "generic_reduce_window",
     .refuses = windows_refuse,
     .lower = lower_reduce_window,
     .skips_unread = 0b11},
};

}  // namespace

std::span<const KernelEntry> generic_window_entries() { return kRows; }

}  // namespace rlx::cpu
