// F16 and BF16 norms over the last axes.
#include "rlx/backends/cpu/norm/norm_16bit.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "rlx/backends/cpu/reduce/typed_reduce_kernels.h"
#include "rlx/ir/input_spec.h"
#include "rlx/ir/ops/norm.h"

namespace rlx::cpu {
namespace {

const char* half_norm_refuses(const Graph& g, NodeId id, const std::vector<std::int64_t>& axes) {
  const DType t = in_dtype(g, id, 0);
  if (t != DType::F16 && t != DType::BF16) return "its operands are not f16 or bf16";
  for (int i = 1; i < static_cast<int>(g.node(id).inputs.size()); ++i)
    if (in_dtype(g, id, i) != t) return "its operands have different dtypes";
  const auto first = static_cast<std::int64_t>(in_shape(g, id, 0).rank()) - static_cast<std::int64_t>(axes.size());
  return refuse_unless(!axes.empty() && axes.front() == first, "it does not run along the last axes");
}

struct Norm16BitStep {
  DType dtype = DType::BF16;
  bool layer = true;
  std::int64_t rows = 0, cols = 0, per_chunk = 1;
  float eps = 0;
  const void *x = nullptr, *gamma = nullptr, *beta = nullptr;
  void* y = nullptr;
  float *mean = nullptr, *rstd = nullptr;
  const TypedReduceKernels* runs = nullptr;
  const KernelTable* kernels = nullptr;
  const Scratch* scratch = nullptr;
};
void run_half_norm(const Norm16BitStep& s, std::int64_t chunk) {
  auto* row = reinterpret_cast<float*>(s.scratch->mine());
  NormF32 n;
  n.cols = n.ld_x = n.ld_y = n.ld_sum = s.cols;
  n.eps = s.eps;
  n.x = row, n.y = row;
  const auto widened = [&](const void* from, float* to) {
    s.runs->load(s.dtype, from, 0, 1, s.cols, to);
    return to;
  };
  if (s.gamma) n.gamma = widened(s.gamma, row + s.cols);
  if (s.beta) n.beta = widened(s.beta, row + 2 * s.cols);
  const std::int64_t end = std::min(s.rows, (chunk + 1) * s.per_chunk);
  for (std::int64_t r = chunk * s.per_chunk; r < end; ++r) {
    s.runs->load(s.dtype, s.x, r * s.cols, 1, s.cols, row);
    n.mean_out = s.mean ? s.mean + r : nullptr;
    n.rstd_out = s.rstd ? s.rstd + r : nullptr;
    (s.layer ? s.kernels->layer_norm_f32 : s.kernels->rms_norm_f32)(n, 0, 1);
    s.runs->store(s.dtype, row, s.cols, s.y, r * s.cols, 1);
  }
}

void add_half_norm(LowerContext& c, bool layer, double eps, std::size_t axes) {
  const View x = c.in(0);
  auto& s = c.keep<Norm16BitStep>();
  s.dtype = x.dtype, s.layer = layer, s.eps = static_cast<float>(eps);
  const std::size_t split = x.dims.size() - axes;
  s.rows = product(std::span(x.dims).first(split)), s.cols = product(std::span(x.dims).subspan(split));
  const int rstd = layer ? 2 : 1;
  if (s.rows == 0 || (s.cols == 0 && !c.is_read(rstd) && !(layer && c.is_read(1)))) return;
  c.point(s.x, x);
  c.point(s.y, c.out(0));
  const auto operand = [&](std::string_view name, const void*& field) {
    if (const auto i = find_operand(c.node().op, c.num_inputs(), name)) c.point(field, c.in(*i));
  };
  operand("gamma", s.gamma);
  operand("beta", s.beta);
  if (layer && c.is_read(1)) c.point(s.mean, c.out(1));
  if (c.is_read(rstd)) c.point(s.rstd, c.out(rstd));
  s.runs = &typed_reduce_kernels(c.kernels().isa);
  s.kernels = &c.kernels();
  s.scratch = c.scratch(static_cast<std::size_t>(3 * s.cols + 64) * sizeof(float));
  constexpr double kCostNs = 0.3;
  const std::int64_t cols = std::max<std::int64_t>(1, s.cols);
  s.per_chunk = c.finest() ? 1 : std::max<std::int64_t>(rows_per_chunk(s.rows, cols, kCostNs, c.threads()), 1);
  c.step<run_half_norm>(s, (s.rows + s.per_chunk - 1) / s.per_chunk, kCostNs * static_cast<double>(s.rows * cols));
}

}  // namespace

const char* layer_norm_16bit_refuses(const Graph& g, NodeId id) {
  return half_norm_refuses(g, id, g.node(id).op.as<ops::LayerNorm>().axes);
}
const char* rms_norm_16bit_refuses(const Graph& g, NodeId id) {
  return half_norm_refuses(g, id, g.node(id).op.as<ops::RmsNorm>().axes);
}
void lower_layer_norm_16bit(LowerContext& c) {
  const auto& op = c.op<ops::LayerNorm>();
  add_half_norm(c, true, op.eps, op.axes.size());
}
void lower_rms_norm_16bit(LowerContext& c) {
  const auto& op = c.op<ops::RmsNorm>();
  add_half_norm(c, false, op.eps, op.axes.size());
}

}  // namespace rlx::cpu
