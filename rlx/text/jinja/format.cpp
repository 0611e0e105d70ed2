// Formatting: format(value, spec), str.format and the % operator of strings.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/jinja/render.h"

namespace rlx::jinja {
namespace {

// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct Spec {
  std::string fill;
  char align = 0, sign = 0, grouping = 0, type = 0;
  bool alternate = false, zeros = false;
  std::int64_t width = 0, precision = -1;
};

constexpr std::int64_t kMaxPrecision = 10000;

std::int64_t digits(std::string_view text, std::size_t& at) {
  std::int64_t v = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    v = v * 10 + (text[at] - '0');
    if (v > INT32_MAX) raise(kValueError, "Too many decimal digits in format string");
  }
  return v;
}

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Spec parse_spec(std::string_view text, const Value& v) {
  Spec spec;
  std::size_t at = 0;
  std::size_t second = 0;
  if (!text.empty()) (void)decode_utf8(text, second);
  if (second < text.size() && second > 0 && is_align(text[second])) {
    spec.fill = std::string(text.substr(0, second));
    spec.align = text[second];
    at = second + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    at = 1;
  }
  const auto next = [&](char c) {
    const bool there = at < text.size() && text[at] == c;
    at += there ? 1 : 0;
    return there;
  };
  for (const char c : {'+', '-', ' '})
    if (spec.sign == 0 && next(c)) spec.sign = c;
  spec.alternate = next('#');
  if (spec.fill.empty() && next('0')) {
    spec.fill = "0";
    spec.zeros = true;
    if (spec.align == 0 && !v.is_string()) spec.align = '=';
  }
  spec.width = digits(text, at);
  if (next(',')) spec.grouping = ',';
  if (next('_')) {
    if (spec.grouping != 0) raise(kValueError, "Cannot specify both ',' and '_'.");
    spec.grouping = '_';
  }
  if (next('.')) {
    if (at >= text.size() || text[at] < '0' || text[at] > '9') raise(kValueError, "Format specifier missing precision");
    spec.precision = digits(text, at);
  }
  if (at < text.size()) {
    std::size_t end = at;
    (void)decode_utf8(text, end);
    if (end < text.size())
      raise(kValueError, concat_text("Invalid format specifier '", text, "' for object of type '", type_name(v), "'"));
    spec.type = text[at];
  }
  return spec;
}

[[noreturn]] void raise_code(char type, const Value& v) {
  raise(kValueError, concat_text("Unknown format code '", type, "' for object of type '", type_name(v), "'"));
}

std::string padded(const Spec& spec, std::string_view sign, std::string body, char default_align) {
  const std::int64_t length = code_points(body) + code_points(sign);
  const std::int64_t spare = spec.width > length ? spec.width - length : 0;
  const std::string fill = spec.fill.empty() ? " " : spec.fill;
  Budget::require_string(static_cast<std::size_t>(spare), fill.size());
  const char align = spec.align == 0 ? default_align : spec.align;
  const std::int64_t before = align == '^' ? spare / 2 : align == '<' ? 0 : spare;
  std::string out;
  if (align == '=') out += sign;
  for (std::int64_t i = 0; i < before; ++i) out += fill;
  if (align != '=') out += sign;
  out += body;
  for (std::int64_t i = before; i < spare; ++i) out += fill;
  return out;
}

// Inserts separators between digit groups of the integer part. Zeros padded up to `width` are grouped too.
std::string grouped(std::string text, char separator, std::size_t group, std::int64_t width) {
  std::size_t whole = text.find_first_not_of("0123456789abcdefABCDEF");
  if (whole == std::string::npos) whole = text.size();
  std::string head = text.substr(0, whole);
  const std::string tail = text.substr(whole);
  const auto length = [&] { return head.size() + (head.size() - 1) / group + tail.size(); };
  while (width > 0 && static_cast<std::int64_t>(length()) < width) head.insert(0, "0");
  for (std::size_t i = head.size(); i > group;) head.insert(i -= group, 1, separator);
  return head + tail;
}

