// Filters that lay out or clean text: pprint, striptags, wordwrap, xmlattr.
#include <algorithm>
#include <charconv>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/jinja/render.h"
#include "rlx/text/jinja/unicode.h"

namespace rlx::jinja {
namespace {

std::u32string code_points_of_text(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) out += decode_utf8(text, at);
  return out;
}
std::string utf8_of(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}
bool is_blank(std::u32string_view text) { return std::ranges::all_of(text, is_space); }

// -- pprint --

// Python's pprint in 80 columns: what does not fit is one element a line, with the keys of dicts in order.
class PrettyPrinter {
 public:
  explicit PrettyPrinter(Heap& heap) : heap_(heap) {}
  std::string take() { return std::move(out_); }

  void print(const Value& v, std::int64_t indent, std::int64_t allowance, int level) {
    const std::string plain = sorted_repr(v);
    if (code_points(plain) > kWidth - indent - allowance) {
      if (v.is(Kind::Dict)) return print_dict(v, indent, allowance + 1, level + 1);
      if (v.is(Kind::List) || v.is(Kind::Tuple)) return print_items(v, indent, allowance, level + 1);
      if (v.is_string() && !is_markup(v)) return print_string(v, indent, allowance, level + 1);
    }
    write(plain);
  }

 private:
  static constexpr std::int64_t kWidth = 80;

  void write(std::string_view text) {
    out_ += text;
    Budget::require_string(out_.size());
  }
  void new_line(std::int64_t indent) { write("\n" + std::string(static_cast<std::size_t>(indent), ' ')); }

  std::vector<DictObject::Entry> sorted_entries(const Value& dict) {
    const std::vector<DictObject::Entry>& entries = dict.get<DictObject>().entries;
    std::vector<Value> positions, keys;
    for (std::size_t i = 0; i < entries.size(); ++i) positions.push_back(Value::integer(static_cast<std::int64_t>(i)));
    const auto before = [&](const Value& a, const Value& b) {
      heap_.step(2);
      const auto& [x, y] = std::pair(entries[static_cast<std::size_t>(a.as_int())].first,
                                     entries[static_cast<std::size_t>(b.as_int())].first);
      const bool same_kind = (x.is_any_number() && y.is_any_number()) || (x.is_string() && y.is_string());
      if (same_kind) return less(heap_, x, y);
      return x.kind() == y.kind() ? compare_keys(x, y) < 0 : type_name(x) < type_name(y);
    };
    std::stable_sort(positions.begin(), positions.end(), before);
    std::vector<DictObject::Entry> out;
    for (const Value& p : positions) out.push_back(entries[static_cast<std::size_t>(p.as_int())]);
    return out;
  }

  std::string sorted_repr(const Value& v) {
    heap_.step();
    std::string out;
    if (v.is(Kind::Dict)) {
      for (const auto& [key, value] : sorted_entries(v))
        out += concat_text(out.empty() ? "" : ", ", sorted_repr(key), ": ", sorted_repr(value));
      out = "{" + out + "}";
    } else if (v.is(Kind::List) || v.is(Kind::Tuple)) {
      const std::vector<Value>& items = v.get<ListObject>().items;
      for (std::size_t i = 0; i < items.size(); ++i) out += (i > 0 ? ", " : "") + sorted_repr(items[i]);
      out = v.is(Kind::List) ? "[" + out + "]" : concat_text("(", out, items.size() == 1 ? ",)" : ")");
    } else {
      out = to_repr(heap_, v);
    }
    heap_.budget().copy(out.size());
    Budget::require_string(out.size());
    return out;
  }

