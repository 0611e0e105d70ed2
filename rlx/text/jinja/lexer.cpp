// The lexer of chat templates. trim_blocks and lstrip_blocks are on, as in transformers.
#include "rlx/text/jinja/lexer.h"

#include <algorithm>
#include <charconv>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/jinja/unicode.h"

namespace rlx::jinja {

std::string normalise_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Tokens run() {
    try {
      while (at_ < source_.size()) root();
      const Position last = out_.tokens.empty() ? Position{1, 1} : out_.tokens.back().at;
      add(TokenKind::End, at_).at = last;  // jinja2's position of a missing token
    } catch (Raised& fault) {
      out_.fault = std::move(fault);
      add(TokenKind::End, at_);
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string message, std::size_t where) {
    throw Raised{"TemplateSyntaxError", std::move(message), position(where)};
  }

  // Positions are requested in ascending order, so counting continues from the last one.
  Position position(std::size_t offset) {
    if (offset < counted_) counted_ = 0, place_ = {1, 1};
    for (; counted_ < offset; ++counted_) {
      if (source_[counted_] == '\n') {
        place_ = {place_.line + 1, 1};
      } else if (!is_utf8_continuation(source_[counted_])) {
        ++place_.column;
      }
    }
    return place_;
  }

  Token& add(TokenKind kind, std::size_t where) {
    Token token;
    token.kind = kind;
    token.at = position(where);
    out_.tokens.push_back(std::move(token));
    return out_.tokens.back();
  }

  bool starts(std::string_view word) const { return source_.substr(at_, word.size()) == word; }

  std::size_t skip_space(std::size_t at) const {
    while (at < source_.size()) {
      std::size_t next = at;
      if (!is_space(decode_utf8(source_, next))) break;
      at = next;
    }
    return at;
  }

  // Lexes text up to the next tag, and the tag.
  void root() {
    const std::size_t start = at_;
    std::size_t tag = start;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        data(source_.substr(start), start);
        at_ = source_.size();
        return;
      }
      const char c = source_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
      ++tag;
    }
    const char kind = source_[tag + 1];
    std::size_t body = tag + 2;
    char sign = 0;
    if (body < source_.size() && (source_[body] == '-' || source_[body] == '+')) sign = source_[body++];
    data(strip_before(source_.substr(start, tag - start), sign, kind != '{'), start);
    at_ = body;
    if (kind == '#') {
      comment(tag);
    } else if (kind == '{') {
      add(TokenKind::VariableBegin, tag);
      inside(false);
    } else if (const std::size_t end = raw_begin(body); end != 0) {
      at_ = end;
      raw(tag);
    } else {
      add(TokenKind::BlockBegin, tag);
      inside(true);
    }
  }

  // The text before a tag that stays: `{%-` strips all white space, a block tag alone on its line strips its
  // indentation.
  std::string_view strip_before(std::string_view text, char sign, bool block) const {
    if (sign == '-') {
      std::size_t end = text.size();
      while (end > 0) {
        std::size_t last = end - 1;
        while (last > 0 && is_utf8_continuation(text[last])) --last;
        std::size_t next = last;
        if (!is_space(decode_utf8(text, next))) break;
        end = last;
      }
      return text.substr(0, end);
    }
    if (sign == '+' || !block) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return text;
    for (std::size_t at = line; at < text.size();)
      if (!is_space(decode_utf8(text, at))) return text;
    return text.substr(0, line);
  }

  void data(std::string_view text, std::size_t where) {
    if (!text.empty()) add(TokenKind::Data, where).text = std::string(text);
  }

  // Skips white space after a tag that ends at `end`: `-` skips all, a block tag skips one line end.
  void after_tag(char sign, bool trims) {
    if (sign == '-') {
      at_ = skip_space(at_);
    } else if (sign == 0 && trims && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
    }
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  void comment(std::size_t tag) {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) fail("Missing end of comment tag", tag);
    const char last = end > at_ ? source_[end - 1] : '\0';
    at_ = end + 2;
    after_tag(last == '-' || last == '+' ? last : '\0', true);
  }

  // The offset after `raw %}` if that follows, else 0.
  std::size_t raw_begin(std::size_t at) const {
    at = skip_space(at);
    if (source_.substr(at, 3) != "raw") return 0;
    at = skip_space(at + 3);
    if (source_.substr(at, 3) == "-%}") return skip_space(at + 3);
    return source_.substr(at, 2) == "%}" ? at + 2 : 0;
  }

  void raw(std::size_t tag) {
    line_starting_ = source_[at_ - 1] == '\n';
    const std::size_t start = at_;
    for (std::size_t end = source_.find("{%", start); end != std::string_view::npos;
         end = source_.find("{%", end + 1)) {
      std::size_t at = end + 2;
      char sign = 0;
      if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) sign = source_[at++];
      at = skip_space(at);
      if (source_.substr(at, 6) != "endraw") continue;
      at = skip_space(at + 6);
      char last = 0;
      if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) last = source_[at++];
      if (source_.substr(at, 2) != "%}") continue;
      data(strip_before(source_.substr(start, end - start), sign, true), start);
      at_ = at + 2;
      after_tag(last, true);
      return;
    }
    fail("Missing end of raw directive", tag);
  }

  // Lexes tokens up to the end of the tag.
  void inside(bool block) {
    const std::string_view end = block ? "%}" : "}}";
    const TokenKind kind = block ? TokenKind::BlockEnd : TokenKind::VariableEnd;
    std::string open;
    while (true) {
      if (open.empty()) {
        char sign = 0;
        std::size_t length = 0;
        if (starts(end)) {
          length = 2;
        } else if ((starts("-") || (block && starts("+"))) && source_.substr(at_ + 1, 2) == end) {
          sign = source_[at_];
          length = 3;
        }
        if (length != 0) {
          add(kind, at_);
          at_ += length;
          after_tag(sign, block);
          return;
        }
      }
      const std::size_t next = skip_space(at_);
      if (next != at_) {
        at_ = next;
        continue;
      }
      if (at_ >= source_.size()) return;  // the parser reports what is missing
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = source_[at_];
    if (is_digit(c) && number()) return;
    std::size_t next = at_;
    const char32_t first = decode_utf8(source_, next);
    if (is_word(first)) return name();
    if ((c == '"' || c == '\'') && string()) return;
    static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!starts(op)) continue;
      balance(op[0], open);
      add(TokenKind::Operator, at_).text = std::string(op);
      at_ += op.size();
      return;
    }
    fail(concat_text("unexpected char ", repr_of_string(source_.substr(at_, next - at_)), " at ",
                     code_points(source_.substr(0, at_))),
         at_);
  }

  void balance(char c, std::string& open) {
    if (c == '{') open += '}';
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c != '}' && c != ')' && c != ']') return;
    if (open.empty()) fail(concat_text("unexpected '", c, "'"), at_);
    const char expected = open.back();
    open.pop_back();
    if (expected != c) fail(concat_text("unexpected '", c, "', expected '", expected, "'"), at_);
  }

  void name() {
    const std::size_t start = at_;
    while (at_ < source_.size()) {
      std::size_t next = at_;
      if (!is_word(decode_utf8(source_, next))) break;
      at_ = next;
    }
    const std::string_view text = source_.substr(start, at_ - start);
    if (!is_identifier(text)) fail("Invalid character in identifier", start);
    add(TokenKind::Name, start).text = std::string(text);
  }

  // Skips digits with single underscores between them, from `at` on. Returns their end.
  template <class Is>
  std::size_t digits(std::size_t at, const Is& is) const {
    if (at >= source_.size() || !is(source_[at])) return at;
    ++at;
    while (at < source_.size()) {
      if (is(source_[at])) {
        ++at;
      } else if (source_[at] == '_' && at + 1 < source_.size() && is(source_[at + 1])) {
        at += 2;
      } else {
        break;
      }
    }
    return at;
  }

  bool number() {
    const std::size_t whole = digits(at_, is_digit);
    std::size_t end = whole;
    bool real = false;
    if (at_ == 0 || source_[at_ - 1] != '.') {
      if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
        end = digits(end + 1, is_digit);
        real = true;
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        std::size_t at = end + 1;
        if (at < source_.size() && (source_[at] == '+' || source_[at] == '-')) ++at;
        if (at < source_.size() && is_digit(source_[at])) {
          end = digits(at, is_digit);
          real = true;
        }
      }
    }
    if (real) {
      std::string text(source_.substr(at_, end - at_));
      std::erase(text, '_');
      Token& token = add(TokenKind::Float, at_);
      const std::from_chars_result r = std::from_chars(text.data(), text.data() + text.size(), token.real);
      if (r.ec == std::errc::result_out_of_range) token.real = parse_float(text).value_or(0);
      token.text = std::move(text);
      at_ = end;
      return true;
    }
    return integer();
  }

  bool integer() {
    int base = 10;
    std::size_t start = at_, end = at_;
    const char marker = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : '\0';
    if (source_[at_] == '0' && (marker == 'b' || marker == 'o' || marker == 'x')) {
      base = marker == 'b' ? 2 : marker == 'o' ? 8 : 16;
      start = at_ + 2;
      if (start < source_.size() && source_[start] == '_') ++start;
      end = digits(start, [&](char c) { return digit_value(static_cast<unsigned char>(c)) < base; });
    }
    if (end == start) {  // decimal; only zeros may follow a leading zero
      base = 10;
      start = at_;
      end = source_[at_] == '0' ? digits(at_, [](char c) { return c == '0'; }) : digits(at_, is_digit);
    }
    std::string text(source_.substr(start, end - start));
    std::erase(text, '_');
    std::int64_t value = 0;
    const std::from_chars_result r = std::from_chars(text.data(), text.data() + text.size(), value, base);
    std::string large;  // decimal digits
    if (r.ec != std::errc{}) {
      const std::optional<BigInteger> big = BigInteger::parse(text, base);
      if (!big) throw Raised{std::string(kLimit), "an integer has more than 4300 digits", position(at_)};
      large = big->text();
    }
    Token& token = add(TokenKind::Integer, at_);
    token.integer = value;
    token.large = std::move(large);
    token.text = std::move(text);
    at_ = end;
    return true;
  }

  bool string() {
    const char quote = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return false;
    std::string text = unescape(source_.substr(at_ + 1, end - at_ - 1), position(at_));
    add(TokenKind::String, at_).text = std::move(text);
    at_ = end + 1;
    return true;
  }

  // Decodes escapes like Python's "unicode-escape" codec.
  static std::string unescape(std::string_view text, Position where) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      std::size_t digits = 0;
      switch (c) {
        case '\n': continue;
        case '\\':
        case '\'':
        case '"': out += c; continue;
        case 'a': out += '\a'; continue;
        case 'b': out += '\b'; continue;
        case 'f': out += '\f'; continue;
        case 'n': out += '\n'; continue;
        case 'r': out += '\r'; continue;
        case 't': out += '\t'; continue;
        case 'v': out += '\v'; continue;
        case 'x': digits = 2; break;
        case 'u': digits = 4; break;
        case 'U': digits = 8; break;
        case 'N': throw Raised{std::string(kUnsupported), "named characters (\\N{...}) are not supported", where};
        default: break;
      }
      if (c >= '0' && c <= '7') {
        char32_t value = 0;
        std::size_t end = i;
        while (end < text.size() && end < i + 3 && text[end] >= '0' && text[end] <= '7')
          value = value * 8 + static_cast<char32_t>(text[end++] - '0');
        i = end - 1;
        append_utf8(out, value);
        continue;
      }
      if (digits == 0) {  // an unknown escape is kept
        out += '\\';
        out += c;
        continue;
      }
      std::uint64_t value = 0;
      for (std::size_t k = 0; k < digits; ++k) {
        const int d = i + 1 < text.size() ? digit_value(static_cast<unsigned char>(text[i + 1])) : 99;
        if (d >= 16)
          throw Raised{"TemplateSyntaxError",
                       concat_text("truncated \\", c,
                                   digits == 2   ? "XX"
                                   : digits == 4 ? "XXXX"
                                                 : "XXXXXXXX",
                                   " escape"),
                       where};
        value = value * 16 + static_cast<std::uint64_t>(d);
        ++i;
      }
      if (value > 0x10FFFF) throw Raised{"TemplateSyntaxError", "illegal Unicode character", where};
      if (value >= 0xD800 && value <= 0xDFFF)
        throw Raised{std::string(kUnsupported), "half of a surrogate pair is no character of UTF-8", where};
      append_utf8(out, static_cast<char32_t>(value));
    }
    return out;
  }

  std::string_view source_;
  std::size_t at_ = 0, counted_ = 0;
  Position place_{1, 1};
  bool line_starting_ = true;
  Tokens out_;
};

}  // namespace

Tokens tokenize(std::string_view source) { return Lexer(source).run(); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::Data: return "template data / text";
    case TokenKind::VariableBegin: return "begin of print statement";
    case TokenKind::VariableEnd: return "end of print statement";
    case TokenKind::BlockBegin: return "begin of statement block";
    case TokenKind::BlockEnd: return "end of statement block";
    case TokenKind::Name:
    case TokenKind::Operator: return token.text;
    case TokenKind::String: return "string";
    case TokenKind::Integer: return "integer";
    case TokenKind::Float: return "float";
    case TokenKind::End: return "end of template";
  }
  return {};
}

}  // namespace rlx::jinja
