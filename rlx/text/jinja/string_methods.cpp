// Methods of Python's str, with positions in code points.
#include <algorithm>
#include <set>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/jinja/render.h"
#include "rlx/text/jinja/unicode.h"

namespace rlx::jinja {
namespace {

std::size_t next_character(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && is_utf8_continuation(text[at])) ++at;
  return at;
}
std::size_t character_before(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && is_utf8_continuation(text[at]));
  return at;
}

// One method call: the string, its arguments, and Python's error messages.
class StringCall {
 public:
  StringCall(Renderer& r, const Value& self, std::string_view name, Arguments& args)
      : heap_(r.heap()), self_(self), text_(self.text()), name_(name), args_(args) {
    heap_.budget().copy(text_.size());
  }

  // -- arguments --

  std::size_t count() const { return args_.positional.size(); }
  const Value& at(std::size_t i) const { return args_.positional[i]; }
  bool none(std::size_t i) const { return i >= count() || at(i).is(Kind::None); }
  void expect(std::size_t least, std::size_t most) const {
    if (!args_.named.empty()) raise(kTypeError, concat_text("str.", name_, "() takes no keyword arguments"));
    if (most == 0 && count() > 0)
      raise(kTypeError, concat_text("str.", name_, "() takes no arguments (", count(), " given)"));
    if (most == 1 && least == 1 && count() != 1)
      raise(kTypeError, concat_text("str.", name_, "() takes exactly one argument (", count(), " given)"));
    const auto many = [](std::size_t n) { return concat_text(n, n == 1 ? " argument" : " arguments"); };
    if (count() < least) raise(kTypeError, concat_text(name_, " expected at least ", many(least), ", got ", count()));
    if (count() > most) raise(kTypeError, concat_text(name_, " expected at most ", many(most), ", got ", count()));
  }
  std::string_view text_at(std::size_t i, std::string_view what) const { return require_text(at(i), what); }
  std::int64_t integer_at(std::size_t i, std::int64_t otherwise) const {
    return i < count() ? require_integer(at(i)) : otherwise;
  }

  // rfind. The worst case is the product of the lengths.
  std::size_t last_of(std::string_view text, std::string_view word) const {
    heap_.budget().step(word.size() > 1 ? text.size() / 64 * std::min<std::size_t>(word.size(), text.size()) : 0);
    return text.rfind(word);
  }

  // -- results --

  Value made(std::string text) const { return heap_.string(std::move(text), is_markup(self_)); }
  Value part(std::string_view text) const { return made(std::string(text)); }
  // An argument, escaped by Markup.
  std::string escaped(const Value& v) const {
    return is_markup(self_) && !is_markup(v) ? escape_html(v.text()) : std::string(v.text());
  }

  Value strip(bool left, bool right) const {
    expect(0, 1);
    std::set<char32_t> wanted;
    const bool spaces = none(0);
    if (!spaces) {
      if (!at(0).is_string()) raise(kTypeError, concat_text(name_, " arg must be None or str"));
      const std::string_view chars = at(0).text();
      heap_.budget().copy(chars.size() * 16);
      for (std::size_t i = 0; i < chars.size();) wanted.insert(decode_utf8(chars, i));
    }
    const auto drop = [&](std::size_t i) {
      const char32_t c = decode_utf8(text_, i);
      return spaces ? is_space(c) : wanted.contains(c);
    };
    std::size_t first = 0, last = text_.size();
    while (left && first < last && drop(first)) first = next_character(text_, first);
    while (right && last > first && drop(character_before(text_, last))) last = character_before(text_, last);
    heap_.budget().copy(8 * (first + text_.size() - last));
    return part(text_.substr(first, last - first));
  }

  Value split(bool from_right) const {
    Parameters p(args_, concat_text("str.", name_), {"sep", "maxsplit"}, 0, 0);
    const std::int64_t most = p[1].missing() ? -1 : require_integer(p[1]);
    std::size_t left = most < 0 ? SIZE_MAX : static_cast<std::size_t>(most);
    std::vector<Value> out;
    if (!p.given(0)) {
      from_right ? split_spaces_right(left, out) : split_spaces(left, out);
    } else {
      const std::string_view separator = require_text(p[0], "must be str or None");
      if (separator.empty()) raise(kValueError, "empty separator");
      std::string_view rest = text_;
      while (left-- > 0) {
        const std::size_t found = from_right ? last_of(rest, separator) : find_text(rest, separator);
        if (found == std::string_view::npos) break;
        const std::string_view after = rest.substr(found + separator.size());
        out.push_back(part(from_right ? after : rest.substr(0, found)));
        rest = from_right ? rest.substr(0, found) : after;
      }
      out.push_back(part(rest));
    }
    if (from_right) std::reverse(out.begin(), out.end());
    return heap_.list(std::move(out));
  }

