// Text generation: continuous batching of many requests, each answer as if it ran alone.
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

/// Options of one answer.
struct GenerationOptions {
  SamplingOptions sampling{};
  std::int64_t max_new_tokens = 0;     // 0: until the context is full
  std::vector<std::string> stop{};     // texts that end the answer and are not part of it
  std::vector<TokenId> stop_tokens{};  // tokens that end the answer
  /// The answer is a text of the grammar, or a prefix of one. Stop tokens may be drawn where the text may end. The text
  /// is the bytes that the grammar read: a space before the first word stays, even where a decoder drops it.
  std::optional<Grammar> grammar{};
  std::string adapter{};  // one of DecoderModel::adapters(); empty: the base model
  /// Unless negative: events hold the log probability of their token before penalties, temperature, filters and
  /// grammar, and those of this many of the likeliest tokens.
  std::int32_t logprobs = -1;
  /// The prompt ends with the beginning of this answer, and the request continues it as if the first request had not
  /// stopped. Grammar, stop strings and incomplete characters continue after its tokens, Mirostat from its saved state.
  BegunAnswer begun{};
};

/// Why an answer ended.
enum class FinishReason : std::uint8_t {
  None,         // unfinished
  StopToken,    // the model drew one of stop_tokens
  StopString,   // the text contains one of `stop`
  MaxTokens,    // max_new_tokens
  ContextFull,  // the sequence fills the context
  Cancelled,
  GrammarEnd,  // the grammar allows no further token
  Failed,      // generation cannot continue: see `problem`
};
/// "", "stop_token", "stop_string", "max_tokens", "context_full", "cancelled", "grammar_end", "failed".
std::string_view finish_reason_name(FinishReason reason);

using RequestId = std::int64_t;

/// Log probabilities of tokens from the unmodified logits (GenerationOptions::logprobs).
struct TokenLogprobs {
  double drawn = 0;  // natural logarithm of the probability of the token drawn
  std::vector<TokenLogprob> likeliest{};
};

/// The result of a step for one request.
struct GenerationEvent {
  RequestId request = 0;
  TokenId token = -1;  // the token drawn; -1: none
  std::string text;    // final text: whole characters, and no prefix of a stop string
  FinishReason finish = FinishReason::None;
  std::optional<TokenLogprobs> logprobs{};
  BegunAnswer begun{};  // the answer so far, without a stop token: pass it to a request that continues the answer
  /// Why an answer failed: no token may follow (the vocabulary lacks the grammar's next bytes, or biases forbid all
  /// allowed tokens), logits with NaN, or a grammar that is too ambiguous.
  std::optional<Diagnostic> problem{};
};

struct EngineOptions {
  std::int64_t max_batch_tokens = 0;  // token budget of a run; 0: DecoderOptions::max_tokens
  bool prefix_cache = true;           // requests with equal prompt prefixes share their KV pages
  DraftOptions draft{};               // speculative decoding
};

/// Counters of an engine.
struct EngineStatistics {
  std::int64_t runs = 0;
  std::int64_t prompt_tokens = 0;  // prompt tokens that were run
  std::int64_t reused_tokens = 0;  // prompt tokens found in the prefix cache
  std::int64_t generated_tokens = 0;
  std::int64_t preemptions = 0;  // requests that lost their pages to older ones and are recomputed
  std::int64_t drafted_tokens = 0, accepted_tokens = 0;  // draft tokens that were run, and that were drawn
};

/// Runs requests through a model. Requests wait in order of arrival for one of the model's sequences. Prompts run in
/// chunks beside the tokens of requests that already answer. A request's tokens depend on its prompt, options and seed
/// alone, not on drafts; with drafts one run may yield several tokens. When pages run out, the engine first frees pages
/// that only the prefix cache holds, then preempts the youngest request, which is recomputed later. One call at a time:
/// a concurrent call is an InvalidArgument error. Missing memory is Error{OutOfMemory} of the call, or of the affected
/// answer.
class Engine {
 public:
  /// `tokenizer` may be null: events then have no text, and stop strings are refused. `draft` drafts for `model`.
  /// Errors: InvalidArgument for options out of range, and for a draft model of another vocabulary or with a cache for
  /// fewer sequences (the message names both).
  Engine(DecoderModel model, std::shared_ptr<const Tokenizer> tokenizer, EngineOptions options = {},
         std::optional<DraftModel> draft = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Queues a request. Errors: InvalidArgument for an empty prompt, ids outside the vocabulary, or a prompt that leaves
  /// no room for an answer (the message names both lengths); for options out of range, stop tokens outside the
  /// vocabulary and an adapter that is not loaded; for a grammar when there is no tokeniser, a grammar that matches the
  /// empty text only, or one that no token can begin; for an answer `begun` that is not at the end of the prompt or
  /// does not match the grammar; and while a sequence of `idle_model` has tokens.
  RequestId submit(std::span<const TokenId> prompt, const GenerationOptions& options);
  /// Cancels a request. Its event comes with the next step. False for an unknown request.
  bool cancel(RequestId request);
  /// One run and its events: one for every token drawn, in order for each request, and one for every request that
  /// ended. Events that `generate` kept come first. A failure of one answer is an event of that answer. Errors are
  /// those of the run; the requests stay unchanged.
  std::vector<GenerationEvent> step();
  /// True when no request and no event is left.
  bool idle() const;

  /// Runs one request to its end, together with the active requests, whose events are kept for the next `step`.
  /// `on_text` gets each piece, and ends the answer by returning false; it may call the engine, move or destroy it.
  /// Returns the whole text. Errors: those of `submit` and `step`, the problem of a failed answer, and exceptions of
  /// `on_text`; the request is then removed.
  std::string generate(std::span<const TokenId> prompt, const GenerationOptions& options,
                       const std::function<bool(std::string_view)>& on_text = {});

  /// Writes a conversation with the keys and values of its prefix in the prefix cache: whole pages, including those of
  /// a finished answer. Returns the number of tokens covered. Errors: those of save_conversation; InvalidArgument for
  /// an engine without a prefix cache.
  std::int64_t save(const std::string& path, const Conversation& conversation) const;
  /// Reads a conversation into the prefix cache. A prompt with the same prefix finds its keys and values there as long
  /// as no other request needs the pages. Tokens after the last whole page are recomputed to the same bits. Errors:
  /// those of ConversationFile::open; OutOfMemory where requests hold the pages; InvalidArgument as for `save`.
  Conversation load(const std::string& path);

  const EngineStatistics& statistics() const;
  const DecoderModel& model() const;
  /// The model for direct runs while there is no request. The prefix cache is emptied. The model's sequences must be
  /// empty again before the next request. InvalidArgument unless `idle`.
  DecoderModel& idle_model();
  const Tokenizer* tokenizer() const;

 private:
  struct Impl;
  Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
