// f32 pooling over windows.
#include "rlx/backends/cpu/entries.h"

#include <algorithm>
#include <limits>

#include "rlx/backends/cpu/window/windows_kernels.h"
#include "rlx/ir/ops/conv.h"

namespace rlx::cpu {
namespace {

// Axes [first, last) are those from the first to the last axis with windows.
struct WindowedAxes {
  std::size_t first = 0, last = 0;
};
WindowedAxes windowed_axes(const std::vector<WindowAxis>& axes) {
  WindowedAxes w{axes.size(), 0};
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].plain()) continue;
    w.first = std::min(w.first, a);
    w.last = a + 1;
  }
  if (w.last == 0) w = {axes.size() - 1, axes.size()};
  return w;
}

const char* refuse_windows(const std::vector<WindowAxis>& axes, const Shape& x) {
  if (axes.empty()) return "a scalar has no axes";
  const WindowedAxes w = windowed_axes(axes);
  if (x.is_static() && x.num_elements() > std::numeric_limits<std::int32_t>::max())
    return "x has 2^31 elements or more";
  return refuse_unless(w.last - w.first <= static_cast<std::size_t>(kWindowMaxAxes),
                       "its windows have more axes than the kernel supports");
}
const char* window_refuses(const Graph& g, NodeId id) {
  if (in_dtype(g, id, 0) != DType::F32) return "its operand is not f32";
  return refuse_windows(window_axes(g.node(id).op.as<ops::ReduceWindow>()), in_shape(g, id, 0));
}
const char* scatter_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return refuse_windows(window_axes(g.node(id).op.as<ops::SelectAndScatter>()), in_shape(g, id, 0));
}

// The windows of a node over x, with results of dims `results`.
WindowF32 windows_over(const View& x, const std::vector<WindowAxis>& axes, const std::vector<std::int64_t>& results) {
  const WindowedAxes range = windowed_axes(axes);
  WindowF32 w;
  w.rank = static_cast<int>(range.last - range.first);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (a < range.first) {
      w.outer *= x.dims[a];
    } else if (a >= range.last) {
      w.inner *= x.dims[a];
    } else {
      w.axes[a - range.first] = axes[a];
      w.n[a - range.first] = x.dims[a], w.m[a - range.first] = results[a];
    }
  }
  return w;
}
double held_elements(const WindowF32& w) {
  double held = 1, all = 1;
  for (int a = 0; a < w.rank; ++a) {
    held *= static_cast<double>(w.axes[a].window);
    all *= static_cast<double>(w.n[a]);
  }
  return std::max(1.0, std::min(held, all));
}

struct WindowF32Step {
  WindowF32 windows;
  const WindowKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
  std::int64_t per_chunk = 1;
};
void run_windows(const WindowF32Step& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.per_chunk, all = s.windows.outer * s.windows.units();
  s.kernels->run(s.windows, begin, std::min(all, begin + s.per_chunk), s.scratch->mine());
}

void lower_window(LowerContext& c) {
  const auto& op = c.op<ops::ReduceWindow>();
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  check(x.dense(), "x of a window op is not row-major");
  auto& s = c.keep<WindowF32Step>();
  s.windows = windows_over(x, window_axes(op), y.dims);
  WindowF32& w = s.windows;
  w.fn = kernel_kind(op.fn);
  if (op.fn == rlx::ReduceKind::Mean) {
    double places = 1;
    for (std::int64_t k : op.window) places *= static_cast<double>(k);
    w.factor = static_cast<float>(1 / places);
  }
  const bool extremum = w.fn == ReduceKind::Max || w.fn == ReduceKind::Min;
  c.point(w.x, x);
  if (c.is_read(0)) c.point(w.y, y);
  if (extremum && c.is_read(1)) c.point(w.place, c.out(1));
  if (!c.is_read(0) && !(extremum && c.is_read(1))) return;
  s.kernels = &window_kernels(c.kernels().isa);
  s.scratch = c.scratch(s.kernels->scratch_bytes(w));
  // The cost of a line: its rows once per element of x, and its windows once per result.
  const std::int64_t units = w.outer * w.units();
  const double held = held_elements(w), last = static_cast<double>(w.axes[w.rank - 1].window);
  const double elements =
      w.inner == 1 ? held / last * static_cast<double>(w.n[w.rank - 1]) + last * static_cast<double>(w.m[w.rank - 1])
                   : held * static_cast<double>(w.inner);
  const double unit_ns = 20 + (w.place != nullptr ? 0.4 : 0.1) * elements;
  s.per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(20000 / unit_ns)));
  c.step<run_windows>(s, (units + s.per_chunk - 1) / s.per_chunk, unit_ns * static_cast<double>(units));
}

struct WindowScatterStep {
  WindowF32 windows;
  const float* source = nullptr;
  float* dx = nullptr;
  const WindowKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
  std::int64_t blocks = 1, block = 1;  // of channels, with channels last
};
void run_window_scatter(const WindowScatterStep& s, std::int64_t chunk) {
  const std::int64_t outer = chunk / s.blocks, first = chunk % s.blocks * s.block;
  s.kernels->scatter(s.windows, s.source, s.dx, outer, outer + 1, first, std::min(first + s.block, s.windows.inner),
                     s.scratch->mine());
}

void lower_window_scatter(LowerContext& c) {
  const auto& op = c.op<ops::SelectAndScatter>();
  const View x = c.in(0), source = c.in(1), dx = c.out();
  if (dx.elements() == 0) return;
  check(x.dense() && source.dense(), "an operand of a window op is not row-major");
  auto& s = c.keep<WindowScatterStep>();
  s.windows = windows_over(x, window_axes(op), source.dims);
  s.windows.fn = kernel_kind(op.select);
  c.point(s.windows.x, x);
  c.point(s.source, source);
  c.point(s.dx, dx);
  s.kernels = &window_kernels(c.kernels().isa);
  s.scratch = c.scratch(s.kernels->scratch_bytes(s.windows));
  s.block = c.finest() ? 1 : 64;
  s.blocks = (s.windows.inner + s.block - 1) / s.block;
  c.step<run_window_scatter>(s, s.windows.outer * s.blocks,
                             0.3 * static_cast<double>(dx.elements()) +
                                 (1 + 0.4 * held_elements(s.windows)) * static_cast<double>(source.elements()));
}

constexpr KernelEntry kWindowEntries[] = {
    {.kind = OpKind::ReduceWindow,
     .kernel = "reduce_window_f32",
     .refuses = window_refuses,
     .lower = lower_window,
     .skips_unread = 0b11},
    {OpKind::SelectAndScatter, "select_and_scatter_f32", scatter_refuses, lower_window_scatter},
};

}  // namespace

std::span<const KernelEntry> window_entries() { return kWindowEntries; }

}  // namespace rlx::cpu
