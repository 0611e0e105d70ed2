// Row kernels: layer and RMS norm with and without residual, softmax, log-softmax, cross entropy.
#include <algorithm>
#include <span>
#include <string_view>
#include <type_traits>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/norm/losses_kernels.h"
#include "rlx/backends/cpu/norm/norm_16bit.h"
#include "rlx/backends/cpu/norm/norm_f64_kernels.h"
#include "rlx/backends/cpu/runs.h"
#include "rlx/ir/input_spec.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

/// Refuses all but f32 ops along the last axis, by the `axis` of Op.
template <class Op>
const char* last_axis_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return refuse_unless(g.node(id).op.template as<Op>().axis == in_shape(g, id, 0).rank() - 1,
                       "it does not run along the last axis");
}

/// Refuses all but norms over the last axes together, of f32 or of f64. Reports show the refusal of the f64 entry,
/// which is the last one, so what holds for every dtype comes first there.
template <class Op, DType kType>
const char* last_axes_refuses(const Graph& g, NodeId id) {
  const auto& axes = g.node(id).op.template as<Op>().axes;
  const auto first = static_cast<std::int64_t>(in_shape(g, id, 0).rank()) - static_cast<std::int64_t>(axes.size());
  if (axes.empty() || axes.front() != first) return "it does not run along the last axes";  // axes are sorted
  return refuse_unless(every_dtype(g, id, kType), "its operands and results are not all of one float type");
}

template <class T>
struct NormStep {
  Norm<T> norm;
  std::int64_t rows = 0, rows_per_chunk = 1;
  void (*run)(const Norm<T>&, std::int64_t, std::int64_t) = nullptr;
  Runs runs{};  // of x, where its rows do not fold into one stride
};
template <class T>
void run_norm(const NormStep<T>& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.rows_per_chunk, end = std::min(s.rows, begin + s.rows_per_chunk);
  s.run(s.norm, begin, end);
}
// Runs the norm on each range of rows that one stride covers.
template <class T>
void run_norm_of_runs(const NormStep<T>& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.rows_per_chunk, end = std::min(s.rows, begin + s.rows_per_chunk);
  const std::int64_t cols = s.norm.cols;
  s.runs.each(begin * cols, end * cols, [&](std::int64_t at, std::int64_t count, std::int64_t from) {
    const std::int64_t row = begin + from / cols;
    Norm<T> n = s.norm;
    n.x += at;
    if (n.y) n.y += row * n.ld_y;
    if (n.mean_out) n.mean_out += row;
    if (n.rstd_out) n.rstd_out += row;
    s.run(n, 0, count / cols);
  });
}

const char* fused_norm_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return refuse_unless(in_shape(g, id, 0).rank() >= 1, "a scalar has no rows");
}

// What a norm's op describes; -1 for absent results.
struct NormArgs {
  bool layer = true;
  double eps = 0;
  int axes = 1;           // number of normalised axes, the last ones
  bool residual = false;  // whether a residual, and perhaps a bias, is added first
  int sum = -1, mean = -1, rstd = -1;
};
template <class T>
void add_norm(LowerContext& c, const NormArgs& form) {
  const View x = c.in(0), y = c.out(0);
  const auto operand = [&](std::string_view name) {
    return find_operand(c.node().op, c.num_inputs(), name).value_or(-1);
  };
  auto& s = c.keep<NormStep<T>>();
  Norm<T>& n = s.norm;
  bool in_runs = false;
  if (form.axes == 1) {
    if (const auto rows = as_rows(x)) {
      s.rows = rows->rows, n.cols = rows->cols, n.ld_x = rows->ld;
    } else {
      check(!form.residual, "x of a norm with a residual does not fold to a matrix");
      s.rows = product(std::span(x.dims).first(x.dims.size() - 1)), n.cols = n.ld_x = x.dim(-1);
      s.runs = Runs(x), in_runs = true;
    }
  } else {
    const std::size_t split = x.dims.size() - static_cast<std::size_t>(form.axes);
    s.rows = product(std::span(x.dims).first(split)), n.cols = n.ld_x = product(std::span(x.dims).subspan(split));
  }
  const auto read = [&](int r) { return r >= 0 && c.is_read(r); };
  if (s.rows == 0 || (n.cols == 0 && !read(form.mean) && !read(form.rstd))) return;
  const bool skips_y = !form.residual && !c.is_read(0);
  n.ld_y = n.ld_sum = n.cols;
  n.eps = static_cast<T>(form.eps);
  c.point(n.x, x);
  if (!skips_y) c.point(n.y, y);
  const int residual = form.residual ? operand("residual") : -1;
  if (form.residual) {
    const View r = c.in(residual);
    const auto residual_rows = as_rows(r);
    check(residual_rows.has_value(), "the residual of a norm does not fold to a matrix");
    n.ld_residual = residual_rows->ld;
    c.point(n.residual, r);
    if (const int bias = operand("bias"); bias >= 0) c.point(n.bias, c.in(bias));
  }
  if (const int gamma = operand("gamma"); gamma >= 0) c.point(n.gamma, c.in(gamma));
  if (const int beta = operand("beta"); beta >= 0) c.point(n.beta, c.in(beta));
  const auto point = [&](int r, T*& to) {
    if (read(r)) c.point(to, c.out(r));
  };
  point(form.sum, n.sum_out);
  point(form.mean, n.mean_out);
  point(form.rstd, n.rstd_out);
  if constexpr (std::is_same_v<T, float>) {
    s.run = form.layer ? c.kernels().layer_norm_f32 : c.kernels().rms_norm_f32;
  } else {
    const F64RowKernels& kernels = f64_row_kernels(c.kernels().isa);
    s.run = form.layer ? kernels.layer_norm_f64 : kernels.rms_norm_f64;
  }
  constexpr double kCostNs = sizeof(T) == 8 ? 0.3 : 0.12;
  const std::int64_t cols = std::max<std::int64_t>(1, n.cols);
  s.rows_per_chunk = std::max<std::int64_t>(1, rows_per_chunk(s.rows, cols, kCostNs, c.threads()));
  const std::int64_t chunks = (s.rows + s.rows_per_chunk - 1) / s.rows_per_chunk;
  const double cost = kCostNs * static_cast<double>(s.rows * n.cols);
  if (in_runs)
    c.step<run_norm_of_runs<T>>(s, chunks, cost);
  else
    c.step<run_norm<T>>(s, chunks, cost);
  c.tile_rows(s.rows, s.rows_per_chunk, 1, {0, residual}, {0, 1, 2, 3});
}

