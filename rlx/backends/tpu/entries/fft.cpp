// Kernel entries of complex values and Fourier transforms.
#include "rlx/ir/ops/fft.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx::tpu {
namespace {

void emit_complex(EmitContext& c) { c.set(c.w.complex(c.spread(0), c.spread(1))); }
void emit_complex_part(EmitContext& c) { c.set(c.op<ops::ComplexPart>().imag ? c.w.imag(c.in(0)) : c.w.real(c.in(0))); }

// One op along the last axes of x, with `lengths` points each. Forward is unscaled; inverse is scaled by 1 / their
// product.
Hlo transform(Writer& w, const Hlo& x, std::string_view type, const Extents& lengths, HloType result) {
  std::string attributes = "fft_length = ";
  attributes += i64_array(lengths);
  attributes += ", fft_type = #stablehlo<fft_type ";
  attributes += type;
  attributes += ">";
  return w.op("fft", {&x}, std::move(result), attributes);
}

// Transforms one axis, which is moved to the end for it; `n` points give `out` elements.
Hlo transform_axis(Writer& w, const Hlo& x, std::int64_t axis, std::string_view type, std::int64_t n, std::int64_t out,
                   DType dtype) {
  std::vector<std::int64_t> perm(x.dims.size());
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  std::swap(perm[static_cast<std::size_t>(axis)], perm.back());
  const bool moved = static_cast<std::size_t>(axis) + 1 != perm.size();
  const Hlo last = moved ? w.transpose(x, perm) : x;
  Extents dims = last.dims;
  dims.back() = out;
  const Hlo y = transform(w, last, type, {n}, {dtype, dims});
  return moved ? w.transpose(y, perm) : y;
}

void emit_fft(EmitContext& c) {
  Writer& w = c.w;
  const auto& op = c.op<ops::Fft>();
  const Extents dims = c.dims(), x_dims = c.in(0).dims;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return c.set(w.full(c.dtype(), 0, dims));
  const bool real = op.fn == FftKind::Real, to_real = op.fn == FftKind::RealInverse;
  // The full extents; a half spectrum is shorter.
  const Extents& whole = real ? x_dims : dims;
  double n = 1;
  for (std::int64_t a : op.axes) n *= static_cast<double>(whole[static_cast<std::size_t>(a)]);
  const std::size_t rank = dims.size(), count = op.axes.size();
  bool trailing = count >= 1 && count <= 3;
  for (std::size_t i = 0; i < count && trailing; ++i)
    trailing = op.axes[i] == static_cast<std::int64_t>(rank - count + i);
  const std::string_view kind = op.inverse ? "IFFT" : "FFT";
  Hlo y = c.in(0);
  if (trailing) {
    const Extents lengths(whole.end() - static_cast<std::ptrdiff_t>(count), whole.end());
    y = transform(w, y, real ? "RFFT" : to_real ? "IRFFT" : kind, lengths, {c.dtype(), dims});
  } else {
    std::vector<std::int64_t> order = op.axes;
    if (real) std::reverse(order.begin(), order.end());  // the halved axis first
    for (std::size_t i = 0; i < count; ++i) {
      const auto a = static_cast<std::size_t>(order[i]);
      const bool halved = (real && i == 0) || (to_real && i + 1 == count);
      const DType t = halved || !to_real ? c.dtype() : y.dtype;
      y = transform_axis(w, y, order[i], halved ? (real ? "RFFT" : "IRFFT") : kind, whole[a],
                         halved ? dims[a] : y.dims[a], t);
    }
  }
  const double made = op.inverse ? 1 / n : 1;
  double wanted = 1;
  if (op.norm == FftNorm::Ortho) wanted = 1 / std::sqrt(n);
  if (op.norm == (op.inverse ? FftNorm::Backward : FftNorm::Forward)) wanted = 1 / n;
  if (wanted == made) return c.set(y);
  const double by = op.inverse && wanted == 1 ? n : wanted / made;
  if (to_real) return c.set(w.mul(y, by));
  const DType part = real_dtype(c.dtype());
  const Hlo re = w.real(y), im = w.imag(y), factor = w.full(part, by, dims);
  c.set(w.complex(w.mul(re, factor), w.mul(im, factor)));
}

}  // namespace

std::span<const KernelEntry> fft_entries() {
  static constexpr KernelEntry kRows[] = {{OpKind::Complex, never_refuses, emit_complex},
                                          {OpKind::ComplexPart, never_refuses, emit_complex_part},
                                          {OpKind::Fft, never_refuses, emit_fft}};
  return kRows;
}

}  // namespace rlx::tpu
