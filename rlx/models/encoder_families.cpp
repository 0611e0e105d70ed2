// Encoder families by `model_type`, and decoders that embed texts. Each family is a file of families/.
#include <algorithm>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/models/encoder_keys.h"
#include "rlx/models/model_family.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// A decoder as an encoder: it runs without a KV cache, and its last hidden states are the token vectors.
EncoderConfig encoder_of(const DecoderConfig& d, const ConfigKeys& k) {
  const DecoderNames& from = d.names;
  const char* const lacking = d.moe                     ? "experts"
                              : d.mla                   ? "latent attention (MLA)"
                              : !from.sinks.empty()     ? "attention sinks"
                              : !from.positions.empty() ? "learned positions"
                              : d.parallel              ? "parallel layers"
                              : !from.xielu.empty()     ? "xIELU"
                                                        : nullptr;
  if (lacking)
    k.unsupported(concat_text("text embeddings of decoders do not support ", lacking, ", which a ", d.family, " has"));
  EncoderConfig c;
  c.family = d.family;
  c.vocab_size = d.vocab_size, c.hidden_size = d.hidden_size, c.ff_size = d.ff_size;
  c.num_heads = d.num_heads, c.kv_heads = d.kv_heads, c.head_dim = d.head_dim;
  c.max_tokens = d.max_positions;
  c.norm = d.norm, c.norm_eps = d.norm_eps, c.norm_offset = d.norm_offset, c.norm_bias = d.norm_bias;
  c.activation = d.activation, c.gated = d.gated;
  c.qkv_bias = d.qkv_bias, c.o_bias = d.o_bias, c.up_bias = c.down_bias = d.ff_bias;
  c.qk_norm = d.qk_norm, c.qkv_layout = d.qkv_layout;
  c.attention_scale = d.attention_scale, c.attention_softcap = d.attention_softcap;
  c.embedding_scale = d.embedding_scale, c.residual_scale = d.residual_scale;
  c.causal = !d.bidirectional;
  c.ropes = d.ropes;
  for (const DecoderLayer& layer : d.layers)
    c.layers.push_back({.reach = layer.window ? layer.window - 1 : 0, .rope = layer.rope});
  EncoderNames& n = c.names;
  n.prefix = from.embedding.substr(0, from.embedding.find('.') + 1);
  const auto stripped = [&](const std::string& name) {
    return name.starts_with(n.prefix) ? name.substr(n.prefix.size()) : name;
  };
  n.embedding = stripped(from.embedding), n.final_norm = stripped(from.final_norm), n.layer = stripped(from.layer);
  n.q = from.q, n.k = from.k, n.v = from.v, n.qkv = from.qkv, n.o = from.o;
  n.q_norm = from.q_norm, n.k_norm = from.k_norm;
  n.gate = from.gate, n.up = from.up, n.gate_up = from.gate_up, n.down = from.down;
  n.attention_norm = from.attention_norm, n.attention_post_norm = from.attention_post_norm;
  n.ff_norm = from.ff_norm, n.ff_post_norm = from.ff_post_norm;
  n.token_head = d.tied ? n.embedding : from.head;
  n.others = {from.head + ".", "score."};
  n.ignored = from.ignored;
  ClassifierSpec s{.labels = label_count(k), .pooling = Pooling::LastToken, .out = "score"};
  s.out_bias = false;
  c.classifier = s;
  return c;
}

// Calls f(name, family) for each name of each encoder family.
template <class F>
void for_each_encoder(F f) {
  for (const ModelFamily* family : model_families())
    if (family->encoder)
      for (const std::string_view name : family->encoder->model_types)
        if (!name.empty()) f(name, *family->encoder);
}

}  // namespace

std::vector<std::string> encoder_families() {
  std::vector<std::string> out;
  for_each_encoder([&](std::string_view name, const EncoderFamily&) { out.emplace_back(name); });
  std::sort(out.begin(), out.end());
  return out;
}

EncoderConfig parse_encoder_config(const JsonDocument& document) try {
  const JsonValue root = document.root_object();
  const ConfigKeys keys(root, document.source());
  const std::string type(root.get_string("model_type"));
  const EncoderFamily* found = nullptr;
  for_each_encoder([&](std::string_view name, const EncoderFamily& family) {
    if (name == type) found = &family;
  });
  if (found) {
    EncoderConfig c;
    c.family = type;
    found->read_config(keys, c);
    return c;
  }
  const std::vector<std::string> decoders = decoder_families();
  if (std::find(decoders.begin(), decoders.end(), type) != decoders.end())
    return encoder_of(parse_decoder_of_texts(document), keys);
  const std::vector<std::string> known = encoder_families();
  keys.unsupported(concat_text("\"model_type\" is \"", type, "\", which is not a text encoder that rlx supports"),
                   concat_text("supported are ", quoted_names(known, known.size()),
                               ", and decoders: ", quoted_names(decoders, decoders.size())));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("parse_encoder_config");
}

}  // namespace rlx
