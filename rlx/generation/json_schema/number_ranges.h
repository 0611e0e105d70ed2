// Numbers within limits, as grammar expressions over their digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

/// A number as digits without exponent and without redundant zeros. Zero is "" and "", never negative.
struct Decimal {
  bool negative = false;
  std::string whole{}, fraction{};
  /// Nothing for more than 400 digits. `text` is a JSON number.
  static std::optional<Decimal> parse(std::string_view text);
  bool operator==(const Decimal&) const = default;
};
/// Negative, 0 or positive, as a is less than, equal to or greater than b.
int compare(const Decimal& a, const Decimal& b);

struct NumberLimit {
  Decimal value{};
  bool exclusive = false;
};

/// JSON numbers between optional limits, without exponents; `integers` also without fractions.
ExprId number_range(GrammarRules& rules, const std::optional<NumberLimit>& lower,
                    const std::optional<NumberLimit>& upper, bool integers);

}  // namespace rlx