  void print_dict(const Value& v, std::int64_t indent, std::int64_t allowance, int level) {
    write("{");
    const std::vector<DictObject::Entry> entries = sorted_entries(v);
    ++indent;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const bool last = i + 1 == entries.size();
      const std::string key = sorted_repr(entries[i].first);
      write(key + ": ");
      print(entries[i].second, indent + code_points(key) + 2, last ? allowance : 1, level);
      if (last) break;
      write(",");
      new_line(indent);
    }
    write("}");
  }
  void print_items(const Value& v, std::int64_t indent, std::int64_t allowance, int level) {
    const std::vector<Value>& items = v.get<ListObject>().items;
    const std::string_view end = v.is(Kind::List) ? "]" : items.size() == 1 ? ",)" : ")";
    write(v.is(Kind::List) ? "[" : "(");
    ++indent;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool last = i + 1 == items.size();
      if (i > 0) {
        write(",");
        new_line(indent);
      }
      print(items[i], indent, last ? allowance + static_cast<std::int64_t>(end.size()) : 1, level);
    }
    write(end);
  }
  // Lines, and words of lines that are too long, as adjacent literals.
  void print_string(const Value& v, std::int64_t indent, std::int64_t allowance, int level) {
    if (v.text().empty()) return write("''");
    const Value lines = split_lines(v);
    if (level == 1) ++indent, ++allowance;
    const std::vector<Value>& all = lines.get<ListObject>().items;
    std::vector<std::string> chunks;
    std::string whole;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool last_line = i + 1 == all.size();
      whole = repr_of_string(all[i].text());
      if (code_points(whole) <= kWidth - indent - (last_line ? allowance : 0)) {
        chunks.push_back(whole);
        continue;
      }
      const std::vector<std::string> words = words_of(all[i].text());
      std::string current;
      for (std::size_t w = 0; w < words.size(); ++w) {
        const bool last = last_line && w + 1 == words.size();
        heap_.budget().copy(8 * (current.size() + words[w].size()));
        if (code_points(repr_of_string(current + words[w])) > kWidth - indent - (last ? allowance : 0)) {
          if (!current.empty()) chunks.push_back(repr_of_string(current));
          current = words[w];
        } else {
          current += words[w];
        }
      }
      if (!current.empty()) chunks.push_back(repr_of_string(current));
    }
    if (chunks.size() == 1) return write(whole);
    if (level == 1) write("(");
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) new_line(indent);
      write(chunks[i]);
    }
    if (level == 1) write(")");
  }
  Value split_lines(const Value& v) {
    std::vector<Value> out;
    const std::string_view text = v.text();
    std::size_t start = 0;
    for (std::size_t at = 0; at < text.size();) {
      const char32_t c = decode_utf8(text, at);
      if (!is_line_break(c)) continue;
      if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
      out.push_back(heap_.string(std::string(text.substr(start, at - start))));
      start = at;
    }
    if (start < text.size()) out.push_back(heap_.string(std::string(text.substr(start))));
    return heap_.list(std::move(out));
  }
  // Words with the white space after them.
  static std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> out;
    bool spaces = false;
    for (std::size_t at = 0, start = 0; at < text.size(); start = at) {
      const bool space = is_space(decode_utf8(text, at));
      if (out.empty() || (spaces && !space)) out.emplace_back();
      out.back() += text.substr(start, at - start);
      spaces = space;
    }
    return out;
  }

  Heap& heap_;
  std::string out_;
};

Value do_pprint(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_pprint", {});
  PrettyPrinter printer(r.heap());
  printer.print(v, 0, 0, 0);
  return r.heap().string(printer.take());
}

// -- striptags --

// The character references that texts of templates use. Others are an error rather than a wrong text.
constexpr std::pair<std::string_view, std::string_view> kReferences[] = {
    {"amp", "&"},
    {"lt", "<"},
    {"gt", ">"},
    {"quot", "\""},
    {"apos", "'"},
    {"nbsp", "\xC2\xA0"},
    {"copy", "\xC2\xA9"},
    {"reg", "\xC2\xAE"},
    {"hellip", "\xE2\x80\xA6"},
    {"mdash", "\xE2\x80\x94"},
    {"ndash", "\xE2\x80\x93"},
    {"euro", "\xE2\x82\xAC"},
};

