// Converts JSON Schema keywords to cases, and intersects cases.
#include "rlx/generation/json_schema/schema_cases.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "rlx/base/utf8.h"
#include "rlx/generation/json_schema/schema_formats.h"
#include "rlx/generation/json_schema/schema_pattern.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxCases = kMaxSchemaCases, kMaxNested = kMaxNestedSchemas;

const std::set<std::string, std::less<>>& annotations() {
  static const std::set<std::string, std::less<>> all{
      "title",    "description", "default",       "examples",      "$schema",          "$id",
      "$comment", "deprecated",  "readOnly",      "writeOnly",     "contentMediaType", "contentEncoding",
      "$defs",    "definitions", "contentSchema", "discriminator", "$vocabulary",      "$anchor"};
  return all;
}
// Constraining keywords that a context-free grammar cannot express, or not at a reasonable size.
const std::map<std::string, std::string, std::less<>>& impossible() {
  static const std::map<std::string, std::string, std::less<>> all{
      {"contains", "use prefixItems"},   {"minContains", "use prefixItems"}, {"maxContains", "use prefixItems"},
      {"unevaluatedItems", "use items"}, {"$dynamicRef", "use $ref"},        {"$recursiveRef", "use $ref"},
      {"extends", "use allOf"},
  };
  return all;
}
const std::set<std::string, std::less<>>& keywords() {
  static const std::set<std::string, std::less<>> all{"type",
                                                      "nullable",
                                                      "enum",
                                                      "const",
                                                      "properties",
                                                      "required",
                                                      "additionalProperties",
                                                      "unevaluatedProperties",
                                                      "patternProperties",
                                                      "propertyNames",
                                                      "minProperties",
                                                      "maxProperties",
                                                      "dependentRequired",
                                                      "dependentSchemas",
                                                      "dependencies",
                                                      "items",
                                                      "prefixItems",
                                                      "additionalItems",
                                                      "minItems",
                                                      "maxItems",
                                                      "uniqueItems",
                                                      "pattern",
                                                      "format",
                                                      "minLength",
                                                      "maxLength",
                                                      "minimum",
                                                      "maximum",
                                                      "exclusiveMinimum",
                                                      "exclusiveMaximum",
                                                      "multipleOf",
                                                      "anyOf",
                                                      "oneOf",
                                                      "allOf",
                                                      "not",
                                                      "if",
                                                      "then",
                                                      "else",
                                                      "$ref"};
  return all;
}

// The tighter of two limits; `sign` is 1 for lower limits.
std::optional<NumberLimit> tighter(const std::optional<NumberLimit>& a, const std::optional<NumberLimit>& b, int sign) {
  if (!a || !b) return a ? a : b;
  const int order = sign * compare(a->value, b->value);
  if (order == 0) return NumberLimit{a->value, a->exclusive || b->exclusive};
  return order > 0 ? a : b;
}

// An index of names in list order. The list must not move.
class NamePlaces {
 public:
  template <class List, class NameOf>
  NamePlaces(const List& list, const NameOf& name_of) {
    for (std::size_t i = 0; i < list.size(); ++i) places_.try_emplace(name_of(list[i]), i);
  }
  std::optional<std::size_t> find(std::string_view name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) return std::nullopt;
    return found->second;
  }

 private:
  std::unordered_map<std::string_view, std::size_t> places_;
};

}  // namespace

void append(Schemas& to, const Schemas& more) {
  for (const SchemaValue* s : more)
    if (std::find(to.begin(), to.end(), s) == to.end()) to.push_back(s);
}

bool is_annotation(std::string_view key) { return annotations().count(key) != 0 || key.starts_with("x-"); }

const std::vector<std::unique_ptr<SchemaValue>>& schema_list(const SchemaValue& value) {
  if (value.kind != JsonKind::Array || value.elements.empty())
    value.fail(ErrorCode::BadFile, "must be a list of schemas, not empty");
  return value.elements;
}

std::optional<NumberLimit> limit_of_keyword(const std::string& key, const SchemaValue& value) {
  const bool exclusive = key.starts_with("exclusive");
  if (key != "minimum" && key != "maximum" && key != "exclusiveMinimum" && key != "exclusiveMaximum")
    return std::nullopt;
  if (value.kind == JsonKind::Bool)
    value.fail(ErrorCode::Unsupported, concat_text(key, " as true or false is from draft 4"),
               "give the limit as a number");
  if (!value.is_number()) value.fail(ErrorCode::BadFile, "must be a number");
  const std::optional<Decimal> limit = Decimal::parse(value.text);
  if (!limit) value.fail(ErrorCode::Unsupported, "the limit has more than 400 digits", "leave it out");
  return NumberLimit{*limit, exclusive};
}

