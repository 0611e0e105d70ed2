// Packs, decodes and makes GGUF's blocks from one description of their layouts.
#include "rlx/tensor/block_schemes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "rlx/error.h"
#include "rlx/tensor/block_grids.h"
#include "rlx/tensor/block_pack.h"
#include "rlx/tensor/half.h"

namespace rlx {
namespace {

constexpr int kMaxElements256 = 256, kMaxGroups = 16;
using Block = UnpackedBlock;

// clang-format off
constexpr auto kNone = GroupScales::None, kNibbles = GroupScales::Nibbles, kPairs = GroupScales::SixBitPairs,
               kSixBits = GroupScales::SixBits, kBytes = GroupScales::SignedBytes, kSplit = GroupScales::SplitSixBits,
               kE4M3 = GroupScales::E4M3;
constexpr auto kOffset = BlockValues::Offset, kTable = BlockValues::Table, kTernary = BlockValues::Ternary,
               kGrid = BlockValues::Grid;
constexpr auto kF16 = BlockUnit::F16, kF32 = BlockUnit::F32, kE8M0 = BlockUnit::HalfE8M0, kOne = BlockUnit::One;
constexpr std::int8_t kSign[] = {-1, 1},
                      kCurve[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
                      kTwiceE2M1[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr BlockLayout kLayouts[] = {
  // elements bytes    low bits        high bits     offset d    m  adds_m  scales     at group
  {QuantScheme::Q8_0,  32,  34, { 2,  32, 8, 32}, {  0,  0, 0,  0}, 128,   0, -1, false, kNone,      0, 32},
  {QuantScheme::Q4_0,  32,  18, { 2,  16, 4, 16}, {  0,  0, 0,  0},   8,   0, -1, false, kNone,      0, 32},
  {QuantScheme::Q4_1,  32,  20, { 4,  16, 4, 16}, {  0,  0, 0,  0},   0,   0,  2, true,  kNone,      0, 32},
  {QuantScheme::Q5_0,  32,  22, { 6,  16, 4, 16}, {  2,  4, 1,  1},  16,   0, -1, false, kNone,      0, 32},
  {QuantScheme::Q5_1,  32,  24, { 8,  16, 4, 16}, {  4,  4, 1,  1},   0,   0,  2, true,  kNone,      0, 32},
  {QuantScheme::Q2_K, 256,  84, {16,  64, 2, 32}, {  0,  0, 0,  0},   0,  80, 82, false, kNibbles,   0, 16},
  {QuantScheme::Q3_K, 256, 110, {32,  64, 2, 32}, {  0, 32, 1, 32},   4, 108, -1, false, kSixBits,  96, 16},
  {QuantScheme::Q4_K, 256, 144, {16, 128, 4, 32}, {  0,  0, 0,  0},   0,   0,  2, false, kPairs,     4, 32},
  {QuantScheme::Q5_K, 256, 176, {48, 128, 4, 32}, { 16, 32, 1, 32},   0,   0,  2, false, kPairs,     4, 32},
  {QuantScheme::Q6_K, 256, 210, { 0, 128, 4, 64}, {128, 64, 2, 32},  32, 208, -1, false, kBytes,   192, 16},
  {QuantScheme::Q8_K, 256, 292, { 4, 256, 8, 256}, {}, 128,  0, -1, false, kNone,   0, 256, kOffset, kF32},
  {QuantScheme::Q1_0, 128,  18, { 2,  16, 1,  1}, {},   0,   0, -1, false, kNone,   0, 128, kTable, kF16, kSign},
  {QuantScheme::TQ1_0, 256, 54, { 0,  52, 8, 52}, {},   1,  52, -1, false, kNone,   0, 256, kTernary},
  {QuantScheme::TQ2_0, 256, 66, { 0,  64, 2, 32}, {},   1,  64, -1, false, kNone,   0, 256},
  {QuantScheme::IQ4_NL, 32, 18, { 2,  16, 4, 16}, {},   0,   0, -1, false, kNone,   0, 32, kTable, kF16, kCurve},
  {QuantScheme::IQ4_XS, 256, 136, {8, 128, 4, 16}, {},  0,   0, -1, false, kSplit,  2, 32, kTable, kF16, kCurve},
  {QuantScheme::MXFP4, 32,  17, { 1,  16, 4, 16}, {},   0,   0, -1, false, kNone,   0, 32, kTable, kE8M0, kTwiceE2M1},
  {QuantScheme::NVFP4, 64,  36, { 4,  32, 4,  8}, {},   0,  -1, -1, false, kE4M3,   0, 16, kTable, kOne, kTwiceE2M1},
  {QuantScheme::IQ2_XXS, 256, 66, {}, {}, 0, 0, -1, false, kNone, 0, 32, kGrid},
  {QuantScheme::IQ2_XS, 256, 74, {}, {}, 0, 0, -1, false, kNone, 0, 16, kGrid},
  {QuantScheme::IQ2_S, 256, 82, {}, {}, 0, 0, -1, false, kNone, 0, 16, kGrid},
  {QuantScheme::IQ3_XXS, 256, 98, {}, {}, 0, 0, -1, false, kNone, 0, 32, kGrid},
  {QuantScheme::IQ3_S, 256, 110, {}, {}, 0, 0, -1, false, kNone, 0, 32, kGrid},
  {QuantScheme::IQ1_S, 256, 50, {}, {}, 0, 0, -1, false, kNone, 0, 32, kGrid},
  {QuantScheme::IQ1_M, 256, 56, {}, {}, 0, -1, -1, false, kNone, 0, 16, kGrid},
};
// clang-format on
constexpr std::string_view kSchemeNames[kNumQuantSchemes] = {
    "affine", "q8_0",    "q4_0",   "q4_1",  "q5_0",    "q5_1",  "q2_k",   "q3_k",   "q4_k",
    "q5_k",   "q6_k",    "q8_k",   "q1_0",  "tq1_0",   "tq2_0", "iq4_nl", "iq4_xs", "mxfp4",
    "nvfp4",  "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1_s",  "iq1_m"};
static_assert(std::size(kLayouts) == kNumQuantSchemes - 1);

float load_f16(const std::uint8_t* p) { return f16_bits_to_float(static_cast<std::uint16_t>(p[0] | p[1] << 8)); }
void store_f16(std::uint8_t* p, float v) {
  const std::uint16_t bits = float_to_f16_bits(v);
  p[0] = static_cast<std::uint8_t>(bits & 255);
  p[1] = static_cast<std::uint8_t>(bits >> 8);
}

// Calls f(element, byte, shift) for every element in the order of the bytes.
template <class F>
void walk_bits(const BlockBits& b, F f) {
  const int shifts = b.width ? 8 / b.width : 0;
  for (int start = 0, e = 0; start < b.bytes; start += b.run)
    for (int s = 0; s < shifts; ++s)
      for (int j = 0; j < b.run; ++j) f(e++, b.at + start + j, s * b.width);
}

void unpack_scales(const BlockLayout& l, const std::uint8_t* bytes, Block& out) {
  const std::uint8_t* p = bytes + l.scales_at;
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  out.scale.fill(1);
  switch (l.scales) {
    case GroupScales::None: return;
    case GroupScales::Nibbles:
      for (int g = 0; g < l.groups(); ++g) out.scale[at(g)] = p[g] & 15, out.min[at(g)] = p[g] >> 4;
      return;
    case GroupScales::SixBitPairs:
      for (int g = 0; g < 4; ++g) {
        out.scale[at(g)] = p[g] & 63, out.min[at(g)] = p[4 + g] & 63;
        out.scale[at(g + 4)] = (p[8 + g] & 15) | (p[g] >> 2 & 48);
        out.min[at(g + 4)] = p[8 + g] >> 4 | (p[4 + g] >> 2 & 48);
      }
      return;
    case GroupScales::SixBits:
      for (int g = 0; g < 16; ++g) {
        const int low = p[g % 8] >> (g / 8 * 4) & 15, high = p[8 + g % 4] >> (g / 4 * 2) & 3;
        out.scale[at(g)] = (low | high << 4) - 32;
      }
      return;
    case GroupScales::SignedBytes:
      for (int g = 0; g < l.groups(); ++g) out.scale[at(g)] = (p[g] ^ 128) - 128;
      return;
    case GroupScales::SplitSixBits:
      for (int g = 0; g < 8; ++g) {
        const int low = p[2 + g / 2] >> (g % 2 * 4) & 15, high = p[g / 4] >> (g % 4 * 2) & 3;
        out.scale[at(g)] = (low | high << 4) - 32;
      }
      return;
    case GroupScales::E4M3:
      for (int g = 0; g < l.groups(); ++g) out.scale[at(g)] = p[g];
      return;
  }
}

void pack_scales(const BlockLayout& l, const Block& in, std::uint8_t* bytes) {
  std::uint8_t* p = bytes + l.scales_at;
  const auto scale = [&](int g) { return in.scale[static_cast<std::size_t>(g)]; };
  const auto min = [&](int g) { return in.min[static_cast<std::size_t>(g)]; };
  const auto byte = [](int v) { return static_cast<std::uint8_t>(v & 255); };
  switch (l.scales) {
    case GroupScales::None: return;
    case GroupScales::Nibbles:
      for (int g = 0; g < l.groups(); ++g) p[g] = byte(scale(g) | min(g) << 4);
      return;
    case GroupScales::SixBitPairs:
      for (int g = 0; g < 4; ++g) {
        p[g] = byte((scale(g) & 63) | scale(g + 4) >> 4 << 6);
        p[4 + g] = byte((min(g) & 63) | min(g + 4) >> 4 << 6);
        p[8 + g] = byte((scale(g + 4) & 15) | (min(g + 4) & 15) << 4);
      }
      return;
    case GroupScales::SixBits:
      std::fill(p, p + 12, std::uint8_t{0});
      for (int g = 0; g < 16; ++g) {
        const int v = scale(g) + 32;
        p[g % 8] = byte(p[g % 8] | (v & 15) << (g / 8 * 4));
        p[8 + g % 4] = byte(p[8 + g % 4] | (v >> 4) << (g / 4 * 2));
      }
      return;
    case GroupScales::SignedBytes:
      for (int g = 0; g < l.groups(); ++g) p[g] = byte(scale(g));
      return;
    case GroupScales::SplitSixBits:
    case GroupScales::E4M3: check(false, "blocks with such scales cannot be encoded"); return;
  }
}

float load_unit(const BlockLayout& l, const std::uint8_t* bytes) {
  switch (l.unit) {
    case BlockUnit::F16: return load_f16(bytes + l.d_at);
    case BlockUnit::F32: {
      float d;
      std::memcpy(&d, bytes + l.d_at, sizeof d);
      return d;
    }
    case BlockUnit::HalfE8M0: return std::ldexp(1.0F, bytes[l.d_at] - 128);
    case BlockUnit::One: return 1;
  }
  return 1;
}

// Digit k of a byte is 3 * ((3^k * byte) mod 256) / 256, rounded down.
void unpack_ternary(const BlockLayout& l, const std::uint8_t* bytes, Block& b) {
  const std::uint8_t* p = bytes + l.low.at;
  std::size_t e = 0;
  for (const auto& [count, digits] : {std::pair{32, 5}, std::pair{16, 5}, std::pair{4, 4}}) {
    for (int k = 0, power = 1; k < digits; ++k, power *= 3)
      for (int i = 0; i < count; ++i) b.q[e++] = (p[i] * power & 255) * 3 >> 8;
    p += count;
  }
}

Block unpack(const BlockLayout& l, const std::uint8_t* bytes) {
  Block b;
  b.d = load_unit(l, bytes);
  if (l.m_at >= 0) b.m = load_f16(bytes + l.m_at);
  unpack_scales(l, bytes, b);
  if (l.codes == BlockValues::Ternary) {
    unpack_ternary(l, bytes, b);
    return b;
  }
  const int mask = (1 << l.low.width) - 1;
  walk_bits(l.low, [&](int e, int at, int shift) { b.q[static_cast<std::size_t>(e)] = bytes[at] >> shift & mask; });
  walk_bits(l.high, [&](int e, int at, int shift) {
    b.q[static_cast<std::size_t>(e)] |= (bytes[at] >> shift & ((1 << l.high.width) - 1)) << l.low.width;
  });
  if (l.low.width == 8)  // a signed byte; the offset is subtracted as for the others
    for (int& q : b.q) q ^= 128;
  return b;
}

// Half of an unsigned F8E4M3 number. The sign bit is ignored. The bit pattern of NaN gives 0.
float half_e4m3(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (code == 127) return 0;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -10)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}

}  // namespace

void pack_block(const BlockLayout& l, const Block& b, std::uint8_t* bytes) {
  std::fill(bytes, bytes + l.bytes, std::uint8_t{0});
  store_f16(bytes + l.d_at, b.d);
  if (l.m_at >= 0) store_f16(bytes + l.m_at, b.m);
  pack_scales(l, b, bytes);
  const int mask = (1 << l.low.width) - 1, flip = l.low.width == 8 ? 128 : 0;
  const auto put = [&](int at, int bits) { bytes[at] = static_cast<std::uint8_t>(bytes[at] | bits); };
  walk_bits(l.low,
            [&](int e, int at, int shift) { put(at, ((b.q[static_cast<std::size_t>(e)] ^ flip) & mask) << shift); });
  walk_bits(l.high,
            [&](int e, int at, int shift) { put(at, b.q[static_cast<std::size_t>(e)] >> l.low.width << shift); });
}

QuantizedGrid quantized_grid(const BlockLayout& l, const Block& b, int group) {
  const auto g = static_cast<std::size_t>(group);
  const float factor = l.scales == GroupScales::None   ? b.d
                       : l.scales == GroupScales::E4M3 ? half_e4m3(b.scale[g])
                                                       : b.d * static_cast<float>(b.scale[g]);
  const float shift = l.adds_m ? -b.m : l.has_mins() ? b.m * static_cast<float>(b.min[g]) : 0.0F;
  return {factor, shift};
}

float finite_number(float x) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return std::isnan(x) ? 0 : std::clamp(x, -kLargest, kLargest);
}
float nearest_f16(float x) {
  constexpr float kLargest = 65504;
  return f16_bits_to_float(float_to_f16_bits(std::clamp(x, -kLargest, kLargest))) + 0.0F;  // no negative zero
}

int nearest_quantized(const BlockLayout& l, const QuantizedGrid& grid, float x) {
  if (grid.factor == 0) return l.offset;
  const float q = std::nearbyint((x + grid.shift) / grid.factor) + static_cast<float>(l.offset);
  return static_cast<int>(std::clamp(q, 0.0F, static_cast<float>(largest_quantized(l))));
}
namespace {

void decode(const BlockLayout& l, const Block& b, float* out) {
  for (int g = 0; g < l.groups(); ++g) {
    const QuantizedGrid grid = quantized_grid(l, b, g);
    for (int e = g * l.group; e < (g + 1) * l.group; ++e) {
      const int q = b.q[static_cast<std::size_t>(e)];
      const float y = grid.factor * static_cast<float>(l.values ? l.values[q] : q - l.offset);
      out[e] = l.m_at >= 0 ? y - grid.shift : y;
    }
  }
}

void decode_grid(const BlockLayout& l, const BlockGrid& grid, const std::uint8_t* bytes, float* out) {
  const GridBlock b = unpack_grid_block(l, bytes);
  for (int e = 0; e < l.elements; ++e) {
    const auto eighth = static_cast<std::size_t>(e / 8);
    const std::size_t row = b.row[static_cast<std::size_t>(e / grid.width)];
    auto v = static_cast<float>(
        grid.values[row * static_cast<std::size_t>(grid.width) + static_cast<std::size_t>(e % grid.width)]);
    if (b.sign[eighth] >> e % 8 & 1) v = -v;
    out[e] = b.d * b.scale[static_cast<std::size_t>(e / l.group)] * (v + b.delta[eighth]);
  }
}

// -- making blocks --

// The sum of squared errors of the nearest quantized values.
double error_on(const BlockLayout& l, const QuantizedGrid& grid, const float* x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double y = static_cast<double>(grid.factor) * (nearest_quantized(l, grid, x[i]) - l.offset) -
                     static_cast<double>(grid.shift);
    sum += (y - static_cast<double>(x[i])) * (y - static_cast<double>(x[i]));
  }
  return sum;
}

struct Range {
  float low, high;
  float furthest() const { return high >= -low ? high : low; }  // from 0
};
Range range_of(const float* x, int n) {
  Range r{x[0], x[0]};
  for (int i = 1; i < n; ++i) {
    r.low = std::min(r.low, x[i]);
    r.high = std::max(r.high, x[i]);
  }
  return r;
}

// Chooses d and m for the schemes with one pair per block.
void choose_pair(const BlockLayout& l, const float* x, Block& b) {
  const Range r = range_of(x, l.elements);
  b.scale.fill(1);
  if (l.adds_m) {
    b.d = nearest_f16((r.high - r.low) / static_cast<float>(largest_quantized(l)));
    b.m = nearest_f16(r.low);
  } else if (l.low.width == 8) {
    b.d = nearest_f16(std::fabs(r.furthest()) / 127);
  } else {
    b.d = nearest_f16(r.furthest() / static_cast<float>(-l.offset));  // the furthest element is quantized to 0
  }
}

// Chooses d, m and the small integers for the schemes with groups. It first finds each group's best factor and shift.
// Then it finds the integers near their quotients by d and m with the least error.
void choose_groups(const BlockLayout& l, const float* x, Block& b) {
  const bool mins = l.has_mins();
  const int most = largest_scale(l);
  std::array<float, kMaxGroups> factor{}, shift{};
  float largest_factor = 0, largest_shift = 0;
  for (int g = 0; g < l.groups(); ++g) {
    const Range r = range_of(x + g * l.group, l.group);
    float& f = factor[static_cast<std::size_t>(g)];
    float& s = shift[static_cast<std::size_t>(g)];
    if (mins) {
      const float low = std::min(r.low, 0.0F);
      f = (std::max(r.high, 0.0F) - low) / static_cast<float>(largest_quantized(l));
      s = -low;
    } else {
      f = r.furthest() / static_cast<float>(-l.offset);
    }
    if (std::fabs(f) > std::fabs(largest_factor)) largest_factor = f;
    largest_shift = std::max(largest_shift, s);
  }
  // A group whose furthest element has the opposite sign needs a negative integer, which signed packings have.
  b.d = nearest_f16((mins ? largest_factor : std::fabs(largest_factor)) / static_cast<float>(most));
  b.m = nearest_f16(largest_shift / static_cast<float>(most));
  for (int g = 0; g < l.groups(); ++g) {
    const auto i = static_cast<std::size_t>(g);
    const auto quotient = [&](float v, float unit) {
      return unit == 0 ? 0
                       : static_cast<int>(
                             std::clamp(std::nearbyint(v / unit), static_cast<float>(-most), static_cast<float>(most)));
    };
    const int scale = quotient(factor[i], b.d), min = quotient(shift[i], b.m);
    double best = std::numeric_limits<double>::infinity();
    int best_scale = scale, best_min = min;
    for (int s = scale - 2; s <= scale + 1; ++s) {
      if (s < (mins ? 0 : -most) || s > most) continue;
      for (int m = mins ? min - 2 : 0; m <= (mins ? min + 1 : 0); ++m) {
        if (m < 0 || m > most) continue;
        b.scale[i] = s, b.min[i] = m;
        const double e = error_on(l, quantized_grid(l, b, g), x + g * l.group, l.group);
        if (e < best) best = e, best_scale = s, best_min = m;
      }
    }
    b.scale[i] = best_scale, b.min[i] = best_min;
  }
}

void check_sizes(const BlockLayout& l, std::size_t bytes, std::size_t elements) {
  const auto per = static_cast<std::size_t>(l.bytes), each = static_cast<std::size_t>(l.elements);
  if (bytes % per == 0 && bytes / per * each == elements) return;
  throw Error(ErrorCode::InvalidArgument,
              concat_text(quant_scheme_name(l.scheme), ": ", bytes, " bytes do not hold ", elements, " elements"),
              concat_text(l.elements, " elements take ", l.bytes, " bytes"));
}

}  // namespace

