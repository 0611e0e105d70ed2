// Conversion of blocks of elements between any dtype and the compute type of generic kernels.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "rlx/tensor/visit.h"

namespace rlx::cpu {

/// Elements a generic kernel converts at a time.
inline constexpr int kGenericBlock = 256;

/// Calls f(A{}) with the compute type of `t` in generic kernels: double, int64, uint64 (also Bool) or complex<double>.
template <class F>
decltype(auto) visit_f64(DType t, F&& f) {
  if (is_complex(t)) return f(std::complex<double>{});
  if (is_signed_int(t)) return f(std::int64_t{});
  if (is_unsigned_int(t) || t == DType::Bool) return f(std::uint64_t{});
  return f(double{});  // floats; double holds all storage types exactly
}

/// out[i] = base[at + i * step], `n` elements.
template <class A>
using LoadBlock = void (*)(const void* base, std::int64_t at, std::int64_t step, int n, A* out);
/// base[at + i * step] = in[i], converted by the rules of `Tensor::cast`.
template <class A>
using StoreBlock = void (*)(void* base, std::int64_t at, std::int64_t step, int n, const A* in);

template <class A>
LoadBlock<A> load_block(DType t);
template <class A>
StoreBlock<A> store_block(DType t);

namespace detail {
template <class A, class T>
void load_typed(const void* base, std::int64_t at, std::int64_t step, int n, A* out) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::uint8_t* p = static_cast<const std::uint8_t*>(base) + at;
    for (int i = 0; i < n; ++i) out[i] = A(p[i * step] != 0);
  } else {
    const T* p = static_cast<const T*>(base) + at;
    for (int i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) {
        out[i] = convert_element<A>(static_cast<double>(static_cast<float>(p[i * step])));
      } else if constexpr (std::is_same_v<T, std::complex<float>>) {
        out[i] = convert_element<A>(std::complex<double>(p[i * step]));
      } else {
        out[i] = convert_element<A>(p[i * step]);
      }
    }
  }
}
template <class A, class T>
void store_typed(void* base, std::int64_t at, std::int64_t step, int n, const A* in) {
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t* p = static_cast<std::uint8_t*>(base) + at;
    for (int i = 0; i < n; ++i) p[i * step] = convert_element<bool>(in[i]) ? 1 : 0;
  } else {
    T* p = static_cast<T*>(base) + at;
    for (int i = 0; i < n; ++i) p[i * step] = convert_element<T>(in[i]);
  }
}
template <class A, DType T>
void load_storage(const void* base, std::int64_t at, std::int64_t step, int n, A* out) {
  for (int i = 0; i < n; ++i) out[i] = load_element<A>(static_cast<const std::byte*>(base), T, at + i * step);
}
template <class A, DType T>
void store_storage(void* base, std::int64_t at, std::int64_t step, int n, const A* in) {
  for (int i = 0; i < n; ++i) store_element(static_cast<std::byte*>(base), T, at + i * step, in[i]);
}
}  // namespace detail

template <class A>
LoadBlock<A> load_block(DType t) {
  switch (t) {
    case DType::F8E4M3: return detail::load_storage<A, DType::F8E4M3>;
    case DType::F8E5M2: return detail::load_storage<A, DType::F8E5M2>;
    case DType::I4: return detail::load_storage<A, DType::I4>;
    case DType::U4: return detail::load_storage<A, DType::U4>;
    case DType::F4E2M1: return detail::load_storage<A, DType::F4E2M1>;
    default: return visit_dtype(t, []<class T>(T) -> LoadBlock<A> { return detail::load_typed<A, T>; });
  }
}
template <class A>
StoreBlock<A> store_block(DType t) {
  switch (t) {
    case DType::F8E4M3: return detail::store_storage<A, DType::F8E4M3>;
    case DType::F8E5M2: return detail::store_storage<A, DType::F8E5M2>;
    case DType::I4: return detail::store_storage<A, DType::I4>;
    case DType::U4: return detail::store_storage<A, DType::U4>;
    case DType::F4E2M1: return detail::store_storage<A, DType::F4E2M1>;
    default: return visit_dtype(t, []<class T>(T) -> StoreBlock<A> { return detail::store_typed<A, T>; });
  }
}

/// a + b and a * b; integers wrap.
template <class A>
A add_vd(A a, A b) {
  if constexpr (std::is_same_v<A, std::int64_t>)
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}
template <class A>
A sub_vd(A a, A b) {
  if constexpr (std::is_same_v<A, std::int64_t>)
    return static_cast<A>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  else
    return a - b;
}
template <class A>
A mul_vd(A a, A b) {
  if constexpr (std::is_same_v<A, std::int64_t>)
    return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}
/// True when `v` replaces `best` as the maximum (minimum). A NaN replaces every number and stays.
template <class A>
bool wide_beats(A v, A best, bool maximum) {
  if constexpr (std::is_same_v<A, std::complex<double>>) {
    return false;
  } else {
    if constexpr (std::is_same_v<A, double>) {
      if (std::isnan(best)) return false;
      if (std::isnan(v)) return true;
    }
    return maximum ? v > best : v < best;
  }
}
/// The maximum (minimum) of no elements in dtype `t`.
template <class A>
A wide_extreme(DType t, bool maximum) {
  if constexpr (std::is_same_v<A, double>) {
    return maximum ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  } else if constexpr (std::is_same_v<A, std::uint64_t>) {
    if (t == DType::Bool) return maximum ? 0 : 1;
    return maximum ? 0 : ~std::uint64_t{0} >> (64 - dtype_bits(t));
  } else if constexpr (std::is_same_v<A, std::int64_t>) {
    const auto high = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - dtype_bits(t)));
    return maximum ? -high - 1 : high;
  } else {
    return A{};
  }
}

}  // namespace rlx::cpu
