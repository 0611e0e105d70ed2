// Internal: what the configuration files of many families of encoders share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "rlx/models/config_keys.h"
#include "rlx/models/encoder/encoder_blocks.h"
#include "rlx/models/encoder_config.h"

namespace rlx {

inline constexpr std::int64_t kMostEncoderLayers = 1024;  // each is built: a slip of the pen must not take minutes

/// Heads of the model's width; `width` and `heads` are what the file calls them.
void divide_heads(const ConfigKeys& k, EncoderConfig& c, std::string_view width, std::string_view heads);
double small_number(const ConfigKeys& k, std::string_view key, double fallback);
/// Refuses a file in which one of these is true.
void refuse_flags(const ConfigKeys& k, std::initializer_list<std::string_view> flags);
/// Labels of a classifier.
std::int64_t label_count(const ConfigKeys& k);
/// The sizes that BERT and what was made after it call the same.
void read_bert_like(const ConfigKeys& k, EncoderConfig& c);
void read_bert_types(const ConfigKeys& k, EncoderConfig& c);
/// Positions count from behind the padding's row, and padding has that one.
void count_after_padding(const ConfigKeys& k, EncoderConfig& c);

}  // namespace rlx
