// Converts tokenizer.json to GGUF's lists of tokens, token types, merges and scores.
#include "rlx/models/convert/gguf_vocabulary.h"

#include <algorithm>
#include <unordered_map>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"

namespace rlx {
namespace {

// The format's token types.
constexpr std::int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

struct NamedPattern {
  std::string_view pattern, name;
};
#define RLX_PATTERN_START R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)"
#define RLX_PATTERN_END R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr NamedPattern kPatterns[] = {
    {RLX_PATTERN_START R"(\p{N}{1,3})" RLX_PATTERN_END, "llama-bpe"},
    {RLX_PATTERN_START R"(\p{N})" RLX_PATTERN_END, "qwen2"},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "gpt-2"},
};
#undef RLX_PATTERN_START
#undef RLX_PATTERN_END

// The steps of a pre-tokeniser: one, or a sequence.
std::vector<JsonValue> steps_of(const JsonValue& pre) {
  if (pre.is_null()) return {};
  if (pre.get_string("type", "") == "Sequence") return pre.at("pretokenizers").elements("pretokenizers");
  return {pre};
}

class GgufVocabularyWriter {
 public:
  GgufVocabularyWriter(const JsonDocument& json, std::string folder, std::int64_t size,
                       const std::function<void(const std::string&)>& note)
      : root_(json.root_object()), source_(json.source()), folder_(std::move(folder)), note_(note) {
    if (size < 0 || size > (std::int64_t{1} << 26))
      throw Error(ErrorCode::BadFile, concat_text(source_, ": the vocabulary size must be in [0, 2^26], got ", size));
    tokens_.resize(static_cast<std::size_t>(size));
    kinds_.assign(tokens_.size(), kUnused);
  }

