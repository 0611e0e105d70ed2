// GGUF files assembled byte by byte, valid or invalid as a test needs.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "rlx/formats/gguf_types.h"
#include "rlx/formats/gguf_value.h"

namespace rlx::test {

/// The bytes of a number, little-endian.
template <class T>
std::string number_bytes(T v) {
  std::string out(sizeof v, '\0');
  std::memcpy(out.data(), &v, sizeof v);
  return out;
}
inline std::string gguf_string(std::string_view text) {
  return number_bytes<std::uint64_t>(text.size()) + std::string(text);
}

/// The counts, metadata, records and data of a GGUF file; `bytes()` joins them.
struct GgufBytes {
  std::uint32_t version = 3;
  std::uint64_t tensors = 0, values = 0;
  std::string metadata, records, data;
  std::size_t alignment = 32;

  GgufBytes& value(std::string_view key, GgufKind kind, std::string_view payload) {
    metadata += gguf_string(key) + number_bytes(static_cast<std::uint32_t>(kind)) + std::string(payload);
    ++values;
    return *this;
  }
  template <class T>
  GgufBytes& number(std::string_view key, GgufKind kind, T v) {
    return value(key, kind, number_bytes(v));
  }
  GgufBytes& text(std::string_view key, std::string_view v) { return value(key, GgufKind::String, gguf_string(v)); }
  GgufBytes& array(std::string_view key, GgufKind element, std::uint64_t count, std::string_view payload) {
    return value(key, GgufKind::Array,
                 number_bytes(static_cast<std::uint32_t>(element)) + number_bytes(count) + std::string(payload));
  }
  /// `dims` are innermost first, as in the file.
  GgufBytes& record(std::string_view name, std::initializer_list<std::uint64_t> dims, std::uint32_t type,
                    std::uint64_t offset) {
    records += gguf_string(name) + number_bytes(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t d : dims) records += number_bytes(d);
    records += number_bytes(type) + number_bytes(offset);
    ++tensors;
    return *this;
  }
  std::string bytes() const {
    std::string out =
        "GGUF" + number_bytes(version) + number_bytes(tensors) + number_bytes(values) + metadata + records;
    if (!data.empty()) out.append((alignment - out.size() % alignment) % alignment, '\0');
    return out + data;
  }
};

}  // namespace rlx::test