template <class T>
void lower_layer_norm(LowerContext& c) {
  const auto& op = c.op<ops::LayerNorm>();
  add_norm<T>(c, {.layer = true, .eps = op.eps, .axes = static_cast<int>(op.axes.size()), .mean = 1, .rstd = 2});
}
template <class T>
void lower_rms_norm(LowerContext& c) {
  const auto& op = c.op<ops::RmsNorm>();
  add_norm<T>(c, {.layer = false, .eps = op.eps, .axes = static_cast<int>(op.axes.size()), .rstd = 1});
}
void lower_residual_ln(LowerContext& c) {
  const double eps = c.op<ops::FusedResidualLN>().eps;
  add_norm<float>(c, {.layer = true, .eps = eps, .residual = true, .sum = 1, .mean = 2, .rstd = 3});
}
void lower_residual_rms(LowerContext& c) {
  const double eps = c.op<ops::FusedResidualRmsNorm>().eps;
  add_norm<float>(c, {.layer = false, .eps = eps, .residual = true, .sum = 1, .rstd = 2});
}

// A matrix may be strided.
bool matrix_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand == 0 && in_shape(g, id, 0).rank() <= 2;
}
template <class Op>
bool norm_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand == 0 && g.node(id).op.template as<Op>().axes.size() == 1;
}
// y may alias x. The sum may alias x or the residual, unless the node reads that again: the sum is written before gamma
// and beta are read, and both results would alias an x that is also the residual.
bool x_in_place(const Graph&, NodeId, int operand, int result) { return operand == 0 && result == 0; }
bool sum_in_place(const Graph& g, NodeId id, int operand, int result) {
  return operand == result && operand < 2 && is_sole_operand(g, id, operand);
}

// -- softmax --

struct SoftmaxStep {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t ld_x = 0, cols = 0, rows = 0, rows_per_chunk = 1;
  void (*run)(const float*, std::int64_t, float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t) = nullptr;
};
void run_softmax(const SoftmaxStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.rows_per_chunk;
  s.run(s.x, s.ld_x, s.y, s.cols, s.cols, begin, std::min(s.rows, begin + s.rows_per_chunk));
}

template <bool kLog>
void lower_softmax(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<SoftmaxStep>();
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a softmax does not fold to a matrix");
  s.rows = rows->rows;
  s.cols = rows->cols;
  s.ld_x = rows->ld;
  c.point(s.x, x);
  c.point(s.y, y);
  s.run = kLog ? c.kernels().log_softmax_f32 : c.kernels().softmax_f32;
  constexpr double kCostNs = 0.3;
  s.rows_per_chunk = std::max<std::int64_t>(1, rows_per_chunk(s.rows, s.cols, kCostNs, c.threads()));
  c.step<run_softmax>(s, (s.rows + s.rows_per_chunk - 1) / s.rows_per_chunk,
                      kCostNs * static_cast<double>(s.rows * s.cols));
}

// -- cross entropy --

const char* cross_entropy_refuses(const Graph& g, NodeId id) {
  if (in_dtype(g, id, 0) != DType::F32) return "its logits are not f32";
  return nullptr;
}

struct CrossEntropyStep {
  CrossEntropyF32 rows;
  std::int64_t count = 0, rows_per_chunk = 1;
  void (*run)(const CrossEntropyF32&, std::int64_t, std::int64_t) = nullptr;
};
void run_cross_entropy(const CrossEntropyStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.rows_per_chunk;
  s.run(s.rows, begin, std::min(s.count, begin + s.rows_per_chunk));
}

