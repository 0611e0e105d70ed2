// The SIMD layer: vectors of RLX_LANES floats as GNU vector extensions, with the operations that these cannot express.
// No include guard: foreach_isa.h includes it once per instruction set, in namespace rlx::cpu::RLX_ISA.

#if defined(__clang__)
#define RLX_PRAGMA(x) _Pragma(#x)
#define RLX_UNROLL(n) RLX_PRAGMA(unroll n)
#else
#define RLX_PRAGMA(x) _Pragma(#x)
#define RLX_UNROLL(n) RLX_PRAGMA(GCC unroll n)
#endif
#define RLX_INLINE inline __attribute__((always_inline))

namespace rlx::cpu::RLX_ISA {

inline constexpr int kLanes = RLX_LANES;
inline constexpr Isa kIsa = static_cast<Isa>(RLX_ISA_ID);

using i64 = std::int64_t;

typedef float VF __attribute__((vector_size(4 * RLX_LANES), may_alias));          // F32 x kLanes
typedef std::int32_t VI __attribute__((vector_size(4 * RLX_LANES), may_alias));   // I32 x kLanes
typedef std::uint32_t VU __attribute__((vector_size(4 * RLX_LANES), may_alias));  // U32 x kLanes
typedef double VD __attribute__((vector_size(4 * RLX_LANES), may_alias));         // F64 x kLanes/2
typedef std::uint64_t VL __attribute__((vector_size(4 * RLX_LANES), may_alias));  // bits of VD; wraps
typedef float VFUnaligned __attribute__((vector_size(4 * RLX_LANES), aligned(4), may_alias));
typedef std::int32_t VIUnaligned __attribute__((vector_size(4 * RLX_LANES), aligned(4), may_alias));
typedef float VF16Bit __attribute__((vector_size(2 * RLX_LANES), may_alias));  // F32 x kLanes/2
typedef std::uint16_t VHUnaligned __attribute__((vector_size(2 * RLX_LANES), aligned(2), may_alias));
typedef std::int8_t VBUnaligned __attribute__((vector_size(RLX_LANES), aligned(1), may_alias));
typedef std::int32_t VIHalf __attribute__((vector_size(2 * RLX_LANES), may_alias));

inline constexpr float kInf = __builtin_huge_valf();
inline constexpr float kNan = __builtin_nanf("");

/// What the formulas of rlx/elementwise ask of a type of lanes; its README.md describes the members.
template <class V>
struct Lane;
template <>
struct Lane<VF> {
  using Scalar = float;
  static constexpr bool kFused = RLX_ISA_ID >= 2, kWider = true, kExact = true, kNative = false;
  static constexpr bool kSplitHasLimits = false;
  static constexpr int kLookup = RLX_ISA_ID == 3 ? 32 : RLX_ISA_ID == 2 ? 8 : 0;
  static constexpr float kInf = __builtin_huge_valf(), kNan = __builtin_nanf("");
};
template <>
struct Lane<VD> {
  using Scalar = double;
  static constexpr bool kFused = RLX_ISA_ID >= 2, kWider = false, kExact = true, kNative = false;
  static constexpr bool kSplitHasLimits = RLX_ISA_ID == 3;
  static constexpr int kLookup = RLX_ISA_ID == 3 ? 16 : 0;
  static constexpr double kInf = __builtin_huge_val(), kNan = __builtin_nan("");
};
template <class V>
using ScalarOf = typename Lane<V>::Scalar;

RLX_INLINE i64 min_i64(i64 a, i64 b) { return a < b ? a : b; }
RLX_INLINE i64 max_i64(i64 a, i64 b) { return a > b ? a : b; }
RLX_INLINE i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

RLX_INLINE VF zero() { return VF{}; }
/// x - 0 preserves every x, including -0 and NaN. The compiler emits a broadcast.
RLX_INLINE VF set1(float x) { return x - VF{}; }
RLX_INLINE VI set1_i(std::int32_t x) { return x - VI{}; }
RLX_INLINE VD set1_d(double x) { return x - VD{}; }
template <class V>
RLX_INLINE V set(ScalarOf<V> x) {
  return x - V{};
}
RLX_INLINE VF load(const float* p) { return *reinterpret_cast<const VFUnaligned*>(p); }
RLX_INLINE VI load_i(const std::int32_t* p) { return *reinterpret_cast<const VIUnaligned*>(p); }
/// int8 values as i32. g++ 12 would convert them one by one; the intrinsic is one instruction.
RLX_INLINE VI load_i8_i(const std::int8_t* p) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VI>(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VI>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  return __builtin_convertvector(*reinterpret_cast<const VBUnaligned*>(p), VI);
#endif
}
RLX_INLINE VF load_i8(const std::int8_t* p) { return __builtin_convertvector(load_i8_i(p), VF); }
/// Integers in [-128, 127] stored as int8.
RLX_INLINE void store_i8(std::int8_t* p, VI v) {
#if RLX_ISA_ID == 3
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v)));
#elif RLX_ISA_ID == 2
  const __m256i wide = reinterpret_cast<__m256i>(v);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
