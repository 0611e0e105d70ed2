// Parses schemas into owned memory.
#include "rlx/generation/json_schema/schema_value.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "rlx/generation/json_schema/number_ranges.h"

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

// Length of the JSON number at the start of `text`; 0 if there is none.
std::size_t number_length(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const std::size_t start = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at > start;
  };
  if (text.substr(at).starts_with('0'))
    ++at;
  else if (!digits())
    return 0;
  if (text.substr(at).starts_with('.')) {
    ++at;
    if (!digits()) return 0;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits()) return 0;
  }
  return at;
}

// The numbers of a JSON text in order, as they are spelled, and the text with 0 in their places. The parser would round
// them, or refuse those beyond the range of F64. The places of everything else stay.
struct SpelledNumbers {
  explicit SpelledNumbers(std::string_view json) : text(json) {
    bool in_string = false, after_token = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (in_string) {
        if (c == '\\') ++i;
        in_string = c != '"';
        continue;
      }
      const bool starts = c == '-' || (c >= '0' && c <= '9');
      const std::size_t length = starts && !after_token ? number_length(json.substr(i)) : 0;
      if (length > 0) {
        numbers.emplace_back(json.substr(i, length));
        text.replace(i, length, length, ' ');
        text[i] = '0';
        i += length - 1;
      }
      in_string = c == '"';
      // What directly follows a token is an error, which the parser finds in the original characters.
      after_token =
          starts || (c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != ',' && c != ':' && c != '[' && c != '{');
    }
  }
  std::string text;
  std::vector<std::string> numbers{};
  std::size_t next = 0;
};

std::unique_ptr<SchemaValue> copied(const JsonValue& from, std::string pointer, SpelledNumbers& spelled) {
  auto out = std::make_unique<SchemaValue>();
  out->pointer = std::move(pointer);
  out->kind = from.kind();
  switch (out->kind) {
    case JsonKind::Null: break;
    case JsonKind::Bool: out->flag = from.as_bool("value"); break;
    case JsonKind::Integer:
    case JsonKind::Number: {
      out->text = spelled.numbers.at(spelled.next++);
      out->kind = out->text.find_first_of(".eE") == std::string::npos ? JsonKind::Integer : JsonKind::Number;
      out->number = std::strtod(out->text.c_str(), nullptr);
      break;
    }
    case JsonKind::String: out->text = from.as_string("value"); break;
    case JsonKind::Array: {
      std::size_t i = 0;
      for (const JsonValue& e : from.elements("value"))
        out->elements.push_back(copied(e, concat_text(out->pointer, "/", i++), spelled));
      break;
    }
    case JsonKind::Object: {
      std::set<std::string_view> seen;
      for (const auto& [key, value] : from.members("value")) {
        if (!seen.insert(key).second) out->fail(ErrorCode::BadFile, concat_text("the key '", key, "' occurs twice"));
        out->members.emplace_back(std::string(key), copied(value, out->pointer + "/" + escaped_pointer(key), spelled));
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
  SpelledNumbers spelled(text);
  const JsonDocument document = JsonDocument::parse(spelled.text, std::string(source));
  return copied(document.root(), concat_text(source, "#"), spelled);
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

std::string canonical_number(const SchemaValue& value) {
  if (const std::optional<Decimal> d = Decimal::parse(value.text)) {
    std::string out = d->negative ? "-" : "";
    out += d->whole.empty() ? "0" : d->whole;
    return d->fraction.empty() ? out : out + "." + d->fraction;
  }
  // Digits without zeros at either end, and an exponent.
  const std::string& text = value.text;
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  std::string digits;
  long long exponent = 0;
  if (e < text.size()) {
    std::size_t first = e + 1;
    while (first + 1 < text.size() && (text[first] == '+' || text[first] == '-' || text[first] == '0')) ++first;
    if (text.size() - first > 15) value.fail(ErrorCode::Unsupported, "the exponent has more than 15 digits");
    exponent = std::stoll(text.substr(first)) * (text[e + 1] == '-' ? -1 : 1);
  }
  bool fraction = false;
  for (const char c : std::string_view(text).substr(0, e)) {
    if (c == '.') fraction = true;
    if (c < '0' || c > '9') continue;
    digits += c;
    exponent -= fraction ? 1 : 0;
  }
  digits.erase(0, digits.find_first_not_of('0'));
  for (; digits.ends_with('0'); digits.pop_back()) ++exponent;
  return concat_text(text.starts_with('-') ? "-" : "", digits, "e", exponent);
}

std::string canonical_json(const SchemaValue& value) {
  std::string out;
  switch (value.kind) {
    case JsonKind::Null: return "null";
    case JsonKind::Bool: return value.flag ? "true" : "false";
    case JsonKind::Integer:
    case JsonKind::Number: return canonical_number(value);
    case JsonKind::String: return quoted_json(value.text);
    case JsonKind::Array:
      for (const auto& e : value.elements) out += (out.empty() ? "" : ",") + canonical_json(*e);
      return "[" + out + "]";
    case JsonKind::Object: {
      std::vector<std::pair<std::string_view, const SchemaValue*>> sorted;
      for (const auto& [key, e] : value.members) sorted.emplace_back(key, e.get());
      std::sort(sorted.begin(), sorted.end());
      for (const auto& [key, e] : sorted) out += (out.empty() ? "" : ",") + quoted_json(key) + ":" + canonical_json(*e);
      return "{" + out + "}";
    }
  }
  return out;
}

}  // namespace rlx
