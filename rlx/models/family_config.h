// Internal: readers that the configuration files of many decoder families share.
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

inline constexpr std::int64_t kMostLayers = 1024;   // each layer is built: a typo must not take minutes
inline constexpr std::int64_t kMostExperts = 4096;  // experts of a layer

/// Llama's weight names, which most families use.
DecoderNames llama_names();
/// Reads the sizes that all families but GPT-2 name alike, and sets Llama's names.
void read_sizes(const ConfigKeys& k, DecoderConfig& c, double eps = 1e-6, std::string_view eps_key = "rms_norm_eps");
/// Reads one set of rotary angles for all layers.
void read_ropes(const ConfigKeys& k, DecoderConfig& c, double theta = 10000);
/// A soft cap, tanh(x / cap) * cap; none where a file has null.
std::optional<double> read_softcap(const ConfigKeys& k, std::string_view key, std::optional<double> fallback = {});
/// The window of sliding-window layers in keys; 0 where a file has null.
std::int64_t read_window(const ConfigKeys& k, std::int64_t fallback);
/// Reads a sliding window that all layers have, if there is one.
void read_common_window(const ConfigKeys& k, DecoderConfig& c);
/// Sets the sliding-window layers: from "layer_types", or else from `windowed(layer)`.
void read_windows(const ConfigKeys& k, DecoderConfig& c, std::int64_t window,
                  const std::function<bool(std::size_t)>& windowed);
/// Qwen: the layers from max_window_layers on have a sliding window, if any.
void read_optional_windows(const ConfigKeys& k, DecoderConfig& c);
/// Reads the experts of a layer, and how many a token uses.
MoeSpec read_experts(const ConfigKeys& k, std::string_view count, std::string_view width);
void name_experts(DecoderNames& n, const std::string& prefix);
/// Reads layer norms with biases, and partial rotary positions: StarCoder2, StableLM and Phi.
void read_layer_normed(const ConfigKeys& k, DecoderConfig& c, double part);

// Readers of families that others are based on, each in its own file.
void read_llama(const ConfigKeys& k, DecoderConfig& c);
void read_mistral(const ConfigKeys& k, DecoderConfig& c);
void read_qwen2(const ConfigKeys& k, DecoderConfig& c);
void read_qwen3(const ConfigKeys& k, DecoderConfig& c);
void read_gemma(const ConfigKeys& k, DecoderConfig& c);
void read_gemma2(const ConfigKeys& k, DecoderConfig& c);

}  // namespace rlx
