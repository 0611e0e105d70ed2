// Number ranges, digit by digit: while a number equals a limit so far, the limit bounds its next digit.
#include "rlx/generation/json_schema/number_ranges.h"

#include <algorithm>
#include <vector>

namespace rlx {
namespace {

constexpr std::size_t kMostDigits = 400;

int compare_digits(const std::string& a, const std::string& b) { return a < b ? -1 : a == b ? 0 : 1; }
int compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  const int whole = compare_digits(a.whole, b.whole);
  return whole != 0 ? whole : compare_digits(a.fraction, b.fraction);
}

// The next integer, and the previous one of an integer > 0.
std::string next_whole(std::string digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return digits;
    }
    digits[i] = '0';
  }
  return "1" + digits;
}
std::string previous_whole(std::string digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '0') {
      --digits[i];
      break;
    }
    digits[i] = '9';
  }
  return digits[0] == '0' ? digits.substr(1) : digits;
}

class RangeWriter {
 public:
  explicit RangeWriter(GrammarRules& rules) : rules_(rules) {}

  // Numbers >= 0 between limits >= 0.
  ExprId magnitudes(const NumberLimit& low, const std::optional<NumberLimit>& high, bool integers) {
    const std::string& a = low.value.whole;
    if (!high) {
      return rules_.choice({rules_.sequence({written(a), fraction(&low, nullptr, integers)}),
                            rules_.sequence({whole_from(next_whole(a)), any_fraction(integers)})});
    }
    const int order = compare_magnitudes(low.value, high->value);
    if (order > 0 || (order == 0 && (low.exclusive || high->exclusive))) return rules_.never();
    const std::string& b = high->value.whole;
    if (a == b) return rules_.sequence({written(a), fraction(&low, &*high, integers)});
    std::vector<ExprId> choices{rules_.sequence({written(a), fraction(&low, nullptr, integers)})};
    const std::string first = next_whole(a);
    if (first != b)
      choices.push_back(rules_.sequence({whole_between(first, previous_whole(b)), any_fraction(integers)}));
    choices.push_back(rules_.sequence({written(b), fraction(nullptr, &*high, integers)}));
    return rules_.choice(std::move(choices));
  }

