// JsonWriter: writes the JSON of files, reports, traces and machine-readable output.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rlx {

/// How a JsonWriter writes its text.
struct JsonStyle {
  int indent = 0;  // spaces per level; 0: one line
  /// The text is valid inside HTML: characters that would end a <script> element, line separators of old JavaScript and
  /// control characters become \uXXXX, and each byte that is not UTF-8 becomes U+FFFD. So any bytes give valid JSON.
  /// Without it only quotes, backslashes and control characters are escaped, and other bytes are kept.
  bool html_safe = false;
  /// Decimals of a floating-point number, at most 17, without trailing zeros. NaN and infinities are written as 0, and
  /// numbers from 1e15 on with an exponent and six decimals. A negative count gives the shortest text that reads back
  /// as the same number; NaN and infinities, which JSON cannot represent, are errors.
  int decimals = -1;
};

/// The style of reports and traces.
inline constexpr JsonStyle kHtmlJson{.html_safe = true, .decimals = 3};

/// Writes JSON text and inserts commas. The caller keeps begin and end balanced (checked by `take`). Members that are
/// written outside of an object are a text for `raw` of another writer.
class JsonWriter {
 public:
  /// `indent` spaces per level, 0 for one line.
  explicit JsonWriter(int indent = 0) : JsonWriter(JsonStyle{.indent = indent}) {}
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool v);
  JsonWriter& value(int v) { return integer(std::int64_t{v}); }
  template <std::integral T>
  JsonWriter& value(T v) {
    if constexpr (std::signed_integral<T>)
      return integer(std::int64_t{v});
    else
      return integer(std::uint64_t{v});
  }
  /// Writes the number as JsonStyle::decimals says. Errors: NaN and infinities if `decimals` is negative.
  JsonWriter& value(double v);
  JsonWriter& value(float v);
  JsonWriter& null();
  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  /// Inserts existing JSON, which is not checked: a value, or members of the open object (an empty text: none).
  JsonWriter& raw(std::string_view json);
  /// Returns the text so far and clears it, for streaming.
  std::string flush() { return std::exchange(text_, {}); }
  /// The finished text. Open objects or arrays and a key without a value are an internal error.
  std::string take();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& integer(std::int64_t v);
  JsonWriter& integer(std::uint64_t v);
  void separate();
  void new_line();
  std::string text_;
  std::string open_;  // the closing bracket of every open level
  JsonStyle style_;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace rlx