#else
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(v[i]);
#endif
}
/// 16-bit floats widened to f32; exact.
RLX_INLINE VF load_bf16(const std::uint16_t* p) {
  const VU wide = __builtin_convertvector(*reinterpret_cast<const VHUnaligned*>(p), VU);
  return reinterpret_cast<VF>(wide << 16);
}
RLX_INLINE VF load_f16(const std::uint16_t* p) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VF>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  const VU wide = __builtin_convertvector(*reinterpret_cast<const VHUnaligned*>(p), VU);
  const VU magnitude = (wide & 0x7fff) << 13;
  // The exponent moves by 112. The multiplication is exact and normalises subnormals. Infinities and NaNs keep an
  // exponent of all ones.
  const VU scaled = reinterpret_cast<VU>(reinterpret_cast<VF>(magnitude) * 0x1p112F);
  const VU huge = reinterpret_cast<VU>(magnitude >= (0x7c00U << 13)) & 0x7f800000U;
  return reinterpret_cast<VF>(scaled | huge | ((wide & 0x8000) << 16));
#endif
}
/// An f16 value broadcast to all lanes.
RLX_INLINE VF set1_f16(std::uint16_t bits) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_cvtph_ps(_mm256_set1_epi16(static_cast<short>(bits))));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VF>(_mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(bits))));
#else
  std::uint16_t all[kLanes];
  for (std::uint16_t& b : all) b = bits;
  return load_f16(all);
