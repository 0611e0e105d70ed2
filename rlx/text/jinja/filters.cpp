// Filters of strings, numbers and single values, and argument binding of filters, functions and methods.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/jinja/render.h"
#include "rlx/text/jinja/unicode.h"

namespace rlx::jinja {

Value Arguments::take(std::string_view name) {
  for (auto it = named.begin(); it != named.end(); ++it) {
    if (it->first != name) continue;
    Value v = std::move(it->second);
    named.erase(it);
    return v;
  }
  return {};
}

Parameters::Parameters(Arguments& given, std::string_view function, std::initializer_list<std::string_view> names,
                       std::size_t required, std::size_t before)
    : values_(names.size()) {
  if (given.positional.size() > names.size()) {
    const std::size_t most = names.size() + before, least = required + before;
    raise(kTypeError,
          concat_text(function, "() takes ", least == most ? std::string() : concat_text("from ", least, " to "), most,
                      " positional argument", most == 1 ? "" : "s", " but ", given.positional.size() + before,
                      given.positional.size() + before == 1 ? " was given" : " were given"));
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i) values_[i] = given.positional[i];
  for (const auto& [name, value] : given.named) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end())
      raise(kTypeError, concat_text(function, "() got an unexpected keyword argument ", repr_of_string(name)));
    Value& slot = values_[static_cast<std::size_t>(it - names.begin())];
    if (!slot.missing())
      raise(kTypeError, concat_text(function, "() got multiple values for argument ", repr_of_string(name)));
    slot = value;
  }
  std::vector<std::string> absent;
  for (std::size_t i = 0; i < required; ++i)
    if (values_[i].missing()) absent.push_back(repr_of_string(*(names.begin() + i)));
  if (absent.empty()) return;
  std::string list = absent[0];
  for (std::size_t i = 1; i < absent.size(); ++i)
    list += concat_text(absent.size() > 2 ? "," : "", i + 1 == absent.size() ? " and " : " ", absent[i]);
  raise(kTypeError, concat_text(function, "() missing ", absent.size(), " required positional argument",
                                absent.size() == 1 ? "" : "s", ": ", list));
}

std::int64_t Parameters::integer(std::size_t i, std::int64_t otherwise) const {
  return values_[i].missing() ? otherwise : require_integer(values_[i]);
}

namespace {

// str(value); a string keeps its markup.
Value soft_string(Heap& heap, const Value& v) { return v.is_string() ? v : heap.string(to_text(heap, v)); }

Value string_method_of(Renderer& r, const Value& v, std::string_view method, Arguments args) {
  return call_string_method(r, soft_string(r.heap(), v), method, args);
}

template <std::size_t N>
struct Literal {
  constexpr Literal(const char (&text)[N]) { std::copy_n(text, N, value); }
  char value[N];
};

// A filter that calls a method of str without arguments.
template <Literal function, Literal method>
Value plain_method(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, function.value, {});
  return string_method_of(r, v, method.value, {});
}

Value do_abs(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "abs", {});
  if (v.is(Kind::Float)) return Value::real(std::fabs(v.as_real()));
  if (!v.is_int()) raise(kTypeError, concat_text("bad operand type for abs(): '", type_name(v), "'"));
  return compare_numbers(v, Value::integer(0)) < 0 ? negate(r.heap(), v) : positive(v);
}

Value do_attr(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_attr", {"name"}, 1, 2);
  (void)require_text(p[0], "attribute name must be string");
  if (v.is(Kind::Undefined) || python_attribute(r, v, p[0].text())) return get_attribute(r, v, p[0]);
  return r.heap().undefined_of(v, p[0]);
}

Value do_center(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_center", {"width"});
  Arguments width;
  width.positional.push_back(p[0].missing() ? Value::integer(80) : p[0]);
  return string_method_of(r, v, "center", std::move(width));
}

Value do_default(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_default", {"default_value", "boolean"});
  if (!v.is(Kind::Undefined) && !(p.flag(1) && !truth(v))) return v;
  return p[0].missing() ? r.heap().string({}) : p[0];
}

