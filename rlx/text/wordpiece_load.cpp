// Reading a WordPiece tokeniser from vocab.txt or tokenizer.json.
#include <algorithm>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/ir/utf8.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/wordpiece.h"

namespace rlx {
namespace {

[[noreturn]] void bad_file(const std::string& source, const std::string& message, std::string hint = {}) {
  throw Error(ErrorCode::BadFile, concat_text(source, ": ", message), std::move(hint));
}

[[noreturn]] void unsupported(const std::string& source, std::string_view part, std::string_view type) {
  throw Error(ErrorCode::Unsupported,
              concat_text(source, ": the ", part, " \"", type, "\" is not one of BERT's WordPiece tokeniser"),
              "this version reads WordPiece tokenisers of BERT models only");
}

// The value of `key` unless it is missing or null.
std::optional<JsonValue> part_of(const JsonValue& object, std::string_view key) {
  std::optional<JsonValue> part = object.find(key);
  if (part && part->is_null()) return std::nullopt;
  return part;
}

// Ids are dense in real files; a wild one would make the table by id enormous.
void require_id(std::int64_t id, std::size_t num_tokens, std::string_view token, const std::string& source) {
  const std::int64_t limit = static_cast<std::int64_t>(num_tokens) * 4 + 65536;
  if (id < 0 || id >= limit) {
    bad_file(source, concat_text("token \"", token, "\" has the id ", id, ", expected 0 to ", limit - 1,
                                 " for a vocabulary of ", num_tokens, " tokens"));
  }
}

void read_normalizer(const JsonValue& root, const std::string& source, WordPieceOptions& options) {
  const std::optional<JsonValue> normalizer = part_of(root, "normalizer");
  if (!normalizer) {
    options.clean_text = options.handle_chinese_chars = options.strip_accents = options.lowercase = false;
    return;
  }
  const std::string_view type = normalizer->get_string("type");
  if (type != "BertNormalizer") unsupported(source, "normalizer", type);
  options.clean_text = normalizer->get_bool("clean_text", true);
  options.handle_chinese_chars = normalizer->get_bool("handle_chinese_chars", true);
  options.lowercase = normalizer->get_bool("lowercase", true);
  options.strip_accents = normalizer->get_bool("strip_accents", options.lowercase);  // null: as lowercase
}

void read_template(const JsonValue& processor, const std::string& source, std::vector<TokenId>& prefix,
                   std::vector<TokenId>& suffix) {
  const JsonValue specials = processor.at("special_tokens");
  bool seen_text = false;
  for (const JsonValue& piece : processor.at("single").elements("single")) {
    if (piece.find("Sequence")) {
      if (seen_text) bad_file(source, "the post_processor repeats the text");
      seen_text = true;
      continue;
    }
    const std::string_view name = piece.at("SpecialToken").get_string("id");
    for (const JsonValue& id : specials.at(name).at("ids").elements("ids")) {
      const std::int64_t value = id.as_int("ids");
      if (value < 0 || value > 0x7fffffff)
        bad_file(source, concat_text("the post_processor's id ", value, " is out of range"));
      (seen_text ? suffix : prefix).push_back(static_cast<TokenId>(value));
    }
  }
  if (!seen_text) bad_file(source, "the post_processor leaves the text out");
}

// A pair like ["[SEP]", 102]; only the name counts.
std::string_view name_of_pair(const JsonValue& processor, std::string_view key, const std::string& source) {
  const std::vector<JsonValue> pair = processor.at(key).elements(key);
  if (pair.size() != 2) bad_file(source, concat_text("\"", key, "\" must be a pair of token and id"));
  return pair[0].as_string(key);
}

// A special token's name: a string, or an object with "content".
std::string token_name(const JsonValue& config, std::string_view key, const std::string& fallback) {
  const std::optional<JsonValue> value = part_of(config, key);
  if (!value) return fallback;
  return std::string(value->is_object() ? value->get_string("content") : value->as_string(key));
}

}  // namespace

TokenId WordPieceTokenizer::require_token(const std::string& content, const std::string& source) const {
  if (const std::optional<TokenId> id = token_to_id(content)) return *id;
  bad_file(source, concat_text("the vocabulary lacks the token \"", content, "\""),
           "check that this is the vocabulary of a BERT model");
}

void WordPieceTokenizer::finish(const std::string& source) {
  unk_ = require_token(options_.unk_token, source);
  continuation_state_ = Vocabulary::hash_text(Vocabulary::kHashSeed, options_.continuation);
}

WordPieceTokenizer WordPieceTokenizer::from_vocab(std::string text, const std::string& source,
                                                  const WordPieceOptions& options) try {
  if (const std::optional<std::size_t> bad = find_invalid_utf8(text)) {
    bad_file(source, concat_text("not a vocabulary: invalid UTF-8 at byte ", *bad));
  }
  WordPieceTokenizer t;
  t.options_ = options;
  t.vocabulary_.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1, text.size());
  TokenId id = 0;
  for (std::size_t at = 0; at < text.size(); ++id) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    t.vocabulary_.add(line, id);
    at = end + 1;
  }
  if (id == 0) bad_file(source, "the vocabulary is empty");
  for (const std::string& name :
       {options.unk_token, options.sep_token, options.pad_token, options.cls_token, options.mask_token}) {
    const std::optional<TokenId> known = t.vocabulary_.find(name);
    const bool twice =
        std::any_of(t.added_.begin(), t.added_.end(), [&](const AddedToken& a) { return a.content == name; });
    if (name.empty() || !known || twice) continue;
    AddedToken added;
    added.content = name;
    added.id = *known;
    added.special = true;
    t.added_.push_back(std::move(added));
  }
  t.finish(source);
  t.prefix_ = {t.require_token(options.cls_token, source)};
  t.suffix_ = {t.require_token(options.sep_token, source)};
  t.pad_ = t.require_token(options.pad_token, source);
  return t;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("WordPieceTokenizer::from_vocab");
}

