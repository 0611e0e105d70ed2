// Encodes blocks into the interleaved layout and decodes them.
#include "rlx/backends/cpu/quant/interleaved_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace rlx::cpu {
namespace {

constexpr const char* kInterleavedId = "strips";
// Incremented when the same parameters begin to mean other bytes. Saved packed layouts are then made again.
constexpr std::int64_t kInterleavedVersion = 1;

constexpr QuantScheme kInterleavedSchemes[kNumInterleavedKinds] = {
    QuantScheme::Q4_0, QuantScheme::Q4_1, QuantScheme::Q5_0, QuantScheme::Q5_1,
    QuantScheme::Q8_0, QuantScheme::Q4_K, QuantScheme::Q5_K, QuantScheme::Q6_K};

std::optional<InterleavedKind> kind_of(QuantScheme scheme) {
  for (int i = 0; i < kNumInterleavedKinds; ++i)
    if (kInterleavedSchemes[i] == scheme) return static_cast<InterleavedKind>(i);
  return std::nullopt;
}

// One column of an interleaved panel.
class InterleavedColumn {
 public:
  InterleavedColumn(const InterleavedPanels& s, std::int64_t k, std::int64_t column, std::byte* panels)
      : kind_(s.kind), traits_(interleaved_traits(s.kind)), lanes_(s.lanes), lane_(column % s.lanes) {
    at_ = panels + column / lanes_ * traits_.panel_bytes(k / kInterleavedGroup, lanes_);
  }

  // Writes block `b`, which is group b, or unit b of eight groups.
  void put(std::int64_t b, const BlockNumbers& n) {
    const std::int64_t groups = traits_.unit_groups() == 2 ? 1 : 8, first = b * groups;
    put_scales(first, n);
    for (std::int64_t g = 0; g < groups; ++g) put_quantized(first + g, n.codes.data() + g * kInterleavedGroup);
  }
  // Writes all numbers of a block but its quantized values, into the unit of group `first`.
  void put_scales(std::int64_t first, const BlockNumbers& n) {
    std::byte* unit = at_ + traits_.unit_at(first, lanes_);
    put_half(unit + d_at(first), n.d);
    if (traits_.mins()) put_half(unit + m_at(first), n.m);
    if (traits_.scales == InterleavedScales::Pairs)
      for (std::int64_t g = 0; g < 8; ++g) {
        put_byte(unit + small_at(g), n.scale[index(g)]);
        put_byte(unit + small_at(g) + lanes_, n.min[index(g)]);
      }
    if (traits_.scales == InterleavedScales::Signed) {
      for (std::int64_t g = 0; g < 8; ++g)
        for (std::int64_t p = 0; p < 2; ++p) put_byte(unit + small_at(g) + p * lanes_, n.scale[index(2 * g + p)]);
      put_half(unit + traits_.header_bytes(lanes_) - 2 * lanes_ + 2 * lane_, 0);  // after the scales
    }
  }
  // Writes the 32 quantized values of group `g`, eight at a time. Nibbles must not exceed 15.
  void put_quantized(std::int64_t g, const std::uint8_t* quants) {
    std::uint64_t eight[4];
    std::memcpy(eight, quants, sizeof eight);
    if (traits_.nibbles) eight[0] |= eight[2] << 4, eight[1] |= eight[3] << 4;
    std::uint8_t bytes[kInterleavedGroup];
    std::memcpy(bytes, eight, sizeof bytes);
    std::byte* to = word(g, 0);
    for (std::int64_t j = 0; j < words(); ++j) std::memcpy(to + j * lanes_ * 4, bytes + 4 * j, 4);
  }
  BlockNumbers get(std::int64_t b) const {
    BlockNumbers n;
    const std::int64_t groups = traits_.unit_groups() == 2 ? 1 : 8, first = b * groups;
    const std::byte* unit = at_ + traits_.unit_at(first, lanes_);
    n.d = half(unit + d_at(first));
    if (traits_.mins()) n.m = half(unit + m_at(first));
    if (traits_.scales == InterleavedScales::Pairs)
      for (std::int64_t g = 0; g < 8; ++g) {
        n.scale[index(g)] = byte(unit + small_at(g));
        n.min[index(g)] = byte(unit + small_at(g) + lanes_);
      }
    if (traits_.scales == InterleavedScales::Signed)
      for (std::int64_t g = 0; g < 8; ++g)
        for (std::int64_t p = 0; p < 2; ++p) n.scale[index(2 * g + p)] = byte(unit + small_at(g) + p * lanes_);
    for (std::int64_t g = 0; g < groups; ++g)
      for (std::int64_t j = 0; j < words(); ++j) {
        std::uint8_t bytes[4];
        std::memcpy(bytes, word(first + g, j), 4);
        for (std::int64_t i = 0; i < 4; ++i) {
          std::uint8_t* code = n.codes.data() + g * kInterleavedGroup + 4 * j + i;
          code[0] = traits_.nibbles ? bytes[i] & 15 : bytes[i];
          if (traits_.nibbles) code[16] = static_cast<std::uint8_t>(bytes[i] >> 4);
        }
      }
    return n;
  }

