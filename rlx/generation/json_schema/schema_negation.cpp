// The cases of values that do not satisfy a schema: those of each keyword that is not satisfied.
#include <algorithm>
#include <iterator>
#include <utility>

#include "rlx/generation/json_schema/schema_cases.h"

namespace rlx {
namespace {

// Values of one type alone.
SchemaCase only(unsigned type) {
  SchemaCase c;
  c.types = type;
  c.types_stated = true;
  return c;
}

// A condition that can be stated but not denied.
[[noreturn]] void refuse_negation(const SchemaValue& value, std::string_view key) {
  value.fail(ErrorCode::Unsupported, concat_text("the keyword ", key, " under not or if cannot become a grammar"),
             "say what is allowed instead");
}

}  // namespace

const SchemaValue& SchemaReader::negation_of(const SchemaValue& schema) {
  if (schema.negated != nullptr) return *schema.negated;
  if (schema.kind == JsonKind::Bool) return schema.flag ? never_ : always_;
  std::unique_ptr<SchemaValue>& made = negations_[&schema];
  if (!made) {
    made = std::make_unique<SchemaValue>();
    made->kind = JsonKind::Object;
    made->pointer = schema.pointer;
    made->negated = &schema;
  }
  return *made;
}

const SchemaValue& SchemaReader::constant_of(const SchemaValue& value) {
  std::unique_ptr<SchemaValue>& made = constants_[&value];
  if (!made) {
    made = std::make_unique<SchemaValue>();
    made->kind = JsonKind::Object;
    made->pointer = value.pointer;
    made->constant = &value;
  }
  return *made;
}

std::vector<SchemaCase> SchemaReader::cases_of_not(const SchemaValue& schema) {
  if (schema.kind == JsonKind::Bool) return schema.flag ? std::vector<SchemaCase>() : std::vector<SchemaCase>(1);
  if (schema.kind != JsonKind::Object) schema.fail(ErrorCode::BadFile, "a schema must be an object, true or false");
  if (schema.negated != nullptr) return cases_of(*schema.negated);
  if (schema.constant != nullptr) return cases_of_others({schema.constant}, schema);
  if (!open_negations_.insert(&schema).second) schema.fail(ErrorCode::BadFile, "this schema refers to itself directly");
  if (open_negations_.size() > kMaxNestedSchemas)
    schema.fail(ErrorCode::Unsupported, "not, if and $ref are nested too deeply");
  spend(1 + schema.members.size());
  (void)own_case(schema);  // checks the keywords
  std::vector<SchemaCase> out;
  for (const auto& [key, value] : schema.members) {
    if (is_annotation(key)) continue;
    add_negated_keyword(schema, key, *value, out);
    if (out.size() > kMaxSchemaCases) (void)product(std::vector<SchemaCase>(2), out, *value);  // throws
  }
  open_negations_.erase(&schema);
  return out;
}

void SchemaReader::add_negated_keyword(const SchemaValue& schema, const std::string& key, const SchemaValue& value,
                                       std::vector<SchemaCase>& out) {
  const auto add_all = [&](std::vector<SchemaCase> more) {
    std::move(more.begin(), more.end(), std::back_inserter(out));
  };
  if (key == "type") {
    SchemaCase stated;
    read_types(schema, value, stated);
    if ((SchemaCase::kAll & ~stated.types) != 0) out.push_back(only(SchemaCase::kAll & ~stated.types));
    if ((stated.types & SchemaCase::kNumber) != 0 && stated.integers) {
      SchemaCase fractions = only(SchemaCase::kNumber);
      fractions.multiples.push_back({*Decimal::parse("1"), false, &value});
      out.push_back(std::move(fractions));
    }
  } else if (key == "const") {
    add_all(cases_of_others({&value}, value));
  } else if (key == "enum") {
    std::vector<const SchemaValue*> values;
    for (const auto& e : value.elements) values.push_back(e.get());
    add_all(cases_of_others(values, value));
  } else if (const std::optional<NumberLimit> limit = limit_of_keyword(key, value)) {
    SchemaCase beyond = only(SchemaCase::kNumber);
    const bool lower = key == "minimum" || key == "exclusiveMinimum";
    (lower ? beyond.upper : beyond.lower) = NumberLimit{limit->value, !limit->exclusive};
    out.push_back(std::move(beyond));
  } else if (key == "multipleOf") {
    SchemaCase others = only(SchemaCase::kNumber);
    others.multiples.push_back({divisor_of(value), false, &value});
    out.push_back(std::move(others));
  } else if (key == "minLength" || key == "minItems" || key == "minProperties") {
    if (value.as_count() == 0) return;
    SchemaCase less = only(key == "minLength"  ? SchemaCase::kString
                           : key == "minItems" ? SchemaCase::kArray
                                               : SchemaCase::kObject);
    (key == "minLength"  ? less.max_length
     : key == "minItems" ? less.max_items
                         : less.max_properties) = value.as_count() - 1;
    out.push_back(std::move(less));
  } else if (key == "maxLength" || key == "maxItems" || key == "maxProperties") {
    SchemaCase more = only(key == "maxLength"  ? SchemaCase::kString
                           : key == "maxItems" ? SchemaCase::kArray
                                               : SchemaCase::kObject);
    (key == "maxLength"  ? more.min_length
     : key == "maxItems" ? more.min_items
                         : more.min_properties) = value.as_count() + 1;
    out.push_back(std::move(more));
  } else if (key == "pattern" || key == "format") {
    SchemaCase others = only(SchemaCase::kString);
    others.not_patterns.push_back(&value);
    out.push_back(std::move(others));
  } else if (key == "$ref") {
    add_all(cases_of_not(target(value)));
  } else if (key == "not") {
    std::vector<SchemaCase> all = cases_of(value);
    for (SchemaCase& c : all) c.types_stated = true;  // values of other types satisfy it
    add_all(std::move(all));
  } else if (key == "allOf") {
    for (const auto& e : schema_list(value)) add_all(cases_of_not(*e));
  } else if (key == "anyOf") {
    std::vector<SchemaCase> none(1);
    for (const auto& e : schema_list(value)) none = product(std::move(none), cases_of_not(*e), value);
    add_all(std::move(none));
  } else if (key == "oneOf") {
    add_all(cases_of_not_one(value));
  } else if (key == "if") {
    if (const SchemaValue* then = schema.find("then")) add_all(product(cases_of(value), cases_of_not(*then), value));
    if (const SchemaValue* otherwise = schema.find("else"))
      add_all(product(cases_of_not(value), cases_of_not(*otherwise), value));
  } else if (key != "then" && key != "else" && key != "nullable") {
    add_negated_members(schema, key, value, out);
  }
}

// Keywords of the members of objects and the items of arrays.
void SchemaReader::add_negated_members(const SchemaValue& schema, const std::string& key, const SchemaValue& value,
                                       std::vector<SchemaCase>& out) {
  const auto with = [](const std::string& name) {
    SchemaCase c = only(SchemaCase::kObject);
    c.required.push_back(name);
    return c;
  };
  const auto without = [&](SchemaCase c, const std::string& name) {
    c.properties.push_back({name, {&never_}});
    c.negated = true;
    return c;
  };
  const auto longer_than = [&](std::size_t count) {
    SchemaCase c = only(SchemaCase::kArray);
    c.min_items = static_cast<std::uint32_t>(count + 1);
    return c;
  };
  const SchemaValue* list =
      key == "prefixItems" || (key == "items" && value.kind == JsonKind::Array) ? &value : nullptr;
  const SchemaValue* prefix = key == "items" ? schema.find("prefixItems") : schema.find("items");  // before these items
  const bool of_rest =
      key == "items" || (key == "additionalItems" && prefix != nullptr && prefix->kind == JsonKind::Array);
  const bool anything = (value.kind == JsonKind::Bool && value.flag) ||
                        (value.kind == JsonKind::Object && value.members.empty() && value.elements.empty());
  if (key == "required") {
    for (const auto& e : value.elements) out.push_back(without(only(SchemaCase::kObject), e->as_text()));
  } else if (key == "properties") {
    for (const auto& [name, e] : value.members) {
      SchemaCase other = with(name);
      other.properties.push_back({name, {&negation_of(*e)}});
      other.negated = true;
      out.push_back(std::move(other));
    }
  } else if (list != nullptr) {
    for (std::size_t i = 0; i < list->elements.size(); ++i) {
      SchemaCase other = longer_than(i);
      other.prefix.resize(i + 1);
      other.prefix[i] = {&negation_of(*list->elements[i])};
      out.push_back(std::move(other));
    }
  } else if (of_rest && value.kind == JsonKind::Bool && !value.flag) {
    out.push_back(longer_than(prefix == nullptr ? 0 : prefix->elements.size()));
  } else if (key.starts_with("depend")) {
    for (const auto& [name, e] : value.members) {
      if (e->kind == JsonKind::Array) {
        for (const auto& other : e->elements) out.push_back(without(with(name), other->as_text()));
      } else {
        for (SchemaCase& c : product({with(name)}, cases_of_not(*e), value)) out.push_back(std::move(c));
      }
    }
  } else if (key == "uniqueItems" ? value.flag : !anything && (key != "additionalItems" || of_rest)) {
    refuse_negation(value, key);
  }
}

// None of the alternatives, or two of them.
std::vector<SchemaCase> SchemaReader::cases_of_not_one(const SchemaValue& alternatives) {
  const auto& list = schema_list(alternatives);
  std::vector<SchemaCase> out(1);
  for (const auto& e : list) out = product(std::move(out), cases_of_not(*e), alternatives);
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      std::vector<SchemaCase> both = product(cases_of(*list[i]), cases_of(*list[k]), alternatives);
      std::move(both.begin(), both.end(), std::back_inserter(out));
      if (out.size() > kMaxSchemaCases) (void)product(std::vector<SchemaCase>(2), out, alternatives);  // throws
    }
  return out;
}

