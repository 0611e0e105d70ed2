// LayerNorm, RmsNorm and their backward ops. Composites. A group is the set of elements that share one mean and rstd: a
// slice of x along `axes`. The reference rules compute each group in double.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "rlx/ir/ops/norm.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/elementwise/representable.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;
using NamedOperands = std::vector<std::pair<std::string_view, Expr>>;

// The result index of rstd: LayerNorm returns y, mean, rstd; RmsNorm has no mean.
template <bool Centered>
constexpr int kRstd = Centered ? 2 : 1;

// The dims of x along `axes`, which are those of gamma and beta.
Dims dims_along(const Shape& x, const Axes& axes) {
  Dims dims;
  for (std::int64_t axis : axes) dims.push_back(x.dim(static_cast<int>(axis)));
  return dims;
}
// The shape of mean and rstd: one number for each group, in the accumulator dtype.
Shape stats_shape(const Shape& x, const Axes& axes) { return Shape(kept_dims(x, axes), accumulator_dtype(x.dtype())); }

// Checks that x is float with sorted axes, gamma and beta have the dims of these axes, mean and rstd have their shape
// as results, and eps is finite and not negative.
std::optional<Diagnostic> check_norm(const InferContext& c, const Axes& axes, double eps) {
  const Shape& x = c.input(0);
  if (!is_float(x.dtype()) || is_storage_only(x.dtype())) return c.dtype_error("x must be float, got ", x);
  if (auto e = check_axes(c, axes, x)) return e;
  if (axes.empty()) return c.attr_error("axes must name at least one axis of x ", x);
  if (!std::is_sorted(axes.begin(), axes.end())) return c.attr_error("axes ", dims_text(axes), " must be sorted");
  if (auto e = check_representable_eps(c, eps, x.dtype())) return e;
  const Shape vector(dims_along(x, axes), x.dtype()), stats = stats_shape(x, axes);
  for (int i = 1; i < c.num_inputs(); ++i) {
    const std::string_view name = operand_name(c.box(), c.num_inputs(), i);
    const Shape& want = name == "dy" ? x : name == "mean" || name == "rstd" ? stats : vector;
    if (c.input(i).dtype() != want.dtype())
      return c.dtype_error(name, " must be ", dtype_name(want.dtype()), " for x ", x, ", got ", c.input(i));
    if (!(c.input(i) == want))
      return c.error(name, " must be ", want, " (axes ", dims_text(axes), " of x ", x, "), got ", c.input(i));
  }
  return std::nullopt;
}

// The groups of a tensor. for_each calls f(group number, at), where at(i) is the position of the group's element i in
// the order of gamma: the start of the group plus an offset that all groups share. If an extent along `axes` is 0, the
// groups are empty. If another extent is 0, there is no group, and the offsets stay empty too: without elements, the
// extents along `axes` may be huge.
struct Groups {
  std::vector<std::int64_t> starts, offsets;
  Groups(const Tensor& x, const Axes& axes) : starts{0}, offsets{0} {
    const auto inside = [&](std::int64_t axis) { return std::binary_search(axes.begin(), axes.end(), axis); };
    for (std::int64_t axis = 0; axis < x.rank(); ++axis) {
      if (x.dim(static_cast<int>(axis)) != 0) continue;
      offsets.clear();
      if (!inside(axis)) starts.clear();
    }
    std::int64_t stride = x.num_elements();
    for (std::int64_t axis = 0; axis < x.rank(); ++axis) {
      const std::int64_t extent = x.dim(static_cast<int>(axis));
      auto& list = inside(axis) ? offsets : starts;
      if (list.empty()) continue;
      stride = stride == 0 ? 0 : stride / extent;
      std::vector<std::int64_t> longer;
      longer.reserve(list.size() * static_cast<std::size_t>(extent));
      for (std::int64_t base : list)
        for (std::int64_t i = 0; i < extent; ++i) longer.push_back(base + i * stride);
      list = std::move(longer);
    }
  }
  std::size_t group_elements() const { return offsets.size(); }
  template <class F>
  void for_each(F f) const {
    for (std::size_t group = 0; group < starts.size(); ++group)
      f(group, [this, group](std::size_t i) { return static_cast<std::size_t>(starts[group] + offsets[i]); });
  }
};

// The mean (0 for RmsNorm) and 1 / sqrt(mean of squares about it + eps) of a group.
struct Stats {
  double mean = 0, rstd = 0;
};
template <bool Centered, class At>
Stats stats_of(const std::vector<double>& x, std::size_t n, double eps, At at) {
  Stats s;
  const auto count = static_cast<double>(n);
  if constexpr (Centered) {
    for (std::size_t i = 0; i < n; ++i) s.mean += x[at(i)];
    s.mean /= count;
  }
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) squares += (x[at(i)] - s.mean) * (x[at(i)] - s.mean);
  s.rstd = 1 / std::sqrt(squares / count + eps);
  return s;
}

