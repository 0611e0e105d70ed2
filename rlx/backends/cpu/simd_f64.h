// Vectors of doubles: the operations of simd.h for them, polynomials, and double-double sums. No include guard: simd.h
// includes it.

namespace rlx::cpu::RLX_ISA {

inline constexpr int kWide = RLX_LANES / 2;

using VM = decltype(VD{} < VD{});  // comparison results
typedef double VDUnaligned __attribute__((vector_size(4 * RLX_LANES), aligned(8), may_alias));

inline constexpr double kInfD = __builtin_huge_val();
inline constexpr double kNanD = __builtin_nan("");

RLX_INLINE VL bits_d(VD v) { return reinterpret_cast<VL>(v); }
RLX_INLINE VD from_bits_d(VL v) { return reinterpret_cast<VD>(v); }
RLX_INLINE VD select(VM mask, VD a, VD b) { return mask ? a : b; }
RLX_INLINE VD abs(VD v) { return from_bits_d(bits_d(v) & 0x7fffffffffffffffULL); }
RLX_INLINE VD neg(VD v) { return from_bits_d(bits_d(v) ^ 0x8000000000000000ULL); }
RLX_INLINE VD copysign(VD a, VD b) {
  return from_bits_d((bits_d(a) & 0x7fffffffffffffffULL) | (bits_d(b) & 0x8000000000000000ULL));
}
RLX_INLINE VM both(VM a, VM b) { return a & b; }
RLX_INLINE VM either(VM a, VM b) { return a | b; }
RLX_INLINE VM is_nan(VD v) { return v != v; }
RLX_INLINE bool any(VM mask) { return any(reinterpret_cast<VI>(mask)); }

/// a < b ? a : b per lane; b where either is NaN.
RLX_INLINE VD min(VD a, VD b) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VD>(_mm512_min_pd(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b)));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VD>(_mm256_min_pd(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b)));
#elif RLX_ISA_ID == 1
  return reinterpret_cast<VD>(_mm_min_pd(reinterpret_cast<__m128d>(a), reinterpret_cast<__m128d>(b)));
#else
  return a < b ? a : b;
#endif
}
/// a > b ? a : b per lane; b where either is NaN.
RLX_INLINE VD max(VD a, VD b) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VD>(_mm512_max_pd(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b)));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VD>(_mm256_max_pd(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b)));
#elif RLX_ISA_ID == 1
  return reinterpret_cast<VD>(_mm_max_pd(reinterpret_cast<__m128d>(a), reinterpret_cast<__m128d>(b)));
#else
  return a > b ? a : b;
#endif
}
RLX_INLINE VD sqrt(VD v) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VD>(_mm512_sqrt_pd(reinterpret_cast<__m512d>(v)));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VD>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(v)));
#elif RLX_ISA_ID == 1
  return reinterpret_cast<VD>(_mm_sqrt_pd(reinterpret_cast<__m128d>(v)));
#elif RLX_ISA_ID == 4
  return reinterpret_cast<VD>(vsqrtq_f64(reinterpret_cast<float64x2_t>(v)));
#else
  VD r{};
  for (int i = 0; i < kWide; ++i) r[i] = __builtin_sqrt(v[i]);
  return r;
#endif
}
/// Rounding to integral values: 0 nearest even, 1 down, 2 up, 3 toward zero.
template <int kMode>
RLX_INLINE VD round_to(VD v) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VD>(_mm512_roundscale_pd(reinterpret_cast<__m512d>(v), kMode | 8));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VD>(_mm256_round_pd(reinterpret_cast<__m256d>(v), kMode | 8));
#elif RLX_ISA_ID == 1
  return reinterpret_cast<VD>(_mm_round_pd(reinterpret_cast<__m128d>(v), kMode | 8));
#else
  VD r{};
  for (int i = 0; i < kWide; ++i)
    r[i] = kMode == 0   ? __builtin_nearbyint(v[i])
           : kMode == 1 ? __builtin_floor(v[i])
           : kMode == 2 ? __builtin_ceil(v[i])
                        : __builtin_trunc(v[i]);
  return r;
