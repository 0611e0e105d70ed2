// Updates put where they belong, in the type that they are computed in.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

struct Updates {
  DType dtype = DType::F32;
  ScatterKind fn = ScatterKind::Set;
  const std::int64_t* at = nullptr;     // [count], where each goes; -1: nowhere
  const std::int64_t* order = nullptr;  // [count], where dtype and fn are such that `rounds_updates`: by their places
  std::int64_t count = 0, size = 1;     // size: elements of a block
  const void* from = nullptr;
  void* to = nullptr;
};

/// True for sums and products that round once for all updates to one element: those of halves.
bool rounds_updates(DType t, ScatterKind fn);
/// True for what there are kernels for: all but complex sums and products, and elements that are parts of bytes.
bool has_scatter_kernels(DType t, ScatterKind fn);

struct ScatterKernels {
  /// For each j in [0, count) with low <= at[j] < high, in their order: n elements at to[to_base + at[j]] get those at
  /// from[from_base + j * size]. Integers wrap.
  void (*put)(const Updates& updates, std::int64_t from_base, std::int64_t to_base, std::int64_t n, std::int64_t low,
              std::int64_t high);
};
const ScatterKernels& scatter_kernels(Isa isa);

}  // namespace rlx::cpu
