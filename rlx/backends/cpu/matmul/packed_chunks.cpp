// Loop order of a chunk with packed B: panel of B (stays in L2), block of rows, k. Rows of A are read in place. Each
// row block prefetches a slice of the next panel, so that weights arrive from memory during the arithmetic on this
// panel.
#include "rlx/backends/cpu/matmul/packed_chunks.h"

#include <algorithm>

#include "rlx/backends/cpu/matmul/costs.h"

namespace rlx::cpu {
namespace {

/// Adds register tiles to `rows`, those of a part, until the last part of `total` is not short. A part of few rows
/// reads all of B for little work.
std::int64_t without_short_tail(std::int64_t total, std::int64_t rows, std::int64_t tile) {
  while (rows > tile && rows < total && total % rows != 0 && total % rows < 2 * tile) rows += tile;
  return std::min(rows, total);
}

/// Cache lines that register tiles prefetch: as in MatmulTileCall.
struct Ahead {
  const char* at = nullptr;
  std::int64_t step = 0, lines = 0, every = kAllSteps;
};

/// What to prefetch during the arithmetic of the row blocks of a panel (measured with weights in DRAM on Zen 4: M = 16
/// 1.17x over no prefetch, M = 128 1.03x, and full arithmetic speed with weights in huge pages). Two row blocks or
/// more: a slice of the next panel in each of the last blocks, at most one line per step of k; faster rates fill the
/// miss buffers and stall the loads of this panel. One block: 64 rows of k ahead in this panel. One or two rows: only
/// the hardware prefetcher.
class PanelPrefetch {
 public:
  PanelPrefetch(const MatmulKernel& kernel, std::int64_t rows, std::int64_t blocks, std::int64_t k, const char* panel,
                std::int64_t row_bytes, const char* next, std::int64_t next_bytes) {
    const MatmulCosts& costs = matmul_costs();
    if (blocks > 1 && !costs.fetches_same_panel) {
      const std::int64_t fetching = std::min(blocks, costs.fetching_blocks);
      const std::int64_t requests =
          ceil_div(std::max<std::int64_t>(1, k / kTileGroup), kernel.packed_b_request_every / kTileGroup);
      first_ = blocks - fetching;
      slice_.at = next, slice_.every = kernel.packed_b_request_every;
      slice_.step = ceil_div(next_bytes, fetching * requests);
      slice_.lines = std::min(ceil_div(slice_.step, 64), 2 * slice_.every);
      slice_bytes_ = requests * slice_.step;
    } else if (rows > 2) {
      here_ = {at_bytes(panel, 64 * row_bytes), kTileGroup * row_bytes,
               std::max<std::int64_t>(1, kTileGroup * row_bytes / 64), kTileGroup};
    }
  }
  Ahead during(std::int64_t block) const {
    if (block < first_) return here_;
    Ahead slice = slice_;
    slice.at += (block - first_) * slice_bytes_;
    return slice;
  }

