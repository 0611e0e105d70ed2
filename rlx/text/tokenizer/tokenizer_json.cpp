// Reads a tokenizer.json into parts: the model by its type, and its components.
#include <algorithm>
#include <cmath>

#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/tokenizer/bpe.h"
#include "rlx/text/tokenizer/component_json.h"
#include "rlx/text/tokenizer/json_parts.h"
#include "rlx/text/tokenizer/merge_list.h"
#include "rlx/text/tokenizer/unigram.h"
#include "rlx/text/tokenizer/vocabulary_json.h"
#include "rlx/text/tokenizer/wordpiece_model.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

constexpr std::size_t kLongestPiece = 65536;  // bytes; searches walk that far at each character

TokenId require_token(const Vocabulary& vocabulary, std::string_view content, const std::string& source) {
  if (const std::optional<TokenId> id = vocabulary.find(content)) return *id;
  bad_tokenizer_file(source, concat_text("the vocabulary lacks the token \"", content, "\""));
}

// The two sides of a merge: ["a", "b"] or "a b".
std::pair<std::string_view, std::string_view> sides_of(const JsonValue& merge, std::size_t rank,
                                                       const std::string& source) {
  std::string_view sides[2];
  if (!merge.is_string()) {
    merge.read_strings("merges", sides);
    return {sides[0], sides[1]};
  }
  const std::string_view line = merge.as_string("merges");
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    bad_tokenizer_file(source, concat_text("merge ", rank, " is \"", text_start(line),
                                           "\", expected two tokens with a space between"));
  }
  return {line.substr(0, space), line.substr(space + 1)};
}

MergeTable read_merges(const JsonValue& model, const std::string& source, const Vocabulary& vocabulary,
                       std::size_t continuation_bytes) {
  const std::vector<JsonValue> merges = model.at("merges").elements("merges");
  MergeList out(vocabulary, merges.size(), continuation_bytes,
                [&](std::size_t rank, std::string_view left, std::string_view right, std::string_view lacking) {
                  bad_tokenizer_file(
                      source, concat_text("merge ", rank, " of \"", text_start(left), "\" and \"", text_start(right),
                                          "\": the vocabulary lacks \"", text_start(lacking), "\""));
                });
  for (const JsonValue& merge : merges) {
    if (merge.is_string() && merge.as_string("merges").starts_with("#version")) continue;
    const auto [left, right] = sides_of(merge, out.size(), source);
    out.add(left, right);
  }
  return out.finish();
}

std::unique_ptr<WordModel> read_bpe(const JsonValue& model, const std::string& source, const Vocabulary& vocabulary,
                                    bool whole_texts) {
  if (const std::optional<JsonValue> dropout = part_of(model, "dropout")) {
    if (dropout->as_number("dropout") != 0) {
      throw Error(
          ErrorCode::Unsupported,
          concat_text(source, ": the model drops merges at random (dropout ", dropout->as_number("dropout"), ")"),
          "set dropout to null: it is used only in training");
    }
  }
  BpeOptions options;
  if (const std::optional<JsonValue> unknown = part_of(model, "unk_token"))
    options.unknown = require_token(vocabulary, unknown->as_string("unk_token"), source);
  options.fuse_unknown = model.get_bool("fuse_unk", false);
  options.byte_fallback = model.get_bool("byte_fallback", false);
  options.ignore_merges = model.get_bool("ignore_merges", false);
  options.continuation = model.get_string("continuing_subword_prefix", "");
  options.end_of_word = model.get_string("end_of_word_suffix", "");
  options.whole_texts = whole_texts;
  MergeTable merges = read_merges(model, source, vocabulary, options.continuation.size());
  return std::make_unique<BpeModel>(vocabulary, std::move(merges), std::move(options));
}