Value do_escape(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "escape", {});
  if (is_markup(v)) return v;
  return r.heap().string(escape_html(to_text(r.heap(), v)), true);
}

Value do_forceescape(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_forceescape", {});
  return r.heap().string(escape_html(to_text(r.heap(), v)), true);
}

Value do_safe(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_mark_safe", {});
  return is_markup(v) ? v : r.heap().string(to_text(r.heap(), v), true);
}

Value do_string(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "soft_str", {});
  return soft_string(r.heap(), v);
}

double to_number(Heap& heap, const Value& v, bool& good) {
  if (v.is_string()) heap.budget().copy(8 * v.text().size());
  good = true;
  if (v.is_number()) return v.number();
  if (v.is(Kind::BigInt)) {
    const double d = v.get<BigIntObject>().value.as_real();
    if (std::isinf(d)) raise(kOverflowError, "int too large to convert to float");
    return d;
  }
  if (v.is(Kind::Undefined)) raise_undefined(v);
  std::optional<double> parsed;
  if (v.is_string()) parsed = parse_float(v.text());
  good = parsed.has_value();
  return parsed.value_or(0);
}

Value do_float(Renderer& r, const Value& v, Arguments& args) {
  Heap& heap = r.heap();
  const Parameters p(args, "do_float", {"default"});
  bool good = false;
  const double d = to_number(heap, v, good);
  if (good) return Value::real(d);
  return p[0].missing() ? Value::real(0) : p[0];
}

Value integer_of(Heap& heap, double d) {
  if (std::isnan(d)) raise(kValueError, "cannot convert float NaN to integer");
  if (std::isinf(d)) raise(kOverflowError, "cannot convert float infinity to integer");
  return heap.integer(BigInteger::of_real(d));
}

Value do_int(Renderer& r, const Value& v, Arguments& args) {
  Heap& heap = r.heap();
  const Parameters p(args, "do_int", {"default", "base"});
  if (v.is_integral()) return Value::integer(v.as_int());
  if (v.is(Kind::BigInt)) return v;
  if (v.is_string()) {
    const std::int64_t base = p.integer(1, 10);
    if (base == 0 || (base >= 2 && base <= 36)) {
      std::optional<BigInteger> large;
      bool overflow = false;
      heap.budget().copy(16 * v.text().size());
      if (const auto i = parse_int(v.text(), static_cast<int>(base), overflow, &large)) {
        if (!overflow) return Value::integer(*i);
        if (!large) raise(kLimit, "an integer has more than 4300 digits");
        return heap.integer(*std::move(large));
      }
    }
  } else if (v.is(Kind::Float) && std::isinf(v.as_real())) {
    raise(kOverflowError, "cannot convert float infinity to integer");
  }
  bool good = false;
  const double d = to_number(heap, v, good);
  if (good && std::isfinite(d)) return integer_of(heap, d);
  return p[0].missing() ? Value::integer(0) : p[0];
}

Value do_format(Renderer& r, const Value& v, Arguments& args) {
  Heap& heap = r.heap();
  if (!args.positional.empty() && !args.named.empty())
    raise(kFilterError, "can't handle positional and keyword arguments at the same time");
  if (args.named.empty()) return format_percent(heap, soft_string(heap, v), heap.tuple(args.positional));
  std::vector<DictObject::Entry> entries;
  for (const auto& [name, value] : args.named) entries.emplace_back(heap.string(name), value);
  return format_percent(heap, soft_string(heap, v), heap.dict(std::move(entries)));
}