bool is_format(const SchemaValue& pattern) { return pattern.pointer.ends_with("/format"); }

std::string_view pattern_of(const SchemaValue& keyword) {
  if (!is_format(keyword)) return keyword.text;
  const std::string_view text = schema_format_pattern(keyword.text);
  if (text.empty())
    keyword.fail(ErrorCode::Unsupported, concat_text("the format '", keyword.text, "' is not known"),
                 did_you_mean(keyword.text, schema_format_names(), "use a pattern"));
  return text;
}

std::u32string code_points_of(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) out += decode_utf8(text, at);
  return out;
}

Decimal divisor_of(const SchemaValue& multiple_of) {
  const std::optional<Decimal> d = multiple_of.is_number() ? Decimal::parse(multiple_of.text) : std::nullopt;
  if (multiple_of.is_number() && !d) multiple_of.fail(ErrorCode::Unsupported, "a number of more than 400 digits");
  if (!d || compare(*d, Decimal{}) <= 0) multiple_of.fail(ErrorCode::BadFile, "must be a number > 0");
  return *d;
}

SchemaValue SchemaReader::plain_schema(bool allows) {
  SchemaValue v;
  v.kind = JsonKind::Bool;
  v.flag = allows;
  return v;
}

const CodePointDfa& SchemaReader::pattern_dfa(std::string_view pattern, std::string_view where) {
  if (const auto known = dfas_.find(pattern); known != dfas_.end()) return known->second;
  GrammarRules rules;
  const SchemaPattern regex(pattern, where);
  const ExprId expr = regex.expression(rules, [&](const CodePointSet& set) { return rules.one_of(set); });
  return dfas_.emplace(pattern, CodePointDfa::of_expression(rules, expr, where, dfa_budget_)).first->second;
}
const CodePointDfa& SchemaReader::pattern_dfa(const SchemaValue& keyword) {
  return pattern_dfa(pattern_of(keyword), keyword.pointer);
}

Schemas SchemaReader::schemas_of_other(const SchemaCase& c, std::string_view name) {
  Schemas out = c.additional;
  for (const SchemaCase::NamePatterns& p : c.name_patterns) {
    bool matched = false;
    spend(10 * p.patterns.size() + name.size());
    for (const auto& [schema, pattern] : p.patterns) {
      if (!pattern_dfa(pattern, schema->pointer).matches(code_points_of(name))) continue;
      matched = true;
      append(out, {schema});
    }
    if (!matched) append(out, p.additional);
  }
  return out;
}

const SchemaValue* SchemaReader::only_alternatives(const SchemaValue& schema) const {
  const SchemaValue* found = nullptr;
  for (const auto& [key, value] : schema.members) {
    if (is_annotation(key)) continue;
    if (found != nullptr || (key != "anyOf" && key != "oneOf")) return nullptr;
    found = value.get();
  }
  if (found != nullptr) (void)schema_list(*found);
  return found;
}

std::optional<Schemas> SchemaReader::simplified(const Schemas& schemas) {
  Schemas out;
  for (const SchemaValue* s : schemas) {
    std::set<const SchemaValue*> passed;
    while (s != nullptr) {
      spend(1 + s->members.size());
      if (!passed.insert(s).second) s->fail(ErrorCode::BadFile, "this $ref refers to itself");
      const SchemaValue* reference = nullptr;
      std::size_t others = 0;
      for (const auto& [key, value] : s->members) {
        if (key == "$ref")
          reference = value.get();
        else
          others += is_annotation(key) ? 0 : 1;
      }
      others += s->negated != nullptr || s->constant != nullptr ? 1 : 0;
      if (s->kind == JsonKind::Bool) {
        if (!s->flag) return std::nullopt;
        s = nullptr;
      } else if (s->kind != JsonKind::Object) {
        s->fail(ErrorCode::BadFile, "a schema must be an object, true or false");
      } else if (reference != nullptr && others == 0) {
        s = &target(*reference);
      } else {
        if (others > 0 || reference != nullptr) append(out, {s});
        s = nullptr;
      }
    }
  }
  return out;
}

