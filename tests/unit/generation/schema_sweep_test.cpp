// Grammars of random JSON schemas beside a validator written here: a text is in the grammar if and only if it is valid.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/generation/json_schema.h"

namespace rlx {
namespace {

// The patterns of the random schemas, with what they mean.
using Predicate = bool (*)(std::string_view);
const std::map<std::string, Predicate, std::less<>>& patterns() {
  static const std::map<std::string, Predicate, std::less<>> all{
      {"^a", [](std::string_view t) { return t.starts_with('a'); }},
      {"b$", [](std::string_view t) { return t.ends_with('b'); }},
      {"^[ab]+$", [](std::string_view t) { return !t.empty() && t.find_first_not_of("ab") == t.npos; }},
      {"^.{1,2}$", [](std::string_view t) { return t.size() == 1 || t.size() == 2; }},
      {"x", [](std::string_view t) { return t.find('x') != t.npos; }},
  };
  return all;
}

bool is_number(const JsonValue& v) { return v.kind() == JsonKind::Integer || v.kind() == JsonKind::Number; }

bool equal_values(const JsonValue& a, const JsonValue& b) {
  if (is_number(a) && is_number(b)) return a.as_number("a") == b.as_number("b");
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case JsonKind::Null: return true;
    case JsonKind::Bool: return a.as_bool("a") == b.as_bool("b");
    case JsonKind::String: return a.as_string("a") == b.as_string("b");
    case JsonKind::Array: {
      const auto x = a.elements("a"), y = b.elements("b");
      if (x.size() != y.size()) return false;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!equal_values(x[i], y[i])) return false;
      return true;
    }
    default: {
      if (a.size() != b.size()) return false;
      for (const auto& [name, v] : a.members("a"))
        if (const auto other = b.find(name); !other || !equal_values(v, *other)) return false;
      return true;
    }
  }
}

// JSON Schema's rules, keyword by keyword, for the keywords below.
class Validator {
 public:
  bool valid(const JsonValue& s, const JsonValue& v) const {
    if (s.kind() == JsonKind::Bool) return s.as_bool("schema");
    if (const auto t = s.find("type"); t && !has_type(s, *t, v)) return false;
    if (const auto c = s.find("const"); c && !equal_values(*c, v)) return false;
    if (const auto e = s.find("enum"); e && !any(*e, [&](const JsonValue& x) { return equal_values(x, v); }))
      return false;
    if (const auto n = s.find("not"); n && valid(*n, v)) return false;
    if (const auto a = s.find("allOf"); a && !all(*a, [&](const JsonValue& x) { return valid(x, v); })) return false;
    if (const auto a = s.find("anyOf"); a && !any(*a, [&](const JsonValue& x) { return valid(x, v); })) return false;
    if (const auto test = s.find("if")) {
      const auto branch = s.find(valid(*test, v) ? "then" : "else");
      if (branch && !valid(*branch, v)) return false;
    }
    if (is_number(v)) return valid_number(s, v.as_number("v"));
    if (v.is_string()) return valid_string(s, v.as_string("v"));
    if (v.is_array()) return valid_array(s, v.elements("v"));
    return !v.is_object() || valid_object(s, v);
  }

