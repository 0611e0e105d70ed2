// The interleaved block-quantized layout of weights, and its GEMM kernels.
//
// An interleaved panel has as many columns as a vector has lanes. Their quantized values lie side by side for each four
// steps of k. A panel is one stream of memory: the scales d (and m) and small scales of some groups of 32 steps of k,
// then the quantized values of these groups.
//   unit   = header, groups; the last unit of a panel may have fewer groups
//   header = F16 d of each group of the unit, or of the unit (and m likewise), by column; then bytes of groups
//   group  = vectors of 4 * lanes bytes: byte 4 c + i of vector j is the value of column c at k = 4 j + i;
//            for nibbles the low four bits are that value, the high four bits the value at k = 16 + 4 j + i
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlx/backends/cpu/matmul/matmul_kernels.h"

namespace rlx::cpu {

/// The block schemes that have an interleaved layout.
enum class InterleavedKind : std::uint8_t { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K };
inline constexpr int kNumInterleavedKinds = 8;
/// Steps of k that share a scale of x and a group of quantized values.
inline constexpr std::int64_t kInterleavedGroup = 32;

/// Contents of a unit's header. Halves: d of two groups. HalvesAndMins: d and m of two groups. Pairs: one d and one m
/// for eight groups, and a 6-bit scale and a 6-bit min for each group. Signed: one d, and a signed scale for each half
/// of a group.
enum class InterleavedScales : std::uint8_t { Halves, HalvesAndMins, Pairs, Signed };

struct InterleavedTraits {
  InterleavedScales scales;
  bool nibbles;  // two values per byte; else one
  int offset;    // value = scale * (quantized - offset), plus or minus a minimum
  constexpr bool mins() const {
    return scales == InterleavedScales::HalvesAndMins || scales == InterleavedScales::Pairs;
  }
  /// Parts of a group with a scale each.
  constexpr int parts() const { return scales == InterleavedScales::Signed ? 2 : 1; }
  constexpr int unit_groups() const {
    return scales == InterleavedScales::Halves || scales == InterleavedScales::HalvesAndMins ? 2 : 8;
  }
  constexpr std::int64_t header_bytes(std::int64_t lanes) const {
    return lanes * (scales == InterleavedScales::Halves ? 4 : scales == InterleavedScales::HalvesAndMins ? 8 : 20);
  }
  constexpr std::int64_t group_bytes(std::int64_t lanes) const { return lanes * (nibbles ? 16 : 32); }
  constexpr std::int64_t unit_bytes(std::int64_t lanes) const {
    return header_bytes(lanes) + unit_groups() * group_bytes(lanes);
  }
  /// Offsets from the start of a panel: of the unit of group `g`, and of the quantized values of the group.
  constexpr std::int64_t unit_at(std::int64_t g, std::int64_t lanes) const {
    return g / unit_groups() * unit_bytes(lanes);
  }
  constexpr std::int64_t quantized_at(std::int64_t g, std::int64_t lanes) const {
    return unit_at(g, lanes) + header_bytes(lanes) + g % unit_groups() * group_bytes(lanes);
  }
  constexpr std::int64_t panel_bytes(std::int64_t groups, std::int64_t lanes) const {
    return (groups + unit_groups() - 1) / unit_groups() * header_bytes(lanes) + groups * group_bytes(lanes);
  }
};

constexpr InterleavedTraits interleaved_traits(InterleavedKind kind) {
  constexpr InterleavedTraits kTraits[kNumInterleavedKinds] = {
      {InterleavedScales::Halves, true, 8},    {InterleavedScales::HalvesAndMins, true, 0},
      {InterleavedScales::Halves, false, 16},  {InterleavedScales::HalvesAndMins, false, 0},
      {InterleavedScales::Halves, false, 128}, {InterleavedScales::Pairs, true, 0},
      {InterleavedScales::Pairs, false, 0},    {InterleavedScales::Signed, false, 32},
  };
  return kTraits[static_cast<int>(kind)];
}

/// How int8 dot products are summed. Sums are exact, so all give the same bits.
enum class Int8Matmul : std::uint8_t {
  Pairs,  // instructions that every machine of the instruction set has
  Dot,    // AVX-512 VNNI: dot products of four
  Tiles,  // VNNI, and AMX tiles for many rows
};

/// out[r * ld_out + j] = row r of x times key j. A key is a row of K / 32 blocks of Q8_0. x is rounded as in
/// matmuls, and results are the same bit for bit.
struct BlockScores {
  std::int64_t rows = 0, count = 0, k = 0;  // rows of x; keys; elements of a row, a multiple of 32
  const std::int32_t* quants = nullptr;     // quantized x, from `round_score_row`
  const void* keys = nullptr;
  std::int64_t stride = 0;  // bytes between keys
  void* strip = nullptr;    // scratch: `score_panel_bytes`
  float* out = nullptr;
  std::int64_t ld_out = 0;
};

/// The kernels of one instruction set.
struct InterleavedKernels {
  Int8Matmul kind;
  /// F32 C = epilogue(A * B) with B in the interleaved layout and A rounded to int8 in blocks of 32; k is a multiple of
  /// 32. An element is one chain over the groups in the order of k in every plan. Besides the rounding of F32 sums, the
  /// error of element (m, n) is at most the sum over blocks b of k of max |A[m, b]| / 254 * sum of |B[b, n]|. Blocks of
  /// A with all magnitudes below 2^-119 count as zeros. A row of A with a non-finite element gives NaN throughout. A
  /// column with a non-finite d or m gives no finite number.
  MatmulKernel matmul;
  /// Decodes `count` adjacent panels to f32, [k][count * lanes]. Each value is rounded as dequantize_blocks rounds it.
  void (*decode)(InterleavedKind kind, std::int64_t k, const void* panels, std::int64_t count, float* panel);
  /// Runs `iterations` of the fastest loop of int8 dot products on registers and returns the number of operations, to
  /// measure the peak.
  std::int64_t (*dot_peak)(std::int64_t iterations);
  /// Quantizes `row` [K] times `scale` to row `at` of the `rows` rows of `quants`, each of `score_words(k)` words.
  void (*round_score_row)(const float* row, float scale, std::int64_t k, std::int64_t at, std::int64_t rows,
                          std::int32_t* quants);
  void (*block_scores)(const BlockScores& scores);
};

/// Sizes for BlockScores: words of a quantized row, bytes of a panel.
constexpr std::int64_t score_words(std::int64_t k) { return k / kInterleavedGroup * 10; }
constexpr std::int64_t score_panel_bytes(std::int64_t k, std::int64_t lanes) {
  return interleaved_traits(InterleavedKind::Q8_0).panel_bytes(k / kInterleavedGroup, lanes);
}

/// The kernels of `isa`. Errors: Unsupported where this machine lacks the instructions.
const InterleavedKernels& interleaved_kernels(Isa isa, Int8Matmul kind);
/// The int8 instructions of this machine for `isa`, the fastest last.
std::span<const Int8Matmul> int8_matmul(Isa isa);

}  // namespace rlx::cpu