std::string_view sign_text(const Spec& spec, bool negative) {
  return negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
}

// Digits of |v| as in %e, %f and %g; as in repr for type 0.
std::string real_digits(double v, char type, std::int64_t precision, bool alternate) {
  const double size = std::fabs(v);
  const bool capital = type == 'E' || type == 'F' || type == 'G';
  if (!std::isfinite(v)) return std::isnan(v) ? (capital ? "NAN" : "nan") : (capital ? "INF" : "inf");
  if (precision > kMaxPrecision) raise(kLimit, "a number would have more than 10,000 digits");
  if (type == 0 && precision < 0) return repr_of_float(size);
  const char low = static_cast<char>(type | 0x20);
  const bool repr = type == 0;
  int digits = precision < 0 ? 6 : static_cast<int>(precision);
  const std::chars_format format = low == 'e'   ? std::chars_format::scientific
                                   : low == 'f' ? std::chars_format::fixed
                                                : std::chars_format::general;
  if (format == std::chars_format::general && digits == 0) digits = 1;
  std::string out(static_cast<std::size_t>(digits) + 340, '\0');
  if (format == std::chars_format::general) {
    // std::to_chars cannot write this format. Python's format without a type keeps one digit after the point and
    // switches to exponents earlier.
    const std::to_chars_result r =
        std::to_chars(out.data(), out.data() + out.size(), size, std::chars_format::scientific, digits - 1);
    const std::string text(out.data(), static_cast<std::size_t>(r.ptr - out.data()));
    const std::size_t e = text.find('e');
    const int exponent = std::atoi(text.c_str() + e + 1);
    const bool scientific = exponent < -4 || exponent >= (repr ? std::min(digits, 16 + digits) : digits);
    std::string body;
    if (scientific || (repr && exponent >= digits - 1 && exponent >= digits)) {
      body = text.substr(0, e);
    } else {
      const std::to_chars_result f = std::to_chars(out.data(), out.data() + out.size(), size, std::chars_format::fixed,
                                                   std::max(0, digits - 1 - exponent));
      body = std::string(out.data(), static_cast<std::size_t>(f.ptr - out.data()));
    }
    if (!alternate && body.find('.') != std::string::npos) {
      body.erase(body.find_last_not_of('0') + 1);
      if (body.back() == '.') body.pop_back();
    }
    if (scientific) {
      body += text.substr(e);
    } else if (repr && body.find('.') == std::string::npos) {
      body += ".0";
    }
    out = std::move(body);
  } else {
    const std::to_chars_result r = std::to_chars(out.data(), out.data() + out.size(), size, format, digits);
    out.resize(static_cast<std::size_t>(r.ptr - out.data()));
    if (alternate && digits == 0) out.insert(out.find('e') == std::string::npos ? out.size() : out.find('e'), ".");
  }
  if (capital)
    for (char& c : out) c = c == 'e' ? 'E' : c;
  return out;
}

