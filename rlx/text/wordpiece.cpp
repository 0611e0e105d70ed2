// BERT's tokeniser as a pipeline: its normaliser, its word splitting, the WordPiece search. Where the paper and the
// Python package `tokenizers` differ, ids follow the package (tests/parity/wordpiece_parity.py).
#include "rlx/text/wordpiece.h"

#include <algorithm>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/foreign_file.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/tokenizer/json_parts.h"
#include "rlx/text/tokenizer/pipeline.h"
#include "rlx/text/tokenizer/wordpiece_model.h"

namespace rlx {
namespace {

[[noreturn]] void not_berts(const std::string& source, std::string_view part, std::string_view type) {
  throw Error(ErrorCode::Unsupported,
              concat_text(source, ": the ", part, " \"", type, "\" is not supported by WordPieceTokenizer"),
              "use tokenizer_from_json, which supports all kinds");
}

// Checks the type of a component, and returns the component if present.
std::string_view require_type(const JsonValue& root, std::string_view part,
                              std::initializer_list<std::string_view> types, bool may_be_absent,
                              const std::string& source) {
  const std::optional<JsonValue> value = part_of(root, part);
  if (!value) {
    if (!may_be_absent) not_berts(source, part, "null");
    return {};
  }
  const std::string_view type = value->get_string("type");
  if (std::find(types.begin(), types.end(), type) == types.end()) not_berts(source, part, type);
  return type;
}

// A special token's name: a string, or an object with "content".
std::string token_name(const JsonValue& config, std::string_view key, const std::string& fallback) {
  const std::optional<JsonValue> value = part_of(config, key);
  if (!value) return fallback;
  return std::string(value->is_object() ? value->get_string("content") : value->as_string(key));
}

void read_options(const JsonValue& root, WordPieceOptions& options) {
  const JsonValue model = root.at("model");
  options.unk_token = model.get_string("unk_token", "[UNK]");
  options.continuation = model.get_string("continuing_subword_prefix", "##");
  options.max_chars_per_word = model.get_int("max_input_chars_per_word", 100);
  const std::optional<JsonValue> normalizer = part_of(root, "normalizer");
  if (normalizer) {
    options.clean_text = normalizer->get_bool("clean_text", true);
    options.handle_chinese_chars = normalizer->get_bool("handle_chinese_chars", true);
    options.lowercase = normalizer->get_bool("lowercase", true);
    options.strip_accents = normalizer->get_bool("strip_accents", options.lowercase);  // null: as lowercase
  } else {
    options.clean_text = options.handle_chinese_chars = options.strip_accents = options.lowercase = false;
  }
  const std::optional<JsonValue> decoder = part_of(root, "decoder"), padding = part_of(root, "padding");
  if (decoder) options.cleanup_decoded = decoder->get_bool("cleanup", true);
  if (padding) options.pad_token = padding->get_string("pad_token", options.pad_token);
}

// Adds the parts of BERT's tokeniser besides vocabulary and special tokens.
void add_bert_parts(const WordPieceOptions& options, TokenizerParts& parts) {
  NormalizerStep normalizer;
  normalizer.kind = NormalizerStep::Kind::Bert;
  BertNormalizerOptions steps;
  steps.clean_text = options.clean_text;
  steps.handle_chinese_chars = options.handle_chinese_chars;
  steps.strip_accents = options.strip_accents;
  steps.lowercase = options.lowercase;
  normalizer.bert = std::make_shared<const BertNormalizer>(steps);
  parts.normalizer.add(std::move(normalizer));
  PreTokenizerStep splitter;
  splitter.kind = PreTokenizerStep::Kind::Bert;
  parts.pre_tokenizer.add(std::move(splitter));
  DecoderStep decoder;
  decoder.kind = DecoderStep::Kind::WordPiece;
  decoder.pattern = options.continuation;
  decoder.flag = options.cleanup_decoded;
  parts.decoder.add(std::move(decoder));
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(WordPieceOptions options, std::unique_ptr<PipelineTokenizer> pipeline)
    : options_(std::move(options)), pipeline_(std::move(pipeline)) {}
WordPieceTokenizer::~WordPieceTokenizer() = default;
WordPieceTokenizer::WordPieceTokenizer(WordPieceTokenizer&&) noexcept = default;

const PipelineTokenizer& WordPieceTokenizer::pipeline() const {
  if (!pipeline_) throw Error(ErrorCode::InvalidArgument, "a WordPieceTokenizer was used after it was moved from");
  return *pipeline_;
}

WordPieceTokenizer WordPieceTokenizer::from_vocab(std::string text, const std::string& source,
                                                  const WordPieceOptions& options) try {
  if (const std::optional<std::size_t> bad = find_invalid_utf8(text)) {
    bad_tokenizer_file(source, concat_text("not a vocabulary: invalid UTF-8 at byte ", *bad));
  }
  TokenizerParts parts;
  Vocabulary& vocabulary = *parts.vocabulary;
  vocabulary.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1, text.size());
  TokenId id = 0;
  for (std::size_t at = text.size() - without_bom(text).size(); at < text.size(); ++id) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    vocabulary.add(line, id);
    at = end + 1;
  }
  if (id == 0) bad_tokenizer_file(source, "the vocabulary is empty");
  const auto require = [&](const std::string& content) {
    if (const std::optional<TokenId> known = vocabulary.find(content)) return *known;
    bad_tokenizer_file(source, concat_text("the vocabulary lacks the token \"", content, "\""),
                       "check that this is the vocabulary of a BERT model");
  };
  const TokenId unknown = require(options.unk_token);
  for (const std::string& name :
       {options.unk_token, options.sep_token, options.pad_token, options.cls_token, options.mask_token}) {
    const std::optional<TokenId> known = vocabulary.find(name);
    const bool twice =
        std::any_of(parts.added.begin(), parts.added.end(), [&](const AddedToken& a) { return a.content == name; });
    if (name.empty() || !known || twice) continue;
    AddedToken added;
    added.content = name;
    added.id = *known;
    added.special = true;
    parts.added.push_back(std::move(added));
  }
  parts.prefix = {require(options.cls_token)};
  parts.suffix = {require(options.sep_token)};
  parts.pad = require(options.pad_token);
  parts.model = std::make_unique<WordPieceModel>(vocabulary, unknown, options.continuation, options.max_chars_per_word);
  add_bert_parts(options, parts);
  return WordPieceTokenizer(options, std::make_unique<PipelineTokenizer>(std::move(parts)));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("WordPieceTokenizer::from_vocab");
}

WordPieceTokenizer WordPieceTokenizer::from_json(const JsonDocument& document) try {
  const std::string& source = document.source();
  const JsonValue root = document.root(), model = root.at("model");
  // Files of early versions have no type. The prefix key identifies WordPiece.
  const std::string_view type =
      model.get_string("type", model.find("continuing_subword_prefix") ? "WordPiece" : "unknown");
  if (type != "WordPiece") not_berts(source, "model", type);
  require_type(root, "normalizer", {"BertNormalizer"}, true, source);
  require_type(root, "pre_tokenizer", {"BertPreTokenizer"}, false, source);
  require_type(root, "post_processor", {"TemplateProcessing", "BertProcessing"}, true, source);
  const bool has_decoder = !require_type(root, "decoder", {"WordPiece"}, true, source).empty();
  WordPieceOptions options;
  read_options(root, options);
  TokenizerParts parts = read_tokenizer_json(document);
  if (!has_decoder) {
    parts.decoder = TokenDecoder();
    DecoderStep step;
    step.kind = DecoderStep::Kind::WordPiece;
    step.pattern = options.continuation;
    step.flag = true;
    parts.decoder.add(std::move(step));
  }
  return WordPieceTokenizer(std::move(options), std::make_unique<PipelineTokenizer>(std::move(parts)));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("WordPieceTokenizer::from_json");
}

WordPieceOptions WordPieceTokenizer::options_from_config(const JsonValue& config) {
  WordPieceOptions options;
  options.lowercase = config.get_bool("do_lower_case", true);
  options.strip_accents = config.get_bool("strip_accents", options.lowercase);
  options.handle_chinese_chars = config.get_bool("tokenize_chinese_chars", true);
  options.unk_token = token_name(config, "unk_token", options.unk_token);
  options.cls_token = token_name(config, "cls_token", options.cls_token);
  options.sep_token = token_name(config, "sep_token", options.sep_token);
  options.pad_token = token_name(config, "pad_token", options.pad_token);
  options.mask_token = token_name(config, "mask_token", options.mask_token);
  return options;
}

std::vector<TokenId> WordPieceTokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return pipeline().encode(text, add_special_tokens);
}
std::int64_t WordPieceTokenizer::vocab_size() const { return pipeline().vocab_size(); }
std::optional<TokenId> WordPieceTokenizer::token_to_id(std::string_view token) const {
  return pipeline().token_to_id(token);
}
std::optional<std::string_view> WordPieceTokenizer::id_to_token(TokenId id) const { return pipeline().id_to_token(id); }
std::span<const TokenId> WordPieceTokenizer::prefix_ids() const { return pipeline().prefix_ids(); }
std::span<const TokenId> WordPieceTokenizer::suffix_ids() const { return pipeline().suffix_ids(); }
TokenId WordPieceTokenizer::pad_id() const { return pipeline().pad_id(); }
std::vector<PairPiece> WordPieceTokenizer::pair_pieces() const { return pipeline().pair_pieces(); }
const TokenDecoder& WordPieceTokenizer::decoder() const { return pipeline().decoder(); }
std::optional<std::string_view> WordPieceTokenizer::decoded_piece(TokenId id, bool skip_special_tokens) const {
  return pipeline().decoded_piece(id, skip_special_tokens);
}
const std::vector<AddedToken>& WordPieceTokenizer::added_tokens() const { return pipeline().added_tokens(); }
std::string WordPieceTokenizer::normalize(std::string_view text) const { return pipeline().normalize(text); }

}  // namespace rlx
