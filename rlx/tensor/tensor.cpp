// Tensor storage, element access and conversion.
#include "rlx/tensor/tensor.h"

#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "rlx/base/sigbus_guard.h"
#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/tensor/sole_owner.h"
#include "rlx/tensor/visit.h"

#if defined(__SANITIZE_ADDRESS__)
#define RLX_SEES_ADDRESSES true
#elif defined(__has_feature)
#define RLX_SEES_ADDRESSES __has_feature(address_sanitizer)
#else
#define RLX_SEES_ADDRESSES false
#endif

namespace rlx {
namespace {
// A read of all bytes of a tensor on the host, which may lie in a mapped file. `check` throws when pages were lost.
class ReadWhole {
 public:
  explicit ReadWhole(const Tensor& t) : bytes_(t.data()) {}
  void check() const { GuardedReads::check(bytes_); }

 private:
  const void* bytes_;
  GuardedReads reads_;
};

constexpr std::align_val_t kAlignment{64};

// Buffers of at least this size use huge pages if the system grants them. The hardware prefetchers of current cores
// stop at page borders, and packed weights streamed from memory run 1.2 to 2 times faster (measured, GEMM at M = 16 and
// M = 1).
constexpr std::size_t kHugeBytes = std::size_t{4} << 20;
constexpr std::align_val_t kHugePage{std::size_t{2} << 20};

void* new_bytes(std::size_t bytes) {
  if (bytes < kHugeBytes) return ::operator new(bytes == 0 ? 1 : bytes, kAlignment);
  void* const p = ::operator new(bytes, kHugePage);
#if defined(__linux__)
  (void)::madvise(p, bytes / static_cast<std::size_t>(kHugePage) * static_cast<std::size_t>(kHugePage), MADV_HUGEPAGE);
#endif
  return p;
}
void delete_bytes(void* p, std::size_t bytes) { ::operator delete(p, bytes < kHugeBytes ? kAlignment : kHugePage); }

// The most recently released buffers, for later results of the same size. malloc returns pages of this size to the
// system, which clears them again, and a run that makes 2 MiB spends more time there than with its elements.
class SpareBuffers {
 public:
  /// A buffer of exactly this size, or null.
  void* take(std::size_t bytes) {
    if (!fits(bytes)) return nullptr;
    const std::unique_lock lock(mutex_, std::try_to_lock);  // a fork may have left it locked forever
    if (!lock) return nullptr;
    for (std::size_t i = count_; i-- > 0;)
      if (spare_[i].bytes == bytes) return remove(i);
    return nullptr;
  }
  /// False when the caller should free the buffer.
  bool keep(void* p, std::size_t bytes) {
    if (!fits(bytes)) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    while (count_ == kMost || (count_ > 0 && bytes_ + bytes > kMostBytes)) {
      const std::size_t oldest = spare_[0].bytes;
      delete_bytes(remove(0), oldest);
    }
    spare_[count_++] = {p, bytes};
    bytes_ += bytes;
    return true;
  }
  /// Frees all buffers. False when there were none.
  bool clear() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || count_ == 0) return false;
    while (count_ > 0) {
      const std::size_t oldest = spare_[0].bytes;
      delete_bytes(remove(0), oldest);
    }
    return true;
  }

 private:
  static constexpr std::size_t kLeast = std::size_t{64} << 10, kMostBytes = std::size_t{32} << 20, kMost = 8;
  static constexpr bool kKeeps = !RLX_SEES_ADDRESSES;  // address sanitizers must see that buffers are freed
  struct Spare {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  static bool fits(std::size_t bytes) { return kKeeps && bytes >= kLeast && bytes <= kMostBytes; }
  void* remove(std::size_t i) {
    void* const p = spare_[i].data;
    bytes_ -= spare_[i].bytes;
    for (--count_; i < count_; ++i) spare_[i] = spare_[i + 1];
    return p;
  }
  std::mutex mutex_;
  std::array<Spare, kMost> spare_{};  // oldest first
  std::size_t count_ = 0, bytes_ = 0;
};
SpareBuffers& spare_buffers() {
  static auto& spare = *new SpareBuffers;  // never destroyed: tensors may be released later
  return spare;
}

std::shared_ptr<void> allocate_bytes(std::size_t bytes) {
  void* p = spare_buffers().take(bytes);
  if (p == nullptr) {
    try {
      p = new_bytes(bytes);
    } catch (const std::bad_alloc&) {
      if (!spare_buffers().clear()) throw;
      p = new_bytes(bytes);
    }
  }
  return {p, [bytes](void* q) {
            if (!spare_buffers().keep(q, bytes)) delete_bytes(q, bytes);
          }};
}

// Allocates the elements of `shape`. The error names both, if there is memory for it.
std::shared_ptr<void> allocate(const Shape& shape, std::size_t bytes) {
  try {
    return allocate_bytes(bytes);
  } catch (const std::bad_alloc&) {
  }
  throw Error(ErrorCode::OutOfMemory, concat_text("there is no memory for ", shape, ", ", bytes, " bytes"));
}
}  // namespace

