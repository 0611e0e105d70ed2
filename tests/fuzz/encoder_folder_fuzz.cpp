// Fuzz target: the folder of a tiny sentence-embedding model with damaged files. Loading it and embedding with it ends
// in vectors or in an rlx::Error that is no internal one.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "rlx/formats/safetensors.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/models/sentence_encoder.h"
#include "tests/fuzz/fuzz_folder.h"
#include "tests/fuzz/graph_samples.h"

namespace {

using namespace rlx;
namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Name -> content of an undamaged folder; everything a sentence encoder reads.
const std::map<std::string, std::string>& whole_files() {
  static const auto* files = [] {
    BertConfig c;
    c.hidden_size = 4, c.num_layers = 1, c.num_heads = 2, c.intermediate_size = 3, c.vocab_size = 8;
    c.max_positions = 6, c.type_vocab_size = 2, c.layer_norm_eps = 1e-3;
    const Graph g = build_sentence_encoder(c, {});
    std::vector<NamedTensor> weights;
    for (NodeId id : g.leaves(OpKind::Param)) weights.push_back({g.leaf_name(id), Tensor::full(g.shape(id), 0.25)});
    const fs::path file = fuzz_folder() / "whole.safetensors";
    write_safetensors(file.string(), weights);
    auto* out = new std::map<std::string, std::string>{
        {"config.json",
         R"({"model_type":"bert","hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,)"
         R"("intermediate_size":3,"vocab_size":8,)"
         R"("max_position_embeddings":6,"type_vocab_size":2,"layer_norm_eps":1e-3,"hidden_act":"gelu"})"},
        {"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##c\n"},
        {"tokenizer_config.json", R"({"do_lower_case":true,"model_max_length":6})"},
        {"sentence_bert_config.json", R"({"max_seq_length":6})"},
        {"modules.json", R"([{"idx":0,"path":"","type":"sentence_transformers.models.Transformer"},)"
                         R"({"idx":1,"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},)"
                         R"({"idx":2,"path":"2_Normalize","type":"sentence_transformers.models.Normalize"}])"},
        {"1_Pooling/config.json", R"({"word_embedding_dimension":4,"pooling_mode_mean_tokens":true})"}};
    (*out)["model.safetensors"] = bytes_of(file);
    fs::remove(file);
    return out;
  }();
  return *files;
}

void write(const std::string& name, const std::string& content) {
  const fs::path path = fuzz_folder() / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto random = fuzz::random_of(data, size);
  for (const auto& [name, content] : whole_files()) write(name, content);
  const bool sound = random() % 64 == 0;
  for (std::uint64_t files = 1 + random() % 2; files-- > 0 && !sound;) {
    auto it = whole_files().begin();
    std::advance(it, random() % whole_files().size());
    std::string content = it->second;
    fuzz::damage(content, random);
    if (random() % 16 == 0)
      fs::remove(fuzz_folder() / it->first);
    else
      write(it->first, content);
  }
  try {
    SentenceEncoder encoder(fuzz_folder().string());
    const Tensor y = encoder.embed(std::vector<std::string>{"a b", "ac zz"});
    check(y.rank() == 2 && y.dim(0) == 2, "one vector for each text");
  } catch (const Error& e) {
    check(e.code() != ErrorCode::Internal && !sound, e.what());
  }
  return 0;
}
