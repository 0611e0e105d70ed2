// JSON (RFC 8259) as grammar expressions.
#include "rlx/generation/json_schema/json_expressions.h"

#include <algorithm>

namespace rlx {
namespace {

const CodePointSet kDigits{{U'0', U'9'}};
// Characters that need no escape in a string.
const CodePointSet& raw_characters() {
  static const CodePointSet set = complement(normalized({{0, 0x1F}, {U'"', U'"'}, {U'\\', U'\\'}}));
  return set;
}

}  // namespace

JsonExpressions::JsonExpressions(GrammarRules& rules, const JsonSchemaOptions& options)
    : rules_(rules), options_(options) {
  space_ = rules_.empty();
  comma_ = rules_.bytes(",");
  colon_ = rules_.bytes(":");
  if (options_.whitespace == JsonWhitespace::Spaced) {
    comma_ = rules_.bytes(", ");
    colon_ = rules_.bytes(": ");
  } else if (options_.whitespace == JsonWhitespace::Flexible && options_.max_whitespace > 0) {
    const ExprId one = rules_.one_of(normalized({{U' ', U' '}, {U'\t', U'\t'}, {U'\n', U'\n'}, {U'\r', U'\r'}}));
    space_ = shared("whitespace", rules_.repeat(one, 0, options_.max_whitespace));
    comma_ = rules_.sequence({space_, comma_, space_});
    colon_ = rules_.sequence({space_, colon_, space_});
  }
}

ExprId JsonExpressions::shared(std::string name, ExprId body) {
  const RuleId rule = rules_.add_rule(std::move(name), {}, true);
  rules_.keep(rule);
  rules_.define(rule, body);
  return rules_.rule(rule);
}

ExprId JsonExpressions::whole_number() {
  const ExprId digits = rules_.repeat(rules_.one_of(kDigits), 0, kUnbounded);
  const ExprId whole = rules_.choice({rules_.bytes("0"), rules_.sequence({rules_.one_of({{U'1', U'9'}}), digits})});
  return rules_.sequence({rules_.optional(rules_.bytes("-")), whole});
}

ExprId JsonExpressions::integer() {
  if (!integer_) integer_ = shared("integer", whole_number());
  return *integer_;
}

ExprId JsonExpressions::number() {
  if (!number_) {
    const ExprId digits = rules_.repeat(rules_.one_of(kDigits), 1, kUnbounded);
    const ExprId sign = rules_.one_of({{U'+', U'+'}, {U'-', U'-'}}), e = rules_.one_of({{U'E', U'E'}, {U'e', U'e'}});
    number_ =
        shared("number", rules_.sequence({whole_number(), rules_.optional(rules_.sequence({rules_.bytes("."), digits})),
                                          rules_.optional(rules_.sequence({e, rules_.optional(sign), digits}))}));
  }
  return *number_;
}

ExprId JsonExpressions::plain_character(const CodePointSet& set) {
  static const CodePointSet all_escaped = complement(raw_characters());
  const CodePointSet escaped = intersection(set, all_escaped);
  if (escaped.empty()) return rules_.one_of(set);
  std::vector<ExprId> choices{rules_.one_of(intersection(set, raw_characters()))};
  if (escaped == all_escaped) {  // the set of all escapes is large: made once
    if (!escaped_) escaped_ = shared("escaped", escaped_character(escaped));
    choices.push_back(*escaped_);
  } else {
    choices.push_back(escaped_character(escaped));
  }
  return rules_.choice(std::move(choices));
}

ExprId JsonExpressions::escaped_character(const CodePointSet& set) {
  std::vector<ExprId> choices;
  for (const CodePointRange& r : set)
    for (char32_t c = r.first; c <= r.last; ++c) {
      const std::string quoted = quoted_json(std::string(1, static_cast<char>(c)));
      choices.push_back(rules_.bytes(std::string_view(quoted).substr(1, quoted.size() - 2)));
    }
  return rules_.choice(std::move(choices));
}

ExprId JsonExpressions::character() {
  if (!character_) {
    const ExprId raw = rules_.one_of(raw_characters());
    const CodePointSet hex{{U'0', U'9'}, {U'A', U'F'}, {U'a', U'f'}};
    const auto digits = [&](std::uint32_t n) { return rules_.repeat(rules_.one_of(hex), n, n); };
    const ExprId d = rules_.one_of({{U'D', U'D'}, {U'd', U'd'}});
    const ExprId other = rules_.sequence(
        {rules_.one_of({{U'0', U'9'}, {U'A', U'C'}, {U'E', U'F'}, {U'a', U'c'}, {U'e', U'f'}}), digits(3)});
    const ExprId low_d = rules_.sequence({d, rules_.one_of({{U'0', U'7'}}), digits(2)});
    const ExprId pair =
        rules_.sequence({d, rules_.one_of({{U'8', U'9'}, {U'A', U'B'}, {U'a', U'b'}}), digits(2), rules_.bytes("\\u"),
                         d, rules_.one_of({{U'C', U'F'}, {U'c', U'f'}}), digits(2)});
    const ExprId simple = rules_.one_of(normalized({{U'"', U'"'},
                                                    {U'\\', U'\\'},
                                                    {U'/', U'/'},
                                                    {U'b', U'b'},
                                                    {U'f', U'f'},
                                                    {U'n', U'n'},
                                                    {U'r', U'r'},
                                                    {U't', U't'}}));
    const ExprId code = rules_.sequence({rules_.bytes("u"), rules_.choice({other, low_d, pair})});
    character_ = rules_.choice({raw, rules_.sequence({rules_.bytes("\\"), rules_.choice({simple, code})})});
  }
  return *character_;
}

ExprId JsonExpressions::string(std::uint32_t min, std::uint32_t max) {
  if (min > max) return rules_.never();
  const auto known = strings_.find({min, max});
  if (known != strings_.end()) return known->second;
  const ExprId quote = rules_.bytes("\"");
  return strings_[{min, max}] = shared("string", rules_.sequence({quote, rules_.repeat(character(), min, max), quote}));
}

ExprId JsonExpressions::other_string(std::vector<std::u32string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (!any_rest_) {
    const ExprId any = rules_.repeat(plain_character(complement({})), 0, kUnbounded);
    any_rest_ = shared("rest of a string", rules_.sequence({any, rules_.bytes("\"")}));
  }
  return shared("another name", rules_.sequence({rules_.bytes("\""), other_rest(names, 0, names.size(), 0)}));
}

// The rest of a string whose first `depth` characters are those of names [begin, end), and which is not one of them.
ExprId JsonExpressions::other_rest(const std::vector<std::u32string>& names, std::size_t begin, std::size_t end,
                                   std::size_t depth) {
  std::vector<ExprId> choices;
  if (begin == end || names[begin].size() > depth)
    choices.push_back(rules_.bytes("\""));
  else
    ++begin;
  std::vector<CodePointRange> taken;
  while (begin < end) {
    const char32_t c = names[begin][depth];
    std::size_t next = begin;
    while (next < end && names[next][depth] == c) ++next;
    choices.push_back(rules_.sequence({plain_character({{c, c}}), other_rest(names, begin, next, depth + 1)}));
    taken.push_back({c, c});
    begin = next;
  }
  choices.push_back(rules_.sequence({plain_character(complement(normalized(std::move(taken)))), *any_rest_}));
  return rules_.choice(std::move(choices));
}

ExprId JsonExpressions::bracketed(std::string_view brackets, ExprId content, bool empty) {
  std::vector<ExprId> choices{rules_.sequence({content, space_})};
  if (content == rules_.never()) choices.clear();
  if (empty) choices.push_back(rules_.empty());
  return rules_.sequence({rules_.bytes(brackets.substr(0, 1)), space_, rules_.choice(std::move(choices)),
                          rules_.bytes(brackets.substr(1))});
}

ExprId JsonExpressions::literal(const SchemaValue& value) {
  std::vector<ExprId> parts;
  for (const auto& e : value.elements) {
    if (!parts.empty()) parts.push_back(comma_);
    parts.push_back(literal(*e));
  }
  for (const auto& [key, e] : value.members) {
    if (!parts.empty()) parts.push_back(comma_);
    parts.insert(parts.end(), {quoted(key), colon_, literal(*e)});
  }
  if (value.is_number()) {  // in plain digits, and as the schema spells it
    const std::string plain = canonical_number(value);
    if (plain == value.text) return rules_.bytes(plain);
    return rules_.choice({rules_.bytes(plain), rules_.bytes(value.text)});
  }
  if (value.kind != JsonKind::Array && value.kind != JsonKind::Object) return rules_.bytes(canonical_json(value));
  const bool empty = parts.empty();
  return bracketed(value.kind == JsonKind::Array ? "[]" : "{}", empty ? rules_.never() : rules_.sequence(parts), empty);
}

ExprId JsonExpressions::any_value() {
  if (!any_) {
    const RuleId rule = rules_.add_rule("value", {}, true);
    any_ = rules_.rule(rule);
    const auto list = [&](ExprId item) {
      return rules_.sequence({item, rules_.repeat(rules_.sequence({comma_, item}), 0, kUnbounded)});
    };
    const ExprId text = string(0, kUnbounded);
    const ExprId array = shared("array", bracketed("[]", list(*any_), true));
    const ExprId object = shared("object", bracketed("{}", list(rules_.sequence({text, colon_, *any_})), true));
    rules_.define(rule, rules_.choice({object, array, text, number(), boolean(), null()}));
  }
  return *any_;
}

}  // namespace rlx