 private:
  std::int64_t first_ = kAllSteps;  // block that prefetches the first slice
  Ahead here_, slice_;
  std::int64_t slice_bytes_ = 0;  // from one block to the next
};

}  // namespace

void cut_packed_b(const MatmulKernel& kernel, const MatmulOperands& p, int threads, MatmulPlan& plan) {
  const std::int64_t m = p.m, k = plan.k, mr = kernel.rows, nr = kernel.width();
  plan.panels = ceil_div(p.n, nr);
  if (m <= 0 || p.n <= 0) return;
  // A chunk should take about 3 us or more: some 300 k flops, or 60 KB of weights when few rows make it memory-bound.
  const double panel_row_flops = 2.0 * static_cast<double>(k) * static_cast<double>(nr);
  const bool finest = threads == kFinestTiling;
  const CutCosts& costs = kCutCosts;
  const double min_flops = finest ? 0 : costs.least_flops;
  // Many small chunks on several threads: a thread slowed by its hyperthread leaves more chunks to the others.
  const std::int64_t workers = std::max(1, threads), want = workers == 1 ? 1 : costs.packed_b_chunks * workers;
  // Rows of A that stay in half of L2 while the panels pass.
  const std::int64_t cache_rows =
      std::max(mr, (costs.packed_b_a / kernel.sum_bytes / std::max<std::int64_t>(k, 1)) / mr * mr);
  const std::int64_t cache_chunks = m > 64 ? ceil_div(m, std::min(m, std::max(cache_rows, 8 * mr))) : 1;
  // With enough rows each thread has its own rows, which it finds in its cache in the tasks before and after. With
  // fewer rows the weights dominate and are read once.
  const bool own_rows = workers > 1 && m >= costs.packed_b_own_rows * workers;
  const std::int64_t least_row_chunks = finest     ? ceil_div(m, mr)
                                        : own_rows ? ceil_div(cache_chunks, workers) * workers
                                                   : cache_chunks;
  std::int64_t most_row_chunks = least_row_chunks;
  if (workers > 1 && !own_rows && !finest) {
    if (cache_chunks > 1) most_row_chunks = cache_chunks + std::min<std::int64_t>(workers, 8);
    // Fewer panels than threads.
    most_row_chunks = std::max(most_row_chunks, std::min(ceil_div(workers, plan.panels), m / 64));
  }
  // Among the splits with enough chunks, choose the one whose slowest thread has the least work. 36 panels on two
  // threads are not 8 chunks of 5 (one thread gets 20) but 12 of 3 (each gets 18).
  double best = 0;
  for (std::int64_t row_splits = least_row_chunks; row_splits <= most_row_chunks; ++row_splits) {
    const std::int64_t rows = without_short_tail(m, ceil_div(ceil_div(m, row_splits), mr) * mr, mr);
    const std::int64_t row_chunks = ceil_div(m, rows);
    const double flops_per_panel = panel_row_flops * static_cast<double>(std::max<std::int64_t>(rows, 4));
    const std::int64_t min_panels =
        std::min(plan.panels, static_cast<std::int64_t>(min_flops / (flops_per_panel + 1.0)) + 1);
    const std::int64_t most_panels =
        std::min(plan.panels, std::max(min_panels, ceil_div(plan.panels * row_chunks, want)));
    const std::int64_t least_panels = workers > 1 ? min_panels : most_panels;
    for (std::int64_t per_chunk = most_panels; per_chunk >= least_panels; --per_chunk) {
      const std::int64_t panel_chunks = ceil_div(plan.panels, per_chunk), chunks = panel_chunks * row_chunks;
      const double cost = static_cast<double>(ceil_div(chunks, workers)) *
                          (flops_per_panel * static_cast<double>(per_chunk) + costs.claim_flops);
      if (plan.chunks != 0 && cost >= best) continue;
      best = cost;
      plan.panels_per_chunk = per_chunk;
      plan.panel_chunks = panel_chunks;
      plan.rows_per_chunk = rows;
      plan.row_chunks = row_chunks;
      plan.chunks = chunks;
    }
  }
  if (kernel.holds(p.a_type)) return;
  plan.rows_per_pack =
      std::min(m, finest ? 1 : std::max<std::int64_t>(1, costs.pack_elements / std::max<std::int64_t>(1, k)));
  plan.pack_chunks = ceil_div(m, plan.rows_per_pack);
  plan.pack_bytes = m * k * kernel.sum_bytes;
}

void widen_rows(const MatmulKernel& kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                void* rows) {
  const std::int64_t first = chunk * plan.rows_per_pack, count = std::min(plan.rows_per_pack, p.m - first);
  kernel.pack_a(p.a_type, p.a, first * p.a_m_stride, p.a_m_stride, 1, count, plan.k,
                static_cast<char*>(rows) + first * plan.k * kernel.sum_bytes, plan.k);
}

void run_packed_chunk(const MatmulKernel& kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                      const void* rows_of_a) {
  const bool in_place = plan.pack_chunks == 0;
  const char* const a = static_cast<const char*>(in_place ? p.a : rows_of_a);
  const std::int64_t lda = in_place ? p.a_m_stride : plan.k;
  const std::int64_t nr = kernel.width(), k = plan.k, sum = kernel.sum_bytes;
  const std::int64_t m0 = chunk / plan.panel_chunks * plan.rows_per_chunk;
  const std::int64_t chunk_rows = std::min(plan.rows_per_chunk, p.m - m0);
  const EvenBlocks split(chunk_rows, kernel.rows);
  const std::int64_t p0 = chunk % plan.panel_chunks * plan.panels_per_chunk,
                     p1 = std::min(plan.panels, p0 + plan.panels_per_chunk);
  const std::int64_t element = panel_element_bytes(kernel.packed_b), panel_bytes = k * nr * element;
  const char* const packed = static_cast<const char*>(p.b);
  const bool c_has_sums = kernel.holds(p.c_type), into_c = c_has_sums && p.epilogue.adds_bias_alone();
  alignas(64) std::byte beside[kMatmulMaxRows * kMatmulMaxVecs * 64];
  for (std::int64_t q = p0; q < p1; ++q) {
    const char *const b = at_bytes(packed, q * panel_bytes), *next = at_bytes(b, panel_bytes);
    if (q + 1 == plan.panels) next = p.prefetch_next != nullptr ? static_cast<const char*>(p.prefetch_next) : b;
    const std::int64_t n0 = q * nr, cols = std::min(nr, p.n - n0), vecs = ceil_div(cols, kernel.lanes),
                       width = vecs * kernel.lanes;
    const PanelPrefetch prefetch(kernel, chunk_rows, split.count, k, b, width * element, next, panel_bytes);
    const MatmulTile* const tile = kernel.tile[static_cast<int>(MatmulTileKind::Rows)][vecs - 1];
    const bool direct = into_c && cols == width;
    const float* const scale = p.b_scale != nullptr ? p.b_scale + n0 : nullptr;
    const float* const bias = direct && p.epilogue.bias != nullptr ? p.epilogue.bias + n0 : nullptr;
    for (std::int64_t block = 0; block < split.count; ++block) {
      const std::int64_t m = m0 + split.start(block), rows = split.rows(block);
      char* const c = at_bytes(p.c, c_has_sums ? (m * p.ldc + n0) * sum : 0);
      // The lines of C that this tile will write arrive during the arithmetic. Outputs larger than L2 gain 3 to 8 %
      // (Zen 4).
      if (c_has_sums) {
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t at = 0; at < cols * sum; at += 64) __builtin_prefetch(c + i * p.ldc * sum + at, 1);
      }
      const Ahead ahead = prefetch.during(block);
      MatmulTileCall call;
      call.lda = lda;
      call.out = direct ? c : static_cast<void*>(beside), call.ldo = direct ? p.ldc : nr;
      call.ahead = ahead.at, call.ahead_step = ahead.step;
      call.ahead_lines = ahead.lines, call.ahead_every = ahead.every;
      std::int64_t k0 = 0;
      do {  // blocks of sums; one of no steps where k = 0
        call.a = at_bytes(a, (m * lda + k0) * sum);
        call.b = at_bytes(b, k0 * width * element), call.k = std::min(kSumBlock, k - k0);
        call.adds_chains = k0 > 0;
        if (k - k0 <= kSumBlock) call.scale = scale, call.bias = bias;
        tile[rows - 1](call);
        if (call.ahead != nullptr) call.ahead += ceil_div(kSumBlock, ahead.every) * ahead.step;
        k0 += kSumBlock;
      } while (k0 < k);
      if (!direct) kernel.store(p, beside, nr, m, rows, n0, cols, 0);
    }
  }
}

}  // namespace rlx::cpu
