// Vocabularies, added tokens and post-processors. Every id is checked before it sizes a table.
#include "rlx/text/tokenizer/vocabulary_json.h"

#include <algorithm>
#include <unordered_map>

#include "rlx/text/tokenizer/json_parts.h"

namespace rlx {
namespace {

// The id of a post-processor's special token, by its content.
TokenId id_of(const TokenizerParts& parts, std::string_view content, const std::string& source) {
  for (const AddedToken& added : parts.added)
    if (added.content == content) return added.id;
  if (const std::optional<TokenId> id = parts.vocabulary->find(content)) return *id;
  bad_tokenizer_file(source, concat_text("the vocabulary lacks the token \"", content, "\""),
                     "the post_processor adds it to texts");
}

// Reads a pair like ["[SEP]", 102]; the id is ignored.
std::string_view name_of_pair(const JsonValue& processor, std::string_view key, const std::string& source) {
  const std::vector<JsonValue> pair = processor.at(key).elements(key);
  if (pair.size() != 2) bad_tokenizer_file(source, concat_text("\"", key, "\" must be a pair of token and id"));
  return pair[0].as_string(key);
}

// The ids of a template's special token.
std::vector<TokenId> template_ids(const JsonValue& processor, std::string_view name, const std::string& source) {
  const std::optional<JsonValue> specials = part_of(processor, "special_tokens");
  if (!specials)
    bad_tokenizer_file(source, concat_text("the post_processor names \"", name, "\", but there is no special_tokens"));
  std::vector<TokenId> out;
  for (const JsonValue& id : specials->at(name).at("ids").elements("ids")) {
    const std::int64_t value = id.as_int("ids");
    if (value < 0 || value > 0x7fffffff)
      bad_tokenizer_file(source, concat_text("the post_processor's id ", value, " is out of range"));
    out.push_back(static_cast<TokenId>(value));
  }
  return out;
}

void read_template(const JsonValue& processor, const std::string& source, std::vector<TokenId>& prefix,
                   std::vector<TokenId>& suffix) {
  bool seen_text = false;
  for (const JsonValue& piece : processor.at("single").elements("single")) {
    if (piece.find("Sequence")) {
      if (seen_text) bad_tokenizer_file(source, "the post_processor has the text twice");
      seen_text = true;
      continue;
    }
    const std::string_view name = piece.at("SpecialToken").get_string("id");
    std::vector<TokenId>& to = seen_text ? suffix : prefix;
    for (const TokenId id : template_ids(processor, name, source)) to.push_back(id);
  }
  if (!seen_text) bad_tokenizer_file(source, "the post_processor does not have the text");
}

// Reads the template of text pairs. An unusable template is an error only when pairs are requested.
void read_pair_template(const JsonValue& processor, const std::string& source, TokenizerParts& parts) {
  const std::optional<JsonValue> pair = part_of(processor, "pair");
  if (!pair) return;
  int texts[2] = {0, 0};
  for (const JsonValue& piece : pair->elements("pair")) {
    const std::optional<JsonValue> sequence = piece.find("Sequence");
    const JsonValue what = sequence ? *sequence : piece.at("SpecialToken");
    const std::string_view id = what.get_string("id");
    const auto type = static_cast<std::int32_t>(std::clamp<std::int64_t>(what.get_int("type_id", 0), 0, 1 << 20));
    if (!sequence) {
      for (const TokenId token : template_ids(processor, id, source))
        parts.pair.push_back({PairPart::Special, token, type});
      continue;
    }
    const bool second = id == "B";
    ++texts[second];
    parts.pair.push_back({second ? PairPart::Second : PairPart::First, 0, type});
  }
  if (texts[0] != 1 || texts[1] != 1)
    parts.no_pairs = concat_text(source, ": the template for pairs must have each text exactly once");
}

void read_processor(const JsonValue& processor, const std::string& source, TokenizerParts& parts) {
  const std::string_view kind = processor.get_string("type");
  if (kind == "Sequence") {
    for (const JsonValue& step : processor.at("processors").elements("processors")) read_processor(step, source, parts);
    return;
  }
  if (kind == "ByteLevel") return;  // it changes offsets and no ids
  std::vector<TokenId> prefix, suffix;
  const bool first = parts.prefix.empty() && parts.suffix.empty() && parts.pair.empty();
  if (kind == "TemplateProcessing") {
    read_template(processor, source, prefix, suffix);
    read_pair_template(processor, source, parts);
  } else if (kind == "BertProcessing" || kind == "RobertaProcessing") {
    const TokenId cls = id_of(parts, name_of_pair(processor, "cls", source), source);
    const TokenId sep = id_of(parts, name_of_pair(processor, "sep", source), source);
    prefix = {cls};
    suffix = {sep};
    using enum PairPart;
    if (kind == "RobertaProcessing")
      parts.pair = {{Special, cls, 0}, {First, 0, 0},  {Special, sep, 0},
                    {Special, sep, 0}, {Second, 0, 0}, {Special, sep, 0}};
  } else {
    unknown_component(source, "post_processor", kind);
  }
  if (!first)
    parts.no_pairs = concat_text(source, ": several post_processors add tokens, so the tokens of pairs are not known");
  parts.prefix.insert(parts.prefix.begin(), prefix.begin(), prefix.end());
  parts.suffix.insert(parts.suffix.end(), suffix.begin(), suffix.end());
  constexpr std::size_t kMost = 1024;
  if (parts.prefix.size() + parts.suffix.size() > kMost || parts.pair.size() > 2 * kMost)
    bad_tokenizer_file(source, concat_text("the post_processor adds more than ", kMost, " tokens to a text"));
}

}  // namespace

std::size_t count_tokens(const JsonValue& root) {
  std::size_t count = 0;
  const std::optional<JsonValue> model = part_of(root, "model"), added = part_of(root, "added_tokens");
  const std::optional<JsonValue> vocab = model ? part_of(*model, "vocab") : std::nullopt;
  if (vocab) count += vocab->size();
  if (added) count += added->size();
  return count;
}

void read_vocabulary(const JsonValue& model, std::size_t num_tokens, const std::string& source, Vocabulary& out) {
  const auto vocabulary = model.at("vocab").members("vocab");
  if (vocabulary.empty()) bad_tokenizer_file(source, "the vocabulary is empty");
  std::size_t num_bytes = 0;
  for (const auto& [token, id] : vocabulary) num_bytes += token.size();
  out.reserve(num_tokens, num_bytes);
  constexpr std::size_t kAhead = 12;  // look-ups whose cache misses overlap
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    if (i + kAhead < vocabulary.size())
      out.prefetch(Vocabulary::hash_text(Vocabulary::kHashSeed, vocabulary[i + kAhead].first));
    const auto& [token, value] = vocabulary[i];
    const std::int64_t id = value.as_int(token);
    require_token_id(id, num_tokens, token, source);
    if (out.has(static_cast<TokenId>(id))) {
      bad_tokenizer_file(source, concat_text("tokens \"", out.token(static_cast<TokenId>(id)), "\" and \"", token,
                                             "\" share the id ", id));
    }
    out.add(token, static_cast<TokenId>(id));
  }
}

