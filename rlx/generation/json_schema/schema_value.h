// A schema as a tree whose values know their JSON pointers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rlx/error.h"
#include "rlx/formats/json.h"

namespace rlx {

/// A value of a schema, with its position.
struct SchemaValue {
  JsonKind kind = JsonKind::Null;
  bool flag = false;
  double number = 0;   // rounded
  std::string text{};  // a string's text; a number as the schema spells it
  std::vector<std::pair<std::string, std::unique_ptr<SchemaValue>>> members{};
  std::vector<std::unique_ptr<SchemaValue>> elements{};
  std::string pointer{};                                             // "file#/a/b"
  std::unordered_map<std::string_view, const SchemaValue*> index{};  // index of `members`, when there are many
  // Schemas that the reader makes: {"not": *negated} and {"const": *constant}.
  const SchemaValue *negated = nullptr, *constant = nullptr;

  const SchemaValue* find(std::string_view key) const;
  bool is_number() const { return kind == JsonKind::Integer || kind == JsonKind::Number; }
  /// Throws an error that begins with the value's position.
  [[noreturn]] void fail(ErrorCode code, std::string_view message, std::string hint = {}) const;

  /// Checked conversions. Errors are BadFile.
  std::uint32_t as_count() const;
  bool as_flag() const;
  const std::string& as_text() const;
};

/// Errors: BadFile for invalid JSON and for repeated keys.
std::unique_ptr<SchemaValue> parse_schema_value(std::string_view text, std::string_view source);

/// The value as text on one line, members sorted by name. Equal values have equal text: 100, 1e2 and 100.0 are "100".
std::string canonical_json(const SchemaValue& value);
/// A JSON number in one spelling for each value: plain digits, or digits and an exponent beyond 400 digits. Errors:
/// that of `value` for an exponent of more than 15 digits.
std::string canonical_number(const SchemaValue& value);
/// A string as JSON writes it with the fewest escapes.
std::string quoted_json(std::string_view text);

}  // namespace rlx
