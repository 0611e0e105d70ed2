// Conversion of template values to text: str(), repr(), json.dumps and HTML escapes.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/jinja/loop.h"
#include "rlx/text/jinja/program.h"
#include "rlx/text/jinja/unicode.h"
#include "rlx/text/jinja/value.h"

namespace rlx::jinja {

// The shortest digits that parse to v, in Python's format: an exponent is written below 1e-4 and from 1e16 on.
std::string repr_of_float(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  const std::to_chars_result r = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(r.ptr - buffer));
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* first = text.data() + e + 1;
  (void)std::from_chars(*first == '+' ? first + 1 : first, text.data() + text.size(), exponent);
  std::string digits, out = text[0] == '-' ? "-" : "";
  for (const char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out.append(".").append(digits, 1);
    out += exponent < 0 ? "e-" : "e+";
    if (std::abs(exponent) < 10) out += '0';
    return out + std::to_string(std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return out + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<std::size_t>(exponent + 1)) + "." +
         digits.substr(static_cast<std::size_t>(exponent + 1));
}

namespace {

constexpr char kHex[] = "0123456789abcdef";

void append_hex(std::string& out, char32_t c, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[c >> shift & 15];
}

}  // namespace

std::string repr_of_string(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = decode_utf8(text, at);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F || (c >= 0x80 && !is_printable(c))) {
      out += c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
      append_hex(out, c, c < 0x100 ? 2 : c < 0x10000 ? 4 : 8);
    } else {
      out += text.substr(start, at - start);
    }
  }
  return out + quote;
}

namespace {

std::string digits_of(Heap& heap, const Value& big) {
  const BigInteger& v = big.get<BigIntObject>().value;
  heap.step(v.num_limbs() * v.num_limbs());
  return v.text();
}

class Printer {
 public:
  explicit Printer(Heap& heap) : heap_(heap) {}
  std::string take() { return std::move(out_); }

  void repr(const Value& v) {
    heap_.step();
    // Namespaces may contain themselves. Python raises RecursionError too.
    if (++depth_ > 2 * Budget::kMaxValueDepth) raise("RecursionError", "maximum recursion depth exceeded");
    switch (v.kind()) {
      case Kind::Missing:
      case Kind::None: out_ += "None"; break;
      case Kind::Bool: out_ += v.as_bool() ? "True" : "False"; break;
      case Kind::Int: out_ += std::to_string(v.as_int()); break;
      case Kind::BigInt: out_ += digits_of(heap_, v); break;
      case Kind::Float: out_ += repr_of_float(v.as_real()); break;
      case Kind::String:
        heap_.budget().copy(4 * v.text().size());
        if (is_markup(v)) out_ += "Markup(";
        out_ += repr_of_string(v.text());
        if (is_markup(v)) out_ += ')';
        break;
      case Kind::List: items(v, '[', ']'); break;
      case Kind::Tuple: items(v, '(', ')'); break;
      case Kind::Dict: entries(v.get<DictObject>().entries); break;
      case Kind::View: view(v); break;
      case Kind::Range: range(v.get<RangeObject>()); break;
      case Kind::Namespace:
        out_ += "<Namespace ";
        entries(v.get<NamespaceObject>().attributes);
        out_ += '>';
        break;
      default: object(v);
    }
    Budget::require_string(out_.size());
    --depth_;
  }

 private:
  void items(const Value& v, char open, char close) {
    out_ += open;
    const std::vector<Value>& items = v.get<ListObject>().items;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_ += ", ";
      repr(items[i]);
    }
    if (open == '(' && items.size() == 1) out_ += ',';
    out_ += close;
  }
  void entries(const std::vector<DictObject::Entry>& entries) {
    out_ += '{';
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) out_ += ", ";
      repr(entries[i].first);
      out_ += ": ";
      repr(entries[i].second);
    }
    out_ += '}';
  }
  void view(const Value& v) {
    out_ += concat_text(type_name(v), "([");
    Cursor cursor(heap_, v);
    bool first = true;
    for (Value item; cursor.next(item); first = false) {
      if (!first) out_ += ", ";
      repr(item);
    }
    out_ += "])";
  }
  void range(const RangeObject& r) {
    out_ += concat_text("range(", r.start, ", ", r.stop);
    if (r.step != 1) out_ += concat_text(", ", r.step);
    out_ += ')';
  }
  // Python prints an address here. No template can depend on it.
  void object(const Value& v) {
    switch (v.kind()) {
      case Kind::Undefined: out_ += "Undefined"; break;
      case Kind::Macro: {
        const std::string_view name = v.get<MacroObject>().name();
        out_ += name.empty() ? std::string("<Macro anonymous>") : concat_text("<Macro ", repr_of_string(name), ">");
        break;
      }
      case Kind::Loop: {
        LoopObject& loop = v.get<LoopObject>();
        out_ += concat_text("<LoopContext ", loop.index0 + 1, "/", loop.total(heap_), ">");
        break;
      }
      case Kind::Function: out_ += concat_text("<function ", v.get<FunctionObject>().name, ">"); break;
      case Kind::Method: {
        const MethodObject& method = v.get<MethodObject>();
        out_ += concat_text("<built-in method ", method.name, " of ", type_name(method.self), " object>");
        break;
      }
      default: out_ += concat_text("<", type_name(v), " object>");
    }
  }

  Heap& heap_;
  std::string out_;
  int depth_ = 0;
};

