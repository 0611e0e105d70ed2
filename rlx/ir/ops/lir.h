// Op structs of LIR, which the planner inserts.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/packed_layout.h"

// clang-format off
namespace rlx {

namespace ops {

/// The part of a packed matrix that comes from one source of a Relayout: `columns` columns, after those of the source
/// before. Element (k, j) of the part is element offset + k * k_stride + j * n_stride of the source, row-major.
struct PackedSource { std::int64_t columns = 0, offset = 0, k_stride = 0, n_stride = 0; };
using FormSource [[deprecated("now PackedSource")]] = PackedSource;
/// A matrix [K, N] in the packed layout `form` that kernels asked for. It is concatenated along N from its sources,
/// which are read in place, in their own dtype. Inputs: sources, of `dtype` or of a narrower dtype that converts to it
/// exactly. Result: [K, N], or [N, K] with `transposed`. A layout of `count` matrices takes the sources of the first
/// matrix, then those of the second, and so on; the result is [count, K, N] or [count, N, K]. With a block scheme the
/// sources are blocks, U8 [.., row bytes], that run along K, and PackedSource counts the elements that they hold. LIR
/// only.
struct Relayout {
  RLX_OP(Relayout);
  PackedLayout form{};
  std::int64_t k = 0, n = 0;
  bool transposed = false;
  DType dtype = DType::F32;
  std::vector<std::int64_t> sources{};  // four numbers per source, the fields of PackedSource
  QuantScheme scheme = QuantScheme::Affine;  // of the sources; Affine: they are not quantized
  /// Throws InvalidArgument for a number i that has no source.
  PackedSource source(std::size_t i) const {
    (void)detail::checked_index("source of a relayout", i, sources.size() / 4);
    return {sources[4 * i], sources[4 * i + 1], sources[4 * i + 2], sources[4 * i + 3]};
  }
};

/// The value of the operand on device `to` of the program (`LirModule::others`); another device computed it. LIR only.
struct Transfer { RLX_OP(Transfer); std::int64_t to = 0; };

}  // namespace ops
}  // namespace rlx
// clang-format on