  // Moves a block of 32 whose quantized bytes have the same order here, word by word. They follow d, and m, unchanged.
  void move_block(std::int64_t b, const std::byte* block) {
    std::byte* unit = at_ + traits_.unit_at(b, lanes_);
    std::memcpy(unit + d_at(b), block, 2);
    if (traits_.mins()) std::memcpy(unit + m_at(b), block + 2, 2);
    const std::byte* quants = block + (traits_.mins() ? 4 : 2);
    const std::uint32_t flip = kind_ == InterleavedKind::Q8_0 ? 0x80808080U : 0;
    std::byte* to = word(b, 0);
    for (std::int64_t j = 0; j < words(); ++j, to += lanes_ * 4) {
      std::uint32_t four;
      std::memcpy(&four, quants + 4 * j, 4);
      four ^= flip;
      std::memcpy(to, &four, 4);
    }
  }

  // Writes a padding column.
  void clear(std::int64_t groups) {
    const std::int64_t each = traits_.unit_groups() == 2 ? 1 : 8;
    for (std::int64_t b = 0; b < groups / each; ++b) put(b, BlockNumbers{});
    clear_tail(groups);
  }
  // Zeros the scales and minima of the groups that are missing in the last unit.
  void clear_tail(std::int64_t groups) {
    if (groups % traits_.unit_groups() == 0) return;
    std::byte* unit = at_ + traits_.unit_at(groups, lanes_);
    put_half(unit + d_at(groups), 0);
    if (traits_.mins()) put_half(unit + m_at(groups), 0);
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int64_t words() const { return traits_.nibbles ? 4 : 8; }
  std::int64_t pair(std::int64_t g) const { return traits_.unit_groups() == 2 ? g % 2 : 0; }
  std::int64_t d_at(std::int64_t g) const { return (pair(g) * lanes_ + lane_) * 2; }
  std::int64_t m_at(std::int64_t g) const {
    return ((traits_.unit_groups() == 2 ? 2 : 1) * lanes_ + pair(g) * lanes_ + lane_) * 2;
  }
  std::int64_t small_at(std::int64_t g) const {
    return (traits_.scales == InterleavedScales::Pairs ? 4 : 2) * lanes_ + 2 * g * lanes_ + lane_;
  }
  std::byte* word(std::int64_t g, std::int64_t j) const {
    return at_ + traits_.quantized_at(g, lanes_) + (j * lanes_ + lane_) * 4;
  }
  static void put_half(std::byte* to, std::uint16_t bits) { std::memcpy(to, &bits, 2); }
  static void put_byte(std::byte* to, std::int8_t v) { std::memcpy(to, &v, 1); }
  static std::uint16_t half(const std::byte* from) {
    std::uint16_t bits;
    std::memcpy(&bits, from, 2);
    return bits;
  }
  static std::int8_t byte(const std::byte* from) { return static_cast<std::int8_t>(*from); }

  InterleavedKind kind_;
  InterleavedTraits traits_;
  std::int64_t lanes_, lane_;
  std::byte* at_;
};

using FourWords = std::uint32_t __attribute__((vector_size(16)));
using FourInts = std::int32_t __attribute__((vector_size(16)));

// Transposes words.
void transpose_words(FourWords (&v)[4]) {
  const auto mix = [](FourWords a, FourWords b, FourInts order) {
#if defined(__clang__)
    FourWords out;
    for (int i = 0; i < 4; ++i) out[i] = order[i] < 4 ? a[order[i]] : b[order[i] - 4];
    return out;
#else
    return __builtin_shuffle(a, b, order);
#endif
  };
  const FourInts first{0, 4, 1, 5}, last{2, 6, 3, 7}, low{0, 1, 4, 5}, high{2, 3, 6, 7};
  const FourWords a = mix(v[0], v[1], first), b = mix(v[2], v[3], first), c = mix(v[0], v[1], last),
                  d = mix(v[2], v[3], last);
  v[0] = mix(a, b, low), v[1] = mix(a, b, high), v[2] = mix(c, d, low), v[3] = mix(c, d, high);
}

// Moves a whole panel of blocks of the kind that `move_block` moves one by one. `columns` are the first blocks of its
// columns.
void move_panel(const InterleavedPanels& s, const BlockLayout& l, std::span<const std::byte* const> columns,
                std::int64_t each, std::byte* strip) {
  const InterleavedTraits t = interleaved_traits(s.kind);
  const std::int64_t lanes = s.lanes, words = t.nibbles ? 4 : 8, header = t.mins() ? 4 : 2;
  const std::uint32_t flip = s.kind == InterleavedKind::Q8_0 ? 0x80808080U : 0;
  for (std::int64_t b = 0; b < each; ++b) {
    std::byte* const numbers = strip + t.unit_at(b, lanes) + b % 2 * lanes * 2;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::byte* const block = columns[static_cast<std::size_t>(lane)] + b * l.bytes;
      std::memcpy(numbers + 2 * lane, block, 2);
      if (t.mins()) std::memcpy(numbers + 2 * (2 * lanes + lane), block + 2, 2);
    }
    std::byte* const quants = strip + t.quantized_at(b, lanes);
    for (std::int64_t lane = 0; lane < lanes; lane += 4)
      for (std::int64_t word = 0; word < words; word += 4) {
        FourWords four[4];
        for (std::int64_t i = 0; i < 4; ++i)
          std::memcpy(&four[i], columns[static_cast<std::size_t>(lane + i)] + b * l.bytes + header + 4 * word, 16);
        transpose_words(four);
        for (std::int64_t i = 0; i < 4; ++i) {
          four[i] ^= flip;
          std::memcpy(quants + ((word + i) * lanes + lane) * 4, &four[i], 16);
        }
      }
  }
}

// Writes a block of 256 whose quantized values lie in runs of whole groups, as `BlockBits` describes. The values of a
// group share one shift.
void put_runs(InterleavedColumn& column, std::int64_t b, const BlockLayout& l, const std::uint8_t* block) {
  const auto group_bits = [&](const BlockBits& bits, int g) {
    const int shifts = 8 / bits.width, first = g * static_cast<int>(kInterleavedGroup);
    return std::pair{block + bits.at + first / (bits.run * shifts) * bits.run + first % bits.run,
                     first / bits.run % shifts * bits.width};
  };
  BlockNumbers n;
  std::memcpy(&n.d, block + l.d_at, 2);
  if (l.m_at >= 0) std::memcpy(&n.m, block + l.m_at, 2);
  const std::uint8_t* p = block + l.scales_at;
  for (std::size_t g = 0; g < 4 && l.scales == GroupScales::SixBitPairs; ++g) {
    n.scale[g] = static_cast<std::int8_t>(p[g] & 63), n.min[g] = static_cast<std::int8_t>(p[4 + g] & 63);
    n.scale[g + 4] = static_cast<std::int8_t>((p[8 + g] & 15) | (p[g] >> 2 & 48));
    n.min[g + 4] = static_cast<std::int8_t>(p[8 + g] >> 4 | (p[4 + g] >> 2 & 48));
  }
  if (l.scales == GroupScales::SignedBytes) std::memcpy(n.scale.data(), p, n.scale.size());
  column.put_scales(8 * b, n);
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  for (int g = 0; g < 8; ++g) {
    std::uint8_t quants[kInterleavedGroup];
    const auto [low, low_shift] = group_bits(l.low, g);
    const auto [high, high_shift] = l.high.bytes > 0 ? group_bits(l.high, g) : std::pair{low, 0};
    const std::uint64_t high_mask = l.high.bytes > 0 ? kOnes * ((1U << l.high.width) - 1U) : 0;
    for (int i = 0; i < kInterleavedGroup; i += 8) {
      std::uint64_t eight, above;  // the mask clears the bits that the shift brings in from the next byte
      std::memcpy(&eight, low + i, 8);
      std::memcpy(&above, high + i, 8);
      eight = (eight >> low_shift & kOnes * 15U) | (above >> high_shift & high_mask) << 4;
      std::memcpy(quants + i, &eight, 8);
    }
    column.put_quantized(8 * b + g, quants);
  }
}

// Calls f(column of the matrix, first block of that column in the source).
template <class F>
void for_source_columns(const PanelSource& s, F&& f) {
  const BlockLayout& l = block_layout(s.op.scheme);
  for (std::int64_t j = s.begin; j < s.end; ++j) f(s.first + j, (s.source.offset + j * s.source.n_stride) / l.elements);
}

}  // namespace

