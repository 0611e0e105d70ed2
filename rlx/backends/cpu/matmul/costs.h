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

/// What an estimate is for: operands and kernel.
enum class MatmulWork : std::uint8_t {
  PackedF32,  // F32 x with packed B tiles of F32; of BF16 or F16; of I8
  PackedHalf,
  PackedI8,
  RuntimeF32,   // two run-time operands, by the type of sums
  RuntimeHalf,  // F16 or BF16 without pairs
  RuntimeF64,
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

  double run_ns(double m, double n, double k) const { return n * k * std::max(2 * m / ops_per_ns, b_ns); }
};
/// `tiles`: bf16 pairs with AMX.
MatmulEstimate matmul_estimate(Isa isa, MatmulWork work, bool tiles = false);

}  // namespace rlx::cpu