// &#65; and &#x41;, as HTML reads them: without a digit it is text, and what is no character becomes U+FFFD.
bool append_numeric_reference(std::string& out, std::string_view text, std::size_t& at) {
  std::size_t i = at + 2;
  const bool hex = i < text.size() && (text[i] == 'x' || text[i] == 'X');
  if (hex) ++i;
  std::uint32_t value = 0;
  std::size_t digits = 0;
  for (; i < text.size() && digit_value(static_cast<unsigned char>(text[i])) < (hex ? 16 : 10); ++i, ++digits)
    value = std::min<std::uint32_t>(
        value * (hex ? 16 : 10) + static_cast<std::uint32_t>(digit_value(static_cast<unsigned char>(text[i]))),
        0x110000);
  if (digits == 0) return false;
  if (i < text.size() && text[i] == ';') ++i;
  if (value >= 0x80 && value < 0xA0)
    raise(kUnsupported, "the filter 'striptags' reads no character references from &#128; to &#159;");
  const bool is_text = value == 9 || value == 10 || value == 12 || (value >= 0x20 && value != 0x7F) || value == 13;
  if (value == 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    out += "\xEF\xBF\xBD";
  else if (is_text && (value & 0xFFFE) != 0xFFFE && !(value >= 0xFDD0 && value <= 0xFDEF))
    append_utf8(out, static_cast<char32_t>(value));
  at = i;
  return true;
}

Value do_striptags(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_striptags", {});
  Heap& heap = r.heap();
  const std::string text = to_text(heap, v);
  heap.budget().copy(16 * text.size());
  // What an unclosed tag or comment begins is text.
  std::string clean;
  std::string_view left = text;
  for (std::size_t start = 0; (start = left.find('<')) != left.npos;) {
    const bool comment = left.substr(start).starts_with("<!--");
    const std::size_t end = comment ? left.find("-->", start + 4) : left.find('>', start);
    if (end == left.npos) break;
    clean += left.substr(0, start);
    left.remove_prefix(end + (comment ? 3 : 1));
  }
  clean += left;
  std::string spaced;
  bool word = false;
  for (std::size_t at = 0, start = 0; at < clean.size(); start = at) {
    const bool space = is_space(decode_utf8(clean, at));
    if (!space && !word && !spaced.empty()) spaced += ' ';
    if (!space) spaced += clean.substr(start, at - start);
    word = !space;
  }
  std::string out;
  for (std::size_t at = 0; at < spaced.size();) {
    const std::string_view rest = std::string_view(spaced).substr(at);
    if (rest.starts_with("&#") && append_numeric_reference(out, spaced, at)) continue;
    if (rest.size() > 1 && rest[0] == '&' && is_alpha(static_cast<unsigned char>(rest[1]))) {
      std::size_t end = 1;
      while (end < rest.size() && digit_value(static_cast<unsigned char>(rest[end])) < 99) ++end;
      if (end < rest.size() && rest[end] == ';') {
        const std::string_view name = rest.substr(1, end - 1);
        const auto* known = std::ranges::find(kReferences, name, [](const auto& p) { return p.first; });
        if (known == std::end(kReferences))
          raise(kUnsupported, concat_text("the filter 'striptags' does not know the character reference &", name, ";"));
        out += known->second;
        at += end + 1;
        continue;
      }
    }
    out += spaced[at++];
  }
  return heap.string(std::move(out));
}

// -- wordwrap --

bool is_wrap_space(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_wrap_letter(char32_t c) { return is_word(c) && !is_decimal(c); }
bool is_word_mark(char32_t c) {
  return is_word(c) || (c < 0x80 && std::string_view("!\"'&.,?").find(static_cast<char>(c)) != std::string_view::npos);
}

// Splits a line where it may be broken: at white space, before and after dashes, and after hyphens between letters.
class LineChunks {
 public:
  LineChunks(std::u32string_view text, bool hyphens) : text_(text), hyphens_(hyphens) {}

  std::vector<std::u32string> all() const {
    std::vector<std::u32string> out;
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = end_of(at);
      out.emplace_back(text_.substr(at, end - at));
      at = end;
    }
    return out;
  }

 private:
  char32_t at(std::size_t i) const { return i < text_.size() ? text_[i] : U'\0'; }
  bool letter(std::size_t i) const { return i < text_.size() && is_wrap_letter(text_[i]); }
  bool mark(std::size_t i) const { return i < text_.size() && is_word_mark(text_[i]); }
  std::size_t run_end(std::size_t i, bool space) const {
    while (i < text_.size() && is_wrap_space(text_[i]) == space) ++i;
    return i;
  }
  // The end of two or more dashes at `i` that a word character follows; else 0.
  std::size_t dash_end(std::size_t i) const {
    std::size_t end = i;
    while (at(end) == '-') ++end;
    return end >= i + 2 && end < text_.size() && is_word(text_[end]) ? end : 0;
  }
  bool breaks_after_hyphen(std::size_t i) const {
    const bool before =
        (i >= 2 && letter(i - 1) && letter(i - 2)) || (i >= 3 && letter(i - 3) && at(i - 2) == '-' && letter(i - 1));
    return before && letter(i + 1) && (letter(i + 2) || (at(i + 2) == '-' && letter(i + 3)));
  }
  std::size_t end_of(std::size_t start) const {
    if (is_wrap_space(text_[start])) return run_end(start, true);
    if (!hyphens_) return run_end(start, false);
    if (start > 0 && mark(start - 1))
      if (const std::size_t end = dash_end(start)) return end;
    for (std::size_t i = start + 1;; ++i) {
      if (at(i) == '-' && breaks_after_hyphen(i)) return i + 1;
      if (i >= text_.size() || is_wrap_space(text_[i])) return i;
      if (at(i) == '-' && mark(i - 1) && dash_end(i) != 0) return i;
    }
  }

  std::u32string_view text_;
  bool hyphens_;
};

struct WrapRules {
  std::size_t width = 79;
  bool long_words = true, hyphens = true;
};

std::vector<std::u32string> wrapped_lines(Heap& heap, std::u32string_view text, const WrapRules& rules) {
  std::vector<std::u32string> chunks = LineChunks(text, rules.hyphens).all(), lines;
  std::size_t next = 0;
  while (next < chunks.size()) {
    heap.step();
    std::vector<std::u32string> line;
    std::size_t length = 0;
    if (!lines.empty() && is_blank(chunks[next])) ++next;
    for (; next < chunks.size() && length + chunks[next].size() <= rules.width; ++next) {
      length += chunks[next].size();
      line.push_back(chunks[next]);
    }
    if (next < chunks.size() && chunks[next].size() > rules.width) {
      std::u32string& word = chunks[next];
      const std::size_t room = rules.width - length;
      if (rules.long_words) {
        std::size_t end = room;
        if (rules.hyphens && word.size() > room && room > 0) {
          const std::size_t hyphen = std::u32string_view(word).substr(0, room).rfind(U'-');
          if (hyphen != std::u32string::npos && hyphen > 0 && word.find_first_not_of(U'-') < hyphen) end = hyphen + 1;
        }
        line.push_back(word.substr(0, end));
        heap.budget().copy(4 * word.size());
        word.erase(0, end);
      } else if (line.empty()) {
        line.push_back(word);
        ++next;
      }
    }
    if (!line.empty() && is_blank(line.back())) line.pop_back();
    if (line.empty()) continue;
    std::u32string joined;
    for (const std::u32string& part : line) joined += part;
    lines.push_back(std::move(joined));
  }
  return lines;
}

Value do_wordwrap(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_wordwrap", {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0, 2);
  Heap& heap = r.heap();
  WrapRules rules;
  const std::int64_t width = p.integer(0, 79);
  rules.long_words = p[1].missing() || truth(p[1]);
  rules.hyphens = p[3].missing() || truth(p[3]);
  const std::string end = p.given(2) && truth(p[2])
                              ? std::string(require_text(p[2], "descriptor 'join' for 'str' objects doesn't apply"))
                              : std::string("\n");
  if (v.is(Kind::Undefined)) raise_undefined(v);
  if (!v.is_string()) raise("AttributeError", concat_text("'", type_name(v), "' object has no attribute 'splitlines'"));
  Arguments none;
  const Value lines = call_string_method(r, v, "splitlines", none);
  std::string out;
  const std::vector<Value>& all = lines.get<ListObject>().items;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (width <= 0) raise(kValueError, concat_text("invalid width ", width, " (must be > 0)"));
    rules.width = static_cast<std::size_t>(width);
    const std::u32string text = code_points_of_text(all[i].text());
    heap.budget().copy(16 * text.size());
    if (i > 0) out += end;
    bool first = true;
    for (const std::u32string& line : wrapped_lines(heap, text, rules)) {
      if (!std::exchange(first, false)) out += end;
      out += utf8_of(line);
      Budget::require_string(out.size());
    }
  }
  return heap.string(std::move(out));
}