 private:
  ExprId written(const std::string& whole) { return rules_.bytes(whole.empty() ? "0" : whole); }
  ExprId digit(char first, char last) {
    if (first > last) return rules_.never();
    return rules_.one_of({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
  }
  ExprId digits(std::uint32_t min, std::uint32_t max) { return rules_.repeat(digit('0', '9'), min, max); }
  ExprId zeros(std::uint32_t min) { return rules_.repeat(rules_.bytes("0"), min, kUnbounded); }
  ExprId any_fraction(bool integers) {
    if (integers) return rules_.empty();
    return rules_.optional(rules_.sequence({rules_.bytes("."), digits(1, kUnbounded)}));
  }

  // Integers >= `low`, which is not 0.
  ExprId whole_from(const std::string& low) {
    const auto size = static_cast<std::uint32_t>(low.size());
    return rules_.choice(
        {of_length(low, std::string(size, '9')), rules_.sequence({digit('1', '9'), digits(size, kUnbounded)})});
  }
  ExprId whole_between(const std::string& low, const std::string& high) {
    if (low.size() == high.size()) return of_length(low, high);
    std::vector<ExprId> choices{of_length(low, std::string(low.size(), '9'))};
    if (low.size() + 1 < high.size()) {
      choices.push_back(rules_.sequence({digit('1', '9'), digits(static_cast<std::uint32_t>(low.size()),
                                                                 static_cast<std::uint32_t>(high.size()) - 2)}));
    }
    choices.push_back(of_length("1" + std::string(high.size() - 1, '0'), high));
    return rules_.choice(std::move(choices));
  }
  // Integers with the number of digits of both limits, low <= high.
  ExprId of_length(const std::string& low, const std::string& high) {
    std::size_t same = 0;
    while (same < low.size() && low[same] == high[same]) ++same;
    const ExprId head = rules_.bytes(low.substr(0, same));
    if (same == low.size()) return head;
    const auto rest = static_cast<std::uint32_t>(low.size() - same - 1);
    return rules_.sequence(
        {head, rules_.choice({
                   rules_.sequence({rules_.bytes(low.substr(same, 1)), at_least(low, same + 1)}),
                   rules_.sequence({digit(static_cast<char>(low[same] + 1), static_cast<char>(high[same] - 1)),
                                    digits(rest, rest)}),
                   rules_.sequence({rules_.bytes(high.substr(same, 1)), at_most(high, same + 1)}),
               })});
  }
  ExprId at_least(const std::string& low, std::size_t from) { return bounded(low, from, true); }
  ExprId at_most(const std::string& high, std::size_t from) { return bounded(high, from, false); }
  // The digits from `from` on, as many as `limit` has, not above or not below it.
  ExprId bounded(const std::string& limit, std::size_t from, bool below) {
    ExprId out = rules_.empty();
    for (std::size_t i = limit.size(); i-- > from;) {
      const auto rest = static_cast<std::uint32_t>(limit.size() - i - 1);
      const ExprId other =
          below ? digit(static_cast<char>(limit[i] + 1), '9') : digit('0', static_cast<char>(limit[i] - 1));
      out = rules_.choice(
          {rules_.sequence({rules_.bytes(limit.substr(i, 1)), out}), rules_.sequence({other, digits(rest, rest)})});
    }
    return out;
  }

  // The fraction after an integer part that equals that of the given limits.
  ExprId fraction(const NumberLimit* low, const NumberLimit* high, bool integers) {
    const bool none = (low == nullptr || (low->value.fraction.empty() && !low->exclusive)) &&
                      (high == nullptr || !high->value.fraction.empty() || !high->exclusive);
    std::vector<ExprId> choices;
    if (none) choices.push_back(rules_.empty());
    if (!integers) choices.push_back(rules_.sequence({rules_.bytes("."), fraction_digits(0, low, high, false)}));
    return rules_.choice(std::move(choices));
  }
  // Digits from position `i` on, where the earlier digits equal those of the given limits.
  ExprId fraction_digits(std::size_t i, const NumberLimit* low, const NumberLimit* high, bool may_end) {
    if (low == nullptr && high == nullptr) return digits(may_end ? 0 : 1, kUnbounded);
    const std::string none, &a = low == nullptr ? none : low->value.fraction,
                            &b = high == nullptr ? none : high->value.fraction;
    if (i >= a.size() && i >= b.size()) {  // equal so far, and the limits only have zeros left
      if (high != nullptr)
        return high->exclusive || (low != nullptr && low->exclusive) ? rules_.never() : zeros(may_end ? 0 : 1);
      if (!low->exclusive) return digits(may_end ? 0 : 1, kUnbounded);
      return rules_.sequence({zeros(0), digit('1', '9'), digits(0, kUnbounded)});
    }
    std::vector<ExprId> choices;
    const bool above_low = low == nullptr || (i >= a.size() && !low->exclusive);
    const bool below_high = high == nullptr || i < b.size() || !high->exclusive;
    if (may_end && above_low && below_high) choices.push_back(rules_.empty());
    const char least = low == nullptr ? '0' : i < a.size() ? a[i] : '0';
    const char most = high == nullptr ? '9' : i < b.size() ? b[i] : '0';
    if (low != nullptr && high != nullptr && least == most) {
      choices.push_back(rules_.sequence({digit(least, least), fraction_digits(i + 1, low, high, true)}));
      return rules_.choice(std::move(choices));
    }
    const auto free_first = static_cast<char>(least + (low == nullptr ? 0 : 1));
    const auto free_last = static_cast<char>(most - (high == nullptr ? 0 : 1));
    if (low != nullptr)
      choices.push_back(rules_.sequence({digit(least, least), fraction_digits(i + 1, low, nullptr, true)}));
    choices.push_back(rules_.sequence({digit(free_first, free_last), digits(0, kUnbounded)}));
    if (high != nullptr)
      choices.push_back(rules_.sequence({digit(most, most), fraction_digits(i + 1, nullptr, high, true)}));
    return rules_.choice(std::move(choices));
  }

  GrammarRules& rules_;
};

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal d;
  d.negative = text.starts_with("-");
  if (d.negative) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  const std::string_view number = text.substr(0, e);
  if (number.find_first_of("123456789") == std::string_view::npos) return Decimal{};
  long exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    const bool below = digits.starts_with('-');
    digits.remove_prefix(std::min(digits.find_first_not_of("+-0"), digits.size()));
    if (digits.size() > 5) return std::nullopt;
    if (!digits.empty()) exponent = std::stol(std::string(digits)) * (below ? -1 : 1);
  }
  const std::size_t point = std::min(number.find('.'), number.size());
  std::string all(number.substr(0, point));
  if (point < number.size()) all += number.substr(point + 1);
  long places = static_cast<long>(point) + exponent;  // number of digits of `all` before the point
  if (std::abs(places) > static_cast<long>(kMostDigits) || all.size() > kMostDigits) return std::nullopt;
  if (places < 0) all.insert(0, static_cast<std::size_t>(-places), '0'), places = 0;
  if (static_cast<std::size_t>(places) > all.size()) all.append(static_cast<std::size_t>(places) - all.size(), '0');
  d.whole = all.substr(0, static_cast<std::size_t>(places));
  d.fraction = all.substr(static_cast<std::size_t>(places));
  d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size()));
  while (!d.fraction.empty() && d.fraction.back() == '0') d.fraction.pop_back();
  if (d.whole.empty() && d.fraction.empty()) d.negative = false;
  return d;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

ExprId number_range(GrammarRules& rules, const std::optional<NumberLimit>& lower,
                    const std::optional<NumberLimit>& upper, bool integers) {
  RangeWriter writer(rules);
  const Decimal zero;
  const auto magnitude = [](NumberLimit limit) {
    limit.value.negative = false;
    return limit;
  };
  std::vector<ExprId> choices;
  // Zero is in both halves, as "0" and "-0". A zero limit bounds either.
  if (!upper || compare(upper->value, zero) >= 0)
    choices.push_back(writer.magnitudes(lower && !lower->value.negative ? *lower : NumberLimit{}, upper, integers));
  if (!lower || compare(lower->value, zero) <= 0) {
    NumberLimit least;
    if (upper && compare(upper->value, zero) <= 0) least = magnitude(*upper);
    std::optional<NumberLimit> most;
    if (lower) most = magnitude(*lower);
    choices.push_back(rules.sequence({rules.bytes("-"), writer.magnitudes(least, most, integers)}));
  }
  return rules.choice(std::move(choices));
}

}  // namespace rlx
