// Sorting of rows by keys: networks in the memory of a group, and over all of memory for long rows.
#pragma once

#include <functional>
#include <string>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// Rows in ascending order of (key, place): scratch, U32 [rows, stride] each, of which the first n are sorted.
struct SortedRows {
  Ref keys, places;
  Dim stride;
};
/// The key of element `j` of row `row`, names, as a u32 expression; statements before it may be added to the kernel.
using KeyText = std::function<std::string(KernelBuilder& k, const std::string& row, const std::string& j)>;

/// Adds kernels that sort `rows` rows of n elements, whose places are 0, 1, ...
SortedRows sorted_rows(NodeKernels& node, const Dim& rows, const Dim& n, const KeyText& key);
inline constexpr std::int64_t kFewOfBlocks = 256;
/// The same, but only the first `count` of each row are found; up to kFewOfBlocks without sorting whole rows.
SortedRows first_of_rows(NodeKernels& node, const Dim& rows, const Dim& n, std::int64_t count, const KeyText& key);

/// The bytes of their keys and places, for known extents.
ScratchBytes sorted_bytes(std::int64_t rows, std::int64_t n);

/// A u32 expression in the order of values of dtype `t` (NaN above every number, -0 and 0 equal), from the name or load
/// `x` of its compute type; the other way round when `descending`.
std::string sort_key(KernelBuilder& k, DType t, const std::string& x, bool descending);

}  // namespace rlx::codegen
