// Text from a language model: many requests at once, their tokens run together, each answer as if it were alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/error.h"
#include "rlx/generation/conversation_file.h"
#include "rlx/generation/draft.h"
#include "rlx/generation/grammar.h"
#include "rlx/generation/sampling.h"
#include "rlx/models/decoder_model.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

/// What is wanted of one answer.
struct GenerationOptions {
  SamplingOptions sampling{};
  std::int64_t max_new_tokens = 0;     // 0: until the context is full
  std::vector<std::string> stop{};     // texts that end the answer and are not part of it
  std::vector<TokenId> stop_tokens{};  // likewise tokens
  /// The answer is a text of it, or the beginning of one; the stop tokens may be drawn where it may end. Its text is
  /// the bytes that the grammar read: where a decoder would drop a space in front of the first word, it stays.
  std::optional<Grammar> grammar{};
  std::string adapter{};  // of DecoderModel::adapters(); empty: the model as it is
  /// Unless negative: events say how likely their token is to the model alone, before penalties, temperature, cuts and
  /// grammar, and how likely this many of the likeliest are.
  std::int32_t logprobs = -1;
  /// The prompt ends with the beginning of this answer: it goes on as with one request that had not been cut. Grammar,
  /// stop strings and characters go on behind its tokens, Mirostat from what it has learnt.
  BegunAnswer begun{};
};

/// Why an answer ended.
enum class FinishReason : std::uint8_t {
  None,         // it goes on
  StopToken,    // the model ended it, by one of stop_tokens
  StopString,   // it said one of `stop`
  MaxTokens,    // max_new_tokens
  ContextFull,  // the sequence has as many tokens as the context holds
  Cancelled,
  GrammarEnd,  // the grammar allows nothing more
  Failed,      // it cannot go on, for a reason of its own: `problem`
};
/// "", "stop_token", "stop_string", "max_tokens", "context_full", "cancelled", "grammar_end", "failed".
std::string_view finish_reason_name(FinishReason reason);

using RequestId = std::int64_t;

/// How likely tokens are to the model alone (GenerationOptions::logprobs).
struct TokenLogprobs {
  double drawn = 0;  // natural logarithm of the probability of the token drawn
  std::vector<TokenLogprob> likeliest{};
};

/// What a step has made of one request.
struct GenerationEvent {
  RequestId request = 0;
  TokenId token = -1;  // the one drawn; -1 where none was
  std::string text;    // certain text: whole characters, and no beginning of a stop string
  FinishReason finish = FinishReason::None;
  std::optional<TokenLogprobs> logprobs{};
  BegunAnswer begun{};  // where the answer stands now, without a stop token: what a request for its rest goes on with
  /// Of an answer that failed: no token may follow (the vocabulary lacks what the grammar wants, or biases forbid what
  /// it allows), logits with NaN, a grammar that can be read in too many ways.
  std::optional<Diagnostic> problem{};
};

struct EngineOptions {
  std::int64_t max_batch_tokens = 0;  // of one run; 0: what the model was loaded for (DecoderOptions::max_tokens)
  bool prefix_cache = true;           // prompts that begin alike are computed once
  DraftOptions draft{};               // of speculative decoding
};

/// What an engine has done so far.
struct EngineStatistics {
  std::int64_t runs = 0;
  std::int64_t prompt_tokens = 0;  // that were run
  std::int64_t reused_tokens = 0;  // of prompts, found in the cache
  std::int64_t generated_tokens = 0;
  std::int64_t preemptions = 0;  // requests that gave their pages to older ones and are computed again
  std::int64_t drafted_tokens = 0, accepted_tokens = 0;  // of drafts: that were run, and that were drawn
};

/// Runs requests through a model. Requests wait in order of arrival for one of the model's sequences; prompts run in
/// chunks beside the tokens of those that answer already. A request's tokens depend on its prompt, options and seed
/// alone, not on drafts: with these several of its tokens may come of one run. When pages run out, pages that only the
/// prefix cache holds go first, then the youngest request waits again and is computed anew later. One call at a
/// time: another thread's meanwhile is an error, InvalidArgument. Memory that is missing is Error{OutOfMemory} of the
/// call, or of the answer that it is missing for.
class Engine {
 public:
  /// `tokenizer` may be null: events then have no text, and stop strings are refused. `draft` drafts for `model`.
  /// Errors: InvalidArgument for options out of range, and for a draft model of another vocabulary or with a cache for
  /// fewer sequences (it names both).
  Engine(DecoderModel model, std::shared_ptr<const Tokenizer> tokenizer, EngineOptions options = {},
         std::optional<DraftModel> draft = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Takes a request. Errors: InvalidArgument for a prompt without tokens, of ids outside the vocabulary, or that
  /// leaves no room for an answer (it names both lengths); for options out of range, stop tokens outside the vocabulary
  /// and an adapter that is not loaded; for a grammar without a tokeniser, of the empty text alone, or that no token of
  /// the vocabulary can begin; for an answer begun that the prompt does not hold, or that the grammar does not go on
  /// with; and while a sequence of `idle_model` has tokens.
  RequestId submit(std::span<const TokenId> prompt, const GenerationOptions& options);
  /// Ends a request, whose event comes with the next step; false when there is none of that number.
  bool cancel(RequestId request);
  /// One run, and what came of it: an event for every token that was drawn, those of a request in order, and for every
  /// request that ended; before them those that `generate` kept. What stops one answer is an event of that one. Errors
  /// are those of the run; the requests stay as they were.
  std::vector<GenerationEvent> step();
  /// True when no request and no event is left.
  bool idle() const;

  /// One request from beginning to end, beside those that run already, whose events are kept for the next `step`.
  /// `on_text` gets each piece, and ends the answer by returning false. Returns the whole text. Errors: those of
  /// `submit` and `step`, the problem of an answer that failed, and what `on_text` throws; the request is gone then.
  std::string generate(std::span<const TokenId> prompt, const GenerationOptions& options,
                       const std::function<bool(std::string_view)>& on_text = {});

  /// Writes a conversation, with the keys and values that the prefix cache holds of its beginning: whole pages, those
  /// of an answer from its end on. Returns how many tokens they are of. Errors: those of save_conversation, and
  /// InvalidArgument for an engine without a prefix cache.
  std::int64_t save(const std::string& path, const Conversation& conversation) const;
  /// Reads one: a prompt that begins with its tokens finds their keys and values in the prefix cache, as long as no
  /// other request needs the pages. What is behind the last whole page is computed again, to the same bits. Errors:
  /// those of ConversationFile::open; OutOfMemory where requests hold the pages; InvalidArgument as `save`.
  Conversation load(const std::string& path);

  const EngineStatistics& statistics() const;
  const DecoderModel& model() const;
  /// The model for runs of one's own, while no request is there; what the prefix cache holds is let go. Its sequences
  /// have to be empty again when the next request comes. InvalidArgument unless `idle`.
  DecoderModel& idle_model();
  const Tokenizer* tokenizer() const;

 private:
  struct Impl;
  Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
