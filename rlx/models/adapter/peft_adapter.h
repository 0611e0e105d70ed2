// One adapter in PEFT's format: its target modules and its matrices.
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

/// For a module with the matrix W [out, in] an adapter adds scale * B A, with A [rank, in] and B [out, rank], whichever
/// way the model's file stores W. For an embedding A is [rank, tokens] and B [width, rank]. With DoRA (Liu et al. 2024,
/// arXiv:2402.09353) the rows of the sum are scaled to magnitudes of their own. Some modules may be replaced as a
/// whole. Modules have their names in `transformers`.
class PeftAdapter {
 public:
  /// Reads a folder. Errors: NotFound for missing files; BadFile for malformed or missing content; Unsupported for
  /// adapters of other kinds (biases of the low-rank matrices, changed base weights, DoRA of an embedding, and more),
  /// naming the setting or the tensor.
  explicit PeftAdapter(const std::string& folder);

  /// Whether the configuration targets the module. `head`: it is the output layer.
  bool targets(const std::string& module, bool head) const;
  /// True when the configuration targets all linear modules without naming them.
  bool targets_all() const { return all_linear_; }
  /// The configuration's rank of a module.
  std::int64_t rank(const std::string& module) const;
  double scale(const std::string& module) const;

  /// Whether the rows of changed matrices have magnitudes of their own (DoRA).
  bool has_magnitudes() const { return dora_; }
  /// Whether the configuration replaces the module as a whole.
  bool saves(const std::string& module) const;

  /// The low-rank matrices of a module, F32, if present.
  std::optional<Tensor> a(const std::string& module) const { return floats(module, ".lora_A.weight"); }
  std::optional<Tensor> b(const std::string& module) const { return floats(module, ".lora_B.weight"); }
  std::optional<Tensor> embedding_a(const std::string& module) const { return floats(module, ".lora_embedding_A"); }
  std::optional<Tensor> embedding_b(const std::string& module) const { return floats(module, ".lora_embedding_B"); }
  /// DoRA magnitudes of the rows of a module's matrix [out].
  std::optional<Tensor> magnitudes(const std::string& module) const { return floats(module, ".lora_magnitude_vector"); }
  /// The replacement weight of a module, as the model's own file would store it.
  std::optional<Tensor> saved_weight(const std::string& module) const { return floats(module, ".weight"); }
  std::optional<Tensor> saved_bias(const std::string& module) const { return floats(module, ".bias"); }
  /// The model's own matrix of a module, which PEFT may also write.
  std::optional<Tensor> base_weight(const std::string& module) const { return floats(module, ".base_layer.weight"); }
  /// The modules that the file has tensors for, sorted.
  std::vector<std::string> modules() const;

  /// The name in errors: the file of the matrices, and of the configuration.
  const std::string& source() const { return file_->source(); }
  const std::string& config() const { return config_; }
  /// The target names or pattern, for errors.
  std::string target_text() const;

 private:
  struct Pattern {
    Regex regex;
    double value;
  };
  void read_config(const std::string& path);
  void check_tensors() const;
  std::optional<Tensor> floats(const std::string& module, std::string_view ending) const;
  static bool matches(const Regex& regex, const std::string& module);
  static bool ends_in(const std::string& module, const std::vector<std::string>& names);

  std::string config_;
  std::shared_ptr<const SafetensorsFile> file_;
  bool all_linear_ = false;
  std::string target_pattern_;  // as written; empty: names are used instead
  std::optional<Regex> target_regex_{}, exclude_regex_{};
  std::vector<std::string> target_names_{}, exclude_names_{}, saved_names_{};
  std::vector<std::int64_t> layers_{};  // only these layers; empty: all
  std::vector<Regex> layer_patterns_{};
  std::int64_t rank_ = 8;
  double alpha_ = 8;
  bool dora_ = false;
  bool root_scale_ = false;  // scale is alpha / sqrt(rank) (Kalajdzievski 2023, arXiv:2312.03732)
  std::vector<Pattern> ranks_{}, alphas_{};
};

}  // namespace rlx
