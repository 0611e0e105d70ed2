// Internal: readers that the configuration files of many encoder families share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "rlx/models/config_keys.h"
#include "rlx/models/encoder/encoder_blocks.h"
#include "rlx/models/encoder_config.h"

namespace rlx {

inline constexpr std::int64_t kMostEncoderLayers = 1024;  // each layer is built: a typo must not take minutes

/// Sets head_dim = hidden_size / num_heads, and as many KV heads as heads. `width` and `heads` are the keys of the two
/// sizes, for errors.
void divide_heads(const ConfigKeys& k, EncoderConfig& c, std::string_view width, std::string_view heads);
double small_number(const ConfigKeys& k, std::string_view key, double fallback);
/// Refuses a file in which one of these flags is true.
void refuse_flags(const ConfigKeys& k, std::initializer_list<std::string_view> flags);
/// Number of labels of a classifier.
std::int64_t label_count(const ConfigKeys& k);
/// Reads the sizes that BERT and its successors name alike.
void read_bert_like(const ConfigKeys& k, EncoderConfig& c);
void read_bert_types(const ConfigKeys& k, EncoderConfig& c);
/// Positions count from the row after the padding row (EncoderPositions::AfterPadding).
void count_after_padding(const ConfigKeys& k, EncoderConfig& c);

}  // namespace rlx