Tensor Tensor::zeros(const Shape& shape) {
  Tensor t = uninitialized(shape);
  std::memset(t.mutable_data(), 0, t.size_bytes());
  return t;
}

Tensor Tensor::uninitialized(const Shape& shape) try {
  Tensor t;
  t.shape_ = shape;
  t.num_elements_ = shape.num_elements();
  std::shared_ptr<void> buffer = allocate(shape, t.size_bytes());
  t.data_ = static_cast<const std::byte*>(buffer.get());
  t.owner_ = std::move(buffer);
  t.writable_ = true;
  return t;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("a tensor");
}

namespace detail {
namespace {
bool is_stored_int(DType t) { return is_int(t) || t == DType::I4 || t == DType::U4; }

std::optional<Diagnostic> not_held(DType t, bool fits, const std::string& value) {
  if (fits) return std::nullopt;
  const bool is_signed = is_signed_int(t) || t == DType::I4;
  const std::uint64_t high = ~std::uint64_t{0} >> (64 - dtype_bits(t) + (is_signed ? 1 : 0));
  return Diagnostic{ErrorCode::DTypeMismatch,
                    concat_text(value, " is not a value of ", dtype_name(t), ", which holds ", is_signed ? "-" : "",
                                is_signed ? high + 1 : 0, " to ", high),
                    {},
                    {}};
}
}  // namespace

std::optional<Diagnostic> not_held(DType t, std::uint64_t bits, bool negative) {
  if (!is_stored_int(t)) return std::nullopt;
  const bool is_signed = is_signed_int(t) || t == DType::I4;
  const std::uint64_t high = ~std::uint64_t{0} >> (64 - dtype_bits(t) + (is_signed ? 1 : 0));
  return not_held(t, negative ? is_signed && ~bits <= high : bits <= high,
                  negative ? concat_text(static_cast<std::int64_t>(bits)) : concat_text(bits));
}

std::optional<Diagnostic> not_held(DType t, double value) {
  if (!is_stored_int(t)) return std::nullopt;
  const bool whole = value >= -0x1p63 && value < 0x1p64 && std::trunc(value) == value;
  if (!whole) return not_held(t, false, concat_text(value));
  return value < 0 ? not_held(t, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), true)
                   : not_held(t, static_cast<std::uint64_t>(value), false);
}
}  // namespace detail

namespace {
void require_held(std::optional<Diagnostic> problem) {
  if (!problem) return;
  problem->hint = "use a dtype that holds it, or cast a tensor that holds it: casts wrap around";
  throw Error(*std::move(problem));
}
}  // namespace

Tensor Tensor::full(const Shape& shape, double value) {
  require_held(detail::not_held(shape.dtype(), value));
  Tensor t = zeros(shape);
  if (value != 0 || std::signbit(value)) {
    std::byte* data = t.mutable_data();
    for (std::int64_t i = 0; i < t.num_elements_; ++i) store_element(data, t.dtype(), i, value);
  }
  return t;
}

Tensor Tensor::scalar_i64(DType dtype, std::int64_t value) {
  require_held(detail::not_held(dtype, static_cast<std::uint64_t>(value), value < 0));
  Tensor t = zeros(Shape({}, dtype));
  t.set_i64(0, value);
  return t;
}

namespace {
// The address of tensors without elements.
constexpr std::byte kNoBytes{};

void require_bytes(const void* data, const Shape& shape) {
  if (data == nullptr && shape.num_elements() != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the data of ", shape, " (", shape.size_bytes(), " bytes) is a null pointer"));
}

// Kernels and `values` read elements by their C++ type, which may fail at unaligned addresses.
void require_aligned(const void* data, const Shape& shape, std::string_view hint) {
  const std::size_t alignment = alignment_of(shape.dtype()),
                    beyond = reinterpret_cast<std::uintptr_t>(data) % alignment;
  if (beyond != 0 && shape.num_elements() != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the data of ", shape, " is not aligned: its address is ", beyond,
                            " bytes past a multiple of ", alignment, ", which ", dtype_name(shape.dtype()), " needs"),
                std::string(hint));
}
}  // namespace

Tensor Tensor::copy_of(const void* data, const Shape& shape) {
  require_bytes(data, shape);
  Tensor t = uninitialized(shape);
  if (t.size_bytes() == 0) return t;
  const GuardedReads reads;
  std::memcpy(t.mutable_data(), data, t.size_bytes());
  GuardedReads::check(data);
  return t;
}

