// Booleans, numbers and strings of a case.
#include <algorithm>

#include "rlx/generation/json_schema/schema_compiler.h"
#include "rlx/generation/json_schema/schema_pattern.h"

namespace rlx {
namespace {

bool has_excluded_number(const SchemaCase& c) {
  return std::ranges::any_of(c.excluded, [](const SchemaValue* v) { return v->is_number(); });
}

}  // namespace

ExprId SchemaCompiler::boolean(const SchemaCase& c) {
  std::vector<ExprId> choices;
  for (const bool flag : {true, false})
    if (!std::ranges::any_of(c.excluded, [&](auto* v) { return v->kind == JsonKind::Bool && v->flag == flag; }))
      choices.push_back(rules_.bytes(flag ? "true" : "false"));
  return rules_.choice(std::move(choices));
}

ExprId SchemaCompiler::number(const SchemaCase& c) {
  if (!c.multiples.empty() || has_excluded_number(c))
    return number_dfa(c).expression(rules_, [&](const CodePointSet& set) { return rules_.one_of(set); });
  if (c.lower || c.upper) return number_range(rules_, c.lower, c.upper, c.integers);
  return c.integers ? json_.integer() : json_.number();
}

// Numbers without exponent within the limits that are multiples, or not, and not excluded.
CodePointDfa SchemaCompiler::number_dfa(const SchemaCase& c) {
  DfaBudget& budget = reader_.dfa_budget();
  const auto in_range = [&](const std::optional<NumberLimit>& low, const std::optional<NumberLimit>& high,
                            bool integers, std::string_view where) {
    GrammarRules rules;
    const ExprId range = number_range(rules, low, high, integers);
    return CodePointDfa::of_expression(rules, range, where, budget);
  };
  const std::string& where = c.multiples.empty() ? c.excluded[0]->pointer : c.multiples[0].keyword->pointer;
  CodePointDfa out = in_range(c.lower, c.upper, c.integers, where);
  for (const SchemaCase::Multiple& m : c.multiples) {
    const CodePointDfa multiples = CodePointDfa::of_multiples(m.divisor, m.keyword->pointer, budget);
    out = CodePointDfa::intersection(out, m.of ? multiples : multiples.complement(), m.keyword->pointer, budget);
  }
  for (const SchemaValue* v : c.excluded) {
    if (!v->is_number()) continue;
    const std::optional<Decimal> d = Decimal::parse(v->text);
    if (!d) v->fail(ErrorCode::Unsupported, "a number of more than 400 digits");
    const CodePointDfa same = in_range(NumberLimit{*d}, NumberLimit{*d}, false, v->pointer);
    out = CodePointDfa::intersection(out, same.complement(), v->pointer, budget);
  }
  return out;
}

ExprId SchemaCompiler::string(const SchemaCase& c, const SchemaValue& where) {
  if (c.min_length > c.max_length) return rules_.never();
  const bool others = !c.not_patterns.empty() ||
                      std::ranges::any_of(c.excluded, [](const SchemaValue* v) { return v->kind == JsonKind::String; });
  if (c.patterns.empty() && !others) return json_.string(c.min_length, c.max_length);
  const std::string& place = !c.patterns.empty()       ? c.patterns[0]->pointer
                             : !c.not_patterns.empty() ? c.not_patterns[0]->pointer
                                                       : where.pointer;
  const auto character = [&](const CodePointSet& set) { return json_.plain_character(set); };
  const bool one_pattern = !c.patterns.empty() && std::ranges::all_of(c.patterns, [&](const SchemaValue* p) {
    return p->text == c.patterns[0]->text && is_format(*p) == is_format(*c.patterns[0]);
  });
  ExprId content = 0;
  std::optional<SchemaPattern> regex;
  if (one_pattern && !others) regex.emplace(pattern_of(*c.patterns[0]), place);
  if (regex && regex->limit_length(c.min_length, c.max_length))
    content = regex->expression(rules_, character);
  else
    content = string_dfa(c, place).expression(rules_, character);
  const RuleId rule = rules_.add_rule("pattern", place, true);
  rules_.keep(rule);
  const ExprId quote = rules_.bytes("\"");
  rules_.define(rule, rules_.sequence({quote, content, quote}));
  return rules_.rule(rule);
}

// Strings of the lengths and patterns, without the excluded ones.
CodePointDfa SchemaCompiler::string_dfa(const SchemaCase& c, std::string_view where) {
  DfaBudget& budget = reader_.dfa_budget();
  CodePointDfa out = CodePointDfa::of_lengths(0, kUnbounded, where, budget);
  const auto keep = [&](const CodePointDfa& set) { out = CodePointDfa::intersection(out, set, where, budget); };
  for (const SchemaValue* p : c.patterns) keep(reader_.pattern_dfa(*p));
  for (const SchemaValue* p : c.not_patterns) keep(reader_.pattern_dfa(*p).complement());
  std::vector<std::u32string> texts;
  for (const SchemaValue* v : c.excluded)
    if (v->kind == JsonKind::String) texts.push_back(code_points_of(v->text));
  if (!texts.empty()) keep(CodePointDfa::of_texts(std::move(texts), where).complement());
  if (c.min_length > 0 || c.max_length != kUnbounded)
    keep(CodePointDfa::of_lengths(c.min_length, c.max_length, where, budget));
  return out;
}

}  // namespace rlx
