// Fourier transforms with NumPy's arguments, built from the op Fft and the ops that prepare its operands.
#include "rlx/functions/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "rlx/ir/build/building.h"

namespace rlx::fft {
namespace {

using namespace building;

Graph& transformed_graph(const Operand& x, const char* what) {
  if (x.is_scalar())
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text(what, ": x is a number, which has no axis"),
         "give an array with at least one axis");
  return x.expr().graph();
}

// x cast to the dtype in which it is transformed.
Expr transformed_dtype(const Expr& x, bool complex, SourceLoc loc) {
  const DType t = x.dtype();
  if (is_storage_only(t))
    fail(loc, ErrorCode::DTypeMismatch,
         concat_text("fft: x ", x.shape(), " has a storage dtype, which cannot be computed with"), "cast it first");
  const bool wide = t == DType::F64 || t == DType::C128;
  const DType to = complex ? (wide ? DType::C128 : DType::C64) : (wide ? DType::F64 : DType::F32);
  return cast_at(x.graph(), x, to, loc);
}

Expr resized(const Expr& x, std::int64_t axis, const Dim& n, SourceLoc loc, const char* what) {
  const Dim& extent = x.dim(static_cast<int>(axis));
  if (n == extent) return x;
  if (n.is_static() && n.value() < 1)
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": the length must be at least 1, got ", n.text()));
  if (!n.is_static() || !extent.is_static())
    fail(loc, ErrorCode::Unsupported,
         concat_text(what, ": length ", n.text(), " of an axis of ", extent.text(),
                     " elements: one of them is symbolic"),
         "slice or pad the axis, or bind the symbol");
  Graph& g = x.graph();
  const At at{loc};
  if (n.value() < extent.value()) return g.narrow(at(x), axis, 0, n);
  std::vector<std::int64_t> low(static_cast<std::size_t>(x.rank()), 0), high = low;
  high[static_cast<std::size_t>(axis)] = n.value() - extent.value();
  return g.pad(at(x), low, high, at(g.constant(Tensor::zeros(Shape({}, x.dtype())), loc)));
}

// Normalised axes of x, each with the length to pad or crop it to (none: unchanged).
struct Places {
  std::vector<std::int64_t> axes;
  std::vector<Length> lengths;
};
Places places_of(const Expr& x, const Axes& given, SourceLoc loc, const char* what) {
  Places out;
  const std::size_t lengths = given.lengths.size();
  if (lengths > 0 && !given.axes.empty() && lengths != given.axes.size())
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": ", lengths, " lengths for ", given.axes.size(), " axes"),
         "give one length for each axis");
  if (lengths > static_cast<std::size_t>(x.rank()))
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": ", lengths, " lengths for x ", x.shape()));
  out.axes = given.axes;
  if (out.axes.empty()) {
    out.axes.resize(lengths > 0 ? lengths : static_cast<std::size_t>(x.rank()));
    std::iota(out.axes.begin(), out.axes.end(), x.rank() - static_cast<std::int64_t>(out.axes.size()));
  }
  for (std::int64_t& a : out.axes) a = normalize_axis_at(loc, a, x.rank(), what);
  for (const Dim& n : given.lengths) out.lengths.emplace_back(n);
  out.lengths.resize(out.axes.size());
  std::vector<std::int64_t> sorted = out.axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": an axis is named twice"));
  return out;
}

Expr transformed(const Operand& operand, FftKind kind, bool inverse, const Axes& given, FftNorm norm,
                 const char* what) {
  Graph& g = transformed_graph(operand, what);
  const SourceLoc loc = operand.loc();
  Expr x = transformed_dtype(own_at(g, operand, loc), kind != FftKind::Real, loc);
  const Places p = places_of(x, given, loc, what);
  ops::Fft op{kind, p.axes, inverse, norm, {}};
  if (kind != FftKind::Complex && p.axes.empty())
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": x ", x.shape(), " has no axis to transform"));
  for (std::size_t i = 0; i < p.axes.size(); ++i) {
    const Dim extent = x.dim(static_cast<int>(p.axes[i]));
    if (kind == FftKind::RealInverse && i + 1 == p.axes.size()) {
      const Dim n = p.lengths[i].value_or((extent - 1) * 2);
      if (n.is_static() && n.value() < 1)
        fail(loc, ErrorCode::InvalidArgument,
             concat_text(what, ": the result of an axis of ", extent.text(), " elements would have ", n.text(),
                         " points"),
             "give the length n");
      op.length = {n};
      x = resized(x, p.axes[i], floordiv(n, 2) + 1, loc, what);
    } else if (p.lengths[i]) {
      x = resized(x, p.axes[i], *p.lengths[i], loc, what);
    }
  }
  return g.fft(At{loc}(x), op);
}

Axes one_axis(const Length& n, std::int64_t axis) {
  Axes out{{axis}, {}};
  if (n) out.lengths.push_back(*n);
  return out;
}
FftNorm swapped(FftNorm norm) {
  return norm == FftNorm::Backward ? FftNorm::Forward : norm == FftNorm::Forward ? FftNorm::Backward : norm;
}
const Axes& last_two() {
  static const Axes axes{{-2, -1}, {}};
  return axes;
}

