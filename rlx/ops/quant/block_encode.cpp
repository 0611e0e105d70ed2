// Encodes blocks by ops: the scales, the quantized values, and their packing into bytes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/ops/quant/quantize_core.h"

namespace rlx {
namespace {

Tensor numbers(DType t, Dims dims, const std::vector<double>& values) {
  Tensor out = Tensor::zeros(Shape(std::move(dims), t));
  for (std::size_t i = 0; i < values.size(); ++i) out.set(static_cast<std::int64_t>(i), values[i]);
  return out;
}

// v [.., 1] rounded to the nearest F16 number, in F32; never negative zero.
Expr as_f16(Graph& g, Expr v) {
  constexpr double kLargest = 65504;
  return g.cast(g.cast(g.clamp(v, -kLargest, kLargest), DType::F16), DType::F32) + 0.0;
}

// The two bytes of an F16 number given in F32, U8 [.., 2]. The exponent is the number of powers of two that do not
// exceed the number.
Expr f16_bytes(Graph& g, Expr v) {
  std::vector<double> powers, factors{std::ldexp(1.0, 24)};
  for (int e = 1; e <= 30; ++e) {
    powers.push_back(std::ldexp(1.0, e - 15));
    factors.push_back(std::ldexp(1.0, 25 - e));
  }
  Expr size = g.abs(v);
  Expr reached = g.cast(g.ge(size, g.constant(numbers(DType::F32, {30}, powers))), DType::I32);
  Expr exponent = g.sum(reached, {-1}, true);
  Expr mantissa = g.cast(size * g.gather(g.constant(numbers(DType::F32, {31}, factors)), exponent), DType::I32);
  Expr bits = mantissa + g.shl(g.max(exponent - 1, 0), 10);
  bits = g.bit_or(bits, g.shl(g.cast(g.lt(v, 0), DType::I32), 15));
  return g.cast(g.concat({g.bit_and(bits, 255), g.shr(bits, 8)}, -1), DType::U8);
}

// U8 values of a few bits, [lead.., elements], packed into the bytes of a field.
Expr field_of(Graph& g, Expr values, const Dims& lead, const BlockBits& bits) {
  const int runs = bits.bytes / bits.run, shifts = 8 / bits.width;
  if (shifts == 1) return values;
  std::vector<double> by;
  for (int s = 0; s < shifts; ++s) by.push_back(s * bits.width);
  values = g.reshape(values, with_last(lead, {runs, shifts, bits.run}));
  values = g.shl(values, g.constant(numbers(DType::U8, {shifts, 1}, by)));
  return g.reshape(g.sum(values, {-2}),
                   with_last(lead, {bits.bytes}));  // the bits are disjoint: the sum is their union
}

}  // namespace

Expr encode_blocks(Graph& g, QuantScheme scheme, Expr x) {
  const BlockLayout& l = block_layout(scheme);
  check(l.scales == GroupScales::None, "blocks with group scales cannot be encoded by ops");
  const double largest = (1 << (l.low.width + l.high.width)) - 1;
  constexpr double kLargest = std::numeric_limits<float>::max();
  Dims lead(x.shape().dims().begin(), x.shape().dims().end() - 1);
  Dims rows = lead;
  const std::int64_t count = x.dim(-1).value() / l.elements;
  rows.push_back(Dim(count * l.bytes));
  lead.push_back(Dim(count));
  x = g.reshape(x, with_last(lead, {l.elements}));
  x = g.clamp(g.where(g.ne(x, x), 0, x), -kLargest, kLargest);
  Expr high = g.reduce_max(x, {-1}, true), low = g.reduce_min(x, {-1}, true);
  Expr d, m;
  if (l.adds_m) {
    d = as_f16(g, (high - low) / largest);
    m = as_f16(g, low);
    x = x - m;
  } else if (l.low.width == 8) {
    d = as_f16(g, g.max(high, -low) / 127);
  } else {
    d = as_f16(g, g.where(g.ge(high, -low), high, low) / -static_cast<double>(l.offset));
  }
  Expr q = g.clamp(g.round(x / d) + static_cast<double>(l.offset), 0, largest);
  q = g.cast(g.where(g.eq(d, 0), static_cast<double>(l.offset), q), DType::U8);
  const auto u8 = [&](int v) { return g.constant(numbers(DType::U8, {}, {static_cast<double>(v)})); };
  std::vector<std::pair<int, Expr>> parts{{l.d_at, f16_bytes(g, d)}};
  if (l.m_at >= 0) parts.emplace_back(l.m_at, f16_bytes(g, m));
  Expr bottom = l.low.width == 8 ? g.bit_xor(q, u8(128)) : g.bit_and(q, u8((1 << l.low.width) - 1));
  parts.emplace_back(l.low.at, field_of(g, bottom, lead, l.low));
  if (l.high.bytes) parts.emplace_back(l.high.at, field_of(g, g.shr(q, u8(l.low.width)), lead, l.high));
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Expr> bytes;
  for (const auto& [at, part] : parts) bytes.push_back(part);
  return g.reshape(g.concat(bytes, -1), rows);
}

}  // namespace rlx