// The values of an optional operand of a reference run; if it is absent, `n` times `otherwise`.
std::vector<double> values_or(const RefArgs& a, std::string_view name, std::size_t n, double otherwise) {
  return a.has(name) ? a.in(name).to_f64() : std::vector<double>(n, otherwise);
}

template <bool Centered>
void norm_reference(const RefArgs& a, const Axes& axes, double eps) {
  const Groups groups(a.in(0), axes);
  const std::size_t n = groups.group_elements();
  const std::vector<double> x = a.in(0).to_f64(), gamma = values_or(a, "gamma", n, 1),
                            beta = values_or(a, "beta", n, 0);
  std::vector<double> y(x.size()), mean(groups.starts.size()), rstd(groups.starts.size());
  groups.for_each([&](std::size_t group, auto at) {
    const Stats s = stats_of<Centered>(x, n, eps, at);
    mean[group] = s.mean, rstd[group] = s.rstd;
    for (std::size_t i = 0; i < n; ++i) y[at(i)] = (x[at(i)] - s.mean) * s.rstd * gamma[i] + beta[i];
  });
  store_all(a.out(), y);
  if constexpr (Centered) store_all(a.out(1), mean);
  store_all(a.out(kRstd<Centered>), rstd);
}

// With h = (x - mean) * rstd and d = dy * gamma: dx = rstd * (d - mean(d) - h * mean(d * h)). The term mean(d) exists
// only for LayerNorm. The mean and rstd of the forward op are optional operands; what is absent is computed from x.
template <bool Centered>
void norm_backward_reference(const RefArgs& a, const Axes& axes, double eps) {
  const Groups groups(a.in(0), axes);
  const std::size_t n = groups.group_elements();
  const std::vector<double> x = a.in(0).to_f64(), dy = a.in(1).to_f64(), gamma = values_or(a, "gamma", n, 1),
                            mean = Centered ? values_or(a, "mean", 0, 0) : std::vector<double>(),
                            rstd = values_or(a, "rstd", 0, 0);
  std::vector<double> dx(x.size()), dgamma(static_cast<std::size_t>(a.out(1).num_elements())), dbeta(dgamma.size());
  const auto count = static_cast<double>(n);
  groups.for_each([&](std::size_t group, auto at) {
    Stats s = stats_of<Centered>(x, n, eps, at);
    if (!mean.empty()) {  // then an absent rstd is that of the deviations from this mean, as the decomposition has it
      s.mean = mean[group];
      double squares = 0;
      for (std::size_t i = 0; i < n; ++i) squares += (x[at(i)] - s.mean) * (x[at(i)] - s.mean);
      s.rstd = 1 / std::sqrt(squares / count + eps);
    }
    if (!rstd.empty()) s.rstd = rstd[group];
    double mean_d = 0, mean_dh = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double h = (x[at(i)] - s.mean) * s.rstd, d = dy[at(i)] * gamma[i];
      if constexpr (Centered) mean_d += d;
      mean_dh += d * h;
      dgamma[i] += dy[at(i)] * h;
      dbeta[i] += dy[at(i)];
    }
    mean_d /= count;
    mean_dh /= count;
    for (std::size_t i = 0; i < n; ++i) {
      const double h = (x[at(i)] - s.mean) * s.rstd, d = dy[at(i)] * gamma[i];
      dx[at(i)] = s.rstd * (d - mean_d - h * mean_dh);
    }
  });
  store_all(a.out(0), dx);
  store_all(a.out(1), dgamma);
  store_all(a.out(2), dbeta);
}

// (x - mean) * rstd of x in the accumulator dtype, with mean and rstd. If these are passed in, they are not computed.
struct Normalised {
  Expr hat, mean, rstd;
};
template <bool Centered>
Normalised normalise(Graph& g, Expr x, const Axes& axes, double eps, std::optional<Expr> mean = {},
                     std::optional<Expr> rstd = {}) {
  if (Centered && !mean) mean = g.mean(x, axes, true);
  const Expr centered = Centered ? x - *mean : x;
  if (!rstd) rstd = g.rsqrt(g.mean(g.square(centered), axes, true) + eps);
  return {centered * *rstd, Centered ? *mean : Expr(), *rstd};
}