std::optional<PackedLayout> interleaved_layout(const KernelTable& kernels, const ConstantMatrix& m) {
  const std::optional<InterleavedKind> kind = kind_of(m.scheme);
  if (!kind || m.dtype != DType::F32 || m.k < 1 || m.n < 1 || m.k % block_layout(m.scheme).elements != 0)
    return std::nullopt;
  const std::int64_t lanes = kernels.lanes_f32, panels = (m.n + lanes - 1) / lanes;
  const std::int64_t bytes = panels * interleaved_traits(*kind).panel_bytes(m.k / kInterleavedGroup, lanes);
  return PackedLayout{
      kInterleavedId,
      {static_cast<std::int64_t>(*kind), lanes, m.allowed_loss == MatmulPrecision::Int8 ? 1 : 0, kInterleavedVersion},
      bytes};
}

std::optional<InterleavedPanels> interleaved_panels_of(const PackedLayout& layout) {
  if (layout.id != kInterleavedId || layout.params.size() != 4 || layout.params[3] != kInterleavedVersion)
    return std::nullopt;
  if (layout.params[0] < 0 || layout.params[0] >= kNumInterleavedKinds || layout.params[1] < 1) return std::nullopt;
  if (layout.params[2] < 0 || layout.params[2] > 1) return std::nullopt;
  return InterleavedPanels{static_cast<InterleavedKind>(layout.params[0]), layout.params[1], layout.params[2] == 1};
}

