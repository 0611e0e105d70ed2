// Op structs of LIR: what the planner makes.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/packed_layout.h"

// clang-format off
namespace rlx {

namespace ops {

/// Where a source of a relayout lies in it: `columns` columns from where the one before ended. Element (k, j) of them
/// is element offset + k * k_stride + j * n_stride of the source's values, row-major.
struct PackedSource { std::int64_t columns = 0, offset = 0, k_stride = 0, n_stride = 0; };
/// A matrix [K, N] in a form that kernels asked for, joined along N from its sources, which are read where they lie, in
/// their own dtype. Inputs: sources, of `dtype` or a narrower one that it holds. Result: [K, N], or [N, K] when
/// `transposed`, in that form. A form of `count` matrices has the sources of one after the other, and the result
/// [count, K, N] or [count, N, K]. With a block scheme the sources are blocks, U8 [.., row bytes], that lie along K,
/// and PackedSource counts the elements that they stand for. LIR only.
struct Relayout {
  RLX_OP(Relayout);
  PackedLayout form{};
  std::int64_t k = 0, n = 0;
  bool transposed = false;
  DType dtype = DType::F32;
  std::vector<std::int64_t> sources{};  // four numbers of each, as in PackedSource
  QuantScheme scheme = QuantScheme::Affine;  // of the sources; Affine: they are the numbers themselves
  /// InvalidArgument for a source that it does not have.
  PackedSource source(std::size_t i) const {
    (void)detail::checked_index("source of a relayout", i, sources.size() / 4);
    return {sources[4 * i], sources[4 * i + 1], sources[4 * i + 2], sources[4 * i + 3]};
  }
};

/// The operand's value on device `to` of the program (`LirModule::others`), which made it on another. LIR only.
struct Transfer { RLX_OP(Transfer); std::int64_t to = 0; };

}  // namespace ops
}  // namespace rlx
// clang-format on
