// Loop order of a chunk: block of k, group of rows that stays in L2, panel of B, block of rows. The sums of the blocks
// of k before wait in C where it holds them, else in scratch.
#include "rlx/backends/cpu/matmul/driver.h"

#include <algorithm>

#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/backends/cpu/matmul/packed_chunks.h"
#include "rlx/backends/cpu/matmul/word_chunks.h"

namespace rlx::cpu {
namespace {

/// With one block of rows a panel is used once: this many steps of k stay in L1 until then.
constexpr std::int64_t kSkinnySteps = 64;
/// Most panels of a chunk, which bounds what a thread packs: 24 KB to 96 KB each.
constexpr std::int64_t kMostPanels = 16;
/// With fewer rows the tiles read panels of B in place, where they can.
constexpr std::int64_t kPackedRows = 16;
/// Bytes of the sums that wait beside C: of kMostGroupRows rows and a panel of three vectors of 64 bytes.
constexpr std::int64_t kBesideBytes = kMostGroupRows * kMatmulMaxVecs * 64;

/// Vectors of a panel with `cols` columns.
std::int64_t panel_vecs(const MatmulKernel& kernel, std::int64_t cols) {
  if (!kernel.any_vecs && cols > kernel.lanes) return kernel.vecs;
  return ceil_div(cols, kernel.lanes);
}

/// A matmul with its record, and what follows from both.
struct Matmul {
  const MatmulKernel& kernel;
  const MatmulOperands& p;
  const MatmulPlan& plan;
  const MatmulCosts& costs = matmul_costs();

  std::int64_t mr() const { return kernel.rows; }
  std::int64_t nr() const { return kernel.width(); }
  std::int64_t bytes(std::int64_t elements) const { return elements * kernel.sum_bytes; }
  /// Blocks of rows that pass over the panels of a chunk together.
  std::int64_t group_blocks() const { return kernel.group_rows == 0 ? plan.blocks : kernel.group_rows / mr(); }
  /// Steps of k of a panel that are packed at a time.
  std::int64_t packed_steps() const { return std::min(plan.k, std::max(kernel.pass, kSumBlock)); }
  /// Panels of B that are packed at a time: all of a chunk, which each group of rows reads; or one.
  std::int64_t packed_panels(std::int64_t panels) const { return plan.blocks_per_chunk <= group_blocks() ? 1 : panels; }
  /// Contracted axes of numbers, without that of parts.
  int number_axes() const { return p.num_contracted - (kernel.parts > 1 ? 1 : 0); }
  /// B has at most one contracted axis, and its rows are contiguous.
  bool b_has_rows() const { return p.b_n_stride == 1 && number_axes() <= 1; }
  std::int64_t ld_b() const { return number_axes() == 1 ? p.contracted[0].b : 0; }
  /// B is a dense matrix of contiguous columns.
  bool columns_lie_together() const {
    return kernel.parts == 1 && p.num_contracted == 1 && ld_b() == 1 && p.b_n_stride == plan.k &&
           kernel.holds(p.b_type);
  }
  /// Whether tiles can read whole panels of B in place.
  bool reads_b() const { return kernel.parts == 1 && b_has_rows() && kernel.holds(p.b_type); }
  /// Whether tiles can read A in place. A that is read for one panel is not worth packing.
  bool reads_a() const {
    if (kernel.packs_a_always || !kernel.holds(p.a_type)) return false;
    if (plan.panels == 1 && p.num_contracted <= 1) return true;
    std::int64_t stride = 1;  // the contracted axes are one run
    for (int i = p.num_contracted; i-- > 0; stride *= p.contracted[i].extent)
      if (p.contracted[i].a != stride) return false;
    return true;
  }
  /// Whether the sums of the blocks of k before may wait in C.
  bool sums_in_c() const { return kernel.holds(p.c_type) && !p.c_transposed && !p.epilogue_reads_c; }