 private:
  template <class F>
  static bool any(const JsonValue& list, F f) {
    for (const JsonValue& e : list.elements("list"))
      if (f(e)) return true;
    return false;
  }
  template <class F>
  static bool all(const JsonValue& list, F f) {
    return !any(list, [&](const JsonValue& e) { return !f(e); });
  }
  static double limit(const JsonValue& s, std::string_view key, double otherwise) {
    const auto found = s.find(key);
    return found ? found->as_number(key) : otherwise;
  }
  static bool has_type(const JsonValue& s, const JsonValue& t, const JsonValue& v) {
    if (t.is_array()) return any(t, [&](const JsonValue& one) { return has_type(s, one, v); });
    if (const auto n = s.find("nullable"); n && n->as_bool("nullable") && v.is_null()) return true;
    const std::string_view name = t.as_string("type");
    if (name == "integer") return is_number(v) && v.as_number("v") == std::floor(v.as_number("v"));
    if (name == "number") return is_number(v);
    return name == (v.is_null()                  ? "null"
                    : v.kind() == JsonKind::Bool ? "boolean"
                    : v.is_string()              ? "string"
                    : v.is_array()               ? "array"
                    : v.is_object()              ? "object"
                                                 : "");
  }
  static bool valid_number(const JsonValue& s, double v) {
    if (v < limit(s, "minimum", -1e9) || v > limit(s, "maximum", 1e9)) return false;
    if (v <= limit(s, "exclusiveMinimum", -1e9) || v >= limit(s, "exclusiveMaximum", 1e9)) return false;
    const double m = limit(s, "multipleOf", 0);
    return m == 0 || v / m == std::floor(v / m);
  }
  static bool valid_string(const JsonValue& s, std::string_view v) {
    const auto size = static_cast<double>(v.size());  // ASCII
    if (size < limit(s, "minLength", 0) || size > limit(s, "maxLength", 1e9)) return false;
    const auto p = s.find("pattern");
    return !p || patterns().find(p->as_string("pattern"))->second(v);
  }
  bool valid_array(const JsonValue& s, const std::vector<JsonValue>& v) const {
    const auto size = static_cast<double>(v.size());
    if (size < limit(s, "minItems", 0) || size > limit(s, "maxItems", 1e9)) return false;
    auto list = s.find("prefixItems"), rest = s.find("items");
    if (rest && rest->is_array()) list = rest, rest = s.find("additionalItems");
    const std::vector<JsonValue> prefix = list ? list->elements("list") : std::vector<JsonValue>();
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (i < prefix.size() ? !valid(prefix[i], v[i]) : rest && !valid(*rest, v[i])) return false;
      for (std::size_t k = 0; k < i; ++k)
        if (s.get_bool("uniqueItems", false) && equal_values(v[i], v[k])) return false;
    }
    return true;
  }
  bool valid_object(const JsonValue& s, const JsonValue& v) const {
    const auto size = static_cast<double>(v.size());
    if (size < limit(s, "minProperties", 0) || size > limit(s, "maxProperties", 1e9)) return false;
    if (const auto r = s.find("required"); r && !all(*r, [&](auto& n) { return v.find(n.as_string("n")).has_value(); }))
      return false;
    if (const auto d = s.find("dependentRequired"))
      for (const auto& [name, more] : d->members("d"))
        if (v.find(name) && !all(more, [&](auto& n) { return v.find(n.as_string("n")).has_value(); })) return false;
    const auto own = s.find("properties"), by_pattern = s.find("patternProperties");
    const auto rest = s.find("additionalProperties"), names = s.find("propertyNames");
    for (const auto& [name, value] : v.members("v")) {
      bool known = false;
      if (const auto p = own ? own->find(name) : std::nullopt) {
        known = true;
        if (!valid(*p, value)) return false;
      }
      if (by_pattern)
        for (const auto& [pattern, p] : by_pattern->members("p")) {
          if (!patterns().find(pattern)->second(name)) continue;
          known = true;
          if (!valid(p, value)) return false;
        }
      if (!known && rest && !valid(*rest, value)) return false;
      if (names && !valid(*names, JsonDocument::parse("\"" + std::string(name) + "\"", "name").root())) return false;
    }
    return true;
  }
};

class Sweep {
 public:
  explicit Sweep(std::uint64_t seed) : rng_(seed) {}
  std::size_t pick(std::size_t n) { return rng_() % n; }
  bool chance(int percent) { return static_cast<int>(pick(100)) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[pick(list.size())];
  }

