// The Viterbi search for the best split, one pass over a word.
#include "rlx/text/tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/tokenizer/byte_tokens.h"

namespace rlx {

UnigramModel::UnigramModel(const Vocabulary& vocabulary, std::vector<double> scores, std::optional<TokenId> unknown,
                           bool byte_fallback)
    : vocabulary_(vocabulary), scores_(std::move(scores)), unknown_(unknown) {
  double lowest = std::numeric_limits<double>::infinity();
  std::size_t num_bytes = 0;
  for (std::size_t id = 0; id < scores_.size(); ++id) {
    if (!vocabulary.has(static_cast<TokenId>(id))) continue;
    lowest = std::min(lowest, scores_[id]);
    num_bytes += vocabulary.token(static_cast<TokenId>(id)).size();
  }
  unknown_score_ = lowest - 10;
  if (byte_fallback) byte_fallback_ = find_byte_tokens(vocabulary, byte_ids_);
  std::size_t words = 1024;
  while (words * 64 < num_bytes * 4 && words < (std::size_t{1} << 20)) words *= 2;
  prefixes_.assign(words, 0);
  for (std::size_t id = 0; id < scores_.size(); ++id) {
    if (!vocabulary.has(static_cast<TokenId>(id))) continue;
    std::uint64_t state = Vocabulary::kHashSeed;
    for (const char c : vocabulary.token(static_cast<TokenId>(id))) {
      state = Vocabulary::hash_step(state, c);
      prefixes_[prefix_slot(state) >> 6] |= std::uint64_t{1} << (prefix_slot(state) & 63);
    }
  }
}

class UnigramModel::Encoder final : public WordEncoder {
 public:
  explicit Encoder(const UnigramModel& model) : m_(model) {}

  void encode(std::string_view word, std::vector<TokenId>& ids) override {
    search(word);
    cuts_.clear();
    for (std::size_t end = word.size(); end > 0; end = best_[end].begin) cuts_.push_back(end);
    std::size_t begin = 0;
    for (std::size_t i = cuts_.size(); i-- > 0;) {
      const TokenId id = best_[cuts_[i]].id;
      // Adjacent unknown characters become one piece.
      while (m_.unknown_ == id && i > 0 && best_[cuts_[i - 1]].id == id) --i;
      emit(word.substr(begin, cuts_[i] - begin), ids);
      begin = cuts_[i];
    }
  }

 private:
  struct Node {
    double score = 0;
    std::size_t begin = kNone;
    TokenId id = 0;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void offer(std::size_t end, double score, std::size_t begin, TokenId id) {
    Node& node = best_[end];
    if (node.begin == kNone || score > node.score) node = {score, begin, id};
  }

  void search(std::string_view word) {
    best_.assign(word.size() + 1, Node());
    budget_.begin(word);
    for (std::size_t at = 0; at < word.size();) {
      const double here = best_[at].score;
      std::size_t next = at;
      (void)decode_utf8(word, next);
      bool single = false;
      std::uint64_t state = Vocabulary::kHashSeed;
      const std::size_t limit = std::min(word.size() - at, m_.vocabulary_.longest());
      for (std::size_t length = 1; length <= limit; ++length) {
        state = Vocabulary::hash_step(state, word[at + length - 1]);
        if (!m_.may_continue(state)) {
          budget_.spend(length);
          break;
        }
        if (length == limit) budget_.spend(length);
        if (at + length < word.size() && is_utf8_continuation(word[at + length])) continue;
        const std::optional<TokenId> id = m_.vocabulary_.find(state, {}, word.substr(at, length));
        if (!id) continue;
        budget_.spend(length);
        offer(at + length, here + m_.scores_[static_cast<std::size_t>(*id)], at, *id);
        single = single || at + length == next;
      }
      if (!single) offer(next, here + m_.unknown_score_, at, unknown());
      at = next;
    }
  }

  TokenId unknown() const {
    if (!m_.unknown_) {
      throw Error(ErrorCode::InvalidArgument, "the text has a character that no token covers",
                  "the tokenizer file defines no unknown token");
    }
    return *m_.unknown_;
  }

  void emit(std::string_view piece, std::vector<TokenId>& ids) const {
    if (const std::optional<TokenId> id = m_.vocabulary_.find(piece)) return ids.push_back(*id);
    if (!m_.byte_fallback_) return ids.push_back(unknown());
    for (const char c : piece) ids.push_back(m_.byte_ids_[static_cast<unsigned char>(c)]);
  }

  const UnigramModel& m_;
  std::vector<Node> best_;  // by end position
  std::vector<std::size_t> cuts_;
  WordBudget budget_;
};

std::unique_ptr<WordEncoder> UnigramModel::encoder(std::size_t) const { return std::make_unique<Encoder>(*this); }

}  // namespace rlx
