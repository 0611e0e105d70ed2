// Sizes of a grammar's expressions in states, and the choice of rules to inline.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

/// Facts about rules and expressions that decide the structure of the automaton.
class RuleSizes {
 public:
  explicit RuleSizes(const GrammarRules& rules);
  /// Number of states of the expression, approximately.
  std::uint64_t states(ExprId id) const { return states_[id]; }
  /// Minimum bytes of a match; a lower bound.
  std::uint32_t min_bytes(ExprId id) const { return min_bytes_[id]; }
  bool nullable(ExprId id) const { return nullable_[id]; }
  /// Whether the rule is inlined: it is small and not recursive.
  bool inlined(RuleId rule) const { return inlined_[rule]; }

 private:
  void find_nullable(const GrammarRules& rules);
  void find_min_bytes(const GrammarRules& rules);
  void find_states(const GrammarRules& rules);

  std::vector<std::uint64_t> states_;
  std::vector<std::uint32_t> min_bytes_;
  std::vector<bool> nullable_, inlined_;
};

}  // namespace rlx
