// Checked reading of GGUF metadata.
#include "rlx/models/decoder/gguf_keys.h"

#include <cmath>

#include "rlx/error.h"

namespace rlx {

void GgufKeys::bad(const std::string& message, std::string hint) const {
  throw Error(ErrorCode::BadFile, concat_text(file_.source(), ": ", message), std::move(hint));
}

void GgufKeys::unsupported(const std::string& message, std::string hint) const {
  throw Error(ErrorCode::Unsupported, concat_text(file_.source(), ": ", message), std::move(hint));
}

std::int64_t GgufKeys::size(std::string_view name, std::int64_t most, std::int64_t least) const {
  const GgufValue& value = file_.value(key(name));
  std::int64_t v = 0;
  if (value.is_array()) {
    const std::vector<std::int64_t> all = value.ints();
    if (all.empty()) bad(concat_text("\"", key(name), "\" is empty"));
    for (const std::int64_t x : all)
      if (x != all[0]) unsupported(concat_text("\"", key(name), "\" differs from layer to layer"));
    v = all[0];
  } else {
    v = value.as_int();
  }
  if (v < least || v > most) bad(concat_text("\"", key(name), "\" is ", v, ", expected ", least, " to ", most));
  return v;
}

std::int64_t GgufKeys::size_or(std::string_view name, std::int64_t fallback, std::int64_t least) const {
  return has(name) ? size(name, kMaxSize, least) : fallback;
}

double GgufKeys::positive(std::string_view name) const {
  const double v = file_.value(key(name)).as_number();
  if (!(v > 0) || !std::isfinite(v)) bad(concat_text("\"", key(name), "\" is ", v, ", expected a positive number"));
  return v;
}

double GgufKeys::positive_or(std::string_view name, double fallback) const {
  return has(name) ? positive(name) : fallback;
}

bool GgufKeys::flag(std::string_view name, bool fallback) const { return file_.get_bool(key(name), fallback); }

std::string GgufKeys::text(std::string_view name, std::string_view fallback) const {
  return std::string(file_.get_string(key(name), fallback));
}

std::vector<std::int64_t> GgufKeys::pattern(std::string_view name, std::size_t layers) const {
  if (!has(name)) return {};
  const GgufValue& value = file_.value(key(name));
  if (value.is_array()) {
    std::vector<std::int64_t> out = value.ints();
    if (out.size() != layers)
      bad(concat_text("\"", key(name), "\" has ", out.size(), " entries for ", layers, " layers"));
    return out;
  }
  const std::int64_t every = size(name);
  std::vector<std::int64_t> out(layers, 1);
  for (std::size_t i = 0; i < layers; ++i)
    if ((static_cast<std::int64_t>(i) + 1) % every == 0) out[i] = 0;
  return out;
}

std::vector<double> GgufKeys::layer_numbers(std::string_view key, std::size_t layers) const {
  const GgufValue& value = file_.value(key);
  std::vector<double> out;
  if (value.is_array()) {
    for (const float v : value.floats()) out.push_back(static_cast<double>(v));
  } else {
    out.assign(layers, value.as_number());
  }
  if (out.size() != layers) bad(concat_text("\"", key, "\" has ", out.size(), " entries for ", layers, " layers"));
  for (const double v : out)
    if (!std::isfinite(v)) bad(concat_text("\"", key, "\" holds ", v, ", expected finite numbers"));
  return out;
}

std::int64_t GgufKeys::table_rows(std::string_view tensor) const {
  const GgufTensor& t = file_.at(tensor);
  if (t.dims.size() != 2 || t.dims[0] < 1 || t.dims[0] > kMaxSize)
    bad(concat_text("the tensor '", tensor, "' is not a matrix of a valid size"));
  return t.dims[0];
}

std::vector<double> GgufKeys::factors(std::string_view tensor, std::int64_t count) const {
  const GgufTensor& t = file_.at(tensor);
  if (t.dims.size() != 1 || t.dims[0] != count)
    bad(concat_text("the tensor '", tensor, "' must have one factor for each of ", count, " rotated pairs"));
  const Tensor values = file_.decoded(tensor);
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(values.at(i));
    if (!(out.back() > 0) || !std::isfinite(out.back()))
      bad(concat_text("element ", i, " of the tensor '", tensor, "' is ", out.back(), ", expected a positive number"));
  }
  return out;
}

}  // namespace rlx
