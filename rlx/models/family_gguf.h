// Internal: readers that the GGUF metadata of many decoder families share.
#pragma once

#include <cstdint>
#include <functional>

#include "rlx/models/decoder/gguf_keys.h"
#include "rlx/models/decoder_config.h"

namespace rlx {

inline constexpr std::int64_t kMostBlocks = 1024;

/// Tensor names that all architectures share.
DecoderNames gguf_names();
/// Reads the sizes that most architectures name alike, and sets gguf_names().
void read_sizes(const GgufKeys& k, DecoderConfig& c);
RopeSpec read_rope(const GgufKeys& k, const DecoderConfig& c, RopePairing pairing, double theta = 10000);
/// Sets the sliding-window layers: from the file, or else from `windowed(layer)`.
void read_windows(const GgufKeys& k, DecoderConfig& c, const std::function<bool(std::size_t)>& windowed);
/// Reads experts with one tensor for each part. `ff_size` is their width where the file does not have it, 0 for none.
MoeSpec read_experts(const GgufKeys& k, std::int64_t ff_size = 0);
void name_post_norms(DecoderNames& n);

// Readers of families that others are based on, each in its own file.
void read_llama(const GgufKeys& k, DecoderConfig& c);
void read_qwen2(const GgufKeys& k, DecoderConfig& c);
void read_qwen3(const GgufKeys& k, DecoderConfig& c);
void read_gemma(const GgufKeys& k, DecoderConfig& c);
void read_gemma2(const GgufKeys& k, DecoderConfig& c);
/// Gemma 2 and 3: the largest model scales scores by hidden size / heads, all others by the head dimension.
void scale_gemma(DecoderConfig& c, std::size_t layers_of_largest);

}  // namespace rlx