  Value splitlines() const {
    Parameters p(args_, "str.splitlines", {"keepends"}, 0, 0);
    const bool keep = p.flag(0);
    heap_.budget().copy(8 * text_.size());
    std::vector<Value> out;
    for (std::size_t start = 0; start < text_.size();) {
      std::size_t at = start, end = text_.size(), next = text_.size();
      while (at < text_.size()) {
        const std::size_t here = at;
        if (!is_line_break(decode_utf8(text_, at))) continue;
        end = here;
        next = text_[here] == '\r' && at < text_.size() && text_[at] == '\n' ? at + 1 : at;
        break;
      }
      out.push_back(part(text_.substr(start, (keep ? next : end) - start)));
      start = next;
    }
    return heap_.list(std::move(out));
  }

  Value starts(bool end) const {
    expect(1, 3);
    const std::string_view text = window(1);
    const auto fits = [&](const Value& v) {
      heap_.budget().copy(std::min(v.text().size(), text.size()));
      return end ? text.ends_with(v.text()) : text.starts_with(v.text());
    };
    if (at(0).is_string()) return Value::boolean(in_window_ && fits(at(0)));
    if (!at(0).is(Kind::Tuple))
      raise(kTypeError, concat_text(name_, " first arg must be str or a tuple of str, not ", type_name(at(0))));
    for (const Value& v : at(0).get<ListObject>().items) {
      if (!v.is_string())
        raise(kTypeError, concat_text("tuple for ", name_, " must only contain str, not ", type_name(v)));
      if (in_window_ && fits(v)) return Value::boolean(true);
    }
    return Value::boolean(false);
  }

  Value find(bool from_right, bool must) const {
    expect(1, 3);
    const std::string_view wanted = text_at(0, "must be str");
    const std::string_view text = window(1);
    const std::size_t found = !in_window_  ? std::string_view::npos
                              : from_right ? last_of(text, wanted)
                                           : find_text(text, wanted);
    if (found == std::string_view::npos) {
      if (must) raise(kValueError, "substring not found");
      return Value::integer(-1);
    }
    return Value::integer(code_points(text_.substr(0, static_cast<std::size_t>(text.data() - text_.data()) + found)));
  }

  Value count_of() const {
    expect(1, 3);
    const std::string_view wanted = text_at(0, "must be str");
    const std::string_view text = window(1);
    if (!in_window_) return Value::integer(0);
    if (wanted.empty()) return Value::integer(code_points(text) + 1);
    std::int64_t n = 0;
    for (std::size_t i = find_text(text, wanted); i != std::string_view::npos;
         i = find_text(text, wanted, i + wanted.size()))
      ++n;
    return Value::integer(n);
  }

  Value replace() const {
    if (is_markup(self_) && count() < 2)  // a method implemented in Python, so the message differs
      raise(kTypeError, count() == 1 ? "Markup.replace() missing 1 required positional argument: 'new'"
                                     : "Markup.replace() missing 2 required positional arguments: 'old' and 'new'");
    expect(2, 3);
    const std::string_view old = text_at(0, "replace() argument 1 must be str");
    (void)text_at(1, "replace() argument 2 must be str");
    const std::string fresh = escaped(at(1));
    const std::int64_t most = integer_at(2, -1);
    return made(replaced(old, fresh, most));
  }

  Value join() const {
    expect(1, 1);
    if (!iterable(at(0)) && !is_markup(self_)) raise(kTypeError, "can only join an iterable");
    std::string out;
    Cursor cursor(heap_, at(0));
    std::size_t i = 0;
    for (Value v; cursor.next(v); ++i) {
      if (i != 0) out += text_;
      if (is_markup(self_)) {
        out += is_markup(v) ? std::string(v.text()) : escape_html(to_text(heap_, v));
      } else {
        if (!v.is_string())
          raise(kTypeError, concat_text("sequence item ", i, ": expected str instance, ", type_name(v), " found"));
        out += v.text();
      }
      Budget::require_string(out.size());
    }
    return made(std::move(out));
  }