Tensor Tensor::part_of(Tensor& buffer, std::size_t offset, const Shape& shape) {
  Tensor t;
  t.shape_ = shape;
  t.num_elements_ = shape.num_elements();
  if (buffer.empty() || offset > buffer.size_bytes() || t.size_bytes() > buffer.size_bytes() - offset) {
    throw Error(ErrorCode::InvalidArgument, concat_text(t.size_bytes(), " bytes from offset ", offset,
                                                        " are outside of a buffer of ", buffer.size_bytes(), " bytes"));
  }
  require_aligned(buffer.data_ + offset, shape, "start the part at an aligned offset");
  t.data_ = buffer.data_ + offset;
  // A separate owner, so that copy-on-write checks this part alone. It keeps the whole buffer alive.
  t.owner_ = std::shared_ptr<const void>(t.data_, [whole = buffer.owner_](const void*) {});
  t.writable_ = buffer.writable_;
  return t;
}

Tensor Tensor::borrowed(const void* data, const Shape& shape, std::shared_ptr<const void> owner) {
  require_bytes(data, shape);
  require_aligned(data, shape, "copy the data with Tensor::copy_of, which accepts any address");
  Tensor t;
  t.shape_ = shape;
  t.num_elements_ = shape.num_elements();
  t.data_ = data ? static_cast<const std::byte*>(data) : &kNoBytes;
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::of_bytes(const std::vector<std::int64_t>& dims, DType dtype, const void* data, std::size_t count) {
  Shape shape(Dims(dims.begin(), dims.end()), dtype);
  if (shape.num_elements() != static_cast<std::int64_t>(count))
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("tensor ", shape, " needs ", shape.num_elements(), " values, got ", count));
  return copy_of(data, shape);
}

std::byte* Tensor::mutable_data() try {
  if (empty())
    throw Error(ErrorCode::InvalidArgument, "an empty tensor cannot be written",
                "the tensor was never assigned, or was moved from");
  if (!writable_ || !sole_owner(owner_)) {
    Tensor copy;
    copy.shape_ = shape_;
    copy.num_elements_ = num_elements_;
    std::shared_ptr<void> buffer = allocate(shape_, size_bytes());
    if (size_bytes() != 0) {
      const ReadWhole read(*this);
      std::memcpy(buffer.get(), data(), size_bytes());
      read.check();
    }
    copy.data_ = static_cast<const std::byte*>(buffer.get());
    copy.owner_ = std::move(buffer);
    copy.writable_ = true;
    *this = std::move(copy);
  }
  return const_cast<std::byte*>(data_);  // our own, unshared buffer
} catch (const std::bad_alloc&) {
  throw_out_of_memory("a copy of a tensor");
}

Tensor Tensor::on_device(std::shared_ptr<Buffer> buffer, const Shape& shape) {
  Tensor t;
  t.shape_ = shape;
  t.num_elements_ = shape.num_elements();
  if (!buffer || buffer->bytes() < t.size_bytes())
    throw Error(ErrorCode::InvalidArgument,
                buffer ? concat_text("a device tensor ", shape, " needs ", t.size_bytes(),
                                     " bytes, but its buffer has ", buffer->bytes())
                       : concat_text("a device tensor ", shape, " has no buffer (a null pointer)"));
  t.buffer_ = std::move(buffer);
  return t;
}

Tensor Tensor::to_host() const {
  if (!buffer_) return *this;
  Tensor t = uninitialized(shape_);
  buffer_->read({t.mutable_data(), t.size_bytes()});
  return t;
}

void Tensor::throw_on_device() const {
  throw Error(ErrorCode::InvalidArgument,
              concat_text("tensor ", shape_, " is on a device: its bytes cannot be read or written on the host"),
              "copy it to the host with to_host()");
}

void Tensor::require_dtype(DType t) const {
  if (dtype() != t)
    throw Error(ErrorCode::DTypeMismatch,
                concat_text("the tensor is ", dtype_name(dtype()), ", but was read as ", dtype_name(t)),
                concat_text("cast it first with tensor.cast, or read ", dtype_name(dtype()), " values"));
}

void Tensor::throw_no_element(std::int64_t index) const {
  throw Error(ErrorCode::InvalidArgument,
              empty() ? concat_text("element ", index, " of an empty tensor")
                      : concat_text("element ", index, " of ", shape_, ", which has ", num_elements_, " elements"),
              empty() ? "the tensor was never assigned, or was moved from" : "indices are row-major and count from 0");
}