#endif
}
/// p 2^n for integral n in about [-2200, 2100], with one rounding into the denormals.
RLX_INLINE VD scale(VD p, VD n) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VD>(_mm512_scalef_pd(reinterpret_cast<__m512d>(p), reinterpret_cast<__m512d>(n)));
#else
  const VD half = round_to<1>(n * 0.5);
  const VD first = from_bits_d((bits_d(half + 0x1.8p52) + 1023) << 52);
  const VD second = from_bits_d((bits_d((n - half) + 0x1.8p52) + 1023) << 52);
  return p * first * second;
#endif
}

/// Prevents the compiler from fusing the multiplication that made x with a later addition.
RLX_INLINE VD rounded(VD x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}

/// Loads the first n values at p and sets the rest to 0. It reads nothing beyond them. n is kWide except at the end of
/// a row.
RLX_INLINE VD read_d(const double* p, i64 n) {
  if (n == kWide) return *reinterpret_cast<const VDUnaligned*>(p);
#if RLX_ISA_ID == 3
  return reinterpret_cast<VD>(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << n) - 1U), p));
#else
  VD v{};
  for (i64 i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
RLX_INLINE void write_d(double* p, VD v, i64 n) {
  if (n == kWide) {
    *reinterpret_cast<VDUnaligned*>(p) = v;
    return;
  }
#if RLX_ISA_ID == 3
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1U << n) - 1U), reinterpret_cast<__m512d>(v));
#else
  for (i64 i = 0; i < n; ++i) p[i] = v[i];
#endif
}

/// With AVX-512, logarithms of other x get their limits too: n is infinite for zeros and infinities, and m is NaN for
/// negative x.
RLX_INLINE Split<VD> split(VD x) {
#if RLX_ISA_ID == 3
  constexpr auto kSign = static_cast<_MM_MANTISSA_SIGN_ENUM>(3);  // -0 gives 1; negative x gives NaN
  const VD m = reinterpret_cast<VD>(_mm512_getmant_pd(reinterpret_cast<__m512d>(x), _MM_MANT_NORM_1_2, kSign));
  const VD n = reinterpret_cast<VD>(_mm512_getexp_pd(reinterpret_cast<__m512d>(x)));
  const VM high = m >= 1.4142135623730951;
  return {select(high, m * 0.5, m), select(high, n + 1.0, n)};
#else
  const VM tiny = x < 2.2250738585072014e-308;
  const VL bits = bits_d(select(tiny, x * 0x1p54, x));
  const VL biased = (bits - 0x3fe6a09e667f3bcdULL + (1023ULL << 52)) >> 52;
  const VD n = from_bits_d(biased | 0x4330000000000000ULL) -
               select(tiny, set1_d(0x1p52 + 1023.0 + 54.0), set1_d(0x1p52 + 1023.0));
  return {from_bits_d(bits - ((biased - 1023) << 52)), n};
#endif
}
/// f of each half of x in double, rounded once.
template <class F>
RLX_INLINE VF in_double(VF x, F&& f) {
  return combine(to_half(f(to_d(low_half(x)))), to_half(f(to_d(high_half(x)))));
}
template <class F>
RLX_INLINE VF in_double(VF x, VF y, F&& f) {
  return combine(to_half(f(to_d(low_half(x)), to_d(low_half(y)))), to_half(f(to_d(high_half(x)), to_d(high_half(y)))));
}

