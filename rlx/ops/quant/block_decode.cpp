// Decodes block schemes by integer ops: shifts, masks and a few multiplications, on any device.
#include "rlx/ops/quant/quantize_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/ops/quant/block_bytes.h"

namespace rlx {
namespace block_bytes {

// Bytes [at, at + bytes) of the last axis.
Expr bytes_at(Graph& g, Expr blocks, int at, int bytes) { return g.narrow(blocks, -1, at, bytes); }

Expr words_at(Graph& g, Expr blocks, const Dims& lead, int at, int count, int bytes) {
  Expr each = g.reshape(g.cast(bytes_at(g, blocks, at, count * bytes), DType::I32), with_last(lead, {count, bytes}));
  Expr word;
  for (int k = 0; k < bytes; ++k) {
    Expr part = g.shl(g.narrow(each, -1, k, 1), 8 * k);
    word = k == 0 ? part : g.bit_or(word, part);
  }
  return g.reshape(word, with_last(lead, {count}));
}

Tensor bytes_tensor(const std::vector<int>& values, Dims dims) {
  Tensor t = Tensor::zeros(Shape(std::move(dims), DType::U8));
  for (std::size_t i = 0; i < values.size(); ++i) t.set_i64(static_cast<std::int64_t>(i), values[i]);
  return t;
}

// The bit fields of width `width` of U8 values, lowest first, on a new axis before the last: [.., run] -> [.., shifts,
// run].
Expr bit_fields(Graph& g, Expr runs, int width) {
  if (width == 8) return runs;
  const int shifts = 8 / width;
  std::vector<int> by;
  for (int s = 0; s < shifts; ++s) by.push_back(s * width);
  Expr shift = g.constant(bytes_tensor(by, {shifts, 1}));
  Expr mask = g.constant(bytes_tensor({(1 << width) - 1}, {}));
  return g.bit_and(g.shr(runs, shift), mask);
}

Expr f32_table(Graph& g, const std::vector<double>& values) {
  Tensor t = Tensor::zeros(Shape({static_cast<std::int64_t>(values.size())}, DType::F32));
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), values[i]);
  return g.constant(std::move(t));
}

// The U8 quantized values of one field in element order, [lead.., elements].
Expr quantized_values_of(Graph& g, Expr blocks, const Dims& lead, const BlockBits& bits) {
  const int runs = bits.bytes / bits.run, shifts = 8 / bits.width;
  Expr b = bytes_at(g, blocks, bits.at, bits.bytes);
  b = g.reshape(b, with_last(lead, {runs, 1, bits.run}));
  return g.reshape(bit_fields(g, b, bits.width), with_last(lead, {std::int64_t{runs} * shifts * bits.run}));
}

Expr f16_of_bytes(Graph& g, Expr low, Expr high) {
  Expr exponent = g.bit_and(g.shr(high, 2), 31);
  Expr mantissa = g.bit_or(low, g.shl(g.bit_and(high, 3), 8));
  std::vector<double> powers;
  for (int e = 0; e < 31; ++e) powers.push_back(std::ldexp(1.0, std::max(e, 1) - 25));
  powers.push_back(std::numeric_limits<double>::infinity());
  Expr whole = g.where(g.eq(exponent, 0), mantissa, mantissa + 1024);
  Expr size = g.cast(whole, DType::F32) * g.gather(f32_table(g, powers), exponent);
  Expr not_a_number = g.bit_and(g.eq(exponent, 31), g.ne(mantissa, 0));
  size = g.where(not_a_number, std::numeric_limits<double>::quiet_NaN(), size);
  return g.where(g.ge(high, 128), -size, size);
}

Expr f16_at(Graph& g, Expr blocks, int at) {
  const auto byte = [&](int i) { return g.cast(bytes_at(g, blocks, at + i, 1), DType::I32); };
  return f16_of_bytes(g, byte(0), byte(1));
}

}  // namespace block_bytes