  Value justify(bool left, bool right) const {
    expect(1, 2);
    const std::int64_t width = integer_at(0, 0);
    std::string fill = " ";
    if (count() > 1) {
      fill = at(1).is_string() ? escaped(at(1)) : std::string();
      if (!at(1).is_string())
        raise(kTypeError, concat_text("The fill character must be a unicode character, not ", type_name(at(1))));
      if (code_points(fill) != 1) raise(kTypeError, "The fill character must be exactly one character long");
    }
    const std::int64_t spare = width - code_points(self_);
    if (spare <= 0) return part(text_);
    const std::int64_t before = left && right ? spare / 2 + (spare & width & 1) : left ? spare : 0;
    Budget::require_string(static_cast<std::size_t>(spare), fill.size());
    std::string out;
    for (std::int64_t i = 0; i < before; ++i) out += fill;
    out += text_;
    for (std::int64_t i = before; i < spare; ++i) out += fill;
    return made(std::move(out));
  }

  Value zfill() const {
    expect(1, 1);
    const std::int64_t spare = integer_at(0, 0) - code_points(self_);
    if (spare <= 0) return part(text_);
    Budget::require_string(static_cast<std::size_t>(spare));
    const bool sign = !text_.empty() && (text_[0] == '+' || text_[0] == '-');
    std::string out(text_.substr(0, sign ? 1 : 0));
    out.append(static_cast<std::size_t>(spare), '0');
    return made(out.append(text_.substr(sign ? 1 : 0)));
  }

  Value expandtabs() const {
    Parameters p(args_, "str.expandtabs", {"tabsize"}, 0, 0);
    const std::int64_t size = p.integer(0, 8);
    std::string out;
    std::int64_t column = 0;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\t') {
        if (size <= 0) continue;
        const std::int64_t spaces = size - column % size;
        Budget::require_string(static_cast<std::size_t>(spaces) + out.size());
        out.append(static_cast<std::size_t>(spaces), ' ');
        column += spaces;
        continue;
      }
      out += text_[i];
      if (text_[i] == '\n' || text_[i] == '\r')
        column = 0;
      else if (!is_utf8_continuation(text_[i]))
        ++column;
    }
    return made(std::move(out));
  }

  Value partition(bool from_right) const {
    expect(1, 1);
    const std::string_view separator = text_at(0, "must be str");
    if (separator.empty()) raise(kValueError, "empty separator");
    const std::size_t found = from_right ? last_of(text_, separator) : find_text(text_, separator);
    std::vector<Value> out;
    if (found == std::string_view::npos) {
      out.resize(3, part({}));
      out[from_right ? 2 : 0] = part(text_);
    } else {
      out.push_back(part(text_.substr(0, found)));
      out.push_back(part(separator));
      out.push_back(part(text_.substr(found + separator.size())));
    }
    return heap_.tuple(std::move(out));
  }

  Value remove(bool prefix) const {
    expect(1, 1);
    const std::string_view affix = text_at(0, concat_text(name_, "() argument must be str"));
    std::string_view text = text_;
    if (prefix && text.starts_with(affix)) text.remove_prefix(affix.size());
    if (!prefix && !affix.empty() && text.ends_with(affix)) text.remove_suffix(affix.size());
    return part(text);
  }

  template <class Is>
  Value all(const Is& is) const {
    expect(0, 0);
    heap_.budget().copy(8 * text_.size());
    for (std::size_t i = 0; i < text_.size();)
      if (!is(decode_utf8(text_, i))) return Value::boolean(false);
    return Value::boolean(!text_.empty());
  }

  // islower, isupper: at least one cased character, and none of the other case.
  Value cased(bool upper_case) const {
    expect(0, 0);
    heap_.budget().copy(8 * text_.size());
    bool some = false;
    for (std::size_t i = 0; i < text_.size();) {
      const char32_t c = decode_utf8(text_, i);
      if (is_title(c) || (upper_case ? is_lower(c) : is_upper(c))) return Value::boolean(false);
      some |= upper_case ? is_upper(c) : is_lower(c);
    }
    return Value::boolean(some);
  }

  Value titled() const {
    expect(0, 0);
    heap_.budget().copy(8 * text_.size());
    bool some = false, inside = false;
    for (std::size_t i = 0; i < text_.size();) {
      const char32_t c = decode_utf8(text_, i);
      const bool start = is_upper(c) || is_title(c), small = is_lower(c);
      if ((start && inside) || (small && !inside)) return Value::boolean(false);
      inside = start || small;
      some |= inside;
    }
    return Value::boolean(some);
  }

  Value mapped(std::string (*map)(std::string_view)) const {
    expect(0, 0);
    heap_.budget().copy(16 * text_.size());
    return made(map(text_));
  }

  std::string replaced(std::string_view old, std::string_view fresh, std::int64_t most) const;

 private:
  // The part of the text selected by the optional arguments `first` and `first` + 1.
  std::string_view window(std::size_t first) const {
    const std::int64_t length = code_points(self_);
    const auto place = [&](std::size_t i, std::int64_t otherwise) {
      if (none(i)) return otherwise;
      if (!at(i).is_integral()) raise(kTypeError, "slice indices must be integers or None or have an __index__ method");
      std::int64_t v = at(i).as_int();
      if (v < 0) v = std::max<std::int64_t>(0, v + length);
      return v;
    };
    const std::int64_t start = place(first, 0), end = std::min(place(first + 1, length), length);
    in_window_ = start <= end;
    if (!in_window_) return {};
    const bool ascii = length == static_cast<std::int64_t>(text_.size());
    const std::size_t from = offset_of(text_, ascii, start);
    return text_.substr(from, offset_of(text_.substr(from), ascii, end - start));
  }

  void split_spaces(std::size_t left, std::vector<Value>& out) const {
    std::size_t at = 0;
    while (true) {
      std::size_t next = at;
      while (at < text_.size() && is_space(decode_utf8(text_, next))) at = next;
      if (at >= text_.size()) return;
      if (left-- == 0) break;
      std::size_t end = at;
      for (next = at; end < text_.size() && !is_space(decode_utf8(text_, next));) end = next;
      out.push_back(part(text_.substr(at, end - at)));
      at = end;
    }
    out.push_back(part(text_.substr(at)));  // keeps trailing spaces, as Python does
  }
  void split_spaces_right(std::size_t left, std::vector<Value>& out) const {
    std::size_t end = text_.size();
    const auto space_before = [&](std::size_t at) {
      std::size_t i = character_before(text_, at);
      return is_space(decode_utf8(text_, i));
    };
    while (true) {
      while (end > 0 && space_before(end)) end = character_before(text_, end);
      if (end == 0) return;
      if (left-- == 0) break;
      std::size_t start = end;
      while (start > 0 && !space_before(start)) start = character_before(text_, start);
      out.push_back(part(text_.substr(start, end - start)));
      end = start;
    }
    out.push_back(part(text_.substr(0, end)));
  }

  Heap& heap_;
  const Value& self_;
  std::string_view text_, name_;
  Arguments& args_;
  mutable bool in_window_ = true;
};

