// BERT (Devlin et al. 2018, arXiv:1810.04805).
#include "rlx/models/encoder_keys.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_bert(const ConfigKeys& k, EncoderConfig& c) {
  read_bert_like(k, c);
  read_bert_types(k, c);
  c.names.prefix = "bert.";
  c.names.others = {"pooler.", "cls.", "classifier."};
  c.classifier = ClassifierSpec{.labels = label_count(k), .dense = "pooler.dense", .out = "classifier"};
}

constexpr EncoderFamily kBert{.model_types = {"bert"}, .read_config = read_bert};

}  // namespace

extern const ModelFamily bert_family;
const ModelFamily bert_family{.decoder = nullptr, .encoder = &kBert};

}  // namespace rlx
