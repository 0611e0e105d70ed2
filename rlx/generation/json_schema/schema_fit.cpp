// Checks of literal values of enum and const against the keywords beside them.
#include <algorithm>
#include <set>

#include "rlx/generation/json_schema/schema_compiler.h"

namespace rlx {
namespace {

// Whether v is a whole number of divisors.
bool is_multiple(const Decimal& v, const SchemaCase::Multiple& m) {
  const std::string of = m.divisor.whole + m.divisor.fraction;
  if (of.size() > 18) m.keyword->fail(ErrorCode::Unsupported, "a divisor of more than 18 digits");
  if (v.fraction.size() > m.divisor.fraction.size()) return false;
  const std::uint64_t size = std::stoull(of);
  std::string digits = v.whole + v.fraction;
  digits.append(m.divisor.fraction.size() - v.fraction.size(), '0');
  std::uint64_t rest = 0;
  for (const char c : digits) rest = (rest * 10 + static_cast<std::uint64_t>(c - '0')) % size;
  return rest == 0;
}

}  // namespace

bool SchemaCompiler::fits(const SchemaValue& v, const SchemaCase& c) {
  reader_.spend(20 + 20 * c.excluded.size());
  if (!c.excluded.empty()) {
    const std::string text = canonical_json(v);
    if (std::ranges::any_of(c.excluded, [&](const SchemaValue* w) { return canonical_json(*w) == text; })) return false;
  }
  switch (v.kind) {
    case JsonKind::Null: return (c.types & SchemaCase::kNull) != 0;
    case JsonKind::Bool: return (c.types & SchemaCase::kBoolean) != 0;
    case JsonKind::Integer:
    case JsonKind::Number: return (c.types & SchemaCase::kNumber) != 0 && number_fits(v, c);
    case JsonKind::String: return (c.types & SchemaCase::kString) != 0 && string_fits(v, c);
    case JsonKind::Array: return (c.types & SchemaCase::kArray) != 0 && array_fits(v, c);
    case JsonKind::Object: return (c.types & SchemaCase::kObject) != 0 && object_fits(v, c);
  }
  return false;
}

bool SchemaCompiler::fits(const SchemaValue& v, const Schemas& schemas) {
  const std::optional<Schemas> simple = reader_.simplified(schemas);
  if (!simple) return false;
  const auto [entry, is_new] = cases_.try_emplace(*simple);
  if (is_new) entry->second = reader_.cases(*simple);
  const std::vector<SchemaCase>& cases = entry->second;
  return std::any_of(cases.begin(), cases.end(), [&](const SchemaCase& c) {
    const std::string text = canonical_json(v);
    const auto same = [&](const SchemaValue* w) { return canonical_json(*w) == text; };
    if (c.values) reader_.spend(20 * c.values->size());
    return (!c.values || std::any_of(c.values->begin(), c.values->end(), same)) && fits(v, c);
  });
}

bool SchemaCompiler::array_fits(const SchemaValue& v, const SchemaCase& c) {
  if (v.elements.size() < c.min_items || v.elements.size() > c.max_items) return false;
  for (std::size_t i = 0; i < v.elements.size(); ++i)
    if (!fits(*v.elements[i], i < c.prefix.size() ? c.prefix[i] : c.items)) return false;
  if (c.unique == nullptr) return true;
  std::set<std::string> texts;
  return std::ranges::all_of(v.elements, [&](const auto& e) { return texts.insert(canonical_json(*e)).second; });
}

bool SchemaCompiler::object_fits(const SchemaValue& v, const SchemaCase& c) {
  for (const std::string& name : c.required)
    if (v.find(name) == nullptr) return false;
  reader_.spend(c.required.size() * v.members.size() + c.properties.size() * v.members.size());
  for (const auto& [name, e] : v.members) {
    const auto own = std::find_if(c.properties.begin(), c.properties.end(),
                                  [&, n = std::string_view(name)](const auto& p) { return p.name == n; });
    if (!fits(*e, own != c.properties.end() ? own->schemas : schemas_of_member(c, name))) return false;
    if (!c.names.empty() && !names_dfa(c.names).matches(code_points_of(name))) return false;
  }
  return v.members.size() >= c.min_properties && v.members.size() <= c.max_properties;
}

bool SchemaCompiler::number_fits(const SchemaValue& v, const SchemaCase& c) {
  if (!c.integers && !c.lower && !c.upper && c.multiples.empty()) return true;
  const std::optional<Decimal> d = Decimal::parse(v.text);
  if (!d) v.fail(ErrorCode::Unsupported, "a number of more than 400 digits");
  if (c.integers && !d->fraction.empty()) return false;
  const auto outside = [&](const NumberLimit& limit, int sign) {
    const int order = sign * compare(*d, limit.value);
    return order < 0 || (order == 0 && limit.exclusive);
  };
  if ((c.lower && outside(*c.lower, 1)) || (c.upper && outside(*c.upper, -1))) return false;
  reader_.spend(c.multiples.size() * (d->whole.size() + d->fraction.size()));
  return std::ranges::all_of(c.multiples, [&](const auto& m) { return is_multiple(*d, m) == m.of; });
}

bool SchemaCompiler::string_fits(const SchemaValue& v, const SchemaCase& c) {
  const std::u32string text = code_points_of(v.text);
  if (text.size() < c.min_length || text.size() > c.max_length) return false;
  reader_.spend((50 + text.size()) * (c.patterns.size() + c.not_patterns.size()));
  const auto matches = [&](const SchemaValue* p) { return reader_.pattern_dfa(*p).matches(text); };
  return std::ranges::all_of(c.patterns, matches) && std::ranges::none_of(c.not_patterns, matches);
}

}  // namespace rlx