Value do_indent(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_indent", {"width", "first", "blank"});
  Heap& heap = r.heap();
  if (v.is(Kind::Undefined)) raise_undefined(v);
  if (v.is(Kind::List)) raise("AttributeError", "'list' object has no attribute 'splitlines'");
  if (v.is(Kind::Tuple)) (void)arithmetic(heap, Expr::Type::Add, v, heap.string("\n"));
  if (!v.is_string())
    raise(kTypeError, concat_text("unsupported operand type(s) for +=: '", type_name(v), "' and 'str'"));
  std::string indention(4, ' ');
  if (!p[0].missing()) {
    if (p[0].is_string()) {
      indention = std::string(p[0].text());
    } else {
      indention = std::string(arithmetic(heap, Expr::Type::Mul, heap.string(" "), p[0]).text());
    }
  }
  Arguments none;
  const Value ended = heap.string(concat_text(v.text(), "\n"), is_markup(v));
  const std::vector<Value> lines = call_string_method(r, ended, "splitlines", none).get<ListObject>().items;
  std::string out = p.flag(1) ? indention : std::string();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) out += '\n';
    if (i != 0 && (p.flag(2) || !lines[i].text().empty())) out += indention;
    out += lines[i].text();
    Budget::require_string(out.size());
  }
  return heap.string(std::move(out), is_markup(v));
}

Value do_length(Renderer& r, const Value& v, Arguments& args) {
  if (!args.positional.empty() || !args.named.empty())
    raise(kTypeError, concat_text("len() takes exactly one argument (", args.positional.size() + 1, " given)"));
  if (v.is(Kind::Loop)) return Value::integer(v.get<LoopObject>().total(r.heap()));
  const std::optional<std::int64_t> n = length_of(v);
  if (!n) raise(kTypeError, concat_text("object of type '", type_name(v), "' has no len()"));
  return Value::integer(*n);
}

Value do_replace(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_replace", {"old", "new", "count"}, 2, 2);
  Heap& heap = r.heap();
  Arguments inner;
  inner.positional = {to_string_value(heap, p[0]), to_string_value(heap, p[1])};
  inner.positional.push_back(p.given(2) ? p[2] : Value::integer(-1));
  return call_string_method(r, to_string_value(heap, v), "replace", inner);
}

double round_real(double v, std::int64_t digits) {
  if (!std::isfinite(v) || digits > 323) return v;
  if (digits < -308) return std::copysign(0.0, v);
  if (digits >= 0) {  // exact decimals, ties to even, as Python rounds
    char buffer[800];
    const std::to_chars_result r =
        std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed, static_cast<int>(digits));
    double out = v;
    (void)std::from_chars(buffer, r.ptr, out);
    return out;
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(v / scale) * scale;
}

Value round_integer(std::int64_t v, std::int64_t digits) {
  if (digits >= 0) return Value::integer(v);
  if (digits < -18) return Value::integer(0);
  std::int64_t scale = 1;
  for (std::int64_t i = 0; i < -digits; ++i) scale *= 10;
  std::int64_t quotient = v / scale, rest = v % scale;
  if (rest < 0) {
    rest += scale;
    --quotient;
  }
  if (rest > scale - rest || (rest == scale - rest && (quotient & 1) != 0)) ++quotient;
  return Value::integer(quotient * scale);
}

Value do_round(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_round", {"precision", "method"});
  Heap& heap = r.heap();
  const std::string method = p[1].missing() ? "common" : to_text(heap, p[1]);
  if (method != "common" && method != "ceil" && method != "floor")
    raise(kFilterError, "method must be common, ceil or floor");
  if (method == "common") {
    if (v.is(Kind::BigInt) && (p[0].missing() || p[0].is(Kind::None) || p.integer(0, 0) >= 0)) return v;
    if (v.is(Kind::BigInt)) raise(kLimit, "a large integer is rounded to whole numbers only");
    if (v.is(Kind::Undefined) || !v.is_number())
      raise(kTypeError, concat_text("type ", type_name(v), " doesn't define __round__ method"));
    if (p[0].is(Kind::None)) return v.is_integral() ? positive(v) : integer_of(heap, std::nearbyint(v.as_real()));
    const std::int64_t digits = p.integer(0, 0);
    return v.is_integral() ? round_integer(v.as_int(), digits) : Value::real(round_real(v.as_real(), digits));
  }
  const Value scale = arithmetic(heap, Expr::Type::Pow, Value::integer(10), p[0].missing() ? Value::integer(0) : p[0]);
  const Value scaled = arithmetic(heap, Expr::Type::Mul, v, scale);
  if (!scaled.is_any_number()) raise(kTypeError, concat_text("must be real number, not ", type_name(scaled)));
  const Value whole =
      scaled.is_int() ? scaled
                      : integer_of(heap, method == "ceil" ? std::ceil(scaled.as_real()) : std::floor(scaled.as_real()));
  return arithmetic(heap, Expr::Type::Div, whole, scale);
}

