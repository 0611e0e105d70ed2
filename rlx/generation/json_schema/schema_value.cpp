// Parses schemas into owned memory.
#include "rlx/generation/json_schema/schema_value.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {
namespace {

constexpr std::size_t kFewMembers = 16;  // searched linearly

std::string escaped_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

std::unique_ptr<SchemaValue> copied(const JsonValue& from, std::string pointer) {
  auto out = std::make_unique<SchemaValue>();
  out->pointer = std::move(pointer);
  out->kind = from.kind();
  switch (out->kind) {
    case JsonKind::Null: break;
    case JsonKind::Bool: out->flag = from.as_bool("value"); break;
    case JsonKind::Integer:
    case JsonKind::Number: {
      out->number = from.as_number("value");
      JsonWriter w;
      if (const auto whole = attempt([&] { return from.as_int("value"); });
          out->kind == JsonKind::Integer && whole.ok())
        w.value(*whole);
      else
        w.value(out->number);
      out->text = w.take();
      break;
    }
    case JsonKind::String: out->text = from.as_string("value"); break;
    case JsonKind::Array: {
      std::size_t i = 0;
      for (const JsonValue& e : from.elements("value"))
        out->elements.push_back(copied(e, concat_text(out->pointer, "/", i++)));
      break;
    }
    case JsonKind::Object: {
      std::set<std::string_view> seen;
      for (const auto& [key, value] : from.members("value")) {
        if (!seen.insert(key).second) out->fail(ErrorCode::BadFile, concat_text("the key '", key, "' occurs twice"));
        out->members.emplace_back(std::string(key), copied(value, out->pointer + "/" + escaped_pointer(key)));
      }
      if (out->members.size() > kFewMembers)
        for (const auto& [key, value] : out->members) out->index.emplace(key, value.get());
    }
  }
  return out;
}

}  // namespace

const SchemaValue* SchemaValue::find(std::string_view key) const {
  if (members.size() > kFewMembers) {
    const auto found = index.find(key);
    return found == index.end() ? nullptr : found->second;
  }
  for (const auto& [name, value] : members)
    if (name == key) return value.get();
  return nullptr;
}

void SchemaValue::fail(ErrorCode code, std::string_view message, std::string hint) const {
  throw Error(Diagnostic{code, concat_text(pointer, ": ", message), {}, std::move(hint)});
}

std::uint32_t SchemaValue::as_count() const {
  if (!is_number() || number < 0 || number != std::floor(number))
    fail(ErrorCode::BadFile, "must be a whole number >= 0");
  if (number > 1e9) fail(ErrorCode::Unsupported, "must be at most 1000000000", "leave the limit out");
  return static_cast<std::uint32_t>(number);
}

bool SchemaValue::as_flag() const {
  if (kind != JsonKind::Bool) fail(ErrorCode::BadFile, "must be true or false");
  return flag;
}

const std::string& SchemaValue::as_text() const {
  if (kind != JsonKind::String) fail(ErrorCode::BadFile, "must be a string");
  return text;
}

std::unique_ptr<SchemaValue> parse_schema_value(std::string_view text, std::string_view source) {
  const JsonDocument document = JsonDocument::parse(text, std::string(source));
  return copied(document.root(), concat_text(source, "#"));
}

std::string quoted_json(std::string_view text) {
  static constexpr std::string_view kShort = "\b\f\n\r\t", kLetters = "bfnrt", kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (const std::size_t i = kShort.find(c); i != std::string_view::npos) {
      out += '\\';
      out += kLetters[i];
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string canonical_json(const SchemaValue& value) {
  std::string out;
  switch (value.kind) {
    case JsonKind::Null: return "null";
    case JsonKind::Bool: return value.flag ? "true" : "false";
    case JsonKind::Integer:
    case JsonKind::Number: return value.text;
    case JsonKind::String: return quoted_json(value.text);
    case JsonKind::Array:
      for (const auto& e : value.elements) out += (out.empty() ? "" : ",") + canonical_json(*e);
      return "[" + out + "]";
    case JsonKind::Object:
      for (const auto& [key, e] : value.members)
        out += (out.empty() ? "" : ",") + quoted_json(key) + ":" + canonical_json(*e);
      return "{" + out + "}";
  }
  return out;
}

}  // namespace rlx
