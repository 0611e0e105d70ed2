// A language model that is ready to run: a Hugging Face folder or a GGUF file in, logits out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// Tokens of a page of the cache that engines share between requests: of multiples of this number no logit depends on
/// how they lie in pages.
inline constexpr std::int64_t kEnginePage = 64;

// The last field of DecoderOptions is a name of the last release: using it warns, copying the struct does not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct DecoderOptions {
  std::int64_t context = 0;        // tokens a sequence may have; 0: as many as the model is good for, but at most 4096
  std::int64_t sequences = 1;      // that have a cache at the same time
  std::int64_t max_tokens = 512;   // of one run: longer prompts are run in chunks
  std::int64_t page = 0;           // tokens of a page of the cache; 0: each sequence lies in one piece
  std::int64_t pages = 0;          // of all sequences together; 0: enough for all at full context
  DType cache_dtype = DType::F32;  // F32, BF16 or F16
  std::optional<QuantScheme> cache_scheme{};  // q8_0, q4_0, ..: keys and values are kept as blocks instead
  bool whole_windows = false;  // layers with a window keep the keys of the whole context: sequences can be cut anywhere
  MatmulPrecision products =
      MatmulPrecision::Exact;          // what products may lose of their weights; Int8: scores with keys of q8_0 too
  bool check_memory = true;            // before anything is loaded: an error where the model cannot fit
  std::size_t memory_limit = 0;        // bytes that it may need then; 0: as many as the device has available
  std::string forms{};                 // a folder that keeps weights as products read them, for later starts to map
  bool verify_packed_layouts = false;  // their bytes are read and compared with their checksums before they are used
  std::vector<AdapterOptions> adapters{};  // which tokens may ask for, each for one of them or none
  [[deprecated("now verify_packed_layouts")]] bool verify_forms = false;
  /// `verify_packed_layouts`, by either name.
  bool verifies_packed_layouts() const { return verify_packed_layouts || verify_forms; }
};
#pragma GCC diagnostic pop

/// Which of the new tokens get logits.
enum class LogitRows : std::uint8_t {
  All,   // every one, in order
  Last,  // the last one of each sequence
};

/// New tokens of one sequence.
struct SequenceTokens {
  std::int64_t sequence = 0;
  std::span<const TokenId> tokens;
  std::int64_t logits = -1;   // of so many of its last tokens; -1: as LogitRows says
  std::int64_t adapter = -1;  // of DecoderModel::adapters(), the same for all tokens of a text; -1: none
};

/// A decoder with its weights and its cache. One call at a time.
class DecoderModel {
 public:
  /// Loads a Hugging Face folder (config.json, *.safetensors) or a GGUF file and compiles it for `session`. Weights are
  /// read as they are, in their own dtype or as blocks. Errors: those of read_decoder_config, of
  /// SafetensorsFolder::open or GgufFile::open, and of build_decoder; OutOfMemory, before anything is loaded, for a
  /// model that needs more memory than there is, naming each part of it; of adapters NotFound, Unsupported for kinds
  /// that are not read, and BadFile naming what is missing, has another shape or belongs to no
  /// part. With `forms` the model has a folder of its own there; errors: those of PackedWeightFiles. A form that is
  /// damaged, or of other weights, is made anew, and where it cannot be written the model is loaded all the same:
  /// `forms()-> problems()` says what was wrong.
  static DecoderModel load(const std::string& path, const DecoderOptions& options = {},
                           const Session& session = Session());
  ~DecoderModel();
  DecoderModel(DecoderModel&&) noexcept;
  DecoderModel& operator=(DecoderModel&&) noexcept;

  /// Appends tokens to sequence 0 and runs them: logits F32 [tokens, vocab_size], or [1, vocab_size] of the last one.
  Tensor forward(std::span<const TokenId> tokens, LogitRows rows = LogitRows::All);
  /// The same for several sequences at once, each named once; rows in the order of `parts`. On the cpu a row has the
  /// same bits whatever its neighbours, the calls that its tokens are spread over, and the pages, as long as a page is
  /// the whole context or a multiple of 64 tokens. Errors, which leave the sequences as they were: InvalidArgument for
  /// no tokens, ids outside the vocabulary, a sequence that is not there or named twice, logits of more tokens than a
  /// part has, an adapter that is not there, or tokens beyond the context; OutOfMemory when the pages are used up.
  /// (Where a run fails whose part needed several, a sequence whose window has moved on by then is left empty.)
  Tensor forward(std::span<const SequenceTokens> parts, LogitRows rows = LogitRows::All);

  /// What a run of `tokens` behind those of sequence 0 spends its time on, kernel by kernel, one thread after the
  /// other; the sequence stays as it is. Errors: as forward, and InvalidArgument for more than max_tokens().
  std::vector<NodeTime> profile(std::span<const TokenId> tokens);

  /// Tokens of a sequence so far.
  std::int64_t length(std::int64_t sequence = 0) const;
  /// Forgets the tokens of a sequence from `length` on. InvalidArgument for more than there are, and, where layers with
  /// a window keep the last keys alone, for a length between 0 and cache().shortest(sequence).
  void truncate(std::int64_t length, std::int64_t sequence = 0);
  /// Forgets all sequences.
  void reset();

  const DecoderConfig& config() const;
  std::int64_t context() const;
  /// The names of the adapters that are loaded.
  const std::vector<std::string>& adapters() const;
  /// Tokens of one run at most.
  std::int64_t max_tokens() const;
  /// Where the keys and values of each sequence lie; what engines share between sequences.
  KvCache& cache();
  const KvCache& cache() const;
  /// Bytes of keys and values.
  std::size_t cache_bytes() const;
  /// The options that it was loaded with.
  const DecoderOptions& options() const;
  /// Where its forms were saved or found; null without DecoderOptions::forms.
  std::shared_ptr<const PackedWeightFiles> forms() const;

  /// What decides the keys and values of a text beside its tokens, the type of the cache and `options().products`: the
  /// configuration, rotary angles for this context; the content of the weights, all of which is read the first time;
  /// their files, where equal means equal content (zero: there are none).
  Fingerprint config_fingerprint() const;
  Fingerprint weights_fingerprint() const;
  Fingerprint sources_fingerprint() const;
  /// Writes rows of a state of the cache, "cache.k.0" for example; `program().read_state` reads them. Errors: those of
  /// CompiledGraph::write_state.
  void write_cache(std::string_view state, const Tensor& value, Rows rows);
  /// The program, for reports; run it through `forward`.
  const CompiledGraph& program() const;

 private:
  struct Impl;
  explicit DecoderModel(std::unique_ptr<Impl> impl);
  Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