  void write(GgufWriter& out, const std::string& pre) {
    const JsonValue model = root_.at("model");
    if (model.get_string("type", "BPE") != "BPE")
      unsupported(concat_text("its model is \"", model.get_string("type"), "\"; only BPE is supported"));
    const bool by_bytes = is_byte_level();
    if (!by_bytes && !model.get_bool("byte_fallback", false))
      unsupported("its BPE is not byte-level and has no byte_fallback");
    read_tokens(model, !by_bytes);
    read_added();
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i].empty() && kinds_[i] == kUnused) tokens_[i] = concat_text("[PAD", i, "]");
    out.set_string("tokenizer.ggml.model", by_bytes ? "gpt2" : "llama");
    if (by_bytes)
      out.set_string("tokenizer.ggml.pre", pre.empty() ? pattern_name() : pre);
    else
      out.set_string("tokenizer.ggml.pre", pre.empty() ? "default" : pre);
    out.set_strings("tokenizer.ggml.tokens", tokens_);
    const std::vector<std::string> merges = merges_of(model);
    if (!by_bytes) out.set_floats("tokenizer.ggml.scores", scores(merges));
    out.set_ints("tokenizer.ggml.token_type", GgufKind::I32, kinds_);
    if (by_bytes) out.set_strings("tokenizer.ggml.merges", merges);
    write_special(out, by_bytes);
  }

 private:
  [[noreturn]] void unsupported(const std::string& what, std::string hint = {}) const {
    throw Error(ErrorCode::Unsupported, concat_text(source_, ": ", what), std::move(hint));
  }
  void put(std::string_view token, std::int64_t id, std::int64_t kind) {
    if (id < 0 || id >= static_cast<std::int64_t>(tokens_.size()))
      throw Error(ErrorCode::BadFile, concat_text(source_, ": the token \"", token, "\" has the id ", id,
                                                  ", but the model has ", tokens_.size(), " tokens"));
    const auto i = static_cast<std::size_t>(id);
    tokens_[i] = token;
    kinds_[i] = kind;
    id_of_[std::string(token)] = id;
  }
  bool is_byte_level() const {
    const auto find = [](const JsonValue& v) {
      const auto steps = steps_of(v);
      return std::any_of(steps.begin(), steps.end(),
                         [](const JsonValue& s) { return s.get_string("type", "") == "ByteLevel"; });
    };
    if (const auto pre = root_.find("pre_tokenizer"); pre && find(*pre)) return true;
    const auto decoder = root_.find("decoder");
    return decoder && !decoder->is_null() && decoder->get_string("type", "") == "ByteLevel";
  }
  // Whether a space is put before a text: by a normaliser, or by the pre-tokeniser that replaces spaces.
  bool adds_space() const {
    const auto steps = [&](const char* part, const char* members) -> std::vector<JsonValue> {
      const auto v = root_.find(part);
      if (!v || v->is_null()) return {};
      if (v->get_string("type", "") == "Sequence") return v->at(members).elements(members);
      return {*v};
    };
    for (const JsonValue& step : steps("normalizer", "normalizers"))
      if (step.get_string("type", "") == "Prepend") return true;
    for (const JsonValue& step : steps("pre_tokenizer", "pretokenizers"))
      if (step.get_string("type", "") == "Metaspace")
        return step.get_string("prepend_scheme", step.get_bool("add_prefix_space", true) ? "always" : "never") !=
               "never";
    return false;
  }
  std::string pattern_name() const {
    const auto pre = root_.find("pre_tokenizer");
    std::string found;
    for (const JsonValue& step : pre ? steps_of(*pre) : std::vector<JsonValue>{}) {
      const std::string_view type = step.get_string("type", "");
      if (type == "Split") {
        const auto pattern = step.at("pattern").find("Regex");
        if (!found.empty() || !pattern) unsupported("its pre-tokeniser splits more than once", hint());
        found = pattern->as_string("Regex");
      } else if (type != "ByteLevel") {
        unsupported(concat_text("its pre-tokeniser has a step \"", type, "\""), hint());
      } else if (step.get_bool("use_regex", true)) {
        if (!found.empty()) unsupported("its pre-tokeniser splits more than once", hint());
        found = kPatterns[2].pattern;
      }
    }
    for (const NamedPattern& p : kPatterns)
      if (p.pattern == found) return std::string(p.name);
    unsupported("the pattern of its pre-tokeniser is not known", hint());
  }
  static std::string hint() { return "give llama.cpp's name of the pre-tokeniser with --pre"; }
  void read_tokens(const JsonValue& model, bool has_bytes) {
    const std::string_view unknown = model.get_string("unk_token", "");
    for (const auto& [token, id] : model.at("vocab").members("vocab")) {
      const bool byte = has_bytes && token.size() == 6 && token.substr(0, 3) == "<0x" && token[5] == '>';
      put(token, id.as_int(token), byte ? kByte : !unknown.empty() && token == unknown ? kUnknown : kNormal);
    }
  }
  void read_added() {
    const auto added = root_.find("added_tokens");
    if (!added || added->is_null()) return;
    for (const JsonValue& t : added->elements("added_tokens")) {
      const std::string_view token = t.get_string("content");
      const std::int64_t id = t.get_int("id");
      const bool special = t.get_bool("special", false);
      if (id >= static_cast<std::int64_t>(tokens_.size())) {
        if (note_)
          note_(concat_text("the added token \"", token, "\" is left out: its id ", id, " is not below the ",
                            tokens_.size(), " tokens"));
        continue;
      }
      const bool unknown =
          id >= 0 && id < static_cast<std::int64_t>(kinds_.size()) && kinds_[static_cast<std::size_t>(id)] == kUnknown;
      put(token, id, unknown ? kUnknown : special ? kControl : kUserDefined);
    }
  }
  // Merges as "a b". Files store them like this, or as pairs.
  std::vector<std::string> merges_of(const JsonValue& model) const {
    std::vector<std::string> out;
    for (const JsonValue& m : model.at("merges").elements("merges")) {
      if (m.is_string()) {
        out.emplace_back(m.as_string("merges"));
      } else {
        const std::vector<JsonValue> pair = m.elements("merges");
        if (pair.size() != 2)
          throw Error(ErrorCode::BadFile, concat_text(source_, ": a merge of ", pair.size(), " parts, expected 2"));
        out.push_back(concat_text(pair[0].as_string("merges"), " ", pair[1].as_string("merges")));
      }
    }
    return out;
  }
  // SentencePiece merges the pair whose piece has the highest score, so earlier merges get higher scores.
  std::vector<float> scores(const std::vector<std::string>& merges) const {
    std::vector<float> out(tokens_.size(), 0);
    std::vector<bool> given(tokens_.size());
    for (std::size_t i = 0; i < merges.size(); ++i) {
      std::string piece = merges[i];
      piece.erase(std::min(piece.find(' '), piece.size() - 1), 1);
      const auto found = id_of_.find(piece);
      if (found == id_of_.end())
        throw Error(ErrorCode::BadFile,
                    concat_text(source_, ": merge ", i, " gives \"", piece, "\", which is not a token"));
      const auto id = static_cast<std::size_t>(found->second);
      if (!given[id]) out[id] = 0.0F - static_cast<float>(i), given[id] = true;
    }
    for (std::size_t id = 0; id < out.size(); ++id)  // pieces that no merge makes: single characters
      if (!given[id] && kinds_[id] == kNormal) out[id] = -static_cast<float>(merges.size() + id);
    return out;
  }
  // The id of a token that a config names by text or as {"content": text}.
  std::optional<std::int64_t> named_token(const JsonValue& config, std::string_view key) const {
    const auto v = config.find(key);
    if (!v || v->is_null()) return std::nullopt;
    const std::string_view text = v->is_object() ? v->get_string("content") : v->as_string(key);
    const auto found = id_of_.find(std::string(text));
    return found == id_of_.end() ? std::nullopt : std::optional(found->second);
  }
  void write_special(GgufWriter& out, bool by_bytes) const {
    struct Special {
      std::string_view name, token, id;
    };
    constexpr Special kSpecial[] = {{"tokenizer.ggml.bos_token_id", "bos_token", "bos_token_id"},
                                    {"tokenizer.ggml.eos_token_id", "eos_token", "eos_token_id"},
                                    {"tokenizer.ggml.unknown_token_id", "unk_token", ""},
                                    {"tokenizer.ggml.padding_token_id", "pad_token", "pad_token_id"}};
    std::optional<JsonDocument> config, generation, model;
    const auto read = [&](const char* name, std::optional<JsonDocument>& into) {
      const std::string path = join_path(folder_, name);
      if (has_file(path)) into = JsonDocument::read(path);
    };
    read("tokenizer_config.json", config), read("generation_config.json", generation), read("config.json", model);
    for (const Special& s : kSpecial) {
      std::optional<std::int64_t> id;
      if (config) id = named_token(config->root_object(), s.token);
      for (const auto* more : {&generation, &model}) {
        if (id || s.id.empty() || !*more) continue;
        const auto v = (*more)->root_object().find(s.id);
        if (v && v->kind() == JsonKind::Integer) id = v->as_int(s.id);
        if (v && v->is_array() && !v->elements(s.id).empty()) id = v->elements(s.id)[0].as_int(s.id);
      }
      if (id && *id >= 0 && *id < static_cast<std::int64_t>(tokens_.size())) out.set_int(s.name, GgufKind::U32, *id);
    }
    if (config) {
      const JsonValue root = config->root_object();
      for (const char* key : {"add_bos_token", "add_eos_token"})
        if (const auto v = root.find(key); v && v->kind() == JsonKind::Bool)
          out.set_bool(concat_text("tokenizer.ggml.", key), v->as_bool(key));
    }
    if (!by_bytes) out.set_bool("tokenizer.ggml.add_space_prefix", adds_space());
    const std::string own = join_path(folder_, "chat_template.jinja");
    if (has_file(own)) {
      out.set_string("tokenizer.chat_template", read_file(own));
    } else if (config) {
      const auto v = config->root_object().find("chat_template");
      if (v && v->is_string()) out.set_string("tokenizer.chat_template", v->as_string("chat_template"));
    }
  }

  JsonValue root_;
  std::string source_, folder_;
  const std::function<void(const std::string&)>& note_;
  std::vector<std::string> tokens_;
  std::vector<std::int64_t> kinds_;
  std::unordered_map<std::string, std::int64_t> id_of_;
};

}  // namespace

bool write_vocabulary(GgufWriter& out, const std::string& folder, std::int64_t vocab_size, const std::string& pre,
                      const std::function<void(const std::string&)>& note) {
  const std::string path = join_path(folder, "tokenizer.json");
  if (!has_file(path)) return false;
  const JsonDocument json = JsonDocument::read(path);
  GgufVocabularyWriter(json, folder, vocab_size, note).write(out, pre);
  return true;
}

}  // namespace rlx
