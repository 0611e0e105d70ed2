// The reader of rotary positions in a `config.json`.
#pragma once

#include <cstdint>
#include <string_view>

#include "rlx/models/config_keys.h"
#include "rlx/models/decoder_config.h"

namespace rlx {

/// A family's defaults.
struct RopeDefaults {
  std::int64_t head_dim = 0;
  double theta = 10000;
  std::int64_t max_positions = 0;
  double partial = 1;          // rotated part of a head
  bool partly = false;         // files may set another part
  bool yarn_is_long = false;   // files say "yarn" for LongRoPE
  std::string_view part = {};  // member of "rope_parameters", where layers differ
};

/// Reads "rope_theta" and "rope_scaling", or the newer "rope_parameters". Errors: BadFile, Unsupported for an unknown
/// kind of scaling.
RopeSpec read_rope(const ConfigKeys& keys, const RopeDefaults& defaults);
/// The same for local-attention layers, for which older files only store a theta.
RopeSpec read_local_rope(const ConfigKeys& keys, const RopeDefaults& defaults);
/// Reads DeepSeek's settings: interleaved pairs, and a scale of the scores that YaRN changes.
void read_mla_rope(const ConfigKeys& keys, DecoderConfig& config);

}  // namespace rlx