template <bool Centered>
void norm_decompose(DecomposeContext& c, const Axes& axes, double eps) {
  const Expr x = widen(c.input(0));
  const Normalised n = normalise<Centered>(c.graph(), x, axes, eps);
  Expr y = n.hat;
  if (c.has("gamma")) y = y * along_axes(widen(c.input("gamma")), x.rank(), axes);
  if (c.has("beta")) y = y + along_axes(widen(c.input("beta")), x.rank(), axes);
  c.set_result(round_to(y, c.result_shape().dtype()));
  if (Centered) c.set_result(1, n.mean);
  c.set_result(kRstd<Centered>, n.rstd);
}

template <bool Centered>
void norm_backward_decompose(DecomposeContext& c, const Axes& axes, double eps) {
  Graph& g = c.graph();
  const Expr x = widen(c.input(0)), dy = widen(c.input(1));
  const Normalised n = normalise<Centered>(g, x, axes, eps, Centered ? c.optional_input("mean") : std::nullopt,
                                           c.optional_input("rstd"));
  const Expr d = c.has("gamma") ? dy * along_axes(widen(c.input("gamma")), x.rank(), axes) : dy;
  Expr inner = d - n.hat * g.mean(d * n.hat, axes, true);
  if (Centered) inner = inner - g.mean(d, axes, true);
  const DType t = c.result_shape().dtype();
  c.set_result(0, round_to(n.rstd * inner, t));
  c.set_result(1, round_to(sum_to_axes(dy * n.hat, axes), t));
  c.set_result(2, round_to(sum_to_axes(dy, axes), t));
}

template <class Op, class Backward, bool Centered>
struct NormRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<Op>();
    if (auto e = check_norm(c, op.axes, op.eps)) return *e;
    const Shape stats = stats_shape(c.input(0), op.axes);
    return Centered ? make_shapes(c.input(0), stats, stats) : make_shapes(c.input(0), stats);
  }
  static void decompose(DecomposeContext& c) { norm_decompose<Centered>(c, c.op<Op>().axes, c.op<Op>().eps); }
  // The cotangent of y goes through the backward op; those of mean and rstd, which are rare, are written in primitives.
  static void vjp(VjpContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<Op>();
    const Expr x = c.input(0), rstd = c.output(kRstd<Centered>);
    if (c.has_cotangent(0)) {
      Backward back;
      back.axes = op.axes, back.eps = op.eps;
      NamedOperands operands{{"x", x}, {"dy", c.cotangent()}};
      if (c.has("gamma")) operands.emplace_back("gamma", c.input("gamma"));
      if (Centered) operands.emplace_back("mean", c.output(1));
      operands.emplace_back("rstd", rstd);
      const Expr d = g.add_named(back, operands);
      c.accumulate(0, d);
      if (c.has("gamma")) c.accumulate(c.index("gamma"), d.result(1));
      if (c.has("beta")) c.accumulate(c.index("beta"), d.result(2));
    }
    // mean = sum(x) / n; rstd = (sum((x - mean)^2) / n + eps)^(-1/2). The derivative of rstd by the mean is 0, because
    // sum(x - mean) is 0.
    const bool of_mean = Centered && c.has_cotangent(1), of_rstd = c.has_cotangent(kRstd<Centered>);
    if (!of_mean && !of_rstd) return;
    const Expr x_acc = widen(x), n = group_size(g, x.shape(), op.axes, x_acc.dtype());  // in the accumulator dtype
    Expr d;
    if (of_rstd) {
      const Expr centered = Centered ? x_acc - c.output(1) : x_acc;
      d = -centered * (c.cotangent(kRstd<Centered>) * rstd * g.square(rstd) / n);
    }
    if (of_mean) {
      const Expr from_mean = g.expand(c.cotangent(1) / n, x.shape().dims());
      d = d.valid() ? d + from_mean : from_mean;
    }
    c.accumulate(0, round_to(d, x.dtype()));
  }
  static constexpr DerivedRule jvp = by_decomposition;
  // vmap. If x alone is batched, the op takes shifted axes. If each batch entry has its own gamma or beta, the op
  // normalises x without them, and a multiply and an add with [B, 1.., N, 1..] follow.
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    Op op = c.op<Op>();
    const Axes axes = op.axes;
    const bool x_batched = c.is_batched(0);
    if (x_batched) op.axes = shifted(axes);
    bool batched_affine = false;  // each batch entry has its own gamma or beta
    for (int i = 1; i < c.num_inputs(); ++i) batched_affine = batched_affine || c.is_batched(i);
    NamedOperands operands{{"x", batched_affine ? widen(c.input(0)) : c.input(0)}};
    for (std::string_view name : {"gamma", "beta"})
      if (!batched_affine && c.has(name)) operands.emplace_back(name, c.input(name));
    Expr y = g.add_named(op, operands);
    for (int r = 1; r < c.num_results(); ++r) {
      const Expr stats = y.result(static_cast<std::uint32_t>(r));
      c.set_result(r, x_batched ? stats : g.expand(stats, prepend(c.batch_size(), c.result_shape(r).dims())));
    }
    if (batched_affine) {
      const auto broadcastable = [&](std::string_view name) {
        const Expr v = widen(c.input(name));
        return c.is_batched(c.index(name)) ? along_axes(v, c.rank(0) + 1, shifted_behind_batch(axes))
                                           : along_axes(v, c.rank(0), axes);
      };
      if (c.has("gamma")) y = y * broadcastable("gamma");
      if (c.has("beta")) y = y + broadcastable("beta");
    }
    c.set_result(round_to(y, c.result_shape().dtype()));
  }
  static void reference(const RefArgs& a) { norm_reference<Centered>(a, a.op<Op>().axes, a.op<Op>().eps); }
  static constexpr AttrField attrs[] = {field<&Op::axes>("axes"), field<&Op::eps>("eps"),
                                        field<&Op::present>("present")};

 private:
  // The batch axis and the axes after it.
  static Axes shifted_behind_batch(const Axes& axes) {
    Axes out = shifted(axes);
    out.insert(out.begin(), 0);
    return out;
  }
};