void lower_cross_entropy(LowerContext& c) {
  const View x = c.in(0), labels = c.in(1);
  auto& s = c.keep<CrossEntropyStep>();
  const auto rows = as_rows(x);
  check(rows.has_value(), "the logits of a cross entropy do not fold to a matrix");
  if (rows->rows == 0 || (!c.is_read(0) && !c.is_read(1))) return;
  s.count = rows->rows, s.rows.cols = rows->cols, s.rows.ld_x = rows->ld;
  c.point(s.rows.x, x);
  if (labels.dtype == DType::F32) {
    s.rows.ld_weights = rows->cols;
    c.point(s.rows.weights, labels);
  } else if (labels.dtype == DType::I32) {
    c.point(s.rows.labels, labels);
  } else {
    c.point(s.rows.wide_labels, labels);
  }
  if (c.is_read(0)) c.point(s.rows.loss, c.out(0));
  if (c.is_read(1)) c.point(s.rows.log_sum, c.out(1));
  s.run = loss_kernels(c.kernels().isa).cross_entropy_f32;
  constexpr double kCostNs = 0.25;
  s.rows_per_chunk =
      std::max<std::int64_t>(1, rows_per_chunk(s.count, std::max<std::int64_t>(1, s.rows.cols), kCostNs, c.threads()));
  c.step<run_cross_entropy>(s, (s.count + s.rows_per_chunk - 1) / s.rows_per_chunk,
                            kCostNs * static_cast<double>(s.count * s.rows.cols));
}

constexpr KernelEntry kNormEntries[] = {
    // Before the other entries, whose refusals tell more about what no entry takes.
    {.kind = OpKind::LayerNorm,
     .kernel = "layer_norm_16",
     .refuses = layer_norm_16bit_refuses,
     .lower = lower_layer_norm_16bit,
     .skips_unread = 0b110},
    {.kind = OpKind::RmsNorm,
     .kernel = "rms_norm_16",
     .refuses = rms_norm_16bit_refuses,
     .lower = lower_rms_norm_16bit,
     .skips_unread = 0b10},
    {.kind = OpKind::LayerNorm,
     .kernel = "layer_norm_f32",
     .refuses = last_axes_refuses<ops::LayerNorm, DType::F32>,
     .lower = lower_layer_norm<float>,
     .reads_strided = norm_reads_strided<ops::LayerNorm>,
     .in_place = x_in_place,
     .skips_unread = 0b111},
    {.kind = OpKind::LayerNorm,
     .kernel = "layer_norm_f64",
     .refuses = last_axes_refuses<ops::LayerNorm, DType::F64>,
     .lower = lower_layer_norm<double>,
     .reads_strided = norm_reads_strided<ops::LayerNorm>,
     .in_place = x_in_place,
     .skips_unread = 0b111},
    {.kind = OpKind::RmsNorm,
     .kernel = "rms_norm_f32",
     .refuses = last_axes_refuses<ops::RmsNorm, DType::F32>,
     .lower = lower_rms_norm<float>,
     .reads_strided = norm_reads_strided<ops::RmsNorm>,
     .in_place = x_in_place,
     .skips_unread = 0b11},
    {.kind = OpKind::RmsNorm,
     .kernel = "rms_norm_f64",
     .refuses = last_axes_refuses<ops::RmsNorm, DType::F64>,
     .lower = lower_rms_norm<double>,
     .reads_strided = norm_reads_strided<ops::RmsNorm>,
     .in_place = x_in_place,
     .skips_unread = 0b11},
    {.kind = OpKind::FusedResidualLN,
     .kernel = "residual_layer_norm_f32",
     .refuses = fused_norm_refuses,
     .lower = lower_residual_ln,
     .reads_strided = matrix_reads_strided,
     .in_place = sum_in_place,
     .skips_unread = 0b1110},
    {.kind = OpKind::FusedResidualRmsNorm,
     .kernel = "residual_rms_norm_f32",
     .refuses = fused_norm_refuses,
     .lower = lower_residual_rms,
     .reads_strided = matrix_reads_strided,
     .in_place = sum_in_place,
     .skips_unread = 0b110},
    {OpKind::Softmax, "softmax_f32", last_axis_refuses<ops::Softmax>, lower_softmax<false>, matrix_reads_strided,
     x_in_place},
    {OpKind::LogSoftmax, "log_softmax_f32", last_axis_refuses<ops::LogSoftmax>, lower_softmax<true>,
     matrix_reads_strided, x_in_place},
    {.kind = OpKind::SoftmaxCrossEntropy,
     .kernel = "cross_entropy_f32",
     .refuses = cross_entropy_refuses,
     .lower = lower_cross_entropy,
     .reads_strided = matrix_reads_strided,
     .skips_unread = 0b11},
};

}  // namespace

std::span<const KernelEntry> norm_entries() { return kNormEntries; }

}  // namespace rlx::cpu
