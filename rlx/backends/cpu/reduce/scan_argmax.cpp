// Kernel entries of argmax, argmin and scans along an axis.
#include "rlx/backends/cpu/reduce/scan_argmax_kernels.h"

#include <algorithm>
#include <cstring>

#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

const char* slices_refuse(const Graph& g, NodeId id) {
  return refuse_unless(has_scan_argmax_kernels(in_dtype(g, id, 0)), "no scan or argmax kernel has its dtype");
}

// Units of work of an operand: single lines where their elements are contiguous, else blocks of columns.
struct LineUnits {
  AxisView axis;
  std::int64_t column_blocks = 1, units = 0, per_chunk = 1;
  const ScanArgmaxKernels* kernels = nullptr;

  /// Elements of a unit.
  std::int64_t elements() const { return axis.extent * (axis.inner == 1 ? 1 : std::min(kLineColumns, axis.inner)); }
  void set(LowerContext& c, std::int64_t along) {
    const View x = c.in(0);
    check(x.dense(), "the operand of a scan or argmax is not row-major");
    axis = around(x, along);
    column_blocks = (axis.inner + kLineColumns - 1) / kLineColumns;
    units = axis.outer * column_blocks;
    per_chunk = c.grain(std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, elements())));
    kernels = &scan_argmax_kernels(c.kernels().isa);
  }
  std::int64_t chunks() const { return (units + per_chunk - 1) / per_chunk; }
  std::int64_t end(std::int64_t chunk) const { return std::min(units, (chunk + 1) * per_chunk); }
  std::int64_t column(std::int64_t unit) const { return unit % column_blocks * kLineColumns; }
  std::int64_t columns(std::int64_t unit) const { return std::min(kLineColumns, axis.inner - column(unit)); }
  /// The first element of a unit.
  std::int64_t start(std::int64_t unit) const { return unit / column_blocks * axis.extent * axis.inner + column(unit); }
};

struct ArgReduceStep : LineUnits {
  DType dtype = DType::F32;
  bool maximum = true;
  const void* x = nullptr;
  std::int32_t* y = nullptr;
};
void run_arg_reduce(const ArgReduceStep& s, std::int64_t chunk) {
  for (std::int64_t u = chunk * s.per_chunk; u < s.end(chunk); ++u) {
    if (s.axis.inner == 1)
      s.y[u] = static_cast<std::int32_t>(s.kernels->best(s.dtype, s.maximum, s.x, s.start(u), s.axis.extent));
    else
      s.kernels->best_columns(s.dtype, s.maximum, s.x, s.start(u), s.axis.inner, s.axis.extent, s.columns(u),
                              s.y + u / s.column_blocks * s.axis.inner + s.column(u));
  }
}

// A few long lines: first the best index of each part, then the best of these. The first of equal elements wins.
constexpr std::int64_t kArgPart = 65536;
struct ArgPartsStep {
  ArgReduceStep lines;
  std::int64_t parts = 1, bytes = 1;
  std::int64_t* places = nullptr;  // [outer, parts]: the best index of each part
  std::byte* found = nullptr;      // [outer, parts]: the elements at `places`
};
void run_arg_part(const ArgPartsStep& s, std::int64_t chunk) {
  const ArgReduceStep& l = s.lines;
  const std::int64_t line = chunk / s.parts, first = chunk % s.parts * kArgPart, start = line * l.axis.extent;
  const std::int64_t n = std::min(kArgPart, l.axis.extent - first);
  s.places[chunk] = first + l.kernels->best(l.dtype, l.maximum, l.x, start + first, n);
  std::memcpy(s.found + chunk * s.bytes, static_cast<const std::byte*>(l.x) + (start + s.places[chunk]) * s.bytes,
              static_cast<std::size_t>(s.bytes));
}
void run_arg_of_parts(const ArgPartsStep& s, std::int64_t) {
  const ArgReduceStep& l = s.lines;
  for (std::int64_t line = 0; line < l.axis.outer; ++line) {
    const std::int64_t at = line * s.parts;
    l.y[line] = static_cast<std::int32_t>(s.places[at + l.kernels->best(l.dtype, l.maximum, s.found, at, s.parts)]);
  }
}

void lower_arg_reduce(LowerContext& c) {
  const auto& op = c.op<ops::ArgReduce>();
  const View x = c.in(0);
  if (c.out().elements() == 0) return;
  auto& s = c.keep<ArgPartsStep>();
  ArgReduceStep& l = s.lines;
  l.set(c, op.axis);
  l.dtype = x.dtype;
  l.maximum = op.fn == ArgReduceKind::Max;
  c.point(l.x, x);
  c.point(l.y, c.out());
  const double cost = 0.15 * static_cast<double>(x.elements());
  if (l.axis.inner != 1 || l.axis.extent < 2 * kArgPart || l.axis.outer >= 32) {
    c.step<run_arg_reduce>(l, l.chunks(), cost);
    return;
  }
  s.parts = (l.axis.extent + kArgPart - 1) / kArgPart;
  s.bytes = dtype_bits(x.dtype) / 8;
  const std::int64_t all = l.axis.outer * s.parts;
  s.places = reinterpret_cast<std::int64_t*>(c.workspace(static_cast<std::size_t>(all) * sizeof(std::int64_t)));
  s.found = c.workspace(static_cast<std::size_t>(all * s.bytes));
  c.step<run_arg_part>(s, all, cost);
  c.step<run_arg_of_parts>(s, 1, 2.0 * static_cast<double>(all));
}

struct ScanOpStep : LineUnits {
  ScanArgs scan;
};
void run_scan_op(const ScanOpStep& s, std::int64_t chunk) {
  for (std::int64_t u = chunk * s.per_chunk; u < s.end(chunk); ++u) {
    if (s.axis.inner == 1)
      s.kernels->scan(s.scan, s.start(u), s.axis.extent);
    else
      s.kernels->scan_columns(s.scan, s.start(u), s.axis.inner, s.axis.extent, s.columns(u));
  }
}
void lower_scan_op(LowerContext& c) {
  constexpr ReduceKind kFns[] = {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min};
  const auto& op = c.op<ops::Cumulative>();
  if (c.out().elements() == 0) return;
  auto& s = c.keep<ScanOpStep>();
  s.set(c, op.axis);
  s.scan.kind = kFns[static_cast<std::size_t>(op.fn)];
  s.scan.dtype = c.in(0).dtype;
  s.scan.exclusive = op.exclusive;
  s.scan.reverse = op.reverse;
  c.point(s.scan.x, c.in(0));
  c.point(s.scan.y, c.out());
  c.step<run_scan_op>(s, s.chunks(), 0.5 * static_cast<double>(c.in(0).elements()));
}

constexpr KernelEntry kScanArgmaxEntries[] = {{OpKind::ArgReduce, "arg_lines", slices_refuse, lower_arg_reduce},
                                              {OpKind::Cumulative, "scan_lines", slices_refuse, lower_scan_op}};

}  // namespace

std::span<const KernelEntry> scan_argmax_entries() { return kScanArgmaxEntries; }

}  // namespace rlx::cpu
