// Lines of keys of any dtype as what the kernels of order (kernels/sort.h) sort: for the rows of sorts and of the
// largest. The kernels order numbers alone; NaN, zeros of both signs and the places of equal keys are brought in by the
// rows.
#pragma once

#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernels/generic_blocks.h"
#include "rlx/backends/cpu/kernels/sort.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/tensor/half.h"

namespace rlx::cpu {

/// Lowers TopK.
void lower_top_k(LowerContext& c);

/// Calls f with a value of the type that keys are sorted as.
template <class F>
void visit_sorted(DType t, F&& f) {
  switch (t) {
    case DType::F32:
    case DType::F16:
    case DType::BF16: return f(float{});
    case DType::F64: return f(double{});
    case DType::I64:
    case DType::U64: return f(std::int64_t{});
    default: return f(std::int32_t{});
  }
}

// An unsigned integer as the signed one of the same order, and back.
template <class W>
W turned(W v) {
  if constexpr (std::is_integral_v<W>)
    return static_cast<W>(static_cast<std::make_unsigned_t<W>>(v) ^ std::make_unsigned_t<W>{1} << (8 * sizeof(W) - 1));
  else
    return v;
}

template <class W, class E>
void load_as(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, W* out) {
  const E* p = static_cast<const E*>(x) + at;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<E, bool>)
      out[i] = static_cast<W>(static_cast<const std::uint8_t*>(x)[at + i * step] != 0);
    else if constexpr (sizeof(E) == sizeof(W) && std::is_unsigned_v<E>)
      out[i] = turned(static_cast<W>(p[i * step]));
    else
      out[i] = static_cast<W>(p[i * step]);
  }
}
template <class W, class E>
void store_as(const W* in, std::int64_t n, void* y, std::int64_t at, std::int64_t step) {
  E* p = static_cast<E*>(y) + at;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (sizeof(E) == sizeof(W) && std::is_unsigned_v<E>)
      p[i * step] = static_cast<E>(turned(in[i]));
    else
      p[i * step] = static_cast<E>(in[i]);
  }
}

template <class W>
struct KeyLine {
  void (*load)(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, W* out) = nullptr;
  void (*store)(const W* in, std::int64_t n, void* y, std::int64_t at, std::int64_t step) = nullptr;
};
template <class W>
KeyLine<W> key_line(DType t) {
  const auto of = []<class E>(E) { return KeyLine<W>{load_as<W, E>, store_as<W, E>}; };
  if constexpr (std::is_same_v<W, float>) {
    return t == DType::F32 ? of(float{}) : t == DType::F16 ? of(F16{}) : of(BF16{});
  } else if constexpr (std::is_same_v<W, double>) {
    return of(double{});
  } else if constexpr (std::is_same_v<W, std::int64_t>) {
    return t == DType::I64 ? of(std::int64_t{}) : of(std::uint64_t{});
  } else {
    switch (t) {
      case DType::Bool: return {load_as<W, bool>, store_as<W, std::uint8_t>};
      case DType::I8: return of(std::int8_t{});
      case DType::U8: return of(std::uint8_t{});
      case DType::I16: return of(std::int16_t{});
      case DType::U16: return of(std::uint16_t{});
      case DType::U32: return of(std::uint32_t{});
      default: return of(std::int32_t{});
    }
  }
}

inline void sort_numbers(const SortKernels& k, float* x, std::int64_t n, float* s) { k.sort_f32(x, n, s); }
inline void sort_numbers(const SortKernels& k, double* x, std::int64_t n, double* s) { k.sort_f64(x, n, s); }
inline void sort_numbers(const SortKernels& k, std::int32_t* x, std::int64_t n, std::int32_t* s) {
  k.sort_i32(x, n, s);
}
inline void sort_numbers(const SortKernels& k, std::int64_t* x, std::int64_t n, std::int64_t* s) {
  k.sort_i64(x, n, s);
}