class JsonPrinter {
 public:
  JsonPrinter(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {
    item_ = style.item_separator.value_or(style.indent ? "," : ", ");
    key_ = style.key_separator.value_or(": ");
  }
  std::string take() { return std::move(out_); }

  void value(const Value& v, std::size_t level) {
    heap_.step();
    switch (v.kind()) {
      case Kind::None: out_ += "null"; break;
      case Kind::Bool: out_ += v.as_bool() ? "true" : "false"; break;
      case Kind::Int: out_ += std::to_string(v.as_int()); break;
      case Kind::BigInt: out_ += digits_of(heap_, v); break;
      case Kind::Float: out_ += number(v.as_real()); break;
      case Kind::String: quoted(v.text()); break;
      case Kind::List:
      case Kind::Tuple: array(v.get<ListObject>().items, level); break;
      case Kind::Dict: object(v.get<DictObject>(), level); break;
      default: raise(kTypeError, concat_text("Object of type ", type_name(v), " is not JSON serializable"));
    }
    Budget::require_string(out_.size());
  }

 private:
  static std::string number(double v) {
    if (std::isnan(v)) return "NaN";
    if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
    return repr_of_float(v);
  }
  void new_line(std::size_t level) {
    if (!style_.indent) return;
    Budget::require_string(level, style_.indent->size());
    heap_.budget().copy(level * style_.indent->size());
    out_ += '\n';
    for (std::size_t i = 0; i < level; ++i) out_ += *style_.indent;
  }
  void array(const std::vector<Value>& items, std::size_t level) {
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_ += item_;
      new_line(level + 1);
      value(items[i], level + 1);
    }
    if (!items.empty()) new_line(level);
    out_ += ']';
  }
  void object(const DictObject& dict, std::size_t level) {
    std::vector<const DictObject::Entry*> entries;
    for (const DictObject::Entry& e : dict.entries) entries.push_back(&e);
    if (style_.sort_keys) {
      for (std::size_t i = 1; i < entries.size(); ++i) {
        const Value &a = entries[i]->first, &b = entries[i - 1]->first;
        if (!(a.is_any_number() && b.is_any_number()) && !(a.is_string() && b.is_string()))
          raise(kTypeError,
                concat_text("'<' not supported between instances of '", type_name(a), "' and '", type_name(b), "'"));
      }
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto* a, const auto* b) { return compare_keys(a->first, b->first) < 0; });
    }
    out_ += '{';
    bool first = true;
    for (const DictObject::Entry* e : entries) {
      if (!first) out_ += item_;
      first = false;
      new_line(level + 1);
      key(e->first);
      out_ += key_;
      value(e->second, level + 1);
    }
    if (!entries.empty()) new_line(level);
    out_ += '}';
  }
  void key(const Value& k) {
    switch (k.kind()) {
      case Kind::String: quoted(k.text()); break;
      case Kind::None: out_ += "\"null\""; break;
      case Kind::Bool: out_ += k.as_bool() ? "\"true\"" : "\"false\""; break;
      case Kind::Int: out_ += concat_text('"', k.as_int(), '"'); break;
      case Kind::BigInt: out_ += concat_text('"', digits_of(heap_, k), '"'); break;
      case Kind::Float: out_ += concat_text('"', number(k.as_real()), '"'); break;
      default: raise(kTypeError, concat_text("keys must be str, int, float, bool or None, not ", type_name(k)));
    }
  }
  void quoted(std::string_view text) {
    heap_.budget().copy(text.size());
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const unsigned char byte = static_cast<unsigned char>(text[at]);
      if (byte >= 0x80) {
        const std::size_t start = at;
        const char32_t c = decode_utf8(text, at);
        if (!style_.ensure_ascii) {
          out_ += text.substr(start, at - start);
        } else if (c < 0x10000) {
          out_ += "\\u";
          append_hex(out_, c, 4);
        } else {
          out_ += "\\u";
          append_hex(out_, 0xD800 + ((c - 0x10000) >> 10), 4);
          out_ += "\\u";
          append_hex(out_, 0xDC00 + ((c - 0x10000) & 0x3FF), 4);
        }
        continue;
      }
      ++at;
      switch (byte) {
        case '"': out_ += "\\\""; break;
        case '\\': out_ += "\\\\"; break;
        case '\n': out_ += "\\n"; break;
        case '\r': out_ += "\\r"; break;
        case '\t': out_ += "\\t"; break;
        case '\b': out_ += "\\b"; break;
        case '\f': out_ += "\\f"; break;
        default:
          if (byte < 0x20) {
            out_ += "\\u";
            append_hex(out_, byte, 4);
          } else {
            out_ += static_cast<char>(byte);
          }
      }
    }
    out_ += '"';
  }

  Heap& heap_;
  const JsonStyle& style_;
  std::string item_, key_, out_;
};

}  // namespace

std::string to_repr(Heap& heap, const Value& v) {
  Printer printer(heap);
  printer.repr(v);
  return printer.take();
}

std::string to_text(Heap& heap, const Value& v) {
  if (v.is_string()) {
    heap.budget().copy(v.text().size());
    return std::string(v.text());
  }
  return v.is(Kind::Undefined) ? std::string() : to_repr(heap, v);
}

Value to_string_value(Heap& heap, const Value& v) {
  return v.is_string() && !is_markup(v) ? v : heap.string(to_text(heap, v));
}

std::string to_json(Heap& heap, const Value& v, const JsonStyle& style) {
  JsonPrinter printer(heap, style);
  printer.value(v, 0);
  return printer.take();
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace rlx::jinja
