// What the references of a schema point to: JSON pointers, anchors, and schemas with an $id of their own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "rlx/generation/json_schema/schema_value.h"

namespace rlx {

class SchemaReferences {
 public:
  /// Errors: BadFile for an anchor or $id that occurs twice.
  explicit SchemaReferences(const SchemaValue& root);
  /// The schema that a value of `$ref` names. Errors: BadFile for one that does not exist; Unsupported for one in
  /// another document.
  const SchemaValue& target(const SchemaValue& reference) const;

 private:
  void read(const SchemaValue& schema, const SchemaValue& resource);
  void add_anchor(const SchemaValue& name, std::string_view text, const SchemaValue& resource,
                  const SchemaValue& schema);
  const SchemaValue& resource_named(const SchemaValue& reference, std::string_view name) const;

  const SchemaValue& root_;
  std::unordered_map<const SchemaValue*, const SchemaValue*> resources_;  // the schema with an $id around each $ref
  std::map<std::pair<const SchemaValue*, std::string>, const SchemaValue*> anchors_;  // by resource and name
  std::map<std::string, const SchemaValue*, std::less<>> ids_;
};

}  // namespace rlx
