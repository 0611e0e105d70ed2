// Fields of option structs by the names of the last release.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

namespace rlx {

/// A field by its name of the last release. Setting it warns; building or copying the struct without setting it does
/// not, as it would if the field were [[deprecated]]. The comment of the field says the new name.
template <class T>
class OldName {
 public:
  OldName() = default;
  template <class U>
    requires std::convertible_to<U, T> && (!std::same_as<std::remove_cvref_t<U>, OldName>)
  [[deprecated("a field by its name of the last release: its declaration says the new one")]] OldName(U&& value)
      : value_(std::forward<U>(value)) {}  // NOLINT(implicit)

  /// The value that was set; none: the field was left alone.
  const std::optional<T>& value() const { return value_; }
  friend bool operator==(const OldName&, const OldName&) = default;

 private:
  std::optional<T> value_;
};

}  // namespace rlx
