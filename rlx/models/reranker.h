// Cross-encoders from a Hugging Face model folder: how well passages answer a query, read together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/device/open_device.h"
#include "rlx/models/encoder_config.h"
#include "rlx/models/passages.h"
#include "rlx/tensor/tensor.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

/// What becomes of a classifier's number.
enum class ScoreActivation : std::uint8_t { Identity, Sigmoid };

struct RerankerOptions {
  int num_threads = 0;                          // 0: as many as the machine grants
  std::int64_t max_batch = 32;                  // pairs run together
  std::int64_t max_sequence = 0;                // tokens of a pair; 0: the model's own limit
  std::optional<ScoreActivation> activation{};  // unset: what the model's files say, else Sigmoid for one label
  /// What a passage is to be for the query, in the model's language: of Qwen3 alone, whose rerankers are asked in
  /// words. Unset: the one of their published usage for a model that answers yes or no; a classifier gets bare pairs
  /// then.
  std::optional<std::string> instruction{};
  DeviceId device{};               // where it runs
  DeviceOptions device_options{};  // of its backend, as Session takes them
};

/// Scores pairs of a query and a passage by a `*ForSequenceClassification` of any family that build_encoder knows a
/// classifier of, or by a `Qwen3ForCausalLM` that is asked whether the passage answers: its number is the logit of
/// "yes" minus that of "no" behind the question, whose sigmoid is the share of "yes" among the two. Not for concurrent
/// calls: make one per thread.
class Reranker {
 public:
  /// Loads `folder` (config.json, tokeniser, *.safetensors) and compiles it. Errors: those of the readers, of
  /// build_encoder, and InvalidArgument for options out of range.
  explicit Reranker(const std::string& folder, RerankerOptions options = {});
  ~Reranker();
  Reranker(Reranker&&) noexcept;
  Reranker& operator=(Reranker&&) noexcept;

  /// What the classifier says of the query with each passage, in order, activation applied: F32 [passages, labels].
  /// Pairs of similar length run together; those beyond the limit lose tokens of their longer text (longest_first),
  /// each with a notice; a question in words loses those of its passage. `progress` is called with the number of pairs
  /// done. Errors: InvalidArgument for a query without tokens, one that leaves no room for passages in a question, or
  /// invalid UTF-8; BadFile when a score is not finite; they name passage `i` as `passage_name(i)`, by default
  /// "passage 1" and so on.
  Tensor score(const std::string& query, std::span<const std::string> passages,
               std::vector<TruncationNotice>* notices = nullptr,
               const std::function<void(std::size_t)>& progress = nullptr,
               const std::function<std::string(std::size_t)>& passage_name = nullptr);
  /// The `count` best passages by the score of a model with one label, best first; equal scores in order.
  /// InvalidArgument for a model with several labels; those of score.
  std::vector<Match> rank(const std::string& query, std::span<const std::string> passages, std::size_t count);

  std::int64_t labels() const;
  /// Tokens kept of a pair, special ones included.
  std::int64_t max_sequence() const;
  /// Bytes of weights in memory.
  std::size_t weight_bytes() const;
  const EncoderConfig& config() const;
  const Tokenizer& tokenizer() const;

 private:
  struct Impl;
  Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
