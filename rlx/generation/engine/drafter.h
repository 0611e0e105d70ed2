// Where the drafts of an engine come from, and how long they are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rlx/generation/draft.h"
#include "rlx/generation/engine/batch.h"
#include "rlx/generation/grammar/answer_grammar.h"
#include "rlx/generation/prefix_cache.h"
#include "rlx/generation/sampling.h"

namespace rlx {

/// Up to `count` tokens that followed an earlier place of `sequence`: of the places whose last tokens are also the last
/// of the sequence, `least` of them or more, the one with the longest such match, and of equals the latest. A draft
/// that reaches the end of the sequence goes on with itself. Empty where there is no such place.
std::vector<TokenId> lookup_draft(std::span<const TokenId> sequence, std::int64_t least, std::int64_t count);

/// How long the next draft of a request is. A token that is right saves a run, one that is wrong costs a small part of
/// one: so a draft is twice as long as the last one if all of that was right, else by one longer than what was right.
/// When nothing was right some places go without a draft, twice as many each time.
class DraftLength {
 public:
  /// The length of a draft for the next place, from 0 to `most`.
  std::int64_t next(std::int64_t most);
  void judge(std::int64_t drafted, std::int64_t accepted);

 private:
  std::int64_t length_ = 2, rest_ = 0, pause_ = 0;  // places to go without one; after the next miss
};

/// The draft of one request.
struct Draft {
  std::vector<TokenId> tokens{};
  DraftLength lookup{}, model{};
  DraftLength* source = nullptr;  // of `tokens`: one of the two

  /// Forgets the tokens: so many of them were right, or they were not tried.
  void judge(std::int64_t accepted);
  void drop();
};

/// A request that waits for a draft.
struct DraftPlace {
  Sampler* sampler = nullptr;  // with its tokens; the same again when the draft is made
  std::int64_t sequence = 0;   // of the models
  bool answers = false;        // false: its prompt is still being run, and the draft model is to run it too
  std::int64_t most = 0;       // tokens of a draft
  Draft* draft = nullptr;
  std::span<const TokenId> ends{};         // tokens that end the answer: nothing is drafted behind one
  const AnswerGrammar* grammar = nullptr;  // null: none
};

/// Makes the drafts of an engine, and keeps the cache of the draft model in step with the requests.
class Drafter {
 public:
  /// Errors: InvalidArgument for options out of range, and for a draft model of another vocabulary or of fewer
  /// sequences than `model`, whose tokeniser may be null.
  Drafter(const DraftOptions& options, std::optional<DraftModel> draft, const DecoderModel& model,
          const Tokenizer* tokenizer);

  /// Tokens of a draft at most; 0: no drafts are made.
  std::int64_t most() const { return options_.lookup == 0 && !model_ ? 0 : options_.tokens; }
  /// Makes the drafts of `places`, of different sequences. Errors: those of DecoderModel::forward.
  void draft(std::span<const DraftPlace> places);
  /// Only the first `size` tokens of a sequence stand.
  void truncate(std::int64_t sequence, std::int64_t size);
  /// A request leaves its sequence; the keys of its tokens may serve requests that begin alike.
  void leave(std::int64_t sequence, std::span<const TokenId> tokens);

 private:
  void run_model(std::span<const DraftPlace> places);
  bool make_room(std::int64_t sequence, std::int64_t tokens);

  DraftOptions options_;
  std::optional<DecoderModel> model_{};
  std::optional<PrefixCache> prefixes_{};
  std::optional<BatchConstructor> batches_{};
  std::int64_t vocab_ = 0;  // of the model that is drafted for
};

}  // namespace rlx
