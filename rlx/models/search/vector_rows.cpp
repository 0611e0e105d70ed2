// Encodes vectors for index files, and multiplies them by a query.
#include "rlx/models/search/vector_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "rlx/error.h"
#include "rlx/tensor/half.h"

namespace rlx {
namespace {

constexpr std::size_t kLanes = 16;

// A finite f16 as f32: the exponent is moved by a product, which also makes subnormal numbers right.
float finite_half(std::uint16_t h) {
  const float magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(h & 0x7FFF) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | static_cast<std::uint32_t>(h & 0x8000) << 16);
}

// Element i of the row goes to lane i % kLanes; the compiler makes vectors of the inner loops.
template <class Stored, class Convert>
float dot(const std::byte* row, std::span<const float> query, const Convert& convert) {
  float lanes[kLanes] = {};
  Stored block[kLanes];
  std::size_t i = 0;
  for (; i + kLanes <= query.size(); i += kLanes) {
    std::memcpy(block, row + i * sizeof(Stored), sizeof block);
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += convert(block[j]) * query[i + j];
  }
  for (std::size_t j = 0; i + j < query.size(); ++j) {
    std::memcpy(block, row + (i + j) * sizeof(Stored), sizeof(Stored));
    lanes[j] += convert(block[0]) * query[i + j];
  }
  for (std::size_t step = kLanes / 2; step > 0; step /= 2)
    for (std::size_t j = 0; j < step; ++j) lanes[j] += lanes[j + step];
  return lanes[0];
}

template <class T>
void append_raw(std::string& out, T v) {
  char bytes[sizeof v];
  std::memcpy(bytes, &v, sizeof v);
  out.append(bytes, sizeof v);
}

}  // namespace

void append_vector(std::span<const float> vector, DType type, std::string& rows, std::string& scales) {
  double squares = 0;
  float largest = 0;
  for (const float v : vector) squares += double{v} * v, largest = std::max(largest, std::fabs(v));
  if (!std::isfinite(squares))  // NaN passes the comparison above
    throw Error(ErrorCode::BadFile, "a vector of the model has a NaN or an infinity",
                "the weights of the model may be damaged");
  const double length = squares > 0 ? std::sqrt(squares) : 1;
  if (type == DType::F16) {
    for (const float v : vector) append_raw(rows, float_to_f16_bits(static_cast<float>(v / length)));
    return;
  }
  const double step = largest > 0 ? largest / 127 : 1;
  for (const float v : vector) append_raw(rows, static_cast<std::int8_t>(std::lround(v / step)));
  append_raw(scales, static_cast<float>(step / length));
}

float dot_row(const std::byte* row, DType type, std::span<const float> query) {
  return type == DType::F16 ? dot<std::uint16_t>(row, query, finite_half)
                            : dot<std::int8_t>(row, query, [](std::int8_t v) { return static_cast<float>(v); });
}

}  // namespace rlx
