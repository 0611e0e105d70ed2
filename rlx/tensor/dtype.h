// Element types: names, sizes, classes and the promotion table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rlx {

/// Element type of a tensor. The types after C128 are storage only: cast before computing with them.
enum class DType : std::uint8_t {
  Bool,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  BF16,
  F16,
  F32,
  F64,
  C64,
  C128,
  F8E4M3,
  F8E5M2,
  I4,
  U4,
  F4E2M1,
};
inline constexpr int kNumDTypes = 20;

namespace detail {
[[noreturn]] void throw_no_dtype(DType t);
[[noreturn]] void throw_no_count(std::int64_t count);
}  // namespace detail

/// `t`. Throws DTypeMismatch for a value that is not an enumerator.
constexpr DType checked_dtype(DType t) {
  if (static_cast<int>(t) >= kNumDTypes) detail::throw_no_dtype(t);
  return t;
}

/// Bits of one element. The 4-bit types pack two elements per byte, low nibble first. Throws as checked_dtype.
constexpr int dtype_bits(DType t) {
  constexpr int bits[kNumDTypes] = {8, 8, 16, 32, 64, 8, 16, 32, 64, 16, 16, 32, 64, 64, 128, 8, 8, 4, 4, 4};
  return bits[static_cast<int>(checked_dtype(t))];
}
/// Bytes of one element; 0 for the packed 4-bit types.
constexpr std::size_t size_bytes(DType t) { return static_cast<std::size_t>(dtype_bits(t) / 8); }
/// The alignment of an element's address: the size of its C++ type, or of one part of a complex number; 1 for the
/// packed 4-bit types.
constexpr std::size_t alignment_of(DType t) {
  const std::size_t bytes = size_bytes(t);
  return t == DType::C64 || t == DType::C128 ? bytes / 2 : bytes == 0 ? 1 : bytes;
}
/// An upper limit of the number of elements of a tensor. Their bytes stay below 2^64 in every dtype.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 60;
/// Bytes of `count` contiguous elements. Throws InvalidArgument for a count outside [0, kMaxElements).
constexpr std::size_t size_bytes(DType t, std::int64_t count) {
  if (count < 0 || count >= kMaxElements) detail::throw_no_count(count);
  const auto n = static_cast<std::size_t>(count), bits = static_cast<std::size_t>(dtype_bits(t));
  return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

constexpr bool is_float(DType t) { return t >= DType::BF16 && t <= DType::F64; }
constexpr bool is_signed_int(DType t) { return t >= DType::I8 && t <= DType::I64; }
constexpr bool is_unsigned_int(DType t) { return t >= DType::U8 && t <= DType::U64; }
constexpr bool is_int(DType t) { return t >= DType::I8 && t <= DType::U64; }
constexpr bool is_complex(DType t) { return t == DType::C64 || t == DType::C128; }
constexpr bool is_storage_only(DType t) { return t >= DType::F8E4M3; }
/// True for types whose derivative exists (floats and complex).
constexpr bool is_inexact(DType t) { return is_float(t) || is_complex(t); }
/// I32 or I64: the dtypes of gather indices, labels and lengths.
constexpr bool is_index(DType t) { return t == DType::I32 || t == DType::I64; }
/// The real dtype of a complex one (C64 -> F32, C128 -> F64). Other types are returned unchanged.
constexpr DType real_dtype(DType t) { return t == DType::C64 ? DType::F32 : t == DType::C128 ? DType::F64 : t; }
/// The accumulator type of reductions: at least F32 for floats, I64 / U64 for integers.
constexpr DType accumulator_dtype(DType t) {
  if (t == DType::BF16 || t == DType::F16) return DType::F32;
  if (is_signed_int(t)) return DType::I64;
  if (is_unsigned_int(t) || t == DType::Bool) return DType::U64;
  return t;
}

/// How the bits of a storage type are read.
enum class ElementSubtype : std::uint8_t { Standard, Fp8E4m3, Fp8E5m2 };

/// A dtype with the properties of stored values that it does not express: the FP8 format of the bytes, and whether
/// writing saturates. Metadata only; FP8 values have dtypes of their own, from which they are cast.
struct Element {
  DType dtype = DType::F32;
  ElementSubtype subtype = ElementSubtype::Standard;
  bool saturating = false;

  static constexpr Element of(DType t) { return {t, ElementSubtype::Standard, false}; }
  static constexpr Element fp8_e4m3() { return {DType::U8, ElementSubtype::Fp8E4m3, true}; }
  static constexpr Element fp8_e5m2() { return {DType::U8, ElementSubtype::Fp8E5m2, true}; }
  /// The dtype of the values that the bytes hold.
  constexpr DType value_dtype() const {
    return subtype == ElementSubtype::Fp8E4m3   ? DType::F8E4M3
           : subtype == ElementSubtype::Fp8E5m2 ? DType::F8E5M2
                                                : dtype;
  }
  friend bool operator==(const Element&, const Element&) = default;
};

/// The lower-case name in text form: "f32", "bool", "f8e4m3". Throws as checked_dtype.
std::string_view dtype_name(DType t);
/// The dtype with that name, or none.
std::optional<DType> parse_dtype(std::string_view name);

/// The dtype to which both operands are cast, by JAX's promotion lattice with 64-bit types enabled. None when the pair
/// has no promotion (storage-only types must be cast explicitly).
std::optional<DType> promote(DType a, DType b);
/// The dtype of a Python or C++ scalar beside a tensor of dtype `t` (weak typing: the tensor's dtype wins unless the
/// scalar is of a higher class).
DType promote_weak_float(DType t);
DType promote_weak_int(DType t);

}  // namespace rlx
