// Norms as compositions of BatchNorm, GroupNorm, LayerNorm and window sums.
#include "rlx/functions/norms.h"

#include <cmath>
#include <utility>
#include <vector>

#include "rlx/ir/build/building.h"
#include "rlx/ir/math/windows.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/norm.h"

namespace rlx::nn {
namespace {

using building::At;
using building::fail;

Expr value_of_norm(const Operand& x, const char* what) {
  if (x.is_scalar())
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text(what, ": x must be a value of a graph, got a number"),
         "make the number a value: g.scalar(x)");
  const Expr v = x.expr();
  if (!is_float(v.dtype()))
    fail(x.loc(), ErrorCode::DTypeMismatch, concat_text(what, ": x must be float, not ", v.shape()), "cast it first");
  return v;
}

Expr normalised(const Operand& x, const std::optional<Operand>& gamma, const std::optional<Operand>& beta,
                const std::optional<Operand>& mean, const std::optional<Operand>& var, double eps, std::int64_t axis) {
  const Expr v = value_of_norm(x, "batch_norm");
  Graph& g = v.graph();
  ops::BatchNorm op;
  op.axis = building::normalize_axis_at(x.loc(), axis, v.rank(), "batch_norm");
  op.eps = eps;
  std::vector<std::pair<std::string_view, Expr>> operands{{"x", v}};
  const auto add = [&](const char* name, const std::optional<Operand>& o, DType t) {
    if (o) operands.emplace_back(name, building::cast_at(g, building::own_at(g, *o, x.loc()), t, x.loc()));
  };
  add("gamma", gamma, v.dtype()), add("beta", beta, v.dtype());
  add("mean", mean, accumulator_dtype(v.dtype())), add("var", var, accumulator_dtype(v.dtype()));
  return g.add_named(op, operands, x.loc());
}

// A condition [B, H] reshaped to [B, 1.., H], which broadcasts with x. Other shapes are unchanged.
Expr beside_rows(Graph& g, const Operand& c, const Expr& x, SourceLoc loc) {
  const Expr v = building::own_at(g, c, loc);
  if (v.rank() != 2 || x.rank() < 3) return v;
  Dims dims(static_cast<std::size_t>(x.rank()), Dim(1));
  dims.front() = v.dim(0), dims.back() = v.dim(1);
  return g.reshape(Operand(v, loc), dims);
}

}  // namespace

Expr batch_norm(Operand x, Operand mean, Operand var, std::optional<Operand> gamma, std::optional<Operand> beta,
                double eps, std::int64_t axis) {
  return normalised(x, gamma, beta, mean, var, eps, axis);
}

BatchStatistics batch_norm_training(Operand x, std::optional<Operand> gamma, std::optional<Operand> beta, double eps,
                                    std::int64_t axis) {
  const Expr y = normalised(x, gamma, beta, std::nullopt, std::nullopt, eps, axis);
  return {y, y.result(1), y.result(2)};
}

RunningStatistics running_statistics(Operand mean, Operand var, const BatchStatistics& batch, std::int64_t n,
                                     double momentum) {
  const Expr old_mean = value_of_norm(mean, "running_statistics"), old_var = value_of_norm(var, "running_statistics");
  if (n < 2)
    fail(mean.loc(), ErrorCode::InvalidArgument,
         concat_text("running_statistics: ", n, " elements for each channel; the unbiased variance needs at least 2"));
  if (!(momentum >= 0 && momentum <= 1))
    fail(mean.loc(), ErrorCode::InvalidArgument,
         concat_text("running_statistics: momentum ", momentum, " is not in [0, 1]"));
  Graph& g = old_mean.graph();
  const At at{mean.loc()};
  const auto mix = [&](const Expr& old, const Expr& fresh, double weight) {
    return g.add(at(g.mul(at(old), at(1 - momentum))), at(g.mul(at(g.cast(at(fresh), old.dtype())), at(weight))));
  };
  return {mix(old_mean, batch.mean, momentum),
          mix(old_var, batch.var, momentum * static_cast<double>(n) / static_cast<double>(n - 1))};
}

Expr instance_norm(Operand x, std::optional<Operand> gamma, std::optional<Operand> beta, double eps) {
  const Expr v = value_of_norm(x, "instance_norm");
  if (v.rank() < 3 || !v.dim(1).is_static() || v.dim(1).is_static(0))
    fail(x.loc(), ErrorCode::ShapeMismatch,
         concat_text("instance_norm: x must be [N, C, ..] with a known C, got ", v.shape()));
  return v.graph().group_norm(x, v.dim(1).value(), gamma, beta, eps);
}

Expr local_response_norm(Operand x, std::int64_t size, double alpha, double beta, double k, std::int64_t axis) {
  const Expr v = value_of_norm(x, "local_response_norm");
  if (size < 1)
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text("local_response_norm: size must be at least 1, got ", size));
  const std::int64_t along = building::normalize_axis_at(x.loc(), axis, v.rank(), "local_response_norm");
  Graph& g = v.graph();
  const At at{x.loc()};
  std::vector<WindowAxis> axes(static_cast<std::size_t>(v.rank()));
  WindowAxis& a = axes[static_cast<std::size_t>(along)];
  a.window = size, a.low = size / 2, a.high = (size - 1) / 2;
  ops::ReduceWindow sum;
  set_window_axes(sum, axes);
  const Expr wide = g.cast(at(v), accumulator_dtype(v.dtype()));
  const Expr squares = g.reduce_window(at(g.square(at(wide))), sum);
  const Expr base = g.add(at(g.mul(at(squares), at(alpha / static_cast<double>(size)))), at(k));
  return g.cast(at(g.mul(at(wide), at(g.pow(at(base), at(-beta))))), v.dtype());
}

Expr lp_normalize(Operand x, double p, std::int64_t axis, double eps) {
  const Expr v = value_of_norm(x, "lp_normalize");
  if (!(p > 0) || !std::isfinite(p))
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text("lp_normalize: p must be a finite number > 0, got ", p));
  Graph& g = v.graph();
  const At at{x.loc()};
  const Expr wide = g.cast(at(v), accumulator_dtype(v.dtype())), size = g.abs(at(wide));
  const auto total = [&](const Expr& e) { return g.sum(at(e), {axis}, true); };
  const Expr norm = p == 2   ? g.sqrt(at(total(g.square(at(wide)))))
                    : p == 1 ? total(size)
                             : g.pow(at(total(g.pow(at(size), at(p)))), at(1 / p));
  return g.cast(at(g.div(at(wide), at(g.max(at(norm), at(eps))))), v.dtype());
}

Expr ada_layer_norm(Operand x, Operand scale, Operand shift, double eps) {
  const Expr v = value_of_norm(x, "ada_layer_norm");
  Graph& g = v.graph();
  const At at{x.loc()};
  const Expr y = g.layer_norm(x, std::nullopt, std::nullopt, eps);
  const Expr by = g.add(at(beside_rows(g, scale, v, x.loc())), at(1));
  return g.add(at(g.mul(at(y), at(by))), at(beside_rows(g, shift, v, x.loc())));
}

Expr gated_residual(Operand x, Operand gate, Operand y) {
  const Expr v = value_of_norm(x, "gated_residual");
  Graph& g = v.graph();
  const At at{x.loc()};
  return g.add(at(v), at(g.mul(at(beside_rows(g, gate, v, x.loc())), at(building::own_at(g, y, x.loc())))));
}

}  // namespace rlx::nn
