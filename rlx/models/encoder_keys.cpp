// Readers that the configuration files of many encoder families share.
#include "rlx/models/encoder_keys.h"

#include "rlx/error.h"

namespace rlx {

void divide_heads(const ConfigKeys& k, EncoderConfig& c, std::string_view width, std::string_view heads) {
  if (c.hidden_size % c.num_heads)
    k.bad(concat_text("\"", width, "\" ", c.hidden_size, " is not a multiple of \"", heads, "\" ", c.num_heads));
  c.kv_heads = c.num_heads;
  c.head_dim = c.hidden_size / c.num_heads;
}

double small_number(const ConfigKeys& k, std::string_view key, double fallback) {
  const double v = k.number_or(key, fallback);
  if (!(v >= 0) || v > 1) k.bad(concat_text("\"", key, "\" is ", v, ", expected a small number such as 1e-12"));
  return v;
}

void refuse_flags(const ConfigKeys& k, std::initializer_list<std::string_view> flags) {
  for (const std::string_view key : flags)
    if (k.flag(key, false)) k.unsupported(concat_text("\"", key, "\" is true"), "only encoders are supported");
}

std::int64_t label_count(const ConfigKeys& k) {
  const std::optional<ConfigKeys> names = k.object("id2label");
  const std::int64_t count = names ? static_cast<std::int64_t>(names->count()) : k.size_or("num_labels", 2);
  if (count < 1) k.bad("\"id2label\" is empty");
  return count;
}

void read_bert_like(const ConfigKeys& k, EncoderConfig& c) {
  refuse_flags(k, {"is_decoder", "add_cross_attention"});
  const std::string positions = k.text("position_embedding_type", "absolute");
  if (positions != "absolute")
    k.unsupported(concat_text("\"position_embedding_type\" is \"", positions, "\", expected \"absolute\""));
  c.vocab_size = k.size("vocab_size");
  c.hidden_size = k.size("hidden_size");
  c.layers.resize(static_cast<std::size_t>(k.size("num_hidden_layers", 1, kMostEncoderLayers)));
  c.num_heads = k.size("num_attention_heads");
  c.ff_size = k.size("intermediate_size");
  divide_heads(k, c, "hidden_size", "num_attention_heads");
  c.position_rows = c.max_tokens = k.size("max_position_embeddings");
  c.positions = EncoderPositions::Learned;
  c.norm_eps = small_number(k, "layer_norm_eps", 1e-12);
  c.activation = parse_activation(k, "hidden_act", "gelu");
  c.names = bert_names();
}

void read_bert_types(const ConfigKeys& k, EncoderConfig& c) {
  c.type_vocab_size = k.size_or("type_vocab_size", 2);
  c.names.types = "embeddings.token_type_embeddings";
}

void count_after_padding(const ConfigKeys& k, EncoderConfig& c) {
  c.positions = EncoderPositions::AfterPadding;
  c.padding_id = k.size_or("pad_token_id", 1, 0);
  c.max_tokens = c.position_rows - c.padding_id - 1;
  if (c.max_tokens < 1)
    k.bad(concat_text("\"max_position_embeddings\" ", c.position_rows, " leaves no positions after \"pad_token_id\" ",
                      c.padding_id));
}

EncoderNames bert_names() {
  EncoderNames n;
  n.embedding = "embeddings.word_embeddings", n.positions = "embeddings.position_embeddings";
  n.embedding_norm = "embeddings.LayerNorm";
  n.layer = "encoder.layer.{}.";
  n.q = "attention.self.query", n.k = "attention.self.key", n.v = "attention.self.value";
  n.o = "attention.output.dense", n.attention_sum_norm = "attention.output.LayerNorm";
  n.up = "intermediate.dense", n.down = "output.dense", n.ff_sum_norm = "output.LayerNorm";
  n.ignored = {"embeddings.position_ids", "embeddings.token_type_ids"};
  return n;
}

}  // namespace rlx
