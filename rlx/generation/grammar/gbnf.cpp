// A recursive-descent parser of GBNF.
#include "rlx/generation/grammar/gbnf.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "rlx/base/utf8.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxNesting = 256;
constexpr std::uint32_t kMaxCount = 1'000'000'000;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class GbnfParser {
 public:
  GbnfParser(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  GrammarRules parse(std::string_view root) {
    if (const auto bad = find_invalid_utf8(text_)) {
      at_ = *bad;
      fail("this is not valid UTF-8");
    }
    skip_space(true);
    while (!at_end()) {
      parse_rule();
      skip_space(true);
    }
    finish(root);
    return std::move(rules_);
  }

 private:
  struct Named {
    RuleId id = 0;
    bool defined = false;
  };

  [[noreturn]] void fail(std::string message, std::string hint = {}) const { fail_at(at_, message, hint); }
  [[noreturn]] void fail_at(std::size_t at, const std::string& message, const std::string& hint = {}) const {
    throw Error(Diagnostic{ErrorCode::BadFile, concat_text(place(at), ": ", message), line_text(at), hint});
  }
  // "file:line:column", both from 1, columns in bytes.
  std::string place(std::size_t at) const {
    const std::string_view before = text_.substr(0, std::min(at, text_.size()));
    const std::size_t line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return concat_text(source_, ":", line, ":", before.size() - start + 1);
  }
  std::string line_text(std::size_t at) const {
    at = std::min(at, text_.size());
    const std::size_t before = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view line = text_.substr(start, text_.find('\n', start) - start);
    return find_invalid_utf8(line) ? std::string() : short_name(line);
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (at_end() || peek() != c) return false;
    ++at_;
    return true;
  }
  void skip_space(bool lines) {
    while (!at_end()) {
      const char c = peek();
      if (c == '#') {
        while (!at_end() && peek() != '\n' && peek() != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::string_view parse_name() {
    const std::size_t start = at_;
    while (is_name_char(peek())) ++at_;
    return text_.substr(start, at_ - start);
  }
  Named& named(std::string_view name, std::size_t at) {
    const auto [entry, is_new] = names_.try_emplace(std::string(name));
    if (is_new) {
      entry->second.id = rules_.add_rule(std::string(name), {});
      first_seen_.push_back(at);
    }
    return entry->second;
  }

  void parse_rule() {
    const std::size_t start = at_;
    const std::string_view name = parse_name();
    if (name.empty()) fail("a rule must begin with its name", "rules are written as: name ::= expression");
    skip_space(false);
    if (text_.substr(at_, 3) != "::=") fail(concat_text("expected '::=' after the name of rule '", name, "'"));
    at_ += 3;
    Named& rule = named(name, start);
    if (rule.defined) fail_at(start, concat_text("rule '", name, "' is defined twice"));
    rule.defined = true;
    const RuleId id = rule.id;
    first_seen_[id] = start;
    skip_space(true);
    rules_.define(id, parse_choice(0));
    if (at_end() || peek() == '\n' || peek() == '\r') return;
    fail(peek() == ')' ? "this ')' has no matching '('"
                       : concat_text("rule '", name, "' has an invalid expression here"),
         "an expression is a \"literal\", a [class], '.', a name or a group in parentheses");
  }

  ExprId parse_choice(std::size_t depth) {
    if (depth > kMaxNesting) fail(concat_text("groups are nested more than ", kMaxNesting, " deep"));
    std::vector<ExprId> choices{parse_sequence(depth)};
    while (take('|')) {
      skip_space(true);
      choices.push_back(parse_sequence(depth));
    }
    return rules_.choice(std::move(choices));
  }

  ExprId parse_sequence(std::size_t depth) {
    std::vector<ExprId> parts;
    std::size_t quantifiers = 0;
    while (true) {
      if (const std::optional<ExprId> item = parse_item(depth)) {
        parts.push_back(*item);
        quantifiers = 0;
      } else if (const std::size_t at = at_; const auto counts = parse_quantifier()) {
        if (parts.empty()) fail_at(at, "this quantifier has nothing to repeat");
        if (++quantifiers > kMaxNesting) fail_at(at, "too many quantifiers in a row");
        parts.back() = rules_.repeat(parts.back(), counts->first, counts->second);
      } else {
        return rules_.sequence(std::move(parts));
      }
      skip_space(depth > 0);
    }
  }

  std::optional<ExprId> parse_item(std::size_t depth) {
    const char c = peek();
    const std::size_t start = at_;
    if (c == '"') return parse_literal();
    if (c == '[') return parse_class();
    if (take('.')) return rules_.one_of(complement({}));
    if (take('(')) {
      skip_space(true);
      const ExprId group = parse_choice(depth + 1);
      if (!take(')')) {
        if (!at_end()) fail("expected ')' or an expression here");
        fail_at(start, "this group has no end: expected ')'");
      }
      return group;
    }
    if (is_name_char(c)) {
      const std::string_view name = parse_name();
      return rules_.rule(named(name, start).id);
    }
    if (c == '<' || (c == '!' && peek(1) == '<'))
      fail("tokens by name or number are not supported", "write the text of the token as a literal");
    return std::nullopt;
  }

  std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_quantifier() {
    if (take('*')) return std::pair(0U, kUnbounded);
    if (take('+')) return std::pair(1U, kUnbounded);
    if (take('?')) return std::pair(0U, 1U);
    const std::size_t start = at_;
    if (!take('{')) return std::nullopt;
    skip_space(false);
    const std::uint32_t min = parse_count();
    std::uint32_t max = min;
    skip_space(false);
    if (take(',')) {
      skip_space(false);
      max = is_digit(peek()) ? parse_count() : kUnbounded;
      skip_space(false);
    }
    if (!take('}')) fail("expected '}' after the counts of a repetition");
    if (min > max) fail_at(start, concat_text("the repetition {", min, ",", max, "} has a minimum above its maximum"));
    return std::pair(min, max);
  }
  std::uint32_t parse_count() {
    if (!is_digit(peek())) fail("expected a number in the braces of a repetition", "{n}, {n,} or {m,n}");
    const std::size_t start = at_;
    std::uint64_t n = 0;
    for (; is_digit(peek()); ++at_) {
      n = n * 10 + static_cast<std::uint64_t>(peek() - '0');
      if (n > kMaxCount)
        fail_at(start, concat_text("a repetition count must be at most ", kMaxCount), "leave the limit out");
    }
    return static_cast<std::uint32_t>(n);
  }

  ExprId parse_literal() {
    const std::size_t start = at_++;
    std::string bytes;
    while (!take('"')) {
      if (at_end() || peek() == '\n' || peek() == '\r') fail_at(start, "this literal has no end: expected '\"'");
      append_utf8(bytes, parse_char());
    }
    return rules_.bytes(bytes);
  }

  ExprId parse_class() {
    const std::size_t start = at_++;
    const bool negated = take('^');
    std::vector<CodePointRange> ranges;
    while (!take(']')) {
      if (at_end() || peek() == '\n' || peek() == '\r') fail_at(start, "this class has no end: expected ']'");
      const std::size_t at = at_;
      const char32_t first = parse_char();
      char32_t last = first;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_end()) fail_at(start, "this class has no end: expected ']'");
        last = parse_char();
        if (last < first) fail_at(at, "the first character of this range comes after its last");
      }
      ranges.push_back({first, last});
    }
    CodePointSet set = normalized(std::move(ranges));
    if (negated) set = complement(set);
    if (set.empty()) fail_at(start, "this class allows no character");
    return rules_.one_of(std::move(set));
  }

  // Parses one character of a literal or class, with escapes resolved.
  char32_t parse_char() {
    if (peek() != '\\') return decode_utf8(text_, at_);
    const std::size_t start = at_++;
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case '"':
      case '\\':
      case '[':
      case ']': return static_cast<char32_t>(c);
      case 'x': return parse_hex(start, 2);
      case 'u': return parse_hex(start, 4);
      case 'U': return parse_hex(start, 8);
      default: fail_at(start, "unknown escape", R"(escapes are \n \t \r \" \\ \[ \] \xHH \uHHHH \UHHHHHHHH)");
    }
  }
  char32_t parse_hex(std::size_t start, int digits) {
    std::uint64_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = is_digit(c)              ? c - '0'
                        : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                        : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                                 : -1;
      if (digit < 0) fail_at(start, concat_text("this escape needs ", digits, " hexadecimal digits"));
      value = value * 16 + static_cast<std::uint64_t>(digit);
    }
    if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF))
      fail_at(start, "this is not a Unicode character");
    return static_cast<char32_t>(value);
  }

  // Sets the position of every rule, and refuses rules that were named but never defined.
  void finish(std::string_view root) {
    std::vector<std::string> defined;
    for (const auto& [name, rule] : names_)
      if (rule.defined) defined.push_back(name);
    const Named* first_missing = nullptr;
    std::string missing_name;
    for (const auto& [name, rule] : names_) {
      if (!rule.defined && (first_missing == nullptr || first_seen_[rule.id] < first_seen_[first_missing->id])) {
        first_missing = &rule;
        missing_name = name;
      }
    }
    if (first_missing != nullptr) {
      fail_at(first_seen_[first_missing->id], concat_text("rule '", missing_name, "' is not defined"),
              did_you_mean(missing_name, defined));
    }
    const auto entry = names_.find(std::string(root));
    if (entry == names_.end()) {
      throw Error(Diagnostic{ErrorCode::BadFile,
                             concat_text(source_, ": there is no rule '", root, "', where the grammar begins"),
                             {},
                             did_you_mean(root, defined, "define it: root ::= ...")});
    }
    rules_.set_root(entry->second.id);
    // In order of position, so that lines are counted in one pass.
    std::vector<RuleId> order(first_seen_.size());
    for (RuleId i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](RuleId a, RuleId b) { return first_seen_[a] < first_seen_[b]; });
    std::size_t at = 0, line = 1, line_start = 0;
    for (const RuleId id : order) {
      for (; at < first_seen_[id]; ++at) {
        if (text_[at] != '\n') continue;
        ++line;
        line_start = at + 1;
      }
      rules_.set_place(id, concat_text(source_, ":", line, ":", at - line_start + 1));
    }
  }

  std::string_view text_, source_;
  std::size_t at_ = 0;
  GrammarRules rules_;
  std::unordered_map<std::string, Named> names_;
  std::vector<std::size_t> first_seen_;  // by rule: position of its definition or first use
};

}  // namespace

GrammarRules parse_gbnf(std::string_view text, std::string_view source, std::string_view root) {
  return GbnfParser(text, source).parse(root);
}

}  // namespace rlx
