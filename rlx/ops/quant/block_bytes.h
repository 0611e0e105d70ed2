// The bytes of quantized blocks as ops: ranges, words, bit fields and F16 numbers of U8 [lead.., bytes].
#pragma once

#include <vector>

#include "rlx/ops/quant/quantize_core.h"
#include "rlx/tensor/block_schemes.h"

namespace rlx {
namespace block_bytes {

/// Bytes [at, at + bytes) of the last axis.
Expr bytes_at(Graph& g, Expr blocks, int at, int bytes);
/// `count` little-endian numbers of `bytes` bytes each, from byte `at`: I32 [lead.., count].
Expr words_at(Graph& g, Expr blocks, const Dims& lead, int at, int count, int bytes);
/// A constant U8 tensor.
Tensor bytes_tensor(const std::vector<int>& values, Dims dims);
/// A constant F32 vector.
Expr f32_table(Graph& g, const std::vector<double>& values);
/// The `8 / width` bit fields of U8 values [.., 1, n], lowest bits first: [.., 8 / width, n].
Expr bit_fields(Graph& g, Expr runs, int width);
/// The F16 number of two bytes given as I32, exactly, as F32. It is computed from the bits and not by a bitcast: the
/// sign, the exponent by a table of powers, times the mantissa.
Expr f16_of_bytes(Graph& g, Expr low, Expr high);
/// The F16 number at byte `at` as F32 [lead.., 1].
Expr f16_at(Graph& g, Expr blocks, int at);

}  // namespace block_bytes

/// Decodes blocks U8 [lead.., bytes] of a grid scheme to F32 [lead.., elements].
Expr decode_grid_blocks(Graph& g, const BlockLayout& l, Expr blocks, const Dims& lead);

}  // namespace rlx
