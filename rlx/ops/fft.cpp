// Fft: discrete Fourier transforms of complex and real values along one or more axes.
#include "rlx/ir/ops/fft.h"

#include "rlx/ir/math/roots_of_unity.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

using Wide = LongDoubleComplex;

// -- reference rule: recursion on the smallest factor of n, in long double --

// The transform of the n values x[0], x[step], ... `roots` are the roots of unity of a multiple of n.
std::vector<Wide> transform_line(const Wide* x, std::int64_t n, std::int64_t step, const std::vector<Wide>& roots) {
  std::int64_t p = 2;
  while (p * p <= n && n % p != 0) ++p;
  if (p * p > n) p = n;
  const auto size = static_cast<std::int64_t>(roots.size());
  std::vector<Wide> y(static_cast<std::size_t>(n));
  if (n == 1) {
    y[0] = x[0];
    return y;
  }
  const std::int64_t rest = n / p;
  std::vector<std::vector<Wide>> parts;
  for (std::int64_t r = 0; r < p; ++r) parts.push_back(transform_line(x + r * step, rest, step * p, roots));
  for (std::int64_t k = 0; k < n; ++k) {
    Wide sum = 0;
    for (std::int64_t r = 0; r < p; ++r)
      sum += long_double_product(parts[static_cast<std::size_t>(r)][static_cast<std::size_t>(k % rest)],
                                 roots[static_cast<std::size_t>(size / n * (r * k % n))]);
    y[static_cast<std::size_t>(k)] = sum;
  }
  return y;
}

long double fft_scale(FftNorm norm, bool inverse, long double n) {
  if (norm == FftNorm::Ortho) return 1 / std::sqrt(n);
  return norm == (inverse ? FftNorm::Backward : FftNorm::Forward) ? 1 / n : 1;
}

// Transforms every line along `axis` of values with extents `dims`.
void transform_axis(std::vector<Wide>& values, std::span<const std::int64_t> dims, std::int64_t axis, bool inverse) {
  const AxisSplit s = split_at(dims, axis);
  std::vector<Wide> roots(static_cast<std::size_t>(s.extent)), line(roots.size());
  for (std::int64_t k = 0; k < s.extent; ++k) {
    const Wide root = root_of_unity(k, s.extent);
    roots[static_cast<std::size_t>(k)] = inverse ? std::conj(root) : root;
  }
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t i = 0; i < s.inner; ++i) {
      const auto at = [&](std::int64_t k) { return static_cast<std::size_t>((o * s.extent + k) * s.inner + i); };
      for (std::int64_t k = 0; k < s.extent; ++k) line[static_cast<std::size_t>(k)] = values[at(k)];
      const std::vector<Wide> y = transform_line(line.data(), s.extent, 1, roots);
      for (std::int64_t k = 0; k < s.extent; ++k) values[at(k)] = y[static_cast<std::size_t>(k)];
    }
}

// Lines of `to` elements along `axis`: the first elements are those of x, and the rest is their conjugate mirror image.
std::vector<Wide> resized(const std::vector<Wide>& x, std::vector<std::int64_t>& dims, std::int64_t axis,
                          std::int64_t to) {
  const AxisSplit s = split_at(dims, axis);
  std::vector<Wide> y(static_cast<std::size_t>(s.outer * to * s.inner));
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t k = 0; k < to; ++k)
      for (std::int64_t i = 0; i < s.inner; ++i) {
        const bool mirrored = k >= s.extent;
        const Wide v = x[static_cast<std::size_t>((o * s.extent + (mirrored ? to - k : k)) * s.inner + i)];
        y[static_cast<std::size_t>((o * to + k) * s.inner + i)] = mirrored ? std::conj(v) : v;
      }
  dims[static_cast<std::size_t>(axis)] = to;
  return y;
}