std::vector<SchemaCase> SchemaReader::cases(const Schemas& schemas) {
  std::vector<SchemaCase> all{SchemaCase{}};
  for (const SchemaValue* s : schemas) all = product(std::move(all), cases_of(*s), *s);
  for (SchemaCase& c : all) {
    c.closed = closed_ && c.closed && c.additional.empty() &&
               std::ranges::all_of(c.name_patterns, [](const auto& p) { return p.additional.empty(); });
    if (c.closed && c.name_patterns.empty()) c.additional = {&never_};
    if (closed_ && c.closed_items && c.items.empty()) c.items = {&never_};
  }
  return all;
}

void SchemaReader::spend(std::uint64_t steps) {
  if (steps > steps_left_) {
    throw Error(Diagnostic{ErrorCode::Unsupported,
                           concat_text(root_.pointer, ": the schema combines too many cases for a grammar"),
                           {},
                           "use fewer and smaller allOf, anyOf and enum at one place, and shorter chains of $ref"});
  }
  steps_left_ -= steps;
}

std::vector<SchemaCase> SchemaReader::product(std::vector<SchemaCase> a, const std::vector<SchemaCase>& b,
                                              const SchemaValue& where) {
  if (a.size() * b.size() > kMaxCases) {
    where.fail(ErrorCode::Unsupported, concat_text("more than ", kMaxCases, " combinations of anyOf and oneOf"),
               "nest fewer of them in allOf");
  }
  if (b.size() == 1) {  // the common case
    for (SchemaCase& x : a) x = merged(std::move(x), b[0]);
    return a;
  }
  std::vector<SchemaCase> out;
  for (const SchemaCase& x : a) {
    for (const SchemaCase& y : b) {
      spend(10 * (x.properties.size() + x.required.size() + x.prefix.size() + (x.values ? x.values->size() : 0)));
      out.push_back(merged(x, y));
    }
  }
  return out;
}

std::vector<SchemaCase> SchemaReader::cases_of(const SchemaValue& schema) {
  if (schema.kind == JsonKind::Bool) return schema.flag ? std::vector<SchemaCase>(1) : std::vector<SchemaCase>();
  if (schema.kind != JsonKind::Object) schema.fail(ErrorCode::BadFile, "a schema must be an object, true or false");
  if (!open_.insert(&schema).second) schema.fail(ErrorCode::BadFile, "this schema refers to itself directly");
  if (open_.size() > kMaxNested) schema.fail(ErrorCode::Unsupported, "allOf, anyOf and $ref are nested too deeply");
  spend(1 + schema.members.size());
  std::vector<SchemaCase> all;
  if (schema.negated != nullptr) {
    all = cases_of_not(*schema.negated);
  } else {
    all.push_back(own_case(schema));
    for (const auto& [key, value] : schema.members) add_conditions(schema, key, *value, all);
  }
  if (const SchemaValue* rest = schema.find("unevaluatedProperties")) {
    for (SchemaCase& c : all) {
      if (c.negated || c.name_patterns.size() > 1)
        rest->fail(ErrorCode::Unsupported, "unevaluatedProperties beside not, if or several patternProperties",
                   "use additionalProperties");
      if (!c.additional.empty()) continue;
      if (c.name_patterns.empty())
        c.additional = {rest};
      else if (c.name_patterns[0].additional.empty())
        c.name_patterns[0].additional = {rest};
    }
  }
  open_.erase(&schema);
  return all;
}

// Multiplies the cases of a schema by those of a keyword that holds other schemas.
void SchemaReader::add_conditions(const SchemaValue& schema, const std::string& key, const SchemaValue& value,
                                  std::vector<SchemaCase>& all) {
  const auto and_also = [&](const std::vector<SchemaCase>& more) { all = product(std::move(all), more, value); };
  if (key == "$ref") {
    and_also(cases_of(target(value)));
  } else if (key == "not") {
    and_also(cases_of_not(value));
  } else if (key == "allOf") {
    for (const auto& e : schema_list(value)) and_also(cases_of(*e));
  } else if (key == "anyOf" || key == "oneOf") {
    std::vector<SchemaCase> alternatives;
    for (const auto& e : schema_list(value)) {
      for (SchemaCase& c : cases_of(*e)) alternatives.push_back(std::move(c));
      if (alternatives.size() > kMaxCases) (void)product(std::vector<SchemaCase>(2), alternatives, value);  // throws
    }
    and_also(alternatives);
  } else if (key == "if") {
    const SchemaValue *then = schema.find("then"), *otherwise = schema.find("else");
    if (then == nullptr && otherwise == nullptr) return;
    std::vector<SchemaCase> branches = cases_of(value);
    if (then != nullptr) branches = product(std::move(branches), cases_of(*then), value);
    std::vector<SchemaCase> no = cases_of_not(value);
    if (otherwise != nullptr) no = product(std::move(no), cases_of(*otherwise), value);
    std::move(no.begin(), no.end(), std::back_inserter(branches));
    and_also(branches);
  } else if (key == "dependentRequired" || key == "dependentSchemas" || key == "dependencies") {
    if (value.kind != JsonKind::Object) value.fail(ErrorCode::BadFile, "must be an object");
    for (const auto& [name, e] : value.members) and_also(dependent_cases(name, *e));
  }
}