  // A value as text, members in the order a, b, c, then others.
  std::string value(int depth) {
    switch (pick(depth > 0 ? 9 : 5)) {
      case 0: return "null";
      case 1: return chance(50) ? "true" : "false";
      case 2: return std::to_string(static_cast<int>(pick(16)) - 3);
      case 3: return std::to_string(pick(4)) + ".5";
      case 4: return "\"" + text() + "\"";
      case 5:
      case 6: {
        std::string out;
        for (std::size_t i = pick(4); i-- > 0;) out += (out.empty() ? "" : ",") + value(depth - 1);
        return "[" + out + "]";
      }
      default: {
        std::string out;
        for (const char* name : {"a", "b", "c", "xb", "zz"})
          if (chance(45)) out += concat_text(out.empty() ? "\"" : ",\"", name, "\":", value(depth - 1));
        return "{" + out + "}";
      }
    }
  }

  // A schema that states its type.
  std::string typed(int depth) {
    const std::string extra = chance(45) ? condition(1) : "";
    switch (pick(depth > 0 ? 8 : 5)) {
      case 0: return concat_text("{\"enum\":[", value(1), ",", value(0), ",", value(0), "]", extra, "}");
      case 1: return concat_text("{\"type\":[\"integer\",\"", chance(50) ? "null" : "string", "\"]", extra, "}");
      case 2: return concat_text("{\"type\":\"", chance(50) ? "integer" : "number", "\"", numbers(), extra, "}");
      case 3: return concat_text("{\"type\":\"string\"", strings(), chance(20) ? ",\"nullable\":true" : "", extra, "}");
      case 4: return concat_text("{\"const\":", value(1), "}");
      case 5: return array(depth, extra);
      default: return object(depth, extra);
    }
  }

 private:
  std::string text() { return one_of<std::string>({"", "a", "b", "ab", "ba", "x", "aab", "abx"}); }
  std::string number() { return one_of<std::string>({"-2", "0", "1", "2.5", "3", "7"}); }
  std::string pattern() {
    auto at = patterns().begin();
    std::advance(at, static_cast<std::ptrdiff_t>(pick(patterns().size())));
    return at->first;
  }
  std::string numbers() {
    std::string out;
    if (chance(40)) out += concat_text(",\"", one_of<std::string>({"minimum", "exclusiveMinimum"}), "\":", number());
    if (chance(40)) out += concat_text(",\"", one_of<std::string>({"maximum", "exclusiveMaximum"}), "\":", number());
    if (chance(40)) out += ",\"multipleOf\":" + one_of<std::string>({"1", "2", "3", "0.5", "1.5"});
    return out;
  }
  std::string strings() {
    std::string out;
    if (chance(30)) out += ",\"minLength\":" + std::to_string(pick(3));
    if (chance(30)) out += ",\"maxLength\":" + std::to_string(1 + pick(3));
    if (chance(40)) out += ",\"pattern\":\"" + pattern() + "\"";
    return out;
  }
  std::string count(const char* key, std::size_t most) { return concat_text(",\"", key, "\":", pick(most + 1)); }
  std::string array(int depth, const std::string& extra) {
    std::string out = "{\"type\":\"array\"";
    if (chance(30)) {
      out += ",\"items\":" + one_of<std::string>({"{\"enum\":[1,2,\"a\",null]}", "{\"type\":\"boolean\"}"});
      out += ",\"uniqueItems\":true";
    } else if (chance(30)) {
      out += concat_text(",\"items\":[", typed(depth - 1), "],\"additionalItems\":", chance(50) ? "false" : typed(0));
    } else {
      out += ",\"items\":" + typed(depth - 1);
      if (chance(30)) out += ",\"prefixItems\":[" + typed(0) + "]";
    }
    if (chance(30)) out += count("minItems", 2);
    if (chance(30)) out += count("maxItems", 3);
    return out + extra + "}";
  }
  std::string object(int depth, const std::string& extra) {
    std::string out = "{\"type\":\"object\",\"properties\":{\"a\":" + typed(depth - 1);
    for (const char* name : {"b", "c"}) out += concat_text(",\"", name, "\":", chance(70) ? typed(0) : "{}");
    out += "}";
    if (chance(40)) out += ",\"required\":[\"" + one_of<std::string>({"a", "b", "c"}) + "\"]";
    if (chance(30)) out += concat_text(",\"patternProperties\":{\"", pattern(), "\":", typed(0), "}");
    if (chance(50)) out += ",\"additionalProperties\":" + (chance(50) ? std::string("false") : typed(0));
    if (chance(20)) out += ",\"propertyNames\":{" + strings().erase(0, 1) + "}";
    if (chance(25)) out += count("minProperties", 3);
    if (chance(25)) out += count("maxProperties", 4);
    if (chance(15)) out += ",\"dependentRequired\":{\"a\":[\"b\"],\"c\":[]}";
    return out + extra + "}";
  }
  // A schema under not or if.
  std::string denied(int depth) {
    switch (pick(depth > 0 ? 10 : 7)) {
      case 0: return "{\"const\":" + value(1) + "}";
      case 1: return concat_text("{\"enum\":[", value(0), ",", value(1), "]}");
      case 2: return "{\"type\":\"" + one_of<std::string>({"null", "integer", "number", "string", "object"}) + "\"}";
      case 3: return "{" + (numbers() + strings()).erase(0, 1) + "}";
      case 4: return "{\"required\":[\"a\"]}";
      case 5:
        return concat_text("{\"properties\":{\"a\":", value_schema(), "}", chance(50) ? ",\"required\":[\"a\"]}" : "}");
      case 6: return "{" + (count("minProperties", 3) + count("maxItems", 2)).erase(0, 1) + "}";
      case 7: return "{\"not\":" + denied(depth - 1) + "}";
      case 8: return concat_text("{\"prefixItems\":[", denied(0), ",", denied(0), "]}");
      default:
        return concat_text("{\"", chance(50) ? "anyOf" : "allOf", "\":[", denied(depth - 1), ",", denied(0), "]}");
    }
  }
  std::string value_schema() { return chance(50) ? "{\"const\":" + value(0) + "}" : "{\"type\":\"integer\"}"; }
  std::string condition(int depth) {
    if (chance(50)) return ",\"not\":" + denied(depth);
    std::string out = ",\"if\":" + denied(depth);
    if (chance(80)) out += ",\"then\":" + denied(0);
    if (chance(60)) out += ",\"else\":" + denied(0);
    return out;
  }

