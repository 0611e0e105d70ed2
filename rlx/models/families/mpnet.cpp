// MPNet: relative position bias of the scores.
#include "rlx/models/encoder_keys.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_mpnet(const ConfigKeys& k, EncoderConfig& c) {
  read_bert_like(k, c);
  count_after_padding(k, c);
  c.relative_buckets = k.size_or("relative_attention_num_buckets", 32, 4, 1 << 16);
  EncoderNames& n = c.names;
  n.prefix = "mpnet.";
  n.q = "attention.attn.q", n.k = "attention.attn.k", n.v = "attention.attn.v", n.o = "attention.attn.o";
  n.attention_sum_norm = "attention.LayerNorm";
  n.relative_bias = "encoder.relative_attention_bias";
  n.others = {"pooler.", "lm_head.", "classifier."};
  c.classifier = ClassifierSpec{.labels = label_count(k), .dense = "classifier.dense", .out = "classifier.out_proj"};
}

constexpr EncoderFamily kMpnet{.model_types = {"mpnet"}, .read_config = read_mpnet};

}  // namespace

extern const ModelFamily mpnet_family;
const ModelFamily mpnet_family{.decoder = nullptr, .encoder = &kMpnet};

}  // namespace rlx
