// Element access by run-time dtype: loads and stores with conversion, and a dispatcher for typed loops.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "rlx/error.h"
#include "rlx/tensor/dtype.h"
#include "rlx/tensor/half.h"

namespace rlx {

namespace detail {
/// The float nearest to v, and the neighbour towards v with an odd significand where v lies between two floats. Rounded
/// to a format of at most 22 bits, it gives what v gives.
template <class From>
float float_rounded_to_odd(From v) {
  if constexpr (std::is_integral_v<From> && sizeof(From) == 8) {
    // Of more than 53 bits the last 11 become one bit that says whether any is set.
    constexpr From kLast = 0x7ff;
    bool wide = v > (From{1} << 53);
    if constexpr (std::is_signed_v<From>) wide = wide || v < -(From{1} << 53);
    if (wide && (v & kLast) != 0) v = static_cast<From>((v & ~kLast) | (kLast + 1));
  }
  const double d = static_cast<double>(v);
  float f = static_cast<float>(d);
  if (std::isfinite(f) && static_cast<double>(f) != d) {
    std::uint32_t u = std::bit_cast<std::uint32_t>(f);
    const bool away = std::fabs(static_cast<double>(f)) > std::fabs(d);
    if ((u & 1u) == 0) u = away ? u - 1 : u + 1;  // the odd neighbour toward d
    f = std::bit_cast<float>(u);
  }
  return f;
}
}  // namespace detail

/// A double, integer or complex converted to T by the rules of `Tensor::cast`.
template <class To, class From>
To convert_element(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<From, std::complex<double>>) {
    if constexpr (std::is_same_v<To, std::complex<float>>)
      return {static_cast<float>(v.real()), static_cast<float>(v.imag())};
    else if constexpr (std::is_same_v<To, bool>)
      return v != From(0);
    else
      return convert_element<To>(v.real());
  } else if constexpr (std::is_same_v<To, std::complex<float>> || std::is_same_v<To, std::complex<double>>) {
    using Part = typename To::value_type;
    return To(static_cast<Part>(v), Part(0));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);  // NaN is not zero: true
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (std::isnan(v)) return To(0);
    // The limits as doubles. 2^63 rounds up, so the comparison uses >=.
    constexpr double low = static_cast<double>(std::numeric_limits<To>::min());
    constexpr double high = static_cast<double>(std::numeric_limits<To>::max());
    if (v <= low) return std::numeric_limits<To>::min();
    if (v >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else if constexpr (std::is_same_v<To, BF16> || std::is_same_v<To, F16>) {
    return To(detail::float_rounded_to_odd(v));
  } else {
    return static_cast<To>(v);
  }
}

namespace detail {
/// The DTypeMismatch that names value, dtype and range when integer dtype `t` (also I4 and U4) does not hold `value`.
/// None when it does.
std::optional<Diagnostic> not_held(DType t, double value);
/// The same for an integer, given by the 64 bits of its two's complement and its sign.
std::optional<Diagnostic> not_held(DType t, std::uint64_t bits, bool negative);
}  // namespace detail

/// Element `i` of a buffer of dtype `t` as T (double, float, int64_t, uint64_t or std::complex<double>).
template <class T>
T load_element(const std::byte* data, DType t, std::int64_t i) {
  auto read = [&]<class E>(E) {
    E e;
    std::memcpy(&e, data + static_cast<std::size_t>(i) * sizeof(E), sizeof(E));
    return e;
  };
  auto nibble = [&] {
    auto byte = static_cast<std::uint8_t>(data[static_cast<std::size_t>(i / 2)]);
    return static_cast<std::uint8_t>(i % 2 ? byte >> 4 : byte & 15);
  };
  switch (t) {
    case DType::Bool: return convert_element<T>(std::int64_t{read(std::uint8_t{}) != 0});
    case DType::I8: return convert_element<T>(std::int64_t{read(std::int8_t{})});
    case DType::I16: return convert_element<T>(std::int64_t{read(std::int16_t{})});
    case DType::I32: return convert_element<T>(std::int64_t{read(std::int32_t{})});
    case DType::I64: return convert_element<T>(read(std::int64_t{}));
    case DType::U8: return convert_element<T>(std::int64_t{read(std::uint8_t{})});
    case DType::U16: return convert_element<T>(std::int64_t{read(std::uint16_t{})});
    case DType::U32: return convert_element<T>(std::int64_t{read(std::uint32_t{})});
    case DType::U64: return convert_element<T>(read(std::uint64_t{}));
    case DType::BF16: return convert_element<T>(static_cast<double>(bf16_bits_to_float(read(std::uint16_t{}))));
    case DType::F16: return convert_element<T>(static_cast<double>(f16_bits_to_float(read(std::uint16_t{}))));
    case DType::F32: return convert_element<T>(static_cast<double>(read(float{})));
    case DType::F64: return convert_element<T>(read(double{}));
    case DType::C64: return convert_element<T>(std::complex<double>(read(std::complex<float>{})));
    case DType::C128: return convert_element<T>(read(std::complex<double>{}));
    case DType::F8E4M3: return convert_element<T>(static_cast<double>(f8e4m3_bits_to_float(read(std::uint8_t{}))));
    case DType::F8E5M2: return convert_element<T>(static_cast<double>(f8e5m2_bits_to_float(read(std::uint8_t{}))));
    case DType::I4: return convert_element<T>(std::int64_t{static_cast<std::int8_t>(nibble() << 4) >> 4});
    case DType::U4: return convert_element<T>(std::int64_t{nibble()});
    case DType::F4E2M1: return convert_element<T>(static_cast<double>(f4e2m1_bits_to_float(nibble())));
  }
  return T{};
}

/// Writes v (double, integer or std::complex<double>) as element `i` of a buffer of dtype `t`.
template <class V>
void store_element(std::byte* data, DType t, std::int64_t i, V v) {
  auto write = [&](auto e) { std::memcpy(data + static_cast<std::size_t>(i) * sizeof(e), &e, sizeof(e)); };
  auto nibble = [&](std::uint8_t n) {
    auto& byte = data[static_cast<std::size_t>(i / 2)];
    auto old = static_cast<std::uint8_t>(byte);
    byte = static_cast<std::byte>(i % 2 ? (old & 0x0f) | (n << 4) : (old & 0xf0) | (n & 15));
  };
  auto narrow = [&](double low, double high) {  // to four bits, by the rules of convert_element
    if constexpr (std::is_integral_v<V>) {
      return static_cast<std::uint8_t>(static_cast<std::uint64_t>(v) & 15);
    } else {
      const double d = convert_element<double>(v);
      return static_cast<std::uint8_t>(static_cast<int>(std::isnan(d) ? 0 : d < low ? low : d > high ? high : d) & 15);
    }
  };
  auto narrow_float = [](const auto& x) {
    if constexpr (std::is_same_v<V, std::complex<double>>)
      return detail::float_rounded_to_odd(x.real());
    else
      return detail::float_rounded_to_odd(x);
  };
  switch (t) {
    case DType::Bool: write(static_cast<std::uint8_t>(convert_element<bool>(v))); break;
    case DType::I8: write(convert_element<std::int8_t>(v)); break;
    case DType::I16: write(convert_element<std::int16_t>(v)); break;
    case DType::I32: write(convert_element<std::int32_t>(v)); break;
    case DType::I64: write(convert_element<std::int64_t>(v)); break;
    case DType::U8: write(convert_element<std::uint8_t>(v)); break;
    case DType::U16: write(convert_element<std::uint16_t>(v)); break;
    case DType::U32: write(convert_element<std::uint32_t>(v)); break;
    case DType::U64: write(convert_element<std::uint64_t>(v)); break;
    case DType::BF16: write(convert_element<BF16>(v).bits); break;
    case DType::F16: write(convert_element<F16>(v).bits); break;
    case DType::F32: write(convert_element<float>(v)); break;
    case DType::F64: write(convert_element<double>(v)); break;
    case DType::C64: write(convert_element<std::complex<float>>(v)); break;
    case DType::C128: write(convert_element<std::complex<double>>(v)); break;
    case DType::F8E4M3: write(float_to_f8e4m3_bits(narrow_float(v))); break;
    case DType::F8E5M2: write(float_to_f8e5m2_bits(narrow_float(v))); break;
    case DType::I4: nibble(narrow(-8, 7)); break;
    case DType::U4: nibble(narrow(0, 15)); break;
    case DType::F4E2M1: nibble(float_to_f4e2m1_bits(narrow_float(v))); break;
  }
}

/// Calls f(T{}) with the C++ type of a dtype that has one (Bool..F64, BF16, F16, C64, C128). Throws Unsupported
/// otherwise.
template <class F>
decltype(auto) visit_dtype(DType t, F&& f) {
  switch (t) {
    case DType::Bool: return f(bool{});
    case DType::I8: return f(std::int8_t{});
    case DType::I16: return f(std::int16_t{});
    case DType::I32: return f(std::int32_t{});
    case DType::I64: return f(std::int64_t{});
    case DType::U8: return f(std::uint8_t{});
    case DType::U16: return f(std::uint16_t{});
    case DType::U32: return f(std::uint32_t{});
    case DType::U64: return f(std::uint64_t{});
    case DType::BF16: return f(BF16{});
    case DType::F16: return f(F16{});
    case DType::F32: return f(float{});
    case DType::F64: return f(double{});
    case DType::C64: return f(std::complex<float>{});
    case DType::C128: return f(std::complex<double>{});
    default: break;
  }
  throw Error(ErrorCode::Unsupported, concat_text(dtype_name(t), " is a storage dtype, which cannot be computed with"),
              "cast it to a compute dtype first");
}

}  // namespace rlx
