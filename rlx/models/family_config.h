// Internal: what the configuration files of many families of decoders share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/models/config_keys.h"
#include "rlx/models/decoder_config.h"
#include "rlx/models/rope_config.h"

namespace rlx {

inline constexpr std::int64_t kMostLayers = 1024;   // each is built: a slip of the pen must not take minutes
inline constexpr std::int64_t kMostExperts = 4096;  // of a layer

/// Names as Llama has them, which most families took over.
DecoderNames llama_names();
/// The sizes that all families but GPT-2 call the same, and Llama's names.
void read_sizes(const ConfigKeys& k, DecoderConfig& c, double eps = 1e-6, std::string_view eps_key = "rms_norm_eps");
/// One set of angles for all layers.
void read_ropes(const ConfigKeys& k, DecoderConfig& c, double theta = 10000);
/// A limit of the form tanh(x / cap) * cap; none where a file says null.
std::optional<double> read_softcap(const ConfigKeys& k, std::string_view key, std::optional<double> fallback = {});
/// The keys that a token sees in layers with a window; 0 where a file says null.
std::int64_t read_window(const ConfigKeys& k, std::int64_t fallback);
/// A window that all layers have, if there is one.
void read_common_window(const ConfigKeys& k, DecoderConfig& c);
/// Which layers see a window: as "layer_types" says, or else as `windowed(layer)` does.
void read_windows(const ConfigKeys& k, DecoderConfig& c, std::int64_t window,
                  const std::function<bool(std::size_t)>& windowed);
/// Qwen's: the layers from max_window_layers on, if any.
void read_optional_windows(const ConfigKeys& k, DecoderConfig& c);
/// Which experts a layer has, and how many a token uses.
MoeSpec read_experts(const ConfigKeys& k, std::string_view count, std::string_view width);
void name_experts(DecoderNames& n, const std::string& prefix);
/// Layer norms with biases, and rotary positions of a part of a head: StarCoder2, StableLM and Phi.
void read_layer_normed(const ConfigKeys& k, DecoderConfig& c, double part);

// Families that others are built on, each in its own file.
void read_llama(const ConfigKeys& k, DecoderConfig& c);
void read_mistral(const ConfigKeys& k, DecoderConfig& c);
void read_qwen2(const ConfigKeys& k, DecoderConfig& c);
void read_qwen3(const ConfigKeys& k, DecoderConfig& c);
void read_gemma(const ConfigKeys& k, DecoderConfig& c);
void read_gemma2(const ConfigKeys& k, DecoderConfig& c);

}  // namespace rlx
