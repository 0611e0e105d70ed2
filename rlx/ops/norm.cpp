// LayerNorm, RmsNorm and their cotangent ops. Composites; the reference rules compute each row in double.
#include <cmath>

#include "rlx/ir/ops/norm.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/ops/wide.h"

namespace rlx {
namespace {

// x float with `axis` in range, gamma [and beta] [dim(axis)], eps finite and not negative.
std::optional<Diagnostic> check_norm(const InferContext& c, std::int64_t axis, double eps, int num_vectors) {
  const Shape& x = c.input(0);
  if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
  if (auto e = c.check_axis(axis, x)) return e;
  if (!(eps >= 0) || !std::isfinite(eps)) return c.attr_error("eps must be a finite number >= 0, got ", eps);
  if (auto e = c.check_same_dtype(0, c.num_inputs())) return e;
  static constexpr const char* kNames[] = {"gamma", "beta"};
  for (int i = 0; i < num_vectors; ++i) {
    const Shape& v = c.input(i + 1);
    if (v.rank() != 1 || !(v.dim(0) == x.dim(static_cast<int>(axis))))
      return c.error(kNames[i], " must be [", x.dim(static_cast<int>(axis)), "] (axis ", axis, " of x ", x, "), got ",
                     v);
  }
  return std::nullopt;
}

// For samples.
template <class Op>
Op norm_op(std::int64_t axis, double eps) {
  Op op;
  op.axis = axis;
  op.eps = eps;
  return op;
}
Shape f32(Dims dims) { return Shape(std::move(dims), DType::F32); }

// Rows of a tensor along an axis: element i of row (o, r) lies at (o * n + i) * inner + r.
struct Rows {
  std::int64_t outer = 1, n = 1, inner = 1;
  Rows(const Tensor& x, std::int64_t axis) {
    const AxisSplit s = split_at(x.dims(), axis);
    outer = s.outer, n = s.extent, inner = s.inner;
  }
  template <class F>
  void for_each(F f) const {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t r = 0; r < inner; ++r)
        f([this, o, r](std::int64_t i) { return static_cast<std::size_t>((o * n + i) * inner + r); });
  }
};

// Mean (0 for the RMS form) and 1 / sqrt(mean of squares about it + eps) of one row.
struct RowStats {
  double mean = 0, rstd = 0;
};
template <bool Centered, class At>
RowStats row_stats(const std::vector<double>& x, std::int64_t n, double eps, At at) {
  RowStats s;
  const auto count = static_cast<double>(n);
  if constexpr (Centered) {
    for (std::int64_t i = 0; i < n; ++i) s.mean += x[at(i)];
    s.mean /= count;
  }
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += (x[at(i)] - s.mean) * (x[at(i)] - s.mean);
  s.rstd = 1 / std::sqrt(squares / count + eps);
  return s;
}

template <bool Centered>
void norm_reference(const RefArgs& a, std::int64_t axis, double eps) {
  const std::vector<double> x = a.in(0).to_f64(), gamma = a.in(1).to_f64(), beta = a.in(2).to_f64();
  std::vector<double> y(x.size());
  const Rows rows(a.in(0), axis);
  rows.for_each([&](auto at) {
    const RowStats s = row_stats<Centered>(x, rows.n, eps, at);
    for (std::int64_t i = 0; i < rows.n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      y[at(i)] = (x[at(i)] - s.mean) * s.rstd * gamma[k] + beta[k];
    }
  });
  store_all(a.out(), y);
}

// With h = (x - mean) * rstd and d = dy * gamma: dx = rstd * (d - mean(d) - h * mean(d * h)); mean(d) only when
// centred.
template <bool Centered>
void norm_backward_reference(const RefArgs& a, std::int64_t axis, double eps) {
  const std::vector<double> x = a.in(0).to_f64(), gamma = a.in(1).to_f64(), dy = a.in(2).to_f64();
  std::vector<double> dx(x.size()), dgamma(gamma.size()), dbeta(gamma.size());
  const Rows rows(a.in(0), axis);
  const auto count = static_cast<double>(rows.n);
  rows.for_each([&](auto at) {
    const RowStats s = row_stats<Centered>(x, rows.n, eps, at);
    double mean_d = 0, mean_dh = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const double h = (x[at(i)] - s.mean) * s.rstd, d = dy[at(i)] * gamma[k];
      if constexpr (Centered) mean_d += d;
      mean_dh += d * h;
      dgamma[k] += dy[at(i)] * h;
      dbeta[k] += dy[at(i)];
    }
    mean_d /= count;
    mean_dh /= count;
    for (std::int64_t i = 0; i < rows.n; ++i) {
      const double h = (x[at(i)] - s.mean) * s.rstd, d = dy[at(i)] * gamma[static_cast<std::size_t>(i)];
      dx[at(i)] = s.rstd * (d - mean_d - h * mean_dh);
    }
  });
  store_all(a.out(0), dx);
  store_all(a.out(1), dgamma);
  store_all(a.out(2), dbeta);
}

