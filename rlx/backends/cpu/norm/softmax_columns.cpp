// Kernel entries of softmax along any axis, in F32 and F64.
#include <algorithm>
#include <span>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/norm/norm_f64_kernels.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

const char* softmax_columns_refuses(const Graph& g, NodeId id) {
  return refuse_unless(every_dtype(g, id, DType::F64) || every_dtype(g, id, DType::F32),
                       "its operand is neither f32 nor f64");
}

/// [outer, r, inner] along r: rows where inner is 1, else blocks of columns.
struct SoftmaxColumnsStep {
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t outer = 1, r = 1, inner = 1, per_chunk = 1, column_blocks = 1;
  bool log = false, wide = false;
  const F64RowKernels* kernels = nullptr;
};
void run_softmax_rows_f64(const SoftmaxColumnsStep& s, std::int64_t chunk) {
  (s.log ? s.kernels->log_softmax_f64 : s.kernels->softmax_f64)(
      static_cast<const double*>(s.x), s.r, static_cast<double*>(s.y), s.r, s.r, chunk * s.per_chunk,
      std::min(s.outer, (chunk + 1) * s.per_chunk));
}
void run_softmax_columns(const SoftmaxColumnsStep& s, std::int64_t chunk) {
  const std::int64_t outer = chunk / s.column_blocks, col = chunk % s.column_blocks * s.per_chunk,
                     at = outer * s.r * s.inner;
  const std::int64_t cols = std::min(s.per_chunk, s.inner - col);
  if (s.wide)
    s.kernels->softmax_columns_f64(s.log, static_cast<const double*>(s.x) + at, static_cast<double*>(s.y) + at, s.r,
                                   s.inner, col, cols);
  else
    s.kernels->softmax_columns_f32(s.log, static_cast<const float*>(s.x) + at, static_cast<float*>(s.y) + at, s.r,
                                   s.inner, col, cols);
}

void add_softmax_columns(LowerContext& c, bool log, std::size_t axis) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<SoftmaxColumnsStep>();
  s.log = log, s.wide = x.dtype == DType::F64;
  s.outer = product(std::span(x.dims).first(axis));
  s.r = x.dims[axis];
  s.inner = product(std::span(x.dims).subspan(axis + 1));
  c.point(s.x, x);
  c.point(s.y, y);
  s.kernels = &f64_row_kernels(c.kernels().isa);
  const double cost = s.wide ? 1.2 : 0.4;
  if (s.inner == 1 && s.wide) {
    s.per_chunk = std::max<std::int64_t>(1, rows_per_chunk(s.outer, s.r, cost, c.threads()));
    c.step<run_softmax_rows_f64>(s, (s.outer + s.per_chunk - 1) / s.per_chunk,
                                 cost * static_cast<double>(y.elements()));
    return;
  }
  // A few cache lines of each row at least; more where there are few rows.
  const std::int64_t fewest = s.wide ? 32 : 64;
  s.per_chunk = c.grain(std::clamp<std::int64_t>(fewest * (4096 / (s.r * fewest) + 1), fewest, 4096));
  s.column_blocks = (s.inner + s.per_chunk - 1) / s.per_chunk;
  c.step<run_softmax_columns>(s, s.outer * s.column_blocks, cost * static_cast<double>(y.elements()));
}
void lower_softmax_columns(LowerContext& c) {
  add_softmax_columns(c, false, static_cast<std::size_t>(c.op<ops::Softmax>().axis));
}
void lower_log_softmax_columns(LowerContext& c) {
  add_softmax_columns(c, true, static_cast<std::size_t>(c.op<ops::LogSoftmax>().axis));
}

bool first_in_place(const Graph&, NodeId, int operand, int result) { return operand == 0 && result == 0; }

constexpr KernelEntry kSoftmaxColumnsEntries[] = {
    {.kind = OpKind::Softmax,
     .kernel = "softmax_columns",
     .refuses = softmax_columns_refuses,
     .lower = lower_softmax_columns,
     .in_place = first_in_place},
    {.kind = OpKind::LogSoftmax,
     .kernel = "log_softmax_columns",
     .refuses = softmax_columns_refuses,
     .lower = lower_log_softmax_columns,
     .in_place = first_in_place},
};

}  // namespace

std::span<const KernelEntry> softmax_columns_entries() { return kSoftmaxColumnsEntries; }

}  // namespace rlx::cpu
