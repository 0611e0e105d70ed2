// Internal: writers for settings of a family's record that are more than a rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/formats/gguf.h"
#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/json.h"
#include "rlx/models/convert/convert_settings.h"
#include "rlx/models/model_family.h"

namespace rlx {

/// A member of a JSON object, unless it is absent or null.
std::optional<JsonValue> present(const JsonValue& object, std::string_view key);
double number_or(const JsonValue& object, std::string_view key, double fallback);
/// The rotary settings of transformers 5, or those of one layer type where there are two.
std::optional<JsonValue> rope_parameters(const JsonValue& config, std::string_view layers = "full_attention");
std::string_view rope_type(const JsonValue& scaling);

/// Writes the settings of config.json as metadata.
class SettingsWriter {
 public:
  SettingsWriter(GgufWriter& out, const DecoderFamily& a, const JsonValue& config, const ModelSizes& sizes)
      : out_(out), a_(a), config_(config), sizes_(sizes) {}

  void write();

  const DecoderFamily& family() const { return a_; }
  const JsonValue& config() const { return config_; }
  const ModelSizes& sizes() const { return sizes_; }
  // Writes a key without the architecture prefix. An existing key stays unchanged.
  void integer(std::string_view name, std::int64_t v);
  void number(std::string_view name, double v);
  void flag(std::string_view name, bool v);
  /// Refuses a config.json flag that is not `value`, since files have no key for it.
  void need(std::string_view setting, bool value) const;
  /// Refuses window patterns other than all layers but every `n`-th, which readers assume.
  void check_window_pattern(std::size_t n) const;
  /// Throws Unsupported: a GGUF file cannot store `what`.
  [[noreturn]] static void refuse(const std::string& what);

 private:
  std::string key(std::string_view name) const;
  void write_rule(const SettingRule& rule);
  void check_activation() const;
  void write_window();
  void write_scaling();
  void write_yarn(const JsonValue& scaling, double factor);

  GgufWriter& out_;
  const DecoderFamily& a_;
  const JsonValue& config_;
  const ModelSizes& sizes_;
};

/// Writes config.json from metadata.
class ConfigWriter {
 public:
  ConfigWriter(const GgufFile& file, const DecoderFamily& a, const ModelSizes& sizes)
      : file_(file), a_(a), sizes_(sizes) {}

  std::string text(std::string_view dtype);

  // Parts of the file that most families have, in this order.
  void settings();  // the setting rules, and the base of rotary positions
  void heads();     // the size of a head
  void flags();     // biases, tied embeddings, tokens, windows

  const GgufFile& file() const { return file_; }
  const ModelSizes& sizes() const { return sizes_; }
  std::string key(std::string_view name) const;
  bool has_tensor(std::string_view name) const { return file_.find_tensor(name) != nullptr; }
  template <class T>
  void member(std::string_view name, T value) {
    w_.member(name, value);
  }
  void null_member(std::string_view name) { w_.key(name).null(); }
  double theta() const;
  double part_rotated() const;
  /// Writes a window that all layers have, or null.
  void write_common_window();
  [[noreturn]] void unsupported(const std::string& what) const;

 private:
  bool writes(std::string_view setting) const;
  void write_rule(const SettingRule& rule);
  void write_windows();
  void write_llama3();
  void write_long();
  void write_yarn();
  void write_scaling();

  const GgufFile& file_;
  const DecoderFamily& a_;
  const ModelSizes& sizes_;
  JsonWriter w_{2};
};

// Checks the assumption of Gemma 2 and 3 readers: the size that scores are scaled by (families/gemma2.cpp).
void check_gemma_scale(SettingsWriter& out, std::int64_t layers_of_largest);
void write_gemma_scale(ConfigWriter& out, std::int64_t layers_of_largest);

}  // namespace rlx
