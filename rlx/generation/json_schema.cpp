// Converts JSON schemas to grammars.
#include "rlx/generation/json_schema.h"

#include "rlx/generation/json_schema/schema_compiler.h"

namespace rlx {

Grammar json_schema_grammar(std::string_view schema, const JsonSchemaOptions& options, std::string_view source) {
  const std::unique_ptr<SchemaValue> root = parse_schema_value(schema, source);
  return Grammar::from_rules(SchemaCompiler(*root, options).compile());
}

Grammar json_grammar(const JsonSchemaOptions& options) {
  GrammarRules rules;
  JsonExpressions json(rules, options);
  const RuleId root = rules.add_rule("json", {}, true);
  rules.define(root, json.any_value());
  rules.set_root(root);
  return Grammar::from_rules(rules);
}

}  // namespace rlx
