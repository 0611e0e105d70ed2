#include "rlx/backends/cpu/matmul/word_chunks.h"

#include <algorithm>

namespace rlx::cpu {

void cut_words(const MatmulKernel& kernel, const MatmulOperands& p, int threads, MatmulPlan& plan) {
  if (p.m <= 0 || p.n <= 0) return;
  const WordCut cut = kernel.word_cut(p, plan);
  const bool finest = threads == kFinestTiling;
  const std::int64_t one = 1, workers = std::max(1, threads), rows_bytes = cut.block_rows * cut.row_bytes;
  const std::int64_t panels = plan.panels = ceil_div(p.n, cut.lanes);
  plan.blocks = cut.blocks;
  // Rows that stay in L2 while the panels pass.
  plan.blocks_per_chunk =
      finest ? 1 : std::max(one, std::min(cut.most_blocks, cut.costs.cached / std::max(one, rows_bytes)));
  plan.row_chunks = ceil_div(plan.blocks, plan.blocks_per_chunk);
  plan.blocks_per_chunk = ceil_div(plan.blocks, plan.row_chunks);
  // Some 3 us per chunk, and enough chunks for threads of unequal speed: the same number for each thread.
  const double rows = static_cast<double>(std::min(p.m, plan.blocks_per_chunk * cut.block_rows));
  const double ops = 2.0 * static_cast<double>(plan.k * cut.lanes) * rows;
  const double panel_ns =
      1 + std::max(static_cast<double>(cut.panel_bytes) / kCutCosts.word_bytes_per_ns, ops / cut.costs.ops_per_ns);
  const std::int64_t least =
      finest ? 1 : std::min(panels, static_cast<std::int64_t>(kCutCosts.word_chunk_ns / panel_ns) + 1);
  std::int64_t wanted = finest         ? panels
                        : workers == 1 ? 1
                                       : std::min(kCutCosts.word_chunks * workers, std::max(one, panels / least));
  if (wanted > workers) wanted = wanted / workers * workers;
  plan.panels_per_chunk = ceil_div(panels, wanted);
  if (!finest && plan.panels_per_chunk > 1)
    plan.panels_per_chunk = ceil_div(plan.panels_per_chunk, cut.panels_per_tile) * cut.panels_per_tile;
  plan.panel_chunks = ceil_div(panels, plan.panels_per_chunk);
  plan.chunks = plan.row_chunks * plan.panel_chunks;
  plan.blocks_per_pack = finest ? 1 : std::max(one, kCutCosts.pack_elements / (cut.block_rows * std::max(one, plan.k)));
  plan.pack_chunks = ceil_div(plan.blocks, plan.blocks_per_pack);
}

void pack_word_rows(const MatmulKernel& kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                    void* packed) {
  const std::int64_t first = chunk * plan.blocks_per_pack;
  kernel.pack_words(p, plan, first, std::min(plan.blocks, first + plan.blocks_per_pack), packed);
}

void run_word_chunk(const MatmulKernel& kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                    const void* packed) {
  const std::int64_t first = chunk % plan.panel_chunks * plan.panels_per_chunk,
                     b0 = chunk / plan.panel_chunks * plan.blocks_per_chunk;
  kernel.multiply_words(p, plan,
                        {first, std::min(plan.panels, first + plan.panels_per_chunk), b0,
                         std::min(plan.blocks, b0 + plan.blocks_per_chunk)},
                        packed);
}

}  // namespace rlx::cpu
