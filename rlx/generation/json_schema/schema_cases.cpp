// Converts JSON Schema keywords to cases, and intersects cases.
#include "rlx/generation/json_schema/schema_cases.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace rlx {
namespace {

constexpr std::size_t kMaxCases = 1000, kMaxNested = 1000;

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
      {"not", "list what is allowed instead"},
      {"if", "write the cases as anyOf"},
      {"then", "write the cases as anyOf"},
      {"else", "write the cases as anyOf"},
      {"patternProperties", "name the properties, or use additionalProperties"},
      {"propertyNames", "name the properties"},
      {"dependentRequired", "write the cases as anyOf"},
      {"dependentSchemas", "write the cases as anyOf"},
      {"dependencies", "write the cases as anyOf"},
      {"maxProperties", "name the properties"},
      {"contains", "use prefixItems"},
      {"minContains", "use prefixItems"},
      {"maxContains", "use prefixItems"},
      {"unevaluatedItems", "use items"},
      {"additionalItems", "use prefixItems and items"},
      {"multipleOf", "list the values by enum"},
      {"$dynamicRef", "use $ref"},
      {"$recursiveRef", "use $ref"},
      {"nullable", "write type: [..., \"null\"]"},
      {"extends", "use allOf"},
  };
  return all;
}
const std::set<std::string, std::less<>>& keywords() {
  static const std::set<std::string, std::less<>> all{"type",
                                                      "enum",
                                                      "const",
                                                      "properties",
                                                      "required",
                                                      "additionalProperties",
                                                      "unevaluatedProperties",
                                                      "minItems",
                                                      "maxItems",
                                                      "prefixItems",
                                                      "items",
                                                      "pattern",
                                                      "format",
                                                      "minProperties",
                                                      "minLength",
                                                      "maxLength",
                                                      "minimum",
                                                      "maximum",
                                                      "$ref",
                                                      "exclusiveMinimum",
                                                      "exclusiveMaximum",
                                                      "anyOf",
                                                      "oneOf",
                                                      "allOf",
                                                      "uniqueItems"};
  return all;
}

bool is_annotation(std::string_view key) { return annotations().count(key) != 0 || key.starts_with("x-"); }

// The tighter of two limits; `sign` is 1 for lower limits.
std::optional<NumberLimit> tighter(const std::optional<NumberLimit>& a, const std::optional<NumberLimit>& b, int sign) {
  if (!a || !b) return a ? a : b;
  const int order = sign * compare(a->value, b->value);
  if (order == 0) return NumberLimit{a->value, a->exclusive || b->exclusive};
  return order > 0 ? a : b;
}

void append(Schemas& to, const Schemas& more) {
  for (const SchemaValue* s : more)
    if (std::find(to.begin(), to.end(), s) == to.end()) to.push_back(s);
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

const std::vector<std::unique_ptr<SchemaValue>>& schema_list(const SchemaValue& value) {
  if (value.kind != JsonKind::Array || value.elements.empty())
    value.fail(ErrorCode::BadFile, "must be a list of schemas, not empty");
  return value.elements;
}

}  // namespace

SchemaValue SchemaReader::false_schema() {
  SchemaValue v;
  v.kind = JsonKind::Bool;
  return v;
}

const SchemaValue& SchemaReader::target(const SchemaValue& reference) const {
  const std::string& text = reference.as_text();
  if (!text.starts_with('#')) {
    reference.fail(ErrorCode::Unsupported, concat_text("$ref '", text, "' refers to another document"),
                   "copy the referenced schema into $defs");
  }
  const SchemaValue* at = &root_;
  if (text != "#" && !text.starts_with("#/"))
    reference.fail(ErrorCode::Unsupported, concat_text("$ref '", text, "' is not a JSON pointer"),
                   "write #/$defs/name");
  for (std::size_t begin = 2; begin <= text.size() && text.size() > 1;) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    std::string key;
    for (std::size_t i = begin; i < end; ++i) {
      const std::string_view rest = std::string_view(text).substr(i, end - i);
      if (rest.starts_with("~0") || rest.starts_with("~1")) {
        key += rest[1] == '0' ? '~' : '/';
        ++i;
      } else if (rest.starts_with('%') && rest.size() > 2 && std::isxdigit(static_cast<unsigned char>(rest[1])) != 0 &&
                 std::isxdigit(static_cast<unsigned char>(rest[2])) != 0) {
        key += static_cast<char>(std::stoi(std::string(rest.substr(1, 2)), nullptr, 16));
        i += 2;
      } else {
        key += text[i];
      }
    }
    const SchemaValue* next = at->find(key);
    if (at->kind == JsonKind::Array && !key.empty() && key.size() < 10 && (key == "0" || key[0] != '0') &&
        key.find_first_not_of("0123456789") == std::string::npos) {
      const std::size_t i = std::stoul(key);
      if (i < at->elements.size()) next = at->elements[i].get();
    }
    if (next == nullptr)
      reference.fail(ErrorCode::BadFile, concat_text("$ref '", text, "' refers to a schema that does not exist"));
    at = next;
    begin = end + 1;
  }
  return *at;
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
  std::vector<SchemaCase> all{own_case(schema)};
  for (const auto& [key, value] : schema.members) {
    if (key == "$ref") {
      all = product(std::move(all), cases_of(target(*value)), *value);
    } else if (key == "allOf") {
      for (const auto& e : schema_list(*value)) all = product(std::move(all), cases_of(*e), *value);
    } else if (key == "anyOf" || key == "oneOf") {
      std::vector<SchemaCase> alternatives;
      for (const auto& e : schema_list(*value)) {
        for (SchemaCase& c : cases_of(*e)) alternatives.push_back(std::move(c));
        if (alternatives.size() > kMaxCases)
          (void)product(std::vector<SchemaCase>(2), alternatives, *value);  // throws the error
      }
      all = product(std::move(all), alternatives, *value);
    }
  }
  if (const SchemaValue* rest = schema.find("unevaluatedProperties")) {
    for (SchemaCase& c : all)
      if (c.additional.empty()) c.additional = {rest};
  }
  open_.erase(&schema);
  return all;
}

