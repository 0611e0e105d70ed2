// Regular languages over code points: patterns, excluded texts and multiples of a number, combined.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/generation/grammar/grammar_rules.h"
#include "rlx/generation/json_schema/number_ranges.h"

namespace rlx {

/// The steps that one schema may spend on automata. Errors: Unsupported, beginning with `where`, when they are used up.
class DfaBudget {
 public:
  void spend(std::uint64_t steps, std::string_view where);

 private:
  std::uint64_t left_ = 20'000'000;
};

/// A complete deterministic automaton over code points. State 0 is its start.
class CodePointDfa {
 public:
  struct Edge {
    char32_t last = 0;  // the last code point of its range; ranges are in order and cover all code points
    std::uint32_t target = 0;
  };
  struct State {
    bool accepts = false;
    std::vector<Edge> edges{};
  };

  /// The texts of an expression without rules. Errors: Unsupported beyond the budget or 20,000 states.
  static CodePointDfa of_expression(const GrammarRules& rules, ExprId expr, std::string_view where, DfaBudget& budget);
  static CodePointDfa of_texts(std::vector<std::u32string> texts, std::string_view where);
  /// Texts of `min` to `max` code points. Errors: as of_expression.
  static CodePointDfa of_lengths(std::uint32_t min, std::uint32_t max, std::string_view where, DfaBudget& budget);
  /// Decimal numbers without exponent that are multiples of `divisor`, which is positive. Accepts other texts too.
  /// Errors: Unsupported for a divisor of too many digits.
  static CodePointDfa of_multiples(const Decimal& divisor, std::string_view where, DfaBudget& budget);

  CodePointDfa complement() const;
  static CodePointDfa intersection(const CodePointDfa& a, const CodePointDfa& b, std::string_view where,
                                   DfaBudget& budget);
  static CodePointDfa union_of(const CodePointDfa& a, const CodePointDfa& b, std::string_view where, DfaBudget& budget);

  bool matches(std::u32string_view text) const;
  bool is_empty() const;
  /// The grammar expression, given a function for a character of a set.
  ExprId expression(GrammarRules& rules, const std::function<ExprId(const CodePointSet&)>& character) const;

 private:
  friend class DfaBuilder;
  static CodePointDfa product(const CodePointDfa& a, const CodePointDfa& b, bool both, std::string_view where,
                              DfaBudget& budget);
  std::vector<bool> live() const;
  std::uint32_t step(std::uint32_t state, char32_t c) const;
  void drop_dead_states();
  std::vector<State> states_;
};

}  // namespace rlx
