// WGSL functions: conversions, bit tests, and arithmetic whose rules WGSL leaves open.
//
// Shader compilers may assume that there is no NaN, flush subnormal numbers, and reorder sums with constants. Exact
// functions therefore work on bits: they compare integers (order_f32), handle signs as bits, and split a number by
// masking bits (top12), which no compiler sees through.
#include "rlx/codegen/helpers/helper_table.h"

namespace rlx::codegen {
namespace {

constexpr Helper kNumberHelpers[] = {
    {"is_nan", "", R"(fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
)"},
    // Front ends reject infinities and NaN in constant expressions, but not as the result of a function (f32_of).
    // Zeros, whose sign sums and products lose, and NaN. Many functions return them unchanged.
    {"is_zero_or_nan", "", R"(fn is_zero_or_nan(x: f32) -> bool {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  return mag == 0u || mag > 0x7f800000u;
}
)"},
    {"f32_of", "", R"(fn f32_of(bits: u32) -> f32 { return bitcast<f32>(bits); }
)"},
    {"top12", "", R"(fn top12(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }
)"},
    // 2^n for -126 <= n <= 127.
    {"pow2", "", R"(fn pow2(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }
)"},
    // x 2^n for -252 <= n <= 254, rounded once.
    {"scale2", "pow2", R"(fn scale2(x: f32, n: i32) -> f32 {
  let half = n >> 1u;
  return x * pow2(half) * pow2(n - half);
}
)"},
    // Integers in the order of the floats: -0 equals 0, and NaN equals NaN and is above all numbers.
    {"order_f32", "", R"(fn order_f32(x: f32) -> i32 {
  let bits = bitcast<u32>(x);
  let mag = bits & 0x7fffffffu;
  if (mag > 0x7f800000u) { return 0x7fffffff; }
  return select(i32(mag), -i32(mag), bits > 0x7fffffffu);
}
)"},
    {"f16_to_f32", "", R"(fn f16_to_f32(word: u32) -> f32 {
  let h = word & 0x7fffu;
  let sign = (word & 0x8000u) << 16u;
  if (h >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((h & 0x3ffu) << 13u)); }
  if (h < 0x400u) { return bitcast<f32>(bitcast<u32>(f32(h) * 5.9604644775390625e-8) | sign); }
  return bitcast<f32>(sign | ((h << 13u) + 0x38000000u));
}
)"},
    {"f32_to_f16", "", R"(fn f32_to_f16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) { return sign | 0x7e00u | ((a >> 13u) & 0x3ffu); }
  if (a >= 0x477ff000u) { return sign | 0x7c00u; }
  if (a < 0x33000001u) { return sign; }
  if (a < 0x38800000u) {
    let shift = 126u - (a >> 23u);
    let m = (a & 0x7fffffu) | 0x800000u;
    let rest = m & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    let q = m >> shift;
    return sign | (q + select(0u, 1u, rest > half || (rest == half && (q & 1u) == 1u)));
  }
  let r = a - 0x38000000u;
  return sign | ((r + 0xfffu + ((r >> 13u) & 1u)) >> 13u);
}
)"},
    {"f32_to_bf16", "", R"(fn f32_to_bf16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
)"},
    {"round_f16", "f32_to_f16 f16_to_f32", R"(fn round_f16(x: f32) -> f32 { return f16_to_f32(f32_to_f16(x)); }
)"},
    {"round_bf16", "f32_to_bf16", R"(fn round_bf16(x: f32) -> f32 { return bitcast<f32>(f32_to_bf16(x) << 16u); }
)"},
    // Integers rounded to odd, so that a later rounding to F16 or BF16 is the only rounding.
    {"u32_to_odd_f32", "", R"(fn u32_to_odd_f32(n: u32) -> f32 {
  let shift = 8u - min(countLeadingZeros(n), 8u);
  let lost = n & ((1u << shift) - 1u);
  return f32((n >> shift) | select(0u, 1u, lost != 0u)) * f32(1u << shift);
}
)"},
    {"i32_to_odd_f32", "u32_to_odd_f32", R"(fn i32_to_odd_f32(n: i32) -> f32 {
  let mag = u32_to_odd_f32(select(bitcast<u32>(n), 0u - bitcast<u32>(n), n < 0));
  return select(mag, -mag, n < 0);
}
)"},
    // Floats truncated toward zero. NaN becomes 0, and values outside [low, high] saturate.
    {"f32_to_i32", "is_nan", R"(fn f32_to_i32(x: f32) -> i32 {
  if (is_nan(x)) { return 0; }
  if (x >= 2147483648.0) { return 2147483647; }
  if (x <= -2147483648.0) { return -2147483647 - 1; }
  return i32(x);
}
)"},
    {"f32_to_u32", "is_nan", R"(fn f32_to_u32(x: f32) -> u32 {
  if (is_nan(x) || x <= 0.0) { return 0u; }
  if (x >= 4294967296.0) { return 0xffffffffu; }
  return u32(x);
}
)"},
    {"neg_f32", "", R"(fn neg_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }
)"},
    {"abs_f32", "", R"(fn abs_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }
)"},
    {"relu_f32", "", R"(fn relu_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  return bitcast<f32>(select(bits, 0u, bits > 0x80000000u && bits <= 0xff800000u));
}
)"},
    {"sign_f32", "", R"(fn sign_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let mag = bits & 0x7fffffffu;
  return select(select(1.0, -1.0, bits > 0x7fffffffu), x, mag == 0u || mag > 0x7f800000u);
}
)"},
    // y with the sign of x. It does not mask both operands: lavapipe (Mesa 22.3.6) then computes tanh(log1p(exp(x)))
    // wrongly.
    {"with_sign", "", R"(fn with_sign(y: f32, x: f32) -> f32 {
  let a = abs(y);
  return select(a, -a, bitcast<u32>(x) > 0x7fffffffu);
}
)"},
    // Rounds to nearest, ties to even, as implementations differ. NaN and integers are returned unchanged.
    {"round_f32", "with_sign", R"(fn round_f32(x: f32) -> f32 {
  let a = abs(x);
  if ((bitcast<u32>(x) & 0x7fffffffu) >= 0x4b000000u) { return x; }
  let low = floor(a);
  let rest = a - low;
  let up = rest > 0.5 || (rest == 0.5 && (u32(low) & 1u) == 1u);
  return with_sign(select(low, low + 1.0, up), x);
}
)"},
    // Below 1 it does not select 0 or -1, which Mesa turns into the negative of 0 and 1.
    {"floor_f32", "with_sign", R"(fn floor_f32(x: f32) -> f32 {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  if (mag >= 0x4b000000u || mag == 0u) { return x; }
  if (mag < 0x3f800000u) { return bitcast<f32>((0u - (bitcast<u32>(x) >> 31u)) & 0xbf800000u); }
  return floor(x);
}
)"},
    {"ceil_f32", "floor_f32 neg_f32", R"(fn ceil_f32(x: f32) -> f32 { return neg_f32(floor_f32(neg_f32(x))); }
)"},
    {"trunc_f32", "with_sign", R"(fn trunc_f32(x: f32) -> f32 {
  if ((bitcast<u32>(x) & 0x7fffffffu) >= 0x4b000000u) { return x; }
  return with_sign(floor(abs(x)), x);
}
)"},
    {"max_f32", "order_f32", R"(fn max_f32(a: f32, b: f32) -> f32 {
  let x = order_f32(a);
  let y = order_f32(b);
  return bitcast<f32>(select(bitcast<u32>(b), bitcast<u32>(a), x > y));
}
)"},
    {"min_f32", "order_f32", R"(fn min_f32(a: f32, b: f32) -> f32 {
  let x = order_f32(a);
  let y = order_f32(b);
  let first = (x < y && y != 0x7fffffff) || x == 0x7fffffff;
  return bitcast<f32>(select(bitcast<u32>(b), bitcast<u32>(a), first));
}
)"},
    {"eq_f32", "order_f32", R"(fn eq_f32(a: f32, b: f32) -> bool {
  let x = order_f32(a);
  return x == order_f32(b) && x != 0x7fffffff;
}
)"},
    {"lt_f32", "order_f32", R"(fn lt_f32(a: f32, b: f32) -> bool {
  let y = order_f32(b);
  return order_f32(a) < y && y != 0x7fffffff;
}
)"},
    {"le_f32", "order_f32", R"(fn le_f32(a: f32, b: f32) -> bool {
  let y = order_f32(b);
  return order_f32(a) <= y && y != 0x7fffffff;
}
)"},
    // x - x and x / x, which compilers fold to 0 and 1.
    {"self_sub_f32", "f32_of", R"(fn self_sub_f32(x: f32) -> f32 {
  return select(0.0, f32_of(0x7fc00000u), (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u);
}
)"},
    {"self_div_f32", "f32_of", R"(fn self_div_f32(x: f32) -> f32 {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  return select(1.0, f32_of(0x7fc00000u), mag == 0u || mag >= 0x7f800000u);
}
)"},
    // x / c, where c is a literal given by its bits. Adding 0 hides from compilers that it is a literal.
    {"div_by_f32", "", R"(fn div_by_f32(x: f32, bits: u32) -> f32 {
  return x / bitcast<f32>(bits + ((bitcast<u32>(x) >> 31u) >> 1u));
}
)"},
    // x / 0 and x / inf. `sign` is the divisor's. x / inf also replaces x * 0, which compilers fold to 0.
    {"div_by_zero_f32", "f32_of", R"(fn div_by_zero_f32(x: f32, sign: u32) -> f32 {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  let infinite = bitcast<f32>(((bitcast<u32>(x) ^ sign) & 0x80000000u) | 0x7f800000u);
  return select(infinite, f32_of(0x7fc00000u), mag == 0u || mag > 0x7f800000u);
}
)"},
    {"div_by_inf_f32", "f32_of", R"(fn div_by_inf_f32(x: f32, sign: u32) -> f32 {
  let zero = bitcast<f32>((bitcast<u32>(x) ^ sign) & 0x80000000u);
  return select(zero, f32_of(0x7fc00000u), (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u);
}
)"},
    // Truncating division. Division by 0 gives 0; the lowest value divided by -1 wraps.
    {"div_i32", "", R"(fn div_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  if (b == -1) { return bitcast<i32>(0u - bitcast<u32>(a)); }
  return a / b;
}
)"},
    {"div_u32", "", R"(fn div_u32(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0u; }
  return a / b;
}
)"},
    // The remainder with the sign of the divisor; modulo 0 it is 0. OpenGL leaves % of negative numbers open.
    {"mod_i32", "", R"(fn mod_i32(a: i32, b: i32) -> i32 {
  if (b == 0 || b == -1) { return 0; }
  let r = a - a / b * b;
  return select(r, r + b, r != 0 && (r < 0) != (b < 0));
}
)"},
    {"rem_i32", "", R"(fn rem_i32(a: i32, b: i32) -> i32 {
  if (b == 0 || b == -1) { return 0; }
  return a - a / b * b;
}
)"},
    {"rem_u32", "", R"(fn rem_u32(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0u; }
  return a % b;
}
)"},
    {"mod_u32", "", R"(fn mod_u32(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0u; }
  return a % b;
}
)"},
    {"pow_u32", "", R"(fn pow_u32(a: u32, b: u32) -> u32 {
  var y = 1u;
  var base = a;
  for (var left = b; left != 0u; left = left >> 1u) {
    y = select(y, y * base, (left & 1u) == 1u);
    base = base * base;
  }
  return y;
}
)"},
    {"pow_i32", "pow_u32", R"(fn pow_i32(a: i32, b: i32) -> i32 {
  if (b >= 0) { return bitcast<i32>(pow_u32(bitcast<u32>(a), bitcast<u32>(b))); }
  if (a == 1) { return 1; }
  return select(0, select(1, -1, (b & 1) == 1), a == -1);
}
)"},
};

}  // namespace

std::span<const Helper> number_helpers() { return kNumberHelpers; }

}  // namespace rlx::codegen