#endif
}
RLX_INLINE void store(float* p, VF v) { *reinterpret_cast<VFUnaligned*>(p) = v; }
RLX_INLINE void store_i(std::int32_t* p, VI v) { *reinterpret_cast<VIUnaligned*>(p) = v; }
#if RLX_ISA_ID == 3
/// Eight floats at `low`, then eight at `high`.
RLX_INLINE VF load_16bit(const void* low, const void* high) {
  const __m512d first = _mm512_castpd256_pd512(_mm256_loadu_pd(static_cast<const double*>(low)));
  return reinterpret_cast<VF>(_mm512_insertf64x4(first, _mm256_loadu_pd(static_cast<const double*>(high)), 1));
}
#endif
/// a * b + c. Rounded once where the instruction set has FMA (kernel files are compiled with -ffp-contract=fast).
#if defined(__clang__) && RLX_ISA_ID == 3  // clang does not fuse a multiply whose result is also read elsewhere
RLX_INLINE VF fma(VF a, VF b, VF c) { return reinterpret_cast<VF>(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c))); }
RLX_INLINE VD fma(VD a, VD b, VD c) {
  return reinterpret_cast<VD>(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c)));
}
#elif defined(__clang__) && RLX_ISA_ID == 2
RLX_INLINE VF fma(VF a, VF b, VF c) { return reinterpret_cast<VF>(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c))); }
RLX_INLINE VD fma(VD a, VD b, VD c) {
  return reinterpret_cast<VD>(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
}
#else
RLX_INLINE VF fma(VF a, VF b, VF c) { return a * b + c; }
RLX_INLINE VD fma(VD a, VD b, VD c) { return a * b + c; }
#endif
RLX_INLINE VI as_i(VF v) { return reinterpret_cast<VI>(v); }
RLX_INLINE VF as_f(VI v) { return reinterpret_cast<VF>(v); }
RLX_INLINE VF select(VI mask, VF a, VF b) { return mask ? a : b; }
RLX_INLINE VI select_i(VI mask, VI a, VI b) { return mask ? a : b; }
RLX_INLINE VI both(VI a, VI b) { return a & b; }
RLX_INLINE VI either(VI a, VI b) { return a | b; }
RLX_INLINE VF abs(VF v) { return as_f(as_i(v) & 0x7fffffff); }
RLX_INLINE VF neg(VF v) { return as_f(as_i(v) ^ static_cast<std::int32_t>(0x80000000)); }
/// Magnitude of a, sign of b.
RLX_INLINE VF copysign(VF a, VF b) {
  return as_f((as_i(a) & 0x7fffffff) | (as_i(b) & static_cast<std::int32_t>(0x80000000)));
}
RLX_INLINE VI is_nan(VF v) { return v != v; }

/// x rounded to bf16, ties to even, as F32. NaN stays NaN.
RLX_INLINE VF round_bf16(VF x) {
  const VU bits = reinterpret_cast<VU>(x), nearest = bits + 0x7fffU + ((bits >> 16) & 1U), quiet = bits | 0x400000U;
  const VI kept = select_i(is_nan(x), reinterpret_cast<VI>(quiet), reinterpret_cast<VI>(nearest));
  return as_f(kept & static_cast<std::int32_t>(0xffff0000));
}
RLX_INLINE void store_bf16(std::uint16_t* p, VF x) {
  *reinterpret_cast<VHUnaligned*>(p) = __builtin_convertvector(reinterpret_cast<VU>(round_bf16(x)) >> 16, VHUnaligned);
}

/// Loads the first n (0..kLanes) values at p and sets the rest to 0. It reads nothing beyond them.
RLX_INLINE VF load_n(const float* p, i64 n) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1U), p));
#elif RLX_ISA_ID == 2
  const __m256i mask =
      _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  return reinterpret_cast<VF>(_mm256_maskload_ps(p, mask));
#else
  VF v{};
  for (i64 i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}

/// Stores the first n (0..kLanes) values and writes nothing beyond them.
RLX_INLINE void store_n(float* p, VF v, i64 n) {
#if RLX_ISA_ID == 3
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << n) - 1U), reinterpret_cast<__m512>(v));
#elif RLX_ISA_ID == 2
  const __m256i mask =
      _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  _mm256_maskstore_ps(p, mask, reinterpret_cast<__m256>(v));
#else
  for (i64 i = 0; i < n; ++i) p[i] = v[i];
#endif
}

/// Non-temporal store; p is aligned to the vector size.
RLX_INLINE void store_stream(float* p, VF v) {
#if RLX_ISA_ID == 3
  _mm512_stream_ps(p, reinterpret_cast<__m512>(v));
#elif RLX_ISA_ID == 2
  _mm256_stream_ps(p, reinterpret_cast<__m256>(v));
#elif RLX_ISA_ID == 1
  _mm_stream_ps(p, reinterpret_cast<__m128>(v));
#else
  store(p, v);
#endif
}

#if RLX_ISA_ID == 2 || RLX_ISA_ID == 3
/// table[index mod kCount] per lane. The table is aligned.
template <int kCount>
RLX_INLINE VF lookup(const float (&table)[kCount], VI index) {
  static_assert(kCount == Lane<VF>::kLookup);
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_permutex2var_ps(reinterpret_cast<__m512>(load(table)),
                                                     reinterpret_cast<__m512i>(index),
                                                     reinterpret_cast<__m512>(load(table + 16))));
