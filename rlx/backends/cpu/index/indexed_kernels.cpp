// Blocks addressed by index tensors: kernels per instruction set compute the offsets, and these loops move the blocks.
#include "rlx/backends/cpu/index/indexed_kernels.h"

#include <cstring>
#include <type_traits>

#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/index/indexed.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
namespace {

// Blocks of a single element.
void gather_elements(const Gathered& g, std::int64_t outer, std::int64_t first, std::int64_t last) {
  const std::int64_t bytes = g.bits / 8;
  const std::byte* const x =
      static_cast<const std::byte*>(g.x) + (outer * g.from.blocks.outer_stride + g.from.blocks.rows.front()) * bytes;
  std::byte* const y = static_cast<std::byte*>(g.y) + outer * g.from.count * bytes;
  std::int64_t at[kPlacesTogether];
  for (std::int64_t i = first; i < last; i += kPlacesTogether) {
    const std::int64_t n = std::min(kPlacesTogether, last - i);
    find_blocks(g.from, i, i + n, at);
    g.from.kernels->take(g.bits, x, at, n, g.fill, y + i * bytes);
  }
}

// Blocks that are one run of bytes.
void gather_runs(const Gathered& g, std::int64_t outer, std::int64_t first, std::int64_t last) {
  const auto bytes = static_cast<std::size_t>(g.bits / 8), run = static_cast<std::size_t>(g.from.blocks.run) * bytes;
  const std::byte* const x =
      static_cast<const std::byte*>(g.x) +
      static_cast<std::size_t>(outer * g.from.blocks.outer_stride + g.from.blocks.rows.front()) * bytes;
  std::byte* const y = static_cast<std::byte*>(g.y) + static_cast<std::size_t>(outer * g.from.count) * run;
  each_block(g.from, first, last, [&](std::int64_t i, std::int64_t at) {
    std::byte* const to = y + static_cast<std::size_t>(i) * run;
    if (at < 0)
      generic_fill(to, g.fill, g.bits, 0, g.from.blocks.run);
    else
      std::memcpy(to, x + static_cast<std::size_t>(at) * bytes, run);
  });
}

}  // namespace

const IndexKernels& index_kernels(Isa isa) {
  const Isa checked = kernels_for(isa).isa;
  return RLX_FOR_ISA(checked, index_table());
}

void find_blocks(const NamedBlocks& b, std::int64_t begin, std::int64_t end, std::int64_t* at) {
  constexpr std::size_t kMost = 16;  // axes, the limit of the kernel entries
  const std::int64_t cols = b.dims.back();
  for (std::int64_t i = begin; i < end;) {
    // The row of the last axis that contains i, from i on: index tensors that are constant there, and others.
    const std::int64_t n = std::min(end - i, cols - i % cols);
    IndexRow moving[kMost];
    int moves = 0;
    std::int64_t base = 0;
    for (std::size_t k = 0; k < b.axes.size(); ++k) {
      const NamedBlocks::Axis& a = b.axes[k];
      const std::int64_t extent = b.blocks.extents[k], stride = b.blocks.strides[k];
      std::int64_t start = 0, rest = i;
      for (std::size_t d = b.dims.size(); d-- > 0; rest /= b.dims[d]) start += rest % b.dims[d] * a.strides[d];
      if (a.strides.back() != 0) {
        const std::int64_t bytes = a.indices.wide ? 8 : 4;
        moving[moves++] = {static_cast<const std::byte*>(a.indices.data) + start * bytes, a.indices.wide,
                           a.strides.back(), extent, stride};
        continue;
      }
      std::int64_t index = a.indices.at(start);
      if (b.clamp) index = std::max<std::int64_t>(0, std::min(index, extent - 1));
      const bool inside = static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(extent);
      base = inside && base >= 0 ? base + index * stride : -1;
    }
    if (base < 0 || moves == 0)
      std::fill_n(at, n, base);
    else
      b.kernels->places(moving, moves, b.clamp, base, n, at);
    i += n;
    at += n;
  }
}

void gather_blocks(const Gathered& g, std::int64_t outer, std::int64_t first, std::int64_t last) {
  const IndexedBlocks& b = g.from.blocks;
  const std::int64_t size = b.size();
  if (size == 1 && g.bits >= 8) return gather_elements(g, outer, first, last);
  if (g.bits >= 8 && b.rows.size() == 1) return gather_runs(g, outer, first, last);
  each_block(g.from, first, last, [&](std::int64_t i, std::int64_t at) {
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