std::string integer_digits(std::uint64_t v, char type) {
  char buffer[70];
  const int base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
  const std::to_chars_result r = std::to_chars(buffer, buffer + sizeof buffer, v, base);
  std::string out(buffer, static_cast<std::size_t>(r.ptr - buffer));
  if (type == 'X')
    for (char& c : out) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

// Digits of |v|, beyond 64 bits.
std::string large_digits(const Value& v, char type) {
  const BigInteger& big = v.get<BigIntObject>().value;
  std::string out = big.text(type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10);
  if (big.negative()) out.erase(0, 1);
  if (type == 'X')
    for (char& c : out) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

std::uint64_t magnitude(std::int64_t v) {
  return v < 0 ? ~static_cast<std::uint64_t>(v) + 1 : static_cast<std::uint64_t>(v);
}

std::string format_real(const Spec& given, double v, const Value& value) {
  Spec spec = given;
  if (spec.type == 'n') spec.type = 'g';
  if (spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) == std::string_view::npos)
    raise_code(spec.type, value);
  std::string body = spec.type == '%' ? real_digits(v * 100, 'f', spec.precision, spec.alternate) + "%"
                                      : real_digits(v, spec.type, spec.precision, spec.alternate);
  const std::string_view sign = sign_text(spec, std::signbit(v) && !std::isnan(v));
  if (spec.grouping != 0)
    body = grouped(std::move(body), spec.grouping, 3,
                   spec.align == '=' && spec.fill == "0" ? spec.width - static_cast<std::int64_t>(sign.size()) : 0);
  return padded(spec, sign, std::move(body), '>');
}

std::string format_integer(const Spec& spec, const Value& value) {
  const bool large = value.is(Kind::BigInt);
  const std::int64_t v = large ? 0 : value.as_int();
  const bool negative = large ? value.get<BigIntObject>().value.negative() : v < 0;
  if (spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos) {
    const double d = large ? value.get<BigIntObject>().value.as_real() : static_cast<double>(v);
    if (std::isinf(d)) raise(kOverflowError, "int too large to convert to float");
    return format_real(spec, d, value);
  }
  if (spec.type != 0 && std::string_view("bcdoxXn").find(spec.type) == std::string_view::npos)
    raise_code(spec.type, value);
  if (spec.precision >= 0) raise(kValueError, "Precision not allowed in integer format specifier");
  if (spec.type == 'c') {
    if (spec.sign != 0) raise(kValueError, "Sign not allowed with integer format specifier 'c'");
    if (large) raise(kOverflowError, "Python int too large to convert to C long");
    if (v < 0 || v > 0x10FFFF) raise(kOverflowError, "%c arg not in range(0x110000)");
    if (v >= 0xD800 && v <= 0xDFFF) raise(kUnsupported, "half of a surrogate pair is no character of UTF-8");
    std::string out;
    append_utf8(out, static_cast<char32_t>(v));
    return padded(spec, {}, std::move(out), '>');
  }
  std::string body = large ? large_digits(value, spec.type) : integer_digits(magnitude(v), spec.type);
  std::string sign(sign_text(spec, negative));
  const bool based = spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X';
  if (spec.alternate && based) sign += std::string("0") + spec.type;
  if (spec.grouping != 0) {
    if (spec.grouping == ',' && based) raise(kValueError, concat_text("Cannot specify ',' with '", spec.type, "'."));
    body = grouped(std::move(body), spec.grouping, based ? 4 : 3,
                   spec.align == '=' && spec.fill == "0" ? spec.width - static_cast<std::int64_t>(sign.size()) : 0);
  }
  return padded(spec, sign, std::move(body), '>');
}

}  // namespace