SchemaCase SchemaReader::own_case(const SchemaValue& schema) {
  SchemaCase out;
  for (const auto& [key, value] : schema.members)
    if (!is_annotation(key)) read_keyword(schema, key, *value, out);
  if (closed_ && (schema.find("properties") != nullptr) && schema.find("additionalProperties") == nullptr &&
      schema.find("unevaluatedProperties") == nullptr)
    out.additional = {&never_};
  if (closed_ && schema.find("prefixItems") != nullptr && schema.find("items") == nullptr) out.items = {&never_};
  return out;
}

void SchemaReader::read_types(const SchemaValue& value, SchemaCase& out) {
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
}

bool SchemaReader::read_number_keyword(const std::string& key, const SchemaValue& value, SchemaCase& out) {
  const bool exclusive = key.starts_with("exclusive");
  const bool lower = key == "minimum" || key == "exclusiveMinimum";
  if (!lower && key != "maximum" && key != "exclusiveMaximum") return false;
  if (value.kind == JsonKind::Bool)
    value.fail(ErrorCode::Unsupported, concat_text(key, " as true or false is from draft 4"),
               "give the limit as a number");
  if (!value.is_number()) value.fail(ErrorCode::BadFile, "must be a number");
  const std::optional<Decimal> limit = Decimal::parse(value.text);
  if (!limit) value.fail(ErrorCode::Unsupported, "the limit has more than 400 digits", "leave it out");
  (lower ? out.lower : out.upper) =
      tighter(lower ? out.lower : out.upper, NumberLimit{*limit, exclusive}, lower ? 1 : -1);
  out.constrained |= SchemaCase::kNumber;
  return true;
}

void SchemaReader::read_keyword(const SchemaValue& schema, const std::string& key, const SchemaValue& value,
                                SchemaCase& out) {
  if (const auto found = impossible().find(key); found != impossible().end()) {
    if (key == "multipleOf" && value.is_number() && value.number == 1) {
      const SchemaValue* type = schema.find("type");
      if (type != nullptr && type->kind == JsonKind::String && type->text == "integer") return;
    }
    value.fail(ErrorCode::Unsupported, concat_text("the keyword ", key, " cannot become a grammar"), found->second);
  }
  if (keywords().count(key) == 0) {
    std::vector<std::string> known(keywords().begin(), keywords().end());
    value.fail(ErrorCode::Unsupported, concat_text("unknown keyword '", key, "', which might constrain"),
               did_you_mean(key, known, "use the prefix x- for your own annotations"));
  }
  if (read_number_keyword(key, value, out)) return;
  if (key == "type") {
    read_types(value, out);
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
  } else if (key == "minProperties") {
    out.min_properties = value.as_count();
    out.constrained |= SchemaCase::kObject;
  } else if (key == "prefixItems") {
    for (const auto& e : schema_list(value)) out.prefix.push_back({e.get()});
    out.constrained |= SchemaCase::kArray;
  } else if (key == "items") {
    if (value.kind == JsonKind::Array)
      value.fail(ErrorCode::Unsupported, "items as a list is from draft 7", "use prefixItems");
    out.items = {&value};
    out.constrained |= SchemaCase::kArray;
  } else if (key == "minItems" || key == "maxItems") {
    (key == "minItems" ? out.min_items : out.max_items) = value.as_count();
    out.constrained |= SchemaCase::kArray;
  } else if (key == "uniqueItems") {
    if (value.as_flag()) value.fail(ErrorCode::Unsupported, "the keyword uniqueItems cannot become a grammar");
  } else if (key == "minLength" || key == "maxLength") {
    (key == "minLength" ? out.min_length : out.max_length) = value.as_count();
    out.constrained |= SchemaCase::kString;
  } else if (key == "pattern" || key == "format") {
    (void)value.as_text();
    out.patterns.push_back(&value);
    out.constrained |= SchemaCase::kString;
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
  merge_properties(out, b);
  merge_required(out, b);
  out.min_properties = std::max(a.min_properties, b.min_properties);
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
    if (!b.additional.empty())
      for (std::size_t i = 0; i < count; ++i)
        if (!named[i]) append(to.properties[i].schemas, b.additional);
    std::vector<SchemaCase::Property> more;
    for (const SchemaCase::Property& p : b.properties) {
      if (own.find(p.name)) continue;
      more.push_back(p);
      append(more.back().schemas, to.additional);
    }
    std::move(more.begin(), more.end(), std::back_inserter(to.properties));
  } else if (b.properties.empty()) {
    if (!b.additional.empty()) spend(to.properties.size());
    for (SchemaCase::Property& p : to.properties) append(p.schemas, b.additional);
  } else {
    for (const SchemaCase::Property& p : b.properties) {
      to.properties.push_back(p);
      append(to.properties.back().schemas, to.additional);
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
