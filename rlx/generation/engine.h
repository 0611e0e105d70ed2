// Text from a language model: many requests at once, their tokens run together, each answer as if it were alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
};

/// Why an answer ended.
enum class FinishReason : std::uint8_t {
  None,         // it goes on
  StopToken,    // the model ended it, by one of stop_tokens
  StopString,   // it said one of `stop`
  MaxTokens,    // max_new_tokens
  ContextFull,  // the sequence has as many tokens as the context holds
  Cancelled,
};
/// "", "stop_token", "stop_string", "max_tokens", "context_full", "cancelled".
std::string_view finish_reason_name(FinishReason reason);

using RequestId = std::int64_t;

/// What a step has made of one request.
struct GenerationEvent {
  RequestId request = 0;
  TokenId token = -1;  // the one drawn; -1 where none was
  std::string text;    // certain text: whole characters, and no beginning of a stop string
  FinishReason finish = FinishReason::None;
};

struct EngineOptions {
  std::int64_t max_batch_tokens = 0;  // of one run; 0: what the model was loaded for (DecoderOptions::max_tokens)
  bool prefix_cache = true;           // prompts that begin alike are computed once
};

/// What an engine has done so far.
struct EngineStatistics {
  std::int64_t runs = 0;
  std::int64_t prompt_tokens = 0;  // that were run
  std::int64_t reused_tokens = 0;  // of prompts, found in the cache
  std::int64_t generated_tokens = 0;
  std::int64_t preemptions = 0;  // requests that gave their pages to older ones and are computed again
};

/// Runs requests through a model. Requests wait in order of arrival for one of the model's sequences; prompts run in
/// chunks beside the tokens of those that answer already. A request's tokens depend on its prompt, options and seed
/// alone. When pages run out, pages that only the prefix cache holds go first, then the youngest request waits again
/// and is computed anew later. Not for concurrent calls.
class Engine {
 public:
  /// `tokenizer` may be null: events then have no text, and stop strings are refused.
  Engine(DecoderModel model, std::shared_ptr<const Tokenizer> tokenizer, EngineOptions options = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Takes a request. Errors: InvalidArgument for a prompt without tokens, of ids outside the vocabulary, or that
  /// leaves no room for an answer (it names both lengths), and for options out of range.
  RequestId submit(std::span<const TokenId> prompt, const GenerationOptions& options);
  /// Ends a request, whose event comes with the next step; false when there is none of that number.
  bool cancel(RequestId request);
  /// One run, and what came of it: an event for every request that a token was drawn for, or that ended. Errors are
  /// those of the run; the requests stay as they were.
  std::vector<GenerationEvent> step();
  /// True when no request is left.
  bool idle() const;

  /// One request from beginning to end, beside those that run already (whose events are lost to the caller: for engines
  /// of one user). `on_text` gets each piece, and ends the answer by returning false. Returns the whole text.
  template <class OnText>
  std::string generate(std::span<const TokenId> prompt, const GenerationOptions& options, OnText on_text) {
    const RequestId id = submit(prompt, options);
    std::string all;
    for (bool more = true; more;) {
      for (const GenerationEvent& e : step()) {
        if (e.request != id) continue;
        all += e.text;
        more = e.finish == FinishReason::None;
        if (!e.text.empty() && !on_text(std::string_view(e.text)) && more) cancel(id);
      }
    }
    return all;
  }

  const EngineStatistics& statistics() const;
  const DecoderModel& model() const;
  const Tokenizer* tokenizer() const;

 private:
  struct Impl;
  Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
