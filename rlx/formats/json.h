// JSON: a read-only document with checked access, and the writer of rlx/base/json_writer.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/base/json_writer.h"

namespace rlx {

enum class JsonKind : std::uint8_t { Null, Bool, Integer, Number, String, Array, Object };

/// "null", "a string", ...; for error messages.
std::string_view json_kind_name(JsonKind kind);

/// A value inside a JsonDocument, valid as long as the document lives. Every failed access throws Error{BadFile} that
/// names the file, the key and the expected kind.
class JsonValue {
 public:
  JsonKind kind() const;
  bool is_null() const { return kind() == JsonKind::Null; }
  bool is_object() const { return kind() == JsonKind::Object; }
  bool is_array() const { return kind() == JsonKind::Array; }
  bool is_string() const { return kind() == JsonKind::String; }

  /// Checked conversions; `what` names the value in the error.
  bool as_bool(std::string_view what) const;
  std::int64_t as_int(std::string_view what) const;
  double as_number(std::string_view what) const;  // accepts integers
  /// The digits of an integer outside of 64 signed bits, which as_number rounds; nothing for other values.
  std::optional<std::string> large_integer() const;
  std::string_view as_string(std::string_view what) const;

  /// Members of an object in file order, duplicates included. BadFile for a value of another kind.
  std::vector<std::pair<std::string_view, JsonValue>> members(std::string_view what) const;
  /// Elements of an array. BadFile for a value of another kind.
  std::vector<JsonValue> elements(std::string_view what) const;

  /// Reads an array of exactly `out.size()` strings without a vector. Anything else is an error.
  void read_strings(std::string_view what, std::span<std::string_view> out) const;
  /// Number of members of an object or elements of an array, at most 2^24 - 1 (larger counts are reported as that); 0
  /// for another kind.
  std::size_t size() const;

  /// The first member called `key` of an object, or nothing (also when this is not an object).
  std::optional<JsonValue> find(std::string_view key) const;
  /// As find, but a missing key is an error that names the closest one.
  JsonValue at(std::string_view key) const;

  bool get_bool(std::string_view key) const { return at(key).as_bool(key); }
  std::int64_t get_int(std::string_view key) const { return at(key).as_int(key); }
  double get_number(std::string_view key) const { return at(key).as_number(key); }
  std::string_view get_string(std::string_view key) const { return at(key).as_string(key); }

  /// As above, with a fallback for a missing key or null. A value of the wrong type is still an error.
  bool get_bool(std::string_view key, bool fallback) const;
  std::int64_t get_int(std::string_view key, std::int64_t fallback) const;
  std::string_view get_string(std::string_view key, std::string_view fallback) const;

 private:
  friend class JsonDocument;
  struct Access;
  struct Source;  // of the document: its name for errors, and its large integers
  JsonValue() = default;
  [[noreturn]] void fail(std::string_view what, std::string_view expected) const;
  const Source* source_ = nullptr;
  const void* tape_ = nullptr;
  std::size_t index_ = 0;
};

/// A parsed JSON text.
class JsonDocument {
 public:
  /// Parses `text`. Errors begin with `source` (a file name). Errors: BadFile with line and column.
  static JsonDocument parse(std::string_view text, std::string source);
  /// Reads and parses a file.
  static JsonDocument read(const std::string& path);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  JsonValue root() const;
  /// The root, which must be an object. Errors: BadFile when it is another kind.
  JsonValue root_object() const;
  const std::string& source() const;

 private:
  // `readable`: readable bytes of memory from the start of the text; 0: unknown.
  static JsonDocument parse(std::string_view text, std::string source, std::size_t readable);
  struct Impl;
  explicit JsonDocument(std::unique_ptr<Impl> impl);
  const Impl& impl() const;  // throws for a document that was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