WordPieceTokenizer WordPieceTokenizer::from_json(const JsonDocument& document) try {
  const std::string& source = document.source();
  const JsonValue root = document.root();
  WordPieceTokenizer t;
  WordPieceOptions& options = t.options_;

  const JsonValue model = root.at("model");
  // Files of early versions name no type; the prefix key belongs to WordPiece alone.
  const std::string_view type =
      model.get_string("type", model.find("continuing_subword_prefix") ? "WordPiece" : "unknown");
  if (type != "WordPiece") unsupported(source, "model", type);
  options.unk_token = model.get_string("unk_token", "[UNK]");
  options.continuation = model.get_string("continuing_subword_prefix", "##");
  options.max_chars_per_word = model.get_int("max_input_chars_per_word", 100);
  read_normalizer(root, source, options);
  const std::optional<JsonValue> splitter = part_of(root, "pre_tokenizer");
  const std::string_view splitter_type = splitter ? splitter->get_string("type") : "null";
  if (splitter_type != "BertPreTokenizer") unsupported(source, "pre_tokenizer", splitter_type);
  const std::optional<JsonValue> decoder = part_of(root, "decoder");
  if (decoder && decoder->get_string("type") != "WordPiece")
    unsupported(source, "decoder", decoder->get_string("type"));
  options.cleanup_decoded = decoder ? decoder->get_bool("cleanup", true) : true;

  const auto vocabulary = model.at("vocab").members("vocab");
  if (vocabulary.empty()) bad_file(source, "the vocabulary is empty");
  std::vector<JsonValue> added;
  if (const std::optional<JsonValue> list = part_of(root, "added_tokens")) added = list->elements("added_tokens");
  const std::size_t num_tokens = vocabulary.size() + added.size();
  std::size_t num_bytes = 0;
  for (const auto& [token, id] : vocabulary) num_bytes += token.size();
  t.vocabulary_.reserve(num_tokens, num_bytes);
  for (const auto& [token, value] : vocabulary) {
    const std::int64_t id = value.as_int(token);
    require_id(id, num_tokens, token, source);
    if (t.vocabulary_.has(static_cast<TokenId>(id))) {
      bad_file(source, concat_text("tokens \"", t.vocabulary_.token(static_cast<TokenId>(id)), "\" and \"", token,
                                   "\" share the id ", id));
    }
    t.vocabulary_.add(token, static_cast<TokenId>(id));
  }
  for (const JsonValue& entry : added) {
    AddedToken token;
    token.content = entry.get_string("content");
    const std::int64_t id = entry.get_int("id");
    if (token.content.empty()) bad_file(source, concat_text("the added token with the id ", id, " is empty"));
    require_id(id, num_tokens, token.content, source);
    token.id = static_cast<TokenId>(id);
    token.special = entry.get_bool("special", false);
    token.single_word = entry.get_bool("single_word", false);
    token.lstrip = entry.get_bool("lstrip", false);
    token.rstrip = entry.get_bool("rstrip", false);
    token.normalized = entry.get_bool("normalized", !token.special);
    if (t.vocabulary_.has(token.id) && t.vocabulary_.token(token.id) != token.content) {
      bad_file(source, concat_text("added token \"", token.content, "\" has the id ", id, " of the token \"",
                                   t.vocabulary_.token(token.id), "\""));
    }
    const std::optional<TokenId> known = t.token_to_id(token.content);
    if (known && *known != token.id) {
      bad_file(source, concat_text("added token \"", token.content, "\" has the id ", id,
                                   ", but the vocabulary gives it ", *known));
    }
    if (!t.vocabulary_.has(token.id)) t.vocabulary_.add_hidden(token.content, token.id);
    t.added_.push_back(std::move(token));
  }
  t.finish(source);

  if (const std::optional<JsonValue> processor = part_of(root, "post_processor")) {
    const std::string_view kind = processor->get_string("type");
    if (kind == "TemplateProcessing") {
      read_template(*processor, source, t.prefix_, t.suffix_);
    } else if (kind == "BertProcessing") {
      t.prefix_ = {t.require_token(std::string(name_of_pair(*processor, "cls", source)), source)};
      t.suffix_ = {t.require_token(std::string(name_of_pair(*processor, "sep", source)), source)};
    } else {
      unsupported(source, "post_processor", kind);
    }
  }
  for (const std::vector<TokenId>* list : {&t.prefix_, &t.suffix_}) {
    for (const TokenId id : *list) {
      if (!t.vocabulary_.has(id))
        bad_file(source, concat_text("the post_processor adds the id ", id, ", which no token has"));
    }
  }
  // Length and place of the padding are the caller's; the token to pad with is a fact of the model.
  const std::optional<JsonValue> padding = part_of(root, "padding");
  if (padding) options.pad_token = padding->get_string("pad_token", options.pad_token);
  t.pad_ = t.token_to_id(options.pad_token).value_or(0);
  return t;
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

}  // namespace rlx
