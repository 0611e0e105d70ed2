// Passages reranked for a query by a cross-encoder (model folder: the argument, or RLX_RERANKER_DIR).
#include <rlx/models/reranker.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : std::getenv("RLX_RERANKER_DIR");
  if (!folder) {
    std::puts("give the folder of a cross-encoder, such as one of ms-marco-MiniLM, bge-reranker or Qwen3-Reranker");
    return 0;
  }
  const std::string query = "How many people live in Berlin?";
  const std::vector<std::string> passages = {"Berlin has 3.5 million registered inhabitants.",
                                             "Berlin is well known for its museums.",
                                             "The river Spree is 400 km long."};
  rlx::Reranker reranker(folder);
  for (const rlx::Match& match : reranker.rank(query, passages, 3))
    std::printf("%.3f  %s\n", match.score, passages[match.index].c_str());
}
