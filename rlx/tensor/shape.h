// Shape: dimensions (outermost first) and one dtype.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlx/tensor/dim.h"
#include "rlx/tensor/dtype.h"

namespace rlx {

/// Ordered dimensions plus one dtype, with the text "[4, seq, 384] f32". A scalar has rank 0.
class Shape {
 public:
  Shape() = default;
  /// Throws DTypeMismatch for a value that is not a dtype.
  Shape(Dims dims, DType dtype) : dims_(std::move(dims)), dtype_(checked_dtype(dtype)) {}

  /// The number of dimensions.
  int rank() const { return static_cast<int>(dims_.size()); }
  /// All dimensions, outermost first.
  const Dims& dims() const { return dims_; }
  /// The dimension at `axis`; negative axes count from the end. Throws InvalidArgument out of range.
  const Dim& dim(int axis) const;
  /// The element type.
  DType dtype() const { return dtype_; }

  /// True when no dimension is symbolic.
  bool is_static() const;
  /// The number of elements. Throws Unsupported when a dimension is symbolic, InvalidArgument on overflow or negative
  /// sizes.
  std::int64_t num_elements() const;
  /// The same as a dimension expression, for symbolic shapes.
  Dim num_elements_dim() const;
  /// The bytes of a dense tensor of this shape. Errors as num_elements.
  std::size_t size_bytes() const { return rlx::size_bytes(dtype_, num_elements()); }
  /// The dimensions as integers; throws Unsupported naming the symbolic one.
  std::vector<std::int64_t> static_dims() const;

  /// This shape with another dimension, or another dtype.
  Shape with_dim(int axis, Dim d) const;
  Shape with_dtype(DType t) const { return Shape(dims_, t); }
  /// The shape with symbols replaced by the integers of `binding`.
  Shape bind(const SymbolBinding& binding) const;
  /// The symbols in the dimensions, sorted and unique.
  std::vector<std::string> symbols() const;
  /// "[4, seq, 384] f32".
  std::string text() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dtype_ == b.dtype_ && a.dims_ == b.dims_; }

 private:
  Dims dims_;
  DType dtype_ = DType::F32;
};

/// "[4, seq]".
std::string dims_text(const Dims& dims);
/// "[4, 2]".
std::string dims_text(std::span<const std::int64_t> dims);

/// `axis` in [-rank, rank) made non-negative. Throws InvalidArgument naming `what` otherwise.
std::int64_t normalize_axis(std::int64_t axis, int rank, std::string_view what);

/// NumPy broadcasting of two dimension lists (right-aligned; 1 stretches). None when they are incompatible.
std::optional<Dims> broadcast_dims(const Dims& a, const Dims& b);

/// Row-major strides in elements.
std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> dims);

}  // namespace rlx
