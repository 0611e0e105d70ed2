// Checked access to metadata values, directly in the file's bytes. The reader has checked that the values are complete.
#include "rlx/formats/gguf_value.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "rlx/error.h"
#include "rlx/formats/gguf_reader.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::size_t kArrayHead = 12;  // kind and count
constexpr std::string_view kGgufKindNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                               "bool", "string", "array", "u64", "i64", "f64"};

// Calls f(number) with the value of a kind at p, in its own type. Returns false for strings, arrays and bools.
template <class F>
bool visit_number(GgufKind kind, const std::byte* p, F f) {
  switch (kind) {
    case GgufKind::U8: return f(load_gguf<std::uint8_t>(p)), true;
    case GgufKind::I8: return f(load_gguf<std::int8_t>(p)), true;
    case GgufKind::U16: return f(load_gguf<std::uint16_t>(p)), true;
    case GgufKind::I16: return f(load_gguf<std::int16_t>(p)), true;
    case GgufKind::U32: return f(load_gguf<std::uint32_t>(p)), true;
    case GgufKind::I32: return f(load_gguf<std::int32_t>(p)), true;
    case GgufKind::U64: return f(load_gguf<std::uint64_t>(p)), true;
    case GgufKind::I64: return f(load_gguf<std::int64_t>(p)), true;
    case GgufKind::F32: return f(load_gguf<float>(p)), true;
    case GgufKind::F64: return f(load_gguf<double>(p)), true;
    case GgufKind::Bool:
    case GgufKind::String:
    case GgufKind::Array: break;
  }
  return false;
}

// The integer at p, or none. Sets `too_large` for an integer outside signed 64 bits.
std::optional<std::int64_t> integer_at(GgufKind kind, const std::byte* p, bool& too_large) {
  std::optional<std::int64_t> out;
  visit_number(kind, p, [&](auto v) {
    if constexpr (std::is_integral_v<decltype(v)>) {
      out = static_cast<std::int64_t>(v);
      too_large = std::is_unsigned_v<decltype(v)> && *out < 0;
    }
  });
  return out;
}

std::string_view string_at(const std::byte* p) {
  return {reinterpret_cast<const char*>(p) + 8, static_cast<std::size_t>(load_gguf<std::uint64_t>(p))};
}

}  // namespace

std::string_view gguf_kind_name(GgufKind kind) {
  if (static_cast<std::size_t>(kind) >= std::size(kGgufKindNames))
    detail::throw_no_enumerator("GgufKind", static_cast<std::int64_t>(kind));
  return kGgufKindNames[static_cast<std::size_t>(kind)];
}

void GgufValue::fail(std::string_view expected) const {
  const std::string own =
      is_array() ? concat_text("an array of ", gguf_kind_name(element_)) : concat_text(gguf_kind_name(kind_));
  throw Error(ErrorCode::BadFile, concat_text(source_ ? *source_ : std::string("no file"), ": key \"", key_, "\" is ",
                                              own, ", expected ", expected));
}

bool GgufValue::as_bool() const {
  if (kind_ != GgufKind::Bool || raw_.empty()) fail("bool");
  return raw_[0] != std::byte{0};
}

std::int64_t GgufValue::as_int() const {
  if (raw_.empty()) fail("an integer");
  bool too_large = false;
  const std::optional<std::int64_t> v = integer_at(kind_, raw_.data(), too_large);
  if (!v) fail("an integer");
  if (too_large) fail("an integer below 2^63");
  return *v;
}

double GgufValue::as_number() const {
  double out = 0;
  if (raw_.empty() || !visit_number(kind_, raw_.data(), [&](auto v) { out = static_cast<double>(v); }))
    fail("a number");
  return out;
}

std::string_view GgufValue::as_string() const {
  if (kind_ != GgufKind::String || raw_.empty()) fail("a string");
  return string_at(raw_.data());
}

GgufKind GgufValue::element_kind() const {
  if (!is_array()) fail("an array");
  return element_;
}

std::size_t GgufValue::size() const {
  if (!is_array()) fail("an array");
  return count_;
}

// Calls f(p) with the start of each element of the array.
template <class F>
void GgufValue::each(F f) const {
  const std::byte* p = raw_.data() + kArrayHead;
  for (std::size_t i = 0; i < count_; ++i) {
    f(p);
    p += gguf_value_bytes(element_, p);
  }
}

std::vector<std::string_view> GgufValue::strings() const try {
  if (element_kind() != GgufKind::String) fail("an array of strings");
  std::vector<std::string_view> out;
  out.reserve(count_);
  each([&](const std::byte* p) { out.push_back(string_at(p)); });
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufValue::strings");
}

std::vector<std::int64_t> GgufValue::ints() const try {
  const GgufKind kind = element_kind();
  bool beyond = false;
  std::vector<std::int64_t> out;
  if (kind == GgufKind::String || kind == GgufKind::Array || kind == GgufKind::F32 || kind == GgufKind::F64)
    fail("an array of integers");
  out.reserve(count_);
  each([&](const std::byte* p) {
    bool too_large = false;
    out.push_back(integer_at(kind == GgufKind::Bool ? GgufKind::U8 : kind, p, too_large).value());
    beyond |= too_large;
  });
  if (beyond) fail("integers below 2^63");
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufValue::ints");
}

std::vector<float> GgufValue::floats() const try {
  const GgufKind kind = element_kind();
  if (kind == GgufKind::String || kind == GgufKind::Array || kind == GgufKind::Bool) fail("an array of numbers");
  std::vector<float> out(count_);
  if (kind == GgufKind::F32) {
    if (count_ > 0) std::memcpy(out.data(), raw_.data() + kArrayHead, count_ * sizeof(float));
    return out;
  }
  std::size_t i = 0;
  each([&](const std::byte* p) { visit_number(kind, p, [&](auto v) { out[i++] = static_cast<float>(v); }); });
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufValue::floats");
}

std::vector<GgufValue> GgufValue::elements() const try {
  const GgufKind kind = element_kind();
  std::vector<GgufValue> out;
  out.reserve(count_);
  each([&](const std::byte* p) {
    GgufValue v;
    v.kind_ = kind, v.source_ = source_, v.key_ = key_;
    v.raw_ = {p, gguf_value_bytes(kind, p)};
    if (kind == GgufKind::Array) {
      v.element_ = static_cast<GgufKind>(load_gguf<std::uint32_t>(p));
      v.count_ = static_cast<std::size_t>(load_gguf<std::uint64_t>(p + 4));
    }
    out.push_back(v);
  });
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufValue::elements");
}

}  // namespace rlx