std::vector<AddedToken> read_added_tokens(const JsonValue& root, std::size_t num_tokens, const std::string& source,
                                          Vocabulary& vocabulary) {
  std::vector<AddedToken> out;
  const std::optional<JsonValue> list = part_of(root, "added_tokens");
  if (!list) return out;
  const std::vector<JsonValue> entries = list->elements("added_tokens");
  out.reserve(entries.size());  // so that contents keep their addresses
  std::unordered_map<std::string_view, TokenId> known;
  for (const JsonValue& entry : entries) {
    AddedToken token;
    token.content = entry.get_string("content");
    const std::int64_t id = entry.get_int("id");
    if (token.content.empty()) bad_tokenizer_file(source, concat_text("the added token with the id ", id, " is empty"));
    if (token.content.size() > AddedTokenMatcher::kMaxBytes) {
      bad_tokenizer_file(source, concat_text("the added token with the id ", id, " has ", token.content.size(),
                                             " bytes, expected at most ", AddedTokenMatcher::kMaxBytes));
    }
    require_token_id(id, num_tokens, token.content, source);
    token.id = static_cast<TokenId>(id);
    token.special = entry.get_bool("special", false);
    token.single_word = entry.get_bool("single_word", false);
    token.lstrip = entry.get_bool("lstrip", false);
    token.rstrip = entry.get_bool("rstrip", false);
    token.normalized = entry.get_bool("normalized", !token.special);
    if (vocabulary.has(token.id) && vocabulary.token(token.id) != token.content) {
      bad_tokenizer_file(source, concat_text("added token \"", token.content, "\" has the id ", id, " of the token \"",
                                             vocabulary.token(token.id), "\""));
    }
    const auto other = known.find(token.content);
    const std::optional<TokenId> before =
        other != known.end() ? std::optional(other->second) : vocabulary.find(token.content);
    if (before && *before != token.id) {
      bad_tokenizer_file(source, concat_text("added token \"", token.content, "\" has the id ", id,
                                             ", but the vocabulary gives it ", *before));
    }
    if (!vocabulary.has(token.id)) vocabulary.add_hidden(token.content, token.id);
    out.push_back(std::move(token));
    known.insert_or_assign(out.back().content, out.back().id);
  }
  return out;
}

void read_post_processor(const JsonValue& root, const std::string& source, TokenizerParts& parts) {
  const std::optional<JsonValue> processor = part_of(root, "post_processor");
  if (processor) read_processor(*processor, source, parts);
  for (const std::vector<TokenId>* list : {&parts.prefix, &parts.suffix}) {
    for (const TokenId id : *list) {
      if (!parts.vocabulary->has(id))
        bad_tokenizer_file(source, concat_text("the post_processor adds the id ", id, ", which no token has"));
    }
  }
  for (const PairPiece& piece : parts.pair)
    if (piece.part == PairPart::Special && !parts.vocabulary->has(piece.id))
      parts.no_pairs = concat_text(source, ": the template for pairs adds the id ", piece.id, ", which no token has");
}

// Padding length and side are the caller's choice. The padding token belongs to the model.
TokenId find_padding(const JsonValue& root, const TokenizerParts& parts) {
  const auto find = [&](std::string_view content) -> std::optional<TokenId> {
    for (const AddedToken& added : parts.added)
      if (added.content == content) return added.id;
    return parts.vocabulary->find(content);
  };
  const std::optional<JsonValue> padding = part_of(root, "padding");
  if (padding) {
    if (const auto id = find(padding->get_string("pad_token", "[PAD]"))) return *id;
  }
  for (const std::string_view name : {"[PAD]", "<pad>", "<|pad|>", "<PAD>", "<|endoftext|>"})
    if (const auto id = find(name)) return *id;
  return 0;
}

}  // namespace rlx
