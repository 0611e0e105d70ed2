// Cross-encoder rerankers from a Hugging Face model folder: scores of passages for a query.
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

/// The activation of a classifier's output.
enum class ScoreActivation : std::uint8_t { Identity, Sigmoid };

/// How a reranker is compiled.
struct RerankerOptions {
  int num_threads = 0;                          // 0: as many as the machine grants
  std::int64_t max_batch = 32;                  // pairs in one batch
  std::int64_t max_sequence = 0;                // tokens of a pair; 0: the model's own limit
  std::optional<ScoreActivation> activation{};  // unset: from the model's files, else Sigmoid for one label
  /// The task in the model's language, for example what a relevant passage is. Only for Qwen3 rerankers, which take an
  /// instruction. Unset: the published default of a yes/no model; a classifier then gets bare pairs.
  std::optional<std::string> instruction{};
  DeviceId device{};               // the device that runs the model
  DeviceOptions device_options{};  // options of the device's backend, as in Session
};

/// Scores pairs of a query and a passage with a `*ForSequenceClassification` model of any family that build_encoder
/// supports with a classifier, or with a `Qwen3ForCausalLM` that is asked whether the passage answers the query. Its
/// score is the logit of "yes" minus that of "no" after the question; the sigmoid of it is the probability of "yes"
/// among the two. Calls of several threads take turns.
class Reranker {
 public:
  /// Loads `folder` (config.json, tokeniser, *.safetensors) and compiles it. Errors: those of the readers and of
  /// build_encoder; InvalidArgument for options out of range.
  explicit Reranker(const std::string& folder, RerankerOptions options = {});
  ~Reranker();
  Reranker(Reranker&&) noexcept;
  Reranker& operator=(Reranker&&) noexcept;

  /// The classifier's output for the query with each passage, in order, after the activation: F32 [passages, labels].
  /// Pairs of similar length run together. Pairs beyond the limit lose tokens of their longer text (longest_first),
  /// each with a notice; a yes/no question loses tokens of its passage. `progress` is called with the number of
  /// finished pairs. Errors: InvalidArgument for a query without tokens, one that leaves no room for passages in a
  /// question, or invalid UTF-8; BadFile when a score is not finite. Messages name passage `i` as `passage_name(i)`, by
  /// default "passage 1" and so on.
  Tensor score(const std::string& query, std::span<const std::string> passages,
               std::vector<TruncationNotice>* notices = nullptr,
               const std::function<void(std::size_t)>& progress = nullptr,
               const std::function<std::string(std::size_t)>& passage_name = nullptr);
  /// The `count` best passages by the score of a model with one label, best first; equal scores in order. Errors:
  /// InvalidArgument for a model with several labels; those of score.
  std::vector<Match> rank(const std::string& query, std::span<const std::string> passages, std::size_t count);

  std::int64_t labels() const;
  /// Maximum tokens of a pair, including special ones.
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
