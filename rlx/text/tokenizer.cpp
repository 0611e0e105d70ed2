// Batching, padding and truncation of all tokenisers, and loading from a model folder.
#include "rlx/text/tokenizer.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/tokenizer/decoder.h"
#include "rlx/text/wordpiece.h"

namespace rlx {

std::string TruncationNotice::text() const { return text(concat_text("text ", text_index + 1)); }

std::string TruncationNotice::text(std::string_view name) const {
  return concat_text(name, " has ", num_tokens, " tokens and was cut to the model's limit of ", max_length);
}

std::vector<TokenId> Tokenizer::encode_truncated(std::string_view text, std::int64_t max_length,
                                                 bool add_special_tokens, std::int64_t* num_tokens) const try {
  const std::size_t num_special = add_special_tokens ? prefix_ids().size() + suffix_ids().size() : 0;
  if (max_length < 0 || (max_length > 0 && static_cast<std::size_t>(max_length) <= num_special)) {
    throw Error(ErrorCode::InvalidArgument,
                concat_text("a limit of ", max_length, " tokens leaves no room for text besides ", num_special,
                            " special tokens"),
                "use a larger limit, or 0 for none");
  }
  std::vector<TokenId> ids = encode(text, add_special_tokens);
  if (num_tokens != nullptr) *num_tokens = static_cast<std::int64_t>(ids.size());
  const std::size_t limit = static_cast<std::size_t>(max_length);
  if (limit == 0 || ids.size() <= limit) return ids;
  const std::size_t tail = add_special_tokens ? suffix_ids().size() : 0;
  std::copy(ids.end() - static_cast<std::ptrdiff_t>(tail), ids.end(),
            ids.begin() + static_cast<std::ptrdiff_t>(limit - tail));
  ids.resize(limit);
  return ids;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Tokenizer::encode_truncated");
}

std::vector<PairPiece> Tokenizer::pair_pieces() const try {
  std::vector<PairPiece> out;
  const auto special = [&](std::span<const TokenId> ids, std::int32_t type) {
    for (const TokenId id : ids) out.push_back({PairPart::Special, id, type});
  };
  special(prefix_ids(), 0);
  out.push_back({PairPart::First, 0, 0});
  special(suffix_ids(), 0);
  out.push_back({PairPart::Second, 0, 1});
  special(suffix_ids(), 1);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Tokenizer::pair_pieces");
}

EncodedPair Tokenizer::join_pair(std::span<const TokenId> first, std::span<const TokenId> second,
                                 std::int64_t max_length) const try {
  const std::vector<PairPiece> pieces = pair_pieces();
  const auto num_special = static_cast<std::size_t>(
      std::count_if(pieces.begin(), pieces.end(), [](const PairPiece& p) { return p.part == PairPart::Special; }));
  if (max_length < 0 || (max_length > 0 && static_cast<std::size_t>(max_length) <= num_special))
    throw Error(ErrorCode::InvalidArgument,
                concat_text("a limit of ", max_length, " tokens leaves no room for two texts besides ", num_special,
                            " special tokens"),
                "use a larger limit, or 0 for none");
  EncodedPair out;
  out.num_tokens = static_cast<std::int64_t>(first.size() + second.size() + num_special);
  const std::size_t room = static_cast<std::size_t>(max_length) - num_special;
  if (max_length > 0 && first.size() + second.size() > room) {
    std::size_t shorter = std::min(first.size(), second.size());
    // Only the longer text is truncated, unless both are longer than half of the room.
    std::size_t longer = shorter > room ? shorter : std::max(shorter, room - shorter);
    if (shorter + longer > room) shorter = room / 2, longer = room - shorter;
    const bool swapped = first.size() > second.size();
    first = first.first(swapped ? longer : shorter);
    second = second.first(swapped ? shorter : longer);
  }
  for (const PairPiece& piece : pieces) {
    const std::span<const TokenId> ids = piece.part == PairPart::First    ? first
                                         : piece.part == PairPart::Second ? second
                                                                          : std::span(&piece.id, 1);
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.types.resize(out.ids.size(), piece.type);
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Tokenizer::join_pair");
}

EncodedPair Tokenizer::encode_pair(std::string_view first, std::string_view second, std::int64_t max_length) const try {
  return join_pair(encode(first, false), encode(second, false), max_length);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Tokenizer::encode_pair");
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const try {
  std::string out;
  TokenDecoder::Run run(decoder());
  for (const TokenId id : ids) {
    if (const std::optional<std::string_view> piece = decoded_piece(id, skip_special_tokens)) run.push(*piece, out);
  }
  run.finish(out);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Tokenizer::decode");
}

EncodedBatch Tokenizer::encode_batch(std::span<const std::string> texts, const BatchOptions& options) const try {
  constexpr std::int64_t kMaxMultiple = std::int64_t{1} << 31;
  if (options.pad_to_multiple < 1 || options.pad_to_multiple > kMaxMultiple) {
    throw Error(ErrorCode::InvalidArgument,
                concat_text("pad_to_multiple must be 1 to ", kMaxMultiple, ", got ", options.pad_to_multiple));
  }
  EncodedBatch out;
  std::vector<std::vector<TokenId>> rows;
  rows.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::int64_t num_tokens = 0;
    try {
      rows.push_back(encode_truncated(texts[i], options.max_length, options.add_special_tokens, &num_tokens));
    } catch (const Error& e) {
      Diagnostic d = e.diagnostic();
      d.message = concat_text("text ", i + 1, " of ", texts.size(), ": ", d.message);
      throw Error(std::move(d));
    }
    const std::int64_t length = static_cast<std::int64_t>(rows.back().size());
    if (num_tokens > length) out.notices.push_back({i, num_tokens, length});
    out.lengths.push_back(length);
    out.sequence = std::max(out.sequence, length);
  }
  out.batch = static_cast<std::int64_t>(texts.size());
  const std::int64_t rounded =
      (out.sequence + options.pad_to_multiple - 1) / options.pad_to_multiple * options.pad_to_multiple;
  out.sequence = options.max_length > 0 ? std::max(out.sequence, std::min(rounded, options.max_length)) : rounded;
  const std::size_t width = static_cast<std::size_t>(out.sequence);
  out.ids.assign(rows.size() * width, pad_id());
  out.mask.assign(rows.size() * width, 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), out.ids.begin() + static_cast<std::ptrdiff_t>(i * width));
    std::fill_n(out.mask.begin() + static_cast<std::ptrdiff_t>(i * width), rows[i].size(), 1);
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Tokenizer::encode_batch");
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder) try {
  const std::string json_path = join_path(folder, "tokenizer.json");
  const std::string vocab_path = join_path(folder, "vocab.txt");
  if (has_file(json_path)) {
    return tokenizer_from_json(JsonDocument::read(json_path));
  }
  if (!has_file(vocab_path)) {
    throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" has neither tokenizer.json nor vocab.txt"),
                "give the folder of a Hugging Face model, the one with config.json in it");
  }
  WordPieceOptions options;
  const std::string config_path = join_path(folder, "tokenizer_config.json");
  if (has_file(config_path)) {
    const JsonDocument config = JsonDocument::read(config_path);
    options = WordPieceTokenizer::options_from_config(config.root_object());
  }
  return std::make_unique<WordPieceTokenizer>(
      WordPieceTokenizer::from_vocab(read_file(vocab_path), vocab_path, options));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("load_tokenizer");
}

}  // namespace rlx
