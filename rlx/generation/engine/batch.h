// Batch construction: decode requests first, then prompt chunks, within a token budget.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace rlx {

/// A sequence with `query` tokens to run after `cached` tokens that were run.
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
  bool whole = true;  // the last token of the request is included: its logits are wanted
  friend bool operator==(const BatchEntry&, const BatchEntry&) = default;
};

/// Constructs batches. The budget counts tokens, not sequences. A prompt that does not fit is split.
class BatchConstructor {
 public:
  /// Errors: InvalidArgument for less than one token or entry.
  BatchConstructor(std::int64_t max_tokens_per_batch, std::int64_t max_entries);
  /// The next batch. Its requests leave the queues: first those of `decode`, as long as the next one fits, then those
  /// of `prefill`. A prompt larger than the remaining budget is split: a chunk of that size runs, and the rest stays at
  /// the front of the queue. Errors: InvalidArgument for a request of no tokens, or a decode request larger than a
  /// batch.
  std::vector<BatchEntry> build(std::deque<BatchRequest>& decode, std::deque<BatchRequest>& prefill) const;

 private:
  std::int64_t max_tokens_, max_entries_;
};

}  // namespace rlx