QuantScheme interleaved_scheme(const PackedLayout& layout) {
  const std::optional<InterleavedPanels> s = interleaved_panels_of(layout);
  return s ? kInterleavedSchemes[static_cast<int>(s->kind)] : QuantScheme::Affine;
}

bool reads_interleaved(const KernelTable& kernels, const PackedLayout& layout, std::int64_t k, std::int64_t n) {
  const std::optional<InterleavedPanels> s = interleaved_panels_of(layout);
  if (!s) return false;
  ConstantMatrix m{k, n, DType::F32, DType::U8, s->int8 ? MatmulPrecision::Int8 : MatmulPrecision::Exact};
  m.scheme = interleaved_scheme(layout);
  return layout_of_one_matrix(layout) == interleaved_layout(kernels, m);
}

std::int64_t encode_columns_at_a_time(const PackedLayout& layout, std::int64_t k) {
  const InterleavedPanels s = *interleaved_panels_of(layout);
  const std::int64_t bytes = interleaved_traits(s.kind).panel_bytes(k / kInterleavedGroup, s.lanes);
  return s.lanes * std::max<std::int64_t>(1, (std::int64_t{1} << 18) / std::max<std::int64_t>(1, bytes));
}

void encode_interleaved(const PanelSource& s, const std::byte* blocks, std::byte* to) {
  const InterleavedPanels panels = *interleaved_panels_of(s.op.form);
  const BlockLayout& l = block_layout(s.op.scheme);
  const std::int64_t each = s.op.k / l.elements, groups = s.op.k / kInterleavedGroup;
  const bool moved = l.elements == kInterleavedGroup && (l.low.width == 8 || l.high.bytes == 0);
  const bool in_runs = l.low.run % kInterleavedGroup == 0 && l.high.run % kInterleavedGroup == 0;
  std::vector<InterleavedColumn> columns;
  std::vector<const std::byte*> whole;
  // Interleaves blocks of the columns of a panel, so that the writes are one stream.
  for (std::int64_t j = s.begin; j < s.end;) {
    const std::int64_t stop = std::min(s.end, (s.first + j) / panels.lanes * panels.lanes + panels.lanes - s.first);
    const auto first_block = [&](std::int64_t c) {
      return blocks + (s.source.offset + c * s.source.n_stride) / l.elements * l.bytes;
    };
    if (moved && stop - j == panels.lanes) {
      whole.clear();
      for (std::int64_t c = j; c < stop; ++c) whole.push_back(first_block(c));
      move_panel(panels, l, whole, each,
                 to + (s.first + j) / panels.lanes * interleaved_traits(panels.kind).panel_bytes(groups, panels.lanes));
      if (groups % 2 != 0)
        for (std::int64_t c = j; c < stop; ++c) InterleavedColumn(panels, s.op.k, s.first + c, to).clear_tail(groups);
      j = stop;
      continue;
    }
    columns.clear();
    for (std::int64_t c = j; c < stop; ++c) columns.emplace_back(panels, s.op.k, s.first + c, to);
    for (std::int64_t b = 0; b < each; ++b)
      for (std::int64_t c = j; c < stop; ++c) {
        InterleavedColumn& column = columns[static_cast<std::size_t>(c - j)];
        const std::byte* block = first_block(c) + b * l.bytes;
        if (moved)
          column.move_block(b, block);
        else if (in_runs)
          put_runs(column, b, l, reinterpret_cast<const std::uint8_t*>(block));
        else
          column.put(b, unpack_block(s.op.scheme, {block, static_cast<std::size_t>(l.bytes)}));
      }
    for (InterleavedColumn& column : columns) column.clear_tail(groups);
    j = stop;
  }
  if (s.first + s.end == s.op.n)
    for (std::int64_t j = s.op.n; j % panels.lanes != 0; ++j) InterleavedColumn(panels, s.op.k, j, to).clear(groups);
}

void decode_interleaved(const PanelSource& s, const std::byte* panels, std::byte* blocks) {
  const InterleavedPanels layout = *interleaved_panels_of(s.op.form);
  const BlockLayout& l = block_layout(s.op.scheme);
  for_source_columns(s, [&](std::int64_t column, std::int64_t first) {
    const InterleavedColumn c(layout, s.op.k, column, const_cast<std::byte*>(panels));  // only read
    for (std::int64_t b = 0; b < s.op.k / l.elements; ++b)
      pack_block(s.op.scheme, c.get(b), {blocks + (first + b) * l.bytes, static_cast<std::size_t>(l.bytes)});
  });
}

}  // namespace rlx::cpu
