// DistilBERT: BERT without token types.
#include "rlx/models/encoder_keys.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_distilbert(const ConfigKeys& k, EncoderConfig& c) {
  c.vocab_size = k.size("vocab_size");
  c.hidden_size = k.size("dim");
  c.layers.resize(static_cast<std::size_t>(k.size("n_layers", 1, kMostEncoderLayers)));
  c.num_heads = k.size("n_heads");
  c.ff_size = k.size("hidden_dim");
  divide_heads(k, c, "dim", "n_heads");
  c.position_rows = c.max_tokens = k.size("max_position_embeddings");
  c.positions = EncoderPositions::Learned;
  c.norm_eps = 1e-12;  // not stored in any file
  c.activation = parse_activation(k, "activation", "gelu");
  EncoderNames& n = c.names;
  n.prefix = "distilbert.";
  n.embedding = "embeddings.word_embeddings", n.positions = "embeddings.position_embeddings";
  n.embedding_norm = "embeddings.LayerNorm";
  n.layer = "transformer.layer.{}.";
  n.q = "attention.q_lin", n.k = "attention.k_lin", n.v = "attention.v_lin", n.o = "attention.out_lin";
  n.attention_sum_norm = "sa_layer_norm", n.ff_sum_norm = "output_layer_norm";
  n.up = "ffn.lin1", n.down = "ffn.lin2";
  n.others = {"vocab_transform.", "vocab_layer_norm.", "vocab_projector.", "pre_classifier.", "classifier."};
  n.ignored = {"embeddings.position_ids"};
  c.classifier = ClassifierSpec{
      .labels = label_count(k), .dense = "pre_classifier", .out = "classifier", .activation = ActivationKind::Relu};
}

constexpr EncoderFamily kDistilbert{.model_types = {"distilbert"}, .read_config = read_distilbert};

}  // namespace

extern const ModelFamily distilbert_family;
const ModelFamily distilbert_family{.decoder = nullptr, .encoder = &kDistilbert};

}  // namespace rlx