namespace {

using namespace block_bytes;  // NOLINT

// The F32 number at byte `at`, F32 [lead.., 1], computed as in f16_of_bytes: a mantissa in [1, 2) times a power of two.
Expr f32_at(Graph& g, Expr blocks, const Dims& lead, int at) {
  Expr low = words_at(g, blocks, lead, at, 1, 2), high = words_at(g, blocks, lead, at + 2, 1, 2);
  Expr exponent = g.bit_and(g.shr(high, 7), 255);
  Expr mantissa = g.bit_or(low, g.shl(g.bit_and(high, 127), 16));
  std::vector<double> powers;
  for (int e = 0; e < 255; ++e) powers.push_back(std::ldexp(1.0, std::max(e, 1) - 127));
  powers.push_back(std::numeric_limits<double>::infinity());
  Expr whole = g.where(g.eq(exponent, 0), mantissa, g.bit_or(mantissa, 1 << 23));
  Expr size = g.cast(whole, DType::F32) * std::ldexp(1.0, -23) * g.gather(f32_table(g, powers), exponent);
  Expr not_a_number = g.bit_and(g.eq(exponent, 255), g.ne(mantissa, 0));
  size = g.where(not_a_number, std::numeric_limits<double>::quiet_NaN(), size);
  return g.where(g.ge(high, 1 << 15), -size, size);
}

// The scale d of each block, F32 [lead.., 1].
Expr unit_of(Graph& g, Expr blocks, const Dims& lead, const BlockLayout& l) {
  switch (l.unit) {
    case BlockUnit::F16: return f16_at(g, blocks, l.d_at);
    case BlockUnit::F32: return f32_at(g, blocks, lead, l.d_at);
    case BlockUnit::HalfE8M0: {
      std::vector<double> powers;
      for (int e = 0; e < 256; ++e) powers.push_back(std::ldexp(1.0, e - 128));
      return g.gather(f32_table(g, powers), g.cast(bytes_at(g, blocks, l.d_at, 1), DType::I32));
    }
    case BlockUnit::One: return {};
  }
  return {};
}

// The base-3 digits of 48 and 4 bytes, I32 [lead.., 256].
Expr ternary_of(Graph& g, Expr blocks, const Dims& lead, const BlockLayout& l) {
  std::vector<Expr> parts;
  int at = l.low.at;
  for (const auto& [count, digits] : {std::pair{32, 5}, std::pair{16, 5}, std::pair{4, 4}}) {
    Tensor powers = Tensor::zeros(Shape({digits, 1}, DType::I32));
    for (int k = 0, power = 1; k < digits; ++k, power *= 3) powers.set_i64(k, power);
    Expr bytes = g.reshape(g.cast(bytes_at(g, blocks, at, count), DType::I32), with_last(lead, {1, count}));
    Expr rest = g.bit_and(bytes * g.constant(std::move(powers)), 255);
    parts.push_back(g.reshape(g.shr(rest * 3, 8), with_last(lead, {std::int64_t{digits} * count})));
    at += count;
  }
  return g.concat(parts, -1);
}

// The dequantized numbers, F32 [lead.., elements].
Expr numbers_of(Graph& g, Expr blocks, const Dims& lead, const BlockLayout& l) {
  Expr q;
  if (l.codes == BlockValues::Ternary) {
    q = ternary_of(g, blocks, lead, l);
  } else {
    q = quantized_values_of(g, blocks, lead, l.low);
    if (l.low.width == 8) q = g.bit_xor(q, g.constant(bytes_tensor({128}, {})));
    if (l.high.bytes)
      q = g.bit_or(q, g.shl(quantized_values_of(g, blocks, lead, l.high), g.constant(bytes_tensor({l.low.width}, {}))));
  }
  if (l.values)
    return g.gather(f32_table(g, std::vector<double>(l.values, l.values + (std::size_t{1} << l.low.width))),
                    g.cast(q, DType::I32));
  Expr y = g.cast(q, DType::F32);
  return l.offset ? y - l.offset : y;
}

struct ScaleGroups {
  Expr scale, min;  // F32 [lead.., groups]
};
ScaleGroups groups_of(Graph& g, Expr blocks, const Dims& lead, const BlockLayout& l) {
  const auto number = [&](Expr x) { return g.cast(x, DType::F32); };
  const auto nibbles = [&](Expr bytes, int n) {  // [n] bytes -> 2 n values: the low nibbles, then the high ones
    return g.reshape(bit_fields(g, g.reshape(bytes, with_last(lead, {1, n})), 4),
                     with_last(lead, {2 * std::int64_t{n}}));
  };
  const auto u8 = [&](int v) { return g.constant(bytes_tensor({v}, {})); };
  switch (l.scales) {
    case GroupScales::None: return {};
    case GroupScales::Nibbles: {
      Expr both = nibbles(bytes_at(g, blocks, l.scales_at, l.groups()), l.groups());
      return {number(g.narrow(both, -1, 0, l.groups())), number(g.narrow(both, -1, l.groups(), l.groups()))};
    }
    case GroupScales::SixBitPairs: {
      const auto four = [&](int i) { return bytes_at(g, blocks, l.scales_at + 4 * i, 4); };
      Expr tops = nibbles(four(2), 4);
      const auto six = [&](int i) {  // groups 0 to 3 have six bits in one byte; groups 4 to 7 have four bits elsewhere
                                     // and two in the top bits
        Expr own = four(i), rest = g.narrow(tops, -1, 4 * i, 4);
        Expr high = g.bit_and(g.shr(own, u8(2)), u8(48));
        return number(g.concat({g.bit_and(own, u8(63)), g.bit_or(rest, high)}, -1));
      };
      return {six(0), six(1)};
    }
    case GroupScales::SixBits: {
      Expr low = nibbles(bytes_at(g, blocks, l.scales_at, 8), 8);
      Expr high = bit_fields(g, g.reshape(bytes_at(g, blocks, l.scales_at + 8, 4), with_last(lead, {1, 4})), 2);
      high = g.shl(g.reshape(high, with_last(lead, {16})), u8(4));
      return {number(g.bit_or(low, high)) - 32, {}};
    }
    case GroupScales::SignedBytes: {
      Expr byte = bytes_at(g, blocks, l.scales_at, l.groups());
      return {number(g.bit_xor(byte, u8(128))) - 128, {}};
    }
    case GroupScales::SplitSixBits: {
      Expr high = bit_fields(g, g.reshape(bytes_at(g, blocks, l.scales_at, 2), with_last(lead, {2, 1, 1})), 2);
      Expr low = bit_fields(g, g.reshape(bytes_at(g, blocks, l.scales_at + 2, 4), with_last(lead, {4, 1, 1})), 4);
      high = g.reshape(g.shl(high, u8(4)), with_last(lead, {8}));
      return {number(g.bit_or(g.reshape(low, with_last(lead, {8})), high)) - 32, {}};
    }
    case GroupScales::E4M3: {
      std::vector<double> halves;
      for (int code = 0; code < 256; ++code) {
        const int exponent = code >> 3 & 15, mantissa = code & 7;
        halves.push_back(code == 127     ? 0
                         : exponent == 0 ? std::ldexp(mantissa, -10)
                                         : std::ldexp(8 + mantissa, exponent - 11));
      }
      Expr byte = bytes_at(g, blocks, l.scales_at, l.groups());
      return {g.gather(f32_table(g, halves), g.cast(byte, DType::I32)), {}};
    }
  }
  return {};
}

}  // namespace

Expr decode_blocks(Graph& g, QuantScheme scheme, Expr codes, const Dims& dims) {
  const BlockLayout& l = block_layout(scheme);
  Dims lead(dims.begin(), dims.end() - 1);
  lead.push_back(Dim(dims.back().value() / l.elements));
  Expr blocks = g.reshape(codes, with_last(lead, {l.bytes}));
  if (l.codes == BlockValues::Grid) return g.reshape(decode_grid_blocks(g, l, blocks, lead), dims);
  Expr y = numbers_of(g, blocks, lead, l);
  Expr d = unit_of(g, blocks, lead, l);
  const ScaleGroups small = groups_of(g, blocks, lead, l);
  const auto per_group = [&](Expr v) { return g.reshape(v, with_last(lead, {l.groups(), 1})); };
  y = g.reshape(y, with_last(lead, {l.groups(), l.group}));
  y = per_group(!small.scale.valid() ? d : d.valid() ? d * small.scale : small.scale) * y;
  if (l.m_at >= 0) {
    Expr m = f16_at(g, blocks, l.m_at);
    y = l.adds_m ? y + per_group(m) : y - per_group(m * small.min);
  }
  return g.reshape(y, dims);
}

}  // namespace rlx
