// RoBERTa, CamemBERT and XLM-RoBERTa: positions count from the row after the padding row.
#include "rlx/models/encoder_keys.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_roberta(const ConfigKeys& k, EncoderConfig& c) {
  read_bert_like(k, c);
  read_bert_types(k, c);
  count_after_padding(k, c);
  c.names.prefix = "roberta.";
  c.names.others = {"pooler.", "lm_head.", "classifier."};
  c.classifier = ClassifierSpec{.labels = label_count(k), .dense = "classifier.dense", .out = "classifier.out_proj"};
}

constexpr EncoderFamily kRoberta{.model_types = {"roberta", "camembert", "xlm-roberta"}, .read_config = read_roberta};

}  // namespace

extern const ModelFamily roberta_family;
const ModelFamily roberta_family{.decoder = nullptr, .encoder = &kRoberta};

}  // namespace rlx
