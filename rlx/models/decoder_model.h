// A compiled language model with its KV cache: a Hugging Face folder or a GGUF file in, logits out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/base/old_name.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/models/adapter.h"
#include "rlx/models/decoder/kv_cache.h"
#include "rlx/models/decoder_config.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/tensor.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

class PackedWeightFiles;

/// Page size of the cache that engines share between requests, in tokens. With a multiple of this size, logits do not
/// depend on the placement of tokens in pages.
inline constexpr std::int64_t kEnginePage = 64;

struct DecoderOptions {
  std::int64_t context = 0;                   // maximum tokens of a sequence; 0: the model's own limit, at most 4096
  std::int64_t sequences = 1;                 // sequences with a cache at the same time
  std::int64_t max_tokens = 512;              // tokens of one run: longer prompts run in chunks
  std::int64_t page = 0;                      // tokens of a KV page; 0: each sequence is contiguous
  std::int64_t pages = 0;                     // total number of pages; 0: enough for all sequences at full context
  DType cache_dtype = DType::F32;             // F32, BF16 or F16
  std::optional<QuantScheme> cache_scheme{};  // q8_0, q4_0, ..: keys and values are stored as blocks instead
  bool whole_windows = false;  // sliding-window layers keep all keys: sequences can be truncated anywhere
  MatmulPrecision matmul_precision =
      MatmulPrecision::Exact;              // allowed precision loss of the weights; Int8: also scores with q8_0 keys
  OldName<MatmulPrecision> products{};     // now matmul_precision
  bool check_memory = true;                // before loading: an error where the model cannot fit
  std::size_t memory_limit = 0;            // limit of check_memory, in bytes; 0: the device's available memory
  std::string packed_weights{};            // a folder of saved packed weights, which later starts map
  OldName<std::string> forms{};            // now packed_weights
  bool verify_packed_weights = false;      // saved packed weights are read and their checksums compared before use
  OldName<bool> verify_forms{};            // now verify_packed_weights
  std::vector<AdapterOptions> adapters{};  // requests select one of them or none
  /// These options with the values of deprecated names under the new names.
  DecoderOptions with_new_names() const;
};

/// Which of the new tokens get logits.
enum class LogitRows : std::uint8_t {
  All,   // every one, in order
  Last,  // the last one of each sequence
};

/// The new tokens of one sequence.
struct SequenceTokens {
  std::int64_t sequence = 0;
  std::span<const TokenId> tokens;
  std::int64_t logits = -1;   // number of its last tokens that get logits; -1: as LogitRows says
  std::int64_t adapter = -1;  // index in DecoderModel::adapters(), the same for all tokens of a text; -1: none
};

/// A decoder with its weights and its KV cache. One call at a time: a concurrent call is an InvalidArgument error.
class DecoderModel {
 public:
  /// Loads a Hugging Face folder (config.json, *.safetensors) or a GGUF file and compiles it for `session`. Weights
  /// keep their own dtype or blocks. Errors: those of read_decoder_config, of SafetensorsFolder::open or
  /// GgufFile::open, and of build_decoder; OutOfMemory, before loading, for a model that needs more memory than
  /// available, naming each part of it; for adapters NotFound, Unsupported for unknown kinds, and BadFile naming a
  /// tensor that is missing, has another shape or belongs to no part. With `packed_weights` the model has its own
  /// subfolder there; errors: those of PackedWeightFiles. A packed layout that is damaged, or of other weights, is made
  /// again. Where it cannot be written the model is loaded all the same, and `packed_weights()->problems()` reports it.
  static DecoderModel load(const std::string& path, const DecoderOptions& options = {},
                           const Session& session = Session());
  ~DecoderModel();
  DecoderModel(DecoderModel&&) noexcept;
  DecoderModel& operator=(DecoderModel&&) noexcept;

  /// Appends tokens to sequence 0 and runs them. Returns logits F32 [tokens, vocab_size], or [1, vocab_size] of the
  /// last one.
  Tensor forward(std::span<const TokenId> tokens, LogitRows rows = LogitRows::All);
  /// Appends tokens to several sequences, each named once; logits are in the order of `parts`. On the cpu a row has the
  /// same bits whatever the other parts, the split into calls, and the pages, as long as the page size is the whole
  /// context or a multiple of 64 tokens. Errors leave the sequences unchanged: InvalidArgument for no tokens, ids
  /// outside the vocabulary, an unknown or repeated sequence, logits of more tokens than a part has, an unknown
  /// adapter, or tokens beyond the context; OutOfMemory when the pages are used up. (When a part needs several runs and
  /// one fails after the sequence's window has moved, the sequence is left empty.)
  Tensor forward(std::span<const SequenceTokens> parts, LogitRows rows = LogitRows::All);

  /// Profiles a run of `tokens` after sequence 0, kernel by kernel on one thread. The sequence stays unchanged. Errors:
  /// those of forward; InvalidArgument for more than max_tokens().
  std::vector<NodeTime> profile(std::span<const TokenId> tokens);

  /// Tokens of a sequence so far.
  std::int64_t length(std::int64_t sequence = 0) const;
  /// Removes the tokens of a sequence from `length` on. InvalidArgument for more than there are, and, where
  /// sliding-window layers keep only the last keys, for a length between 0 and cache().shortest(sequence).
  void truncate(std::int64_t length, std::int64_t sequence = 0);
  /// Empties all sequences.
  void reset();

  const DecoderConfig& config() const;
  std::int64_t context() const;
  /// The names of the adapters that are loaded.
  const std::vector<std::string>& adapters() const;
  /// Maximum tokens of one run.
  std::int64_t max_tokens() const;
  /// The location of each sequence's keys and values. Engines share its pages between sequences.
  KvCache& cache();
  const KvCache& cache() const;
  /// Bytes of keys and values.
  std::size_t cache_bytes() const;
  /// The options that the model was loaded with.
  const DecoderOptions& options() const;
  /// The saved packed weights; null without DecoderOptions::packed_weights.
  std::shared_ptr<const PackedWeightFiles> packed_weights() const;
  [[deprecated("now packed_weights")]] std::shared_ptr<const PackedWeightFiles> forms() const {
    return packed_weights();
  }

  /// Everything that decides the keys and values of a text besides its tokens, the cache type and
  /// `options().matmul_precision`. The configuration, including rotary angles for this context; the content of the
  /// weights, which the first call reads completely; the files of the weights, where equal means equal content (zero:
  /// there are no files).
  Fingerprint config_fingerprint() const;
  Fingerprint weights_fingerprint() const;
  Fingerprint sources_fingerprint() const;
  /// Writes rows of a cache state, for example "cache.k.0". `program().read_state` reads them. Errors: those of
  /// CompiledGraph::write_state.
  void write_cache(std::string_view state, const Tensor& value, Rows rows);
  /// The program, for reports. Run it through `forward`.
  const CompiledGraph& program() const;

 private:
  struct Impl;
  explicit DecoderModel(std::unique_ptr<Impl> impl);
  Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
