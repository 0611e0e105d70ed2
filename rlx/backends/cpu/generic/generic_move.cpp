// Moves and fills for any element size and strides.
#include <algorithm>
#include <cstring>

#include "rlx/backends/cpu/generic/generic.h"

namespace rlx::cpu {
namespace {

struct Word16 {
  std::uint64_t low, high;
};

template <class Word>
void move_row(const void* x, std::int64_t x_at, std::int64_t x_step, void* y, std::int64_t y_at, std::int64_t y_step,
              std::int64_t n) {
  const Word* from = static_cast<const Word*>(x) + x_at;
  Word* to = static_cast<Word*>(y) + y_at;
  if (y_step == 1) {  // a loop that the compiler vectorises
    if (x_step == 1) {
      if (n > 0) std::memmove(to, from, static_cast<std::size_t>(n) * sizeof(Word));
      return;
    }
    if (x_step == 0) {
      if (n > 0) std::fill_n(to, n, *from);
      return;
    }
    if (x_step == -1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[-i];
      return;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) to[i * y_step] = from[i * x_step];
}

std::uint8_t get_nibble(const void* p, std::int64_t i) {
  const std::uint8_t byte = static_cast<const std::uint8_t*>(p)[i / 2];
  return i % 2 ? static_cast<std::uint8_t>(byte >> 4) : static_cast<std::uint8_t>(byte & 15);
}
void put_nibble(void* p, std::int64_t i, std::uint8_t v) {
  std::uint8_t& byte = static_cast<std::uint8_t*>(p)[i / 2];
  byte = static_cast<std::uint8_t>(i % 2 ? (byte & 15) | (v << 4) : (byte & 0xf0) | v);
}

void move_nibbles(const void* x, std::int64_t x_at, std::int64_t x_step, void* y, std::int64_t y_at,
                  std::int64_t y_step, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) put_nibble(y, y_at + i * y_step, get_nibble(x, x_at + i * x_step));
}

auto row_mover(int bits) {
  switch (bits) {
    case 4: return move_nibbles;
    case 8: return move_row<std::uint8_t>;
    case 16: return move_row<std::uint16_t>;
    case 32: return move_row<std::uint32_t>;
    case 64: return move_row<std::uint64_t>;
    default: return move_row<Word16>;
  }
}

}  // namespace

GenericMove::GenericMove(int bits, std::span<const std::int64_t> dims, const std::vector<std::int64_t>& x_strides,
                         const std::vector<std::int64_t>& y_strides, std::int64_t x_start, std::int64_t y_start)
    : bits_(bits), x_start_(x_start), y_start_(y_start) {
  walk_.rank = static_cast<int>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    walk_.dims[i] = dims[i];
    walk_.strides[0][i] = x_strides[i];
    walk_.strides[1][i] = y_strides[i];
  }
  constexpr std::int64_t kChunkElements = 1 << 14;
  const std::int64_t rows = walk_.rows();
  rows_per_chunk_ = std::max<std::int64_t>(1, kChunkElements / std::max<std::int64_t>(1, walk_.cols()));
  if (bits < 8) rows_per_chunk_ = rows;  // adjacent elements share a byte, so one thread writes them all
  chunks_ = rows == 0 || walk_.cols() == 0 ? 0 : (rows + rows_per_chunk_ - 1) / rows_per_chunk_;
}

void GenericMove::tile_finest() {
  if (bits_ < 8 || chunks_ == 0) return;
  rows_per_chunk_ = 1;
  chunks_ = walk_.rows();
}

void GenericMove::run(const void* x, void* y, std::int64_t chunk, std::int64_t x_extra, std::int64_t y_extra) const {
  RowIterator<2> walk = walk_;
  const std::int64_t begin = chunk * rows_per_chunk_, end = std::min(walk.rows(), begin + rows_per_chunk_);
  const auto move = row_mover(bits_);
  walk.seek(begin);
  for (std::int64_t r = begin; r < end; ++r, walk.next())
    move(x, x_start_ + x_extra + walk.offset[0], walk.step(0), y, y_start_ + y_extra + walk.offset[1], walk.step(1),
         walk.cols());
}

void generic_move_row(int bits, const void* x, std::int64_t x_at, void* y, std::int64_t y_at, std::int64_t n) {
  row_mover(bits)(x, x_at, 1, y, y_at, 1, n);
}

void generic_fill(void* y, const void* value, int bits, std::int64_t begin, std::int64_t end) {
  row_mover(bits)(value, 0, 0, y, begin, 1, end - begin);
}

}  // namespace rlx::cpu