#else
  return reinterpret_cast<VF>(
      _mm256_permutevar8x32_ps(reinterpret_cast<__m256>(load(table)), reinterpret_cast<__m256i>(index)));
#endif
}
/// Bits as the index of a lookup.
RLX_INLINE VI index_bits(VF v) { return as_i(v); }
#endif

/// Orders earlier non-temporal stores before later stores.
RLX_INLINE void stream_fence() {
#if RLX_ISA_ID >= 1 && RLX_ISA_ID <= 3
  _mm_sfence();
#endif
}

RLX_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }
RLX_INLINE void prefetch_l2(const void* p) { __builtin_prefetch(p, 0, 2); }
RLX_INLINE void prefetch_write(const void* p) { __builtin_prefetch(p, 1, 3); }

/// a < b ? a : b per lane; b where either is NaN.
RLX_INLINE VF min(VF a, VF b) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_min_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VF>(_mm256_min_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#elif RLX_ISA_ID == 1
  return reinterpret_cast<VF>(_mm_min_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b)));
#else
  return a < b ? a : b;
#endif
}

/// a > b ? a : b per lane; b where either is NaN.
RLX_INLINE VF max(VF a, VF b) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VF>(_mm256_max_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#elif RLX_ISA_ID == 1
  return reinterpret_cast<VF>(_mm_max_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b)));
#else
  return a > b ? a : b;
#endif
}

RLX_INLINE VF sqrt(VF v) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_sqrt_ps(reinterpret_cast<__m512>(v)));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VF>(_mm256_sqrt_ps(reinterpret_cast<__m256>(v)));
#elif RLX_ISA_ID == 1
  return reinterpret_cast<VF>(_mm_sqrt_ps(reinterpret_cast<__m128>(v)));
#elif RLX_ISA_ID == 4
  return reinterpret_cast<VF>(vsqrtq_f32(reinterpret_cast<float32x4_t>(v)));
#else
  VF r{};
  for (int i = 0; i < kLanes; ++i) r[i] = __builtin_sqrtf(v[i]);
  return r;
#endif
}

/// Rounding to integral values: 0 nearest even, 1 down, 2 up, 3 toward zero.
template <int kMode>
RLX_INLINE VF round_to(VF v) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_roundscale_ps(reinterpret_cast<__m512>(v), kMode | 8));
#elif RLX_ISA_ID == 2
  return reinterpret_cast<VF>(_mm256_round_ps(reinterpret_cast<__m256>(v), kMode | 8));
#elif RLX_ISA_ID == 1
  return reinterpret_cast<VF>(_mm_round_ps(reinterpret_cast<__m128>(v), kMode | 8));
#elif RLX_ISA_ID == 4
  const auto x = reinterpret_cast<float32x4_t>(v);
  if constexpr (kMode == 0) return reinterpret_cast<VF>(vrndnq_f32(x));
  if constexpr (kMode == 1) return reinterpret_cast<VF>(vrndmq_f32(x));
  if constexpr (kMode == 2) return reinterpret_cast<VF>(vrndpq_f32(x));
  return reinterpret_cast<VF>(vrndq_f32(x));
#else
  VF r{};
  for (int i = 0; i < kLanes; ++i) {
    r[i] = kMode == 0   ? __builtin_nearbyintf(v[i])
           : kMode == 1 ? __builtin_floorf(v[i])
           : kMode == 2 ? __builtin_ceilf(v[i])
                        : __builtin_truncf(v[i]);
  }
  return r;
#endif
}

/// Truncating conversion. Lanes outside the int32 range are unspecified.
RLX_INLINE VI to_i(VF v) { return __builtin_convertvector(v, VI); }
RLX_INLINE VF to_f(VI v) { return __builtin_convertvector(v, VF); }

