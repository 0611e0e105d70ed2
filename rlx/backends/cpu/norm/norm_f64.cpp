// Kernel entries of F64 norms and softmax, and of softmax along other axes than the last, also in F32.
#include <algorithm>
#include <span>
#include <string_view>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/norm/norm_f64_kernels.h"
#include "rlx/ir/input_spec.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

bool every_dtype(const Graph& g, NodeId id, DType t) {
  for (Value v : g.node(id).inputs)
    if (g.shape(v).dtype() != t) return false;
  for (const Shape& s : g.node(id).shapes)
    if (s.dtype() != t) return false;
  return true;
}

// -- norms --

template <class Op>
const char* norm_f64_refuses(const Graph& g, NodeId id) {
  // The f32 entry comes before this one, and reports show the last refusal. So refusals that hold for every dtype come
  // first.
  const auto& axes = g.node(id).op.template as<Op>().axes;
  const auto first = static_cast<std::int64_t>(in_shape(g, id, 0).rank()) - static_cast<std::int64_t>(axes.size());
  if (axes.empty() || axes.front() != first) return "it does not run along the last axes";
  return refuse_unless(every_dtype(g, id, DType::F64), "its operands and results are not all of one float type");
}

struct NormF64Step {
  NormF64 norm;
  std::int64_t rows = 0, per_chunk = 1;
  void (*run)(const NormF64&, std::int64_t, std::int64_t) = nullptr;
};
void run_norm_f64(const NormF64Step& s, std::int64_t chunk) {
  s.run(s.norm, chunk * s.per_chunk, std::min(s.rows, (chunk + 1) * s.per_chunk));
}

void add_norm_f64(LowerContext& c, double eps, std::size_t axes, int mean, int rstd) {
  const View x = c.in(0);
  auto& s = c.keep<NormF64Step>();
  const std::size_t split = x.dims.size() - axes;
  s.rows = product(std::span(x.dims).first(split)), s.norm.cols = product(std::span(x.dims).subspan(split));
  const auto read = [&](int r) { return r >= 0 && c.is_read(r); };
  if (s.rows == 0 || (s.norm.cols == 0 && !read(mean) && !read(rstd))) return;
  s.norm.eps = eps;
  c.point(s.norm.x, x);
  if (c.is_read(0)) c.point(s.norm.y, c.out(0));
  const auto operand = [&](std::string_view name, const double*& field) {
    if (const auto i = find_operand(c.node().op, c.num_inputs(), name)) c.point(field, c.in(*i));
  };
  operand("gamma", s.norm.gamma);
  operand("beta", s.norm.beta);
  if (read(mean)) c.point(s.norm.mean_out, c.out(mean));
  if (read(rstd)) c.point(s.norm.rstd_out, c.out(rstd));
  const F64RowKernels& kernels = f64_row_kernels(c.kernels().isa);
  s.run = mean >= 0 ? kernels.layer_norm_f64 : kernels.rms_norm_f64;
  constexpr double kCostNs = 0.3;
  const std::int64_t cols = std::max<std::int64_t>(1, s.norm.cols);
  s.per_chunk = std::max<std::int64_t>(1, rows_per_chunk(s.rows, cols, kCostNs, c.threads()));
  c.step<run_norm_f64>(s, (s.rows + s.per_chunk - 1) / s.per_chunk, kCostNs * static_cast<double>(s.rows * cols));
}
void lower_layer_norm_f64(LowerContext& c) {
  const auto& op = c.op<ops::LayerNorm>();
  add_norm_f64(c, op.eps, op.axes.size(), 1, 2);
}
void lower_rms_norm_f64(LowerContext& c) {
  const auto& op = c.op<ops::RmsNorm>();
  add_norm_f64(c, op.eps, op.axes.size(), -1, 1);
}

// -- softmax --

const char* softmax_f64_refuses(const Graph& g, NodeId id) {
  return refuse_unless(every_dtype(g, id, DType::F64) || every_dtype(g, id, DType::F32),
                       "its operand is neither f32 nor f64");
}

/// [outer, r, inner] along r: rows where inner is 1, else blocks of columns.
struct F64SoftmaxStep {
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t outer = 1, r = 1, inner = 1, per_chunk = 1, column_blocks = 1;
  bool log = false, wide = false;
  const F64RowKernels* kernels = nullptr;
};
void run_softmax_rows_f64(const F64SoftmaxStep& s, std::int64_t chunk) {
  s.kernels->softmax_f64(s.log, static_cast<const double*>(s.x), static_cast<double*>(s.y), s.r, chunk * s.per_chunk,
                         std::min(s.outer, (chunk + 1) * s.per_chunk));
}
void run_softmax_columns(const F64SoftmaxStep& s, std::int64_t chunk) {
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

void add_softmax_f64(LowerContext& c, bool log, std::size_t axis) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<F64SoftmaxStep>();
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
void lower_softmax_f64(LowerContext& c) {
  add_softmax_f64(c, false, static_cast<std::size_t>(c.op<ops::Softmax>().axis));
}
void lower_log_softmax_f64(LowerContext& c) {
  add_softmax_f64(c, true, static_cast<std::size_t>(c.op<ops::LogSoftmax>().axis));
}

bool first_in_place(const Graph&, NodeId, int operand, int result) { return operand == 0 && result == 0; }

constexpr KernelEntry kNormF64Entries[] = {
    {.kind = OpKind::LayerNorm,
     .kernel = "layer_norm_f64",
     .refuses = norm_f64_refuses<ops::LayerNorm>,
     .lower = lower_layer_norm_f64,
     .in_place = first_in_place,
     .skips_unread = 0b111},
    {.kind = OpKind::RmsNorm,
     .kernel = "rms_norm_f64",
     .refuses = norm_f64_refuses<ops::RmsNorm>,
     .lower = lower_rms_norm_f64,
     .in_place = first_in_place,
     .skips_unread = 0b11},
    {.kind = OpKind::Softmax,
     .kernel = "softmax_columns",
     .refuses = softmax_f64_refuses,
     .lower = lower_softmax_f64,
     .in_place = first_in_place},
    {.kind = OpKind::LogSoftmax,
     .kernel = "log_softmax_columns",
     .refuses = softmax_f64_refuses,
     .lower = lower_log_softmax_f64,
     .in_place = first_in_place},
};

}  // namespace

std::span<const KernelEntry> norm_f64_entries() { return kNormF64Entries; }

}  // namespace rlx::cpu
