// Quantization schemes, and GGUF's blocks: their byte layout, decoding and encoding.
//
// A block scheme stores `elements` neighbours of the last axis in `bytes` bytes. Element e of a block is
//   y[e] = d * scale[e / group] * q[e] - m * min[e / group]    (each product and the difference rounded to F32)
// d and m are F16 numbers of the block, scale and min are small integers (or absent: 1), and q[e] is a quantized value
// of a few bits minus `offset`. BlockLayout describes once where each of them lies. The decoder, the encoder and the
// op's decomposition into integer ops all read it. Other schemes differ in the types of d, scale and quantized values
// (`BlockUnit`, `GroupScales`, `BlockValues`). block_grids.h describes the rest of the grid schemes (iq1, iq2, iq3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rlx {

/// How numbers are stored as quantized values. Affine: (q - zero_point) * scale with quantized values of any small
/// dtype. The others: GGUF's blocks of the same name, stored as U8 [.., row bytes].
enum class QuantScheme : std::uint8_t {
  Affine,
  Q8_0,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  Q1_0,
  TQ1_0,
  TQ2_0,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
  NVFP4,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  IQ1_S,
  IQ1_M,
};
inline constexpr int kNumQuantSchemes = 26;
/// True for all but Affine.
constexpr bool is_block_scheme(QuantScheme s) { return s != QuantScheme::Affine; }

/// The location of quantized values in a block: bytes [at, at + bytes), read in runs of `run` bytes. A run holds its
/// elements shift by shift: `width` bits at shift 0 of each of its bytes, then `width` bits at shift `width`, ...
struct BlockBits {
  int at = 0, bytes = 0, width = 0, run = 0;
};
/// The packing of the small integers of groups.
enum class GroupScales : std::uint8_t {
  None,          // scale 1
  Nibbles,       // a byte per group: scale in the low four bits, min in the high ones
  SixBitPairs,   // 12 bytes for 8 groups: 6 bits of scale and 6 bits of min each
  SixBits,       // 12 bytes for 16 groups: 6 bits of scale, minus 32
  SignedBytes,   // a signed byte per group
  SplitSixBits,  // 6 bytes for 8 groups: a word of their upper two bits, then four bits each, minus 32
  E4M3,          // a byte per group: exponent and mantissa of an unsigned F8E4M3 number, halved; 0x7f is 0
};
/// The meaning of an element's quantized value.
enum class BlockValues : std::uint8_t {
  Offset,   // the value minus `offset`
  Table,    // values[q]
  Ternary,  // a base-3 digit minus 1: five in each of 48 bytes, four in each of 4
  Grid,     // a value of a row of a grid: block_grids.h
};
using BlockCodes [[deprecated("now BlockValues")]] = BlockValues;
/// The storage of the block's number d.
enum class BlockUnit : std::uint8_t {
  F16,
  F32,
  HalfE8M0,  // a power of two, 2^(byte - 128)
  One,       // not stored: 1
};
struct BlockLayout {
  QuantScheme scheme;
  int elements, bytes;
  BlockBits low, high;  // q = (low | high << low.width) - offset; high.bytes is 0 when there are no high bits
  int offset;           // 128 with low.width 8: the byte is a signed number
  int d_at, m_at;       // F16; -1 when absent, or (d of iq1_m) stored in parts
  bool adds_m;          // + m of the block instead of - m * min of the group
  GroupScales scales;
  int scales_at, group;  // elements per scale; `elements` when there are no scales
  BlockValues codes = BlockValues::Offset;
  BlockUnit unit = BlockUnit::F16;
  const std::int8_t* values = nullptr;  // for BlockValues::Table: one per quantized value
  /// True when d is F16 and quantized values are BlockValues::Offset; scales are then integers.
  bool plain() const { return codes == BlockValues::Offset && unit == BlockUnit::F16; }
  int groups() const { return elements / group; }
  bool has_mins() const { return scales == GroupScales::Nibbles || scales == GroupScales::SixBitPairs; }
};
/// The layout of a block scheme; InvalidArgument for Affine.
const BlockLayout& block_layout(QuantScheme scheme);
/// "affine", "q8_0", .., "iq1_m": the name in text and reports.
std::string_view quant_scheme_name(QuantScheme scheme);

/// The numbers of one block, bit for bit: d and m as F16 bits, the small integers of its groups, and its quantized
/// values before the offset is subtracted. Absent numbers are 0, absent scales 1.
struct BlockNumbers {
  std::uint16_t d = 0, m = 0;
  std::array<std::int8_t, 16> scale{}, min{};
  std::array<std::uint8_t, 256> codes{};  // 0 to 255; for Q8_0 the signed number plus 128
};
/// Unpacks a block of layout.bytes bytes of a plain layout. InvalidArgument for other layouts and for another size.
BlockNumbers unpack_block(QuantScheme scheme, std::span<const std::byte> block);
/// The inverse, giving the same bytes. InvalidArgument for the same reasons.
void pack_block(QuantScheme scheme, const BlockNumbers& numbers, std::span<std::byte> block);

/// Decodes bytes.size() / layout.bytes whole blocks into as many times layout.elements F32 numbers. Each operation is
/// rounded. InvalidArgument when the sizes do not match, or for Affine.
void dequantize_blocks(QuantScheme scheme, std::span<const std::byte> bytes, std::span<float> out);
/// True when quantize_blocks can make blocks of `scheme`. Other schemes can only be decoded.
bool makes_blocks(QuantScheme scheme);
/// Makes blocks of x, whose size must be a multiple of layout.elements. d and m of a block are chosen as GGUF's
/// reference does (the 32-element schemes) or by a small search over the scales of each group (the 256-element ones).
/// Each element then takes the nearest quantized value on the grid of the stored numbers, so no other choice has a
/// smaller error in any element. NaN counts as 0, infinities as the largest F32 number. Errors: InvalidArgument as for
/// dequantize_blocks, Unsupported for a scheme that cannot be made.
void quantize_blocks(QuantScheme scheme, std::span<const float> x, std::span<std::byte> out);

}  // namespace rlx
