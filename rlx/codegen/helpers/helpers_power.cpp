// WGSL functions: powers, roots and remainders. Polynomials: see helpers_exponential.cpp.
#include "rlx/codegen/helpers/helper_table.h"

namespace rlx::codegen {
namespace {

constexpr Helper kPowerHelpers[] = {
    {"sqrt_f32", "f32_of", R"(fn sqrt_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u || bits == 0x7f800000u) { return x; }
  if (bits > 0x7f800000u) { return f32_of(0x7fc00000u); }
  return sqrt(x);
}
)"},
    {"recip_f32", "f32_of", R"(fn recip_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  return select(1.0 / x, f32_of((bits & 0x80000000u) | 0x7f800000u), (bits & 0x7fffffffu) == 0u);
}
)"},
    {"rsqrt_f32", "f32_of", R"(fn rsqrt_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u) { return f32_of(bits | 0x7f800000u); }
  if (bits > 0x7f800000u) { return f32_of(0x7fc00000u); }
  if (bits == 0x7f800000u) { return 0.0; }
  return 1.0 / sqrt(x);
}
)"},
    // A Halley step from a third of the exponent, then a Newton step. Near the ends of the f32 range it takes the cube
    // root of x 2^k; subnormal numbers are handled as integers.
    {"cbrt_f32", "with_sign", R"(fn cbrt_f32(x: f32) -> f32 {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  if (mag == 0u || mag >= 0x7f800000u) { return x; }
  var a = bitcast<f32>(mag);
  var back = 1.0;
  if (mag >= 0x7e000000u) {
    a = a * 0.125;
    back = 2.0;
  } else if (mag < 0x800000u) {
    a = f32(mag) * 2.0;
    back = 8.8817841970012523e-16;
  } else if (mag < 0x08000000u) {
    a = a * 1073741824.0;
    back = 9.765625e-4;
  }
  var t = bitcast<f32>(bitcast<u32>(a) / 3u + 0x2a514067u);
  let c = t * t * t;
  t = t * ((a + a + c) / (a + c + c));
  t = t - (t - a / (t * t)) * 0.33333333;
  return with_sign(t * back, x);
}
)"},
    // x / (1 + |x|), and 1 from where 1 + |x| rounds to |x|.
    {"softsign_f32", "with_sign is_nan", R"(fn softsign_f32(x: f32) -> f32 {
  let a = abs(x);
  return select(with_sign(select(a / (1.0 + a), 1.0, a > 1e8), x), x, is_nan(x));
}
)"},
    {"hard_swish_f32", "is_nan", R"(fn hard_swish_f32(x: f32) -> f32 {
  let y = select(x * (x + 3.0) / 6.0, x, x >= 3.0);
  return select(select(y, -0.0, x <= -3.0), x, is_nan(x));
}
)"},
    {"hard_sigmoid_f32", "is_nan", R"(fn hard_sigmoid_f32(x: f32) -> f32 {
  let y = select((x + 3.0) / 6.0, 1.0, x >= 3.0);
  return select(select(y, 0.0, x <= -3.0), x, is_nan(x));
}
)"},
    // min(max(a x + b, 0), 1) with a and b in two parts, so that a sum near 0 keeps the digits of the product.
    {"hard_sigmoid_of_f32", "top12 is_nan",
     R"(fn hard_sigmoid_of_f32(x: f32, ah: f32, al: f32, bh: f32, bl: f32) -> f32 {
  let h = top12(x);
  let l = x - h;
  let y = (h * ah + bh) + ((h * al + l * (ah + al)) + bl);
  let inside = select(y, 1.0, y >= 1.0);
  return select(select(inside, 0.0, y <= 0.0), x, is_nan(x));
}
)"},
    // log2 |x| in two parts: bp is 1 or 3/2, the nearer one, and the series is that of artanh((m - bp) / (m + bp)).
    {"log2_parts", "top12", R"(fn log2_parts(x: f32) -> vec2<f32> {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  let small = mag < 0x800000u;
  let bits = select(mag, bitcast<u32>(f32(mag)), small);
  let e = bitcast<i32>(bits - 0x3f5db3d7u) >> 23u;
  let m = bitcast<f32>(bits - (bitcast<u32>(e) << 23u));
  let upper = m >= 1.2247449;
  let bp = select(1.0, 1.5, upper);
  let f = m - bp;
  let v = 1.0 / (m + bp);
  let s = f * v;
  let sh = top12(s);
  let dh = top12(m + bp);
  let dl = m - (dh - bp);
  let sl = v * ((f - sh * dh) - sh * dl);
  let s2 = s * s;
  let l = sl + s * (s2 * 0.33333333 + s2 * s2 * (0.2 + s2 * (0.14285715 + s2 * 0.11111111)));
  let p = sh * 2.884765625;
  let q = sh * 6.24456792e-4 + l * 2.88539004;
  let t = f32(e + select(0, -149, small)) + select(0.0, 0.5849609375, upper);
  let zh = top12(t + (p + q));
  return vec2<f32>(zh, ((t - zh) + p) + (q + select(0.0, 1.56322119e-6, upper)));
}
)"},
    {"pow_f32", "log2_parts expm1_core scale2 f32_of is_nan", R"(fn pow_f32(x: f32, y: f32) -> f32 {
  let mag_x = bitcast<u32>(x) & 0x7fffffffu;
  let mag_y = bitcast<u32>(y) & 0x7fffffffu;
  if (mag_y == 0u || bitcast<u32>(x) == 0x3f800000u) { return 1.0; }
  if (mag_x > 0x7f800000u || mag_y > 0x7f800000u) { return f32_of(0x7fc00000u); }
  let below = bitcast<u32>(x) > 0x7fffffffu;
  let falls = bitcast<u32>(y) > 0x7fffffffu;
  if (mag_y == 0x7f800000u) {
    if (mag_x == 0x3f800000u) { return 1.0; }
    return f32_of(select(0u, 0x7f800000u, (mag_x > 0x3f800000u) != falls));
  }
  let far = mag_y >= 0x4b800000u;
  let whole = far || (mag_y >= 0x3f800000u && floor(y) == y);
  let odd = !far && whole && (u32(abs(y)) & 1u) == 1u;
  let sign = select(0u, 0x80000000u, below && odd);
  if (mag_x == 0u) { return f32_of(sign | select(0u, 0x7f800000u, falls)); }
  if (mag_x == 0x7f800000u) { return f32_of(sign | select(0x7f800000u, 0u, falls)); }
  if (below && !whole) { return f32_of(0x7fc00000u); }
  let z = log2_parts(x);
  let b = clamp(y, -1e12, 1e12);
  let h = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let uh = h * z.x;
  let u = clamp(uh, -200.0, 200.0);
  let ul = select((b - h) * z.x + b * z.y, 0.0, u != uh);
  let n = round(u + ul);
  let r = (u - n) + ul;
  return bitcast<f32>(sign | bitcast<u32>(scale2(1.0 + expm1_core(r * 0.69314718), clamp(i32(n), -250, 250))));
}
)"},
    // The remainder with the sign of the divisor, by integers, eight bits of the quotient at a time. The sign fixup
    // (divisor minus remainder) is done before the conversion to float, as the remainder may be subnormal, which
    // devices flush to 0.
    {"mod_f32", "f32_of", R"(fn mod_f32(a: f32, b: f32) -> f32 {
  let ua = bitcast<u32>(a) & 0x7fffffffu;
  let ub = bitcast<u32>(b) & 0x7fffffffu;
  if (ua >= 0x7f800000u || ub > 0x7f800000u || ub == 0u) { return f32_of(0x7fc00000u); }
  let sign = bitcast<u32>(b) & 0x80000000u;
  let opposite = (bitcast<u32>(a) & 0x80000000u) != sign;
  if (ua == 0u) { return bitcast<f32>(sign); }
  if (ua < ub) { return select(a, a + b, opposite); }
  let ea = max(ua >> 23u, 1u);
  let eb = max(ub >> 23u, 1u);
  let mb = select(ub & 0x7fffffu, (ub & 0x7fffffu) | 0x800000u, ub >= 0x800000u);
  var r = select(ua & 0x7fffffu, (ua & 0x7fffffu) | 0x800000u, ua >= 0x800000u) % mb;
  for (var left = ea - eb; left > 0u && r != 0u;) {
    let step = min(left, 8u);
    r = (r << step) % mb;
    left = left - step;
  }
  if (r == 0u) { return bitcast<f32>(sign); }
  if (opposite) { r = mb - r; }
  let shift = countLeadingZeros(r) - 8u;
  return bitcast<f32>(sign | select(r << (eb - 1u), ((eb - shift) << 23u) | ((r << shift) & 0x7fffffu), eb > shift));
}
)"},
    {"rem_f32", "mod_f32 with_sign", R"(fn rem_f32(a: f32, b: f32) -> f32 { return mod_f32(a, with_sign(b, a)); }
)"},
    // Both are scaled by 2^-k of the larger one, so that no square overflows or underflows.
    {"hypot_f32", "f32_of scale2", R"(fn hypot_f32(a: f32, b: f32) -> f32 {
  let ua = bitcast<u32>(a) & 0x7fffffffu;
  let ub = bitcast<u32>(b) & 0x7fffffffu;
  let high = max(ua, ub);
  if (ua == 0x7f800000u || ub == 0x7f800000u) { return f32_of(0x7f800000u); }
  if (high > 0x7f800000u) { return f32_of(0x7fc00000u); }
  if (high == 0u) { return 0.0; }
  let k = i32(high >> 23u) - 127;
  let x = scale2(bitcast<f32>(ua), -k);
  let y = scale2(bitcast<f32>(ub), -k);
  return scale2(sqrt(x * x + y * y), k);
}
)"},
};

}  // namespace

std::span<const Helper> power_helpers() { return kPowerHelpers; }

}  // namespace rlx::codegen
