// Maps lines of keys of any dtype to the types of the sort kernels (sort/sort_kernels.h), for the kernel entries of
// sort and TopK. The kernels order only numbers; the entries handle NaN, signed zeros and the indices of equal keys.
#pragma once

#include <type_traits>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/sort/sort_keys_kernels.h"

namespace rlx::cpu {

/// Lowers TopK.
void lower_top_k(LowerContext& c);

/// Calls f with a value of the type that keys without indices are sorted as.
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

/// The same for argsort: F16 and BF16 are integers of their order.
template <class F>
void visit_ordered(DType t, F&& f) {
  if (t == DType::F16 || t == DType::BF16) return f(std::int32_t{});
  visit_sorted(t, f);
}

// Parts of scratch memory, each 64-byte aligned.
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

template <class W>
using KeyOf = std::conditional_t<sizeof(W) == 4, std::int32_t, std::int64_t>;

}  // namespace rlx::cpu