  bool takes_gemv_rows() const {
    return kernel.gemv_rows != nullptr && plan.blocks == 1 && b_has_rows() && number_axes() == 1 &&
           p.m <= (reads_b() ? kernel.gemv_most_rows : kernel.rows) && p.n >= 4 * kernel.lanes;
  }
  bool takes_gemv_columns() const {
    return kernel.gemv_columns != nullptr && p.m <= kFewRows && p.num_contracted == 1 && p.contracted[0].b == 1 &&
           p.b_n_stride != 1 && (!reads_a() || p.contracted[0].a == 1);
  }
  /// Elements of scratch for the sums of the blocks of k before, where C does not take them.
  std::int64_t kept_sums() const {
    return !sums_in_c() && plan.k > kSumBlock ? plan.blocks_per_chunk * mr() * plan.panels_per_chunk * nr() : 0;
  }
  /// With few rows a block of k is packed and multiplied in passes, so that its panels stay in L2 in between. The
  /// chains of all panels then wait in scratch for the next pass: this many elements.
  std::int64_t chain_sums() const {
    const bool few = plan.blocks_per_chunk > 1 && plan.blocks_per_chunk <= group_blocks();
    const bool passes = kernel.pass < kSumBlock && plan.k > kernel.pass;
    return few && passes ? plan.panels_per_chunk * plan.blocks_per_chunk * mr() * nr() : 0;
  }
};

/// A chunk: where its operands begin, and its ranges.
struct ChunkPlace {
  const char* a = nullptr;  // in place or packed
  std::int64_t b_at = 0, c_at = 0;
  std::int64_t p0 = 0, p1 = 0, first = 0, last = 0;  // panels, blocks of rows
};
ChunkPlace chunk_place(const Matmul& g, std::int64_t chunk, const void* packed) {
  const MatmulPlan& plan = g.plan;
  const bool in_place = packed == nullptr;
  ChunkPlace at;
  at.a = static_cast<const char*>(in_place ? g.p.a : packed);
  std::int64_t rest = chunk / plan.panel_chunks / plan.row_chunks;
  for (int i = g.p.num_outer; i-- > 0;) {
    const GemmAxis& axis = g.p.outer[i];
    const std::int64_t place = rest % axis.extent;
    rest /= axis.extent;
    at.a += g.bytes(place * (in_place ? axis.a : plan.pack_stride[i]));
    at.b_at += place * axis.b;
    at.c_at += place * axis.c;
  }
  at.p0 = chunk % plan.panel_chunks * plan.panels_per_chunk;
  at.p1 = std::min(plan.panels, at.p0 + plan.panels_per_chunk);
  at.first = chunk / plan.panel_chunks % plan.row_chunks * plan.blocks_per_chunk;
  at.last = std::min(plan.blocks, at.first + plan.blocks_per_chunk);
  return at;
}

/// Packs steps [k0, k0 + k) of a panel of B, whose first column is at element `at`.
void pack_panel(const Matmul& g, std::int64_t k0, std::int64_t k, std::int64_t at, std::int64_t cols, char* panel,
                std::int64_t width) {
  const std::int64_t parts = g.kernel.parts;
  Contracted from(g.p, k0 / parts, g.number_axes());
  for (std::int64_t done = 0; done < k / parts;) {
    const std::int64_t run = std::min(k / parts - done, from.run());
    g.kernel.pack_b(g.p.b_type, g.p.b, at + from.at_b, from.inner().b, g.p.b_n_stride, run, cols,
                    panel + g.bytes(parts * done * width), width);
    from.advance(run);
    done += run;
  }
}

void run_gemv_rows(const Matmul& g, const ChunkPlace& at, bool in_place, void* scratch) {
  const MatmulOperands& p = g.p;
  const std::int64_t n0 = at.p0 * g.nr(), cols = std::min(p.n, at.p1 * g.nr()) - n0;
  MatmulGemv v{at.a, in_place ? p.a_m_stride : 1, in_place ? 1 : p.m, p.m};
  v.b_type = p.b_type, v.b = p.b, v.at = at.b_at + n0 / g.kernel.parts, v.ldb = g.ld_b();
  v.k = g.plan.k, v.cols = cols, v.sums = scratch, v.ld = ceil_div(cols, g.kernel.lanes) * g.kernel.lanes;
  g.kernel.gemv_rows(v);
  g.kernel.store(p, scratch, v.ld, 0, p.m, n0, cols, at.c_at);
}

void run_gemv_columns(const Matmul& g, const ChunkPlace& at, bool in_place) {
  const MatmulOperands& p = g.p;
  const std::int64_t lanes = g.kernel.lanes, n1 = std::min(p.n, at.p1 * g.nr());
  alignas(64) std::byte tile[kFewRows * 64];
  for (std::int64_t n = at.p0 * g.nr(); n < n1; n += lanes) {
    const std::int64_t cols = std::min(lanes, n1 - n);
    g.kernel.gemv_columns({.a = at.a,
                           .lda = p.a_m_stride,
                           .a_step = in_place ? 1 : p.m,
                           .rows = p.m,
                           .b_type = p.b_type,
                           .b = p.b,
                           .at = at.b_at + n * p.b_n_stride,
                           .ldb = p.b_n_stride,
                           .k = g.plan.k,
                           .cols = cols,
                           .sums = tile,
                           .ld = lanes});
    g.kernel.store(p, tile, lanes, 0, p.m, n, cols, at.c_at);
  }
}

/// A chunk by register tiles.
class TiledChunk {
 public:
  TiledChunk(const Matmul& g, const ChunkPlace& at, bool a_in_place, void* scratch)
      : g_(g), at_(at), split_(g.p.m, g.mr()), a_in_place_(a_in_place), panels_(static_cast<char*>(scratch)) {
    const std::int64_t panels = at.p1 - at.p0;
    ld_kept_ = panels * g.nr();
    slots_ = g.packed_panels(panels);
    kept_ = panels_ + g.bytes(slots_ * g.packed_steps() * g.nr());
    if (g.chain_sums() > 0) chains_ = kept_ + g.bytes(g.kept_sums());
    const std::int64_t blocks = at.last - at.first;
    a_step_ = g.p.num_contracted > 0 ? g.p.contracted[g.p.num_contracted - 1].a : 1;
    skinny_ = blocks == 1;
    b_in_place_ = g.reads_b() && (skinny_ || g.p.m < kPackedRows);
    at_once_ = skinny_ && !b_in_place_ ? kSkinnySteps : chains_ != nullptr ? g.kernel.pass : g.packed_steps();
    at_once_ = std::max<std::int64_t>(1, at_once_);
  }
  void run() {
    // A panel that is used once packs its columns in one pass, as streams of memory.
    const std::int64_t each = skinny_ ? 1 : at_.p1 - at_.p0;
    for (std::int64_t q = at_.p0; q < at_.p1; q += each) {
      std::int64_t k0 = 0;
      do steps(k0, q, q + each);
      while ((k0 += at_once_) < g_.plan.k);
    }
  }

