// Constants of the text. Numbers are written by their bits where decimals would not be exact, tensors as one word of
// all bytes.
#include <bit>
#include <cmath>
#include <cstring>

#include "rlx/backends/tpu/writer.h"
#include "rlx/error.h"
#include "rlx/tensor/visit.h"

namespace rlx::tpu {
namespace {

constexpr char kHexDigits[] = "0123456789ABCDEF";

// "0x3F800000": the bits of a float of `bytes` bytes.
std::string hex_bits(std::uint64_t bits, std::size_t bytes) {
  std::string out = "0x";
  for (std::size_t i = 2 * bytes; i-- > 0;) out += kHexDigits[bits >> (4 * i) & 15];
  return out;
}

// True when all elements of `size` bytes equal the first one.
bool all_equal(const std::byte* data, std::size_t bytes, std::size_t size) {
  return bytes <= size || std::memcmp(data, data + size, bytes - size) == 0;
}

// The elements in the dtype that they have in the text.
Tensor kept(const Tensor& t) {
  if (t.dtype() == DType::I4 || t.dtype() == DType::U4) return t.cast(kept_as(t.dtype()));
  if (t.dtype() != DType::F4E2M1) return t;
  Tensor out = Tensor::zeros(t.shape().with_dtype(DType::U8));
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    const auto byte = static_cast<std::uint8_t>(t.data()[i / 2]);
    out.mutable_data()[i] = static_cast<std::byte>(i % 2 != 0 ? byte >> 4 : byte & 15);
  }
  return out;
}

}  // namespace

Hlo Writer::scalar_text(DType t, std::uint64_t bits, std::string_view text) {
  for (const Scalar& s : regions_.back())
    if (s.dtype == t && s.bits == bits) return {s.id, -1, t, {}};
  const std::uint32_t id = begin_result(1);
  text_ += "stablehlo.constant dense<";
  text_ += text;
  text_ += "> : ";
  type(t, {});
  text_ += '\n';
  regions_.back().push_back({t, bits, id});
  return {id, -1, t, {}};
}

Hlo Writer::scalar_bits(DType t, std::uint64_t bits) {
  if (t == DType::Bool) return scalar_text(t, bits, bits != 0 ? "true" : "false");
  check(is_int(t), "an integer constant has a float dtype");
  const int unused = 64 - dtype_bits(t);
  bits = bits << unused >> unused;
  if (is_unsigned_int(t)) return scalar_text(t, bits, concat_text(bits));
  return scalar_text(t, bits, concat_text(static_cast<std::int64_t>(bits << unused) >> unused));
}

Hlo Writer::scalar(DType t, double value) {
  if (is_complex(t)) {
    const DType part = real_dtype(t);
    return complex(scalar(part, value), scalar(part, 0));
  }
  if (is_storage_only(t)) return constant(Tensor::scalar(DType::F32, value).cast(t));
  if (!is_float(t)) {
    check(value == std::floor(value) && value >= -0x1p63 && value < 0x1p64,
          "an integer constant has a value that is not an integer");
    return scalar_bits(t, value < 0x1p63 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value))
                                         : static_cast<std::uint64_t>(value));
  }
  std::byte bytes[8] = {};
  store_element(bytes, t, 0, value);
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, size_bytes(t));  // little-endian, like all bit texts here
  const bool plain = value == std::floor(value) && std::fabs(value) < 256 && !(value == 0 && std::signbit(value));
  return scalar_text(t, bits,
                     plain ? concat_text(static_cast<std::int64_t>(value), ".0") : hex_bits(bits, size_bytes(t)));
}

Hlo Writer::constant(const Tensor& given) {
  static_assert(std::endian::native == std::endian::little, "bytes of constants are written as they lie");
  const Tensor t = kept(given);
  const DType dtype = t.dtype();
  const std::size_t size = size_bytes(dtype);
  const Extents dims = t.dims();
  const bool equal = t.num_elements() > 0 && all_equal(t.data(), t.size_bytes(), size);
  if (equal && !is_complex(dtype)) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, t.data(), size);
    if (!is_float(dtype) && !is_storage_only(dtype)) return broadcast(scalar_bits(dtype, bits), dims, {});
    if (is_storage_only(dtype)) return broadcast(scalar_text(dtype, bits, hex_bits(bits, size)), dims, {});
    const auto value = load_element<double>(t.data(), dtype, 0);
    return broadcast(std::isnan(value) ? scalar_text(dtype, bits, hex_bits(bits, size)) : scalar(dtype, value), dims,
                     {});
  }
  // MLIR packs Bool elements differently in different versions, so they are written as bytes.
  const DType written = dtype == DType::Bool ? DType::U8 : dtype;
  const HloType shape{written, equal ? Extents() : dims};
  Hlo out{begin_result(1), -1, shape.dtype, shape.dims};
  text_ += "stablehlo.constant dense<";
  if (t.num_elements() != 0) {
    const std::size_t bytes = equal ? size : t.size_bytes();
    text_ += "\"0x";
    const std::size_t at = text_.size();
    text_.resize(at + 2 * bytes);
    char* to = text_.data() + at;
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto byte = static_cast<unsigned>(t.data()[i]);
      *to++ = kHexDigits[byte >> 4];
      *to++ = kHexDigits[byte & 15];
    }
    text_ += '"';
  }
  text_ += "> : ";
  type(out.dtype, out.dims);
  text_ += '\n';
  if (dtype == DType::Bool) out = compare("NE", out, full_like(out, 0));
  return broadcast(out, dims, {});
}

}  // namespace rlx::tpu
