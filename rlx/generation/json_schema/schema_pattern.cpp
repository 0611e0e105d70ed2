// A recursive-descent parser of ECMA-262 patterns. It also computes how many characters each part matches.
#include "rlx/generation/json_schema/schema_pattern.h"

#include <algorithm>
#include <string>

#include "rlx/base/utf8.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxRegexNesting = 200;
constexpr std::uint32_t kMaxRegexCount = 1'000'000'000;

std::uint32_t added(std::uint32_t a, std::uint32_t b) {
  return a == kUnbounded || b == kUnbounded
             ? kUnbounded
             : static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{a} + b, kUnbounded - 1));
}
std::uint32_t multiplied(std::uint32_t a, std::uint32_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kUnbounded || b == kUnbounded) return kUnbounded;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{a} * b, kUnbounded - 1));
}

const CodePointSet& digits() {
  static const CodePointSet set{{U'0', U'9'}};
  return set;
}
const CodePointSet& word_characters() {
  static const CodePointSet set = normalized({{U'0', U'9'}, {U'A', U'Z'}, {U'_', U'_'}, {U'a', U'z'}});
  return set;
}
const CodePointSet& spaces() {
  static const CodePointSet set = normalized({{U'\t', U'\r'},
                                              {U' ', U' '},
                                              {0xA0, 0xA0},
                                              {0x1680, 0x1680},
                                              {0x2000, 0x200A},
                                              {0x2028, 0x2029},
                                              {0x202F, 0x202F},
                                              {0x205F, 0x205F},
                                              {0x3000, 0x3000},
                                              {0xFEFF, 0xFEFF}});
  return set;
}
const CodePointSet& line_ends() {
  static const CodePointSet set = normalized({{U'\n', U'\n'}, {U'\r', U'\r'}, {0x2028, 0x2029}});
  return set;
}

}  // namespace

class SchemaPatternParser {
 public:
  SchemaPatternParser(std::string_view text, std::string_view where, SchemaPattern& out)
      : text_(text), where_(where), out_(out) {}

  std::uint32_t parse() {
    const std::uint32_t root = parse_choice(0);
    if (at_ < text_.size()) fail("this ')' has no matching '('");
    return root;
  }

 private:
  using Node = SchemaPattern::Node;
  [[noreturn]] void fail(std::string_view message, ErrorCode code = ErrorCode::BadFile) const {
    throw Error(code, concat_text(where_, ": pattern '", text_, "', position ", at_, ": ", message));
  }
  [[noreturn]] void unsupported(std::string_view what) const {
    fail(concat_text(what, " cannot become a grammar"), ErrorCode::Unsupported);
  }
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::uint32_t add(Node n) {
    std::pair<std::uint32_t, std::uint32_t> length{0, 0};
    switch (n.kind) {
      case ExprKind::Class: length = {1, 1}; break;
      case ExprKind::Sequence:
        for (const std::uint32_t c : n.children)
          length = {added(length.first, out_.lengths_[c].first), added(length.second, out_.lengths_[c].second)};
        break;
      case ExprKind::Choice:
        length = out_.lengths_[n.children[0]];
        for (const std::uint32_t c : n.children)
          length = {std::min(length.first, out_.lengths_[c].first), std::max(length.second, out_.lengths_[c].second)};
        break;
      case ExprKind::Repeat: {
        const auto one = out_.lengths_[n.children[0]];
        length = {multiplied(one.first, n.min), multiplied(one.second, n.max)};
        break;
      }
      default: break;
    }
    out_.nodes_.push_back(std::move(n));
    out_.lengths_.push_back(length);
    return static_cast<std::uint32_t>(out_.nodes_.size() - 1);
  }
  std::uint32_t class_node(CodePointSet set) { return add({ExprKind::Class, std::move(set), {}, 0, 0}); }
  std::uint32_t sequence(std::vector<std::uint32_t> parts) {
    return parts.size() == 1 ? parts[0] : add({ExprKind::Sequence, {}, std::move(parts), 0, 0});
  }
  std::uint32_t repeat(std::uint32_t part, std::uint32_t min, std::uint32_t max) {
    return add({ExprKind::Repeat, {}, {part}, min, max});
  }

