// Arrays and objects of a case.
#include <algorithm>
#include <bit>
#include <set>
#include <unordered_set>

#include "rlx/generation/json_schema/schema_compiler.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxPrefix = 1000, kMaxNameLength = 500, kMaxUniqueRules = 4096, kMaxNameClasses = 64,
                      kMaxCounts = 20'000;

std::uint32_t less(std::uint32_t limit, std::uint32_t count) {
  return limit == kUnbounded ? kUnbounded : limit > count ? limit - count : 0;
}

}  // namespace

ExprId SchemaCompiler::array(const SchemaCase& c, const SchemaValue& where) {
  if (c.min_items > c.max_items) return rules_.never();
  if (c.unique != nullptr && c.max_items > 1) return unique_array(c);
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

// Items that differ from each other: possible where each is one of a few values. A rule for each set of values that
// were written already.
ExprId SchemaCompiler::unique_array(const SchemaCase& c) {
  const auto refuse = [&] {
    c.unique->fail(ErrorCode::Unsupported,
                   "the keyword uniqueItems cannot become a grammar unless the items have few values",
                   "give the items as an enum of at most 12 values, or leave uniqueItems out");
  };
  std::vector<const SchemaValue*> all;
  std::vector<std::string> texts;
  std::vector<std::uint64_t> allowed;  // by place: the values that may stand there; the last for all further places
  for (std::size_t i = 0; i <= c.prefix.size(); ++i) {
    if (i >= c.max_items) break;
    const auto values = finite_values(i < c.prefix.size() ? c.prefix[i] : c.items);
    if (!values) refuse();
    std::uint64_t bits = 0;
    for (const SchemaValue* v : *values) {
      const std::string text = canonical_json(*v);
      const auto at = static_cast<std::size_t>(std::find(texts.begin(), texts.end(), text) - texts.begin());
      if (at == texts.size()) {
        if (at == 64) refuse();
        texts.push_back(text);
        all.push_back(v);
      }
      bits |= std::uint64_t{1} << at;
    }
    allowed.push_back(bits);
  }
  std::map<std::uint64_t, RuleId> made;
  std::vector<std::uint64_t> open;
  const auto after = [&](std::uint64_t written) {
    const auto [entry, is_new] = made.try_emplace(written, 0);
    if (is_new) {
      if (made.size() > kMaxUniqueRules) refuse();
      entry->second = rules_.add_rule("different items", c.unique->pointer, true);
      open.push_back(written);
    }
    return rules_.rule(entry->second);
  };
  const auto items = [&](std::uint64_t written) {
    const auto count = static_cast<std::uint32_t>(std::popcount(written));
    std::vector<ExprId> choices;
    if (count > 0 && count >= c.min_items) choices.push_back(rules_.empty());
    if (count >= c.max_items) return rules_.choice(std::move(choices));
    const std::uint64_t here = allowed[std::min<std::size_t>(count, allowed.size() - 1)] & ~written;
    for (std::size_t v = 0; v < all.size(); ++v) {
      const std::uint64_t bit = std::uint64_t{1} << v;
      if ((here & bit) == 0) continue;
      const ExprId item = json_.literal(*all[v]), rest = after(written | bit);
      choices.push_back(count > 0 ? rules_.sequence({json_.comma(), item, rest}) : rules_.sequence({item, rest}));
    }
    return rules_.choice(std::move(choices));
  };
  const ExprId content = items(0);
  for (std::size_t i = 0; i < open.size(); ++i) {
    const std::uint64_t written = open[i];
    rules_.define(made[written], items(written));
  }
  return json_.bracketed("[]", content, c.min_items == 0);
}

// All values that satisfy the schemas, if they are a list of literals.
std::optional<std::vector<const SchemaValue*>> SchemaCompiler::finite_values(const Schemas& schemas) {
  std::vector<const SchemaValue*> out;
  const std::optional<Schemas> simple = reader_.simplified(schemas);
  if (!simple) return out;
  const auto word = [&](std::string_view text, JsonKind kind) {
    const auto [entry, is_new] = words_.try_emplace(std::string(text));
    entry->second.kind = kind;
    entry->second.flag = text == "true";
    return &entry->second;
  };
  for (const SchemaCase& c : reader_.cases(*simple)) {
    std::vector<const SchemaValue*> values;
    const unsigned types = types_of(c);
    if (c.values) {
      values = *c.values;
    } else if ((types & ~(SchemaCase::kNull | SchemaCase::kBoolean)) == 0) {
      values = {word("null", JsonKind::Null), word("true", JsonKind::Bool), word("false", JsonKind::Bool)};
    } else {
      return std::nullopt;
    }
    for (const SchemaValue* v : values)
      if (fits(*v, c)) out.push_back(v);
  }
  return out;
}

// What a member called `name` must satisfy that is not among the properties.
Schemas SchemaCompiler::schemas_of_member(const SchemaCase& c, const std::string& name) {
  if (!c.closed || c.name_patterns.empty()) return reader_.schemas_of_other(c, name);
  Schemas out = reader_.schemas_of_other(c, name);
  const bool matched = std::ranges::any_of(c.name_patterns, [&](const SchemaCase::NamePatterns& p) {
    return std::ranges::any_of(p.patterns, [&](const auto& n) {
      return reader_.pattern_dfa(n.pattern, n.schema->pointer).matches(code_points_of(name));
    });
  });
  if (!matched) out.push_back(&reader_.never());
  return out;
}

ExprId SchemaCompiler::object(const SchemaCase& c, const SchemaValue& where) {
  const std::unordered_set<std::string_view> required(c.required.begin(), c.required.end());
  std::vector<Member> members;
  std::vector<std::u32string> names;
  std::set<std::string_view> known;
  const auto add = [&](const std::string& name, const Schemas& schemas) {
    if (!known.insert(name).second) return;
    if (name.size() > kMaxNameLength)
      where.fail(ErrorCode::Unsupported, "the name of a property has more than 500 bytes");
    names.push_back(code_points_of(name));
    const bool needed = required.count(name) != 0,
               allowed = c.names.empty() || names_dfa(c.names).matches(names.back());
    const ExprId content = allowed ? value(schemas) : rules_.never();
    if (content == rules_.never() && !needed) return;
    members.push_back({rules_.sequence({json_.quoted(name), json_.colon(), content}), needed});
  };
  for (const SchemaCase::Property& p : c.properties) add(p.name, p.schemas);
  for (const std::string& name : c.required)
    if (known.count(name) == 0) add(name, schemas_of_member(c, name));
  const auto num_required = static_cast<std::uint32_t>(
      std::count_if(members.begin(), members.end(), [](const Member& m) { return m.required; }));
  const ExprId other = other_members(c, std::move(names), where);
  const std::uint32_t min = c.min_properties <= num_required ? 0 : c.min_properties;
  const bool bounded = c.max_properties != kUnbounded && (other != rules_.never() || members.size() > c.max_properties);
  if (num_required > c.max_properties || c.min_properties > c.max_properties) return rules_.never();
  if (min == 0 && !bounded) return members_in_order(members, other);
  return counted_members(members, other, min, bounded ? c.max_properties : kUnbounded, where);
}

ExprId SchemaCompiler::other_members(const SchemaCase& c, std::vector<std::u32string> names, const SchemaValue& where) {
  if (!c.name_patterns.empty() || !c.names.empty()) return other_members_by_pattern(c, std::move(names), where);
  const ExprId other = value(c.additional);
  if (other == rules_.never()) return other;
  const ExprId name = names.empty() ? json_.string(0, kUnbounded) : json_.other_string(std::move(names));
  return rules_.sequence({name, json_.colon(), other});
}

// Names that match the same patterns have values of the same schemas.
ExprId SchemaCompiler::other_members_by_pattern(const SchemaCase& c, std::vector<std::u32string> names,
                                                const SchemaValue& where) {
  DfaBudget& budget = reader_.dfa_budget();
  struct NameClass {
    CodePointDfa names;
    std::set<std::string_view> matched{};
  };
  CodePointDfa all = CodePointDfa::of_texts(std::move(names), where.pointer).complement();
  if (!c.names.empty()) all = CodePointDfa::intersection(all, names_dfa(c.names), where.pointer, budget);
  std::vector<NameClass> classes{{std::move(all)}};
  std::set<std::string_view> done;
  for (const SchemaCase::NamePatterns& block : c.name_patterns) {
    for (const auto& [schema, pattern] : block.patterns) {
      if (!done.insert(pattern).second) continue;
      const CodePointDfa yes = reader_.pattern_dfa(pattern, schema->pointer), no = yes.complement();
      std::vector<NameClass> finer;
      for (const NameClass& n : classes)
        for (const bool match : {true, false}) {
          NameClass part{CodePointDfa::intersection(n.names, match ? yes : no, schema->pointer, budget), n.matched};
          if (part.names.is_empty()) continue;
          if (match) part.matched.insert(pattern);
          finer.push_back(std::move(part));
        }
      classes = std::move(finer);
      if (classes.size() > kMaxNameClasses)
        schema->fail(ErrorCode::Unsupported, "the patterns of names overlap in more than 64 ways",
                     "use fewer patterns, or patterns that exclude each other");
    }
  }
  std::vector<ExprId> choices;
  for (const NameClass& n : classes) {
    if (c.closed && n.matched.empty()) continue;
    Schemas schemas = c.additional;
    for (const SchemaCase::NamePatterns& block : c.name_patterns) {
      bool matched = false;
      for (const auto& [schema, pattern] : block.patterns) {
        if (n.matched.count(pattern) == 0) continue;
        matched = true;
        append(schemas, {schema});
      }
      if (!matched) append(schemas, block.additional);
    }
    const ExprId content = value(schemas);
    if (content == rules_.never()) continue;
    const ExprId quote = rules_.bytes("\"");
    const ExprId name = n.names.expression(rules_, [&](const CodePointSet& set) { return json_.plain_character(set); });
    choices.push_back(rules_.sequence({quote, name, quote, json_.colon(), content}));
  }
  return rules_.choice(std::move(choices));
}

// The names that satisfy propertyNames.
const CodePointDfa& SchemaCompiler::names_dfa(const Schemas& schemas) {
  if (const auto known = name_dfas_.find(schemas); known != name_dfas_.end()) return known->second;
  DfaBudget& budget = reader_.dfa_budget();
  CodePointDfa out = CodePointDfa::of_texts({}, schemas[0]->pointer);
  const std::string& where = schemas[0]->pointer;
  const std::optional<Schemas> simple = reader_.simplified(schemas);
  for (const SchemaCase& c : simple ? reader_.cases(*simple) : std::vector<SchemaCase>()) {
    if ((c.types & SchemaCase::kString) == 0) continue;
    std::vector<std::u32string> texts;
    if (c.values)
      for (const SchemaValue* v : *c.values)
        if (v->kind == JsonKind::String && fits(*v, c)) texts.push_back(code_points_of(v->text));
    const CodePointDfa some = c.values ? CodePointDfa::of_texts(std::move(texts), where) : string_dfa(c, where);
    out = CodePointDfa::union_of(out, some, where, budget);
  }
  return name_dfas_.emplace(schemas, std::move(out)).first->second;
}

// Named members in order, then other members.
ExprId SchemaCompiler::members_in_order(const std::vector<Member>& members, ExprId other) {
  const auto first_required = std::find_if(members.begin(), members.end(), [](const Member& m) { return m.required; });
  const auto num_firsts = static_cast<std::size_t>(first_required - members.begin());
  const ExprId more = rules_.sequence({json_.comma(), other});
  // after[i]: the members from i on, after at least one member.
  std::vector<ExprId> after(members.size() + 1);
  after.back() = rules_.repeat(more, 0, kUnbounded);
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
  return json_.bracketed("{}", rules_.choice(std::move(choices)), first_required == members.end());
}

// The same with at least `min` and at most `max` members in all.
ExprId SchemaCompiler::counted_members(const std::vector<Member>& members, ExprId other, std::uint32_t min,
                                       std::uint32_t max, const SchemaValue& where) {
  // Counts beyond `most` make no difference: without an upper limit those from `min` on.
  const std::size_t most = std::min<std::size_t>(members.size(), max == kUnbounded ? std::max(min, 1U) : max);
  if ((members.size() + 1) * (most + 1) > kMaxCounts)
    where.fail(ErrorCode::Unsupported, "minProperties or maxProperties with so many properties cannot become a grammar",
               "list the required properties instead");
  const ExprId more = rules_.sequence({json_.comma(), other});
  // after[n]: the members from place i on, after n members; without the empty object.
  std::vector<ExprId> after(most + 1);
  for (std::uint32_t n = 0; n <= most; ++n)
    after[n] = n > 0      ? rules_.repeat(more, less(min, n), less(max, n))
               : max == 0 ? rules_.never()
                          : rules_.sequence({other, rules_.repeat(more, less(min, 1), less(max, 1))});
  bool empty = min == 0;
  for (std::size_t i = members.size(); i-- > 0;) {
    empty = empty && !members[i].required;
    std::vector<ExprId> before(most + 1);
    for (std::uint32_t n = 0; n <= most; ++n) {
      std::vector<ExprId> choices;
      const std::size_t next = std::min<std::size_t>(n + 1, most);
      if (n < max && (next > n || max == kUnbounded))
        choices.push_back(n > 0 ? rules_.sequence({json_.comma(), members[i].expr, after[next]})
                                : rules_.sequence({members[i].expr, after[next]}));
      if (!members[i].required) choices.push_back(after[n]);
      const RuleId rule = rules_.add_rule("members", {}, true);
      rules_.define(rule, rules_.choice(std::move(choices)));
      before[n] = rules_.rule(rule);
    }
    after = std::move(before);
  }
  return json_.bracketed("{}", after[0], empty);
}

}  // namespace rlx
