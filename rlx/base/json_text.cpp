// Escaping for JSON inside HTML.
#include "rlx/base/json_text.h"

#include <cmath>
#include <cstdio>

#include "rlx/base/utf8.h"

namespace rlx {
namespace {

void append_escaped(std::string& out, unsigned code) {
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", code);
  out += text;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t valid = find_invalid_utf8(text).value_or(text.size());
    for (std::size_t i = 0; i < valid; ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += text[i];
      } else if (c == '\n') {
        out += "\\n";
      } else if (c < 0x20 || c == 0x7F || c == '<' || c == '>' || c == '&') {
        append_escaped(out, c);
      } else if (c == 0xE2 && text.substr(i, 2) == "\xE2\x80" && (text[i + 2] == '\xA8' || text[i + 2] == '\xA9')) {
        append_escaped(out, text[i + 2] == '\xA8' ? 0x2028 : 0x2029);
        i += 2;
      } else {
        out += text[i];
      }
    }
    if (valid == text.size()) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(valid + 1);
  }
  out += '"';
}

JsonText& JsonText::value(double v) {
  separate();
  char text[32];
  if (!std::isfinite(v)) v = 0;
  int size = std::snprintf(text, sizeof text, std::abs(v) < 1e15 ? "%.3f" : "%.6e", v);
  if (std::abs(v) < 1e15) {
    while (text[size - 1] == '0') --size;
    if (text[size - 1] == '.') --size;
  }
  out_.append(text, static_cast<std::size_t>(size));
  return *this;
}

}  // namespace rlx
