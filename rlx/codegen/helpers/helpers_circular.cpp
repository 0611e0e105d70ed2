// WGSL functions: circular functions and their inverses. Polynomials: see helpers_exponential.cpp.
#include "rlx/codegen/helpers/helper_table.h"

namespace rlx::codegen {
namespace {

constexpr Helper kCircularHelpers[] = {
    {"mul_wide", "", R"(fn mul_wide(a: u32, b: u32) -> vec2<u32> {
  let ll = (a & 0xffffu) * (b & 0xffffu);
  let lh = (a & 0xffffu) * (b >> 16u);
  let hl = (a >> 16u) * (b & 0xffffu);
  let mid = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
  return vec2<u32>((mid << 16u) | (ll & 0xffffu), (a >> 16u) * (b >> 16u) + (lh >> 16u) + (hl >> 16u) + (mid >> 16u));
}
)"},
    // x as q quarter turns and a rest r in [-pi/4, pi/4]. For large x, 96 bits of 2/pi, from where x m 2^e still
    // matters modulo a turn, are multiplied by the integer of x (Payne and Hanek, "Radian reduction for trigonometric
    // functions", 1983).
    {"quarter_turns", "mul_wide", R"(struct Turn { r: f32, q: u32 }
fn quarter_turns(x: f32) -> Turn {
  let bits = bitcast<u32>(x);
  let mag = bits & 0x7fffffffu;
  if (mag < 0x44c80000u) {
    let k = round(x * 0.63661977);
    let r = (((x - k * 1.5703125) - k * 4.8375129699707031e-4) - k * 7.5495336204767227e-8) - k * 2.563344068e-12;
    return Turn(r, bitcast<u32>(i32(k)));
  }
  let m = (bits & 0x7fffffu) | 0x800000u;
  let first = (mag >> 23u) - 120u;
  var w0 = 0u;
  var w1 = 0xa2f9836eu;
  var w2 = 0x4e441529u;
  var w3 = 0xfc2757d1u;
  switch (first >> 5u) {
    case 1u: { w0 = w1; w1 = w2; w2 = w3; w3 = 0xf534ddc0u; }
    case 2u: { w0 = w2; w1 = w3; w2 = 0xf534ddc0u; w3 = 0xdb629599u; }
    case 3u: { w0 = w3; w1 = 0xf534ddc0u; w2 = 0xdb629599u; w3 = 0x3c439041u; }
    case 4u: { w0 = 0xf534ddc0u; w1 = 0xdb629599u; w2 = 0x3c439041u; w3 = 0xfe5163abu; }
    default: {}
  }
  let s = first & 31u;
  if (s != 0u) {
    w0 = (w0 << s) | (w1 >> (32u - s));
    w1 = (w1 << s) | (w2 >> (32u - s));
    w2 = (w2 << s) | (w3 >> (32u - s));
  }
  let p1 = mul_wide(m, w1);
  var lo = p1.x + mul_wide(m, w2).y;
  var hi = m * w0 + p1.y + select(0u, 1u, lo < p1.x);
  let q = (hi + 0x20000000u) >> 30u;
  hi = hi - (q << 30u);
  let negative = hi > 0x7fffffffu;
  if (negative) {
    hi = ~hi + select(0u, 1u, lo == 0u);
    lo = 0u - lo;
  }
  var shift = 0u;
  if (hi == 0u) { hi = lo; lo = 0u; shift = 32u; }
  let z = countLeadingZeros(hi);
  let top = (hi << (z & 31u)) | select(0u, lo >> ((32u - z) & 31u), (z & 31u) != 0u);
  let r = f32(top) * bitcast<f32>((127u - 30u - min(z + shift, 60u)) << 23u) * 1.57079633;
  return Turn(select(r, -r, negative != (bits > 0x7fffffffu)), select(q, 0u - q, bits > 0x7fffffffu));
}
)"},
    // sin(q pi/2 + r).
    {"sin_core", "", R"(fn sin_core(r: f32, q: u32) -> f32 {
  let s = r * r;
  let odd = r + r * s * (((2.83724762e-6 * s - 1.98534981e-4) * s + 8.33338033e-3) * s - 0.166666672);
  let even = 1.0 + (s * s * ((2.44306611e-5 * s - 1.38873013e-3) * s + 4.16666456e-2) - 0.5 * s);
  let y = select(odd, even, (q & 1u) == 1u);
  return select(y, -y, (q & 2u) == 2u);
}
)"},
    {"sin_f32", "quarter_turns sin_core f32_of is_zero_or_nan", R"(fn sin_f32(x: f32) -> f32 {
  if (is_zero_or_nan(x)) { return x; }
  let t = quarter_turns(x);
  return select(sin_core(t.r, t.q), f32_of(0x7fc00000u), (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u);
}
)"},
    // sin(pi x) / (pi x), computed from the exact distance to the nearest integer.
    {"sinc_f32", "sin_f32 f32_of", R"(fn sinc_f32(x: f32) -> f32 {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  if (mag < 0x38000000u) { return 1.0; }  // to the last bit, and no division of subnormal numbers
  if (mag >= 0x7f800000u) { return f32_of(0x7fc00000u); }
  let n = round(x);
  let y = sin_f32((x - n) * 3.1415927) / (x * 3.1415927);
  return select(y, -y, mag < 0x4b800000u && (u32(abs(n)) & 1u) == 1u);
}
)"},
    {"cos_f32", "quarter_turns sin_core f32_of", R"(fn cos_f32(x: f32) -> f32 {
  let t = quarter_turns(x);
  return select(sin_core(t.r, t.q + 1u), f32_of(0x7fc00000u), (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u);
}
)"},
    {"tan_f32", "quarter_turns f32_of is_zero_or_nan", R"(fn tan_f32(x: f32) -> f32 {
  if (is_zero_or_nan(x)) { return x; }
  let t = quarter_turns(x);
  let s = t.r * t.r;
  let p = ((((9.48408898e-3 * s + 2.94397585e-3) * s + 2.45466661e-2) * s + 5.3376317e-2) * s + 0.133392558) * s +
          0.333331376;
  let y = t.r + t.r * s * p;
  let odd = (t.q & 1u) == 1u;
  return select(select(y, -1.0 / y, odd), f32_of(0x7fc00000u), (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u);
}
)"},
    // Valid for 0 <= a <= 1.
    {"atan_core", "", R"(fn atan_core(a: f32) -> f32 {
  let far = a > 0.41421356;
  let z = select(a, (a - 1.0) / (a + 1.0), far);
  let s = z * z;
  let p = (((-6.09175861e-2 * s + 0.105998203) * s - 0.1424447) * s + 0.19998531) * s - 0.333333164;
  let y = z + z * s * p;
  return select(y, (y - 2.18556942e-8) + 0.785398185, far);
}
)"},
    {"atan_f32", "atan_core with_sign is_nan", R"(fn atan_f32(x: f32) -> f32 {
  let a = abs(x);
  let y = atan_core(select(a, 1.0 / a, a > 1.0));
  return select(with_sign(select(y, (1.57079637 - y) - 4.37113883e-8, a > 1.0), x), x, is_nan(x));
}
)"},
    // The quotient of the smaller magnitude by the larger one. Both are scaled away from the ends of the f32 range.
    {"atan2_f32", "atan_core with_sign f32_of is_nan", R"(fn atan2_f32(y: f32, x: f32) -> f32 {
  if (is_nan(x) || is_nan(y)) { return f32_of(0x7fc00000u); }
  let ax = bitcast<u32>(x) & 0x7fffffffu;
  let ay = bitcast<u32>(y) & 0x7fffffffu;
  let less = bitcast<f32>(min(ax, ay));
  let more = bitcast<f32>(max(ax, ay));
  let by = select(select(1.0, 1.8446744073709552e19, more < 1e-19), 5.421010862427522e-20, more > 1e19);
  var t = select((less * by) / (more * by), less / (more * by) * by, more > 1e19);
  if (max(ax, ay) < 0x800000u) { t = f32(min(ax, ay)) / f32(max(max(ax, ay), 1u)); }
  if (max(ax, ay) == 0x7f800000u) { t = select(0.0, 1.0, ax == ay); }
  var r = atan_core(t);
  if (ay > ax) { r = (1.57079637 - r) - 4.37113883e-8; }
  if (bitcast<u32>(x) > 0x7fffffffu) { r = (3.14159274 - r) - 8.74227766e-8; }
  return with_sign(r, y);
}
)"},
    // asin(z) / z - 1 as a function of s = z^2 <= 1/4.
    {"asin_core", "", R"(fn asin_core(s: f32) -> f32 {
  return s * (((((3.76307219e-2 * s + 1.43551975e-2) * s + 3.183043e-2) * s + 4.45141345e-2) * s + 7.5005196e-2) * s +
              0.166666597);
}
)"},
    // Near -1 and 1 it uses the root of (1 - |x|) / 2, in two parts.
    {"asin_f32", "asin_core top12 with_sign f32_of is_nan", R"(fn asin_f32(x: f32) -> f32 {
  let a = abs(x);
  if (a > 1.0 || is_nan(x)) { return f32_of(0x7fc00000u); }
  if (a <= 0.5) { return x + x * asin_core(x * x); }
  let t = 0.5 - 0.5 * a;
  let z = sqrt(t);
  let h = top12(z);
  let l = select((t - h * h) / (z + h), 0.0, t == 0.0);
  return with_sign((1.57079637 - 2.0 * h) - (2.0 * (l + z * asin_core(t)) + 4.37113883e-8), x);
}
)"},
    {"acos_f32", "asin_core top12 f32_of is_nan", R"(fn acos_f32(x: f32) -> f32 {
  let a = abs(x);
  if (a > 1.0 || is_nan(x)) { return f32_of(0x7fc00000u); }
  if (a <= 0.5) { return 1.57079637 - (x + (x * asin_core(x * x) + 4.37113883e-8)); }
  let t = 0.5 - 0.5 * a;
  let z = sqrt(t);
  let h = top12(z);
  let l = select((t - h * h) / (z + h), 0.0, t == 0.0);
  let y = 2.0 * (h + (l + z * asin_core(t)));
  return select(y, (3.14159274 - y) - 8.74227766e-8, x < 0.0);
}
)"},
};

}  // namespace

std::span<const Helper> circular_helpers() { return kCircularHelpers; }

}  // namespace rlx::codegen