// -- xmlattr --

Value do_xmlattr(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_xmlattr", {"autospace"}, 0, 2);
  Heap& heap = r.heap();
  if (v.is(Kind::Undefined)) raise_undefined(v);
  if (!v.is(Kind::Dict)) raise("AttributeError", concat_text("'", type_name(v), "' object has no attribute 'items'"));
  std::string out;
  const auto escaped = [&](const Value& x) {
    return is_markup(x) ? std::string(x.text()) : escape_html(to_text(heap, x));
  };
  for (const auto& [key, value] : v.get<DictObject>().entries) {
    heap.step();
    if (value.is(Kind::None) || value.is(Kind::Undefined)) continue;
    const std::string_view name = require_text(key, "expected string or bytes-like object");
    for (std::size_t at = 0; at < name.size();) {
      const char32_t c = decode_utf8(name, at);
      if (is_space(c) || c == '/' || c == '>' || c == '=')
        raise(kValueError, concat_text("Invalid character in attribute name: ", to_repr(heap, key)));
    }
    out += concat_text(out.empty() ? "" : " ", escaped(key), "=\"", escaped(value), "\"");
    Budget::require_string(out.size());
  }
  if ((p[0].missing() || truth(p[0])) && !out.empty()) out.insert(0, 1, ' ');
  return heap.string(std::move(out));
}

constexpr NamedFilter kTextFilters[] = {
    {"pprint", do_pprint}, {"striptags", do_striptags}, {"wordwrap", do_wordwrap}, {"xmlattr", do_xmlattr}};

}  // namespace

const NamedFilter* find_text_filter(std::string_view name) {
  for (const NamedFilter& f : kTextFilters)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace rlx::jinja
