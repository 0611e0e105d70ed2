// Checked reading of the keys of a model's configuration file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/json.h"
#include "rlx/ir/op_kind.h"

namespace rlx {

/// The members of a JSON object by key. An absent or null key takes the fallback. Every other failure is a BadFile that
/// names the file and the key.
class ConfigKeys {
 public:
  static constexpr std::int64_t kMaxSize = std::int64_t{1} << 30;  // keeps products of sizes within 64 bits

  ConfigKeys(JsonValue object, std::string source) : object_(object), source_(std::move(source)) {}

  bool has(std::string_view key) const;
  /// Whether the key exists; its value may be null.
  bool contains(std::string_view key) const { return object_.find(key).has_value(); }
  /// An integer in [least, most].
  std::int64_t size(std::string_view key, std::int64_t least = 1, std::int64_t most = kMaxSize) const;
  std::int64_t size_or(std::string_view key, std::int64_t fallback, std::int64_t least = 1,
                       std::int64_t most = kMaxSize) const;
  /// A finite number.
  double number(std::string_view key) const;
  double number_or(std::string_view key, double fallback) const;
  /// A number greater than zero and less than 1e12.
  double positive(std::string_view key, double fallback) const;
  bool flag(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  /// The object called `key`, or nothing.
  std::optional<ConfigKeys> object(std::string_view key) const;

  /// Number of members of the object.
  std::size_t count() const { return object_.size(); }

  const std::string& source() const { return source_; }
  [[noreturn]] void bad(const std::string& message, std::string hint = {}) const;
  [[noreturn]] void unsupported(const std::string& message, std::string hint = {}) const;

 private:
  std::optional<JsonValue> find(std::string_view key) const;
  JsonValue object_;
  std::string source_;
};

/// The activation that `key` names. Unsupported, naming the known activations.
ActivationKind parse_activation(const ConfigKeys& keys, std::string_view key, std::string_view fallback);

}  // namespace rlx
