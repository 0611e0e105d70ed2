// Row kernels: layer and RMS norm with and without residual, softmax, log-softmax.
#include <algorithm>

#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

/// For f32 ops along the axis that Op names, which must be the last.
template <class Op>
const char* last_axis_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return refuse_unless(g.node(id).op.template as<Op>().axis == in_shape(g, id, 0).rank() - 1,
                       "it runs along another axis than the last");
}

struct NormStep {
  NormF32 norm;
  std::int64_t rows = 0, rows_per_chunk = 1;
  void (*run)(const NormF32&, std::int64_t, std::int64_t) = nullptr;
};
void run_norm(const NormStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.rows_per_chunk;
  s.run(s.norm, begin, std::min(s.rows, begin + s.rows_per_chunk));
}

const char* fused_norm_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return refuse_unless(in_shape(g, id, 0).rank() >= 1, "a scalar has no rows");
}

// `gamma` and `beta` are operand numbers; bias and residual likewise, or -1.
void add_norm(LowerContext& c, bool layer, double eps, int residual, int bias, int gamma, bool with_sum) {
  const View x = c.in(0), y = c.out(0);
  if (y.elements() == 0) return;
  auto& s = c.keep<NormStep>();
  NormF32& n = s.norm;
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a norm folds to rows");
  s.rows = rows->rows;
  n.cols = rows->cols;
  n.ld_x = rows->ld;
  n.ld_y = n.ld_sum = n.cols;
  n.eps = static_cast<float>(eps);
  c.point(n.x, x);
  c.point(n.y, y);
  if (residual >= 0) {
    const View r = c.in(residual);
    const auto residual_rows = as_rows(r);
    check(residual_rows.has_value(), "the residual of a norm folds to rows");
    n.ld_residual = residual_rows->ld;
    c.point(n.residual, r);
  }
  if (bias >= 0) c.point(n.bias, c.in(bias));
  c.point(n.gamma, c.in(gamma));
  c.point(n.beta, c.in(gamma + 1));
  if (with_sum) c.point(n.sum_out, c.out(1));
  s.run = layer ? c.kernels().layer_norm_f32 : c.kernels().rms_norm_f32;
  constexpr double kCostNs = 0.12;
  s.rows_per_chunk = std::max<std::int64_t>(1, rows_per_chunk(s.rows, n.cols, kCostNs, c.threads()));
  c.step<run_norm>(s, (s.rows + s.rows_per_chunk - 1) / s.rows_per_chunk,
                   kCostNs * static_cast<double>(s.rows * n.cols));
  if (with_sum)
    c.walks_rows(s.rows, s.rows_per_chunk, 1, {0, residual}, {0, 1});
  else
    c.walks_rows(s.rows, s.rows_per_chunk, 1, {0, residual});
}

void lower_layer_norm(LowerContext& c) { add_norm(c, true, c.op<ops::LayerNorm>().eps, -1, -1, 1, false); }
void lower_rms_norm(LowerContext& c) { add_norm(c, false, c.op<ops::RmsNorm>().eps, -1, -1, 1, false); }
void lower_residual_ln(LowerContext& c) {
  const auto& op = c.op<ops::FusedResidualLN>();
  add_norm(c, true, op.eps, 1, op.has_bias ? 2 : -1, op.has_bias ? 3 : 2, false);
}
void lower_residual_rms(LowerContext& c) {
  const auto& op = c.op<ops::FusedResidualRmsNorm>();
  add_norm(c, false, op.eps, 1, op.has_bias ? 2 : -1, op.has_bias ? 3 : 2, true);
}

// y may lie over x, the sum over x or the residual; a matrix may be strided.
bool norm_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand == 0 && in_shape(g, id, 0).rank() <= 2;
}
bool x_in_place(const Graph&, NodeId, int operand, int result) { return operand == 0 && result == 0; }
bool sum_in_place(const Graph& g, NodeId id, int operand, int result) {
  if (g.node(id).inputs[0] == g.node(id).inputs[1]) return false;  // the two results would lie over one operand
  return (operand == 0 && result == 0) || (operand == 1 && result == 1);
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
  check(rows.has_value(), "x of a softmax folds to rows");
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

constexpr Row kRows[] = {
    {OpKind::LayerNorm, "layer_norm_f32", last_axis_refuses<ops::LayerNorm>, lower_layer_norm, norm_reads_strided,
     x_in_place},
    {OpKind::RmsNorm, "rms_norm_f32", last_axis_refuses<ops::RmsNorm>, lower_rms_norm, norm_reads_strided, x_in_place},
    {OpKind::FusedResidualLN, "residual_layer_norm_f32", fused_norm_refuses, lower_residual_ln, norm_reads_strided,
     x_in_place},
    {OpKind::FusedResidualRmsNorm, "residual_rms_norm_f32", fused_norm_refuses, lower_residual_rms, norm_reads_strided,
     sum_in_place},
    {OpKind::Softmax, "softmax_f32", last_axis_refuses<ops::Softmax>, lower_softmax<false>, norm_reads_strided,
     x_in_place},
    {OpKind::LogSoftmax, "log_softmax_f32", last_axis_refuses<ops::LogSoftmax>, lower_softmax<true>, norm_reads_strided,
     x_in_place},
};

}  // namespace

std::span<const Row> norm_rows() { return kRows; }

}  // namespace rlx::cpu
