// Numeric conversion by the rules of Tensor::cast. Floats to integers saturate and NaN becomes 0, as in XLA. Narrow
// integers wrap; F8 and F4 saturate; every conversion rounds once.
#include <cmath>

#include "rlx/backends/tpu/entries.h"
#include "rlx/backends/tpu/expression.h"

namespace rlx::tpu {
namespace {

// Decodes E2M1 from its bits: sign, two exponent bits, one significand bit. The values are halves of integers.
Hlo decode_f4(Writer& w, const Hlo& code) {
  const Term c = Term(w, code).to(DType::I32), m = c & c.like(1),
             e = (c & c.like(6)).apply("shift_right_logical", c.like(1));
  const Term halves = select(e == 0.0, m, (m + 2.0).apply("shift_left", e - 1.0));
  const Term size = halves.to(DType::F32) * 0.5;
  return select((c & c.like(8)) == 0.0, size, -size).value();
}

// Encodes as the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, with ties to even bit patterns. NaN becomes 0.
Hlo encode_f4(Writer& w, const Hlo& x) {
  const Term v(w, x), size = abs(v);
  // The bit pattern is the number of borders below x. A border counts on equality unless it is below an odd bit
  // pattern.
  static constexpr double kBorders[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  Term code = Term(w, w.full(DType::U8, 0, x.dims));
  for (int k = 0; k < 7; ++k) {
    const Term passed = k % 2 == 0 ? size > kBorders[k] : size >= kBorders[k];
    code = code + passed.to(DType::U8);
  }
  const Term negative = Term(w, w.bitcast(x, DType::I32)) < 0.0;
  return select(v != v, 0.0, select(negative, code + 8.0, code)).value();
}

// F64 to BF16 or F16 through F32, which XLA would round twice. Here an inexact F32 is rounded to odd first.
Hlo narrow_f64(Writer& w, const Hlo& x, DType to) {
  const Term d(w, x), f = d.to(DType::F32), back = f.to(DType::F64);
  const Term bits(w, w.bitcast(f.value(), DType::I32));
  const Term even = (bits & bits.like(1)) == 0.0;
  const Term inexact = (back != d) & (abs(back) < HUGE_VAL);  // NaN and overflowed values stay
  const Term away = abs(back) > abs(d);
  const Term odd = select(away, bits - 1.0, bits + 1.0);
  const Term fixed = select(inexact & even, odd, bits);
  return w.convert(w.bitcast(fixed.value(), DType::F32), to);
}

Hlo to_float(Writer& w, const Hlo& x, DType from, DType to) {
  if (to != DType::BF16 && to != DType::F16) return w.convert(x, to);
  if (from == DType::F64) return narrow_f64(w, x, to);
  if (is_int(from) && dtype_bits(from) > 16) return narrow_f64(w, w.convert(x, DType::F64), to);
  if (is_int(from) || is_float(from)) return w.convert(w.convert(x, DType::F32), to);
  return w.convert(x, to);
}

Hlo to_f8(Writer& w, const Hlo& x, DType to) {
  const double largest = to == DType::F8E4M3 ? 448 : 57344;
  return w.convert(w.min(w.max(x, -largest), largest), to);  // NaN is kept
}

Hlo to_four_bits(Writer& w, const Hlo& x, DType from, DType to) {
  const bool is_signed = to == DType::I4;
  const DType kept = kept_as(to);
  if (is_float(from)) return w.convert(w.min(w.max(x, is_signed ? -8 : 0), is_signed ? 7 : 15), kept);
  const Hlo low = w.convert(x, kept);
  if (!is_signed) return w.both(low, w.full_like(low, 15));
  const Hlo four = w.full_like(low, 4);
  return w.op("shift_right_arithmetic", w.op("shift_left", low, four), four);
}

}  // namespace

Hlo cast(Writer& w, const Hlo& x, DType from, DType to) {
  if (from == to) return x;
  switch (from) {
    case DType::I4: return to == DType::I8 ? x : cast(w, x, DType::I8, to);
    case DType::U4: return to == DType::U8 ? x : cast(w, x, DType::U8, to);
    case DType::F4E2M1: return cast(w, decode_f4(w, x), DType::F32, to);
    case DType::F8E4M3:
    case DType::F8E5M2: return cast(w, w.convert(x, DType::F32), DType::F32, to);
    default: break;
  }
  if (is_complex(from)) {
    const DType part = real_dtype(from);
    if (to == DType::Bool) return w.either(w.compare("NE", w.real(x), 0), w.compare("NE", w.imag(x), 0));
    if (!is_complex(to)) return cast(w, w.real(x), part, to);
    return w.complex(w.convert(w.real(x), real_dtype(to)), w.convert(w.imag(x), real_dtype(to)));
  }
  if (is_complex(to)) {
    const Hlo re = cast(w, x, from, real_dtype(to));
    return w.complex(re, w.full_like(re, 0));
  }
  switch (to) {
    case DType::Bool: return w.compare("NE", x, 0);
    case DType::F4E2M1: return encode_f4(w, cast(w, x, from, DType::F32));
    case DType::F8E4M3:
    case DType::F8E5M2: return to_f8(w, cast(w, x, from, DType::F32), to);
    case DType::I4:
    case DType::U4: return to_four_bits(w, x, from, to);
    default: return is_float(to) ? to_float(w, x, from, to) : w.convert(x, to);
  }
}

}  // namespace rlx::tpu
