// The vocabulary search of WordPiece.
#include "rlx/text/tokenizer/wordpiece_model.h"

#include <algorithm>
#include <optional>

#include "rlx/base/utf8.h"

namespace rlx {
namespace {

class WordPieceEncoder final : public WordEncoder {
 public:
  explicit WordPieceEncoder(const WordPieceModel& model) : model_(model) {}
  void encode(std::string_view word, std::vector<TokenId>& ids) override { model_.encode(word, hashes_, budget_, ids); }

 private:
  const WordPieceModel& model_;
  std::vector<std::uint64_t> hashes_;
  WordBudget budget_;
};

}  // namespace

WordPieceModel::WordPieceModel(const Vocabulary& vocabulary, TokenId unknown, std::string continuation,
                               std::int64_t max_chars_per_word)
    : vocabulary_(vocabulary),
      unknown_(unknown),
      continuation_(std::move(continuation)),
      max_chars_per_word_(max_chars_per_word),
      continuation_state_(Vocabulary::hash_text(Vocabulary::kHashSeed, continuation_)) {}

std::unique_ptr<WordEncoder> WordPieceModel::encoder(std::size_t) const {
  return std::make_unique<WordPieceEncoder>(*this);
}

// A word with an unmatched rest becomes one unknown token.
void WordPieceModel::encode(std::string_view w, std::vector<std::uint64_t>& hashes, WordBudget& budget,
                            std::vector<TokenId>& ids) const {
  if (static_cast<std::int64_t>(w.size()) > max_chars_per_word_) {
    const auto chars = std::count_if(w.begin(), w.end(), [](char c) { return !is_utf8_continuation(c); });
    if (chars > max_chars_per_word_) return ids.push_back(unknown_);
  }
  const std::size_t before = ids.size();
  hashes.resize(std::min(w.size(), vocabulary_.longest()));
  budget.begin(w);
  std::size_t at = 0;
  while (at < w.size()) {
    const std::string_view head = at == 0 ? std::string_view() : std::string_view(continuation_);
    std::uint64_t state = at == 0 ? Vocabulary::kHashSeed : continuation_state_;
    const std::size_t limit = std::min(w.size() - at, hashes.size());
    budget.spend(limit);
    for (std::size_t i = 0; i < limit; ++i) hashes[i] = state = Vocabulary::hash_step(state, w[at + i]);
    std::size_t length = limit;
    for (; length > 0; --length) {
      if (at + length < w.size() && is_utf8_continuation(w[at + length])) continue;
      if (const std::optional<TokenId> id = vocabulary_.find(hashes[length - 1], head, w.substr(at, length))) {
        ids.push_back(*id);
        break;
      }
    }
    if (length == 0) {
      ids.resize(before);
      ids.push_back(unknown_);
      return;
    }
    at += length;
  }
}

}  // namespace rlx
