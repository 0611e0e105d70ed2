// Sorting of rows by keys: bitonic networks in workgroup memory, and in device memory for long rows.
#pragma once

#include <functional>
#include <string>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// Rows sorted by (key, place): scratch values, U32 [rows, stride] each, of which the first n elements are sorted.
struct SortedRows {
  Ref keys, places;
  Dim stride;
};
/// The key of element `j` of row `row`, both names, as a u32 expression. It may add statements to the kernel first.
using KeyText = std::function<std::string(KernelBuilder& k, const std::string& row, const std::string& j)>;

/// Adds kernels that sort `rows` rows of n elements, whose places are 0, 1, ..
SortedRows sorted_rows(NodeKernels& node, const Dim& rows, const Dim& n, const KeyText& key);
inline constexpr std::int64_t kFewOfBlocks = 256;
/// The same, but only the first `count` of each row are found. Up to kFewOfBlocks no whole rows are sorted.
SortedRows first_of_rows(NodeKernels& node, const Dim& rows, const Dim& n, std::int64_t count, const KeyText& key);

/// The scratch bytes of keys and places, for known extents.
ScratchBytes sorted_bytes(std::int64_t rows, std::int64_t n);

/// A u32 expression that sorts like values of dtype `t`, where NaN is above every number and -0 equals 0. `x` is a name
/// or a load of its compute type. The order is reversed when `descending`.
std::string sort_key(KernelBuilder& k, DType t, const std::string& x, bool descending);

}  // namespace rlx::codegen
