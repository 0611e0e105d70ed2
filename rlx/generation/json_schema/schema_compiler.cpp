// The rules of conjunctions, made until none is open.
#include "rlx/generation/json_schema/schema_compiler.h"

#include <algorithm>

namespace rlx {
namespace {

constexpr std::size_t kMaxRules = 40'000;

}  // namespace

GrammarRules SchemaCompiler::compile() {
  const ExprId root = value({&root_});
  while (!open_.empty()) {
    const auto [rule, schemas] = std::move(open_.front());
    open_.pop_front();
    rules_.define(rule, body(schemas));
  }
  const RuleId start = rules_.add_rule("schema", root_.pointer, true);
  rules_.define(start, root);
  rules_.set_root(start);
  return std::move(rules_);
}

// The rule of values that satisfy all schemas. Its body is made later.
ExprId SchemaCompiler::value(const Schemas& schemas) {
  const std::optional<Schemas> simple = reader_.simplified(schemas);
  if (!simple) return rules_.never();
  if (simple->empty()) return json_.any_value();
  const auto known = made_.find(*simple);
  if (known != made_.end()) return rules_.rule(known->second);
  const SchemaValue& first = *simple->front();
  if (made_.size() >= kMaxRules) first.fail(ErrorCode::Unsupported, "the schema makes too many rules");
  const RuleId rule = rules_.add_rule(first.pointer, first.pointer, true);
  made_[*simple] = rule;
  open_.emplace_back(rule, *simple);
  return rules_.rule(rule);
}

ExprId SchemaCompiler::body(const Schemas& schemas) {
  if (schemas.size() == 1) {
    if (const SchemaValue* alternatives = reader_.only_alternatives(*schemas[0])) {
      std::vector<ExprId> choices;
      for (const auto& e : alternatives->elements) choices.push_back(value({e.get()}));
      return rules_.choice(std::move(choices));
    }
  }
  std::vector<ExprId> choices;
  for (const SchemaCase& c : reader_.cases(schemas)) choices.push_back(fitting(c, *schemas[0]));
  return rules_.choice(std::move(choices));
}

// A schema without `type` allows only the types that its keywords constrain.
unsigned SchemaCompiler::types_of(const SchemaCase& c) {
  const bool one = c.constrained != 0 && (c.constrained & (c.constrained - 1)) == 0;
  return !c.types_stated && one ? c.types & c.constrained : c.types;
}

ExprId SchemaCompiler::fitting(const SchemaCase& c, const SchemaValue& where) {
  std::vector<ExprId> choices;
  if (c.values) {
    for (const SchemaValue* v : *c.values)
      if (fits(*v, c)) choices.push_back(json_.literal(*v));
    return rules_.choice(std::move(choices));
  }
  const unsigned types = types_of(c);
  const auto excluded = [&](JsonKind kind) {
    return std::ranges::any_of(c.excluded, [&](const SchemaValue* v) { return v->kind == kind; });
  };
  if ((types & SchemaCase::kObject) != 0) choices.push_back(object(c, where));
  if ((types & SchemaCase::kArray) != 0) choices.push_back(array(c, where));
  if ((types & SchemaCase::kString) != 0) choices.push_back(string(c, where));
  if ((types & SchemaCase::kNumber) != 0) choices.push_back(number(c));
  if ((types & SchemaCase::kBoolean) != 0) choices.push_back(boolean(c));
  if ((types & SchemaCase::kNull) != 0 && !excluded(JsonKind::Null)) choices.push_back(json_.null());
  return rules_.choice(std::move(choices));
}

}  // namespace rlx