// Words begin after a dash, a space or an opening bracket.
Value do_title(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_title", {});
  Heap& heap = r.heap();
  const Value subject = soft_string(heap, v);
  const std::string_view text = subject.text();
  heap.budget().copy(text.size() * 4);
  const auto separates = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at, first = at;
    const bool separator = separates(decode_utf8(text, first));
    for (std::size_t next = at; end < text.size() && separates(decode_utf8(text, next)) == separator;) end = next;
    if (separator) {
      out += text.substr(at, end - at);
    } else {
      out += upper(text.substr(at, first - at));
      out += lower(text.substr(first, end - first));
    }
    at = end;
  }
  return heap.string(std::move(out));
}

std::optional<std::string> json_indent(Heap& heap, const Parameters& p, std::size_t i) {
  if (!p.given(i)) return std::nullopt;
  if (p[i].is_string()) return std::string(p[i].text());
  return std::string(arithmetic(heap, Expr::Type::Mul, heap.string(" "), p[i]).text());
}

// tojson with transformers' override: no HTML escapes, other scripts unescaped.
Value do_tojson(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  Heap& heap = r.heap();
  JsonStyle style;
  style.ensure_ascii = p.flag(0);
  style.indent = json_indent(heap, p, 1);
  style.sort_keys = p.flag(3);
  if (p.given(2)) {
    const std::vector<Value> pair = collect(heap, p[2]);
    if (pair.size() != 2)
      raise(kValueError, pair.size() < 2
                             ? concat_text("not enough values to unpack (expected 2, got ", pair.size(), ")")
                             : std::string("too many values to unpack (expected 2)"));
    style.item_separator = std::string(require_text(pair[0], "make_encoder() argument 6 must be str"));
    style.key_separator = std::string(require_text(pair[1], "make_encoder() argument 5 must be str"));
  }
  return heap.string(to_json(heap, v, style));
}

Value do_trim(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_trim", {"chars"});
  Arguments inner;
  if (!p[0].missing()) inner.positional.push_back(p[0]);
  return string_method_of(r, v, "strip", std::move(inner));
}

Value do_truncate(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_truncate", {"length", "killwords", "end", "leeway"}, 0, 2);
  Heap& heap = r.heap();
  const std::int64_t length = p.integer(0, 255), leeway = p.given(3) ? p.integer(3, 0) : 5;
  const Value end = p[2].missing() ? heap.string("...") : p[2];
  const std::int64_t end_length = length_of(end).value_or(0);
  if (length < end_length) raise("AssertionError", concat_text("expected length >= ", end_length, ", got ", length));
  if (leeway < 0) raise("AssertionError", concat_text("expected leeway >= 0, got ", leeway));
  const std::optional<std::int64_t> size = length_of(v);
  if (!size) raise(kTypeError, concat_text("object of type '", type_name(v), "' has no len()"));
  if (*size <= length + leeway) return v;
  Value kept = slice(heap, v, Value::none(), Value::integer(length - end_length), Value::none());
  if (!p.flag(1)) {
    Arguments inner;
    inner.positional = {heap.string(" "), Value::integer(1)};
    if (!kept.is_string())
      raise("AttributeError", concat_text("'", type_name(kept), "' object has no attribute 'rsplit'"));
    const Value pieces = call_string_method(r, kept, "rsplit", inner);
    kept = pieces.get<ListObject>().items[0];
  }
  return arithmetic(heap, Expr::Type::Add, kept, end);
}

