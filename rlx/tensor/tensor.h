// Tensors: dense row-major values that own, share or borrow their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rlx/tensor/buffer.h"
#include "rlx/tensor/half.h"
#include "rlx/tensor/shape.h"

namespace rlx {

/// The DType of a C++ element type (bool, integers, float, double, BF16, F16).
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::Bool;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::I8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::I16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::I32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::I64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::U8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::U16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::U32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::U64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::F32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::F64;
};
template <>
struct DTypeOf<BF16> {
  static constexpr DType value = DType::BF16;
};
template <>
struct DTypeOf<F16> {
  static constexpr DType value = DType::F16;
};

/// A read-only view of dense row-major elements that it does not own. `dims` may be empty when the receiver knows the
/// shape. `data` must be a multiple of `alignment_of(dtype)` when a run reads or writes it in place: run_slots,
/// run_into and similar calls refuse other addresses with an error, set_param and load_params copy them.
struct TensorView {
  const void* data = nullptr;
  DType dtype = DType::F32;
  std::span<const std::int64_t> dims;
  std::size_t size_bytes = 0;  // bytes at `data`
  Buffer* buffer = nullptr;    // of a device tensor, whose `data` is null
};
/// The same for memory to write.
struct MutableTensorView {
  void* data = nullptr;
  DType dtype = DType::F32;
  std::span<const std::int64_t> dims;
  std::size_t size_bytes = 0;
};

/// A dense row-major value of static shape. Copies share the bytes, and shared bytes are never written. The bytes of a
/// device tensor lie on a device: it can be an input of runs, and `to_host` copies it. Calls that would access its
/// bytes on the host throw InvalidArgument.
class Tensor {
 public:
  /// Empty: no elements and no bytes, like a moved-from tensor.
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor(Tensor&& other) noexcept
      : shape_(std::exchange(other.shape_, {})),
        num_elements_(std::exchange(other.num_elements_, 0)),
        data_(std::exchange(other.data_, nullptr)),
        owner_(std::move(other.owner_)),
        buffer_(std::move(other.buffer_)),
        writable_(std::exchange(other.writable_, false)) {}
  Tensor& operator=(Tensor&& other) noexcept {
    if (this == &other) return *this;
    shape_ = std::exchange(other.shape_, {});
    num_elements_ = std::exchange(other.num_elements_, 0);
    data_ = std::exchange(other.data_, nullptr);
    owner_ = std::move(other.owner_);
    buffer_ = std::move(other.buffer_);
    writable_ = std::exchange(other.writable_, false);
    return *this;
  }
  ~Tensor() = default;
  /// Zero-filled, 64-byte aligned.
  static Tensor zeros(const Shape& shape);
  /// The same without zeroing, for values that are written completely right away.
  static Tensor uninitialized(const Shape& shape);
  /// Every element set to `value` (rounded to floats, with imaginary part zero, "not zero" as Bool). DTypeMismatch
  /// naming the range when an integer dtype does not hold it: 300 and 2.5 do not fit U8. The next two functions do the
  /// same.
  static Tensor full(const Shape& shape, double value);
  static Tensor scalar(DType dtype, double value) { return full(Shape({}, dtype), value); }
  static Tensor scalar_i64(DType dtype, std::int64_t value);
  /// A copy of `shape.size_bytes()` bytes at `data`, which may have any alignment. InvalidArgument for null, unless
  /// there are no bytes.
  static Tensor copy_of(const void* data, const Shape& shape);
  /// A writable tensor over bytes [offset, offset + size) of `buffer`, which nothing else may write. The buffer lives
  /// as long as its parts. InvalidArgument when the range does not fit, or does not start at a multiple of
  /// `alignment_of(shape.dtype())` in memory.
  static Tensor part_of(Tensor& buffer, std::size_t offset, const Shape& shape);
  /// A view of bytes that live as long as `owner` (a mapped file, another tensor). InvalidArgument for null data and
  /// for an address that is not a multiple of `alignment_of(shape.dtype())`, unless the shape has no elements.
  /// `copy_of` takes any address.
  static Tensor borrowed(const void* data, const Shape& shape, std::shared_ptr<const void> owner);
  /// A tensor of `dims` holding `values` in row-major order. Throws ShapeMismatch when the counts differ.
  template <class T>
  static Tensor of(std::vector<std::int64_t> dims, std::span<const T> values) {
    return of_bytes(dims, DTypeOf<T>::value, values.data(), values.size());
  }
  template <class T>
  static Tensor of(std::vector<std::int64_t> dims, const std::vector<T>& values) {
    return of_bytes(dims, DTypeOf<T>::value, values.data(), values.size());
  }

