// Sentence embeddings from a Hugging Face model folder: tokeniser, weights and compiled encoder behind one call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/device/open_device.h"
#include "rlx/models/config.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/tensor/tensor.h"
#include "rlx/tensor/weight_loader.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

class CompiledGraph;

/// How an encoder is compiled.
struct SentenceEncoderOptions {
  int num_threads = 0;             // 0: as many as the machine grants
  std::int64_t max_batch = 32;     // texts in one batch
  std::int64_t max_sequence = 0;   // tokens per text; 0: the model's own limit
  std::int64_t dimensions = 0;     // elements kept of a vector, for Matryoshka models; 0: all
  bool zero_empty = false;         // a text without tokens gets a zero vector; false: it is an error
  DeviceId device{};               // the device that runs the model
  DeviceOptions device_options{};  // options of the device's backend, as in Session
};

/// Embeds texts. Calls of several threads take turns. A callback of a call may move, assign to or destroy the object:
/// the call goes on.
class SentenceEncoder {
 public:
  /// Loads `folder` (config.json, tokeniser, *.safetensors) and compiles the encoder. Errors: those of the readers;
  /// BadFile naming a weight that is missing, has another shape or belongs to a layer that the configuration lacks;
  /// Unsupported for a model with a head of another task, such as a cross-encoder, unless its modules.json pools the
  /// tokens; InvalidArgument for options out of range.
  explicit SentenceEncoder(const std::string& folder, SentenceEncoderOptions options = {});
  ~SentenceEncoder();
  SentenceEncoder(SentenceEncoder&&) noexcept;
  SentenceEncoder& operator=(SentenceEncoder&&) noexcept;

  /// One F32 vector per text, in order: [texts, hidden_size]. Texts of similar length run together. Texts beyond the
  /// limit are truncated, each with a notice. With several threads, batches run in parallel when there are enough of
  /// them, else each batch is split; vectors do not depend on this. `progress` is called with the number of texts done
  /// so far, by one thread at a time; it must not call the encoder (InvalidArgument). `prompt` is put before every
  /// text; unset: the model's default prompt. Errors: InvalidArgument for a text without tokens or with invalid UTF-8,
  /// BadFile when a vector is not finite. Messages name text `i` as `text_name(i)`, by default "text 1" and so on.
  Tensor embed(std::span<const std::string> texts, std::vector<TruncationNotice>* notices = nullptr,
               const std::function<void(std::size_t)>& progress = nullptr,
               const std::function<std::string(std::size_t)>& text_name = nullptr,
               const std::optional<std::string>& prompt = std::nullopt);
  /// The vector of one text: [hidden_size].
  Tensor embed(const std::string& text);

  /// The model's prompt of this name; for "" its default prompt, which may be empty. InvalidArgument for an unknown
  /// name, naming the known ones.
  std::string prompt(std::string_view name = {}) const;
  /// The prompt before queries: the model's prompt "query", or the default one.
  std::string query_prompt() const;
  /// The prompt before passages: the model's prompt "document", "passage" or "corpus", or the default one.
  std::string passage_prompt() const;

  /// Whether `text` has a token besides the special tokens of every text. Errors: InvalidArgument for invalid UTF-8.
  bool has_tokens(const std::string& text) const;
  /// Number of elements of a vector.
  std::int64_t hidden_size() const;
  /// Maximum tokens per text, including special ones.
  std::int64_t max_sequence() const;
  /// Maximum tokens of a text after `prompt`, without special ones. Errors: InvalidArgument for a prompt that leaves
  /// none.
  std::int64_t max_text_tokens(const std::string& prompt) const;
  /// Whether vectors of two encoders can be compared, in 32 hexadecimal digits: of the folder's settings and
  /// tokeniser, the names, shapes and dtypes of the weights, the first and last bytes of each, and `dimensions`.
  const std::string& fingerprint() const;
  /// The folder of the model, as it was given.
  const std::string& folder() const;
  /// Bytes of weights in memory: `CompiledGraph::prepared_bytes`.
  std::size_t weight_bytes() const;
  const SentenceModelConfig& config() const;
  const Tokenizer& tokenizer() const;

 private:
  struct Impl;
  Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

/// The options of build_encoder for a model folder.
EncoderGraphOptions encoder_graph_options(const SentenceModelConfig& config);

/// The checkpoint at `path` under the names of a graph of `build_sentence_encoder`: the prefix "bert." is removed from
/// all names, and tensors that are not floats (position ids) are omitted. Errors: those of the reader.
std::shared_ptr<const WeightLoader> open_checkpoint(const std::string& path);

/// Sets the params of an encoder of `build_sentence_encoder` from `weights`, the checkpoint at `path`. Errors: BadFile
/// naming the file and a tensor that is missing, has another shape or dtype, or belongs to a layer that the encoder
/// lacks.
void load_checkpoint(CompiledGraph& encoder, std::shared_ptr<const WeightLoader> weights, const std::string& path);

/// Cosine of the angle between two vectors of equal length, in double precision; 0 when either is zero.
double cosine_similarity(std::span<const float> a, std::span<const float> b);

}  // namespace rlx