  // A pattern without anchors may match anywhere in the text, so at the top level any characters may come before and
  // after it.
  std::uint32_t parse_choice(std::size_t depth) {
    if (depth > kMaxRegexNesting) fail("groups are nested too deeply");
    std::vector<std::uint32_t> choices;
    do {
      bool from_start = false, to_end = false;
      std::vector<std::uint32_t> parts = parse_sequence(depth, from_start, to_end);
      if (depth == 0) {
        const auto anything = [&] { return repeat(class_node(complement({})), 0, kUnbounded); };
        if (!from_start) parts.insert(parts.begin(), anything());
        if (!to_end) parts.push_back(anything());
      }
      choices.push_back(sequence(std::move(parts)));
    } while (take("|"));
    return choices.size() == 1 ? choices[0] : add({ExprKind::Choice, {}, std::move(choices), 0, 0});
  }

  std::vector<std::uint32_t> parse_sequence(std::size_t depth, bool& from_start, bool& to_end) {
    std::vector<std::uint32_t> parts;
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (peek() == '^' || peek() == '$') {
        const bool first = peek() == '^' && parts.empty() && !to_end;
        const bool last = peek() == '$' && (peek(1) == '\0' || peek(1) == '|');
        if (depth > 0 || (!first && !last)) unsupported("an anchor inside of a pattern");
        (first ? from_start : to_end) = true;
        ++at_;
        continue;
      }
      parts.push_back(parse_quantified(depth));
    }
    return parts;
  }

  std::uint32_t parse_quantified(std::size_t depth) {
    std::uint32_t part = parse_atom(depth);
    std::uint32_t min = 1, max = 1;
    if (take("*")) {
      min = 0, max = kUnbounded;
    } else if (take("+")) {
      max = kUnbounded;
    } else if (take("?")) {
      min = 0;
    } else if (peek() == '{') {
      if (!parse_counts(min, max)) fail("expected {n}, {n,} or {m,n}", ErrorCode::Unsupported);
    } else {
      return part;
    }
    (void)take("?");  // lazy quantifiers match the same texts
    if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') fail("a quantifier after a quantifier");
    return repeat(part, min, max);
  }
  bool parse_counts(std::uint32_t& min, std::uint32_t& max) {
    ++at_;
    const auto count = [&](std::uint32_t& n) {
      const std::size_t start = at_;
      std::uint64_t value = 0;
      for (; peek() >= '0' && peek() <= '9'; ++at_) {
        value = value * 10 + static_cast<std::uint64_t>(peek() - '0');
        if (value > kMaxRegexCount) fail("a repetition of more than 1000000000", ErrorCode::Unsupported);
      }
      n = static_cast<std::uint32_t>(value);
      return at_ > start;
    };
    if (!count(min)) return false;
    max = min;
    if (take(",") && !count(max)) max = kUnbounded;
    if (!take("}")) return false;
    if (min > max) fail("a repetition has a minimum above its maximum");
    return true;
  }

  std::uint32_t parse_atom(std::size_t depth) {
    if (take("(")) {
      if (take("?=") || take("?!") || take("?<=") || take("?<!")) unsupported("lookaround");
      if (take("?<")) {
        const std::size_t end = text_.find('>', at_);
        if (end == std::string_view::npos) fail("a group's name without '>'");
        at_ = end + 1;
      } else if (!take("?:") && peek() == '?') {
        unsupported("this kind of group");
      }
      const std::uint32_t group = parse_choice(depth + 1);
      if (!take(")")) fail("expected ')'");
      return group;
    }
    if (take("[")) return class_node(parse_class());
    if (take(".")) return class_node(complement(line_ends()));
    if (peek() == '\\') {
      CodePointSet set;
      const char32_t c = parse_escape(set, false);
      return class_node(set.empty() ? CodePointSet{{c, c}} : std::move(set));
    }
    if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') fail("nothing to repeat");
    const char32_t c = decode_utf8(text_, at_);
    return class_node({{c, c}});
  }

  CodePointSet parse_class() {
    const bool negated = take("^");
    std::vector<CodePointRange> ranges;
    while (!take("]")) {
      if (at_end()) fail("a class without ']'");
      CodePointSet set;
      const char32_t first = class_character(set);
      if (!set.empty()) {
        ranges.insert(ranges.end(), set.begin(), set.end());
        continue;
      }
      char32_t last = first;
      if (peek() == '-' && peek(1) != ']' && peek(1) != '\0') {
        ++at_;
        last = class_character(set);
        if (!set.empty()) {  // [a-\d] means 'a', '-' and \d separately
          ranges.insert(ranges.end(), set.begin(), set.end());
          ranges.push_back({U'-', U'-'});
          last = first;
        }
        if (last < first) fail("a range whose first character comes after its last");
      }
      ranges.push_back({first, last});
    }
    const CodePointSet set = normalized(std::move(ranges));
    return negated ? complement(set) : set;
  }
  char32_t class_character(CodePointSet& set) {
    return peek() == '\\' ? parse_escape(set, true) : decode_utf8(text_, at_);
  }

  // Parses an escape: one character, or a set of several.
  char32_t parse_escape(CodePointSet& set, bool in_class) {
    ++at_;
    if (at_end()) fail("an escape without a character");
    const char c = peek();
    if (static_cast<unsigned char>(c) >= 0x80) return decode_utf8(text_, at_);
    ++at_;
    switch (c) {
      case 'd': set = digits(); return 0;
      case 'D': set = complement(digits()); return 0;
      case 'w': set = word_characters(); return 0;
      case 'W': set = complement(word_characters()); return 0;
      case 's': set = spaces(); return 0;
      case 'S': set = complement(spaces()); return 0;
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case 'f': return '\f';
      case 'v': return '\v';
      case '0':
        if (peek() >= '0' && peek() <= '9') unsupported("an octal escape");
        return 0;
      case 'x': return parse_hex(2);
      case 'u': return take("{") ? parse_braced() : parse_hex(4);
      case 'b':
        if (in_class) return '\b';
        [[fallthrough]];
      case 'B': unsupported("a word boundary");
      case 'c': unsupported("a control escape");
      case 'p':
      case 'P': unsupported("a class by Unicode property");
      default:
        if (c >= '1' && c <= '9') unsupported("a back reference");
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) fail("an unknown escape");
        return static_cast<char32_t>(c);
    }
  }
  char32_t parse_hex(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) value = value * 16 + hex_digit();
    return checked(value);
  }
  char32_t parse_braced() {
    std::uint32_t value = 0;
    for (; peek() != '}'; ++at_) value = std::min(value, kLastCodePoint + 1U) * 16 + hex_digit();
    ++at_;
    return checked(value);
  }
  std::uint32_t hex_digit() const {
    const char c = peek();
    if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
    fail("expected a hexadecimal digit");
  }
  char32_t checked(std::uint32_t value) const {
    if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) fail("this is not a Unicode character");
    return static_cast<char32_t>(value);
  }

  std::string_view text_, where_;
  SchemaPattern& out_;
  std::size_t at_ = 0;
};

