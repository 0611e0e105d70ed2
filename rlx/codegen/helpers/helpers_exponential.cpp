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
    {"logaddexp_f32", "exp_f32 log1p_f32 order_f32 is_nan f32_of", R"(fn logaddexp_f32(a: f32, b: f32) -> f32 {
  let above = order_f32(a) > order_f32(b);
  let high = select(b, a, above);
  let low = select(a, b, above);
  if (is_nan(a) || is_nan(b)) { return f32_of(0x7fc00000u); }
  if ((bitcast<u32>(high) & 0x7fffffffu) == 0x7f800000u) { return high; }
  return high + log1p_f32(exp_f32(low - high));
}
)"},
};

}  // namespace

std::span<const Helper> exponential_helpers() { return kExponentialHelpers; }

}  // namespace rlx::codegen