 private:
  /// A panel within the current steps of k.
  struct Panel {
    std::int64_t q, n0, cols, vecs, width;
    const char* b = nullptr;
    std::int64_t ldb = 0;
    char* keep = nullptr;        // where the first block of rows packs it
    const char* next = nullptr;  // the next panel, which is prefetched meanwhile in parts of a row of it
    std::int64_t next_step = 0;  // distance between these parts
  };
  Panel panel(std::int64_t q, std::int64_t k0, std::int64_t k, bool first_group) const {
    const MatmulOperands& p = g_.p;
    Panel out{};
    out.q = q, out.n0 = q * g_.nr(), out.cols = std::min(g_.nr(), p.n - out.n0);
    out.vecs = panel_vecs(g_.kernel, out.cols), out.width = out.vecs * g_.kernel.lanes;
    char* const slot = slots_ == 1 ? panels_ : panels_ + g_.bytes((q - at_.p0) * k * g_.nr());
    const bool whole = out.cols == g_.nr() && g_.reads_b();
    const char* const rows = whole || b_in_place_ ? at_bytes(p.b, g_.bytes(at_.b_at + k0 * g_.ld_b() + out.n0)) : slot;
    out.b = slot, out.ldb = out.width;
    if (b_in_place_ && out.cols == out.width) {
      out.b = rows, out.ldb = g_.ld_b();
    } else if (whole && first_group && g_.kernel.tile[static_cast<int>(MatmulTileKind::Keep)][out.vecs - 1][0]) {
      out.b = rows, out.ldb = g_.ld_b(), out.keep = slot;
    } else if (first_group) {
      pack_panel(g_, k0, k, at_.b_at + out.n0 / g_.kernel.parts * p.b_n_stride, out.cols, slot, out.width);
    }
    if (!first_group || k == 0 || q + 1 == at_.p1 || g_.p.m < kPackedRows) return out;
    if (whole) {
      out.next = rows + g_.bytes(g_.nr()), out.next_step = g_.bytes(g_.ld_b());
    } else if (g_.columns_lie_together() && k == g_.plan.k) {
      out.next = at_bytes(p.b, g_.bytes(at_.b_at + (out.n0 + g_.nr()) * k)), out.next_step = g_.bytes(g_.nr());
    }
    return out;
  }
  /// The sums of a block of k, for the panels [q0, q1). Those of the first block are made in C where it takes them.
  void steps(std::int64_t k0, std::int64_t q0, std::int64_t q1) {
    const std::int64_t k = std::min(at_once_, g_.plan.k - k0), together = g_.group_blocks();
    for (std::int64_t first = at_.first; first < at_.last; first += together) {
      const std::int64_t last = std::min(at_.last, first + together);
      for (std::int64_t q = q0; q < q1; ++q) {
        const Panel b = panel(q, k0, k, first == at_.first);
        std::int64_t s = 0;
        do {
          const std::int64_t pass = std::min(g_.kernel.pass, k - s);
          rows(b, first, last, k0, s, pass, s + pass == k && k0 + k >= g_.plan.k);
          s += pass;
        } while (s < k);
      }
    }
  }
  /// The register tiles for a panel, by rows.
  const MatmulTile* tiles(const Panel& b, const char* keep, std::int64_t ldb) const {
    const bool packed = ldb == b.width;
    const MatmulTileKind kind = keep != nullptr                                        ? MatmulTileKind::Keep
                                : !a_in_place_ && (packed || g_.kernel.packs_a_always) ? MatmulTileKind::Packed
                                : a_in_place_ && packed && a_step_ == 1                ? MatmulTileKind::Rows
                                                                                       : MatmulTileKind::Strided;
    return g_.kernel.tile[static_cast<int>(kind)][b.vecs - 1];
  }
  /// Multiplies blocks of rows [first, last) with steps [s, s + pass) of a panel that begins with step k0.
  void rows(const Panel& b, std::int64_t first, std::int64_t last, std::int64_t k0, std::int64_t s, std::int64_t pass,
            bool ends) {
    const MatmulOperands& p = g_.p;
    const std::int64_t nr = g_.nr();
    const bool in_c = g_.sums_in_c(), into_c = in_c && p.epilogue.plain() && b.cols == b.width;
    char* const c = at_bytes(p.c, in_c ? g_.bytes(at_.c_at + b.n0) : 0);
    char* const own = chains_ != nullptr ? chains_ + g_.bytes((b.q - at_.p0) * g_.plan.blocks_per_chunk * g_.mr() * nr)
                                         : reinterpret_cast<char*>(beside_);
    const bool waits = chains_ != nullptr || g_.kernel.pass < at_once_;  // sums wait for the next pass
    const std::int64_t own_block = waits ? g_.bytes(g_.mr() * nr) : 0, row_bytes = g_.bytes(b.cols),
                       ldc = g_.bytes(p.ldc);
    MatmulTileCall call;
    const char* now = b.b;
    char* keep = b.keep;
    call.ldb = b.ldb;
    const MatmulTile* tile = tiles(b, keep, call.ldb);
    // The last blocks of rows prefetch the next panel: each a share of it, a row's width every few steps of k.
    std::int64_t fetching = b.next == nullptr ? 0 : std::min(last - first, g_.costs.fetching_unpacked),
                 every = kTileGroup;
    while (2 * every <= fetching) every *= 2;
    fetching = std::min(fetching, every);
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t m = split_.start(block), count = split_.rows(block);
      char *const to = c + m * ldc, *const beside = own + (block - first) * own_block;
      if (in_c) {  // prefetched during the multiplication
        for (std::int64_t i = 0; i < count; ++i)
          for (std::int64_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(to + i * ldc + at, 1);
      }
      call.lda = a_in_place_ ? p.a_m_stride : 1, call.a_step = a_in_place_ ? a_step_ : count;
      const char* const a = at_.a + g_.bytes(a_in_place_ ? m * call.lda : m * g_.plan.k);
      if (const std::int64_t part = block - (last - fetching); part >= 0) {
        call.ahead_step = b.next_step, call.ahead_lines = g_.bytes(nr) / 64, call.ahead_every = every;
        call.ahead = b.next + (s + part * (pass / every)) * b.next_step;
      }
      std::int64_t done = 0;
      do {  // blocks of sums; one of no steps where k = 0
        const std::int64_t from = k0 + s + done, steps = std::min(pass - done, kSumBlock - from % kSumBlock);
        const bool first_block = from < kSumBlock, last_block = ends && done + steps == pass;
        const bool direct = into_c && first_block;
        call.a = a + g_.bytes(from * call.a_step), call.k = steps, call.adds = from % kSumBlock != 0;
        call.b = at_bytes(now, g_.bytes((s + done) * call.ldb));
        if (keep != nullptr) call.keep = keep + g_.bytes((s + done) * b.width);
        call.out = direct ? to : beside, call.ldo = direct ? p.ldc : nr;
        tile[count - 1](call);
        if (call.ahead != nullptr) call.ahead += steps / every * b.next_step;
        if (!direct && (last_block || (from + steps) % kSumBlock == 0))
          finish(b, m, count, to, beside, first_block, last_block);
        done += steps;
      } while (done < pass);
      if (keep == nullptr) continue;
      now = keep, call.ldb = b.width, keep = nullptr;
      tile = tiles(b, keep, call.ldb);
    }
  }
  /// The sums of a block of k are complete in `own`: adds them to those of the blocks before, or stores the total.
  void finish(const Panel& b, std::int64_t m, std::int64_t rows, char* to, char* own, bool first_block, bool ends) {
    const MatmulKernel& kernel = g_.kernel;
    const bool in_c = g_.sums_in_c();
    const std::int64_t nr = g_.nr(), ld = in_c ? g_.p.ldc : ld_kept_;
    char* const total = in_c ? to : kept_ + g_.bytes((m - split_.start(at_.first)) * ld_kept_ + (b.q - at_.p0) * nr);
    if (!ends || (in_c && g_.p.epilogue.plain())) return kernel.add_rows(total, ld, own, nr, rows, b.cols, first_block);
    if (!first_block) kernel.add_rows(own, nr, total, ld, rows, b.cols, false);
    kernel.store(g_.p, own, nr, m, rows, b.n0, b.cols, at_.c_at);
  }