// Values without a member `name`, and those that satisfy what depends on it: a list of names or a schema.
std::vector<SchemaCase> SchemaReader::dependent_cases(const std::string& name, const SchemaValue& value) {
  SchemaCase without, with;
  without.properties.push_back({name, {&never_}});
  without.constrained = with.constrained = SchemaCase::kObject;
  without.negated = true;
  with.required.push_back(name);
  std::vector<SchemaCase> out{without};
  if (value.kind == JsonKind::Array) {
    for (const auto& e : value.elements) with.required.push_back(e->as_text());
    out.push_back(std::move(with));
  } else {
    for (SchemaCase& c : product({std::move(with)}, cases_of(value), value)) out.push_back(std::move(c));
  }
  return out;
}

SchemaCase SchemaReader::own_case(const SchemaValue& schema) {
  SchemaCase out;
  if (schema.constant != nullptr) out.values = {schema.constant};
  for (const auto& [key, value] : schema.members)
    if (!is_annotation(key)) read_keyword(schema, key, *value, out);
  if (const SchemaValue* patterns = schema.find("patternProperties")) {
    if (patterns->kind != JsonKind::Object)
      patterns->fail(ErrorCode::BadFile, "must be an object of schemas, by patterns");
    SchemaCase::NamePatterns own;
    for (const auto& [pattern, e] : patterns->members) own.patterns.push_back({e.get(), pattern});
    SchemaCase alone;
    alone.name_patterns.push_back(std::move(own));
    for (SchemaCase::Property& p : out.properties) append(p.schemas, schemas_of_other(alone, p.name));
    out.name_patterns = std::move(alone.name_patterns);
    out.name_patterns[0].additional = std::exchange(out.additional, {});
  }
  out.closed = schema.find("properties") != nullptr;
  const SchemaValue* items = schema.find("items");
  out.closed_items = schema.find("prefixItems") != nullptr || (items != nullptr && items->kind == JsonKind::Array);
  return out;
}

void SchemaReader::read_types(const SchemaValue& schema, const SchemaValue& value, SchemaCase& out) {
  static const std::map<std::string, unsigned, std::less<>> kNames{
      {"null", SchemaCase::kNull},     {"boolean", SchemaCase::kBoolean}, {"object", SchemaCase::kObject},
      {"array", SchemaCase::kArray},   {"number", SchemaCase::kNumber},   {"integer", SchemaCase::kNumber},
      {"string", SchemaCase::kString},
  };
  std::vector<std::string> names;
  if (value.kind == JsonKind::Array) {
    for (const auto& e : value.elements) names.push_back(e->as_text());
  } else {
    names.push_back(value.as_text());
  }
  out.types = 0;
  out.types_stated = true;
  out.integers = std::find(names.begin(), names.end(), "number") == names.end();
  for (const std::string& name : names) {
    const auto found = kNames.find(name);
    std::vector<std::string> known;
    for (const auto& [n, bit] : kNames) known.push_back(n);
    if (found == kNames.end())
      value.fail(ErrorCode::BadFile, concat_text("there is no type '", name, "'"), did_you_mean(name, known));
    out.types |= found->second;
  }
  const SchemaValue* nullable = schema.find("nullable");  // of OpenAPI 3.0
  if (nullable != nullptr && nullable->as_flag()) out.types |= SchemaCase::kNull;
}

bool SchemaReader::read_number_keyword(const std::string& key, const SchemaValue& value, SchemaCase& out) {
  if (key == "multipleOf") {
    out.multiples.push_back({divisor_of(value), true, &value});
  } else if (const std::optional<NumberLimit> limit = limit_of_keyword(key, value)) {
    const bool lower = key == "minimum" || key == "exclusiveMinimum";
    (lower ? out.lower : out.upper) = tighter(lower ? out.lower : out.upper, limit, lower ? 1 : -1);
  } else {
    return false;
  }
  out.constrained |= SchemaCase::kNumber;
  return true;
}

