// WGSL functions: erf and its family. Far from 0 they are e^(-z^2) times a smooth function. z^2 is kept in two parts,
// since the exponential multiplies its relative error by z^2. Polynomials: see helpers_exponential.cpp.
#include "rlx/codegen/helpers/helper_table.h"

namespace rlx::codegen {
namespace {

constexpr Helper kErrorFunctionHelpers[] = {
    // e^(z^2) erfc(z) for z >= 0: a polynomial of (z - 2) / (z + 2), over 1 + 2z.
    {"erfcx_core", "", R"(fn erfcx_core(z: f32) -> f32 {
  let t = (z - 2.0) / (z + 2.0);
  let high = ((((7.99376867e-5 * t + 1.76935908e-4) * t - 3.94467468e-4) * t - 1.42996828e-3) * t + 1.24668784e-3) * t +
             8.71478207e-3;
  let p = (((((high * t - 8.02925508e-3) * t - 5.42198755e-2) * t + 0.164050952) * t - 0.166030213) * t -
           9.27638263e-2) * t + 1.27697837;
  return p / (1.0 + 2.0 * z);
}
)"},
    // erf(z) / z - 9/8 as a function of s = z^2 <= 1.
    {"erf_core", "", R"(fn erf_core(s: f32) -> f32 {
  return ((((((-8.96691927e-6 * s + 1.10208202e-4) * s - 8.45063594e-4) * s + 5.2187969e-3) * s - 2.68646795e-2) * s +
            0.112837709) * s - 0.376126379) * s + 3.37916706e-3;
}
)"},
    {"erf_f32", "erf_core erfcx_core exp_sum top12 with_sign is_nan", R"(fn erf_f32(x: f32) -> f32 {
  let a = min(abs(x), 10.0);
  let h = top12(a);
  let c = erfcx_core(a) * exp_sum(-h * h, -(a - h) * (a + h), 0);
  return select(with_sign(select(1.0 - c, a * (1.125 + erf_core(a * a)), a < 1.0), x), x, is_nan(x));
}
)"},
    {"erfc_f32", "erfcx_core exp_sum top12 is_nan", R"(fn erfc_f32(x: f32) -> f32 {
  let a = min(abs(x), 11.0);
  let h = top12(a);
  let c = erfcx_core(a) * exp_sum(-h * h, -(a - h) * (a + h), 0);
  return select(select(c, 2.0 - c, x < 0.0), x, is_nan(x));
}
)"},
    // x Phi(x). For a >= 1, a Phi(-a) e^(a^2/2) is a polynomial of (a - 2) / (a + 2). Below 0 the product is scaled by
    // 2^64, so that it is not subnormal.
    {"gelu_f32", "erf_core exp_sum top12 is_nan", R"(fn gelu_f32(x: f32) -> f32 {
  if (is_nan(x) || abs(x) < 1.0) { return x * (0.5 + x * (0.39774756 + 0.35355339 * erf_core(0.5 * x * x))); }
  let a = min(abs(x), 30.0);
  let t = (a - 2.0) / (a + 2.0);
  let high = (((-2.82090827e-4 * t + 1.77718257e-3) * t - 8.17527995e-4) * t - 4.48385067e-3) * t - 3.53365927e-3;
  let p = ((((high * t + 1.81270204e-2) * t + 3.27549092e-2) * t - 0.151303232) * t + 0.170501769) * t + 0.336203992;
  let h = top12(a);
  let y = p * exp_sum(-0.5 * h * h, -0.5 * (a - h) * (a + h), select(0, 64, x < 0.0));
  return select(x - y, -y * 5.421010862427522e-20, x < 0.0);
}
)"},
    // A function of w = -log(1 - x^2): near the ends a polynomial of its root, after Giles, "Approximating the erfinv
    // function" (GPU Computing Gems, 2011), with rlx's own coefficients.
    {"erfinv_f32", "log_f32 f32_of is_nan", R"(fn erfinv_f32(x: f32) -> f32 {
  let a = abs(x);
  let w = -log_f32((1.0 - a) * (1.0 + a));
  var y = 0.0;
  if (w < 5.0) {
    let v = w - 2.5;
    y = (((-8.24693558e-9 * v + 2.81386079e-8) * v + 4.60073153e-7) * v - 3.52304733e-6) * v - 4.94392998e-6;
    y = ((((y * v + 2.18574962e-4) * v - 1.25275517e-3) * v - 4.1776658e-3) * v + 0.24664028) * v + 1.50140941;
  } else {
    let v = sqrt(w) - 3.0;
    y = (((9.91871493e-5 * v - 2.92300945e-4) * v - 3.35688856e-5) * v + 1.46349298e-3) * v - 3.6095283e-3;
    y = ((((y * v + 5.69522567e-3) * v - 7.6345671e-3) * v + 9.44433734e-3) * v + 1.00167477) * v + 2.83297682;
  }
  if (a == 1.0) { return f32_of((bitcast<u32>(x) & 0x80000000u) | 0x7f800000u); }
  if (a > 1.0 || is_nan(x)) { return f32_of(0x7fc00000u); }
  return x * y;
}
)"},
};

}  // namespace

std::span<const Helper> error_function_helpers() { return kErrorFunctionHelpers; }

}  // namespace rlx::codegen
