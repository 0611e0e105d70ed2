// JSON text that may also stand inside an HTML page: for the pages and timelines that rlx::core writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace rlx {

/// Appends `text` in quotes. What would end a <script> element, line separators of old JavaScript and control
/// characters are written as \uXXXX, bytes that are no UTF-8 as U+FFFD: any bytes give valid JSON.
void append_json_string(std::string& out, std::string_view text);

/// Writes JSON on one line, commas by itself; the caller keeps begin and end balanced.
class JsonText {
 public:
  JsonText& begin(char bracket) {
    separate();
    out_ += bracket;
    comma_ = false;
    return *this;
  }
  JsonText& end(char bracket) {
    out_ += bracket;
    comma_ = true;
    return *this;
  }
  JsonText& key(std::string_view name) {
    separate();
    append_json_string(out_, name);
    out_ += ':';
    comma_ = false;
    return *this;
  }
  JsonText& value(std::string_view text) {
    separate();
    append_json_string(out_, text);
    return *this;
  }
  JsonText& value(const char* text) { return value(std::string_view(text)); }
  /// Three decimals; what is no number is 0.
  JsonText& value(double v);
  template <class T>
    requires std::is_integral_v<T>
  JsonText& value(T v) {
    separate();
    if constexpr (std::is_same_v<T, bool>)
      out_ += v ? "true" : "false";
    else
      out_ += std::to_string(v);
    return *this;
  }
  template <class T>
  JsonText& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  /// JSON that is there already.
  JsonText& raw(std::string_view json) {
    separate();
    out_ += json;
    return *this;
  }
  std::string take() { return std::move(out_); }

 private:
  void separate() {
    if (comma_) out_ += ',';
    comma_ = true;
  }
  std::string out_;
  bool comma_ = false;
};

}  // namespace rlx