void SchemaReader::read_keyword(const SchemaValue& schema, const std::string& key, const SchemaValue& value,
                                SchemaCase& out) {
  if (const auto found = impossible().find(key); found != impossible().end()) {
    value.fail(ErrorCode::Unsupported, concat_text("the keyword ", key, " cannot become a grammar"), found->second);
  }
  if (keywords().count(key) == 0) {
    std::vector<std::string> known(keywords().begin(), keywords().end());
    value.fail(ErrorCode::Unsupported, concat_text("unknown keyword '", key, "', which might constrain"),
               did_you_mean(key, known, "use the prefix x- for your own annotations"));
  }
  if (read_number_keyword(key, value, out)) return;
  if (key == "type") {
    read_types(schema, value, out);
  } else if (key == "enum" || key == "const") {
    std::vector<const SchemaValue*> values;
    if (key == "const") {
      values.push_back(&value);
    } else {
      if (value.kind != JsonKind::Array) value.fail(ErrorCode::BadFile, "must be a list of values");
      for (const auto& e : value.elements) values.push_back(e.get());
    }
    SchemaCase other;
    other.values = std::move(values);
    out = merged(out, other);
  } else if (key == "properties") {
    if (value.kind != JsonKind::Object) value.fail(ErrorCode::BadFile, "must be an object of schemas");
    for (const auto& [name, e] : value.members) out.properties.push_back({name, {e.get()}});
    out.constrained |= SchemaCase::kObject;
  } else if (key == "required") {
    if (value.kind != JsonKind::Array) value.fail(ErrorCode::BadFile, "must be a list of names");
    for (const auto& e : value.elements) out.required.push_back(e->as_text());
    out.constrained |= SchemaCase::kObject;
  } else if (key == "additionalProperties") {
    out.additional = {&value};
    out.constrained |= SchemaCase::kObject;
  } else if (key == "patternProperties" || key.starts_with("depend")) {  // see own_case and add_conditions
    out.constrained |= SchemaCase::kObject;
  } else if (key == "propertyNames") {
    out.names = {&value};
    out.constrained |= SchemaCase::kObject;
  } else if (key == "minProperties" || key == "maxProperties") {
    (key == "minProperties" ? out.min_properties : out.max_properties) = value.as_count();
    out.constrained |= SchemaCase::kObject;
  } else if (key == "prefixItems") {
    for (const auto& e : schema_list(value)) out.prefix.push_back({e.get()});
    out.constrained |= SchemaCase::kArray;
  } else if (key == "items") {
    if (value.kind == JsonKind::Array) {  // of draft 7
      if (schema.find("prefixItems") != nullptr)
        value.fail(ErrorCode::BadFile, "items is a list beside prefixItems", "use one of them");
      for (const auto& e : value.elements) out.prefix.push_back({e.get()});
      if (const SchemaValue* rest = schema.find("additionalItems")) out.items = {rest};
    } else {
      out.items = {&value};
    }
    out.constrained |= SchemaCase::kArray;
  } else if (key == "minItems" || key == "maxItems") {
    (key == "minItems" ? out.min_items : out.max_items) = value.as_count();
    out.constrained |= SchemaCase::kArray;
  } else if (key == "uniqueItems") {
    if (value.as_flag()) out.unique = &value;
    out.constrained |= SchemaCase::kArray;
  } else if (key == "minLength" || key == "maxLength") {
    (key == "minLength" ? out.min_length : out.max_length) = value.as_count();
    out.constrained |= SchemaCase::kString;
  } else if (key == "pattern" || key == "format") {
    (void)value.as_text();
    out.patterns.push_back(&value);
    out.constrained |= SchemaCase::kString;
  } else if (key == "nullable") {
    if (value.as_flag() && schema.find("type") == nullptr)
      value.fail(ErrorCode::Unsupported, "nullable without type has no meaning",
                 R"(write anyOf with {"type": "null"})");
  } else if ((key == "then" || key == "else") && schema.find("if") == nullptr) {
    value.fail(ErrorCode::Unsupported, concat_text(key, " without if has no meaning"), "leave it out");
  } else if (key == "additionalItems" && value.kind != JsonKind::Object && value.kind != JsonKind::Bool) {
    value.fail(ErrorCode::BadFile, "a schema must be an object, true or false");
  }
}

