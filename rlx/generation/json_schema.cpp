// Converts JSON schemas to grammars: one rule for every conjunction of schemas.
#include "rlx/generation/json_schema.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/generation/json_schema/json_expressions.h"
#include "rlx/generation/json_schema/schema_cases.h"
#include "rlx/generation/json_schema/schema_formats.h"
#include "rlx/generation/json_schema/schema_pattern.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxRules = 40'000, kMaxPrefix = 1000, kMaxNameLength = 500;

std::u32string code_points_of(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) out += decode_utf8(text, at);
  return out;
}

class SchemaCompiler {
 public:
  SchemaCompiler(const SchemaValue& root, const JsonSchemaOptions& options)
      : root_(root), json_(rules_, options), reader_(root, options.closed) {}

  GrammarRules compile() {
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

 private:
  // The rule of values that satisfy all schemas. Its body is made later.
  ExprId value(const Schemas& schemas) {
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

  ExprId body(const Schemas& schemas) {
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

  ExprId fitting(const SchemaCase& c, const SchemaValue& where) {
    if (c.values) {
      std::vector<ExprId> choices;
      for (const SchemaValue* v : *c.values)
        if (fits(*v, c)) choices.push_back(json_.literal(*v));
      return rules_.choice(std::move(choices));
    }
    // A schema without `type` allows only the types that its keywords constrain.
    unsigned types = c.types;
    if (!c.types_stated && c.constrained != 0 && (c.constrained & (c.constrained - 1)) == 0) types &= c.constrained;
    std::vector<ExprId> choices;
    if ((types & SchemaCase::kObject) != 0) choices.push_back(object(c, where));
    if ((types & SchemaCase::kArray) != 0) choices.push_back(array(c, where));
    if ((types & SchemaCase::kString) != 0) choices.push_back(string(c));
    if ((types & SchemaCase::kNumber) != 0) choices.push_back(number(c));
    if ((types & SchemaCase::kBoolean) != 0) choices.push_back(json_.boolean());
    if ((types & SchemaCase::kNull) != 0) choices.push_back(json_.null());
    return rules_.choice(std::move(choices));
  }

  ExprId number(const SchemaCase& c) {
    if (c.lower || c.upper) return number_range(rules_, c.lower, c.upper, c.integers);
    return c.integers ? json_.integer() : json_.number();
  }

  ExprId string(const SchemaCase& c) {
    if (c.patterns.empty()) return json_.string(c.min_length, c.max_length);
    if (c.min_length > c.max_length) return rules_.never();
    const SchemaPattern regex = pattern(c);
    const RuleId rule = rules_.add_rule("pattern", c.patterns[0]->pointer, true);
    rules_.keep(rule);
    const ExprId quote = rules_.bytes("\"");
    const auto character = [&](const CodePointSet& set) { return json_.plain_character(set); };
    rules_.define(rule, rules_.sequence({quote, regex.expression(rules_, character), quote}));
    return rules_.rule(rule);
  }
  SchemaPattern pattern(const SchemaCase& c) {
    const SchemaValue& first = *c.patterns[0];
    for (const SchemaValue* p : c.patterns)
      if (p->text != first.text || is_format(*p) != is_format(first))
        p->fail(ErrorCode::Unsupported, "a string has several patterns or formats", "keep one of them");
    std::string_view text = first.text;
    if (is_format(first)) {
      text = schema_format_pattern(first.text);
      if (text.empty())
        first.fail(ErrorCode::Unsupported, concat_text("the format '", first.text, "' is not known"),
                   did_you_mean(first.text, schema_format_names(), "use a pattern"));
    }
    SchemaPattern regex(text, first.pointer);
    if (!regex.limit_length(c.min_length, c.max_length)) {
      first.fail(ErrorCode::Unsupported, "minLength and maxLength together with this pattern cannot become a grammar",
                 "give the length in the pattern: ^(?:...){m,n}$");
    }
    return regex;
  }
  static bool is_format(const SchemaValue& pattern) { return pattern.pointer.ends_with("/format"); }

  ExprId array(const SchemaCase& c, const SchemaValue& where) {
    if (c.min_items > c.max_items) return rules_.never();
    if (c.prefix.size() > kMaxPrefix) where.fail(ErrorCode::Unsupported, "prefixItems has more than 1000 schemas");
    const auto prefix = static_cast<std::uint32_t>(c.prefix.size());
    const ExprId item = value(c.items);
    const ExprId next = rules_.sequence({json_.comma(), item});
    const auto least = [&](std::uint32_t have) { return c.min_items > have ? c.min_items - have : 0; };
    const auto most = [&](std::uint32_t have) {
      return c.max_items == kUnbounded ? kUnbounded : c.max_items > have ? c.max_items - have : 0;
    };
    // The items after the first `n`, built from the last of prefixItems back to the first.
    ExprId rest = rules_.repeat(next, least(std::max(prefix, 1U)), most(std::max(prefix, 1U)));
    for (std::uint32_t n = prefix; n-- > 1;) {
      if (c.max_items <= n)
        rest = rules_.empty();
      else
        rest = rules_.repeat(rules_.sequence({json_.comma(), value(c.prefix[n]), rest}), c.min_items > n ? 1 : 0, 1);
    }
    const ExprId first = c.max_items == 0 ? rules_.never() : prefix > 0 ? value(c.prefix[0]) : item;
    return json_.bracketed("[]", rules_.sequence({first, rest}), c.min_items == 0);
  }

  struct Member {
    ExprId expr = 0;
    bool required = false;
  };

  ExprId object(const SchemaCase& c, const SchemaValue& where) {
    const std::unordered_set<std::string_view> required(c.required.begin(), c.required.end());
    std::vector<Member> members;
    std::vector<std::u32string> names;
    std::set<std::string_view> known;
    const auto add = [&](const std::string& name, const Schemas& schemas) {
      if (!known.insert(name).second) return;
      if (name.size() > kMaxNameLength)
        where.fail(ErrorCode::Unsupported, "the name of a property has more than 500 bytes");
      names.push_back(code_points_of(name));
      members.push_back(
          {rules_.sequence({json_.quoted(name), json_.colon(), value(schemas)}), required.count(name) != 0});
    };
    for (const SchemaCase::Property& p : c.properties) add(p.name, p.schemas);
    for (const std::string& name : c.required) add(name, c.additional);
    const auto num_required = static_cast<std::uint32_t>(
        std::count_if(members.begin(), members.end(), [](const Member& m) { return m.required; }));
    if (c.min_properties > num_required && c.min_properties > 0)
      return at_least(c, members, num_required, names, where);
    return members_in_order(members, other_members(c, std::move(names)), 0);
  }
  // minProperties where it exceeds `required`: only for objects without named properties.
  ExprId at_least(const SchemaCase& c, const std::vector<Member>& members, std::uint32_t num_required,
                  std::vector<std::u32string> names, const SchemaValue& where) {
    if (!members.empty() && (c.min_properties != 1 || num_required != 0)) {
      where.fail(ErrorCode::Unsupported, "minProperties together with properties cannot become a grammar",
                 "list the required properties instead");
    }
    return members_in_order(members, other_members(c, std::move(names)), c.min_properties);
  }
  ExprId other_members(const SchemaCase& c, std::vector<std::u32string> names) {
    const ExprId other = value(c.additional);
    if (other == rules_.never()) return other;
    const ExprId name = names.empty() ? json_.string(0, kUnbounded) : json_.other_string(std::move(names));
    return rules_.sequence({name, json_.colon(), other});
  }

  // Named members in order, then other members, at least `least` of them (at most 1 if there are names).
  ExprId members_in_order(const std::vector<Member>& members, ExprId other, std::uint32_t least) {
    const auto first_required =
        std::find_if(members.begin(), members.end(), [](const Member& m) { return m.required; });
    const auto num_firsts = static_cast<std::size_t>(first_required - members.begin());
    const bool named = !members.empty();
    const ExprId more = rules_.sequence({json_.comma(), other});
    // after[i]: the members from i on, after at least one member.
    std::vector<ExprId> after(members.size() + 1);
    after.back() = rules_.repeat(more, named || least == 0 ? 0 : least - 1, kUnbounded);
    for (std::size_t i = members.size(); i-- > 0;) {
      const ExprId next = rules_.sequence({json_.comma(), members[i].expr});
      const ExprId all = rules_.sequence({members[i].required ? next : rules_.optional(next), after[i + 1]});
      after[i] = all;
      if (i > num_firsts || i == 0) continue;
      const RuleId rule = rules_.add_rule("members", {}, true);  // referenced twice: by itself and after other members
      rules_.define(rule, all);
      after[i] = rules_.rule(rule);
    }
    std::vector<ExprId> choices;
    for (std::size_t i = 0; i < members.size() && i <= num_firsts; ++i)
      choices.push_back(rules_.sequence({members[i].expr, after[i + 1]}));
    if (first_required == members.end()) choices.push_back(rules_.sequence({other, after.back()}));
    return json_.bracketed("{}", rules_.choice(std::move(choices)), first_required == members.end() && least == 0);
  }

  // Whether a literal value satisfies the other constraints of its case.
  bool fits(const SchemaValue& v, const SchemaCase& c) {
    reader_.spend(20);
    switch (v.kind) {
      case JsonKind::Null: return (c.types & SchemaCase::kNull) != 0;
      case JsonKind::Bool: return (c.types & SchemaCase::kBoolean) != 0;
      case JsonKind::Integer:
      case JsonKind::Number: return (c.types & SchemaCase::kNumber) != 0 && number_fits(v, c);
      case JsonKind::String: return (c.types & SchemaCase::kString) != 0 && string_fits(v, c);
      case JsonKind::Array: return (c.types & SchemaCase::kArray) != 0 && array_fits(v, c);
      case JsonKind::Object: return (c.types & SchemaCase::kObject) != 0 && object_fits(v, c);
    }
    return false;
  }
  bool fits(const SchemaValue& v, const Schemas& schemas) {
    const std::optional<Schemas> simple = reader_.simplified(schemas);
    if (!simple) return false;
    const auto [entry, is_new] = cases_.try_emplace(*simple);
    if (is_new) entry->second = reader_.cases(*simple);
    const std::vector<SchemaCase>& cases = entry->second;
    return std::any_of(cases.begin(), cases.end(), [&](const SchemaCase& c) {
      const std::string text = canonical_json(v);
      const auto same = [&](const SchemaValue* w) { return canonical_json(*w) == text; };
      if (c.values) reader_.spend(20 * c.values->size());
      return (!c.values || std::any_of(c.values->begin(), c.values->end(), same)) && fits(v, c);
    });
  }
  bool array_fits(const SchemaValue& v, const SchemaCase& c) {
    if (v.elements.size() < c.min_items || v.elements.size() > c.max_items) return false;
    for (std::size_t i = 0; i < v.elements.size(); ++i)
      if (!fits(*v.elements[i], i < c.prefix.size() ? c.prefix[i] : c.items)) return false;
    return true;
  }
  bool object_fits(const SchemaValue& v, const SchemaCase& c) {
    for (const std::string& name : c.required)
      if (v.find(name) == nullptr) return false;
    reader_.spend(c.required.size() * v.members.size() + c.properties.size() * v.members.size());
    for (const auto& [name, e] : v.members) {
      const auto own = std::find_if(c.properties.begin(), c.properties.end(),
                                    [&, n = std::string_view(name)](const auto& p) { return p.name == n; });
      if (!fits(*e, own != c.properties.end() ? own->schemas : c.additional)) return false;
    }
    return v.members.size() >= c.min_properties;
  }
  static bool number_fits(const SchemaValue& v, const SchemaCase& c) {
    const std::optional<Decimal> d = Decimal::parse(v.text);
    if (!d) v.fail(ErrorCode::Unsupported, "a number of more than 400 digits");
    if (c.integers && !d->fraction.empty()) return false;
    const auto outside = [&](const NumberLimit& limit, int sign) {
      const int order = sign * compare(*d, limit.value);
      return order < 0 || (order == 0 && limit.exclusive);
    };
    return !(c.lower && outside(*c.lower, 1)) && !(c.upper && outside(*c.upper, -1));
  }
  bool string_fits(const SchemaValue& v, const SchemaCase& c) {
    const std::size_t length = code_points_of(v.text).size();
    if (length < c.min_length || length > c.max_length) return false;
    if (c.patterns.empty()) return true;
    const auto [entry, is_new] = patterns_.try_emplace(c.patterns);
    if (is_new) entry->second = pattern_masks(c);
    reader_.spend(50 + v.text.size());
    if (!entry->second) return false;
    GrammarMatcher matcher(*entry->second);
    return matcher.accept_bytes(v.text) && matcher.can_end();
  }
  // A matcher of the case's patterns; nullopt when no text matches them.
  std::optional<GrammarMasks> pattern_masks(const SchemaCase& c) {
    SchemaCase any_length = c;
    any_length.min_length = 0, any_length.max_length = kUnbounded;
    const SchemaPattern regex = pattern(any_length);
    GrammarRules rules;
    const RuleId root = rules.add_rule("pattern", c.patterns[0]->pointer, true);
    rules.define(root, regex.expression(rules, [&](const CodePointSet& set) { return rules.one_of(set); }));
    rules.set_root(root);
    if (rules.rules()[root].body == rules.never()) return std::nullopt;
    return GrammarMasks(Grammar::from_rules(rules), TokenTrie(TokenBytes{{""}}));
  }

  const SchemaValue& root_;
  GrammarRules rules_;
  JsonExpressions json_;
  SchemaReader reader_;
  std::map<Schemas, RuleId> made_;
  std::map<Schemas, std::vector<SchemaCase>> cases_;         // of schemas that `fits` has checked a value against
  std::map<Schemas, std::optional<GrammarMasks>> patterns_;  // matchers of the patterns of such cases
  std::deque<std::pair<RuleId, Schemas>> open_;
};

}  // namespace

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
