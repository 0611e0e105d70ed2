// How large the expressions of a grammar are as states, and which rules are worth writing out where they are named.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

/// Facts about rules and expressions that decide the shape of the automaton.
class RuleSizes {
 public:
  explicit RuleSizes(const GrammarRules& rules);
  /// States that the expression takes, about.
  std::uint64_t states(ExprId id) const { return states_[id]; }
  /// Bytes that every match of it has; a lower bound.
  std::uint32_t min_bytes(ExprId id) const { return min_bytes_[id]; }
  bool nullable(ExprId id) const { return nullable_[id]; }
  /// Whether the rule's body stands in place of its name: it is small and does not lead to itself.
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
