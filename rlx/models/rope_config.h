// What a `config.json` says about rotary positions.
#pragma once

#include <cstdint>
#include <string_view>

#include "rlx/models/config_keys.h"
#include "rlx/models/decoder_config.h"

namespace rlx {

/// What a family's files may leave out.
struct RopeDefaults {
  std::int64_t head_dim = 0;
  double theta = 10000;
  std::int64_t max_positions = 0;
  double partial = 1;          // of a head that is rotated
  bool partly = false;         // files may say that it is another part
  bool yarn_is_long = false;   // what files call "yarn" is LongRoPE
  std::string_view part = {};  // of "rope_parameters", where layers differ
};

/// Reads "rope_theta" and "rope_scaling", or the newer "rope_parameters". Errors: BadFile, Unsupported for an unknown
/// kind of scaling.
RopeSpec read_rope(const ConfigKeys& keys, const RopeDefaults& defaults);
/// The same for layers whose angles older files give by a theta of their own alone.
RopeSpec read_local_rope(const ConfigKeys& keys, const RopeDefaults& defaults);
/// DeepSeek's: interleaved pairs, and a scale of the scores that YaRN changes.
void read_mla_rope(const ConfigKeys& keys, DecoderConfig& config);

}  // namespace rlx