SchemaPattern::SchemaPattern(std::string_view pattern, std::string_view where) {
  root_ = SchemaPatternParser(pattern, where, *this).parse();
}

std::pair<std::uint32_t, std::uint32_t> SchemaPattern::length(std::uint32_t node) const { return lengths_[node]; }

bool SchemaPattern::limit_length(std::uint32_t min, std::uint32_t max) {
  if (min_length() >= min && max_length() <= max) return true;
  Node& n = nodes_[root_];
  if (n.kind != ExprKind::Repeat || nodes_[n.children[0]].kind != ExprKind::Class) return false;
  n.min = std::max(n.min, min);
  n.max = std::min(n.max, max);
  if (n.min > n.max) n = {ExprKind::Never, {}, {}, 0, 0};
  lengths_[root_] = {n.min, n.max};
  return true;
}

ExprId SchemaPattern::expression(GrammarRules& rules,
                                 const std::function<ExprId(const CodePointSet&)>& character) const {
  std::vector<ExprId> made;  // children come before their parents
  for (const Node& n : nodes_) {
    std::vector<ExprId> children;
    for (const std::uint32_t c : n.children) children.push_back(made[c]);
    switch (n.kind) {
      case ExprKind::Class: made.push_back(character(n.set)); break;
      case ExprKind::Sequence: made.push_back(rules.sequence(std::move(children))); break;
      case ExprKind::Choice: made.push_back(rules.choice(std::move(children))); break;
      case ExprKind::Repeat: made.push_back(rules.repeat(children[0], n.min, n.max)); break;
      case ExprKind::Empty: made.push_back(rules.empty()); break;
      default: made.push_back(rules.never());
    }
  }
  return made[root_];
}

}  // namespace rlx