  const Matmul& g_;
  const ChunkPlace& at_;
  const EvenBlocks split_;
  const bool a_in_place_;
  char *panels_, *kept_, *chains_ = nullptr;  // packed B; sums of the blocks before; chains between passes
  std::int64_t slots_, ld_kept_;
  std::int64_t a_step_;       // of A in place
  bool skinny_, b_in_place_;  // one block of rows, which gains nothing from packing what tiles can read
  std::int64_t at_once_;
  alignas(64) std::byte beside_[kBesideBytes];
};

}  // namespace

Contracted::Contracted(const MatmulOperands& product, std::int64_t k, int num_axes) : p(product), axes(num_axes) {
  for (int i = axes; i-- > 0 && p.contracted[i].extent > 0;) {
    index[i] = k % p.contracted[i].extent;
    k /= p.contracted[i].extent;
    at_a += index[i] * p.contracted[i].a;
    at_b += index[i] * p.contracted[i].b;
  }
}
void Contracted::advance(std::int64_t steps) {
  if (axes == 0) return;
  const int last = axes - 1;
  index[last] += steps;
  at_a += steps * inner().a;
  at_b += steps * inner().b;
  for (int i = last; i > 0 && index[i] == p.contracted[i].extent; --i) {
    at_a += p.contracted[i - 1].a - index[i] * p.contracted[i].a;
    at_b += p.contracted[i - 1].b - index[i] * p.contracted[i].b;
    index[i] = 0;
    ++index[i - 1];
  }
}

MatmulSums matmul_sums(DType c) {
  switch (c) {
    case DType::F64: return MatmulSums::F64;
    case DType::C64: return MatmulSums::C64;
    case DType::C128: return MatmulSums::C128;
    case DType::F32:
    case DType::F16:
    case DType::BF16: return MatmulSums::F32;
    default: return size_bytes(c) == 8 ? MatmulSums::I64 : MatmulSums::I32;
  }
}

MatmulPlan plan_matmul(const MatmulKernel* kernel, const MatmulOperands& p, int threads) {
  if (kernel->plan != nullptr) return kernel->plan(p, threads);
  MatmulPlan plan;
  const Matmul g{*kernel, p, plan};
  const std::int64_t mr = g.mr(), nr = g.nr();
  const std::int64_t outer = num_matmuls(p);
  for (int i = 0; i < p.num_contracted; ++i) plan.k *= p.contracted[i].extent;
  if (p.b_packed) {
    (kernel->multiply_words != nullptr ? cut_words : cut_packed_b)(*kernel, p, threads, plan);
    return plan;
  }
  if (p.m <= 0 || p.n <= 0 || outer <= 0) return plan;
  const bool finest = threads == kFinestTiling;
  plan.panels = ceil_div(p.n, nr);
  plan.blocks = EvenBlocks(p.m, mr).count;
  const std::int64_t workers = std::max(1, threads), want = workers == 1 ? 1 : kernel->chunks_per_thread * workers;
  const std::int64_t each = ceil_div(want, outer);
  // Chunks are ranges of panels, so that each panel is packed once. Where there are few panels, rows are split too.
  const double panel_flops =
      2.0 * static_cast<double>(p.m) * static_cast<double>(std::max<std::int64_t>(plan.k, 1) * nr);
  const std::int64_t least = finest ? 1 : static_cast<std::int64_t>(kCutCosts.least_flops / (panel_flops + 1.0)) + 1;
  plan.panels_per_chunk = std::min({plan.panels, kMostPanels, std::max(least, ceil_div(plan.panels, each))});
  plan.panel_chunks = ceil_div(plan.panels, plan.panels_per_chunk);
  plan.panels_per_chunk = ceil_div(plan.panels, plan.panel_chunks);
  plan.panel_chunks = ceil_div(plan.panels, plan.panels_per_chunk);
  const std::int64_t least_blocks = finest ? 1 : kCutCosts.least_rows / mr;
  const std::int64_t row_splits =
      std::min(ceil_div(each, plan.panel_chunks), std::max<std::int64_t>(1, plan.blocks / least_blocks));
  plan.blocks_per_chunk = ceil_div(plan.blocks, finest ? plan.blocks : row_splits);
  plan.row_chunks = ceil_div(plan.blocks, plan.blocks_per_chunk);
  plan.chunks = outer * plan.panel_chunks * plan.row_chunks;
  const std::int64_t packed = g.packed_panels(plan.panels_per_chunk) * g.packed_steps() * nr;
  const std::int64_t lines = g.takes_gemv_rows() ? plan.panels_per_chunk * p.m * nr * (plan.k > kSumBlock ? 2 : 1) : 0;
  plan.scratch_bytes = static_cast<std::size_t>(g.bytes(std::max(lines, packed + g.kept_sums() + g.chain_sums())));
  if (g.reads_a()) return plan;
  std::int64_t matrices = 1;
  for (int i = p.num_outer; i-- > 0;) {
    if (p.outer[i].a == 0) continue;
    plan.pack_stride[i] = matrices * p.m * plan.k;
    matrices *= p.outer[i].extent;
  }
  plan.pack_bytes = g.bytes(matrices * p.m * plan.k);
  plan.blocks_per_pack =
      finest ? 1 : std::min(plan.blocks, ceil_div(kCutCosts.pack_elements, std::max<std::int64_t>(1, plan.k) * mr));
  plan.pack_chunks = matrices * ceil_div(plan.blocks, plan.blocks_per_pack);
  return plan;
}

void pack_matmul(const MatmulKernel* kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                 void* packed) {
  if (kernel->pack != nullptr) return kernel->pack(p, plan, chunk, packed);
  if (kernel->pack_words != nullptr) return pack_word_rows(*kernel, p, plan, chunk, packed);
  if (p.b_packed) return widen_rows(*kernel, p, plan, chunk, packed);
  const Matmul g{*kernel, p, plan};
  const EvenBlocks split(p.m, g.mr());
  const std::int64_t per_matrix = ceil_div(plan.blocks, plan.blocks_per_pack),
                     first = chunk % per_matrix * plan.blocks_per_pack;
  std::int64_t rest = chunk / per_matrix, at = 0;
  char* to = static_cast<char*>(packed);
  for (int i = p.num_outer; i-- > 0;) {
    if (p.outer[i].a == 0) continue;
    at += rest % p.outer[i].extent * p.outer[i].a;
    to += g.bytes(rest % p.outer[i].extent * plan.pack_stride[i]);
    rest /= p.outer[i].extent;
  }
  // Some steps of k for all blocks, then the next steps: where rows are adjacent they share cache lines.
  Contracted from(p, 0, p.num_contracted);
  for (std::int64_t done = 0; done < plan.k;) {
    const std::int64_t run = std::min({plan.k - done, from.run(), std::int64_t{32}});
    for (std::int64_t block = first; block < std::min(plan.blocks, first + plan.blocks_per_pack); ++block) {
      const std::int64_t m = split.start(block), rows = split.rows(block);
      kernel->pack_a(p.a_type, p.a, at + m * p.a_m_stride + from.at_a, from.inner().a, p.a_m_stride, run, rows,
                     to + g.bytes(m * plan.k + done * rows), rows);
    }
    from.advance(run);
    done += run;
  }
}

void run_matmul(const MatmulKernel* kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                const void* packed, void* scratch) {
  if (kernel->run != nullptr) return kernel->run(p, plan, chunk, packed, scratch);
  if (kernel->multiply_words != nullptr) return run_word_chunk(*kernel, p, plan, chunk, packed);
  if (p.b_packed) return run_packed_chunk(*kernel, p, plan, chunk, packed);
  const Matmul g{*kernel, p, plan};
  const bool in_place = g.reads_a();
  const ChunkPlace at = chunk_place(g, chunk, in_place ? nullptr : packed);
  if (g.takes_gemv_rows()) return run_gemv_rows(g, at, in_place, scratch);
  if (g.takes_gemv_columns()) return run_gemv_columns(g, at, in_place);
  TiledChunk(g, at, in_place, scratch).run();
}

void run_whole_matmul(const MatmulKernel* kernel, const MatmulOperands& p, void* scratch, void* packed) {
  const MatmulPlan plan = plan_matmul(kernel, p, 1);
  for (std::int64_t chunk = 0; chunk < plan.pack_chunks; ++chunk) pack_matmul(kernel, p, plan, chunk, packed);
  for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk) run_matmul(kernel, p, plan, chunk, packed, scratch);
}

}  // namespace rlx::cpu
