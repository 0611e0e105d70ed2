// Generic kernels: plain loops over any strides and element types, for ops without a tuned kernel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

inline constexpr int kGenericMaxRank = 16;

/// Iterates over an index space row by row, with the offsets of up to four operands at each row of the last axis.
template <int N>
struct RowIterator {
  int rank = 0;
  std::int64_t dims[kGenericMaxRank] = {};
  std::int64_t strides[N][kGenericMaxRank] = {};
  std::int64_t index[kGenericMaxRank] = {};
  std::int64_t offset[N] = {};

  /// Sets the space. Axes of extent 1 are dropped, and adjacent axes are merged where they fold in every operand.
  void set(std::span<const std::int64_t> extents, const std::vector<std::vector<std::int64_t>>& operand_strides) {
    rank = 0;
    for (std::size_t a = 0; a < extents.size(); ++a) {
      if (extents[a] == 1) continue;
      bool merges = rank > 0;
      for (std::size_t o = 0; o < N && merges; ++o) merges = strides[o][rank - 1] == operand_strides[o][a] * extents[a];
      if (!merges) ++rank;
      dims[rank - 1] = merges ? dims[rank - 1] * extents[a] : extents[a];
      for (std::size_t o = 0; o < N; ++o) strides[o][rank - 1] = operand_strides[o][a];
    }
  }
  std::int64_t cols() const { return rank == 0 ? 1 : dims[rank - 1]; }
  /// Number of rows.
  std::int64_t rows() const {
    std::int64_t n = 1;
    for (int i = 0; i + 1 < rank; ++i) n *= dims[i];
    return n;
  }
  std::int64_t step(int operand) const { return rank == 0 ? 0 : strides[operand][rank - 1]; }
  /// Moves to row `row` (of all axes but the last, row-major).
  void seek(std::int64_t row) {
    for (int o = 0; o < N; ++o) offset[o] = 0;
    for (int a = rank - 2; a >= 0; --a) {
      index[a] = row % dims[a];
      row /= dims[a];
      for (int o = 0; o < N; ++o) offset[o] += index[a] * strides[o][a];
    }
  }
  void next() {
    for (int a = rank - 2; a >= 0; --a) {
      for (int o = 0; o < N; ++o) offset[o] += strides[o][a];
      if (++index[a] < dims[a]) return;
      for (int o = 0; o < N; ++o) offset[o] -= strides[o][a] * dims[a];
      index[a] = 0;
    }
  }
};

/// A strided move of elements of 4 to 128 bits; strides may be negative.
class GenericMove {
 public:
  GenericMove() = default;
  /// Starts at elements `x_start` and `y_start` (0 unless elements share bytes).
  GenericMove(int bits, std::span<const std::int64_t> dims, const std::vector<std::int64_t>& x_strides,
              const std::vector<std::int64_t>& y_strides, std::int64_t x_start, std::int64_t y_start);
  std::int64_t chunks() const { return chunks_; }
  /// One row per chunk.
  void tile_finest();
  /// `x_extra` and `y_extra` elements are added to the starts.
  void run(const void* x, void* y, std::int64_t chunk, std::int64_t x_extra = 0, std::int64_t y_extra = 0) const;

 private:
  RowIterator<2> walk_;
  int bits_ = 8;
  std::int64_t x_start_ = 0, y_start_ = 0, rows_per_chunk_ = 1, chunks_ = 0;
};

/// y[y_at, y_at + n) = x[x_at, x_at + n), elements of 4 to 128 bits.
void generic_move_row(int bits, const void* x, std::int64_t x_at, void* y, std::int64_t y_at, std::int64_t n);
/// y[begin, end) = the element at `value`, elements of 4 to 128 bits.
void generic_fill(void* y, const void* value, int bits, std::int64_t begin, std::int64_t end);

}  // namespace rlx::cpu