std::string format_value(Heap& heap, const Value& v, std::string_view text) {
  if (text.empty()) return to_text(heap, v);
  if (!v.is_string() && !v.is_any_number())
    raise(kTypeError, concat_text("unsupported format string passed to ", type_name(v), ".__format__"));
  const Spec spec = parse_spec(text, v);
  if (v.is(Kind::Float)) return format_real(spec, v.as_real(), v);
  if (v.is_int()) return format_integer(spec, v);
  if (spec.type != 0 && spec.type != 's') raise_code(spec.type, v);
  if (spec.sign != 0) raise(kValueError, "Sign not allowed in string format specifier");
  if (spec.alternate) raise(kValueError, "Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=') raise(kValueError, "'=' alignment not allowed in string format specifier");
  if (spec.grouping != 0) raise(kValueError, concat_text("Cannot specify '", spec.grouping, "' with 's'."));
  std::string_view body = v.text();
  if (spec.precision >= 0) body = body.substr(0, offset_of(body, false, spec.precision));
  return padded(spec, {}, std::string(body), '<');
}

// -- str.format --

namespace {

class BraceFormatter {
 public:
  BraceFormatter(Renderer& r, bool markup, Arguments& args) : r_(r), markup_(markup), args_(args) {}

  std::string format(std::string_view text, int depth) {
    if (depth < 0) raise(kValueError, "Max string recursion exceeded");
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at++];
      if (c != '{' && c != '}') {
        out += c;
      } else if (at < text.size() && text[at] == c) {
        out += c;
        ++at;
      } else if (c == '}') {
        raise(kValueError, "Single '}' encountered in format string");
      } else {
        out += field(text, at, depth);
      }
      Budget::require_string(out.size());
    }
    r_.heap().budget().copy(out.size());
    return out;
  }

 private:
  std::string field(std::string_view text, std::size_t& at, int depth) {
    const std::size_t start = at;
    if (at >= text.size()) raise(kValueError, "Single '{' encountered in format string");
    int open = 1;
    bool bracket = false;
    std::size_t name_end = std::string_view::npos;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (name_end == std::string_view::npos) {
        if (c == '[') bracket = true;
        if (c == ']') bracket = false;
        if (bracket) continue;
        if (c == '!' || c == ':') name_end = at;
      }
      if (c == '{') ++open;
      if (c == '}' && --open == 0) break;
    }
    if (open != 0) raise(kValueError, "expected '}' before end of string");
    if (name_end == std::string_view::npos) name_end = at;
    const std::string_view name = text.substr(start, name_end - start);
    std::string_view rest = text.substr(name_end, at - name_end);
    ++at;
    char conversion = 0;
    if (rest.starts_with('!')) {
      if (rest.size() < 2) raise(kValueError, "unmatched '{' in format spec");
      conversion = rest[1];
      rest.remove_prefix(2);
      if (!rest.empty() && rest[0] != ':') raise(kValueError, "expected ':' after conversion specifier");
    }
    if (!rest.empty()) rest.remove_prefix(1);
    Value v = lookup(name);
    Heap& heap = r_.heap();
    if (conversion == 's') v = heap.string(to_text(heap, v));
    if (conversion == 'r') v = heap.string(to_repr(heap, v));
    if (conversion == 'a') raise(kUnsupported, "the conversion !a is not supported");
    if (conversion != 0 && conversion != 's' && conversion != 'r')
      raise(kValueError, concat_text("Unknown conversion specifier ", conversion));
    const std::string spec = format(rest, depth - 1);
    if (!markup_) return format_value(heap, v, spec);
    if (!is_markup(v)) return escape_html(format_value(heap, v, spec));
    if (!spec.empty()) raise(kValueError, "Unsupported format specification for Markup.");
    return std::string(v.text());
  }

  static bool all_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  Value lookup(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    const std::string_view first = name.substr(0, first_end);
    Value v;
    if (first.empty() || all_digits(first)) {
      if (first.empty() && manual_)
        raise(kValueError, "cannot switch from manual field specification to automatic field numbering");
      if (!first.empty() && next_ > 0)
        raise(kValueError, "cannot switch from manual field specification to automatic field numbering");
      manual_ |= !first.empty();
      std::size_t index = next_;
      if (first.empty())
        ++next_;
      else if (std::from_chars(first.data(), first.data() + first.size(), index).ec != std::errc{})
        raise(kValueError, "Too many decimal digits in format string");
      if (index >= args_.positional.size())
        raise("IndexError", concat_text("Replacement index ", index, " out of range for positional args tuple"));
      v = args_.positional[index];
    } else {
      const auto it =
          std::find_if(args_.named.begin(), args_.named.end(), [&](const auto& e) { return e.first == first; });
      if (it == args_.named.end()) raise("KeyError", repr_of_string(first));
      v = it->second;
    }
    Heap& heap = r_.heap();
    for (std::size_t at = first_end; at < name.size();) {
      heap.step();
      if (name[at] == '.') {
        const std::size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        if (end == at + 1) raise(kValueError, "Empty attribute in format string");
        v = get_attribute(r_, v, heap.string(std::string(name.substr(at + 1, end - at - 1))));
        at = end;
      } else if (name[at] == '[') {
        const std::size_t end = name.find(']', at);
        if (end == std::string_view::npos) raise(kValueError, "Missing ']' in format string");
        const std::string_view key = name.substr(at + 1, end - at - 1);
        if (key.empty()) raise(kValueError, "Empty attribute in format string");
        std::int64_t index = 0;
        const bool number =
            all_digits(key) && std::from_chars(key.data(), key.data() + key.size(), index).ec == std::errc{};
        v = get_item(r_, v, number ? Value::integer(index) : heap.string(std::string(key)));
        at = end + 1;
      } else {
        raise(kValueError, "Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return v;
  }

  Renderer& r_;
  bool markup_;
  Arguments& args_;
  std::size_t next_ = 0;
  bool manual_ = false;
};

}  // namespace

Value format_braces(Renderer& r, const Value& format, Arguments& args) {
  return r.heap().string(BraceFormatter(r, is_markup(format), args).format(format.text(), 2), is_markup(format));
}

// -- % --

namespace {

class PercentFormatter {
 public:
  PercentFormatter(Heap& heap, const Value& format, const Value& args)
      : heap_(heap), text_(format.text()), args_(args), markup_(is_markup(format)) {
    mapping_ = args.is(Kind::Dict) || args.is(Kind::List) || args.is(Kind::Undefined) || args.is(Kind::Range);
    tuple_ = args.is(Kind::Tuple);
  }

  std::string run() {
    std::string out;
    for (at_ = 0; at_ < text_.size();) {
      const char c = text_[at_++];
      if (c != '%') {
        out += c;
      } else {
        out += conversion();
      }
      Budget::require_string(out.size());
    }
    const std::size_t count = tuple_ ? args_.get<ListObject>().items.size() : 1;
    if (!mapping_ && taken_ < count) raise(kTypeError, "not all arguments converted during string formatting");
    return out;
  }

 private:
  char need() {
    if (at_ >= text_.size()) raise(kValueError, "incomplete format");
    return text_[at_];
  }
  Value next() {
    const std::size_t count = tuple_ ? args_.get<ListObject>().items.size() : 1;
    if (keyed_) return std::exchange(key_value_, Value());
    if (taken_ >= count) raise(kTypeError, "not enough arguments for format string");
    const Value v = tuple_ ? args_.get<ListObject>().items[taken_] : args_;
    ++taken_;
    return v;
  }
  std::int64_t star_or_digits() {
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      const Value v = next();
      if (!v.is_integral()) raise(kTypeError, "* wants int");
      return std::clamp<std::int64_t>(v.as_int(), -INT32_MAX, INT32_MAX);
    }
    return digits(text_, at_);
  }

  std::string conversion() {
    keyed_ = false;
    if (need() == '(') key();
    Spec spec;
    bool left = false;
    for (; std::string_view("-+ #0").find(need()) != std::string_view::npos; ++at_) {
      const char c = text_[at_];
      left |= c == '-';
      spec.zeros |= c == '0';
      spec.alternate |= c == '#';
      if (c == '+' || (c == ' ' && spec.sign == 0)) spec.sign = c;
    }
    spec.width = star_or_digits();
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (need() == '.') {
      ++at_;
      spec.precision = std::max<std::int64_t>(0, star_or_digits());
    }
    while (need() == 'h' || need() == 'l' || need() == 'L') ++at_;
    const std::size_t where = at_;
    const char type = text_[at_++];
    if (type == '%') return "%";
    spec.align = left ? '<' : '>';
    return converted(spec, type, left, where);
  }

  void key() {
    if (!mapping_ || args_.is(Kind::List)) {
      if (!args_.is(Kind::Dict)) raise(kTypeError, "format requires a mapping");
    }
    const std::size_t start = ++at_;
    int open = 1;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '(') ++open;
      if (text_[at_] == ')' && --open == 0) break;
    }
    if (open != 0) raise(kValueError, "incomplete format key");
    const std::string_view name = text_.substr(start, at_ - start);
    ++at_;
    if (args_.is(Kind::Undefined)) raise_undefined(args_);
    const Value* found = args_.is(Kind::Dict) ? args_.get<DictObject>().find(name) : nullptr;
    if (found == nullptr) raise("KeyError", repr_of_string(name));
    key_value_ = *found;
    keyed_ = true;
  }

  std::string converted(Spec spec, char type, bool left, std::size_t where) {
    if (type == 's' || type == 'r' || type == 'a' || type == 'c') return text_of(spec, type);
    if (std::string_view("diuxXoeEfFgG").find(type) == std::string_view::npos) {
      char hex[8];
      const std::to_chars_result r = std::to_chars(hex, hex + sizeof hex, static_cast<unsigned char>(type), 16);
      raise(kValueError, concat_text("unsupported format character '", type, "' (0x",
                                     std::string_view(hex, static_cast<std::size_t>(r.ptr - hex)), ") at index ",
                                     code_points(text_.substr(0, where))));
    }
    const Value v = next();
    if (spec.zeros && !left) {
      spec.fill = "0";
      spec.align = '=';
    }
    if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
      if (v.is(Kind::Undefined)) raise_undefined(v);
      if (!v.is_any_number()) raise(kTypeError, concat_text("must be real number, not ", type_name(v)));
      const double d = v.is(Kind::BigInt) ? v.get<BigIntObject>().value.as_real() : v.number();
      if (v.is(Kind::BigInt) && std::isinf(d)) raise(kOverflowError, "int too large to convert to float");
      return padded(spec, sign_text(spec, std::signbit(d) && !std::isnan(d)),
                    real_digits(d, type, spec.precision, spec.alternate), '>');
    }
    const bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (!v.is_any_number() || (!decimal && !v.is_int()))
      raise(kTypeError, decimal ? concat_text("%", type, " format: a real number is required, not ", type_name(v))
                                : concat_text("%", type, " format: an integer is required, not ", type_name(v)));
    if (v.is(Kind::Float) && std::isnan(v.as_real())) raise(kValueError, "cannot convert float NaN to integer");
    if (v.is(Kind::Float) && std::isinf(v.as_real())) raise(kOverflowError, "cannot convert float infinity to integer");
    const Value whole = v.is(Kind::Float) ? heap_.integer(BigInteger::of_real(v.as_real())) : v;
    const bool large = whole.is(Kind::BigInt);
    const bool negative = large ? whole.get<BigIntObject>().value.negative() : whole.as_int() < 0;
    std::string body = large ? large_digits(whole, decimal ? 'd' : type)
                             : integer_digits(magnitude(whole.as_int()), decimal ? 'd' : type);
    if (spec.precision > kMaxPrecision) raise(kLimit, "a number would have more than 10,000 digits");
    if (static_cast<std::int64_t>(body.size()) < spec.precision)
      body.insert(0, static_cast<std::size_t>(spec.precision) - body.size(), '0');
    std::string sign(sign_text(spec, negative));
    if (spec.alternate && !decimal) sign += std::string("0") + type;
    return padded(spec, sign, std::move(body), '>');
  }

  std::string text_of(const Spec& spec, char type) {
    const Value v = next();
    std::string body;
    if (type == 'c') {
      if (v.is_integral()) {
        if (v.as_int() < 0 || v.as_int() > 0x10FFFF) raise(kOverflowError, "%c arg not in range(0x110000)");
        append_utf8(body, static_cast<char32_t>(v.as_int()));
      } else if (v.is_string() && code_points(v) == 1) {
        body = std::string(v.text());
      } else {
        raise(kTypeError, "%c requires int or char");
      }
      return padded(spec, {}, std::move(body), '>');
    }
    if (type == 'a') raise(kUnsupported, "the conversion %a is not supported");
    body = type == 's' ? to_text(heap_, v) : to_repr(heap_, v);
    if (markup_ && !(type == 's' && is_markup(v))) body = escape_html(body);
    if (spec.precision >= 0) body.resize(offset_of(body, false, spec.precision));
    return padded(spec, {}, std::move(body), '>');
  }

  Heap& heap_;
  std::string_view text_;
  const Value& args_;
  bool markup_, mapping_ = false, tuple_ = false, keyed_ = false;
  std::size_t at_ = 0, taken_ = 0;
  Value key_value_;
};

}  // namespace

Value format_percent(Heap& heap, const Value& format, const Value& args) {
  return heap.string(PercentFormatter(heap, format, args).run(), is_markup(format));
}

}  // namespace rlx::jinja