// Values that equal none of `values`.
std::vector<SchemaCase> SchemaReader::cases_of_others(const std::vector<const SchemaValue*>& values,
                                                      const SchemaValue& where) {
  std::vector<SchemaCase> out(1);
  for (const SchemaValue* v : values) {
    if (v->kind != JsonKind::Array && v->kind != JsonKind::Object) {
      for (SchemaCase& c : out) c.excluded.push_back(v);
      spend(out.size());
      continue;
    }
    // Another type, another size, or a part that differs.
    const bool is_array = v->kind == JsonKind::Array;
    const unsigned type = is_array ? SchemaCase::kArray : SchemaCase::kObject;
    const auto size = static_cast<std::uint32_t>(is_array ? v->elements.size() : v->members.size());
    SchemaCase longer = only(type);
    (is_array ? longer.min_items : longer.min_properties) = size + 1;
    std::vector<SchemaCase> others{only(SchemaCase::kAll & ~type), std::move(longer)};
    if (is_array && size > 0) {
      SchemaCase shorter = only(type);
      shorter.max_items = size - 1;
      others.push_back(std::move(shorter));
      for (std::uint32_t i = 0; i < size; ++i) {
        SchemaCase c = only(type);
        c.min_items = i + 1;
        c.prefix.resize(i + 1);
        c.prefix[i] = {&negation_of(constant_of(*v->elements[i]))};
        others.push_back(std::move(c));
      }
    }
    for (const auto& [name, e] : v->members) {
      SchemaCase absent = only(type), differs = only(type);
      absent.properties.push_back({name, {&never_}});
      differs.required.push_back(name);
      differs.properties.push_back({name, {&negation_of(constant_of(*e))}});
      absent.negated = differs.negated = true;
      others.push_back(std::move(absent));
      others.push_back(std::move(differs));
    }
    out = product(std::move(out), others, where);
  }
  return out;
}

}  // namespace rlx
