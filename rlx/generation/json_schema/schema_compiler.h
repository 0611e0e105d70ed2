// Makes a grammar of a schema: one rule for every conjunction of schemas.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rlx/generation/json_schema/json_expressions.h"
#include "rlx/generation/json_schema/schema_cases.h"

namespace rlx {

class SchemaCompiler {
 public:
  SchemaCompiler(const SchemaValue& root, const JsonSchemaOptions& options)
      : root_(root), json_(rules_, options), reader_(root, options.closed) {}

  GrammarRules compile();

 private:
  /// A member of an object in the order of the schema.
  struct Member {
    ExprId expr = 0;
    bool required = false;
  };

  ExprId value(const Schemas& schemas);
  ExprId body(const Schemas& schemas);
  ExprId fitting(const SchemaCase& c, const SchemaValue& where);
  static unsigned types_of(const SchemaCase& c);

  // schema_scalars.cpp
  ExprId boolean(const SchemaCase& c);
  ExprId number(const SchemaCase& c);
  ExprId string(const SchemaCase& c, const SchemaValue& where);
  CodePointDfa number_dfa(const SchemaCase& c);
  CodePointDfa string_dfa(const SchemaCase& c, std::string_view where);

  // schema_containers.cpp
  ExprId array(const SchemaCase& c, const SchemaValue& where);
  ExprId unique_array(const SchemaCase& c);
  std::optional<std::vector<const SchemaValue*>> finite_values(const Schemas& schemas);
  ExprId object(const SchemaCase& c, const SchemaValue& where);
  ExprId members_in_order(const std::vector<Member>& members, ExprId other);
  ExprId counted_members(const std::vector<Member>& members, ExprId other, std::uint32_t min, std::uint32_t max,
                         const SchemaValue& where);
  ExprId other_members(const SchemaCase& c, std::vector<std::u32string> names, const SchemaValue& where);
  ExprId other_members_by_pattern(const SchemaCase& c, std::vector<std::u32string> names, const SchemaValue& where);
  const CodePointDfa& names_dfa(const Schemas& schemas);
  Schemas schemas_of_member(const SchemaCase& c, const std::string& name);

  // schema_fit.cpp: whether a literal value satisfies the other constraints of its case.
  bool fits(const SchemaValue& v, const SchemaCase& c);
  bool fits(const SchemaValue& v, const Schemas& schemas);
  bool array_fits(const SchemaValue& v, const SchemaCase& c);
  bool object_fits(const SchemaValue& v, const SchemaCase& c);
  bool number_fits(const SchemaValue& v, const SchemaCase& c);
  bool string_fits(const SchemaValue& v, const SchemaCase& c);

  const SchemaValue& root_;
  GrammarRules rules_;
  JsonExpressions json_;
  SchemaReader reader_;
  std::map<Schemas, RuleId> made_;
  std::map<Schemas, std::vector<SchemaCase>> cases_;  // of schemas that `fits` has checked a value against
  std::map<Schemas, CodePointDfa> name_dfas_;
  std::map<std::string, SchemaValue, std::less<>> words_;  // null, true and false
  std::deque<std::pair<RuleId, Schemas>> open_;
};

}  // namespace rlx