std::string quoted_for_url(std::string_view text, bool query) {
  std::string out;
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (is_alpha(byte) || is_decimal(byte) ||
                        std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !query))) {
      out += c;
    } else if (c == ' ' && query) {
      out += '+';
    } else {
      constexpr char kHex[] = "0123456789ABCDEF";
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

Value do_urlencode(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_urlencode", {});
  Heap& heap = r.heap();
  if (v.is_string() || !iterable(v)) return heap.string(quoted_for_url(to_text(heap, v), false));
  Cursor cursor(heap, v.is(Kind::Dict) ? heap.view(v, ViewOf::Items) : v);
  std::string out;
  for (Value item; cursor.next(item);) {
    if (!iterable(item)) raise(kTypeError, concat_text("cannot unpack non-iterable ", type_name(item), " object"));
    const std::vector<Value> pair = collect(heap, item);
    if (pair.size() != 2)
      raise(kValueError, pair.size() < 2
                             ? concat_text("not enough values to unpack (expected 2, got ", pair.size(), ")")
                             : std::string("too many values to unpack (expected 2)"));
    if (!out.empty()) out += '&';
    out += concat_text(quoted_for_url(to_text(heap, pair[0]), true), "=", quoted_for_url(to_text(heap, pair[1]), true));
    Budget::require_string(out.size());
  }
  return heap.string(std::move(out));
}

Value do_wordcount(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_wordcount", {});
  const Value subject = soft_string(r.heap(), v);
  r.heap().budget().copy(8 * subject.text().size());
  std::int64_t n = 0;
  bool inside = false;
  for (std::size_t at = 0; at < subject.text().size();) {
    const bool word = is_word(decode_utf8(subject.text(), at));
    n += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::integer(n);
}

Value do_filesizeformat(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_filesizeformat", {"binary"});
  Heap& heap = r.heap();
  bool good = false;
  const double bytes = to_number(heap, v, good);
  if (!good)
    raise(v.is_string() ? kValueError : kTypeError,
          v.is_string() ? concat_text("could not convert string to float: ", to_repr(heap, v))
                        : concat_text("float() argument must be a string or a real number, not '", type_name(v), "'"));
  const bool binary = p.flag(0);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return heap.string("1 Byte");
  if (bytes < base) return heap.string(concat_text(static_cast<std::int64_t>(bytes), " Bytes"));
  const std::string_view prefixes = "kMGTPEZY";
  double unit = base;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    unit *= base;
    if (bytes >= unit && i + 1 < prefixes.size()) continue;
    const char letter = binary && prefixes[i] == 'k' ? 'K' : prefixes[i];
    return heap.string(
        concat_text(format_value(heap, Value::real(base * bytes / unit), ".1f"), " ", letter, binary ? "iB" : "B"));
  }
  return {};
}

constexpr NamedFilter kValueFilters[] = {
    {"abs", do_abs},
    {"attr", do_attr},
    {"capitalize", plain_method<"do_capitalize", "capitalize">},
    {"center", do_center},
    {"count", do_length},
    {"d", do_default},
    {"default", do_default},
    {"e", do_escape},
    {"escape", do_escape},
    {"filesizeformat", do_filesizeformat},
    {"float", do_float},
    {"forceescape", do_forceescape},
    {"format", do_format},
    {"indent", do_indent},
    {"int", do_int},
    {"length", do_length},
    {"lower", plain_method<"do_lower", "lower">},
    {"replace", do_replace},
    {"round", do_round},
    {"safe", do_safe},
    {"string", do_string},
    {"title", do_title},
    {"tojson", do_tojson},
    {"trim", do_trim},
    {"truncate", do_truncate},
    {"upper", plain_method<"do_upper", "upper">},
    {"urlencode", do_urlencode},
    {"wordcount", do_wordcount},
};

const NamedFilter* find_filter(std::string_view name) {
  for (const NamedFilter& f : kValueFilters)
    if (f.name == name) return &f;
  if (const NamedFilter* f = find_text_filter(name)) return f;
  return find_sequence_filter(name);
}

}  // namespace

bool is_filter(std::string_view name) { return find_filter(name) != nullptr; }

bool is_unsupported_filter(std::string_view name) {
  constexpr std::string_view kNames[] = {"random", "urlize"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Value call_filter(Renderer& r, std::string_view name, const Value& subject, Arguments& args) {
  r.heap().step();
  return find_filter(name)->filter(r, subject, args);
}

}  // namespace rlx::jinja