struct FftRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Fft>();
    const Shape& x = c.input(0);
    if (auto error = check_axes(c, op.axes, x)) return *error;
    const bool real = op.fn == FftKind::Real, to_real = op.fn == FftKind::RealInverse;
    if (real && x.dtype() != DType::F32 && x.dtype() != DType::F64)
      return c.dtype_error("r2c needs f32 or f64 values, got ", x, "; cast them first");
    if (!real && !is_complex(x.dtype()))
      return c.dtype_error(to_real ? "c2r" : "c2c", " needs complex values, got ", x, "; cast them, or use r2c");
    if (op.fn != FftKind::Complex && op.axes.empty()) return c.attr_error("a real transform needs at least one axis");
    if (real && op.inverse)
      return c.attr_error(
          "r2c has no inverse: the inverse transform of a real signal is the scaled conjugate of the forward "
          "transform");
    if (to_real && !op.inverse) return c.attr_error("c2r is an inverse transform: set inverse");
    if (op.length.size() != (to_real ? 1U : 0U))
      return c.attr_error(to_real ? "c2r needs one entry of length, the extent of its last axis"
                                  : "length is only for c2r");
    for (std::int64_t a : op.axes) {
      const bool shorter = to_real && a == op.axes.back();
      if (!shorter && x.dim(static_cast<int>(a)).is_static(0))
        return c.error("has no points along axis ", a, " of x ", x, "; a transform needs at least one point");
    }
    if (op.fn == FftKind::Complex) return make_shapes(x);
    Dims dims = x.dims();
    const auto last = static_cast<std::size_t>(op.axes.back());
    if (real) {
      dims[last] = floordiv(dims[last], 2) + 1;
      return make_shapes(Shape(std::move(dims), x.dtype() == DType::F32 ? DType::C64 : DType::C128));
    }
    const Dim& n = op.length[0];
    if (c.negative(n) || n.is_static(0)) return c.attr_error("length ", n.text(), " must be at least 1");
    if (n.is_static() && n.value() > (std::int64_t{1} << 62)) return c.attr_error("length ", n.text(), " is too large");
    const Dim half = floordiv(n, 2) + 1;
    if (half.is_static() && dims[last].is_static() && !(half == dims[last]))
      return c.error("of length ", n.text(), " needs ", half.text(), " elements along axis ", last, " of x ", x);
    if (!(half == dims[last]) && !(half.is_static() && dims[last].is_static()) && !half.is_static() &&
        !dims[last].is_static())
      return c.error("of length ", n.text(), " needs ", half.text(), " elements along axis ", last, " of x ", x);
    dims[last] = n;
    return make_shapes(Shape(std::move(dims), real_dtype(x.dtype())));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Fft>();
    std::vector<std::int64_t> dims = a.in(0).dims();
    std::vector<Wide> values;
    for (const auto& v : load_all<std::complex<double>>(a.in(0))) values.emplace_back(v);
    if (values.empty()) return;
    long double n = 1;
    for (std::int64_t axis : op.axes) {
      const auto i = static_cast<std::size_t>(axis);
      n *= static_cast<long double>(op.fn == FftKind::RealInverse ? a.out().dims()[i] : dims[i]);
    }
    const bool half = op.fn != FftKind::Complex;
    for (std::size_t i = 0; i + (half ? 1 : 0) < op.axes.size(); ++i)
      if (op.fn == FftKind::RealInverse) transform_axis(values, dims, op.axes[i], true);
    if (op.fn == FftKind::RealInverse) {
      const std::int64_t last = op.axes.back(), to = a.out().dims()[static_cast<std::size_t>(last)];
      const AxisSplit s = split_at(dims, last);
      for (std::int64_t o = 0; o < s.outer; ++o)
        for (std::int64_t k = 0; k < s.extent; ++k)
          for (std::int64_t i = 0; i < s.inner; ++i)
            if (k == 0 || 2 * k == to) {
              Wide& v = values[static_cast<std::size_t>((o * s.extent + k) * s.inner + i)];
              v = v.real();
            }
      values = resized(values, dims, last, to);
      transform_axis(values, dims, last, true);
    } else {
      for (std::size_t i = op.axes.size(); i-- > 0;) {
        transform_axis(values, dims, op.axes[i], op.inverse);
        if (half && i + 1 == op.axes.size())
          values = resized(values, dims, op.axes[i], a.out().dims()[static_cast<std::size_t>(op.axes[i])]);
      }
    }
    const long double scale = fft_scale(op.norm, op.inverse, n);
    std::vector<std::complex<double>> y;
    y.reserve(values.size());
    for (const Wide& v : values) y.emplace_back(v * scale);
    if (op.fn != FftKind::RealInverse) return store_all(a.out(), y);
    std::vector<double> re;
    for (const auto& v : y) re.push_back(v.real());
    store_all(a.out(), re);
  }
  // `inside` where the half spectrum holds an element with a mirror image, else `ends`. Broadcasts along `axis`.
  static Expr by_mirror(Graph& g, const Dim& n, const Dim& half, std::int64_t axis, int rank, double inside,
                        double ends, DType dtype) {
    const DType t = count_dtype(g, {{n}, {half * 2}});
    const Expr k = positions(g, half, axis, rank, t);
    const Expr end = g.bit_or(g.eq(k, 0), g.eq(k * 2, dim_value(g, n, t)));
    return g.where(end, g.scalar(ends, dtype), g.scalar(inside, dtype));
  }
  // The matrix of a transform is its own transpose, so c2c is its own derivative. The half spectrum of r2c represents a
  // whole one. Its transpose is a c2r of the conjugate, where elements with a mirror image count half; c2r is the
  // reverse. A cotangent c means Re(c dy), as in JAX.
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::Fft>();
    Graph& g = c.graph();
    const Expr ct = c.cotangent(), x = c.input(0);
    if (op.fn == FftKind::Complex) return c.accumulate(0, g.add(c.box(), {ct}));
    const auto last = static_cast<int>(op.axes.back());
    ops::Fft back = op;
    back.inverse = !op.inverse;
    back.norm = op.norm == FftNorm::Backward  ? FftNorm::Forward
                : op.norm == FftNorm::Forward ? FftNorm::Backward
                                              : op.norm;
    if (op.fn == FftKind::Real) {
      back.fn = FftKind::RealInverse;
      back.length = {x.dim(last)};
      const Expr weight = by_mirror(g, x.dim(last), ct.dim(last), last, ct.rank(), 0.5, 1, ct.dtype());
      return c.accumulate(0, g.add(back, {g.conj(ct) * weight}));
    }
    back.fn = FftKind::Real;
    back.length = {};
    const Expr spectrum = g.conj(g.add(back, {ct}));
    c.accumulate(0, spectrum * by_mirror(g, op.length[0], x.dim(last), last, ct.rank(), 2, 1, spectrum.dtype()));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) {
    ops::Fft op = c.op<ops::Fft>();
    op.axes = shifted(op.axes);
    c.emit_lifted(op);
  }
  // 5 n log2 n for complex lines, half of that for real ones.
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::Fft>();
    const Shape& whole = op.fn == FftKind::RealInverse ? c.outputs[0] : c.inputs[0];
    double steps = 0;
    for (std::int64_t a : op.axes)
      steps += std::log2(std::max(1.0, static_cast<double>(whole.dim(static_cast<int>(a)).value())));
    return c.with_flops((op.fn == FftKind::Complex ? 5.0 : 2.5) * steps * static_cast<double>(whole.num_elements()));
  }
  static constexpr AttrField attrs[] = {field<&ops::Fft::fn>("kind"), field<&ops::Fft::axes>("axes"),
                                        field<&ops::Fft::inverse>("inverse"), field<&ops::Fft::norm>("norm"),
                                        field<&ops::Fft::length>("length")};
};

}  // namespace

constinit const OpDef ops::Fft::def{
    .kind = kind,
    .name = "fft",
    .what = "The discrete Fourier transform along some axes, of complex or real values.",
    .inputs = inputs("x"),
    .attrs = FftRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = FftRules::infer,
    .decompose = none("a primitive"),
    .vjp = FftRules::vjp,
    .jvp = FftRules::jvp,
    .batch = FftRules::batch,
    .reference = FftRules::reference,
    .cost = FftRules::cost};

}  // namespace rlx
