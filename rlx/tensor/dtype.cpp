// Names and promotion of element types.
#include "rlx/tensor/dtype.h"

#include "rlx/error.h"

namespace rlx {
namespace {
constexpr std::string_view kDTypeNames[kNumDTypes] = {"bool", "i8",     "i16",    "i32", "i64", "u8",    "u16",
                                                      "u32",  "u64",    "bf16",   "f16", "f32", "f64",   "c64",
                                                      "c128", "f8e4m3", "f8e5m2", "i4",  "u4",  "f4e2m1"};

int int_rank(DType t) { return dtype_bits(t); }

std::optional<DType> promote_ints(DType a, DType b) {
  if (is_signed_int(a) == is_signed_int(b)) return int_rank(a) >= int_rank(b) ? a : b;
  DType s = is_signed_int(a) ? a : b;
  DType u = is_signed_int(a) ? b : a;
  if (int_rank(s) > int_rank(u)) return s;
  switch (u) {  // the signed type that holds every value of u, as in JAX
    case DType::U8: return DType::I16;
    case DType::U16: return DType::I32;
    case DType::U32: return DType::I64;
    default: return DType::F64;  // u64 with a signed type; JAX gives its weak float, with 64-bit types enabled
  }
}
}  // namespace

void detail::throw_no_dtype(DType t) {
  throw Error(ErrorCode::DTypeMismatch, concat_text(static_cast<int>(t), " is not a DType"),
              "use an enumerator, or parse_dtype for a name");
}

void detail::throw_no_count(std::int64_t count) {
  throw Error(ErrorCode::InvalidArgument, concat_text(count, " is not a valid number of elements"),
              "use 0 to 2^60 - 1");
}

std::string_view dtype_name(DType t) { return kDTypeNames[static_cast<int>(checked_dtype(t))]; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (kDTypeNames[i] == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> promote(DType a, DType b) {
  (void)checked_dtype(a), (void)checked_dtype(b);
  if (a == b) return a;
  if (is_storage_only(a) || is_storage_only(b)) return std::nullopt;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_int(a) && is_int(b)) return promote_ints(a, b);
  if (is_int(a)) return b;
  if (is_int(b)) return a;
  if (is_complex(a) || is_complex(b)) {
    bool wide = a == DType::C128 || b == DType::C128 || a == DType::F64 || b == DType::F64;
    return wide ? DType::C128 : DType::C64;
  }
  if ((a == DType::BF16 && b == DType::F16) || (a == DType::F16 && b == DType::BF16)) return DType::F32;
  return dtype_bits(a) >= dtype_bits(b) ? a : b;
}

DType promote_weak_float(DType t) { return is_inexact(checked_dtype(t)) ? t : DType::F32; }
DType promote_weak_int(DType t) { return checked_dtype(t) == DType::Bool ? DType::I32 : t; }

}  // namespace rlx
