// Frequencies of rotary positions.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/models/decoder_config.h"

namespace rlx {

/// Angle per position of each pair, [rotated / 2], for sequences of up to `context` tokens. Su et al. 2021
/// (arXiv:2104.09864); Linear: Chen et al. 2023 (2306.15595); Dynamic: the base grown with the context; Yarn: Peng et
/// al. 2023 (2309.00071); Long: Ding et al. 2024 (2402.13753); Llama3: the rule of Llama 3.1. Every step rounds to F32,
/// as in training: a rounding of a frequency changes the angle of a late position by more than any rounding of cos and
/// sin. Dynamic and Long depend on the sequence length; this function uses the longest possible length, so that a
/// token's keys never change. InvalidArgument for a spec without such angles.
std::vector<float> rope_frequencies(const RopeSpec& spec, std::int64_t context);

}  // namespace rlx