double Tensor::at(std::int64_t i) const {
  require_index(i);
  return load_element<double>(data(), dtype(), i);
}
std::int64_t Tensor::at_i64(std::int64_t i) const {
  require_index(i);
  return load_element<std::int64_t>(data(), dtype(), i);
}

void Tensor::set(std::int64_t i, double value) {
  require_index(i);
  store_element(mutable_data(), dtype(), i, value);
}
void Tensor::set_i64(std::int64_t i, std::int64_t value) {
  require_index(i);
  store_element(mutable_data(), dtype(), i, value);
}

std::vector<float> Tensor::to_f32() const {
  std::vector<float> out(static_cast<std::size_t>(num_elements_));
  const ReadWhole read(*this);
  if (dtype() == DType::F32 && num_elements_)
    std::memcpy(out.data(), data(), size_bytes());
  else
    for (std::int64_t i = 0; i < num_elements_; ++i)
      out[static_cast<std::size_t>(i)] = static_cast<float>(load_element<double>(data(), dtype(), i));
  read.check();
  return out;
}

std::vector<double> Tensor::to_f64() const {
  std::vector<double> out(static_cast<std::size_t>(num_elements_));
  const ReadWhole read(*this);
  for (std::int64_t i = 0; i < num_elements_; ++i) out[static_cast<std::size_t>(i)] = at(i);
  read.check();
  return out;
}

Tensor Tensor::reshaped(const std::vector<std::int64_t>& dims) const {
  Tensor t = *this;
  t.shape_ = Shape(Dims(dims.begin(), dims.end()), dtype());
  if (empty() || t.shape_.num_elements() != num_elements_)
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("cannot view ", empty() ? "an empty tensor" : shape_.text(), " as ", dims_text(dims)));
  return t;
}

Tensor Tensor::rows(std::int64_t start, std::int64_t count) const {
  std::int64_t extent = rank() == 0 ? 0 : dim(0);
  if (rank() == 0 || start < 0 || count < 0 || count > extent || start > extent - count)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("rows [", start, ", ", start, " + ", count, ") are out of range for ", shape_));
  Tensor t = *this;
  std::size_t row_bytes = extent == 0 ? 0 : size_bytes() / static_cast<std::size_t>(extent);
  t.shape_ = shape_.with_dim(0, Dim(count));
  t.num_elements_ = t.shape_.num_elements();
  t.data_ = data() + row_bytes * static_cast<std::size_t>(start);
  t.writable_ = false;  // a view of a larger buffer is copied before writing
  return t;
}

Tensor Tensor::cast(DType to) const {
  if (empty())
    throw Error(ErrorCode::InvalidArgument, concat_text("cast of an empty tensor to ", dtype_name(to)),
                "the tensor was never assigned, or was moved from");
  if (to == dtype()) return *this;
  Tensor out = zeros(shape_.with_dtype(to));
  std::byte* dst = out.mutable_data();
  const std::byte* const src = data();
  DType from = dtype();
  const ReadWhole read(*this);
  if (is_complex(from) && (is_complex(to) || to == DType::Bool)) {
    for (std::int64_t i = 0; i < num_elements_; ++i)
      store_element(dst, to, i, load_element<std::complex<double>>(src, from, i));
  } else if (is_unsigned_int(from) && from == DType::U64) {
    for (std::int64_t i = 0; i < num_elements_; ++i)
      store_element(dst, to, i, load_element<std::uint64_t>(src, from, i));
  } else if (is_int(from) || from == DType::Bool || from == DType::I4 || from == DType::U4) {
    for (std::int64_t i = 0; i < num_elements_; ++i)
      store_element(dst, to, i, load_element<std::int64_t>(src, from, i));
  } else {
    for (std::int64_t i = 0; i < num_elements_; ++i) store_element(dst, to, i, load_element<double>(src, from, i));
  }
  read.check();
  return out;
}

bool Tensor::identical(const Tensor& other) const {
  const ReadWhole mine(*this), others(other);
  // An empty tensor has the shape of a scalar, but no element.
  const bool same = shape_ == other.shape_ && num_elements_ == other.num_elements_ && empty() == other.empty() &&
                    (size_bytes() == 0 || std::memcmp(data(), other.data(), size_bytes()) == 0);
  mine.check(), others.check();
  return same;
}

std::string Tensor::text(int max_values) const {
  if (buffer_) return shape_.text() + " {on a device}";
  std::string out = shape_.text() + " {";
  for (std::int64_t i = 0; i < num_elements_ && i < max_values; ++i) {
    if (i) out += ", ";
    if (is_int(dtype()))
      detail::append_text(out, at_i64(i));
    else
      detail::append_text(out, at(i));
  }
  return out + (num_elements_ > max_values ? ", ...}" : "}");
}

}  // namespace rlx
