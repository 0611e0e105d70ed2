// Windows at run-time positions, for every dtype.
#include <algorithm>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/index/indices.h"

namespace rlx::cpu {
namespace {

// Copies a window whose position in x (or y) is known at run time.
struct WindowStep {
  GenericMove move;
  Indices starts;
  int rank = 0, bits = 8;
  std::int64_t highest[kGenericMaxRank] = {}, strides[kGenericMaxRank] = {};
  bool in_y = false;
  const void* x = nullptr;
  void* y = nullptr;
};
void run_window(const WindowStep& s, std::int64_t chunk) {
  std::int64_t element = 0;
  for (int a = 0; a < s.rank; ++a) element += std::clamp<std::int64_t>(s.starts.at(a), 0, s.highest[a]) * s.strides[a];
  s.move.run(s.x, s.y, chunk, s.in_y ? 0 : element, s.in_y ? element : 0);
}
/// `whole` has the window at `starts`; the other side is the window itself.
void add_window(LowerContext& c, const View& whole, const View& window, const View& starts, bool in_y) {
  if (window.elements() == 0) return;
  auto& s = c.keep<WindowStep>();
  s.rank = whole.rank();
  s.bits = dtype_bits(whole.dtype);
  s.starts.wide = starts.dtype == DType::I64;
  s.in_y = in_y;
  for (int a = 0; a < s.rank; ++a) {
    s.highest[a] = whole.dim(a) - window.dim(a);
    s.strides[a] = whole.stride(a);
  }
  s.move = in_y ? GenericMove(s.bits, window.dims, window.strides, whole.strides, 0, 0)
                : GenericMove(s.bits, window.dims, whole.strides, window.strides, 0, 0);
  if (c.finest()) s.move.tile_finest();
  c.point(s.starts.data, starts);
  c.point(s.x, in_y ? window : whole);
  c.point(s.y, in_y ? whole : window);
  c.step<run_window>(s, s.move.chunks(), 1.0 * static_cast<double>(window.elements()));
}

void lower_dynamic_slice(LowerContext& c) { add_window(c, c.in(0), c.out(), c.in(1), false); }

struct WholeCopy {
  GenericMove move;
  const void* x = nullptr;
  void* y = nullptr;
};
void run_whole(const WholeCopy& s, std::int64_t chunk) {
  if (s.x != s.y) s.move.run(s.x, s.y, chunk);  // equal for a donated input
}

void lower_dynamic_update(LowerContext& c) {
  const View y = c.out();
  copy_unless_in_place(c, c.in(0), y);
  add_window(c, y, c.in(1), c.in(2), true);
}

const char* window_at_refuses(const Graph& g, NodeId id) { return refuse_high_rank(in_shape(g, id, 0)); }
bool window_at_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand == 0 || (g.node(id).kind() == OpKind::DynamicUpdateSlice && operand == 1);
}
constexpr KernelEntry kWindowAtEntries[] = {
    {OpKind::DynamicSlice, "window_copy", window_at_refuses, lower_dynamic_slice, window_at_reads_strided},
    {OpKind::DynamicUpdateSlice, "window_update", window_at_refuses, lower_dynamic_update, window_at_reads_strided,
     over_first},
};

}  // namespace

void copy_unless_in_place(LowerContext& c, const View& x, const View& y) {
  const LirValue &a = *x.where, &b = *y.where;
  const bool in_place = a.place == b.place && a.index == b.index && a.offset == b.offset;
  if (!in_place && y.elements() > 0) {
    auto& s = c.keep<WholeCopy>();
    s.move = GenericMove(dtype_bits(x.dtype), x.dims, x.strides, y.strides, 0, 0);
    if (c.finest()) s.move.tile_finest();
    c.point(s.x, x);
    c.point(s.y, y);
    c.step<run_whole>(s, s.move.chunks(), 0.3 * static_cast<double>(y.elements()));
  }
}

std::span<const KernelEntry> window_at_entries() { return kWindowAtEntries; }

}  // namespace rlx::cpu