  /// A tensor over the first bytes of `buffer`, which nothing else may write any more. InvalidArgument for null and for
  /// a buffer that is too small.
  static Tensor on_device(std::shared_ptr<Buffer> buffer, const Shape& shape);

  /// Dims and dtype; each is also available alone.
  const Shape& shape() const { return shape_; }
  DType dtype() const { return shape_.dtype(); }
  int rank() const { return shape_.rank(); }
  std::int64_t num_elements() const { return num_elements_; }
  std::int64_t dim(int axis) const { return shape_.dim(axis).value(); }
  std::vector<std::int64_t> dims() const { return shape_.static_dims(); }
  /// The bytes of all elements.
  std::size_t size_bytes() const { return rlx::size_bytes(dtype(), num_elements_); }
  /// True without bytes: default-constructed or moved-from.
  bool empty() const { return data_ == nullptr && !buffer_; }
  /// The device of the bytes; "cpu" for host memory.
  DeviceId device() const { return buffer_ ? buffer_->device() : DeviceId(); }
  /// The device memory of a device tensor, else null.
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  /// The value on the host. Waits for the work that makes it and throws its failure. Returns the tensor itself when it
  /// is already on the host.
  Tensor to_host() const;
  /// False for borrowed bytes without an owner: the creator of the tensor keeps them alive.
  bool owned() const { return owner_ != nullptr; }
  /// The bytes on the host, row-major.
  const std::byte* data() const {
    if (buffer_) throw_on_device();
    return data_;
  }
  /// The bytes for writing. Shared or borrowed bytes are copied first. InvalidArgument for an empty tensor.
  std::byte* mutable_data();

  /// The elements as T. Throws DTypeMismatch when T is not the tensor's dtype.
  template <class T>
  std::span<const T> values() const {
    require_dtype(DTypeOf<T>::value);
    return {reinterpret_cast<const T*>(data()), static_cast<std::size_t>(num_elements_)};
  }
  /// The same for writing; see mutable_data.
  template <class T>
  std::span<T> mutable_values() {
    require_dtype(DTypeOf<T>::value);
    return {reinterpret_cast<T*>(mutable_data()), static_cast<std::size_t>(num_elements_)};
  }

  /// Element `index` (row-major) of any real dtype as double; for complex dtypes its real part. This function and the
  /// next three throw InvalidArgument for an index out of range.
  double at(std::int64_t index) const;
  /// Element `index` of an integer or Bool tensor, exact. Floats are truncated.
  std::int64_t at_i64(std::int64_t index) const;
  /// Writes element `index`, converted to the tensor's dtype (nearest even for floats, truncation and wrap for
  /// integers).
  void set(std::int64_t index, double value);
  void set_i64(std::int64_t index, std::int64_t value);
  /// All elements as float / double.
  std::vector<float> to_f32() const;
  std::vector<double> to_f64() const;

  /// The same bytes with other dimensions of equal element count.
  Tensor reshaped(const std::vector<std::int64_t>& dims) const;
  /// Rows [start, start + count) of axis 0, sharing the bytes.
  Tensor rows(std::int64_t start, std::int64_t count) const;
  /// Converts every element. Floats round to nearest even. Float -> integer truncates toward zero and saturates (NaN
  /// gives 0). Integer -> integer wraps. Anything -> Bool is "not zero". Complex -> real takes the real part.
  /// InvalidArgument for an empty tensor.
  Tensor cast(DType to) const;

  /// A view of the bytes, which the tensor keeps alive. Its dims are empty.
  TensorView view() const { return {data_, dtype(), {}, size_bytes(), buffer_.get()}; }
  /// Equal shape and bit-identical bytes.
  bool identical(const Tensor& other) const;
  /// Short text: the shape and the first values.
  std::string text(int max_values = 8) const;

 private:
  static Tensor of_bytes(const std::vector<std::int64_t>& dims, DType dtype, const void* data, std::size_t count);
  void require_dtype(DType t) const;
  void require_index(std::int64_t index) const {
    if (index < 0 || index >= num_elements_) throw_no_element(index);
  }
  [[noreturn]] void throw_no_element(std::int64_t index) const;
  [[noreturn]] void throw_on_device() const;

  Shape shape_;
  std::int64_t num_elements_ = 0;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;  // keeps data_ alive; equals the buffer itself when we allocated it
  std::shared_ptr<Buffer> buffer_;     // of a device tensor, which has no data_
  bool writable_ = false;              // owner_ is our own buffer
};

}  // namespace rlx
