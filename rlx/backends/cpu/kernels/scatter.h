// Updates put where they belong, in the type that they are computed in.
#pragma once

#include <cstdint>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// True for what is put as it lies, or computed with in its own type, by `put_updates`.
bool puts_updates(DType t, ScatterKind fn);
/// For each j in [0, count) with at[j] >= 0, in their order: n elements at y[y_base + at[j]] get those at
/// updates[update_base + j * size]. Set, Add and Mul; integers wrap.
void put_updates(DType t, ScatterKind fn, const std::int64_t* at, std::int64_t count, std::int64_t size,
                 const void* updates, std::int64_t update_base, void* y, std::int64_t y_base, std::int64_t n);

}  // namespace rlx::cpu