Expr shifted_by(const Operand& operand, std::vector<std::int64_t> axes, bool back, const char* what) {
  Graph& g = transformed_graph(operand, what);
  const At at{operand.loc()};
  Expr x = own_at(g, operand, operand.loc());
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
  }
  for (std::int64_t a : axes) {
    a = normalize_axis_at(operand.loc(), a, x.rank(), what);
    const Dim n = x.dim(static_cast<int>(a)), half = floordiv(n, 2), first = back ? half : n - half;
    x = g.concat({g.narrow(at(x), a, first, n - first), g.narrow(at(x), a, 0, first)}, a, {}, operand.loc());
  }
  return x;
}

}  // namespace

Expr fft(Operand x, Length n, std::int64_t axis, FftNorm norm) {
  return transformed(x, FftKind::Complex, false, one_axis(n, axis), norm, "fft");
}
Expr ifft(Operand x, Length n, std::int64_t axis, FftNorm norm) {
  return transformed(x, FftKind::Complex, true, one_axis(n, axis), norm, "ifft");
}
Expr rfft(Operand x, Length n, std::int64_t axis, FftNorm norm) {
  if (!x.is_scalar() && is_complex(x.expr().dtype()))
    fail(x.loc(), ErrorCode::DTypeMismatch, concat_text("rfft: x ", x.expr().shape(), " is complex"), "use fft");
  return transformed(x, FftKind::Real, false, one_axis(n, axis), norm, "rfft");
}
Expr irfft(Operand x, Length n, std::int64_t axis, FftNorm norm) {
  return transformed(x, FftKind::RealInverse, true, one_axis(n, axis), norm, "irfft");
}
Expr hfft(Operand x, Length n, std::int64_t axis, FftNorm norm) {
  Graph& g = transformed_graph(x, "hfft");
  const At at{x.loc()};
  return irfft(at(g.conj(at(transformed_dtype(own_at(g, x, x.loc()), true, x.loc())))), std::move(n), axis,
               swapped(norm));
}
Expr ihfft(Operand x, Length n, std::int64_t axis, FftNorm norm) {
  const At at{x.loc()};
  const Expr y = rfft(x, std::move(n), axis, swapped(norm));
  return y.graph().conj(at(y));
}
Expr fftn(Operand x, const Axes& axes, FftNorm norm) {
  return transformed(x, FftKind::Complex, false, axes, norm, "fftn");
}
Expr ifftn(Operand x, const Axes& axes, FftNorm norm) {
  return transformed(x, FftKind::Complex, true, axes, norm, "ifftn");
}
Expr rfftn(Operand x, const Axes& axes, FftNorm norm) {
  if (!x.is_scalar() && is_complex(x.expr().dtype()))
    fail(x.loc(), ErrorCode::DTypeMismatch, concat_text("rfftn: x ", x.expr().shape(), " is complex"), "use fftn");
  return transformed(x, FftKind::Real, false, axes, norm, "rfftn");
}
Expr irfftn(Operand x, const Axes& axes, FftNorm norm) {
  return transformed(x, FftKind::RealInverse, true, axes, norm, "irfftn");
}
Expr fft2(Operand x, FftNorm norm) { return fftn(x, last_two(), norm); }
Expr ifft2(Operand x, FftNorm norm) { return ifftn(x, last_two(), norm); }
Expr rfft2(Operand x, FftNorm norm) { return rfftn(x, last_two(), norm); }
Expr irfft2(Operand x, FftNorm norm) { return irfftn(x, last_two(), norm); }

namespace {

Tensor frequencies(std::int64_t n, bool half, double spacing, DType dtype, const char* what) {
  if (n < 1) throw Error(ErrorCode::InvalidArgument, concat_text(what, ": n must be at least 1, got ", n));
  if (spacing == 0 || !std::isfinite(spacing))
    throw Error(ErrorCode::InvalidArgument,
                concat_text(what, ": the spacing of samples must be finite and not 0, got ", spacing));
  if (!is_float(dtype))
    throw Error(ErrorCode::DTypeMismatch, concat_text(what, ": frequencies must be floats, got ", dtype_name(dtype)));
  const std::int64_t count = half ? n / 2 + 1 : n;
  Tensor out = Tensor::zeros(Shape({count}, dtype));
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t f = !half && 2 * k >= n + n % 2 ? k - n : k;
    store_element(out.mutable_data(), dtype, k, static_cast<double>(f) / (static_cast<double>(n) * spacing));
  }
  return out;
}

}  // namespace

Tensor fftfreq(std::int64_t n, double spacing, DType dtype) { return frequencies(n, false, spacing, dtype, "fftfreq"); }
Tensor rfftfreq(std::int64_t n, double spacing, DType dtype) {
  return frequencies(n, true, spacing, dtype, "rfftfreq");
}
Expr fftshift(Operand x, std::vector<std::int64_t> axes) { return shifted_by(x, std::move(axes), false, "fftshift"); }
Expr ifftshift(Operand x, std::vector<std::int64_t> axes) { return shifted_by(x, std::move(axes), true, "ifftshift"); }

}  // namespace rlx::fft
