// Bytes of quantised blocks as ops: parts, words, bits and F16 numbers of U8 [lead.., bytes].
#pragma once

#include <vector>

#include "rlx/ops/quant/quantize_core.h"
#include "rlx/tensor/block_schemes.h"

namespace rlx {
namespace block_bytes {

/// The part [at, at + bytes) of the last axis.
Expr bytes_at(Graph& g, Expr blocks, int at, int bytes);
/// `count` numbers of `bytes` bytes each from byte `at` on, little-endian: I32 [lead.., count].
Expr words_at(Graph& g, Expr blocks, const Dims& lead, int at, int count, int bytes);
/// A constant U8 tensor.
Tensor bytes_tensor(const std::vector<int>& values, Dims dims);
/// A constant F32 vector.
Expr f32_table(Graph& g, const std::vector<double>& values);
/// The `8 / width` fields of U8 values [.., 1, n], the lowest bits first: [.., 8 / width, n].
Expr bit_fields(Graph& g, Expr runs, int width);
/// The F16 number of two bytes given as I32, exactly, as F32. Bits and not a bitcast: sign, exponent by a table of
/// powers, mantissa times it.
Expr f16_of_bytes(Graph& g, Expr low, Expr high);
/// The F16 number at byte `at`, F32 [lead.., 1].
Expr f16_at(Graph& g, Expr blocks, int at);

}  // namespace block_bytes

/// Blocks U8 [lead.., bytes] of a grid scheme decoded to F32 [lead.., elements].
Expr decode_grid_blocks(Graph& g, const BlockLayout& l, Expr blocks, const Dims& lead);

}  // namespace rlx
