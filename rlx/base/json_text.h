// JSON text that is also valid inside HTML, for the HTML reports and traces of rlx::core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace rlx {

/// Appends `text` in quotes. Characters that would end a <script> element, line separators of old JavaScript and
/// control characters become \uXXXX. Bytes that are not UTF-8 become U+FFFD. So any bytes give valid JSON.
void append_json_string(std::string& out, std::string_view text);

/// Writes JSON on one line and inserts commas. The caller must balance begin and end.
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
  /// Writes three decimals. NaN and infinities are written as 0.
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
  /// Inserts existing JSON.
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