RLX_INLINE VF16Bit low_half(VF v) {
#if RLX_LANES == 16
  return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
#elif RLX_LANES == 8
  return __builtin_shufflevector(v, v, 0, 1, 2, 3);
#else
  return __builtin_shufflevector(v, v, 0, 1);
#endif
}
RLX_INLINE VF16Bit high_half(VF v) {
#if RLX_LANES == 16
  return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#elif RLX_LANES == 8
  return __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
  return __builtin_shufflevector(v, v, 2, 3);
#endif
}
RLX_INLINE VF combine(VF16Bit lo, VF16Bit hi) {
#if RLX_LANES == 16
  return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#elif RLX_LANES == 8
  return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7);
#else
  return __builtin_shufflevector(lo, hi, 0, 1, 2, 3);
#endif
}
RLX_INLINE VD to_d(VF16Bit v) { return __builtin_convertvector(v, VD); }
RLX_INLINE VF16Bit to_half(VD v) { return __builtin_convertvector(v, VF16Bit); }

/// Interleaves the low halves: a0 b0 a1 b1 ...
RLX_INLINE VF zip_low(VF a, VF b) {
#if RLX_LANES == 16
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif RLX_LANES == 8
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
/// Interleaves the high halves.
RLX_INLINE VF zip_high(VF a, VF b) {
#if RLX_LANES == 16
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif RLX_LANES == 8
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

RLX_INLINE VD zip_low(VD a, VD b) {
#if RLX_LANES == 16
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#elif RLX_LANES == 8
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#else
  return __builtin_shufflevector(a, b, 0, 2);
#endif
}
RLX_INLINE VD zip_high(VD a, VD b) {
#if RLX_LANES == 16
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#elif RLX_LANES == 8
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#else
  return __builtin_shufflevector(a, b, 1, 3);
#endif
}

/// The lanes in reverse order.
RLX_INLINE VF reversed(VF v) {
#if RLX_LANES == 16
  return __builtin_shufflevector(v, v, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#elif RLX_LANES == 8
  return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
#else
  return __builtin_shufflevector(v, v, 3, 2, 1, 0);
#endif
}
RLX_INLINE VD reversed(VD v) {
#if RLX_LANES == 16
  return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
#elif RLX_LANES == 8
  return __builtin_shufflevector(v, v, 3, 2, 1, 0);
#else
  return __builtin_shufflevector(v, v, 1, 0);
#endif
}

#if RLX_ISA_ID == 2 || RLX_ISA_ID == 3
// unpack_low and unpack_high interleave elements (pairs of F32 for VD) of a and b within each quarter of 16 bytes.
// shuffle_quarters selects quarters of a and b. Each is one instruction. A shuffle across the whole vector takes two
// instructions, or one with three cycles of latency.
#define RLX_SHUFFLE(name, V, of, op) \
  RLX_INLINE V name(V a, V b) { return reinterpret_cast<V>(op(reinterpret_cast<of>(a), reinterpret_cast<of>(b))); }
#if RLX_ISA_ID == 3
RLX_SHUFFLE(unpack_low, VF, __m512, _mm512_unpacklo_ps)
RLX_SHUFFLE(unpack_high, VF, __m512, _mm512_unpackhi_ps)
RLX_SHUFFLE(unpack_low, VD, __m512d, _mm512_unpacklo_pd)
RLX_SHUFFLE(unpack_high, VD, __m512d, _mm512_unpackhi_pd)
template <int kWhich, class V>
RLX_INLINE V shuffle_quarters(V a, V b) {
  return reinterpret_cast<V>(_mm512_shuffle_f32x4(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), kWhich));
}
#else
RLX_SHUFFLE(unpack_low, VF, __m256, _mm256_unpacklo_ps)
RLX_SHUFFLE(unpack_high, VF, __m256, _mm256_unpackhi_ps)
RLX_SHUFFLE(unpack_low, VD, __m256d, _mm256_unpacklo_pd)
RLX_SHUFFLE(unpack_high, VD, __m256d, _mm256_unpackhi_pd)
template <int kWhich, class V>
RLX_INLINE V shuffle_quarters(V a, V b) {
  return reinterpret_cast<V>(_mm256_permute2f128_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), kWhich));
}
#endif
#undef RLX_SHUFFLE
#endif

