// Internal: the record of a model family. Each file of rlx/models/families defines one, `NAME_family`, and the build
// lists them (cmake/families.cmake). All code that selects a family by name reads these records.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rlx/models/convert/gguf_architectures.h"
#include "rlx/models/decoder_config.h"
#include "rlx/models/encoder_config.h"

namespace rlx {

class ConfigKeys;
class ConfigWriter;
class GgufFile;
class GgufKeys;
class JsonValue;
class SettingsWriter;
struct ModelSizes;

/// Which GGUF files belong to a family, where several families share the architecture.
enum class GgufFiles : std::uint8_t { All, WithWindow, WithExperts };
/// How a GGUF file stores a sliding window.
enum class GgufWindow : std::uint8_t {
  Rules,      // as the setting rules say; any other window is refused
  AllLayers,  // one window of all layers
  Always,     // the same, with 0 for no window
};
/// The rotary positions that a GGUF file of a family can store, besides linear scaling.
struct GgufRope {
  double theta = 10000;            // the readers' default
  bool llama3 = false;             // Llama 3's scaling, stored as a tensor of factors
  bool longrope = false;           // LongRoPE, stored as two such tensors; the original context is always stored
  bool truncate = true;            // YaRN: readers end the ramp at whole dimensions
  bool mscale = false;             // YaRN: with DeepSeek's scale of scores
  bool rotates = true;             // false: the model has learned positions
  double part = 1;                 // rotated part of a head, where config.json has no value
  bool partly = false;             // config.json may have another value
  std::string_view part_key = {};  // an older name of that setting, besides "partial_rotary_factor"
};
/// Assumptions of llama.cpp about an architecture that neither the format nor rlx makes.
struct LlamaCppLimits {
  bool heads_fill_width = false;   // heads * head_dim equals the hidden size
  bool embedding_is_head = false;  // the output matrix is the embedding
  bool head_is_own = false;        // the output matrix is not the embedding
};

/// A family of decoders.
struct DecoderFamily {
  // -- Hugging Face --
  std::string_view model_type, hf_class;  // config.json's "model_type" and "architectures"
  void (*read_config)(const ConfigKeys& keys, DecoderConfig& config) = nullptr;

  // -- GGUF --
  std::string_view gguf;  // "general.architecture"
  /// Reads the metadata; null where another family of the architecture reads it.
  void (*read_gguf)(const GgufKeys& keys, DecoderConfig& config) = nullptr;
  GgufFiles files = GgufFiles::All;

  // -- conversion between both --
  std::span<const TensorRule> tensors;
  std::span<const SettingRule> settings;
  std::string_view activation = "silu";                      // the only supported activation
  std::string_view activation_alias = {};                    // another name of it in config.json
  std::string_view activation_keys[2] = {"hidden_act", ""};  // keys of config.json
  bool tied = false;                 // the default of config.json: the output layer is the embedding
  bool has_head_dim = true;          // config.json has "head_dim"
  bool own_heads = false;            // `write_gguf` writes the head sizes of keys and values
  std::string_view prefix = {};      // prefix of names in `tensors`; files may omit it
  std::string_view ignored[3] = {};  // suffixes of tensor names that files may hold and the model does not read
  std::string_view attention_bias = "blk.0.attn_q.bias";  // the tensor whose presence is "attention_bias"
  GgufWindow window = GgufWindow::Rules;
  std::int64_t full_every = 0;  // readers assume that every n-th layer has no window; 0: the file stores which
  GgufRope rope{};
  LlamaCppLimits llama_cpp{};
  /// Reads sizes that only this family has, from config.json and from metadata.
  void (*sizes_of_config)(const JsonValue& config, ModelSizes& sizes) = nullptr;
  void (*sizes_of_gguf)(const GgufFile& file, ModelSizes& sizes) = nullptr;
  /// Writes metadata that `settings` cannot express. An error for settings that GGUF files cannot store.
  void (*write_gguf)(SettingsWriter& out) = nullptr;
  /// Writes config.json entries that `settings` cannot express; null: ConfigWriter's settings, heads and flags.
  void (*write_config)(ConfigWriter& out) = nullptr;
};

/// A family of text encoders.
struct EncoderFamily {
  std::string_view model_types[3];
  void (*read_config)(const ConfigKeys& keys, EncoderConfig& config) = nullptr;
};

struct ModelFamily {
  const DecoderFamily* decoder = nullptr;
  const EncoderFamily* encoder = nullptr;
};

/// The families of this build, sorted by file name.
std::span<const ModelFamily* const> model_families();

}  // namespace rlx
