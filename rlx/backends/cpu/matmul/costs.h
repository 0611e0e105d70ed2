// Measured constants of matmuls: the cut over threads and the choice among kernels read them here alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Constants of a processor family, told apart by feature bits alone.
struct MatmulCosts {
  // Weights in packed B tiles: prefetch 64 rows of k ahead in the same panel, else the next panel.
  bool fetches_same_panel = false;
  /// How many of a panel's last row blocks prefetch the next panel.
  std::int64_t fetching_blocks = 4;
  /// The same for B that is packed as it is read; 0: none do.
  std::int64_t fetching_unpacked = 4;
  /// Bytes from a weight's values to those that are prefetched meanwhile, where few rows read the weight once from
  /// memory. Zen 4 and Zen 5: 4 to 8 KB are as good.
  std::int64_t stream_ahead = 6144;
};
/// Those of this machine.
const MatmulCosts& matmul_costs();

/// How matmuls are cut over threads. A chunk should take some microseconds: claiming one costs some 0.3 us, and a slow
/// thread leaves more of many small chunks to the others.
struct CutCosts {
  double least_flops = 300e3, claim_flops = 30e3;  // of a chunk with F32 sums; what claiming one costs
  std::int64_t pack_elements = 16384;              // of A that a chunk packs or widens
  std::int64_t least_rows = 128;  // rows are split into no fewer, so that a panel is packed once for them
  // Packed B.
  std::int64_t packed_b_chunks = 12;    // per thread
  std::int64_t packed_b_own_rows = 64;  // with so many rows per thread each has its own
  std::int64_t packed_b_a = 512 << 10;  // bytes of A that stay in L2 while the panels pass
  // Records of words with packed B.
  std::int64_t word_chunks = 8;  // per thread
  double word_chunk_ns = 3000, word_bytes_per_ns = 40;
  // Run-time bf16.
  std::int64_t pair_chunks = 4, pair_pack_elements = 1 << 18;
  double pair_chunk_ns = 2000, pair_bytes_per_ns = 20, pair_dot_ops_per_ns = 200, pair_tile_ops_per_ns = 1000;
  // Run-time int8; with AMX tiles.
  std::int64_t byte_rows = 512, byte_pack_elements = 65536, byte_tile_chunks = 4;
  double byte_chunk_ns = 20000, byte_packed_per_ns = 8;
  double byte_tile_chunk_ns = 8000, byte_tile_ops_per_ns = 1500, byte_tile_packed_per_ns = 20;
};
inline constexpr CutCosts kCutCosts{};

/// Those of a record of words with packed B.
struct WordCosts {
  double ops_per_ns = 500;
  std::int64_t cached = 512 << 10;  // bytes of packed A that stay in L2 while panels pass
};
inline constexpr WordCosts kByteDotCosts{}, kByteTileCosts{1500, 1 << 20};  // processors with AMX have 2 MB of L2
inline constexpr WordCosts kPairDotCosts{200}, kPairTileCosts{2000, 3 << 18};

/// What an estimate is for: operands and kernel.
enum class MatmulWork : std::uint8_t {
  PackedF32,  // F32 x with packed B tiles of F32; of BF16 or F16; of I8
  PackedHalf,
  PackedI8,
  RuntimeF32,   // two run-time operands, by the type of sums
  RuntimeHalf,  // F16 or BF16 without pairs
  RuntimeF64,
  RuntimeI8,
  RuntimeI32,
  RuntimeI64,
  RuntimeC64,
  RuntimeC128,
  PairsRuntime,  // BF16 by pairs: run-time operands; BF16 x with a weight; F32 x, rounded, with a weight
  PairsExact,
  PairsRounded,
  BlocksInt8,  // block-quantized weights with int8 x; decoded to F32
  BlocksF32,
};
/// Estimates of one thread, which decide how work is cut over threads.
struct MatmulEstimate {
  double ops_per_ns = 1;  // of the register tiles
  double b_ns = 0;        // per element of B, which may come from memory
  double a_ns = 0;        // per element of A that is packed, rounded or widened first
  double packs_b_ns = 0;  // per element of B that is packed meanwhile

  double run_ns(double m, double n, double k) const {
    return n * k * (std::max(2 * m / ops_per_ns, b_ns) + packs_b_ns);
  }
};
/// `tiles`: bf16 pairs with AMX.
MatmulEstimate matmul_estimate(Isa isa, MatmulWork work, bool tiles = false);

}  // namespace rlx::cpu
