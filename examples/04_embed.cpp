// Sentence embeddings from a model folder (the argument, or RLX_MODEL_DIR): the cosine similarity of two sentences.
#include <rlx/models/sentence_encoder.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : std::getenv("RLX_MODEL_DIR");
  if (!folder) {
    std::puts("give a model folder (scripts/demo.sh fetches one)");
    return 0;
  }
  rlx::SentenceEncoder encoder(folder);
  std::vector<std::string> texts = {"The weather is lovely today.", "It's so sunny outside!"};
  rlx::Tensor e = encoder.embed(texts);
  auto n = static_cast<std::size_t>(encoder.hidden_size());
  auto v = e.values<float>();
  std::printf("%.4f\n", rlx::cosine_similarity(v.first(n), v.subspan(n, n)));
}
