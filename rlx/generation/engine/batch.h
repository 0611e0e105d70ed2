// Which tokens of which sequences run together: decoding first, then prompts in chunks, within a budget of tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace rlx {

/// A sequence that waits for tokens to be run: `query` of them, behind `cached` that were.
struct BatchRequest {
  std::int64_t id = 0;
  std::int64_t query = 1;
  std::int64_t cached = 0;
};
/// A part of a request in a batch.
struct BatchEntry {
  std::int64_t id = 0;
  std::int64_t query = 1, cached = 0;
  bool prefill = false;
  bool whole = true;  // of what the request waited for: its last token's logits are wanted
  friend bool operator==(const BatchEntry&, const BatchEntry&) = default;
};

/// Puts batches together. The tokens are the budget, not the sequences; a prompt that does not fit is split.
class BatchConstructor {
 public:
  /// Errors: InvalidArgument for less than one token or entry.
  BatchConstructor(std::int64_t max_tokens_per_batch, std::int64_t max_entries);
  /// The next batch, whose requests leave the queues: first of `decode`, as far as the next one fits; then of
  /// `prefill`. A prompt larger than what is left of the budget gives a chunk of that size, and its rest stays in front
  /// of the queue. Errors: InvalidArgument for a request of no tokens, or of decoding more than a batch holds.
  std::vector<BatchEntry> build(std::deque<BatchRequest>& decode, std::deque<BatchRequest>& prefill) const;

 private:
  std::int64_t max_tokens_, max_entries_;
};

}  // namespace rlx
