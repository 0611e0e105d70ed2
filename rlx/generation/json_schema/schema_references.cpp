// Collects anchors and identifiers once, and follows references.
#include "rlx/generation/json_schema/schema_references.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace rlx {
namespace {

bool is_map_of_schemas(std::string_view key) {
  return key == "properties" || key == "patternProperties" || key == "$defs" || key == "definitions" ||
         key == "dependentSchemas" || key == "dependencies";
}
bool is_plain_value(std::string_view key) {
  return key == "enum" || key == "const" || key == "default" || key == "examples" || key == "example";
}

// A part of a JSON pointer in a URI, without its escapes.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("~0") || rest.starts_with("~1")) {
      out += rest[1] == '0' ? '~' : '/';
      ++i;
    } else if (rest.starts_with('%') && rest.size() > 2 && std::isxdigit(static_cast<unsigned char>(rest[1])) != 0 &&
               std::isxdigit(static_cast<unsigned char>(rest[2])) != 0) {
      out += static_cast<char>(std::stoi(std::string(rest.substr(1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

const SchemaValue* child_of(const SchemaValue& at, const std::string& key) {
  if (at.kind != JsonKind::Array) return at.find(key);
  if (key.empty() || key.size() >= 10 || (key.size() > 1 && key[0] == '0') ||
      key.find_first_not_of("0123456789") != std::string::npos)
    return nullptr;
  const std::size_t i = std::stoul(key);
  return i < at.elements.size() ? at.elements[i].get() : nullptr;
}

}  // namespace

SchemaReferences::SchemaReferences(const SchemaValue& root) : root_(root) { read(root, root); }

void SchemaReferences::add_anchor(const SchemaValue& name, std::string_view text, const SchemaValue& resource,
                                  const SchemaValue& schema) {
  if (!anchors_.emplace(std::pair{&resource, std::string(text)}, &schema).second)
    name.fail(ErrorCode::BadFile, concat_text("the anchor '", text, "' occurs twice"));
}

void SchemaReferences::read(const SchemaValue& schema, const SchemaValue& around) {
  const SchemaValue* resource = &around;
  if (const SchemaValue* id = schema.find("$id"); id != nullptr && id->kind == JsonKind::String) {
    const std::string_view text = id->text;
    if (text.starts_with('#')) {  // an anchor of draft 7 and older
      add_anchor(*id, text.substr(1), around, schema);
    } else {
      resource = &schema;
      if (!ids_.emplace(text.substr(0, text.find('#')), &schema).second)
        id->fail(ErrorCode::BadFile, concat_text("the $id '", text, "' occurs twice"));
    }
  }
  for (const auto& [key, value] : schema.members) {
    if (is_plain_value(key)) continue;
    if (key == "$ref") resources_[value.get()] = resource;
    if (key == "$anchor" && value->kind == JsonKind::String) add_anchor(*value, value->text, *resource, schema);
    if (is_map_of_schemas(key)) {
      for (const auto& [name, e] : value->members) read(*e, *resource);
    } else {
      read(*value, *resource);
    }
  }
  for (const auto& e : schema.elements) read(*e, *resource);
}

const SchemaValue& SchemaReferences::resource_named(const SchemaValue& reference, std::string_view name) const {
  const auto around = resources_.find(&reference);
  const SchemaValue& resource = around == resources_.end() ? root_ : *around->second;
  if (name.empty()) return resource;
  if (const auto found = ids_.find(name); found != ids_.end()) return *found->second;
  // Relative to the $id around it: the last part of its path is replaced.
  if (const SchemaValue* id = resource.find("$id"); id != nullptr && id->kind == JsonKind::String) {
    const std::string_view own = std::string_view(id->text).substr(0, id->text.find('#'));
    const std::size_t scheme = own.find("://"), authority = scheme == std::string_view::npos ? 0 : scheme + 3;
    const std::size_t slash = name.starts_with('/') ? own.find('/', authority) : own.rfind('/');
    const std::size_t whole = scheme == std::string_view::npos ? 0 : own.size();
    std::string joined(own.substr(0, slash == std::string_view::npos || slash < authority ? whole : slash));
    if (!joined.empty() && !name.starts_with('/')) joined += '/';
    joined += name;
    if (const auto found = ids_.find(joined); found != ids_.end()) return *found->second;
  }
  reference.fail(ErrorCode::Unsupported, concat_text("$ref '", reference.text, "' refers to another document"),
                 "copy the referenced schema into $defs");
}

const SchemaValue& SchemaReferences::target(const SchemaValue& reference) const {
  const std::string& text = reference.as_text();
  const std::size_t hash = std::min(text.find('#'), text.size());
  const SchemaValue& resource = resource_named(reference, std::string_view(text).substr(0, hash));
  const std::string_view fragment = hash < text.size() ? std::string_view(text).substr(hash + 1) : std::string_view();
  if (fragment.empty()) return resource;
  if (!fragment.starts_with('/')) {
    if (const auto found = anchors_.find({&resource, unescaped(fragment)}); found != anchors_.end())
      return *found->second;
    std::vector<std::string> names;
    for (const auto& [key, schema] : anchors_)
      if (key.first == &resource) names.push_back(key.second);
    reference.fail(ErrorCode::BadFile, concat_text("$ref '", text, "' names an $anchor that does not exist"),
                   did_you_mean(std::string(fragment), names, "write #/$defs/name, or $anchor in the schema meant"));
  }
  const SchemaValue* at = &resource;
  for (std::size_t begin = 1; begin <= fragment.size();) {
    const std::size_t end = std::min(fragment.find('/', begin), fragment.size());
    at = child_of(*at, unescaped(fragment.substr(begin, end - begin)));
    if (at == nullptr)
      reference.fail(ErrorCode::BadFile, concat_text("$ref '", text, "' refers to a schema that does not exist"));
    begin = end + 1;
  }
  return *at;
}

}  // namespace rlx
