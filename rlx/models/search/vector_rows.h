// Vectors in the element types of index files: encoding, and products with a query.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "rlx/tensor/dtype.h"

namespace rlx {

/// Appends the vector, divided by its length, as F16 or I8 to `rows`; for I8 its scale, f32, to `scales`. A vector of
/// zeros stays one. BadFile for a NaN or an infinity.
void append_vector(std::span<const float> vector, DType type, std::string& rows, std::string& scales);

/// The product of a row of `query.size()` elements of type F16 or I8 with a query, without the scale. Sums in an order
/// that the size alone decides.
float dot_row(const std::byte* row, DType type, std::span<const float> query);

}  // namespace rlx
