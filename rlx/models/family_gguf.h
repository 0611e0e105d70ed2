// Internal: what the metadata of GGUF files of many families of decoders share.
#pragma once

#include <cstdint>
#include <functional>

#include "rlx/models/decoder/gguf_keys.h"
#include "rlx/models/decoder_config.h"

namespace rlx {

inline constexpr std::int64_t kMostBlocks = 1024;

/// Names of tensors that all architectures share.
DecoderNames gguf_names();
/// The sizes that most architectures call the same, and gguf_names().
void read_sizes(const GgufKeys& k, DecoderConfig& c);
RopeSpec read_rope(const GgufKeys& k, const DecoderConfig& c, RopePairing pairing, double theta = 10000);
/// Which layers see a window: as the file says, or else as `windowed(layer)` does.
void read_windows(const GgufKeys& k, DecoderConfig& c, const std::function<bool(std::size_t)>& windowed);
/// Experts as one tensor of each part; `ff_size` is their width where the file does not say it, 0 for none.
MoeSpec read_experts(const GgufKeys& k, std::int64_t ff_size = 0);
void name_post_norms(DecoderNames& n);

// Families that others are built on, each in its own file.
void read_llama(const GgufKeys& k, DecoderConfig& c);
void read_qwen2(const GgufKeys& k, DecoderConfig& c);
void read_qwen3(const GgufKeys& k, DecoderConfig& c);
void read_gemma(const GgufKeys& k, DecoderConfig& c);
void read_gemma2(const GgufKeys& k, DecoderConfig& c);
/// The largest model of Gemma 2 and 3 scales scores by the width of the layer for each head, all others by a head's.
void scale_gemma(DecoderConfig& c, std::size_t layers_of_largest);

}  // namespace rlx
