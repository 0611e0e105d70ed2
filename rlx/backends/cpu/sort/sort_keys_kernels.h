// Lines of keys of any dtype as what the kernels of order sort, places in the order of keys, and what is moved by them:
// loops that are the same for every instruction set.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rlx/backends/cpu/reduce/typed_reduce_kernels.h"
#include "rlx/backends/cpu/sort/sort_kernels.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// Lines of a dtype as W: float (F32, F16, BF16), double, int32 (integers up to 32 bits, Bool, the orders of F16 and
/// BF16) or int64; unsigned integers of as many bits are turned into signed ones of the same order.
template <class W>
struct KeyLine {
  void (*loads)(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, W* out) = nullptr;
  void (*stores)(const W* in, std::int64_t n, void* y, std::int64_t at, std::int64_t step) = nullptr;
  DType half = DType::F32;                       // of F16 and BF16 as floats
  const TypedReduceKernels* converts = nullptr;  // those

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

/// keys[i]: an integer that orders as x[i] does, or the other way; -0 is 0, NaN above all.
inline void make_keys(const SortKernels& k, const float* x, std::int64_t n, bool descending, std::int32_t* keys) {
  k.keys_f32(x, n, descending, keys);
}
inline void make_keys(const SortKernels& k, const double* x, std::int64_t n, bool descending, std::int64_t* keys) {
  k.keys_f64(x, n, descending, keys);
}
void make_keys(const SortKernels& k, const std::int32_t* x, std::int64_t n, bool descending, std::int32_t* keys);
void make_keys(const SortKernels& k, const std::int64_t* x, std::int64_t n, bool descending, std::int64_t* keys);

/// order[i] & the mask given back: the place of the i-th key, ascending, equal ones as they lie. Both as long as
/// scratch of sorts.
std::int64_t order_keys(const SortKernels& k, const std::int32_t* keys, std::int64_t n, std::int64_t* order,
                        std::int64_t* scratch);
std::int64_t order_keys(const SortKernels& k, const std::int64_t* keys, std::int64_t n, std::int64_t* order,
                        std::int64_t* scratch);

/// Elements of a line in an order: y[i] = x[order[i] & mask], `step` elements of `bits` apart from `base` on.
struct OrderedLine {
  std::int64_t base = 0, step = 1, n = 0;
  const std::int64_t* order = nullptr;
  std::int64_t mask = 0;
};
void move_ordered(const OrderedLine& line, int bits, const void* x, void* y);
/// The places themselves, as integers of 32 or 64 bits.
void put_places(const OrderedLine& line, int bits, void* y);

/// What order_keys and put_places do, at once, where keys are of so few numbers that they are counted; else false.
bool put_counted_places(const std::int32_t* keys, std::int64_t n, int bits, void* y, std::int64_t base,
                        std::int64_t step);

/// How many numbers keys of this dtype may be, where a line of n is counted rather than sorted; else 0.
std::int64_t counted_numbers(DType t, std::int64_t n);
/// x[0, n) ascending, n > 0; counts: room for twice as many as there are numbers.
void count_numbers(std::int32_t* x, std::int64_t n, std::int64_t numbers, std::int32_t* counts);

}  // namespace rlx::cpu