// Scratch in parts, each 64-byte aligned.
struct ScratchParts {
  std::byte* at;
  template <class T>
  T* take(std::int64_t n) {
    std::byte* here = at;
    at += bytes<T>(n);
    return reinterpret_cast<T*>(here);
  }
  template <class T>
  static std::size_t bytes(std::int64_t n) {
    return (static_cast<std::size_t>(n + kSortSlack) * sizeof(T) + 63) / 64 * 64;
  }
};

// -- keys with their places --

/// order[i] & the mask given back: the place of the i-th key, ascending, equal ones as they lie.
inline std::int64_t order_keys(const SortKernels& k, const std::int32_t* keys, std::int64_t n, std::int64_t* order,
                               std::int64_t* scratch) {
  // Keys of a byte are counted.
  constexpr std::int64_t kCounted = 256;
  std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = std::numeric_limits<std::int32_t>::min();
  for (std::int64_t i = 0; i < n; ++i) low = std::min(low, keys[i]), high = std::max(high, keys[i]);
  if (n >= kCounted && std::int64_t{high} - low < kCounted) {
    std::int64_t at[kCounted] = {};
    for (std::int64_t i = 0; i < n; ++i) ++at[keys[i] - low];
    std::int64_t sum = 0;
    for (std::int64_t& count : at) sum += std::exchange(count, sum);
    for (std::int64_t i = 0; i < n; ++i) order[at[keys[i] - low]++] = i;
    return 0xFFFFFFFF;
  }
  k.pack_i32(keys, n, order);
  k.sort_i64(order, n, scratch);
  return 0xFFFFFFFF;
}
// As many of the upper bits of keys as places leave room for; keys that have the same are ordered among themselves.
inline std::int64_t order_keys(const SortKernels& k, const std::int64_t* keys, std::int64_t n, std::int64_t* order,
                               std::int64_t* scratch) {
  if (n == 0) return 0;
  std::int64_t low = keys[0], high = keys[0];
  for (std::int64_t i = 1; i < n; ++i) low = std::min(low, keys[i]), high = std::max(high, keys[i]);
  const std::uint64_t least = static_cast<std::uint64_t>(low), range = static_cast<std::uint64_t>(high) - least;
  const int places = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1))));
  const int lost = std::max(0, static_cast<int>(std::bit_width(range)) + places - 64);
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  for (std::int64_t i = 0; i < n; ++i)
    order[i] = static_cast<std::int64_t>(
        (((static_cast<std::uint64_t>(keys[i]) - least) >> lost) << places | static_cast<std::uint64_t>(i)) ^ kSign);
  k.sort_i64(order, n, scratch);
  const std::int64_t mask = (std::int64_t{1} << places) - 1;
  if (lost == 0) return mask;
  const auto before = [keys, mask](std::int64_t a, std::int64_t b) {
    const std::int64_t ka = keys[a & mask], kb = keys[b & mask];
    return ka != kb ? ka < kb : (a & mask) < (b & mask);
  };
  for (std::int64_t i = 0; i < n;) {
    std::int64_t end = i + 1;
    while (end < n && order[end] >> places == order[i] >> places) ++end;
    if (end - i > 1) std::sort(order + i, order + end, before);
    i = end;
  }
  return mask;
}

inline void make_keys(const SortKernels& k, const float* x, std::int64_t n, bool descending, std::int32_t* keys) {
  k.keys_f32(x, n, descending, keys);
}
inline void make_keys(const SortKernels& k, const double* x, std::int64_t n, bool descending, std::int64_t* keys) {
  k.keys_f64(x, n, descending, keys);
}
template <class W>
void make_keys(const SortKernels&, const W* x, std::int64_t n, bool descending, W* keys) {
  for (std::int64_t i = 0; i < n; ++i) keys[i] = descending ? ~x[i] : x[i];
}

template <class W>
using KeyOf = std::conditional_t<sizeof(W) == 4, std::int32_t, std::int64_t>;

}  // namespace rlx::cpu
