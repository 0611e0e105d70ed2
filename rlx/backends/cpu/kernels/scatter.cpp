// Loops over updates, for the compiler to make vectors of.
#include "rlx/backends/cpu/kernels/scatter.h"

#include <type_traits>

namespace rlx::cpu {
namespace {

template <class E>
struct Updates {
  const std::int64_t* at;
  std::int64_t count, size;
  const E* from;
  E* to;
  std::int64_t n;

  template <class F>
  void each(F put) const {
    for (std::int64_t j = 0; j < count; ++j) {
      if (at[j] < 0) continue;
      E* __restrict y = to + at[j];
      const E* __restrict v = from + j * size;
      if (n == 1)
        *y = put(*y, *v);
      else
        for (std::int64_t k = 0; k < n; ++k) y[k] = put(y[k], v[k]);
    }
  }
  void run(ScatterKind fn) const {
    using V = typename std::conditional_t<std::is_integral_v<E>, std::make_unsigned<E>, std::type_identity<E>>::type;
    if (fn == ScatterKind::Set)
      each([](E, E v) { return v; });
    else if (fn == ScatterKind::Add)
      each([](E y, E v) { return static_cast<E>(static_cast<V>(y) + static_cast<V>(v)); });
    else
      each([](E y, E v) { return static_cast<E>(static_cast<V>(y) * static_cast<V>(v)); });
  }
};

}  // namespace

bool puts_updates(DType t, ScatterKind fn) {
  return dtype_bits(t) >= 32 && dtype_bits(t) <= 64 && !is_complex(t) && fn != ScatterKind::Min &&
         fn != ScatterKind::Max;
}

void put_updates(DType t, ScatterKind fn, const std::int64_t* at, std::int64_t count, std::int64_t size,
                 const void* updates, std::int64_t update_base, void* y, std::int64_t y_base, std::int64_t n) {
  const auto as = [&]<class E>(E) {
    Updates<E>{at, count, size, static_cast<const E*>(updates) + update_base, static_cast<E*>(y) + y_base, n}.run(fn);
  };
  switch (t) {
    case DType::F32: return as(float{});
    case DType::F64: return as(double{});
    case DType::I32:
    case DType::U32: return as(std::int32_t{});
    default: return as(std::int64_t{});
  }
}

}  // namespace rlx::cpu
