// Shared helpers of the op rules: strided element copies, typed accumulation, and axis arithmetic for graph-building
// rules.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "rlx/ir/build/counting.h"
#include "rlx/ir/op_def.h"
#include "rlx/tensor/visit.h"

namespace rlx {

// -- reference rules: moving elements --

/// The position of a block of elements in a buffer: an element offset and one element stride per axis (0 and negative
/// are allowed).
struct StridedView {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};
/// Copies the block of extents `dims` between two buffers of `dtype` (any dtype, packed 4-bit ones included).
void copy_strided(DType dtype, std::span<const std::int64_t> dims, std::byte* dst, const StridedView& to,
                  const std::byte* src, const StridedView& from);
/// The view of a whole row-major tensor of extents `dims`.
StridedView whole(std::span<const std::int64_t> dims);

// -- reference rules: computing --

/// Calls f(A{}) with the type in which reference rules compute `t`: double, int64 (also Bool), uint64 or
/// complex<double>.
template <class F>
decltype(auto) visit_accumulator(DType t, F&& f) {
  if (is_storage_only(t))
    throw Error(ErrorCode::Unsupported,
                concat_text(dtype_name(t), " is a storage dtype, which cannot be computed with"),
                "cast it to a compute dtype first");
  if (is_complex(t)) return f(std::complex<double>{});
  if (is_float(t)) return f(double{});
  if (is_unsigned_int(t)) return f(std::uint64_t{});
  return f(std::int64_t{});
}
/// Every element converted to A.
template <class A>
std::vector<A> load_all(const Tensor& t) {
  const auto n = static_cast<std::size_t>(t.num_elements());
  std::vector<A> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = load_element<A>(t.data(), t.dtype(), static_cast<std::int64_t>(i));
  return out;
}
/// Writes `values` to the elements of `t`, each rounded once.
template <class A>
void store_all(Tensor& t, const std::vector<A>& values) {
  std::byte* data = t.mutable_data();
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(data, t.dtype(), static_cast<std::int64_t>(i), values[i]);
}
/// a + b and a * b. Integers wrap.
template <class A>
A wrapping_add(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}
template <class A>
A wrapping_mul(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}
/// True when `candidate` replaces `best` as the maximum (or minimum). NaN beats every number and is never replaced.
template <class A>
bool beats(A candidate, A best, bool maximum) {
  if constexpr (std::is_floating_point_v<A>) {
    if (std::isnan(best)) return false;
    if (std::isnan(candidate)) return true;
  }
  return maximum ? candidate > best : candidate < best;
}
/// The max (or min) of no elements: the lowest (highest) value of `t`, minus (plus) infinity for floats.
template <class A>
A extreme_identity(DType t, bool maximum) {
  if constexpr (std::is_floating_point_v<A>) {
    return maximum ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::infinity();
  } else if constexpr (std::is_integral_v<A>) {
    if (t == DType::Bool) return static_cast<A>(maximum ? 0 : 1);
    const int bits = dtype_bits(t);
    if (is_unsigned_int(t)) return maximum ? A{0} : static_cast<A>(~std::uint64_t{0} >> (64 - bits));
    const std::int64_t high = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
    return static_cast<A>(maximum ? -high - 1 : high);
  } else {
    return A{};  // complex values have no order: the shape rules refuse them
  }
}
/// Extents before, at and after `axis`, for loops over [outer, extent, inner].
struct AxisSplit {
  std::int64_t outer = 1, extent = 1, inner = 1;
};
AxisSplit split_at(std::span<const std::int64_t> dims, std::int64_t axis);

// -- shape rules --

/// The error for a list of axes that is out of range or repeats an axis; none for a valid list.
std::optional<Diagnostic> check_axes(const InferContext& c, const std::vector<std::int64_t>& axes, const Shape& x);
/// The extents of x with those of `axes` set to 1.
Dims kept_dims(const Shape& x, const std::vector<std::int64_t>& axes);

// -- graph-building rules --

/// All axes plus one, for rules that add a leading batch axis.
std::vector<std::int64_t> shifted(std::vector<std::int64_t> axes);
/// 0, 1, .., rank - 1.
std::vector<std::int64_t> identity_perm(int rank);
/// The inverse of `perm`.
std::vector<std::int64_t> inverse_perm(const std::vector<std::int64_t>& perm);
/// `d` in front of `dims`.
Dims prepend(const Dim& d, const Dims& dims);
/// The number of elements along `axes` of x together, as a scalar of `dtype`.
Expr group_size(Graph& g, const Shape& x, const std::vector<std::int64_t>& axes, DType dtype);

}  // namespace rlx