std::string StringCall::replaced(std::string_view old, std::string_view fresh, std::int64_t most) const {
  const std::string_view text = text_;
  const std::size_t limit = most < 0 ? SIZE_MAX : static_cast<std::size_t>(most);
  std::string out;
  std::size_t done = 0;
  if (old.empty()) {
    Budget::require_string(std::min(text.size() + 1, limit), fresh.size());
    std::size_t at = 0;
    while (true) {
      if (done++ < limit) out += fresh;
      heap_.step(done % 4 == 0);
      if (at >= text.size()) return out;
      const std::size_t next = next_character(text, at);
      out += text.substr(at, next - at);
      at = next;
    }
  }
  std::size_t at = 0;
  while (done < limit) {
    const std::size_t found = find_text(text, old, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += fresh;
    Budget::require_string(out.size());
    at = found + old.size();
    ++done;
    heap_.step(done % 4 == 0);
  }
  return out.append(text.substr(at));
}

struct Method {
  std::string_view name;
  Value (*call)(const StringCall&);
};

constexpr Method kMethods[] = {
    {"capitalize", [](const StringCall& c) { return c.mapped(capitalize); }},
    {"casefold", [](const StringCall& c) { return c.mapped(casefold); }},
    {"center", [](const StringCall& c) { return c.justify(true, true); }},
    {"count", [](const StringCall& c) { return c.count_of(); }},
    {"endswith", [](const StringCall& c) { return c.starts(true); }},
    {"expandtabs", [](const StringCall& c) { return c.expandtabs(); }},
    {"find", [](const StringCall& c) { return c.find(false, false); }},
    {"index", [](const StringCall& c) { return c.find(false, true); }},
    {"isalnum", [](const StringCall& c) { return c.all([](char32_t x) { return is_alpha(x) || is_numeric(x); }); }},
    {"isalpha", [](const StringCall& c) { return c.all(is_alpha); }},
    {"isdecimal", [](const StringCall& c) { return c.all(is_decimal); }},
    {"isdigit", [](const StringCall& c) { return c.all(is_digit_like); }},
    {"islower", [](const StringCall& c) { return c.cased(false); }},
    {"isnumeric", [](const StringCall& c) { return c.all(is_numeric); }},
    {"isspace", [](const StringCall& c) { return c.all(is_space); }},
    {"istitle", [](const StringCall& c) { return c.titled(); }},
    {"isupper", [](const StringCall& c) { return c.cased(true); }},
    {"join", [](const StringCall& c) { return c.join(); }},
    {"ljust", [](const StringCall& c) { return c.justify(false, true); }},
    {"lower", [](const StringCall& c) { return c.mapped(lower); }},
    {"lstrip", [](const StringCall& c) { return c.strip(true, false); }},
    {"partition", [](const StringCall& c) { return c.partition(false); }},
    {"removeprefix", [](const StringCall& c) { return c.remove(true); }},
    {"removesuffix", [](const StringCall& c) { return c.remove(false); }},
    {"replace", [](const StringCall& c) { return c.replace(); }},
    {"rfind", [](const StringCall& c) { return c.find(true, false); }},
    {"rindex", [](const StringCall& c) { return c.find(true, true); }},
    {"rjust", [](const StringCall& c) { return c.justify(true, false); }},
    {"rpartition", [](const StringCall& c) { return c.partition(true); }},
    {"rsplit", [](const StringCall& c) { return c.split(true); }},
    {"rstrip", [](const StringCall& c) { return c.strip(false, true); }},
    {"split", [](const StringCall& c) { return c.split(false); }},
    {"splitlines", [](const StringCall& c) { return c.splitlines(); }},
    {"startswith", [](const StringCall& c) { return c.starts(false); }},
    {"strip", [](const StringCall& c) { return c.strip(true, true); }},
    {"swapcase", [](const StringCall& c) { return c.mapped(swapcase); }},
    {"title", [](const StringCall& c) { return c.mapped(title); }},
    {"upper", [](const StringCall& c) { return c.mapped(upper); }},
    {"zfill", [](const StringCall& c) { return c.zfill(); }},
};

// Methods that `call_string_method` runs itself, since they need the renderer, or refuses.
constexpr std::string_view kOthers[] = {"format",      "format_map", "isascii",   "isidentifier",
                                        "isprintable", "encode",     "maketrans", "translate"};

}  // namespace