/// `split` of normal x > 0, in fewer steps.
RLX_INLINE Split<VD> split_normal(VD x) {
  const VL bits = bits_d(x);
  const VL biased = (bits - 0x3fe6a09e667f3bcdLL + (1023LL << 52)) >> 52;  // positive, so a logical shift works
  return {from_bits_d(bits - ((biased - 1023) << 52)), from_bits_d(biased | 0x4330000000000000LL) - (0x1p52 + 1023.0)};
}
template <int kBits>
RLX_INLINE VD without_low_bits(VD x) {
  return from_bits_d(bits_d(x) & (~std::uint64_t{0} << kBits));
}
template <class V>
struct Two {
  V first, second;
};
/// Two results of each half of x in double, each rounded once.
template <class F>
RLX_INLINE Two<VF> two_in_double(VF x, F&& f) {
  const Two<VD> low = f(to_d(low_half(x))), high = f(to_d(high_half(x)));
  return {combine(to_half(low.first), to_half(high.first)), combine(to_half(low.second), to_half(high.second))};
}
/// The whole number next to a product in double, by adding 1.5 2^52, whose last places hold it.
template <class V>
struct NearestInteger {
  V value, shifted;
};
RLX_INLINE NearestInteger<VD> round_product(VD x, double c) {
  const VD shifted = fma(x, set1_d(c), set1_d(0x1.8p52));
  return {shifted - 0x1.8p52, shifted};
}
/// p 2^n where p, n and the result are ordinary numbers.
RLX_INLINE VD scale_normal(VD p, NearestInteger<VD> n) { return from_bits_d(bits_d(p) + (bits_d(n.shifted) << 52)); }

// -- double-doubles: hi + lo, with lo below half an ulp of hi --

struct DD {
  VD hi, lo;
};
RLX_INLINE DD two_sum_d(VD a, VD b) {
  const VD s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
/// Requires |a| >= |b| or a = 0.
RLX_INLINE DD fast_sum_d(VD a, VD b) {
  const VD s = a + b;
  return {s, b - (s - a)};
}
#if RLX_ISA_ID == 1 || RLX_ISA_ID == 0
/// The leading half of the bits (Dekker). Requires x < 2^996.
RLX_INLINE VD head_d(VD x) {
  const VD t = rounded(x * 134217729.0);
  return t - (t - x);
}
#endif
/// a b exactly, unless a part of it is denormal.
RLX_INLINE DD product_d(VD a, VD b) {
  const VD p = rounded(a * b);
#if RLX_ISA_ID == 1 || RLX_ISA_ID == 0
  const VD ah = head_d(a), bh = head_d(b), al = a - ah, bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#else
  // Compilers do not fuse a multiplication whose result is read elsewhere. `same` makes this multiplication a separate
  // one.
  const VD same = rounded(a);
  return {p, fma(same, b, neg(p))};
#endif
}
/// a b + c with one rounding, for uses where the rounding error of the product matters.
RLX_INLINE VD exact_fma_d(VD a, VD b, VD c) {
#if RLX_ISA_ID == 1 || RLX_ISA_ID == 0
  const DD p = product_d(a, b);
  return (p.hi + c) + p.lo;
#else
  return fma(a, b, c);
#endif
}

/// 1 / b to about one ulp, for b between 2^-500 and 2^500. It uses no division, because it runs next to a division that
/// occupies the divider.
RLX_INLINE VD inverse(VD b) {
#if RLX_ISA_ID == 3
  const VD r = reinterpret_cast<VD>(_mm512_rcp14_pd(reinterpret_cast<__m512d>(b)));
  const VD e = fma(neg(b), r, set1_d(1.0));
  return fma(fma(fma(e, e, e), e, e), r, r);
#else
  return 1.0 / b;
#endif
}

#if RLX_ISA_ID == 3
/// table[index mod 16] per lane. The table is aligned.
RLX_INLINE VD lookup(const double (&table)[16], VL index) {
  return reinterpret_cast<VD>(
      _mm512_permutex2var_pd(_mm512_load_pd(table), reinterpret_cast<__m512i>(index), _mm512_load_pd(table + 8)));
}
/// Bits as the index of a lookup.
RLX_INLINE VL index_bits(VD v) { return bits_d(v); }
#endif

/// y with the lanes of `mask` replaced by f(lane).
template <class F>
RLX_INLINE VD replace_lanes(VM mask, VD y, F&& f) {
  if (__builtin_expect(any(mask), 0)) {
    for (int i = 0; i < kWide; ++i)
      if (mask[i] != 0) y[i] = f(i);
  }
  return y;
}

}  // namespace rlx::cpu::RLX_ISA
