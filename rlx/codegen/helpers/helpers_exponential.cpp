// WGSL functions: exponentials, logarithms and functions made of them, to within 4 units in the last place without
// fused multiply-add. The polynomials are rlx's own fits: least maximal relative error on the interval, coefficients
// rounded one after the other (weighted least squares with Lawson's iteration).
#include "rlx/codegen/helpers/helper_table.h"

namespace rlx::codegen {
namespace {

constexpr Helper kExponentialHelpers[] = {
    // e^r - 1 for |r| <= ln(2) / 2.
    {"expm1_core", "", R"(fn expm1_core(r: f32) -> f32 {
  let p = ((((1.38734723e-3 * r + 8.36762972e-3) * r + 4.16674241e-2) * r + 0.16666536) * r + 0.49999997) * r;
  return p * r + r;
}
)"},
    // e^(h + l) 2^k, with l much smaller than h. n ln 2 is subtracted from h exactly, as 355/512 has few bits.
    {"exp_sum", "expm1_core scale2", R"(fn exp_sum(h: f32, l: f32, k: i32) -> f32 {
  let x = clamp(h, -200.0, 200.0);
  let n = round(x * 1.44269504);
  let r = (x - n * 0.693359375) + (l + n * 2.12194440e-4);
  return scale2(1.0 + expm1_core(r), clamp(i32(n) + k, -250, 250));
}
)"},
    {"exp_f32", "exp_sum is_nan", R"(fn exp_f32(x: f32) -> f32 { return select(exp_sum(x, 0.0, 0), x, is_nan(x)); }
)"},
    {"exp2_f32", "expm1_core scale2 is_nan", R"(fn exp2_f32(x: f32) -> f32 {
  let z = clamp(x, -200.0, 200.0);
  let n = round(z);
  return select(scale2(1.0 + expm1_core((z - n) * 0.69314718), i32(n)), x, is_nan(x));
}
)"},
    {"expm1_f32", "expm1_core pow2 is_zero_or_nan", R"(fn expm1_f32(x: f32) -> f32 {
  let z = clamp(x, -30.0, 89.0);
  let n = round(z * 1.44269504);
  let q = expm1_core((z - n * 0.693359375) + n * 2.12194440e-4);
  let s = pow2(i32(n) - 1);
  let y = select(2.0 * (s * q + (s - 0.5)), q, n == 0.0);
  return select(y, x, is_zero_or_nan(x));
}
)"},
    // |x| = m 2^e with m in [sqrt(1/2), sqrt(2)). Subnormal numbers are split as integers.
    {"split_f32", "", R"(struct Split { m: f32, e: f32 }
fn split_f32(x: f32) -> Split {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  let small = mag < 0x800000u;
  let bits = select(mag, bitcast<u32>(f32(mag)), small);
  let e = bitcast<i32>(bits - 0x3f3504f3u) >> 23u;
  return Split(bitcast<f32>(bits - (bitcast<u32>(e) << 23u)), f32(e + select(0, -149, small)));
}
)"},
    // log(1 + f) - f.
    {"log_tail", "", R"(fn log_tail(f: f32) -> f32 {
  let p = ((((((6.75164536e-2 * f - 0.116725735) * f + 0.118838862) * f - 0.124059089) * f + 0.142202795) * f -
             0.166679993) * f + 0.200020745) * f - 0.250000089;
  return f * f * ((p * f + 0.333333135) * f - 0.5);
}
)"},
    // A logarithm of x: y where x is positive and finite, else the special value.
    {"log_ends", "f32_of", R"(fn log_ends(x: f32, y: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u) { return f32_of(0xff800000u); }
  if (bits > 0x7f800000u) { return f32_of(0x7fc00000u); }
  return select(y, x, bits == 0x7f800000u);
}
)"},
    {"log_f32", "split_f32 log_tail log_ends", R"(fn log_f32(x: f32) -> f32 {
  let s = split_f32(x);
  let f = s.m - 1.0;
  return log_ends(x, s.e * 0.693359375 + (f + (log_tail(f) - s.e * 2.12194440e-4)));
}
)"},
    {"log2_f32", "split_f32 log_tail log_ends", R"(fn log2_f32(x: f32) -> f32 {
  let s = split_f32(x);
  let f = s.m - 1.0;
  return log_ends(x, s.e + (f + (f * 0.44269504 + log_tail(f) * 1.44269504)));
}
)"},
    {"log10_f32", "split_f32 log_tail log_ends", R"(fn log10_f32(x: f32) -> f32 {
  let s = split_f32(x);
  let f = s.m - 1.0;
  return log_ends(x, s.e * 0.301025390625 + ((f + log_tail(f)) * 0.434294482 + s.e * 4.6050389812e-6));
}
)"},
    // Some bits of the rounded sum 1 + x are cleared, so that the remainder of x is known exactly.
    {"log1p_f32", "split_f32 log_tail log_ends is_zero_or_nan", R"(fn log1p_f32(x: f32) -> f32 {
  let sum = 1.0 + x;
  let u = bitcast<f32>(bitcast<u32>(sum) & 0xfffffff0u);
  let s = split_f32(u);
  let near = x > -0.2929 && x < 0.4142;
  let f = select(s.m - 1.0, x, near);
  let e = select(s.e, 0.0, near);
  let rest = select((x - (u - 1.0)) / u, 0.0, near || s.e > 30.0);
  let y = e * 0.693359375 + (f + (log_tail(f) + (rest - e * 2.12194440e-4)));
  return select(select(log_ends(sum, y), y, near), x, is_zero_or_nan(x));
}
)"},
    // Both branches keep the exponential at most 1.
    {"sigmoid_f32", "exp_f32", R"(fn sigmoid_f32(x: f32) -> f32 {
  let e = exp_f32(-abs(x));
  return select(1.0, e, x < 0.0) / (1.0 + e);
}
)"},
    {"softplus_f32", "exp_f32 log1p_f32 is_nan", R"(fn softplus_f32(x: f32) -> f32 {
  return select(select(x, 0.0, x <= 0.0) + log1p_f32(exp_f32(-abs(x))), x, is_nan(x));
}
)"},
    {"logaddexp_f32", "exp_f32 log1p_f32 order_f32 is_nan f32_of", R"(fn logaddexp_f32(a: f32, b: f32) -> f32 {
  let above = order_f32(a) > order_f32(b);
  let high = select(b, a, above);
  let low = select(a, b, above);
  if (is_nan(a) || is_nan(b)) { return f32_of(0x7fc00000u); }
  if ((bitcast<u32>(high) & 0x7fffffffu) == 0x7f800000u) { return high; }
  return high + log1p_f32(exp_f32(low - high));
}
)"},
    {"log_sigmoid_f32", "softplus_f32", R"(fn log_sigmoid_f32(x: f32) -> f32 { return -softplus_f32(-x); }
)"},
    // x g(x). g is tiny far below 0; there the product is scaled by 2^64, so that it is not subnormal.
    {"silu_f32", "exp_sum is_nan", R"(fn silu_f32(x: f32) -> f32 {
  let z = max(x, -1000.0);
  let far = z < -1.0;
  let back = select(1.0, 5.421010862427522e-20, far);
  let e = exp_sum(-abs(z), 0.0, select(0, 64, far));
  let y = select(z, z * e, z < 0.0) / (1.0 + e * back) * back;
  return select(y, x, is_nan(x));
}
)"},
    // x tanh(log(1 + e^x)), computed from e = e^-|x|.
    {"mish_f32", "exp_sum is_nan", R"(fn mish_f32(x: f32) -> f32 {
  let z = max(x, -1000.0);
  let far = z < -1.0;
  let back = select(1.0, 5.421010862427522e-20, far);
  let large = exp_sum(-abs(z), 0.0, select(0, 64, far));
  let e = large * back;
  let above = z * (1.0 - 2.0 * e * e / (1.0 + 2.0 * e + 2.0 * e * e));
  let below = z * large * (1.0 - e * (1.0 + e) / (2.0 + 2.0 * e + e * e)) * back;
  return select(select(above, below, z < 0.0), x, is_nan(x));
}
)"},
    {"tanh_f32", "exp_sum with_sign is_nan", R"(fn tanh_f32(x: f32) -> f32 {
  let a = min(abs(x), 15.0);
  let s = a * a;
  let p = (((-5.71092591e-3 * s + 2.06456333e-2) * s - 5.37421815e-2) * s + 0.133314788) * s - 0.333332837;
  let y = select(1.0 - 2.0 / (exp_sum(2.0 * a, 0.0, 0) + 1.0), a + a * s * p, a < 0.625);
  return select(with_sign(y, x), x, is_nan(x));
}
)"},
    {"sinh_f32", "exp_sum with_sign is_nan", R"(fn sinh_f32(x: f32) -> f32 {
  let a = abs(x);
  let s = a * a;
  let p = ((2.78396305e-6 * s + 1.98426322e-4) * s + 8.33331142e-3) * s + 0.166666672;
  let e = exp_sum(a, 0.0, -1);
  return select(with_sign(select(e - 0.25 / e, a + a * s * p, a < 1.0), x), x, is_nan(x));
}
)"},
    {"cosh_f32", "exp_sum is_nan", R"(fn cosh_f32(x: f32) -> f32 {
  let e = exp_sum(abs(x), 0.0, -1);
  return select(e + 0.25 / e, x, is_nan(x));
}
)"},
    {"asinh_f32", "log1p_f32 log_f32 with_sign is_nan", R"(fn asinh_f32(x: f32) -> f32 {
  let a = abs(x);
  let s = a * a;
  let p = ((((9.25622974e-3 * s - 2.00494286e-2) * s + 3.00335549e-2) * s - 4.46160957e-2) * s + 7.49990717e-2) * s -
          0.166666657;
  var y = a + a * s * p;
  if (a >= 0.5) { y = log1p_f32(a + s / (1.0 + sqrt(1.0 + s))); }
  if (a >= 16384.0) { y = log_f32(a) + 0.69314718; }
  return select(with_sign(y, x), x, is_nan(x));
}
)"},
    {"acosh_f32", "log1p_f32 log_f32 f32_of is_nan", R"(fn acosh_f32(x: f32) -> f32 {
  if (x < 1.0) { return f32_of(0x7fc00000u); }
  let t = x - 1.0;
  let y = select(log1p_f32(t + sqrt(t * (t + 2.0))), log_f32(x) + 0.69314718, x >= 16384.0);
  return select(y, x, is_nan(x));
}
)"},
    {"atanh_f32", "log1p_f32 with_sign f32_of is_nan", R"(fn atanh_f32(x: f32) -> f32 {
  let a = abs(x);
  let s = a * a;
  let p = ((((0.177341744 * s + 5.08849435e-2) * s + 0.118365519) * s + 0.142211825) * s + 0.200026035) * s +
          0.333332986;
  var y = a + a * s * p;
  if (a >= 0.5) { y = 0.5 * log1p_f32(2.0 * a / (1.0 - a)); }
  if (a == 1.0) { y = f32_of(0x7f800000u); }
  if (a > 1.0 || is_nan(x)) { return f32_of(0x7fc00000u); }
  return with_sign(y, x);
}
)"},
    {"elu_f32", "expm1_f32 is_nan", R"(fn elu_f32(x: f32, alpha: f32) -> f32 {
  return select(alpha * expm1_f32(x), x, x > 0.0 || is_nan(x));
}
)"},
};

}  // namespace

std::span<const Helper> exponential_helpers() { return kExponentialHelpers; }

}  // namespace rlx::codegen