// A Unigram vocabulary is a list of pairs whose index is the id. Of equal pieces the last one is found.
std::unique_ptr<WordModel> read_unigram(const JsonValue& model, const std::string& source, std::size_t num_tokens,
                                        Vocabulary& vocabulary) {
  const std::vector<JsonValue> pieces = model.at("vocab").elements("vocab");
  if (pieces.empty()) bad_tokenizer_file(source, "the vocabulary is empty");
  vocabulary.reserve(num_tokens, 0);
  std::vector<double> scores;
  scores.reserve(pieces.size());
  for (const JsonValue& piece : pieces) {
    const std::vector<JsonValue> pair = piece.elements("vocab");
    if (pair.size() != 2)
      bad_tokenizer_file(source, concat_text("piece ", scores.size(), " must be a pair of text and score"));
    const double score = pair[1].as_number("score");
    if (!std::isfinite(score))
      bad_tokenizer_file(source, concat_text("the score of piece ", scores.size(), " is not finite"));
    vocabulary.add(pair[0].as_string("piece"), static_cast<TokenId>(scores.size()));
    scores.push_back(score);
  }
  std::optional<TokenId> unknown;
  if (const std::optional<JsonValue> id = part_of(model, "unk_id")) {
    const std::int64_t value = id->as_int("unk_id");
    if (value < 0 || value >= static_cast<std::int64_t>(scores.size()))
      bad_tokenizer_file(source, concat_text("unk_id is ", value, " of ", scores.size(), " pieces"));
    unknown = static_cast<TokenId>(value);
  }
  return std::make_unique<UnigramModel>(vocabulary, std::move(scores), unknown, model.get_bool("byte_fallback", false));
}

std::unique_ptr<WordModel> read_wordpiece(const JsonValue& model, const std::string& source,
                                          const Vocabulary& vocabulary) {
  const TokenId unknown = require_token(vocabulary, model.get_string("unk_token", "[UNK]"), source);
  return std::make_unique<WordPieceModel>(vocabulary, unknown,
                                          std::string(model.get_string("continuing_subword_prefix", "##")),
                                          model.get_int("max_input_chars_per_word", 100));
}

}  // namespace

TokenizerParts read_tokenizer_json(const JsonDocument& document) {
  const std::string& source = document.source();
  const JsonValue root = document.root();
  const JsonValue model = root.at("model");
  // Files of early versions have no type. Each model has a key of its own.
  std::string_view type = model.get_string("type", "");
  if (type.empty()) type = model.find("merges") ? "BPE" : model.find("unk_id") ? "Unigram" : "WordPiece";
  const bool known = type == "BPE" || type == "Unigram" || type == "WordPiece";
  if (!known) unknown_component(source, "model", type);

  TokenizerParts parts;
  Vocabulary& vocabulary = *parts.vocabulary;
  const std::size_t num_tokens = count_tokens(root);
  if (const std::optional<JsonValue> part = part_of(root, "normalizer"))
    read_normalizer(*part, source, parts.normalizer);
  const std::optional<JsonValue> splitter = part_of(root, "pre_tokenizer");
  if (splitter) read_pre_tokenizer(*splitter, source, parts.pre_tokenizer);
  if (type == "Unigram") {
    parts.model = read_unigram(model, source, num_tokens, vocabulary);
  } else {
    read_vocabulary(model, num_tokens, source, vocabulary);
  }
  if (vocabulary.longest() > kLongestPiece) {
    bad_tokenizer_file(source,
                       concat_text("a token has ", vocabulary.longest(), " bytes, expected at most ", kLongestPiece));
  }
  if (type == "BPE") {
    const bool whole_texts = !splitter || model.get_bool("byte_fallback", false);
    parts.model = read_bpe(model, source, vocabulary, whole_texts);
  } else if (type == "WordPiece") {
    parts.model = read_wordpiece(model, source, vocabulary);
  }
  parts.added = read_added_tokens(root, num_tokens, source, vocabulary);
  if (const std::optional<JsonValue> decoder = part_of(root, "decoder")) {
    read_decoder(*decoder, source, parts.decoder);
  } else {
    parts.decoder.add(DecoderStep());  // joins tokens with spaces
  }
  read_post_processor(root, source, parts);
  parts.pad = find_padding(root, parts);
  return parts;
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const JsonDocument& document) try {
  return std::make_unique<PipelineTokenizer>(read_tokenizer_json(document));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("tokenizer_from_json");
}

}  // namespace rlx