/// Transposes a square of N vectors of N lanes in registers.
template <class V, int N>
RLX_INLINE void transpose(V (&v)[N]) {
#if RLX_ISA_ID == 2 || RLX_ISA_ID == 3
  // Transpose within quarters of 16 bytes first, then transpose the quarters.
  constexpr int kQuarters = sizeof(V) / 16, kRows = N / kQuarters;
  RLX_UNROLL(8)
  for (int i = 0; i < N; i += 2) {
    const V a = v[i], b = v[i + 1];
    v[i] = unpack_low(a, b), v[i + 1] = unpack_high(a, b);
  }
  if constexpr (kRows == 4) {
    RLX_UNROLL(4)
    for (int i = 0; i < N; i += 4) {
      const VD a = reinterpret_cast<VD>(v[i]), b = reinterpret_cast<VD>(v[i + 2]), c = reinterpret_cast<VD>(v[i + 1]),
               d = reinterpret_cast<VD>(v[i + 3]);
      v[i] = reinterpret_cast<V>(unpack_low(a, b)), v[i + 1] = reinterpret_cast<V>(unpack_high(a, b));
      v[i + 2] = reinterpret_cast<V>(unpack_low(c, d)), v[i + 3] = reinterpret_cast<V>(unpack_high(c, d));
    }
  }
  RLX_UNROLL(4)
  for (int j = 0; j < kRows; ++j) {
#if RLX_ISA_ID == 3
    const V a = v[j], b = v[kRows + j], c = v[2 * kRows + j], d = v[3 * kRows + j];
    const V even = shuffle_quarters<0x88>(a, b), odd = shuffle_quarters<0xdd>(a, b),
            even_low = shuffle_quarters<0x88>(c, d), odd_low = shuffle_quarters<0xdd>(c, d);
    v[j] = shuffle_quarters<0x88>(even, even_low), v[kRows + j] = shuffle_quarters<0x88>(odd, odd_low);
    v[2 * kRows + j] = shuffle_quarters<0xdd>(even, even_low), v[3 * kRows + j] = shuffle_quarters<0xdd>(odd, odd_low);
#else
    const V a = v[j], b = v[kRows + j];
    v[j] = shuffle_quarters<0x20>(a, b), v[kRows + j] = shuffle_quarters<0x31>(a, b);
#endif
  }
#else
  V t[N];
  RLX_UNROLL(4)
  for (int width = N; width > 1; width /= 2) {
    RLX_UNROLL(16)
    for (int i = 0; i < N / 2; ++i) {
      t[2 * i] = zip_low(v[i], v[i + N / 2]);
      t[2 * i + 1] = zip_high(v[i], v[i + N / 2]);
    }
    RLX_UNROLL(16)
    for (int i = 0; i < N; ++i) v[i] = t[i];
  }
#endif
}

/// Lane i of the result is lane i ^ kBlock: neighbouring blocks of kBlock lanes are swapped.
template <int kBlock>
RLX_INLINE VF swap_blocks(VF v) {
#if RLX_LANES == 16
  return __builtin_shufflevector(v, v, 0 ^ kBlock, 1 ^ kBlock, 2 ^ kBlock, 3 ^ kBlock, 4 ^ kBlock, 5 ^ kBlock,
                                 6 ^ kBlock, 7 ^ kBlock, 8 ^ kBlock, 9 ^ kBlock, 10 ^ kBlock, 11 ^ kBlock, 12 ^ kBlock,
                                 13 ^ kBlock, 14 ^ kBlock, 15 ^ kBlock);
#elif RLX_LANES == 8
  return __builtin_shufflevector(v, v, 0 ^ kBlock, 1 ^ kBlock, 2 ^ kBlock, 3 ^ kBlock, 4 ^ kBlock, 5 ^ kBlock,
                                 6 ^ kBlock, 7 ^ kBlock);
#else
  return __builtin_shufflevector(v, v, 0 ^ kBlock, 1 ^ kBlock, 2 ^ kBlock, 3 ^ kBlock);
#endif
}

