// Decodes grid schemes (iq1, iq2, iq3) by ops: row numbers, a gather from the grid, signs and scales.
#include <numeric>

#include "rlx/ops/quant/block_bytes.h"
#include "rlx/tensor/block_grids.h"

namespace rlx {
namespace {

using namespace block_bytes;  // NOLINT

// The results of unpack_grid_block as I32 values: [lead.., rows], [lead.., 32], [lead.., groups].
struct GridFields {
  Expr row, sign, scale;
  Expr negative_delta;  // [lead.., 32]; none for schemes without delta
  double scale_unit = 1;
  Expr d;  // F32 [lead.., 1]
};

struct GridReader {
  Graph& g;
  Expr blocks;
  const Dims& lead;

  Expr bytes(int at, int count) { return words_at(g, blocks, lead, at, count, 1); }
  // `n` fields of each of `words` [lead.., w], `step` bits apart, lowest first: [lead.., w * n].
  Expr fields(Expr words, int n, int step, int mask) {
    const std::int64_t w = words.dim(-1).value();
    Tensor shifts = Tensor::zeros(Shape({n}, DType::I32));
    for (int k = 0; k < n; ++k) shifts.set_i64(k, std::int64_t{k} * step);
    Expr each = g.shr(g.reshape(words, with_last(lead, {w, 1})), g.constant(std::move(shifts)));
    return g.reshape(g.bit_and(each, mask), with_last(lead, {w * n}));
  }
  Expr nibbles(int at, int count) { return fields(bytes(at, count / 2), 2, 4, 15); }
  Expr with_high(Expr low, Expr high) { return g.bit_or(low, g.shl(high, 8)); }
  // The eight signs that seven bits encode.
  Expr even(Expr seven) {
    Tensor table = Tensor::zeros(Shape({128}, DType::I32));
    for (unsigned i = 0; i < 128; ++i) table.set_i64(i, even_signs(i));
    return g.gather(g.constant(std::move(table)), seven);
  }
  // 28 sign bits and four scale bits, from the bytes of each word in `parts` I32 [lead.., 8, 4].
  void signs_and_scale(Expr parts, GridFields& out) {
    const auto byte = [&](int k) { return g.reshape(g.narrow(parts, -1, k, 1), with_last(lead, {8})); };
    Expr low = g.bit_or(byte(0), g.shl(byte(1), 8)), high = g.bit_or(byte(2), g.shl(byte(3), 8));
    // 7 bits each at bit 0, 7, 14 (two bits in the low half, the rest in the high half) and 21
    Expr first = g.bit_and(low, 127), second = g.bit_and(g.shr(low, 7), 127);
    Expr third = g.bit_or(g.shr(low, 14), g.shl(g.bit_and(high, 31), 2)), fourth = g.bit_and(g.shr(high, 5), 127);
    const auto column = [&](Expr x) { return g.reshape(x, with_last(lead, {8, 1})); };
    Expr seven = g.concat({column(first), column(second), column(third), column(fourth)}, -1);
    out.sign = even(g.reshape(seven, with_last(lead, {32})));
    out.scale = g.shr(high, 12);
  }
  // The block's scale in the upper four bits of four words.
  Expr split_unit(Expr words) {
    const auto nibble = [&](int k) { return g.shr(g.narrow(words, -1, k, 1), 12); };
    return f16_of_bytes(g, g.bit_or(nibble(0), g.shl(nibble(1), 4)), g.bit_or(nibble(2), g.shl(nibble(3), 4)));
  }

  GridFields read(const BlockLayout& l) {
    GridFields out;
    if (l.d_at >= 0) out.d = f16_at(g, blocks, l.d_at);
    switch (l.scheme) {
      case QuantScheme::IQ2_XXS: {
        Expr all = g.reshape(bytes(2, 64), with_last(lead, {8, 8}));
        out.row = g.reshape(g.narrow(all, -1, 0, 4), with_last(lead, {32}));
        signs_and_scale(g.narrow(all, -1, 4, 4), out);
        out.scale_unit = 0.25;
        break;
      }
      case QuantScheme::IQ2_XS: {
        Expr code = words_at(g, blocks, lead, 2, 32, 2);
        out.row = g.bit_and(code, 511), out.sign = even(g.shr(code, 9));
        out.scale = nibbles(66, 16), out.scale_unit = 0.25;
        break;
      }
      case QuantScheme::IQ2_S:
        out.row = with_high(bytes(2, 32), fields(bytes(66, 8), 4, 2, 3));
        out.sign = bytes(34, 32), out.scale = nibbles(74, 16), out.scale_unit = 0.25;
        break;
      case QuantScheme::IQ3_XXS:
        out.row = bytes(2, 64), out.scale_unit = 0.5;
        signs_and_scale(g.reshape(bytes(66, 32), with_last(lead, {8, 4})), out);
        break;
      case QuantScheme::IQ3_S:
        out.row = with_high(bytes(2, 64), fields(bytes(66, 8), 8, 1, 1));
        out.sign = bytes(74, 32), out.scale = nibbles(106, 8), out.scale_unit = 2;
        break;
      case QuantScheme::IQ1_S: {
        Expr top = words_at(g, blocks, lead, 34, 8, 2);
        out.row = with_high(bytes(2, 32), fields(top, 4, 3, 7));
        out.negative_delta = fields(g.shr(top, 15), 4, 0, 1);
        out.scale = g.bit_and(g.shr(top, 12), 7), out.scale_unit = 2;
        break;
      }
      case QuantScheme::IQ1_M: {
        Expr top = nibbles(32, 32), words = words_at(g, blocks, lead, 48, 4, 2);
        out.row = with_high(bytes(0, 32), g.bit_and(top, 7));
        out.negative_delta = g.shr(top, 3);
        out.scale = fields(words, 4, 3, 7), out.scale_unit = 2;
        out.d = split_unit(words);
        break;
      }
      default: check(false, "the scheme has a grid");
    }
    return out;
  }
};

}  // namespace

Expr decode_grid_blocks(Graph& g, const BlockLayout& l, Expr blocks, const Dims& lead) {
  GridFields f = GridReader{g, blocks, lead}.read(l);
  const BlockGrid& grid = block_grid(l.scheme);
  Tensor table = Tensor::zeros(Shape({grid.rows, grid.width}, DType::F32));
  for (std::size_t i = 0; i < grid.values.size(); ++i) table.set(static_cast<std::int64_t>(i), grid.values[i]);
  Expr y = g.reshape(g.gather(g.constant(std::move(table)), f.row), with_last(lead, {32, 8}));
  if (f.sign.valid()) {
    Tensor shifts = Tensor::zeros(Shape({8}, DType::I32));
    for (int k = 0; k < 8; ++k) shifts.set_i64(k, k);
    Expr bit = g.bit_and(g.shr(g.reshape(f.sign, with_last(lead, {32, 1})), g.constant(std::move(shifts))), 1);
    y = g.where(g.ne(bit, 0), -y, y);
  }
  if (f.negative_delta.valid())
    y = y + g.reshape(g.where(g.ne(f.negative_delta, 0), g.scalar(-0.125, DType::F32), g.scalar(0.125, DType::F32)),
                      with_last(lead, {32, 1}));
  Expr factor = f.d * ((g.cast(f.scale, DType::F32) + 0.5) * f.scale_unit);
  y = g.reshape(y, with_last(lead, {l.groups(), l.group}));
  return g.reshape(y * g.reshape(factor, with_last(lead, {l.groups(), 1})), with_last(lead, {l.elements}));
}

}  // namespace rlx
