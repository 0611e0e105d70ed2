// Shapes by dtype, for graphs written out in tests.
#pragma once

#include <utility>

#include "rlx/tensor/shape.h"

namespace rlx::test {

inline Shape f32(Dims dims) { return Shape(std::move(dims), DType::F32); }
inline Shape f64(Dims dims) { return Shape(std::move(dims), DType::F64); }

}  // namespace rlx::test
