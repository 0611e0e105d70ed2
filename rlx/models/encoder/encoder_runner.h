// Runs many rows of tokens through a compiled encoder: sorts by length, batches, pads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rlx/base/forks.h"
#include "rlx/runtime/session.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// Settings of an EncoderRunner.
struct EncoderRunnerSettings {
  Session session;
  std::int64_t max_batch = 32;  // rows of a batch
  std::int64_t max_tokens = 0;  // tokens of a row
  std::int64_t width = 0;       // elements of a row's output
  TokenId pad = 0;
  /// Compiles the program with these options. Its inputs are `ids`, `mask` and, where rows have types, `types`.
  std::function<CompiledGraph(const Session&, CompileOptions)> compile{};
  std::function<void(CompiledGraph&)> load{};  // sets the weights of the first program; all programs share them
};

/// Longer rows run one by one: the memory of a program is planned for its longest batch.
inline constexpr std::int64_t kLongRow = 512;

/// Runs rows. Results do not depend on the other rows. Calls of several threads take turns.
class EncoderRunner {
 public:
  explicit EncoderRunner(EncoderRunnerSettings settings);

  /// Writes the outputs of the rows `which` to `out` [all rows, width]. `types` is empty or has one for each token.
  /// `progress` is called with the number of rows of each finished batch, by one thread at a time.
  void run(std::span<const std::vector<TokenId>> rows, std::span<const std::vector<std::int32_t>> types,
           std::vector<std::size_t> which, std::span<float> out, const std::function<void(std::size_t)>& progress);

  /// Bytes of weights in memory.
  std::size_t weight_bytes() const;

 private:
  struct Batch {
    std::size_t first = 0, count = 0, width = 0;  // rows, sorted by length, and the longest one
  };
  static std::vector<Batch> cut(std::span<const std::size_t> lengths, std::size_t max_rows);
  CompiledGraph compile(std::int64_t max_batch, std::int64_t max_tokens) const;
  void run_batch(CompiledGraph& program, const Batch& batch, std::span<const std::vector<TokenId>> rows,
                 std::span<const std::vector<std::int32_t>> types, std::span<const std::size_t> order,
                 std::span<float> out) const;

  mutable ObjectMutex turn_{"an encoder"};  // of calls
  EncoderRunnerSettings s_;
  int threads_ = 1;
  std::vector<CompiledGraph> programs_;  // one, then clones for batches that run in parallel
  std::vector<CompiledGraph> long_;      // for single long rows, made on first use; shares the weights
};

}  // namespace rlx
