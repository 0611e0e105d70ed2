// Commas, indentation, escapes and numbers of JSON text.
#include "rlx/base/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rlx/base/utf8.h"
#include "rlx/error.h"

namespace rlx {
namespace {

void append_escaped(std::string& out, unsigned code) {
  constexpr char digits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[code >> shift & 15];
}

void append_quoted(std::string& out, std::string_view text, bool html_safe) {
  out += '"';
  while (!text.empty()) {
    const std::size_t valid = html_safe ? find_invalid_utf8(text).value_or(text.size()) : text.size();
    for (std::size_t i = 0; i < valid; ++i) {
      const char c = text[i];
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (c == '\n') {
        out += "\\n";
      } else if (!html_safe && (c == '\t' || c == '\r')) {
        out += c == '\t' ? "\\t" : "\\r";
      } else if (byte < 0x20 || (html_safe && (c == '<' || c == '>' || c == '&' || c == '\x7F'))) {
        append_escaped(out, byte);
      } else if (html_safe && byte == 0xE2 && text[i + 1] == '\x80' &&
                 (text[i + 2] == '\xA8' || text[i + 2] == '\xA9')) {
        append_escaped(out, text[i + 2] == '\xA8' ? 0x2028 : 0x2029);
        i += 2;
      } else {
        out += c;
      }
    }
    if (valid == text.size()) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(valid + 1);
  }
  out += '"';
}

template <class T>
void append_number(std::string& out, T v) {
  char buffer[64];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof buffer, v);
  out.append(buffer, static_cast<std::size_t>(result.ptr - buffer));
}

template <class T>
void append_finite(std::string& out, T v) {
  if (!std::isfinite(v)) {
    throw Error(ErrorCode::InvalidArgument, concat_text("JSON cannot hold the number ", static_cast<double>(v)),
                "write npy instead, or find out why the value is not finite");
  }
  if (v == 0 && std::signbit(v)) {
    out += "-0.0";  // "-0" would be read back as the integer zero
  } else {
    append_number(out, v);
  }
}

void append_rounded(std::string& out, double v, int decimals) {
  if (!std::isfinite(v)) v = 0;
  char buffer[64];
  const bool fixed = std::abs(v) < 1e15;
  const std::to_chars_result result =
      fixed ? std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed, std::min(decimals, 17))
            : std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific, 6);
  std::string_view text(buffer, static_cast<std::size_t>(result.ptr - buffer));
  if (fixed && decimals > 0) {
    while (text.ends_with('0')) text.remove_suffix(1);
    if (text.ends_with('.')) text.remove_suffix(1);
  }
  out += text;
}

}  // namespace

void JsonWriter::new_line() {
  if (style_.indent <= 0) return;
  text_ += '\n';
  text_.append(open_.size() * static_cast<std::size_t>(style_.indent), ' ');
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) text_ += ',';
  if (!open_.empty()) new_line();
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  open_ += bracket == '{' ? '}' : ']';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  check(!open_.empty() && open_.back() == bracket, "JsonWriter: this level is not open");
  open_.pop_back();
  if (!first_) new_line();
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_quoted(text_, name, style_.html_safe);
  text_ += style_.indent == 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_quoted(text_, text, style_.html_safe);
  return *this;
}

JsonWriter& JsonWriter::value(bool v) {
  separate();
  text_ += v ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t v) {
  separate();
  append_number(text_, v);
  return *this;
}

JsonWriter& JsonWriter::integer(std::uint64_t v) {
  separate();
  append_number(text_, v);
  return *this;
}

JsonWriter& JsonWriter::value(double v) {
  std::string number;  // first, as it may throw
  if (style_.decimals < 0)
    append_finite(number, v);
  else
    append_rounded(number, v, style_.decimals);
  separate();
  text_ += number;
  return *this;
}

JsonWriter& JsonWriter::value(float v) {
  if (style_.decimals >= 0) return value(double{v});
  std::string number;
  append_finite(number, v);
  separate();
  text_ += number;
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  text_ += "null";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  if (json.empty()) {
    check(!after_key_, "JsonWriter: no text for the value of a key");
    return *this;
  }
  separate();
  text_ += json;
  return *this;
}

std::string JsonWriter::take() {
  check(open_.empty(), "JsonWriter: an object or array is still open");
  check(!after_key_, "JsonWriter: a key has no value");
  first_ = true;
  return std::exchange(text_, {});
}

}  // namespace rlx
