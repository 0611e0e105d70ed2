// An index of the text in a folder, and a search of it: model folder (the argument, or RLX_MODEL_DIR), folder, query.
#include <rlx/models/sentence_encoder.h>
#include <rlx/models/text_index.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  const char* model = argc > 1 ? argv[1] : std::getenv("RLX_MODEL_DIR");
  if (!model || argc < 4) {
    std::puts("give a model folder (scripts/demo.sh fetches one), a folder of texts, and what to look for");
    return 0;
  }
  const std::vector<std::string> folders = {argv[2]};
  rlx::SentenceEncoder encoder(model);
  const rlx::TextIndexUpdate done = rlx::update_text_index("texts.rlxi", folders, encoder);
  std::printf("%zu files, %zu passages, %zu of them new\n", done.files, done.passages, done.embedded);
  for (const rlx::IndexMatch& match : rlx::TextIndex::open("texts.rlxi").search(encoder, argv[3], 5))
    std::printf("%.3f  %s:%zu\n", match.score, match.places[0].file.c_str(), match.places[0].line);
}
