// A tiny sentence-embedding model in its own folder, for tests that damage a model.
#pragma once

#include <string>
#include <vector>

#include "rlx/formats/safetensors.h"
#include "rlx/models/config.h"
#include "rlx/models/encoder/bert.h"
#include "tests/support/temp_dir.h"
#include "tests/support/values.h"

namespace rlx::test {

/// config.json, vocab.txt (the words a, b, c) and model.safetensors of a BERT encoder of two layers, hidden size 4.
class TinyModel {
 public:
  TinyModel() {
    write_config(2);
    dir_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n");
    write_weights(tensors());
  }
  const std::string& path() const { return dir_.path(); }
  std::string file(const std::string& name) const { return dir_.file(name); }
  std::string write(const std::string& name, std::string_view content) const { return dir_.write(name, content); }

  void write_config(std::int64_t num_layers) const {
    dir_.write("config.json", concat_text(R"({"model_type":"bert","hidden_size":4,"num_hidden_layers":)", num_layers,
                                          R"(,"num_attention_heads":2,"intermediate_size":3,"vocab_size":8,)"
                                          R"("max_position_embeddings":6,"layer_norm_eps":1e-3,"hidden_act":"gelu"})"));
  }
  void write_weights(const std::vector<NamedTensor>& weights) const {
    write_safetensors(dir_.file("model.safetensors"), weights);
  }
  /// Every tensor of the model, each filled with its own sequence.
  static std::vector<NamedTensor> tensors() {
    BertConfig c;
    c.hidden_size = 4, c.num_layers = 2, c.num_heads = 2, c.intermediate_size = 3, c.vocab_size = 8,
    c.max_positions = 6, c.type_vocab_size = 2, c.layer_norm_eps = 1e-3;
    const Graph g = build_sentence_encoder(c, {});
    std::vector<NamedTensor> out;
    for (NodeId id : g.leaves(OpKind::Param)) {
      const auto n = static_cast<double>(out.size());
      out.push_back({g.leaf_name(id), sequence(g.shape(id).static_dims(), 0.3 + 0.02 * n, 0.05, DType::F32)});
    }
    return out;
  }

 private:
  TempDir dir_;
};

}  // namespace rlx::test