std::string_view string_method(std::string_view name) {
  for (const Method& m : kMethods)
    if (m.name == name) return m.name;
  for (const std::string_view other : kOthers)
    if (other == name) return other;
  return {};
}

Value call_string_method(Renderer& r, const Value& self, std::string_view name, Arguments& args) {
  if (name == "format") return format_braces(r, self, args);
  if (name == "format_map") {
    if (!args.named.empty()) raise(kTypeError, "format_map() takes no keyword arguments");
    if (args.positional.size() != 1)
      raise(kTypeError, concat_text("format_map() takes exactly one argument (", args.positional.size(), " given)"));
    if (!args.positional[0].is(Kind::Dict)) raise(kUnsupported, "format_map takes a dict here");
    Arguments named;
    for (const auto& [key, value] : args.positional[0].get<DictObject>().entries)
      if (key.is_string()) named.named.emplace_back(std::string(key.text()), value);
    return format_braces(r, self, named);
  }
  const StringCall call(r, self, name, args);
  if (name == "isascii" || name == "isprintable") {
    call.expect(0, 0);
    const bool ascii = name == "isascii";
    const Value empty = Value::boolean(true);
    return self.text().empty() ? empty : ascii ? call.all([](char32_t c) { return c < 0x80; }) : call.all(is_printable);
  }
  if (name == "isidentifier") {
    call.expect(0, 0);
    return Value::boolean(is_identifier(self.text()));
  }
  for (const Method& m : kMethods)
    if (m.name == name) return m.call(call);
  raise(kUnsupported, concat_text("str.", name, " is not supported"));
}

}  // namespace rlx::jinja
