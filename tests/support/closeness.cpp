// Distances of values in units in the last place.
#include "tests/support/closeness.h"

#include <algorithm>
#include <complex>
#include <cstdio>

#include "rlx/tensor/visit.h"

namespace rlx::test {
namespace {

std::string number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}

}  // namespace

FloatFormat float_format(DType t) {
  switch (real_dtype(t)) {
    case DType::F64: return {53, -1022, 1023, std::numeric_limits<double>::max(), true};
    case DType::F32: return {24, -126, 127, static_cast<double>(std::numeric_limits<float>::max()), true};
    case DType::BF16: return {8, -126, 127, 0x1.fep127, true};
    case DType::F16: return {11, -14, 15, 65504, true};
    case DType::F8E4M3: return {4, -6, 8, 448, false};
    case DType::F8E5M2: return {3, -14, 15, 57344, false};
    case DType::F4E2M1: return {2, 0, 2, 6, false};
    default: throw Error(ErrorCode::InvalidArgument, concat_text(dtype_name(t), " is no float type"));
  }
}

double last_place(DType t, double x) {
  const FloatFormat f = float_format(t);
  if (std::isnan(x)) return x;
  int exponent = f.min_exponent;
  if (x != 0 && std::isfinite(x)) exponent = std::max(exponent, std::ilogb(x));
  if (std::isinf(x)) exponent = f.max_exponent;
  return std::ldexp(1.0, std::min(exponent, f.max_exponent) - f.precision + 1);
}

double ulps(DType t, double got, double want) {
  const FloatFormat f = float_format(t);
  if (!f.infinities) {
    if (t == DType::F4E2M1 && std::isnan(want)) want = 0;  // F4E2M1 has no NaN either
    want = std::isnan(want) ? want : std::clamp(want, -f.largest, f.largest);
  }
  if (std::isinf(got) && std::isfinite(want)) {
    if (std::signbit(got) != std::signbit(want)) return kApart;
    const double unit = last_place(t, f.largest), half_above = f.largest / 2 + unit / 2;  // halves do not overflow
    return std::max(0.0, half_above - std::fabs(want) / 2) / unit * 2;
  }
  return difference(got, want) / (std::isnan(want) ? 1 : last_place(t, want));
}

Tensor widened(const Tensor& t) {
  return is_complex(t.dtype()) ? t.cast(DType::C128) : is_float(t.dtype()) ? t.cast(DType::F64) : t;
}

Gap ulp_gap(const Tensor& got, const Tensor& want) {
  const DType t = got.dtype();
  const bool comparable =
      got.dims() == want.dims() && (t == want.dtype() || (is_complex(t) && want.dtype() == DType::C128) ||
                                    (want.dtype() == DType::F64 && !is_complex(t) && t != DType::I4 && t != DType::U4 &&
                                     (is_float(t) || is_storage_only(t))));
  if (!comparable) return {kApart, -1, concat_text("shape is ", got.shape().text(), ", wanted ", want.shape().text())};
  const bool whole = is_int(t) || t == DType::Bool || t == DType::I4 || t == DType::U4;
  Gap gap;
  for (std::int64_t i = 0; i < got.num_elements(); ++i) {
    double size = 0;
    if (whole) {
      const auto a = load_element<std::int64_t>(got.data(), t, i), b = load_element<std::int64_t>(want.data(), t, i);
      size = a == b ? 0 : std::max(1.0, difference(static_cast<double>(a), static_cast<double>(b)));
    } else if (is_complex(t)) {
      using C = std::complex<double>;
      const C a = load_element<C>(got.data(), t, i), b = load_element<C>(want.data(), want.dtype(), i);
      const double larger = std::max(std::fabs(b.real()), std::fabs(b.imag()));
      const double unit = std::isfinite(larger) ? last_place(t, larger) : 1;
      Worst both;
      both.add(a.real(), b.real(), unit);
      both.add(a.imag(), b.imag(), unit);
      size = both.value();
    } else {
      size = ulps(t, load_element<double>(got.data(), t, i), load_element<double>(want.data(), want.dtype(), i));
    }
    if (size <= gap.size) continue;
    gap = {size, i, {}};
  }
  if (gap.index >= 0) {
    const auto value = [&](const Tensor& x) {
      if (!is_complex(x.dtype())) return number(load_element<double>(x.data(), x.dtype(), gap.index));
      const auto c = load_element<std::complex<double>>(x.data(), x.dtype(), gap.index);
      return "(" + number(c.real()) + ", " + number(c.imag()) + ")";
    };
    gap.text = concat_text("element ", gap.index, " is ", value(got), ", wanted ", value(want), ": ", gap.size,
                           " units of the last place of ", dtype_name(t));
  }
  return gap;
}

}  // namespace rlx::test
