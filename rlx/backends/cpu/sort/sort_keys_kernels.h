// Loads and stores of sort keys of any dtype, argsort of keys, and moves by the resulting order. These loops are the
// same for every instruction set.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rlx/backends/cpu/reduce/typed_reduce_kernels.h"
#include "rlx/backends/cpu/sort/sort_kernels.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// Loads a line of any dtype as keys of type W: float (F32, F16, BF16), double, int32 (integers up to 32 bits, Bool,
/// order keys of F16 and BF16) or int64. Unsigned integers of the same width are mapped to signed ones of the same
/// order.
template <class W>
struct KeyLine {
  void (*loads)(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, W* out) = nullptr;
  void (*stores)(const W* in, std::int64_t n, void* y, std::int64_t at, std::int64_t step) = nullptr;
  DType half = DType::F32;                       // F16 or BF16: the stored dtype of keys that are sorted as floats
  const TypedReduceKernels* converts = nullptr;  // conversions of `half`; null for other dtypes

  void load(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, W* out) const {
    if constexpr (std::is_same_v<W, float>)
      if (converts != nullptr) return converts->load(half, x, at, step, n, out);
    loads(x, at, step, n, out);
  }
  void store(const W* in, std::int64_t n, void* y, std::int64_t at, std::int64_t step) const {
    if constexpr (std::is_same_v<W, float>)
      if (converts != nullptr) return converts->store(half, in, n, y, at, step);
    stores(in, n, y, at, step);
  }
};
/// W: float, double, int32_t or int64_t.
template <class W>
KeyLine<W> key_line(DType t, Isa isa);

inline void sort_numbers(const SortKernels& k, float* x, std::int64_t n, float* s) { k.sort_f32(x, n, s); }
inline void sort_numbers(const SortKernels& k, double* x, std::int64_t n, double* s) { k.sort_f64(x, n, s); }
inline void sort_numbers(const SortKernels& k, std::int32_t* x, std::int64_t n, std::int32_t* s) {
  k.sort_i32(x, n, s);
}
inline void sort_numbers(const SortKernels& k, std::int64_t* x, std::int64_t n, std::int64_t* s) {
  k.sort_i64(x, n, s);
}

/// keys[i]: an integer with the order of x[i], reversed with `descending`. -0 counts as 0; NaN is above all.
inline void make_keys(const SortKernels& k, const float* x, std::int64_t n, bool descending, std::int32_t* keys) {
  k.keys_f32(x, n, descending, keys);
}
inline void make_keys(const SortKernels& k, const double* x, std::int64_t n, bool descending, std::int64_t* keys) {
  k.keys_f64(x, n, descending, keys);
}
void make_keys(const SortKernels& k, const std::int32_t* x, std::int64_t n, bool descending, std::int32_t* keys);
void make_keys(const SortKernels& k, const std::int64_t* x, std::int64_t n, bool descending, std::int64_t* keys);

/// Stable argsort: order[i] & the returned mask is the index of the i-th key in ascending order. `order` and `scratch`
/// have the size of sort scratch.
std::int64_t order_keys(const SortKernels& k, const std::int32_t* keys, std::int64_t n, std::int64_t* order,
                        std::int64_t* scratch);
std::int64_t order_keys(const SortKernels& k, const std::int64_t* keys, std::int64_t n, std::int64_t* order,
                        std::int64_t* scratch);

/// A line permuted by an order: y[i] = x[order[i] & mask]. Elements have `bits` bits and lie `step` elements apart from
/// `base` on.
struct SortedSlice {
  std::int64_t base = 0, step = 1, n = 0;
  const std::int64_t* order = nullptr;
  std::int64_t mask = 0;
};
void move_ordered(const SortedSlice& line, int bits, const void* x, void* y);
/// Stores the indices themselves, as integers of 32 or 64 bits.
void put_places(const SortedSlice& line, int bits, void* y);

/// order_keys and put_places in one pass by counting sort, where keys have few distinct values; else returns false.
bool put_counted_places(const std::int32_t* keys, std::int64_t n, int bits, void* y, std::int64_t base,
                        std::int64_t step);

/// The number of distinct values of this dtype's keys where a line of n uses counting sort; else 0.
std::int64_t counted_numbers(DType t, std::int64_t n);
/// Sorts x[0, n) ascending, n > 0. `counts` has room for 2 * numbers.
void count_numbers(std::int32_t* x, std::int64_t n, std::int64_t numbers, std::int32_t* counts);

}  // namespace rlx::cpu
