// Kernels of order: numbers sorted where they lie, keys packed with their places, the elements above a threshold.
//
// All of them give what the definition says, whatever the instruction set: only numbers are sorted, and which of two
// equal numbers comes first cannot be seen. What is not a number, zeros of both signs and places are the rows' affair.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Elements by which scratch of sorts is longer than what they sort: vectors are stored whole.
inline constexpr std::int64_t kSortSlack = 64;

struct SortKernels {
  /// x[0, n) ascending; no NaN, no -0. `scratch`: n + kSortSlack elements.
  void (*sort_f32)(float* x, std::int64_t n, float* scratch);
  void (*sort_f64)(double* x, std::int64_t n, double* scratch);
  void (*sort_i32)(std::int32_t* x, std::int64_t n, std::int32_t* scratch);
  void (*sort_i64)(std::int64_t* x, std::int64_t n, std::int64_t* scratch);
  /// Copies x to y and says whether one of them is NaN or a zero with a sign.
  bool (*copy_f32)(const float* x, std::int64_t n, float* y);
  bool (*copy_f64)(const double* x, std::int64_t n, double* y);
  /// keys[i]: an integer that orders as x[i] does, or the other way; -0 is 0, NaN above all.
  void (*keys_f32)(const float* x, std::int64_t n, bool descending, std::int32_t* keys);
  void (*keys_f64)(const double* x, std::int64_t n, bool descending, std::int64_t* keys);
  /// packed[i]: key and place i, in the order of the keys and of the places among equal ones. n < 2^31.
  void (*pack_i32)(const std::int32_t* keys, std::int64_t n, std::int64_t* packed);
  /// The places i in [begin, end) of x[i] > threshold, of NaN too, ascending; stops at `room` of them. `at` has room
  /// for 16 more. -> how many; *begin is where it stopped.
  std::int64_t (*above_f32)(const float* x, std::int64_t* begin, std::int64_t end, float threshold, std::int64_t room,
                            std::int32_t* at);
  std::int64_t (*above_f64)(const double* x, std::int64_t* begin, std::int64_t end, double threshold, std::int64_t room,
                            std::int32_t* at);
  std::int64_t (*above_i32)(const std::int32_t* x, std::int64_t* begin, std::int64_t end, std::int32_t threshold,
                            std::int64_t room, std::int32_t* at);
  std::int64_t (*above_i64)(const std::int64_t* x, std::int64_t* begin, std::int64_t end, std::int64_t threshold,
                            std::int64_t room, std::int32_t* at);
  /// highest[c] = the largest number of x[c], x[c + chains], .. of `rows` such rows, the least there is where
  /// all are NaN; `chains`: a multiple of 64.
  void (*highest_f32)(const float* x, std::int64_t rows, std::int64_t chains, float* highest);
  void (*highest_f64)(const double* x, std::int64_t rows, std::int64_t chains, double* highest);
  void (*highest_i32)(const std::int32_t* x, std::int64_t rows, std::int64_t chains, std::int32_t* highest);
  void (*highest_i64)(const std::int64_t* x, std::int64_t rows, std::int64_t chains, std::int64_t* highest);
};

/// Errors: Unsupported for an instruction set that this machine has not.
const SortKernels& sort_kernels(Isa isa);

}  // namespace rlx::cpu
