// Batches rows of tokens.
#include "rlx/models/encoder/encoder_runner.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "rlx/threads/thread_pool.h"

namespace rlx {

// Splits rows of descending length into batches of at most `max_rows`, minimising the sum of rows x longest plus a
// fixed cost per batch: padding costs as much as text, and matmuls of a short batch run below their full rate.
std::vector<EncoderRunner::Batch> EncoderRunner::cut(std::span<const std::size_t> lengths, std::size_t max_rows) {
  constexpr std::size_t kBatchPrice = 8;  // in tokens
  const std::size_t n = lengths.size();
  std::vector<std::size_t> cost(n + 1, 0), count(n, 0);  // of rows from i on; rows of the batch that starts at i
  for (std::size_t i = n; i-- > 0;) {
    cost[i] = std::numeric_limits<std::size_t>::max();
    for (std::size_t rows = 1; rows <= std::min(max_rows, n - i); ++rows) {
      const std::size_t c = rows * lengths[i] + kBatchPrice + cost[i + rows];
      if (c < cost[i]) cost[i] = c, count[i] = rows;
    }
  }
  std::vector<Batch> out;
  for (std::size_t i = 0; i < n; i += count[i]) out.push_back({i, count[i], lengths[i]});
  return out;
}

EncoderRunner::EncoderRunner(EncoderRunnerSettings settings) : s_(std::move(settings)) {
  threads_ = s_.session.target()->threads();
  programs_.push_back(compile(s_.max_batch, std::min(s_.max_tokens, kLongRow)));
  s_.load(programs_.front());
}

// Texts have any length: one program runs them all.
CompiledGraph EncoderRunner::compile(std::int64_t max_batch, std::int64_t max_tokens) const {
  CompileOptions options;
  options.symbol_modes = {{"batch", SymbolMode::runtime(max_batch)}, {"seq", SymbolMode::runtime(max_tokens)}};
  return s_.compile(s_.session, std::move(options));
}

void EncoderRunner::run_batch(CompiledGraph& program, const Batch& batch, std::span<const std::vector<TokenId>> rows,
                              std::span<const std::vector<std::int32_t>> types, std::span<const std::size_t> order,
                              std::span<float> out) const {
  const std::size_t width = batch.width, elements = static_cast<std::size_t>(s_.width);
  std::vector<std::int32_t> ids(batch.count * width, s_.pad), kinds(types.empty() ? 0 : ids.size(), 0);
  std::vector<float> mask(batch.count * width, 0.0f), results(batch.count * elements);
  for (std::size_t r = 0; r < batch.count; ++r) {
    const std::size_t from = order[batch.first + r];
    const auto at = static_cast<std::ptrdiff_t>(r * width);
    std::copy(rows[from].begin(), rows[from].end(), ids.begin() + at);
    std::fill_n(mask.begin() + at, rows[from].size(), 1.0f);
    if (!types.empty()) std::copy(types[from].begin(), types[from].end(), kinds.begin() + at);
  }
  const std::int64_t in_dims[] = {static_cast<std::int64_t>(batch.count), static_cast<std::int64_t>(width)},
                     out_dims[] = {static_cast<std::int64_t>(batch.count), s_.width};
  const TensorView inputs[] = {{ids.data(), DType::I32, in_dims, ids.size() * sizeof ids[0]},
                               {mask.data(), DType::F32, in_dims, mask.size() * sizeof mask[0]},
                               {kinds.data(), DType::I32, in_dims, kinds.size() * sizeof ids[0]}};
  const MutableTensorView output{results.data(), DType::F32, out_dims, results.size() * sizeof results[0]};
  program.run_into(std::span(inputs, types.empty() ? 2 : 3), {&output, 1});
  for (std::size_t r = 0; r < batch.count; ++r)
    std::copy_n(results.begin() + static_cast<std::ptrdiff_t>(r * elements), elements,
                out.begin() + static_cast<std::ptrdiff_t>(order[batch.first + r] * elements));
}

std::size_t EncoderRunner::weight_bytes() const {
  const std::lock_guard turn(turn_);
  return programs_.front().prepared_bytes();
}

void EncoderRunner::run(std::span<const std::vector<TokenId>> rows, std::span<const std::vector<std::int32_t>> types,
                        std::vector<std::size_t> which, std::span<float> out,
                        const std::function<void(std::size_t)>& progress) {
  const std::lock_guard turn(turn_);
  // Longest first: neighbours need little padding, later batches reuse the buffers of the largest one, and short
  // batches come last, when threads run out of work.
  std::stable_sort(which.begin(), which.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a].size() > rows[b].size(); });
  std::size_t done = 0;
  std::mutex mutex;
  const auto run = [&](CompiledGraph& program, const Batch& batch, std::span<const std::size_t> order) {
    run_batch(program, batch, rows, types, order, out);
    std::lock_guard lock(mutex);
    done += batch.count;
    if (!progress) return;
    const ObjectMutex::AsHolder here(turn_);  // so that a callback that calls the encoder is an error and does not wait
    progress(done);
  };
  const auto first_short = std::partition_point(
      which.begin(), which.end(), [&](std::size_t i) { return rows[i].size() > static_cast<std::size_t>(kLongRow); });
  const auto num_long = static_cast<std::size_t>(first_short - which.begin());
  if (num_long > 0 && long_.empty()) {
    CompiledGraph program = compile(1, s_.max_tokens);
    program.share_weights_from(programs_.front());
    long_.push_back(std::move(program));
  }
  for (std::size_t i = 0; i < num_long; ++i) run(long_[0], {i, 1, rows[which[i]].size()}, which);

  const std::span<const std::size_t> order = std::span(which).subspan(num_long);
  std::vector<std::size_t> lengths;
  for (const std::size_t i : order) lengths.push_back(rows[i].size());
  const std::vector<Batch> batches = cut(lengths, static_cast<std::size_t>(s_.max_batch));
  // Whole batches in parallel scale better than the steps of one batch, as long as every thread has several.
  const auto threads = static_cast<std::size_t>(threads_);
  if (threads > 1 && batches.size() >= 4 * threads) {
    while (programs_.size() < threads) programs_.push_back(programs_[0].clone());
    ThreadPool::process().parallel_for(
        static_cast<std::int64_t>(batches.size()),
        [&](std::int64_t i) {
          run(programs_[static_cast<std::size_t>(worker_index())], batches[static_cast<std::size_t>(i)], order);
        },
        threads_);
  } else {
    for (const Batch& batch : batches) run(programs_[0], batch, order);
  }
}

}  // namespace rlx