const BlockLayout& block_layout(QuantScheme scheme) {
  const auto i = static_cast<std::size_t>(scheme);
  if (i == 0 || i > std::size(kLayouts))
    throw Error(ErrorCode::InvalidArgument, concat_text(quant_scheme_name(scheme), " has no blocks"),
                "use a block scheme: q8_0, q4_0, q4_k, ...");
  return kLayouts[i - 1];
}

std::string_view quant_scheme_name(QuantScheme scheme) {
  if (static_cast<std::size_t>(scheme) >= std::size(kSchemeNames))
    detail::throw_no_enumerator("QuantScheme", static_cast<std::int64_t>(scheme));
  return kSchemeNames[static_cast<std::size_t>(scheme)];
}

namespace {

const BlockLayout& plain_layout(QuantScheme scheme) {
  const BlockLayout& l = block_layout(scheme);
  if (!l.plain())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("blocks of ", quant_scheme_name(scheme), " do not store plain quantized values"),
                "use dequantize_blocks to decode them");
  return l;
}

}  // namespace

BlockNumbers unpack_block(QuantScheme scheme, std::span<const std::byte> block) {
  const BlockLayout& l = plain_layout(scheme);
  check_sizes(l, block.size(), static_cast<std::size_t>(l.elements));
  const auto* p = reinterpret_cast<const std::uint8_t*>(block.data());
  const Block b = unpack(l, p);
  const auto half = [&](int at) { return static_cast<std::uint16_t>(p[at] | p[at + 1] << 8); };
  BlockNumbers out;
  out.d = half(l.d_at);
  if (l.m_at >= 0) out.m = half(l.m_at);
  for (std::size_t g = 0; g < out.scale.size(); ++g) {
    out.scale[g] = static_cast<std::int8_t>(b.scale[g]);
    out.min[g] = static_cast<std::int8_t>(b.min[g]);
  }
  for (std::size_t e = 0; e < static_cast<std::size_t>(l.elements); ++e)
    out.codes[e] = static_cast<std::uint8_t>(b.q[e]);
  return out;
}

