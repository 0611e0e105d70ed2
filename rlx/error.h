// Errors of rlx: one exception type for users, one value type for rules and parsers.
#pragma once

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rlx {

/// The kind of an error. Python and the CLI map these to exception types and exit codes.
enum class ErrorCode : std::uint8_t {
  InvalidArgument,    // wrong use: name, length, axis, option
  ShapeMismatch,      // shapes that do not match
  DTypeMismatch,      // dtypes that do not match
  NotFound,           // a name or file that does not exist
  BadFile,            // a file or text that does not follow its format
  Unsupported,        // a valid request that this device, op or build does not support
  DeviceUnavailable,  // no such device in this build or on this machine
  DeviceLost,         // the device failed or was removed; it must be opened again
  OutOfMemory,
  Interrupted,  // the caller requested to stop it (base/stop_request.h)
  Internal,     // a bug of rlx
};

/// Stable lower-case name of a code, for example "shape mismatch".
std::string_view error_code_name(ErrorCode code);

/// One problem: a sentence, its location, and a hint how to avoid it.
struct Diagnostic {
  ErrorCode code = ErrorCode::InvalidArgument;
  std::string message;  // one sentence, no trailing period
  std::string where;    // node text, file position, ... (may be empty)
  std::string hint;     // how to avoid it (may be empty)

  /// Multi-line text: "shape mismatch: message\n  where\n  hint: hint".
  std::string text() const;
};

/// The only exception of rlx, except for failed allocations (rlx/tensor/out_of_memory.h).
class Error : public std::runtime_error {
 public:
  /// An error with its parts, whose control characters are written as \xNN.
  explicit Error(Diagnostic d);
  Error(ErrorCode code, std::string message, std::string hint = {});
  /// The kind of the error.
  ErrorCode code() const { return diagnostic_.code; }
  /// Sentence, place and hint.
  const Diagnostic& diagnostic() const { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
};

namespace detail {
/// Throws InvalidArgument because `value` is not an enumerator of `type`.
[[noreturn]] void throw_no_enumerator(std::string_view type, std::int64_t value);
/// Throws InvalidArgument because there is no `what` number `index`; there are `count`.
[[noreturn]] void throw_no_index(std::string_view what, std::int64_t index, std::size_t count);
/// `index` as a position below `count`; throws as throw_no_index.
inline std::size_t checked_index(std::string_view what, std::int64_t index, std::size_t count) {
  if (index < 0 || static_cast<std::uint64_t>(index) >= count) throw_no_index(what, index, count);
  return static_cast<std::size_t>(index);
}

inline void append_text(std::string& out, std::string_view v) { out.append(v); }
inline void append_text(std::string& out, const char* v) { out.append(v ? v : "(null)"); }
inline void append_text(std::string& out, const std::string& v) { out.append(v); }
inline void append_text(std::string& out, char v) { out.push_back(v); }
inline void append_text(std::string& out, bool v) { out.append(v ? "true" : "false"); }
void append_text(std::string& out, double v);
template <class T>
  requires(std::is_integral_v<T>)
void append_text(std::string& out, T v) {
  out.append(std::to_string(v));
}
template <class T>
concept HasText = requires(const T& v) {
                    { v.text() } -> std::convertible_to<std::string>;
                  };
template <HasText T>
void append_text(std::string& out, const T& v) {
  out.append(v.text());
}
}  // namespace detail

namespace detail {
/// Longer names, in bytes, are shortened in messages.
inline constexpr std::size_t kLongName = 256;
/// The state of concat_text: where the last two arguments begin.
class QuotedNames {
 public:
  /// Called after each argument. Shortens the argument before it when that is long and between quotation marks.
  void added(std::string& text) {
    if (here_ - before_ > kLongName) shorten(text);
    before_ = here_;
    here_ = text.size();
  }

 private:
  void shorten(std::string& text);
  std::size_t before_ = 0, here_ = 0;
};
}  // namespace detail

/// A name for messages. Of a name of more than 256 bytes it has the first 80 (whole characters) and the number of
/// bytes.
std::string short_name(std::string_view name);

/// Joins its arguments into one string; types with a `text()` member print through it. An argument between two
/// quotation marks (`"'", name, "'"`) is a name that a message quotes and is written by short_name.
template <class... Args>
std::string concat_text(const Args&... args) {
  std::string out;
  detail::QuotedNames names;
  ((detail::append_text(out, args), names.added(out)), ...);
  return out;
}

/// A value, or the Diagnostic that explains why there is none. Used inside rules and parsers.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}                     // NOLINT(implicit)
  Result(Diagnostic diagnostic) : state_(std::in_place_index<1>, std::move(diagnostic)) {}  // NOLINT(implicit)
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    throw_if_error();
    return std::get<0>(state_);
  }
  const T& value() const& {
    throw_if_error();
    return std::get<0>(state_);
  }
  T&& value() && {
    throw_if_error();
    return std::get<0>(std::move(state_));
  }
  /// These throw the Error, as value() does.
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  /// Why there is no value; throws InvalidArgument when there is one.
  const Diagnostic& error() const {
    if (ok())
      throw Error(ErrorCode::InvalidArgument, "Result::error() was called, but the result holds a value",
                  "check ok() first");
    return std::get<1>(state_);
  }

 private:
  void throw_if_error() const {
    if (!ok()) throw Error(std::get<1>(state_));
  }
  std::variant<T, Diagnostic> state_;
};

/// The result of `f()`, or the Diagnostic of the Error that it throws. For callers that handle failure as a value.
template <class F>
auto attempt(F&& f) -> Result<decltype(f())> {
  try {
    return f();
  } catch (const Error& e) {
    return e.diagnostic();
  }
}

/// Throws Error{Internal} naming file and line when `condition` is false, which is a bug of rlx.
void check(bool condition, std::string_view what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// The entry of `names` closest to `name` by edit distance, or an empty string when none is close. For error hints.
/// Names of more than 256 bytes match none.
std::string closest_name(std::string_view name, const std::vector<std::string>& names);
/// "did you mean 'x'?" with the closest name, or `otherwise` when none is close.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names, std::string_view otherwise = {});
/// "'a', 'b', 'c'": the first `shown` of `names`, then "..." when there are more. For error hints when no name is
/// close.
std::string quoted_names(const std::vector<std::string>& names, std::size_t shown = 6);

}  // namespace rlx
