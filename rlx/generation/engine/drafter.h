// The sources of an engine's drafts, and the choice of their length.
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

/// Prompt lookup: up to `count` tokens that followed an earlier occurrence of the last tokens of `sequence`. At least
/// `least` tokens must match. The longest match wins, of equals the latest. A draft that reaches the end of the
/// sequence continues with its own tokens. Empty without a match.
std::vector<TokenId> lookup_draft(std::span<const TokenId> sequence, std::int64_t least, std::int64_t count);

/// Chooses the length of a request's next draft. An accepted token saves a run. A rejected one costs a small part of a
/// run. So the length doubles after a draft that was accepted as a whole, else it becomes one more than the number of
/// accepted tokens. After a draft without an accepted token, some positions get no draft, twice as many each time.
class DraftLength {
 public:
  /// The length of the draft for the next position, from 0 to `most`.
  std::int64_t next(std::int64_t most);
  void update(std::int64_t drafted, std::int64_t accepted);

 private:
  std::int64_t length_ = 2, rest_ = 0, pause_ = 0;  // positions to skip now; positions to skip after the next miss
};

/// The draft of one request.
struct Draft {
  std::vector<TokenId> tokens{};
  DraftLength lookup{}, model{};
  DraftLength* source = nullptr;  // source of `tokens`: `lookup` or `model`

  /// Clears the tokens: `accept` after a run that accepted `accepted` of them, `drop` when no run tried them.
  void accept(std::int64_t accepted);
  void drop();
};

/// A request that waits for a draft.
struct DraftPlace {
  Sampler* sampler = nullptr;  // holds the sequence's tokens; unchanged after the draft is made
  std::int64_t sequence = 0;   // index in both models
  bool answers = false;        // false: its prompt is still being run, and the draft model must run it too
  std::int64_t most = 0;       // maximum tokens of the draft
  Draft* draft = nullptr;
  std::span<const TokenId> ends{};         // end tokens: nothing is drafted after one
  const AnswerGrammar* grammar = nullptr;  // null: none
};

/// Makes the drafts of an engine, and keeps the draft model's cache in step with the requests.
class Drafter {
 public:
  /// Errors: InvalidArgument for options out of range, and for a draft model with another vocabulary or fewer sequences
  /// than `model`, whose tokeniser may be null.
  Drafter(const DraftOptions& options, std::optional<DraftModel> draft, const DecoderModel& model,
          const Tokenizer* tokenizer);

  /// Maximum tokens of a draft; 0: no drafts are made.
  std::int64_t most() const { return options_.lookup == 0 && !model_ ? 0 : options_.tokens; }
  /// Makes the drafts of `places`, of different sequences. Errors: those of DecoderModel::forward.
  void draft(std::span<const DraftPlace> places);
  /// Keeps only the first `size` tokens of a sequence.
  void truncate(std::int64_t sequence, std::int64_t size);
  /// A request leaves its sequence. Its keys stay available to requests with the same prefix.
  void release(std::int64_t sequence, std::span<const TokenId> tokens);

 private:
  void run_model(std::span<const DraftPlace> places);
  bool make_room(std::int64_t sequence, std::int64_t tokens);

  DraftOptions options_;
  std::optional<DecoderModel> model_{};
  std::optional<PrefixCache> prefixes_{};
  std::optional<BatchConstructor> batches_{};
  std::int64_t vocab_ = 0;  // vocabulary size of the target model
};

}  // namespace rlx
