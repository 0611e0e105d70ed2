// JSON as grammar expressions: strings, numbers, punctuation with white space, any value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/generation/grammar/grammar_rules.h"
#include "rlx/generation/json_schema.h"
#include "rlx/generation/json_schema/schema_value.h"

namespace rlx {

/// Makes expressions in the rules of one grammar. Equal expressions are made once.
class JsonExpressions {
 public:
  JsonExpressions(GrammarRules& rules, const JsonSchemaOptions& options);

  ExprId space() const { return space_; }  // between a bracket and its content
  ExprId comma() const { return comma_; }
  ExprId colon() const { return colon_; }

  ExprId null() { return rules_.bytes("null"); }
  ExprId boolean() { return rules_.choice({rules_.bytes("true"), rules_.bytes("false")}); }
  ExprId number();
  ExprId integer();
  /// A string of `min` to `max` characters in any spelling. Escaped surrogates come in pairs and count as one
  /// character.
  ExprId string(std::uint32_t min, std::uint32_t max);
  /// A character of a string, in the spelling with the fewest escapes.
  ExprId plain_character(const CodePointSet& set);
  /// The string `text` in that spelling.
  ExprId quoted(std::string_view text) { return rules_.bytes(quoted_json(text)); }
  /// A string in that spelling that is not one of `names`.
  ExprId other_string(std::vector<std::u32string> names);
  /// A literal value of the schema.
  ExprId literal(const SchemaValue& value);
  ExprId any_value();
  /// Brackets around `content`, or around nothing if `empty`.
  ExprId bracketed(std::string_view brackets, ExprId content, bool empty);

 private:
  ExprId shared(std::string name, ExprId body);
  ExprId character();
  ExprId escaped_character(const CodePointSet& set);
  ExprId whole_number();
  ExprId other_rest(const std::vector<std::u32string>& names, std::size_t begin, std::size_t end, std::size_t depth);

  GrammarRules& rules_;
  const JsonSchemaOptions options_;
  ExprId space_ = 0, comma_ = 0, colon_ = 0;
  std::optional<ExprId> number_, integer_, character_, escaped_, any_rest_, any_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, ExprId> strings_;
};

}  // namespace rlx
