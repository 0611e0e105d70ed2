// Block schemes decoded by integer ops: shifts, masks and a few multiplications, on any device.
#include "rlx/ops/quantize_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rlx {
namespace {

// The part [at, at + bytes) of the last axis.
Expr bytes_at(Graph& g, Expr blocks, int at, int bytes) { return g.narrow(blocks, -1, at, bytes); }

Tensor bytes_tensor(const std::vector<int>& values, Dims dims) {
  Tensor t = Tensor::zeros(Shape(std::move(dims), DType::U8));
  for (std::size_t i = 0; i < values.size(); ++i) t.set_i64(static_cast<std::int64_t>(i), values[i]);
  return t;
}

// `shifted[i]` of width `width` of U8 values, as a new axis in front of the last: [.., run] -> [.., shifts, run].
Expr bit_fields(Graph& g, Expr runs, int width) {
  if (width == 8) return runs;
  const int shifts = 8 / width;
  std::vector<int> by;
  for (int s = 0; s < shifts; ++s) by.push_back(s * width);
  Expr shift = g.constant(bytes_tensor(by, {shifts, 1}));
  Expr mask = g.constant(bytes_tensor({(1 << width) - 1}, {}));
  return g.bit_and(g.shr(runs, shift), mask);
}

// U8 codes of one field in the order of elements, [lead.., elements].
Expr codes_of(Graph& g, Expr blocks, const Dims& lead, const BlockBits& bits) {
  const int runs = bits.bytes / bits.run, shifts = 8 / bits.width;
  Expr b = bytes_at(g, blocks, bits.at, bits.bytes);
  b = g.reshape(b, with_last(lead, {runs, 1, bits.run}));
  return g.reshape(bit_fields(g, b, bits.width), with_last(lead, {std::int64_t{runs} * shifts * bits.run}));
}

// The F16 number at byte `at`, exactly, as F32 [lead.., 1]. Bits and not a bitcast: sign, exponent by a table of
// powers, mantissa times it.
Expr f16_at(Graph& g, Expr blocks, int at) {
  Expr low = g.cast(bytes_at(g, blocks, at, 1), DType::I32), high = g.cast(bytes_at(g, blocks, at + 1, 1), DType::I32);
  Expr exponent = g.bit_and(g.shr(high, 2), 31);
  Expr mantissa = g.bit_or(low, g.shl(g.bit_and(high, 3), 8));
  Tensor powers = Tensor::zeros(Shape({32}, DType::F32));
  for (int e = 0; e < 31; ++e) powers.set(e, std::ldexp(1.0, std::max(e, 1) - 25));
  powers.set(31, std::numeric_limits<double>::infinity());
  Expr whole = g.where(g.eq(exponent, 0), mantissa, mantissa + 1024);
  Expr size = g.cast(whole, DType::F32) * g.gather(g.constant(std::move(powers)), exponent);
  Expr not_a_number = g.bit_and(g.eq(exponent, 31), g.ne(mantissa, 0));
  size = g.where(not_a_number, std::numeric_limits<double>::quiet_NaN(), size);
  return g.where(g.ge(high, 128), -size, size);
}

struct ScaleGroups {
  Expr scale, min;  // F32 [lead.., groups]
};
ScaleGroups groups_of(Graph& g, Expr blocks, const Dims& lead, const BlockLayout& l) {
  const auto number = [&](Expr x) { return g.cast(x, DType::F32); };
  const auto nibbles = [&](Expr bytes, int n) {  // [n] bytes -> 2 n: the low ones, then the high ones
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
      const auto six = [&](int i) {  // groups 0 to 3 lie in six bits, 4 to 7 have four elsewhere and two on top
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
  }
  return {};
}

}  // namespace

Expr decode_blocks(Graph& g, QuantScheme scheme, Expr codes, const Dims& dims) {
  const BlockLayout& l = block_layout(scheme);
  Dims lead(dims.begin(), dims.end() - 1);
  lead.push_back(Dim(dims.back().value() / l.elements));
  Expr blocks = g.reshape(codes, with_last(lead, {l.bytes}));
  Expr q = codes_of(g, blocks, lead, l.low);
  if (l.low.width == 8) q = g.bit_xor(q, g.constant(bytes_tensor({128}, {})));
  if (l.high.bytes)
    q = g.bit_or(q, g.shl(codes_of(g, blocks, lead, l.high), g.constant(bytes_tensor({l.low.width}, {}))));
  Expr y = g.cast(q, DType::F32);
  if (l.offset) y = y - l.offset;
  Expr d = f16_at(g, blocks, l.d_at);
  const ScaleGroups small = groups_of(g, blocks, lead, l);
  const auto per_group = [&](Expr v) { return g.reshape(v, with_last(lead, {l.groups(), 1})); };
  y = g.reshape(y, with_last(lead, {l.groups(), l.group}));
  y = per_group(small.scale.valid() ? d * small.scale : d) * y;
  if (l.m_at >= 0) {
    Expr m = f16_at(g, blocks, l.m_at);
    y = l.adds_m ? y + per_group(m) : y - per_group(m * small.min);
  }
  return g.reshape(y, dims);
}

}  // namespace rlx
