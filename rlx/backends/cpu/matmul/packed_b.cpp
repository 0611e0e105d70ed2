// Encodes matrices as packed B panels and decodes them.
#include "rlx/backends/cpu/matmul/packed_b.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "rlx/backends/cpu/matmul/bf16_kernels.h"
#include "rlx/tensor/half.h"
#include "rlx/tensor/visit.h"

namespace rlx::cpu {
namespace {

constexpr const char* kId = "panels";
// Incremented when the same parameters begin to mean other bytes. Saved packed layouts are then made again.
constexpr std::int64_t kVersion = 1;

DType panel_dtype(PackedBType t) {
  constexpr DType kDTypes[] = {DType::F32, DType::BF16, DType::F16, DType::I8, DType::BF16};
  return kDTypes[static_cast<int>(t)];
}

// Bytes of a matrix: the elements of all panels, and the scales of I8.
std::int64_t packed_bytes(const Panels& p, std::int64_t k, std::int64_t n) {
  const std::int64_t columns = (n + p.lanes - 1) / p.lanes * p.lanes;
  const std::int64_t elements = (p.type == PackedBType::BF16Pairs ? padded_bf16(k) : k) * columns;
  return p.type == PackedBType::I8 ? packed_scales_at(p, k, n) + columns * static_cast<std::int64_t>(sizeof(float))
                                   : elements * panel_element_bytes(p.type);
}
template <class Byte>
auto* scales_of(const Panels& p, std::int64_t k, std::int64_t n, Byte* panels) {
  using Scale = std::conditional_t<std::is_const_v<Byte>, const float, float>;
  return reinterpret_cast<Scale*>(panels + packed_scales_at(p, k, n));
}

/// Where column `j` of a matrix with `k` rows and `n` columns lies: `run` elements at `at`, then every `step`.
struct PanelColumn {
  std::int64_t at = 0, step = 0, run = 1;
  std::int64_t element(std::int64_t k) const { return run == 1 ? at + k * step : at + k / 2 * step + k % 2; }
};
PanelColumn column_of(const Panels& p, std::int64_t k, std::int64_t n, std::int64_t j) {
  const std::int64_t first = j / p.width * p.width;
  if (p.type == PackedBType::BF16Pairs) return {first * padded_bf16(k) + 2 * (j - first), 2 * p.width, 2};
  const std::int64_t step = std::min(p.width, (n - first + p.lanes - 1) / p.lanes * p.lanes);
  return {first * k + (j - first), step};
}

/// Calls f(T{}) with the C++ type of the elements.
template <class F>
void visit_panels(PackedBType t, F&& f) {
  if (t == PackedBType::F32)
    f(float{});
  else if (t == PackedBType::BF16 || t == PackedBType::BF16Pairs)
    f(BF16{});
  else if (t == PackedBType::F16)
    f(F16{});
  else
    f(std::int8_t{});
}

/// Elements along k in runs, so that cache lines of both sides are used up while they are in L1.
constexpr std::int64_t kRun = 32;

// The nearest quantized value; 0 where the scale belongs to a column of zeros or is NaN.
std::int8_t code_of(float value, float scale) {
  if (!(scale > 0)) return 0;
  const float code = std::nearbyint(value / scale);
  return static_cast<std::int8_t>(std::clamp(code, -127.0F, 127.0F));
}

// Calls f(c, from, begin, end) for columns and runs of their elements, interleaved over the columns of a panel.
template <class From, class F>
void for_runs(const Panels& p, const PanelSource& s, std::int64_t first, std::int64_t last, const From* values, F&& f) {
  const std::int64_t k = s.op.k;
  for (std::int64_t j = first; j < last;) {
    const std::int64_t stop = std::min(last, (s.first + j) / p.width * p.width + p.width - s.first);
    for (std::int64_t k0 = 0; k0 < k; k0 += kRun)
      for (std::int64_t c = j; c < stop; ++c)
        f(c, values + s.source.offset + c * s.source.n_stride, k0, std::min(k, k0 + kRun));
    j = stop;
  }
}

// Writes the zero padding of column `j` from step `k` on.
template <class To>
void fill_zeros(const Panels& p, const PanelSource& s, std::int64_t j, std::int64_t k, To* panels) {
  if (p.type != PackedBType::BF16Pairs) return;
  const PanelColumn column = column_of(p, s.op.k, s.op.n, j);
  for (; k < padded_bf16(s.op.k); ++k) panels[column.element(k)] = To(0.0F);
}
// Writes zeros after the last column, if the source has the last column.
template <class To>
void fill_columns(const Panels& p, const PanelSource& s, To* panels) {
  if (s.first + s.end != s.op.n) return;
  for (std::int64_t j = s.op.n; j % p.lanes != 0; ++j) {
    const PanelColumn column = column_of(p, s.op.k, s.op.n, j);
    for (std::int64_t k = 0; k < s.op.k; ++k) panels[column.element(k)] = To(0.0F);
    fill_zeros(p, s, j, s.op.k, panels);
  }
}

// Converts columns to another element type. Quantized values are the values divided by `scales`.
template <class From, class To>
void convert_columns(const Panels& p, const PanelSource& s, const From* values, To* panels, const float* scales) {
  const std::int64_t k = s.op.k;
  for_runs(p, s, s.begin, s.end, values, [&](std::int64_t c, const From* from, std::int64_t begin, std::int64_t end) {
    const PanelColumn column = column_of(p, k, s.op.n, s.first + c);
    for (std::int64_t kk = begin; kk < end; ++kk) {
      const auto value = static_cast<float>(from[kk * s.source.k_stride]);
      To& to = panels[column.element(kk)];
      if constexpr (std::is_same_v<To, std::int8_t>)
        to = code_of(value, scales[s.first + c]);
      else
        to = To(value);
    }
    if (end == k) fill_zeros(p, s, s.first + c, k, panels);
  });
  fill_columns(p, s, panels);
}

// Packs whole bf16 pair panels from a source with contiguous columns. Two elements are one word, and words are
// transposed.
void move_pairs(const Panels& p, const PanelSource& s, std::int64_t first, const std::uint16_t* values,
                std::uint16_t* panels) {
  constexpr std::int64_t kWords = 16;  // of a column at a time
  const std::int64_t k = s.op.k, lanes = p.lanes;
  std::uint16_t* const strip = panels + (s.first + first) * padded_bf16(k);
  for (std::int64_t k0 = 0; k0 < k; k0 += 2 * kWords) {
    const std::int64_t words = std::min(kWords, (k - k0) / 2);
    std::uint32_t block[kWords][kBf16Lanes];
    for (std::int64_t c = 0; c < lanes; ++c) {
      const std::uint16_t* from = values + s.source.offset + (first + c) * s.source.n_stride + k0;
      std::uint32_t column[kWords] = {};
      std::memcpy(column, from, static_cast<std::size_t>(words) * 4);
      if (words < kWords && k % 2 != 0) column[words] = from[2 * words];
      for (std::int64_t w = 0; w < kWords; ++w) block[w][c] = column[w];
    }
    std::memcpy(strip + k0 * lanes, block, sizeof block);
  }
}

// The scales of the source's columns: the largest magnitude becomes 127. A column with a non-finite value has a NaN
// scale, so its results are NaN.
template <class From>
void find_scales(const Panels& p, const PanelSource& s, const From* values, float* scales) {
  std::fill(scales + s.first + s.begin, scales + s.first + s.end, 0.0F);
  for_runs(p, s, s.begin, s.end, values, [&](std::int64_t c, const From* from, std::int64_t begin, std::int64_t end) {
    float largest = scales[s.first + c];
    for (std::int64_t kk = begin; kk < end; ++kk) {
      const float magnitude = std::fabs(static_cast<float>(from[kk * s.source.k_stride]));
      if (!(magnitude <= largest) && !std::isnan(largest)) largest = magnitude;
    }
    scales[s.first + c] = largest;
  });
  for (std::int64_t j = s.first + s.begin; j < s.first + s.end; ++j) {
    const float largest = scales[j];
    scales[j] = largest / 127;
    if (!std::isfinite(largest)) scales[j] = std::numeric_limits<float>::quiet_NaN();
    // Near the smallest floats the quotient may be rounded down by much.
    else if (scales[j] * 127 < largest)
      scales[j] = std::nextafter(scales[j], largest);
  }
  if (const std::int64_t last = s.first + s.end; last == s.op.n)
    for (std::int64_t j = last; j % p.lanes != 0; ++j) scales[j] = 0;
}

}  // namespace

PackedLayout packed_b_layout(const KernelTable& kernels, const ConstantMatrix& m) {
  const bool halves = m.stored == DType::BF16 || m.stored == DType::F16;
  const PackedBType type = m.allowed_loss == MatmulPrecision::Int8             ? PackedBType::I8
                           : m.stored == DType::F16                            ? PackedBType::F16
                           : halves || m.allowed_loss == MatmulPrecision::BF16 ? PackedBType::BF16
                                                                               : PackedBType::F32;
  const Panels p{kernels.packed_nr_f32(m.n), kernels.lanes_f32, type};
  const bool lossless = type == PackedBType::F32 || (halves && type != PackedBType::I8);
  return {kId, {p.width, p.lanes, static_cast<std::int64_t>(type), kVersion}, packed_bytes(p, m.k, m.n), 1, lossless};
}

std::optional<PackedLayout> bf16_pair_layout(const KernelTable& kernels, const ConstantMatrix& m) {
  if (!kernels.bf16 || m.allowed_loss != MatmulPrecision::BF16 || m.stored == DType::F16) return std::nullopt;
  const Panels p{kBf16Lanes, kBf16Lanes, PackedBType::BF16Pairs};
  return PackedLayout{kId,
                      {p.width, p.lanes, static_cast<std::int64_t>(p.type), kVersion},
                      packed_bytes(p, m.k, m.n),
                      1,
                      m.stored == DType::BF16};
}

std::optional<Panels> panels_of(const PackedLayout& layout) {
  if (layout.id != kId || layout.params.size() != 4 || layout.params[3] != kVersion) return std::nullopt;
  const Panels p{layout.params[0], layout.params[1], static_cast<PackedBType>(layout.params[2])};
  if (p.width < 1 || p.lanes < 1 || layout.params[2] < 0 || layout.params[2] > 4) return std::nullopt;
  return p;
}

std::int64_t packed_scales_at(const Panels& p, std::int64_t k, std::int64_t n) {
  return (k * ((n + p.lanes - 1) / p.lanes * p.lanes) + 63) / 64 * 64;
}

bool reads_packed_b(const KernelTable& kernels, const PackedLayout& layout, std::int64_t k, std::int64_t n) {
  const std::optional<Panels> p = panels_of(layout);
  if (p && p->type == PackedBType::BF16Pairs)
    return layout_of_one_matrix(layout) ==
           bf16_pair_layout(kernels,
                            {k, n, DType::F32, layout.lossless ? DType::BF16 : DType::F32, MatmulPrecision::BF16});
  const MatmulPrecision allowed_loss = layout.lossless                      ? MatmulPrecision::Exact
                                       : !p || p->type == PackedBType::BF16 ? MatmulPrecision::BF16
                                                                            : MatmulPrecision::Int8;
  return p && layout_of_one_matrix(layout) ==
                  packed_b_layout(
                      kernels, {k, n, DType::F32, layout.lossless ? panel_dtype(p->type) : DType::F32, allowed_loss});
}

std::int64_t panel_chunk(const Panels& p, std::int64_t k) {
  return p.width * std::max<std::int64_t>(1, (std::int64_t{1} << 16) / std::max<std::int64_t>(1, p.width * k));
}

void encode_packed_b(const KernelTable& kernels, const PanelSource& s, DType from, const std::byte* values,
                     std::byte* to) {
  const Panels p = *panels_of(s.op.form);
  const std::int64_t at = s.source.offset + s.begin * s.source.n_stride;
  if (p.type == PackedBType::BF16Pairs && from == DType::BF16 && s.source.k_stride == 1) {
    const auto* typed = reinterpret_cast<const std::uint16_t*>(values);
    auto* panels = reinterpret_cast<std::uint16_t*>(to);
    PanelSource rest = s;
    const std::int64_t whole = (s.first + s.begin + p.lanes - 1) / p.lanes * p.lanes - s.first;
    std::int64_t j = std::min(s.end, whole);
    rest.end = j;
    if (rest.begin < rest.end)
      convert_columns(p, rest, reinterpret_cast<const BF16*>(values), reinterpret_cast<BF16*>(to), nullptr);
    for (; j + p.lanes <= s.end; j += p.lanes) move_pairs(p, s, j, typed, panels);
    rest.begin = j, rest.end = s.end;
    convert_columns(p, rest, reinterpret_cast<const BF16*>(values), reinterpret_cast<BF16*>(to), nullptr);
    return;
  }
  if (p.type != PackedBType::I8 && p.type != PackedBType::BF16Pairs && from == panel_dtype(p.type)) {
    if (p.type == PackedBType::F32)
      kernels.pack_b_f32(reinterpret_cast<const float*>(values) + at, s.source.k_stride, s.source.n_stride, s.op.k,
                         s.op.n, s.first + s.begin, s.first + s.end, reinterpret_cast<float*>(to));
    else
      kernels.pack_b_16(reinterpret_cast<const std::uint16_t*>(values) + at, s.source.k_stride, s.source.n_stride,
                        s.op.k, s.op.n, s.first + s.begin, s.first + s.end, reinterpret_cast<std::uint16_t*>(to));
    return;
  }
  visit_dtype(from, [&]<class From>(From) {
    if constexpr (std::is_convertible_v<From, float>)
      visit_panels(p.type, [&]<class To>(To) {
        const auto* typed = reinterpret_cast<const From*>(values);
        float* scales = p.type == PackedBType::I8 ? scales_of(p, s.op.k, s.op.n, to) : nullptr;
        if (scales) find_scales(p, s, typed, scales);
        convert_columns(p, s, typed, reinterpret_cast<To*>(to), scales);
      });
    else
      throw Error(ErrorCode::Internal,
                  concat_text("a weight of dtype ", dtype_name(from), " cannot be packed; please report"));
  });
}

void decode_packed_b(const PanelSource& s, const std::byte* panels, DType to, std::byte* values) {
  const Panels p = *panels_of(s.op.form);
  const float* scales = p.type == PackedBType::I8 ? scales_of(p, s.op.k, s.op.n, panels) : nullptr;
  for (std::int64_t j = s.begin; j < s.end; ++j) {
    const PanelColumn column = column_of(p, s.op.k, s.op.n, s.first + j);
    const std::int64_t at = s.source.offset + j * s.source.n_stride;
    const double scale = scales ? scales[s.first + j] : 1;
    for (std::int64_t k = 0; k < s.op.k; ++k)
      store_element(values, to, at + k * s.source.k_stride,
                    scale * load_element<double>(panels, panel_dtype(p.type), column.element(k)));
  }
}

void read_panel_column(const Panels& p, std::int64_t k, std::int64_t n, std::int64_t j, const std::byte* panels,
                       float* to) {
  const PanelColumn column = column_of(p, k, n, j);
  const float scale = p.type == PackedBType::I8 ? scales_of(p, k, n, panels)[j] : 1;
  visit_panels(p.type, [&]<class T>(T) {
    const T* from = reinterpret_cast<const T*>(panels);
    for (std::int64_t i = 0; i < k; ++i) to[i] = scale * static_cast<float>(from[column.element(i)]);
  });
}

}  // namespace rlx::cpu