void pack_block(QuantScheme scheme, const BlockNumbers& numbers, std::span<std::byte> block) {
  const BlockLayout& l = plain_layout(scheme);
  check_sizes(l, block.size(), static_cast<std::size_t>(l.elements));
  auto* p = reinterpret_cast<std::uint8_t*>(block.data());
  Block b;
  for (std::size_t g = 0; g < numbers.scale.size(); ++g) b.scale[g] = numbers.scale[g], b.min[g] = numbers.min[g];
  for (std::size_t e = 0; e < static_cast<std::size_t>(l.elements); ++e) b.q[e] = numbers.codes[e];
  pack_block(l, b, p);
  const auto put = [&](int at, std::uint16_t bits) {
    p[at] = static_cast<std::uint8_t>(bits & 255);
    p[at + 1] = static_cast<std::uint8_t>(bits >> 8);
  };
  put(l.d_at, numbers.d);  // all bits, including those of a NaN
  if (l.m_at >= 0) put(l.m_at, numbers.m);
}

void dequantize_blocks(QuantScheme scheme, std::span<const std::byte> bytes, std::span<float> out) {
  const BlockLayout& l = block_layout(scheme);
  check_sizes(l, bytes.size(), out.size());
  const auto* p = reinterpret_cast<const std::uint8_t*>(bytes.data());
  float* y = out.data();
  const BlockGrid* grid = l.codes == BlockValues::Grid ? &block_grid(scheme) : nullptr;
  for (std::size_t n = bytes.size() / static_cast<std::size_t>(l.bytes); n > 0; --n, p += l.bytes, y += l.elements) {
    if (grid)
      decode_grid(l, *grid, p, y);
    else
      decode(l, unpack(l, p), y);
  }
}

