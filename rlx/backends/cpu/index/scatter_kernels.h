// Scatter kernels. They combine updates in `Updates::dtype`.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

struct Updates {
  DType dtype = DType::F32;
  ScatterKind fn = ScatterKind::Set;
  const std::int64_t* at = nullptr;     // [count], the offset of each update; -1: none
  const std::int64_t* order = nullptr;  // [count], updates sorted by offset; set for dtype and fn of `rounds_updates`
  std::int64_t count = 0, size = 1;     // size: elements of a block
  const void* from = nullptr;
  void* to = nullptr;
};

/// True for sums and products that are rounded once after all updates of an element: those of F16 and BF16.
bool rounds_updates(DType t, ScatterKind fn);
/// True when kernels exist: for all but complex sums and products and sub-byte elements.
bool has_scatter_kernels(DType t, ScatterKind fn);

struct ScatterKernels {
  /// For each j in [0, count) with low <= at[j] < high, in order: n elements at to[to_base + at[j]] are updated with
  /// those at from[from_base + j * size]. Integers wrap.
  void (*put)(const Updates& updates, std::int64_t from_base, std::int64_t to_base, std::int64_t n, std::int64_t low,
              std::int64_t high);
};
const ScatterKernels& scatter_kernels(Isa isa);

}  // namespace rlx::cpu