SchemaCase SchemaReader::merged(SchemaCase a, const SchemaCase& b) {
  SchemaCase& out = a;
  spend(10 + 20 * (b.properties.size() + b.required.size() + b.prefix.size()));
  out.types &= b.types;
  out.types_stated = a.types_stated || b.types_stated;
  out.integers = a.integers || b.integers;
  out.constrained = a.constrained | b.constrained;
  if (b.values) {
    std::set<std::string> others;
    if (a.values)
      for (const SchemaValue* v : *a.values) others.insert(canonical_json(*v));
    const bool any = !a.values;
    spend(20 * (b.values->size() + others.size()));
    out.values.emplace();
    for (const SchemaValue* v : *b.values)
      if (any || others.count(canonical_json(*v)) != 0) out.values->push_back(v);
  }
  out.excluded.insert(out.excluded.end(), b.excluded.begin(), b.excluded.end());
  merge_properties(out, b);
  merge_required(out, b);
  out.name_patterns.insert(out.name_patterns.end(), b.name_patterns.begin(), b.name_patterns.end());
  append(out.names, b.names);
  out.min_properties = std::max(a.min_properties, b.min_properties);
  out.max_properties = std::min(a.max_properties, b.max_properties);
  out.closed = a.closed || b.closed;
  out.closed_items = a.closed_items || b.closed_items;
  out.negated = a.negated || b.negated;
  if (b.unique != nullptr) out.unique = b.unique;
  // The same for items.
  for (std::size_t i = 0; i < std::max(out.prefix.size(), b.prefix.size()); ++i) {
    if (i >= out.prefix.size()) out.prefix.push_back(a.items);
    append(out.prefix[i], i < b.prefix.size() ? b.prefix[i] : b.items);
  }
  append(out.items, b.items);
  out.min_items = std::max(a.min_items, b.min_items);
  out.max_items = std::min(a.max_items, b.max_items);
  out.min_length = std::max(a.min_length, b.min_length);
  out.max_length = std::min(a.max_length, b.max_length);
  out.patterns.insert(out.patterns.end(), b.patterns.begin(), b.patterns.end());
  out.not_patterns.insert(out.not_patterns.end(), b.not_patterns.begin(), b.not_patterns.end());
  out.multiples.insert(out.multiples.end(), b.multiples.begin(), b.multiples.end());
  out.lower = tighter(a.lower, b.lower, 1);
  out.upper = tighter(a.upper, b.upper, -1);
  return a;
}

// A property named by only one side is an additional property of the other.
void SchemaReader::merge_properties(SchemaCase& to, const SchemaCase& b) {
  const auto name_of = [](const SchemaCase::Property& p) { return std::string_view(p.name); };
  if (!b.properties.empty() && !to.properties.empty()) {
    spend(5 * to.properties.size());
    // The views stay valid: nothing is added to `to` meanwhile, and b's names are read from b.
    const NamePlaces own(to.properties, name_of);
    const std::size_t count = to.properties.size();
    std::vector<bool> named(count);
    for (const SchemaCase::Property& p : b.properties) {
      const std::optional<std::size_t> place = own.find(p.name);
      if (place) {
        append(to.properties[*place].schemas, p.schemas);
        named[*place] = true;
      }
    }
    if (!b.additional.empty() || !b.name_patterns.empty())
      for (std::size_t i = 0; i < count; ++i)
        if (!named[i]) append(to.properties[i].schemas, schemas_of_other(b, to.properties[i].name));
    std::vector<SchemaCase::Property> more;
    for (const SchemaCase::Property& p : b.properties) {
      if (own.find(p.name)) continue;
      more.push_back(p);
      append(more.back().schemas, schemas_of_other(to, p.name));
    }
    std::move(more.begin(), more.end(), std::back_inserter(to.properties));
  } else if (b.properties.empty()) {
    if (b.additional.empty() && b.name_patterns.empty()) return;
    spend(to.properties.size());
    for (SchemaCase::Property& p : to.properties) append(p.schemas, schemas_of_other(b, p.name));
  } else {
    for (const SchemaCase::Property& p : b.properties) {
      to.properties.push_back(p);
      append(to.properties.back().schemas, schemas_of_other(to, p.name));
    }
  }
  append(to.additional, b.additional);
}

void SchemaReader::merge_required(SchemaCase& to, const SchemaCase& b) {
  if (b.required.empty()) return;
  spend(5 * to.required.size());
  std::unordered_set<std::string> known(to.required.begin(), to.required.end());
  for (const std::string& name : b.required)
    if (known.insert(name).second) to.required.push_back(name);
}

}  // namespace rlx
