// Checked reading of one architecture's metadata.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/gguf.h"

namespace rlx {

/// The keys "ARCHITECTURE.NAME" of a file, and sizes of its tensors. An absent key takes the fallback. Every other
/// failure is a BadFile that names the file and the key.
class GgufKeys {
 public:
  static constexpr std::int64_t kMaxSize = std::int64_t{1} << 30;  // keeps products of sizes within 64 bits

  explicit GgufKeys(const GgufFile& file) : file_(file), prefix_(std::string(file.architecture()) + ".") {}

  bool has(std::string_view name) const { return file_.find_value(key(name)) != nullptr; }
  bool has_tensor(std::string_view name) const { return file_.find_tensor(name) != nullptr; }
  /// An integer in [least, most]. An array must hold one value throughout.
  std::int64_t size(std::string_view name, std::int64_t most = kMaxSize, std::int64_t least = 1) const;
  std::int64_t size_or(std::string_view name, std::int64_t fallback, std::int64_t least = 1) const;
  double positive(std::string_view name) const;
  double positive_or(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  /// A value for each layer. Where the file has one number `n`, every `n`-th value is 0. Empty for an absent key.
  std::vector<std::int64_t> pattern(std::string_view name, std::size_t layers) const;
  /// The value of each layer under a key without the architecture prefix: an array, or one number for all.
  std::vector<double> layer_numbers(std::string_view key, std::size_t layers) const;
  /// Number of rows of a matrix.
  std::int64_t table_rows(std::string_view tensor) const;
  /// The `count` elements of a tensor.
  std::vector<double> factors(std::string_view tensor, std::int64_t count) const;

  [[noreturn]] void bad(const std::string& message, std::string hint = {}) const;
  [[noreturn]] void unsupported(const std::string& message, std::string hint = {}) const;

 private:
  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  const GgufFile& file_;
  std::string prefix_;
};

}  // namespace rlx
