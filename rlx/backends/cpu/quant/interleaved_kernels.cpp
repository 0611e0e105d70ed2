// GEMM kernels for the interleaved block-quantized layout, once per instruction set, and with VNNI and AMX.
#include "rlx/backends/cpu/quant/interleaved_kernels.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/backends/cpu/machine_isa.h"
#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/error.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/quant/interleaved.inc"
#define RLX_WITH_BYTE_DOT
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

void partition_panels(const PanelPartition& cut, int threads, InterleavedPlan& plan) {
  const auto parts_of = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const bool finest = threads == kFinestTiling;
  const std::int64_t one = 1, workers = std::max(1, threads), rows_bytes = cut.block_rows * cut.row_bytes;
  plan.panels = cut.panels, plan.blocks = cut.blocks;
  // Rows whose quantized values stay in half of L2 while the panels pass.
  plan.blocks_per_chunk = finest ? 1 : std::max(one, std::min(cut.most_blocks, cut.cached / std::max(one, rows_bytes)));
  const std::int64_t row_chunks = parts_of(plan.blocks, plan.blocks_per_chunk);
  plan.blocks_per_chunk = parts_of(plan.blocks, row_chunks);
  // Some 3 us per chunk, and enough chunks for threads of unequal speed: the same number for each thread.
  const double rows = static_cast<double>(std::min(cut.m, plan.blocks_per_chunk * cut.block_rows));
  const double ops = 2.0 * static_cast<double>(cut.k * cut.lanes) * rows;
  const double panel_ns = 1 + std::max(static_cast<double>(cut.panel_bytes) / 40, ops / cut.ops_per_ns);
  const std::int64_t least = finest ? 1 : std::min(cut.panels, static_cast<std::int64_t>(3000 / panel_ns) + 1);
  std::int64_t wanted = finest         ? cut.panels
                        : workers == 1 ? 1
                                       : std::min(8 * workers, std::max(one, cut.panels / least));
  if (wanted > workers) wanted = wanted / workers * workers;
  plan.panels_per_chunk = parts_of(cut.panels, wanted);
  if (!finest && plan.panels_per_chunk > 1)
    plan.panels_per_chunk = parts_of(plan.panels_per_chunk, cut.panels_per_tile) * cut.panels_per_tile;
  plan.panel_chunks = parts_of(cut.panels, plan.panels_per_chunk);
  plan.chunks = row_chunks * plan.panel_chunks;
  plan.blocks_per_quantize = finest ? 1 : std::max(one, 16384 / (cut.block_rows * std::max(one, cut.k)));
  plan.quantize_chunks = parts_of(plan.blocks, plan.blocks_per_quantize);
}

std::span<const Int8Matmul> int8_matmul(Isa isa) {
  static constexpr Int8Matmul kAll[] = {Int8Matmul::Pairs, Int8Matmul::Dot, Int8Matmul::Tiles};
#if defined(RLX_HAS_BYTE_DOT)
  if (isa == Isa::Avx512 && isa_supported(isa) && machine_has_avx512vnni())
    return std::span(kAll).first(has_tiles(TileType::Bytes) ? 3 : 2);
#else
  (void)isa;
#endif
  return std::span(kAll).first(1);
}

const InterleavedKernels& interleaved_kernels(Isa isa, Int8Matmul kind) {
  if (kind > int8_matmul(isa).back())
    throw Error(ErrorCode::Unsupported,
                concat_text("this machine has no int8 ", kind == Int8Matmul::Dot ? "dot-product" : "tile",
                            " instructions with ", isa_name(isa)));
#if defined(RLX_HAS_BYTE_DOT)
  if (kind == Int8Matmul::Tiles) return avx512vnni::tile_table();
  if (kind == Int8Matmul::Dot) return avx512vnni::interleaved_table();
#endif
  return RLX_FOR_ISA(isa, interleaved_table());
}

}  // namespace rlx::cpu
