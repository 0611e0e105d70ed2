// Sort kernels: in-place sort of numbers, keys packed with indices, and selection above a threshold.
//
// Results are the same for every instruction set: only numbers are sorted, and the order of equal numbers cannot be
// observed. The kernel entries handle NaN, signed zeros and indices.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Extra elements of sort scratch, because whole vectors are stored.
inline constexpr std::int64_t kSortSlack = 64;

struct SortKernels {
  /// x[0, n) ascending; no NaN, no -0. `scratch`: n + kSortSlack elements.
  void (*sort_f32)(float* x, std::int64_t n, float* scratch);
  void (*sort_f64)(double* x, std::int64_t n, double* scratch);
  void (*sort_i32)(std::int32_t* x, std::int64_t n, std::int32_t* scratch);
  void (*sort_i64)(std::int64_t* x, std::int64_t n, std::int64_t* scratch);
  /// Copies x to y and returns whether an element is NaN or -0.
  bool (*copy_f32)(const float* x, std::int64_t n, float* y);
  bool (*copy_f64)(const double* x, std::int64_t n, double* y);
  /// keys[i]: an integer with the order of x[i], reversed with `descending`. -0 counts as 0; NaN is above all.
  void (*keys_f32)(const float* x, std::int64_t n, bool descending, std::int32_t* keys);
  void (*keys_f64)(const double* x, std::int64_t n, bool descending, std::int64_t* keys);
  /// packed[i]: key and index i, ordered by key and then by index. n < 2^31.
  void (*pack_i32)(const std::int32_t* keys, std::int64_t n, std::int64_t* packed);
  /// Writes the indices i in [begin, end) with x[i] > threshold or x[i] NaN to `at`, ascending, and stops after `room`
  /// of them. `at` must have room for 16 more. Returns the count; *begin is where it stopped.
  std::int64_t (*above_f32)(const float* x, std::int64_t* begin, std::int64_t end, float threshold, std::int64_t room,
                            std::int32_t* at);
  std::int64_t (*above_f64)(const double* x, std::int64_t* begin, std::int64_t end, double threshold, std::int64_t room,
                            std::int32_t* at);
  std::int64_t (*above_i32)(const std::int32_t* x, std::int64_t* begin, std::int64_t end, std::int32_t threshold,
                            std::int64_t room, std::int32_t* at);
  std::int64_t (*above_i64)(const std::int64_t* x, std::int64_t* begin, std::int64_t end, std::int64_t threshold,
                            std::int64_t room, std::int32_t* at);
  /// highest[c] = the maximum of x[c], x[c + chains], .. over `rows` rows, ignoring NaN; the least value of the type
  /// where all are NaN. `chains` is a multiple of 64.
  void (*highest_f32)(const float* x, std::int64_t rows, std::int64_t chains, float* highest);
  void (*highest_f64)(const double* x, std::int64_t rows, std::int64_t chains, double* highest);
  void (*highest_i32)(const std::int32_t* x, std::int64_t rows, std::int64_t chains, std::int32_t* highest);
  void (*highest_i64)(const std::int64_t* x, std::int64_t rows, std::int64_t chains, std::int64_t* highest);
};

/// Errors: Unsupported where this machine lacks the instruction set.
const SortKernels& sort_kernels(Isa isa);

}  // namespace rlx::cpu
