// Internal: the record of a family of models. Each file of rlx/models/families defines one, `NAME_family`, and the
// build lists them (cmake/families.cmake): everything that knows families by name reads these records.
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

/// Which files of a GGUF architecture are of a family, where several families share the architecture.
enum class GgufFiles : std::uint8_t { All, WithWindow, WithExperts };
/// What a GGUF file says of a window.
enum class GgufWindow : std::uint8_t {
  Rules,      // what the rules of settings have; any other window is refused
  AllLayers,  // one that all layers have
  Always,     // the same, and 0 for none
};
/// Which rotary positions a GGUF file of a family can hold, besides linear ones.
struct GgufRope {
  double theta = 10000;            // what readers take where the file has none
  bool llama3 = false;             // Llama 3's scaling, as a tensor of factors
  bool longrope = false;           // LongRoPE, as two such tensors; the original context is always there
  bool truncate = true;            // YaRN: readers end the ramp at whole dimensions
  bool mscale = false;             // YaRN: with DeepSeek's scale of scores
  bool rotates = true;             // false: the model has learned positions
  double part = 1;                 // of a head that is rotated, where config.json does not say it
  bool partly = false;             // config.json may say another part
  std::string_view part_key = {};  // an older name of that setting, besides "partial_rotary_factor"
};
/// What llama.cpp takes for granted of an architecture, where the format and rlx do not.
struct LlamaCppLimits {
  bool heads_fill_width = false;   // heads together are as wide as the model
  bool embedding_is_head = false;  // the output matrix is the embedding
  bool head_is_own = false;        // the output matrix is not the embedding
};

/// A family of decoders.
struct DecoderFamily {
  // -- Hugging Face --
  std::string_view model_type, hf_class;  // of config.json: "model_type", and "architectures"
  void (*read_config)(const ConfigKeys& keys, DecoderConfig& config) = nullptr;

  // -- GGUF --
  std::string_view gguf;  // "general.architecture"
  /// Of metadata; null where another family of the architecture reads them.
  void (*read_gguf)(const GgufKeys& keys, DecoderConfig& config) = nullptr;
  GgufFiles files = GgufFiles::All;

  // -- conversion of one into the other --
  std::span<const TensorRule> tensors;
  std::span<const SettingRule> settings;
  std::string_view activation = "silu";                      // which files have to have
  std::string_view activation_alias = {};                    // what config.json may call it too
  std::string_view activation_keys[2] = {"hidden_act", ""};  // of config.json
  bool tied = false;                 // where config.json does not say it, the output layer is the embedding
  bool has_head_dim = true;          // config.json has "head_dim"
  bool own_heads = false;            // `write_gguf` writes the sizes of heads of keys and values
  std::string_view prefix = {};      // of names in `tensors`, which files may leave out
  std::string_view ignored[3] = {};  // ends of names of tensors that files may hold and nobody needs
  std::string_view attention_bias = "blk.0.attn_q.bias";  // the tensor that "attention_bias" tells of
  GgufWindow window = GgufWindow::Rules;
  std::int64_t full_every = 0;  // readers take every n-th layer for one without a window; 0: the file says which
  GgufRope rope{};
  LlamaCppLimits llama_cpp{};
  /// Sizes that the family has alone, of config.json and of metadata.
  void (*sizes_of_config)(const JsonValue& config, ModelSizes& sizes) = nullptr;
  void (*sizes_of_gguf)(const GgufFile& file, ModelSizes& sizes) = nullptr;
  /// Keys of metadata that are more than a rule, and settings that files cannot express.
  void (*write_gguf)(SettingsWriter& out) = nullptr;
  /// Settings of config.json that are more than a rule; null: ConfigWriter's settings, heads and flags.
  void (*write_config)(ConfigWriter& out) = nullptr;
};

/// A family of encoders of texts.
struct EncoderFamily {
  std::string_view model_types[3];
  void (*read_config)(const ConfigKeys& keys, EncoderConfig& config) = nullptr;
};

struct ModelFamily {
  const DecoderFamily* decoder = nullptr;
  const EncoderFamily* encoder = nullptr;
};

/// The families of this build, sorted by the names of their files.
std::span<const ModelFamily* const> model_families();

}  // namespace rlx
