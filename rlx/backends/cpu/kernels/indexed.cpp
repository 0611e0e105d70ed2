#include "rlx/backends/cpu/kernels/indexed.h"

#include <cstring>

#include "rlx/backends/cpu/kernels/generic.h"

namespace rlx::cpu {
namespace {

struct Bytes16 {
  std::uint64_t low, high;
};

// What NamedBlocks::each does where two index tensors both change along rows, as those of elements along an axis do.
template <class I, class F>
void each_of_pair(const NamedBlocks& b, std::int64_t begin, std::int64_t end, F f) {
  const std::int64_t cols = b.dims.back(), row_extent = b.blocks.extents[0], col_extent = b.blocks.extents[1];
  const std::int64_t row_stride = b.blocks.strides[0], col_stride = b.blocks.strides[1];
  const std::int64_t row_step = b.axes[0].strides.back(), col_step = b.axes[1].strides.back();
  const auto within = [](std::int64_t at, std::int64_t extent) {
    return static_cast<std::uint64_t>(at) < static_cast<std::uint64_t>(extent);
  };
  for (std::int64_t i = begin; i < end;) {
    std::int64_t starts[2] = {};
    for (std::size_t k = 0; k < 2; ++k) {
      std::int64_t rest = i;
      for (std::size_t d = b.dims.size(); d-- > 0; rest /= b.dims[d])
        starts[k] += rest % b.dims[d] * b.axes[k].strides[d];
    }
    const I* row = static_cast<const I*>(b.axes[0].indices.data) + starts[0];
    const I* col = static_cast<const I*>(b.axes[1].indices.data) + starts[1];
    for (const std::int64_t last = std::min(end, i - i % cols + cols); i < last;
         ++i, row += row_step, col += col_step) {
      std::int64_t r = *row, c = *col;
      if (b.clamp) {
        r = std::clamp<std::int64_t>(r, 0, row_extent - 1);
        c = std::clamp<std::int64_t>(c, 0, col_extent - 1);
      }
      f(i, within(r, row_extent) && within(c, col_extent) ? r * row_stride + c * col_stride : -1);
    }
  }
}
template <class F>
void each_block(const NamedBlocks& b, std::int64_t begin, std::int64_t end, F f) {
  const bool pair = b.axes.size() == 2 && b.axes[0].strides.back() != 0 && b.axes[1].strides.back() != 0 &&
                    b.axes[0].indices.wide == b.axes[1].indices.wide;
  if (!pair)
    b.each(begin, end, f);
  else if (b.axes[0].indices.wide)
    each_of_pair<std::int64_t>(b, begin, end, f);
  else
    each_of_pair<std::int32_t>(b, begin, end, f);
}

// Single elements of a type.
template <class E>
void gather_elements(const Gathered& g, std::int64_t outer, std::int64_t first, std::int64_t last) {
  const E* const x = static_cast<const E*>(g.x) + outer * g.from.blocks.outer_stride + g.from.blocks.rows.front();
  E* const y = static_cast<E*>(g.y) + outer * g.from.count;
  E fill;
  std::memcpy(&fill, g.fill, sizeof fill);
  each_block(g.from, first, last, [=](std::int64_t i, std::int64_t at) { y[i] = at < 0 ? fill : x[at]; });
}

// Blocks that are one run of bytes.
void gather_runs(const Gathered& g, std::int64_t outer, std::int64_t first, std::int64_t last) {
  const auto bytes = static_cast<std::size_t>(g.bits / 8), run = static_cast<std::size_t>(g.from.blocks.run) * bytes;
  const std::byte* const x =
      static_cast<const std::byte*>(g.x) +
      static_cast<std::size_t>(outer * g.from.blocks.outer_stride + g.from.blocks.rows.front()) * bytes;
  std::byte* const y = static_cast<std::byte*>(g.y) + static_cast<std::size_t>(outer * g.from.count) * run;
  g.from.each(first, last, [&](std::int64_t i, std::int64_t at) {
    std::byte* const to = y + static_cast<std::size_t>(i) * run;
    if (at < 0)
      generic_fill(to, g.fill, g.bits, 0, g.from.blocks.run);
    else
      std::memcpy(to, x + static_cast<std::size_t>(at) * bytes, run);
  });
}

}  // namespace

void find_blocks(const NamedBlocks& b, std::int64_t begin, std::int64_t end, std::int64_t* at) {
  each_block(b, begin, end, [at](std::int64_t i, std::int64_t place) { at[i] = place; });
}

void gather_blocks(const Gathered& g, std::int64_t outer, std::int64_t first, std::int64_t last) {
  const IndexedBlocks& b = g.from.blocks;
  const std::int64_t size = b.size();
  if (size == 1) {
    switch (g.bits) {
      case 8: return gather_elements<std::uint8_t>(g, outer, first, last);
      case 16: return gather_elements<std::uint16_t>(g, outer, first, last);
      case 32: return gather_elements<std::uint32_t>(g, outer, first, last);
      case 64: return gather_elements<std::uint64_t>(g, outer, first, last);
      case 128: return gather_elements<Bytes16>(g, outer, first, last);
      default: break;
    }
  }
  if (g.bits >= 8 && b.rows.size() == 1) return gather_runs(g, outer, first, last);
  g.from.each(first, last, [&](std::int64_t i, std::int64_t at) {
    std::int64_t to = (outer * g.from.count + i) * size;
    if (at < 0) {
      generic_fill(g.y, g.fill, g.bits, to, to + size);
      return;
    }
    for (const std::int64_t row : b.rows) {
      generic_move_row(g.bits, g.x, outer * b.outer_stride + at + row, g.y, to, b.run);
      to += b.run;
    }
  });
}

}  // namespace rlx::cpu