bool makes_blocks(QuantScheme scheme) { return is_block_scheme(scheme) && scheme <= QuantScheme::Q6_K; }

void quantize_blocks(QuantScheme scheme, std::span<const float> x, std::span<std::byte> out) {
  const BlockLayout& l = block_layout(scheme);
  check_sizes(l, out.size(), x.size());
  if (!makes_blocks(scheme))
    throw Error(ErrorCode::Unsupported,
                concat_text("blocks of ", quant_scheme_name(scheme), " can be decoded, but not encoded"),
                "use q4_k or q8_0, for example");
  auto* p = reinterpret_cast<std::uint8_t*>(out.data());
  std::array<float, kMaxElements256> values{};
  for (std::size_t at = 0; at < x.size(); at += static_cast<std::size_t>(l.elements), p += l.bytes) {
    for (int e = 0; e < l.elements; ++e)
      values[static_cast<std::size_t>(e)] = finite_number(x[at + static_cast<std::size_t>(e)]);
    Block b;
    if (l.scales == GroupScales::None)
      choose_pair(l, values.data(), b);
    else
      choose_groups(l, values.data(), b);
    for (int e = 0; e < l.elements; ++e)
      b.q[static_cast<std::size_t>(e)] =
          nearest_quantized(l, quantized_grid(l, b, e / l.group), values[static_cast<std::size_t>(e)]);
    pack_block(l, b, p);
  }
}

}  // namespace rlx
