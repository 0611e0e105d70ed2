#include "rlx/backends/cpu/kernels/indexed.h"

#include <cstring>

#include "rlx/backends/cpu/kernels/generic.h"

namespace rlx::cpu {
namespace {

struct Bytes16 {
  std::uint64_t low, high;
};

// Single elements of a type.
template <class E>
void gather_elements(const Gathered& g, std::int64_t outer, std::int64_t first, std::int64_t last) {
  const E* const x = static_cast<const E*>(g.x) + outer * g.from.blocks.outer_stride + g.from.blocks.rows.front();
  E* const y = static_cast<E*>(g.y) + outer * g.from.count;
  E fill;
  std::memcpy(&fill, g.fill, sizeof fill);
  g.from.each(first, last, [=](std::int64_t i, std::int64_t at) { y[i] = at < 0 ? fill : x[at]; });
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
  b.each(begin, end, [at](std::int64_t i, std::int64_t place) { at[i] = place; });
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
