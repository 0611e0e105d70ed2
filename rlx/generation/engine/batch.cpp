// Batch construction within a token budget.
#include "rlx/generation/engine/batch.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx {

BatchConstructor::BatchConstructor(std::int64_t max_tokens_per_batch, std::int64_t max_entries)
    : max_tokens_(max_tokens_per_batch), max_entries_(max_entries) {
  if (max_tokens_ < 1 || max_entries_ < 1)
    throw Error(ErrorCode::InvalidArgument, concat_text("a batch must allow at least 1 token and 1 sequence, got ",
                                                        max_tokens_, " tokens and ", max_entries_, " sequences"));
}

std::vector<BatchEntry> BatchConstructor::build(std::deque<BatchRequest>& decode,
                                                std::deque<BatchRequest>& prefill) const {
  const auto checked = [&](const BatchRequest& r, bool split) {
    if (r.query < 1 || r.cached < 0 || (!split && r.query > max_tokens_))
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("request ", r.id, " has ", r.query, " new tokens after ", r.cached,
                              " cached ones, which does not fit batches of ", max_tokens_, " tokens"));
    return r;
  };
  std::vector<BatchEntry> batch;
  std::int64_t left = max_tokens_;
  const auto room = [&] { return left > 0 && static_cast<std::int64_t>(batch.size()) < max_entries_; };
  while (!decode.empty() && room()) {
    const BatchRequest r = checked(decode.front(), false);
    if (r.query > left) break;
    batch.push_back({r.id, r.query, r.cached, false, true});
    left -= r.query;
    decode.pop_front();
  }
  while (!prefill.empty() && room()) {
    BatchRequest& r = prefill.front();
    (void)checked(r, true);
    const std::int64_t now = std::min(r.query, left);
    batch.push_back({r.id, now, r.cached, true, now == r.query});
    left -= now;
    if (now == r.query) {
      prefill.pop_front();
    } else {
      r.query -= now;
      r.cached += now;
    }
  }
  return batch;
}

}  // namespace rlx