  std::mt19937_64 rng_;
};

}  // namespace

TEST_CASE("json schema: random schemas of all keywords accept what is valid and nothing else") {
  Sweep sweep(20);
  const Validator validator;
  std::size_t taken = 0, refused = 0, unsupported = 0, empty = 0;
  for (int round = 0; round < 500; ++round) {
    const std::string schema = sweep.typed(2);
    CAPTURE(schema);
    const JsonDocument document = JsonDocument::parse(schema, "schema");
    std::optional<Grammar> grammar;
    try {
      grammar = json_schema_grammar(schema, {JsonWhitespace::None});
    } catch (const Error& e) {
      const std::string_view said = e.what();
      const bool is_empty = said.find("no value fits") != said.npos;
      CHECK_MESSAGE((is_empty || e.code() == ErrorCode::Unsupported), said);
      ++(is_empty ? empty : unsupported);
      if (!is_empty) continue;
    }
    for (int i = 0; i < 60; ++i) {
      const std::string text = sweep.value(2);
      CAPTURE(text);
      const bool valid = validator.valid(document.root(), JsonDocument::parse(text, "value").root());
      const bool matches = grammar && grammar->matches(text);
      CHECK(matches == valid);
      ++(valid ? taken : refused);
    }
  }
  CAPTURE(taken);
  CAPTURE(refused);
  CAPTURE(empty);
  CAPTURE(unsupported);
  CHECK(taken > 800);
  CHECK(refused > 10000);
  CHECK(unsupported < 50);
  CHECK(empty < 100);
}

}  // namespace rlx
