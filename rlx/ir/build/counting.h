// Positions and extents as values for rules and builders, in 32 bits when these are enough.
#pragma once

#include <initializer_list>
#include <span>

#include "rlx/ir/graph.h"

namespace rlx {

/// The dtype for numbers up to each of `counts`, which are products of extents. I32 when none can exceed 2^29, so that
/// sums and differences of three such numbers fit too; else I64. Some devices have no 64-bit integers.
DType count_dtype(const Graph& g, std::initializer_list<Dims> counts);
/// The same next to indices of dtype `indices`. I64 indices can have any value and are not narrowed.
DType count_dtype(const Graph& g, std::initializer_list<Dims> counts, DType indices);

/// The extent of an axis of x as a scalar of integer dtype `t`; a constant when it is static.
Expr extent_of(Graph& g, const Expr& x, std::int64_t axis, DType t, SourceLoc loc = SourceLoc::current());
/// A dimension, or the product of some, as a scalar of integer dtype `t`; a constant when it is static.
Expr dim_value(Graph& g, const Dim& d, DType t);
Expr dims_product(Graph& g, std::span<const Dim> dims, DType t);
/// 0, 1, 2, .. along `axis` of [1, .., d, .., 1] with `rank` axes.
Expr positions(Graph& g, const Dim& d, std::int64_t axis, int rank, DType t, SourceLoc loc = SourceLoc::current());

}  // namespace rlx
