// The tokeniser interface: text to token ids and back, for every tokenisation algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/vocabulary.h"

namespace rlx {

class GgufFile;
class JsonDocument;
class TokenDecoder;

/// A notice that a text was truncated because it has more tokens than the limit.
struct TruncationNotice {
  std::size_t text_index = 0;   // position in the batch
  std::int64_t num_tokens = 0;  // tokens of the whole text, special tokens included
  std::int64_t max_length = 0;  // tokens kept

  /// One sentence for the user. Texts are numbered from 1 unless a name is passed.
  std::string text() const;
  std::string text(std::string_view name) const;
};

/// Several texts as one padded batch.
struct EncodedBatch {
  std::int64_t batch = 0;                 // B
  std::int64_t sequence = 0;              // S, the longest row
  std::vector<TokenId> ids;               // [B, S], the padding id after the end of a row
  std::vector<std::int32_t> mask;         // 1 for a token, 0 for padding
  std::vector<std::int64_t> lengths;      // [B]
  std::vector<TruncationNotice> notices;  // rows that were truncated

  /// `ids` and `mask` as I64, for graphs that take 64-bit indices.
  std::vector<std::int64_t> ids_i64() const { return {ids.begin(), ids.end()}; }
  std::vector<std::int64_t> mask_i64() const { return {mask.begin(), mask.end()}; }
};

/// How encode_batch truncates and pads.
struct BatchOptions {
  std::int64_t max_length = 0;       // tokens per row including special ones; 0 = no limit
  std::int64_t pad_to_multiple = 1;  // S is rounded up to this multiple, but never above max_length
  bool add_special_tokens = true;
};

/// The part at one position of the row of a text pair.
enum class PairPart : std::uint8_t { First, Second, Special };
struct PairPiece {
  PairPart part = PairPart::Special;
  TokenId id = 0;         // id of a special token
  std::int32_t type = 0;  // token type of all its tokens
};

/// Two texts as one row of T tokens.
struct EncodedPair {
  std::vector<TokenId> ids;         // [T]
  std::vector<std::int32_t> types;  // [T], token types: mostly 0 for the first text, 1 for the second
  std::int64_t num_tokens = 0;      // before truncation
};

/// Text to token ids and back. Immutable after loading, so one object serves any number of threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Token ids of one text, never truncated. The model's special tokens are added around it by default. Errors:
  /// InvalidArgument naming the byte position when `text` is not valid UTF-8.
  virtual std::vector<TokenId> encode(std::string_view text, bool add_special_tokens = true) const = 0;

  /// Text of ids as the model's decoder joins them; StreamDecoder returns the same text incrementally. Errors:
  /// InvalidArgument for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const;

  /// One more than the largest id.
  virtual std::int64_t vocab_size() const = 0;
  virtual std::optional<TokenId> token_to_id(std::string_view token) const = 0;
  /// The token with this id, or nothing for an unused id. Valid as long as the tokeniser.
  virtual std::optional<std::string_view> id_to_token(TokenId id) const = 0;

  /// Special tokens put before and after every text.
  virtual std::span<const TokenId> prefix_ids() const = 0;
  virtual std::span<const TokenId> suffix_ids() const = 0;
  virtual TokenId pad_id() const = 0;
  /// The row of a text pair. By default: the prefix, the first text and the suffix, all of type 0, then the second text
  /// and the suffix, of type 1. Errors: Unsupported where the tokeniser's file does not define pairs.
  virtual std::vector<PairPiece> pair_pieces() const;

  /// The steps from token texts to text.
  virtual const TokenDecoder& decoder() const = 0;
  /// The decoder's input for an id; nothing for a skipped special token. Errors: those of decode.
  virtual std::optional<std::string_view> decoded_piece(TokenId id, bool skip_special_tokens) const = 0;

  /// Ids of one text truncated to `max_length` (0 = no limit) by dropping its last tokens. Special tokens stay.
  /// `num_tokens`, if not null, receives the length before truncation.
  std::vector<TokenId> encode_truncated(std::string_view text, std::int64_t max_length, bool add_special_tokens = true,
                                        std::int64_t* num_tokens = nullptr) const;

  /// Two texts as one row, truncated to `max_length` (0 = no limit): last tokens of the longer text are dropped until
  /// both are equally long, then of both (`longest_first` of the Python package). Errors: those of encode;
  /// InvalidArgument for a limit that leaves no room for text; Unsupported for a tokeniser that does not define pairs.
  EncodedPair encode_pair(std::string_view first, std::string_view second, std::int64_t max_length = 0) const;
  /// The same for texts that are already encoded without special tokens.
  EncodedPair join_pair(std::span<const TokenId> first, std::span<const TokenId> second,
                        std::int64_t max_length = 0) const;

  /// Pads and truncates `texts` into one batch [B, S]. Errors: InvalidArgument for a limit that leaves no room for
  /// text; encode's errors with the index of the text.
  EncodedBatch encode_batch(std::span<const std::string> texts, const BatchOptions& options = {}) const;
};

/// Loads the tokeniser of a Hugging Face model folder: `tokenizer.json` if present, otherwise `vocab.txt` with
/// `tokenizer_config.json`. Padding and truncation settings in `tokenizer.json` are ignored; the caller decides them.
/// Errors: NotFound when the folder holds neither, and those of tokenizer_from_json.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder);

/// Reads a `tokenizer.json`: models BPE, Unigram and WordPiece with their normalisers, pre-tokenisers, post-processors
/// and decoders. Ids equal those of the Python package `tokenizers` (0.23). Errors: BadFile, Unsupported naming the
/// unknown component.
std::unique_ptr<Tokenizer> tokenizer_from_json(const JsonDocument& document);

/// Reads the tokeniser in a GGUF file (`tokenizer.ggml.*`): models gpt2 (byte-level BPE, with the patterns of `pre`),
/// llama (SentencePiece BPE by scores), bert, t5 (Unigram) and gemma4. Errors: BadFile naming the key, Unsupported
/// naming the unknown model or pre-tokeniser.
std::unique_ptr<Tokenizer> tokenizer_from_gguf(const GgufFile& file);

}  // namespace rlx
