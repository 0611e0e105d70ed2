// Quantisation schemes, and GGUF's blocks: how their bytes are laid out, decoded and made.
//
// A block scheme stores `elements` neighbours of the last axis in `bytes` bytes. Element e of a block is
//   y[e] = d * scale[e / group] * q[e] - m * min[e / group]    (each product and the difference rounded to F32)
// where d and m are F16 numbers of the block, scale and min small integers (or absent: 1), and q[e] a code of a few
// bits less `offset`. The layout below says where each of them lies, once: the decoder, the encoder and the op's
// decomposition into integer ops all read it. Other schemes differ in what d, scale and code are numbers of
// (`BlockUnit`, `GroupScales`, `BlockCodes`); of the grid schemes (iq1, iq2, iq3) block_grids.h says the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rlx {

/// How numbers are stored as codes. Affine: (q - zero_point) * scale with codes of any small dtype; the others: GGUF's
/// blocks of the same name, stored as U8 [.., row bytes].
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

/// Where codes lie in a block: bytes [at, at + bytes), walked in runs of `run` bytes; a run gives its elements shift by
/// shift: `width` bits at shift 0 of each of its bytes, then `width` bits at shift `width`, ...
struct BlockBits {
  int at = 0, bytes = 0, width = 0, run = 0;
};
/// How the small integers of groups are packed.
enum class GroupScales : std::uint8_t {
  None,          // scale 1
  Nibbles,       // a byte a group: scale in the low four bits, min in the high ones
  SixBitPairs,   // 12 bytes for 8 groups: 6 bits of scale and of min
  SixBits,       // 12 bytes for 16 groups: 6 bits of scale, less 32
  SignedBytes,   // a signed byte a group
  SplitSixBits,  // 6 bytes for 8 groups: a word of their upper two bits, then four bits each, less 32
  E4M3,          // a byte a group: the exponent and mantissa of an unsigned F8E4M3 number, halved; 0x7f is 0
};
/// What the code of an element stands for.
enum class BlockCodes : std::uint8_t {
  Offset,   // the code less `offset`
  Table,    // values[code]
  Ternary,  // a digit of base 3 less 1: five in each of 48 bytes, four in each of 4
  Grid,     // a value of a row of a grid: block_grids.h
};
/// What the block's number d is stored as.
enum class BlockUnit : std::uint8_t {
  F16,
  F32,
  HalfE8M0,  // a power of two, 2^(byte - 128)
  One,       // not at all: 1
};
struct BlockLayout {
  QuantScheme scheme;
  int elements, bytes;
  BlockBits low, high;  // q = (low | high << low.width) - offset; high.bytes is 0 where there are none
  int offset;           // 128 with low.width 8: the byte is a signed number
  int d_at, m_at;       // F16; -1 where there is none, or (d of iq1_m) it lies in parts
  bool adds_m;          // + m of the block instead of - m * min of the group
  GroupScales scales;
  int scales_at, group;  // elements a scale; `elements` where there are none
  BlockCodes codes = BlockCodes::Offset;
  BlockUnit unit = BlockUnit::F16;
  const std::int8_t* values = nullptr;  // of BlockCodes::Table: one for each code
  /// Whether d is F16, codes are numbers less the offset, and scales small integers.
  bool plain() const { return codes == BlockCodes::Offset && unit == BlockUnit::F16; }
  int groups() const { return elements / group; }
  bool has_mins() const { return scales == GroupScales::Nibbles || scales == GroupScales::SixBitPairs; }
};
/// The layout of a block scheme; InvalidArgument for Affine.
const BlockLayout& block_layout(QuantScheme scheme);
/// "affine", "q8_0", .., "iq1_m": the name in text and reports.
std::string_view quant_scheme_name(QuantScheme scheme);

/// The numbers of one block, bit for bit: d and m as F16 bits, the small integers of its groups, and its codes without
/// the offset. What the scheme does not have is 0, a scale 1.
struct BlockNumbers {
  std::uint16_t d = 0, m = 0;
  std::array<std::int8_t, 16> scale{}, min{};
  std::array<std::uint8_t, 256> codes{};  // 0 to 255; of Q8_0 the signed number plus 128
};
/// Takes a block of layout.bytes bytes of a plain layout apart; InvalidArgument for others and for another size.
BlockNumbers unpack_block(QuantScheme scheme, std::span<const std::byte> block);
/// The way back: the same bytes. InvalidArgument likewise.
void pack_block(QuantScheme scheme, const BlockNumbers& numbers, std::span<std::byte> block);

/// Decodes whole blocks: bytes.size() / layout.bytes of them into as many times layout.elements numbers, in F32, each
/// operation rounded. InvalidArgument when the sizes do not match, or for Affine.
void dequantize_blocks(QuantScheme scheme, std::span<const std::byte> bytes, std::span<float> out);
/// Whether quantize_blocks makes blocks of `scheme`; of the others they are decoded alone.
bool makes_blocks(QuantScheme scheme);
/// Makes blocks of x, whose size is a multiple of layout.elements. The block's numbers d and m are chosen as GGUF's
/// reference does (the 32-element schemes) or by a small search over the scales of each group (the 256-element ones);
/// codes are then the nearest ones on the grid that the stored numbers span, so that no element is further off than any
/// other choice of codes would leave it. NaN counts as 0, infinities as the largest F32 number. Errors: InvalidArgument
/// as dequantize_blocks, Unsupported for a scheme that is not made.
void quantize_blocks(QuantScheme scheme, std::span<const float> x, std::span<std::byte> out);

}  // namespace rlx