// (x - mean) * rstd and rstd, in the accumulator dtype.
struct Normalised {
  Expr hat, rstd;
};
template <bool Centered>
Normalised normalise(Graph& g, Expr x, std::int64_t axis, double eps) {
  Expr centred = Centered ? x - g.mean(x, {axis}, true) : x;
  Expr rstd = g.rsqrt(g.mean(g.square(centred), {axis}, true) + eps);
  return {centred * rstd, rstd};
}

template <bool Centered>
void norm_decompose(DecomposeContext& c, std::int64_t axis, double eps) {
  Expr x = widen(c.input(0));
  Expr hat = normalise<Centered>(c.graph(), x, axis, eps).hat;
  Expr y = hat * along_axis(widen(c.input(1)), x.rank(), axis) + along_axis(widen(c.input(2)), x.rank(), axis);
  c.set_result(round_to(y, c.result_shape().dtype()));
}

template <bool Centered>
void norm_backward_decompose(DecomposeContext& c, std::int64_t axis, double eps) {
  Graph& g = c.graph();
  Expr x = widen(c.input(0)), dy = widen(c.input(2));
  const Normalised n = normalise<Centered>(g, x, axis, eps);
  Expr d = dy * along_axis(widen(c.input(1)), x.rank(), axis);
  Expr inner = d - n.hat * g.mean(d * n.hat, {axis}, true);
  if (Centered) inner = inner - g.mean(d, {axis}, true);
  const DType t = c.result_shape().dtype();
  c.set_result(0, round_to(n.rstd * inner, t));
  c.set_result(1, round_to(sum_to_axis(dy * n.hat, axis), t));
  c.set_result(2, round_to(sum_to_axis(dy, axis), t));
}

template <class Op, class Backward, bool Centered>
struct NormRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<Op>();
    if (auto e = check_norm(c, op.axis, op.eps, 2)) return *e;
    return Shapes{c.input(0)};
  }
  static void decompose(DecomposeContext& c) { norm_decompose<Centered>(c, c.op<Op>().axis, c.op<Op>().eps); }
  static void vjp(VjpContext& c) {
    Backward op;
    op.axis = c.op<Op>().axis;
    op.eps = c.op<Op>().eps;
    Expr d = c.graph().add(op, {c.input(0), c.input(1), c.cotangent()});
    for (int i = 0; i < 3; ++i) c.accumulate(i, d.result(static_cast<std::uint32_t>(i)));
  }
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    Op op = c.op<Op>();
    const std::int64_t axis = op.axis;
    if (c.is_batched(0)) op.axis += 1;
    if (!c.is_batched(1) && !c.is_batched(2)) {
      c.set_result(g.add(op, {c.input(0), c.input(1), c.input(2)}));
      return;
    }
    // Each batch has its own gamma or beta: normalise once, then scale and shift by [B, 1.., N, 1..].
    Expr x = widen(c.input(0));
    auto own = [&](int i) {
      Expr v = widen(c.input(i));
      if (!c.is_batched(i)) return along_axis(v, c.rank(0), axis);
      Dims dims(static_cast<std::size_t>(c.rank(0) + 1), Dim(1));
      dims.front() = c.batch_size();
      dims[static_cast<std::size_t>(axis + 1)] = v.dim(1);
      return g.reshape(v, dims);
    };
    const Shape vector({x.dim(static_cast<int>(op.axis))}, x.dtype());
    Expr hat = g.add(op, {x, c.full(vector, 1), c.zeros(vector)});
    c.set_result(round_to(hat * own(1) + own(2), c.result_shape().dtype()));
  }
  static void reference(const RefArgs& a) { norm_reference<Centered>(a, a.op<Op>().axis, a.op<Op>().eps); }
  static void samples(SampleSet& s) {
    constexpr auto op = norm_op<Op>;
    s.add("last", {f32({2, 3, 4}), f32({4}), f32({4})}, op(2, 1e-5));
    s.add("middle", {f32({2, 3, 2}), f32({3}), f32({3})}, op(1, 1e-3));
    s.add("first", {f32({4, 2}), f32({4}), f32({4})}, op(0, 1e-5));
    s.add("vector", {f32({5}), f32({5}), f32({5})}, op(0, 0.1));
    s.add("one element", {f32({2, 1}), f32({1}), f32({1})}, op(1, 0.5));
    s.add("no rows", {f32({0, 3}), f32({3}), f32({3})}, op(1, 1e-5));
    s.add("empty rows", {f32({2, 0}), f32({0}), f32({0})}, op(1, 1e-5));
    s.add("f64", {Shape({2, 3}, DType::F64), Shape({3}, DType::F64), Shape({3}, DType::F64)}, op(1, 1e-12));
    s.add("bf16", {Shape({2, 4}, DType::BF16), Shape({4}, DType::BF16), Shape({4}, DType::BF16)}, op(1, 1e-5));
    s.add("f16", {Shape({2, 4}, DType::F16), Shape({4}, DType::F16), Shape({4}, DType::F16)}, op(1, 1e-5));
  }
  static constexpr AttrField attrs[] = {field<&Op::axis>("axis"), field<&Op::eps>("eps")};
};

