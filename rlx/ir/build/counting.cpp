// Integers in the narrowest dtype that holds them.
#include "rlx/ir/build/counting.h"

#include <algorithm>

#include "rlx/ir/build/building.h"
#include "rlx/tensor/tensor.h"

namespace rlx {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 29;

// Whether the product cannot exceed kLargest. Extents of 0 count as 1, because indices along the other axes are numbers
// too.
bool is_small(const Graph& g, const Dims& extents) {
  std::int64_t product = 1;
  for (const Dim& d : extents) {
    std::int64_t most = 0;
    try {
      most = std::max<std::int64_t>(building::bounds_of(g, d).max, 1);
    } catch (const Error&) {
      return false;  // its bounds overflow 64 bits
    }
    if (most > kLargest / product) return false;
    product *= most;
  }
  return true;
}

}  // namespace

DType count_dtype(const Graph& g, std::initializer_list<Dims> counts) {
  const bool small = std::all_of(counts.begin(), counts.end(), [&](const Dims& d) { return is_small(g, d); });
  return small ? DType::I32 : DType::I64;
}

DType count_dtype(const Graph& g, std::initializer_list<Dims> counts, DType indices) {
  return indices == DType::I64 ? indices : count_dtype(g, counts);
}

Expr extent_of(Graph& g, const Expr& x, std::int64_t axis, DType t, SourceLoc loc) {
  const Dim& d = x.dim(static_cast<int>(axis));
  if (d.is_static()) return g.constant(Tensor::scalar_i64(t, d.value()), loc);
  return building::cast_at(g, g.dim_size(Operand(x, loc), axis), t, loc);
}

Expr dim_value(Graph& g, const Dim& d, DType t) {
  if (d.is_static()) return g.constant(Tensor::scalar_i64(t, d.value()));
  return extent_of(g, positions(g, d, 0, 1, t), 0, t);
}

Expr dims_product(Graph& g, std::span<const Dim> dims, DType t) {
  Dim product(1);
  for (const Dim& d : dims) product = product * d;
  if (product.is_static()) return dim_value(g, product, t);
  Expr out;
  for (const Dim& d : dims) out = out.valid() ? out * dim_value(g, d, t) : dim_value(g, d, t);
  return out;
}

Expr positions(Graph& g, const Dim& d, std::int64_t axis, int rank, DType t, SourceLoc loc) {
  Dims dims(static_cast<std::size_t>(rank), Dim(1));
  dims[static_cast<std::size_t>(axis)] = d;
  return g.iota(Shape(std::move(dims), t), axis, loc);
}

}  // namespace rlx
