// One adapter in the layout of the Python package PEFT: which modules of a model it is for, and its matrices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/safetensors.h"
#include "rlx/text/regex.h"

namespace rlx {

/// For a module with the matrix W [out, in] an adapter adds scale * B A, of A [rank, in] and B [out, rank], whichever
/// way the model's file has W lying. Modules have the names that they have in `transformers`.
class PeftAdapter {
 public:
  /// Reads a folder. Errors: NotFound for files that are not there; BadFile for what is malformed or misses;
  /// Unsupported for adapters that do more than add low-rank products (DoRA, modules saved whole, biases, embeddings,
  /// changed base weights).
  explicit PeftAdapter(const std::string& folder);

  /// Whether the configuration names the module; `head`: it is the output layer.
  bool targets(const std::string& module, bool head) const;
  /// True when it names all linear modules, without saying which these are.
  bool targets_all() const { return all_linear_; }
  /// What the configuration says of a module.
  std::int64_t rank(const std::string& module) const;
  double scale(const std::string& module) const;

  /// The halves of a module, F32, as far as they are there.
  std::optional<Tensor> a(const std::string& module) const { return half(module, ".lora_A.weight"); }
  std::optional<Tensor> b(const std::string& module) const { return half(module, ".lora_B.weight"); }
  /// The modules that the file has matrices of, sorted.
  std::vector<std::string> modules() const;

  /// What errors call it: the file of its matrices, and its configuration.
  const std::string& source() const { return file_->source(); }
  const std::string& config() const { return config_; }
  /// The words or the pattern that name its modules, for errors.
  std::string target_text() const;

 private:
  struct Pattern {
    Regex regex;
    double value;
  };
  void read_config(const std::string& path);
  void check_tensors() const;
  std::optional<Tensor> half(const std::string& module, std::string_view ending) const;
  static bool matches(const Regex& regex, const std::string& module);
  static bool ends_in(const std::string& module, const std::vector<std::string>& names);

  std::string config_;
  std::shared_ptr<const SafetensorsFile> file_;
  bool all_linear_ = false;
  std::string target_pattern_;  // as it is written; empty: names instead
  std::optional<Regex> target_regex_{}, exclude_regex_{};
  std::vector<std::string> target_names_{}, exclude_names_{};
  std::vector<std::int64_t> layers_{};  // of these alone; empty: all
  std::vector<Regex> layer_patterns_{};
  std::int64_t rank_ = 8;
  double alpha_ = 8;
  bool root_scale_ = false;  // scale is alpha / sqrt(rank) (Kalajdzievski 2023, arXiv:2312.03732)
  std::vector<Pattern> ranks_{}, alphas_{};
};

}  // namespace rlx
