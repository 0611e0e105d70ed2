// Expressions of grammar rules, simplified on construction.
#include "rlx/generation/grammar/grammar_rules.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx {

GrammarRules::GrammarRules() {
  exprs_.resize(2);
  exprs_[0].kind = ExprKind::Never;
  exprs_[1].kind = ExprKind::Empty;
}

ExprId GrammarRules::add(GrammarExpr e) {
  constexpr std::size_t kMaxExprs = 1'000'000;
  if (exprs_.size() >= kMaxExprs) {
    throw Error(Diagnostic{ErrorCode::Unsupported,
                           concat_text("the grammar has more than ", kMaxExprs, " literals, classes, groups and names"),
                           {},
                           "use fewer alternatives and shorter patterns"});
  }
  exprs_.push_back(std::move(e));
  return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId GrammarRules::bytes(std::string_view text) {
  if (text.empty()) return empty();
  GrammarExpr e;
  e.kind = ExprKind::Bytes;
  e.bytes = text;
  return add(std::move(e));
}

ExprId GrammarRules::one_of(CodePointSet set) {
  if (set.empty()) return never();
  GrammarExpr e;
  e.kind = ExprKind::Class;
  e.set = std::move(set);
  return add(std::move(e));
}

ExprId GrammarRules::sequence(std::vector<ExprId> parts) {
  std::erase(parts, empty());
  if (std::find(parts.begin(), parts.end(), never()) != parts.end()) return never();
  if (parts.empty()) return empty();
  if (parts.size() == 1) return parts[0];
  GrammarExpr e;
  e.kind = ExprKind::Sequence;
  e.children = std::move(parts);
  return add(std::move(e));
}

ExprId GrammarRules::choice(std::vector<ExprId> parts) {
  std::erase(parts, never());
  if (parts.empty()) return never();
  if (parts.size() == 1) return parts[0];
  GrammarExpr e;
  e.kind = ExprKind::Choice;
  e.children = std::move(parts);
  return add(std::move(e));
}

ExprId GrammarRules::repeat(ExprId part, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || part == empty()) return empty();
  if (part == never()) return min == 0 ? empty() : never();
  if (min == 1 && max == 1) return part;
  GrammarExpr e;
  e.kind = ExprKind::Repeat;
  e.children = {part};
  e.min = min;
  e.max = max;
  return add(std::move(e));
}

ExprId GrammarRules::rule(RuleId rule) {
  GrammarExpr e;
  e.kind = ExprKind::Rule;
  e.rule = rule;
  return add(std::move(e));
}

RuleId GrammarRules::add_rule(std::string name, std::string where, bool may_be_empty) {
  rules_.push_back({std::move(name), std::move(where), never(), false, may_be_empty});
  return static_cast<RuleId>(rules_.size() - 1);
}

}  // namespace rlx
