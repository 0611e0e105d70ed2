// Decodes what was encoded, some blocks at a time, and adds up the differences.
#include "rlx/formats/encoding_error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "rlx/error.h"

namespace rlx {

EncodingError& EncodingError::operator+=(const EncodingError& other) {
  error2 += other.error2;
  norm2 += other.norm2;
  infinite += other.infinite;
  return *this;
}

double EncodingError::relative() const { return norm2 > 0 ? std::sqrt(error2 / norm2) : 0; }

EncodingError encoding_error(GgufType type, std::span<const float> x, std::span<const std::byte> bytes) {
  const GgufTypeInfo& info = gguf_type_info(type);
  const auto elements = static_cast<std::size_t>(info.elements), size = static_cast<std::size_t>(info.bytes);
  const std::size_t slice = std::max<std::size_t>(1, 4096 / elements);  // blocks
  std::vector<float> decoded(std::min(slice * elements, x.size()));
  EncodingError out;
  for (std::size_t at = 0; at < x.size(); at += slice * elements) {
    const std::size_t count = std::min(slice * elements, x.size() - at);
    const std::span<float> now = std::span(decoded).first(count);
    decode_gguf(type, bytes.subspan(at / elements * size, count / elements * size), now);
    for (std::size_t i = 0; i < count; ++i) {
      const double wanted = x[at + i], difference = now[i] - wanted;
      if (!std::isfinite(now[i]) || !std::isfinite(wanted)) {
        out.infinite += std::isfinite(wanted) ? 1 : 0;
        continue;
      }
      out.error2 += difference * difference;
      out.norm2 += wanted * wanted;
    }
  }
  return out;
}

double usual_encoding_error(GgufType type) {
  const GgufTypeInfo& info = gguf_type_info(type);
  if (type == GgufType::F16) return 0x1p-10;
  if (type == GgufType::BF16) return 0x1p-7;
  return info.dtype ? 0x1p-20 : std::exp2(2 - 8.0 * info.bytes / info.elements);
}

std::string encoding_problem(GgufType type, const EncodingError& error) {
  const std::string_view name = gguf_type_info(type).name;
  if (error.infinite > 0)
    return concat_text(error.infinite, error.infinite == 1 ? " weight is" : " weights are", " beyond the range of ",
                       name);
  const double relative = error.relative();
  if (!(relative > usual_encoding_error(type))) return {};
  char percent[32];
  std::snprintf(percent, sizeof percent, relative < 0.1 ? "%.2g" : "%.0f", 100 * std::min(relative, 1e6));
  return concat_text("the relative error of ", name, " is ", percent,
                     " %: the weights are too large, too small or too uneven for it");
}

}  // namespace rlx