template <class Op, bool Centered>
struct NormBackwardRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<Op>();
    if (auto e = check_norm(c, op.axes, op.eps)) return *e;
    const Shape vector(dims_along(c.input(0), op.axes), c.input(0).dtype());
    return make_shapes(c.input(0), vector, vector);
  }
  static void decompose(DecomposeContext& c) { norm_backward_decompose<Centered>(c, c.op<Op>().axes, c.op<Op>().eps); }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static void reference(const RefArgs& a) { norm_backward_reference<Centered>(a, a.op<Op>().axes, a.op<Op>().eps); }
  static constexpr AttrField attrs[] = {field<&Op::axes>("axes"), field<&Op::eps>("eps"),
                                        field<&Op::present>("present")};
};

// The record of a norm or of its backward op.
template <class Op, class Rules>
constexpr OpDef record(std::string_view name, std::string_view what, const InputSpec& in,
                       Cost (*cost)(const CostContext&)) {
  return {.kind = Op::kind,
          .name = name,
          .what = what,
          .inputs = in.masked_by<&Op::present>(),
          .attrs = Rules::attrs,
          .level = Level::Mir,
          .leaf = LeafKind::None,
          .elementwise = ElementwiseKind::No,
          .view = ViewKind::None,
          .precision = PrecisionCategory::Reduction,
          .infer = Rules::infer,
          .decompose = Rules::decompose,
          .vjp = Rules::vjp,
          .jvp = Rules::jvp,
          .batch = Rules::batch,
          .reference = Rules::reference,
          .cost = cost};
}

}  // namespace

constinit const OpDef ops::LayerNorm::def =
    record<ops::LayerNorm, NormRules<ops::LayerNorm, ops::LayerNormBackward, true>>(
        "layer_norm", "(x - mean) / sqrt(var + eps) * gamma + beta along some axes; the mean and 1 / sqrt(var + eps).",
        inputs("x", maybe("gamma"), maybe("beta")), flops_per_element<8>);
constinit const OpDef ops::RmsNorm::def = record<ops::RmsNorm, NormRules<ops::RmsNorm, ops::RmsNormBackward, false>>(
    "rms_norm", "x / sqrt(mean(x^2) + eps) * gamma + beta along some axes; 1 / sqrt(mean(x^2) + eps).",
    inputs("x", maybe("gamma"), maybe("beta")), flops_per_element<5>);
constinit const OpDef ops::LayerNormBackward::def =
    record<ops::LayerNormBackward, NormBackwardRules<ops::LayerNormBackward, true>>(
        "layer_norm_backward", "The cotangents of layer_norm: dx, dgamma, dbeta.",
        inputs("x", "dy", maybe("gamma"), maybe("mean"), maybe("rstd")), flops_per_element<18>);
constinit const OpDef ops::RmsNormBackward::def =
    record<ops::RmsNormBackward, NormBackwardRules<ops::RmsNormBackward, false>>(
        "rms_norm_backward", "The cotangents of rms_norm: dx, dgamma, dbeta.",
        inputs("x", "dy", maybe("gamma"), maybe("rstd")), flops_per_element<14>);

}  // namespace rlx
