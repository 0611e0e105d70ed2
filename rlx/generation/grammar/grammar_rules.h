// A grammar as rules over expressions: the output of the GBNF and JSON schema readers, and the input of the automaton.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/generation/grammar/code_points.h"

namespace rlx {

enum class ExprKind : std::uint8_t { Never, Empty, Bytes, Class, Sequence, Choice, Repeat, Rule };
using ExprId = std::uint32_t;
using RuleId = std::uint32_t;

constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

struct GrammarExpr {
  ExprKind kind = ExprKind::Empty;
  std::string bytes{};             // of Bytes
  CodePointSet set{};              // of Class
  std::vector<ExprId> children{};  // of Sequence and Choice; one of Repeat
  std::uint32_t min = 0, max = 0;  // of Repeat; max may be kUnbounded
  RuleId rule = 0;                 // of Rule
};

struct GrammarRule {
  std::string name{};
  std::string where{};  // "file:line:column" or a JSON pointer, for errors
  ExprId body = 0;
  bool kept = false;          // never inlined, so that all uses share its states
  bool may_be_empty = false;  // no error when nothing matches it: its alternatives are removed
};

/// Grammar rules under construction. Expressions are built bottom-up and may be shared. Errors: Unsupported for more
/// than a million expressions.
class GrammarRules {
 public:
  GrammarRules();
  ExprId never() const { return 0; }
  ExprId empty() const { return 1; }
  ExprId bytes(std::string_view text);
  ExprId one_of(CodePointSet set);
  ExprId sequence(std::vector<ExprId> parts);
  ExprId choice(std::vector<ExprId> parts);
  /// Repeats `part` from `min` to `max` times.
  ExprId repeat(ExprId part, std::uint32_t min, std::uint32_t max);
  ExprId optional(ExprId part) { return repeat(part, 0, 1); }
  ExprId rule(RuleId rule);

  /// A rule that matches nothing until it is defined.
  RuleId add_rule(std::string name, std::string where, bool may_be_empty = false);
  void define(RuleId rule, ExprId body) { rules_[rule].body = body; }
  void set_place(RuleId rule, std::string where) { rules_[rule].where = std::move(where); }
  void keep(RuleId rule) { rules_[rule].kept = true; }
  void set_root(RuleId rule) { root_ = rule; }

  const GrammarExpr& expr(ExprId id) const { return exprs_[id]; }
  std::size_t num_exprs() const { return exprs_.size(); }
  const std::vector<GrammarRule>& rules() const { return rules_; }
  RuleId root() const { return root_; }

 private:
  ExprId add(GrammarExpr e);
  std::vector<GrammarExpr> exprs_;
  std::vector<GrammarRule> rules_;
  RuleId root_ = 0;
};

}  // namespace rlx