/// Sum of all lanes as a binary tree: each step adds the upper half of the lanes to the lower half.
RLX_INLINE float reduce_add(VF v) {
#if RLX_LANES >= 16
  v = v + swap_blocks<8>(v);
#endif
#if RLX_LANES >= 8
  v = v + swap_blocks<4>(v);
#endif
  v = v + swap_blocks<2>(v);
  return v[0] + v[1];
}

/// Largest lane; lanes must not be NaN.
RLX_INLINE float reduce_max(VF v) {
#if RLX_LANES >= 16
  v = max(v, swap_blocks<8>(v));
#endif
#if RLX_LANES >= 8
  v = max(v, swap_blocks<4>(v));
#endif
  v = max(v, swap_blocks<2>(v));
  return v[0] > v[1] ? v[0] : v[1];
}

/// True when any lane of a comparison result is set.
RLX_INLINE bool any(VI mask) {
#if RLX_ISA_ID == 3
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask)) != 0;
#elif RLX_ISA_ID == 2
  return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0;
#elif RLX_ISA_ID == 1
  return _mm_movemask_ps(reinterpret_cast<__m128>(mask)) != 0;
#else
  std::int32_t r = 0;
  for (int i = 0; i < kLanes; ++i) r |= mask[i];
  return r != 0;
#endif
}

/// 0, 1, 2, ...
RLX_INLINE VI iota_i() {
#if RLX_LANES == 16
  return VI{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif RLX_LANES == 8
  return VI{0, 1, 2, 3, 4, 5, 6, 7};
#else
  return VI{0, 1, 2, 3};
#endif
}

/// Prevents the compiler from fusing the multiplication that made x with a later addition.
RLX_INLINE VF rounded(VF x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}

/// p * 2^n for integral n in about [-170, 150], with one rounding into the denormals.
RLX_INLINE VF scale(VF p, VF n) {
#if RLX_ISA_ID == 3
  return reinterpret_cast<VF>(_mm512_scalef_ps(reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(n)));
#else
  const VI k = to_i(n);
  const VI half = k >> 1;
  return p * as_f((half + 127) << 23) * as_f((k - half + 127) << 23);
#endif
}

/// x > 0 as m 2^n with m in [sqrt(1/2), sqrt(2)); other x as some numbers.
template <class V>
struct Split {
  V m, n;
};
RLX_INLINE Split<VF> split(VF x) {
  const VI tiny = x < 1.17549435e-38F;
  const VF scaled = select(tiny, x * 8388608.0F, x);
  const VU bits = reinterpret_cast<VU>(scaled);  // unsigned: negative x and NaN wrap
  const VI e = reinterpret_cast<VI>(bits - 0x3f3504f3U) >> 23;
  return {reinterpret_cast<VF>(bits - (reinterpret_cast<VU>(e) << 23)), to_f(e - (tiny & 23))};
}
/// `split` of normal x > 0, in fewer steps.
RLX_INLINE Split<VF> split_normal(VF x) {
  const VU bits = reinterpret_cast<VU>(x);
  const VI e = reinterpret_cast<VI>(bits - 0x3f3504f3U) >> 23;
  return {reinterpret_cast<VF>(bits - (reinterpret_cast<VU>(e) << 23)), to_f(e)};
}
template <int kBits>
RLX_INLINE VF without_low_bits(VF x) {
  return as_f(as_i(x) & ~((1 << kBits) - 1));
}

}  // namespace rlx::cpu::RLX_ISA

#include "rlx/backends/cpu/simd_f64.h"
