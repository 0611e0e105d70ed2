// Nomic BERT (Nussbaum et al. 2024, arXiv:2402.01613): rotary positions, gated feed-forward layers.
#include <string>
#include <string_view>

#include "rlx/error.h"
#include "rlx/models/encoder_keys.h"
#include "rlx/models/model_family.h"
#include "rlx/models/rope_config.h"

namespace rlx {

namespace {

void name_nomic_bert(EncoderConfig& c) {
  EncoderNames& n = c.names;
  n.prefix = "bert.";
  n.embedding = "embeddings.word_embeddings";
  if (c.type_vocab_size) n.types = "embeddings.token_type_embeddings";
  n.embedding_norm = "emb_ln";
  n.layer = "encoder.layers.{}.";
  n.qkv = "attn.Wqkv", n.o = "attn.out_proj";
  n.attention_sum_norm = "norm1", n.ff_sum_norm = "norm2";
  n.up = c.gated ? "mlp.fc11" : "mlp.fc1", n.down = "mlp.fc2";
  if (c.gated) n.gate = "mlp.fc12";
  n.others = {"pooler.", "cls.", "classifier."};
  n.ignored = {"rotary_emb.inv_freq"};
}

// Configurations of transformers 5 and later: a gated feed-forward layer, no biases.
void read_newer_nomic_bert(const ConfigKeys& k, EncoderConfig& c) {
  c.ropes = {read_rope(k, {.head_dim = c.head_dim, .theta = 1000, .max_positions = c.max_tokens})};
  for (EncoderLayer& layer : c.layers) layer.rope = 0;
  c.gated = true;
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = c.o_bias = c.up_bias = c.down_bias = false;
  name_nomic_bert(c);
}

void read_nomic_bert(const ConfigKeys& k, EncoderConfig& c) {
  refuse_flags(k, {"prenorm", "parallel_block", "use_rms_norm", "causal", "scale_attn_by_inverse_layer_idx"});
  for (const std::string_view key : {"rotary_scaling_factor", "rotary_emb_scale_base"})
    if (k.has(key)) k.unsupported(concat_text("\"", key, "\" is given"), "only plain rotary positions are supported");
  if (k.size_or("num_experts", 0, 0) > 0) k.unsupported("\"num_experts\" is given", "only dense layers are supported");
  c.vocab_size = k.size("vocab_size");
  const std::int64_t multiple = k.size_or("pad_vocab_size_multiple", 1);
  c.vocab_size = (c.vocab_size + multiple - 1) / multiple * multiple;
  // Files have GPT-2's size keys, or those of transformers 5 and later.
  const bool newer = k.has("hidden_size") && !k.has("n_embd");
  const std::string_view width = newer ? "hidden_size" : "n_embd", heads = newer ? "num_attention_heads" : "n_head";
  c.hidden_size = k.size(width);
  c.layers.resize(static_cast<std::size_t>(k.size(newer ? "num_hidden_layers" : "n_layer", 1, kMostEncoderLayers)));
  c.num_heads = k.size(heads);
  c.ff_size = k.size_or(newer ? "intermediate_size" : "n_inner", 4 * c.hidden_size);
  divide_heads(k, c, width, heads);
  c.max_tokens = k.size(newer ? "max_position_embeddings" : "n_positions");
  c.type_vocab_size = k.size_or("type_vocab_size", 0, 0);
  c.norm_eps = small_number(k, newer ? "layer_norm_eps" : "layer_norm_epsilon", 1e-12);
  if (newer) return read_newer_nomic_bert(k, c);
  const double fraction = k.number_or("rotary_emb_fraction", 0);
  if (fraction > 0) {
    RopeSpec rope;
    rope.theta = k.positive("rotary_emb_base", 10000);
    rope.rotated = static_cast<std::int64_t>(static_cast<double>(c.head_dim) * fraction);
    if (rope.rotated < 2 || rope.rotated % 2 || rope.rotated > c.head_dim)
      k.bad(concat_text("\"rotary_emb_fraction\" ", fraction, " of a head of ", c.head_dim,
                        " is not an even number of elements"));
    if (k.flag("rotary_emb_interleaved", false)) rope.pairing = RopePairing::Interleaved;
    c.ropes = {rope};
    for (EncoderLayer& layer : c.layers) layer.rope = 0;
  } else {
    c.positions = EncoderPositions::Learned;
    c.position_rows = c.max_tokens;
    c.names.positions = "embeddings.position_embeddings";
  }
  const std::string activation = k.text("activation_function", "gelu");
  c.gated = activation == "swiglu" || activation == "geglu" || activation == "glu";
  c.activation = activation == "swiglu"  ? ActivationKind::Silu
                 : activation == "geglu" ? ActivationKind::Gelu
                 : activation == "glu"   ? ActivationKind::Sigmoid
                                         : parse_activation(k, "activation_function", "gelu");
  c.qkv_bias = k.flag("qkv_proj_bias", true);
  c.o_bias = c.qkv_bias;
  c.up_bias = k.flag("mlp_fc1_bias", true), c.down_bias = k.flag("mlp_fc2_bias", true);
  name_nomic_bert(c);
}

constexpr EncoderFamily kNomicBert{.model_types = {"nomic_bert"}, .read_config = read_nomic_bert};

}  // namespace

extern const ModelFamily nomic_bert_family;
const ModelFamily nomic_bert_family{.decoder = nullptr, .encoder = &kNomicBert};

}  // namespace rlx