template <class Op, bool Centered>
struct NormBackwardRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<Op>();
    if (auto e = check_norm(c, op.axis, op.eps, 1)) return *e;
    if (!(c.input(2) == c.input(0))) return c.error("dy ", c.input(2), " must have the shape of x ", c.input(0));
    return Shapes{c.input(0), c.input(1), c.input(1)};
  }
  static void decompose(DecomposeContext& c) { norm_backward_decompose<Centered>(c, c.op<Op>().axis, c.op<Op>().eps); }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static void reference(const RefArgs& a) { norm_backward_reference<Centered>(a, a.op<Op>().axis, a.op<Op>().eps); }
  static void samples(SampleSet& s) {
    constexpr auto op = norm_op<Op>;
    s.add("last", {f32({2, 3}), f32({3}), f32({2, 3})}, op(1, 1e-5));
    s.add("middle", {f32({2, 3, 2}), f32({3}), f32({2, 3, 2})}, op(1, 1e-3));
    s.add("vector", {f32({4}), f32({4}), f32({4})}, op(0, 0.1));
    s.add("one element", {f32({2, 1}), f32({1}), f32({2, 1})}, op(1, 0.5));
    s.add("no rows", {f32({0, 3}), f32({3}), f32({0, 3})}, op(1, 1e-5));
    s.add("f64", {Shape({2, 3}, DType::F64), Shape({3}, DType::F64), Shape({2, 3}, DType::F64)}, op(1, 1e-12));
    s.add("bf16", {Shape({2, 4}, DType::BF16), Shape({4}, DType::BF16), Shape({2, 4}, DType::BF16)}, op(1, 1e-5));
  }
  static constexpr AttrField attrs[] = {field<&Op::axis>("axis"), field<&Op::eps>("eps")};
};

// The record of a norm or of its cotangents: the third operand is beta or dy.
template <class Op, class Rules>
constexpr OpDef record(std::string_view name, std::string_view what, std::string_view third,
                       Cost (*cost)(const CostContext&)) {
  return {.kind = Op::kind,
          .name = name,
          .what = what,
          .inputs = inputs("x", "gamma", third),
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
          .cost = cost,
          .samples = Rules::samples};
}

}  // namespace

constinit const OpDef ops::LayerNorm::def =
    record<ops::LayerNorm, NormRules<ops::LayerNorm, ops::LayerNormBackward, true>>(
        "layer_norm", "(x - mean) / sqrt(var + eps) * gamma + beta along one axis.", "beta", flops_per_element<8>);
constinit const OpDef ops::RmsNorm::def = record<ops::RmsNorm, NormRules<ops::RmsNorm, ops::RmsNormBackward, false>>(
    "rms_norm", "x / sqrt(mean(x^2) + eps) * gamma + beta along one axis.", "beta", flops_per_element<5>);
constinit const OpDef ops::LayerNormBackward::def =
    record<ops::LayerNormBackward, NormBackwardRules<ops::LayerNormBackward, true>>(
        "layer_norm_backward", "The cotangents of layer_norm: dx, dgamma, dbeta.", "dy", flops_per_element<18>);
constinit const OpDef ops::RmsNormBackward::def =
    record<ops::RmsNormBackward, NormBackwardRules<ops::RmsNormBackward, false>>(
        "rms_norm_backward", "The cotangents of rms_norm: dx, dgamma, dbeta.", "dy", flops_per_element<14>);

}  // namespace rlx
