// Views: how the result of a reshape, transpose, slice or expand lies over the bytes of its operand.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// The location of a view, in elements from its operand's first.
template <class T>
struct ViewPlace {
  std::vector<T> strides;
  T skip{};
};

// Each function exists for T = std::int64_t (numeric shapes) and T = Dim (the answer holds for every value of the
// symbols, or is none).

/// Row-major strides in elements.
template <class T>
std::vector<T> dense_strides(const std::vector<T>& dims);
/// True when the elements of (dims, strides) lie row-major without gaps.
template <class T>
bool is_dense(const std::vector<T>& dims, const std::vector<T>& strides);
/// The number of elements from the first to one past the last that (dims, strides) touch. Strides are not negative.
/// Symbolic dims count as not zero.
template <class T>
T touched_extent(const std::vector<T>& dims, const std::vector<T>& strides);
/// Element strides of a reshape from (`dims`, `strides`) to `to` that moves no bytes.
template <class T>
std::optional<std::vector<T>> reshape_strides(const std::vector<T>& dims, const std::vector<T>& strides,
                                              const std::vector<T>& to);
/// The view of op `n`, with dims `to`, over its operand (`dims`, `strides`). None when bytes must move.
template <class T>
std::optional<ViewPlace<T>> view_place(const Node& n, const std::vector<T>& dims, const std::vector<T>& strides,
                                       const std::vector<T>& to);

}  // namespace rlx
