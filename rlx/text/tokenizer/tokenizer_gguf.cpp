// Reads a tokeniser from the metadata of a GGUF file (keys tokenizer.ggml.*).
#include <algorithm>
#include <cmath>
#include <functional>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/gguf.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/tokenizer/bpe.h"
#include "rlx/text/tokenizer/gguf_patterns.h"
#include "rlx/text/tokenizer/merge_list.h"
#include "rlx/text/tokenizer/pipeline.h"
#include "rlx/text/tokenizer/unigram.h"
#include "rlx/text/tokenizer/wordpiece_model.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, which replaces a space
constexpr std::size_t kLongestToken = 65536;        // bytes

// Token types, with the numbers of the format.
enum class GgufTokenType : std::int64_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

class GgufTokenizerReader {
 public:
  explicit GgufTokenizerReader(const GgufFile& file) : file_(file) {}

  TokenizerParts read() {
    const std::string_view model = file_.get_string("tokenizer.ggml.model");
    tokens_ = file_.value("tokenizer.ggml.tokens").strings();
    if (tokens_.empty()) fail("tokenizer.ggml.tokens", "is empty");
    if (const GgufValue* types = file_.find_value("tokenizer.ggml.token_type")) types_ = types->ints();
    if (!types_.empty() && types_.size() != tokens_.size())
      fail("tokenizer.ggml.token_type",
           concat_text("has ", types_.size(), " elements for ", tokens_.size(), " tokens"));
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (find_invalid_utf8(tokens_[i])) fail("tokenizer.ggml.tokens", concat_text("token ", i, " is not valid UTF-8"));
      if (tokens_[i].size() > kLongestToken)
        fail("tokenizer.ggml.tokens", concat_text("token ", i, " has ", tokens_[i].size(), " bytes"));
    }
    bool add_bos = false, add_eos = false;
    std::string_view bos = "bos", eos = "eos";
    if (model == "gpt2" || model == "gemma4") {
      add_bos = read_bpe(model == "gemma4" ? "gemma4" : file_.get_string("tokenizer.ggml.pre", ""));
    } else if (model == "llama") {
      read_scored();
      add_bos = true;
    } else if (model == "bert") {
      read_wordpiece();
      add_bos = add_eos = true;
      bos = "cls";
      eos = "seperator";  // the format's spelling
    } else if (model == "t5") {
      read_unigram();
      add_eos = true;
    } else {
      throw Error(
          ErrorCode::Unsupported,
          concat_text(file_.source(), ": the tokeniser \"", model, "\" (tokenizer.ggml.model) is not supported"),
          "supported are gpt2, llama, bert, t5 and gemma4");
    }
    read_added();
    if (file_.get_bool("tokenizer.ggml.add_bos_token", add_bos)) add_special(bos, parts_.prefix);
    if (file_.get_bool("tokenizer.ggml.add_eos_token", add_eos)) add_special(eos, parts_.suffix);
    parts_.pad = id_of("padding").value_or(id_of("eos").value_or(0));
    return std::move(parts_);
  }

 private:
  [[noreturn]] void fail(std::string_view key, std::string_view what) const {
    throw Error(ErrorCode::BadFile, concat_text(file_.source(), ": \"", key, "\" ", what));
  }

  // The id in tokenizer.ggml.NAME_token_id. Files name ids that no token has, mostly 2^32 - 1, for tokens that they do
  // not use (special_token_problems tells of them).
  std::optional<TokenId> id_of(std::string_view name) const {
    const GgufValue* value = file_.find_value(concat_text("tokenizer.ggml.", name, "_token_id"));
    if (value == nullptr) return std::nullopt;
    const std::int64_t id = value->as_int();
    if (id < 0 || id >= static_cast<std::int64_t>(tokens_.size())) return std::nullopt;
    return static_cast<TokenId>(id);
  }
  bool names_no_token(std::string_view name) const {
    return file_.find_value(concat_text("tokenizer.ggml.", name, "_token_id")) != nullptr && !id_of(name);
  }

  void add_special(std::string_view name, std::vector<TokenId>& ids) const {
    std::optional<TokenId> id = id_of(name);
    if (!id && name == "cls") id = id_of("bos");
    if (!id && name == "seperator") id = id_of("eos");
    if (id) return ids.push_back(*id);
    if (names_no_token(name)) return;  // nothing is added, as other readers do
    fail(concat_text("tokenizer.ggml.", name, "_token_id"), "is missing, but the model adds this token to texts");
  }

  GgufTokenType type_of(std::size_t id) const {
    return types_.empty() ? GgufTokenType::Normal : static_cast<GgufTokenType>(types_[id]);
  }

  // Fills the vocabulary. `text_of` returns the vocabulary text of a token.
  void fill(const std::function<std::string_view(std::size_t)>& text_of) {
    std::size_t num_bytes = 0;
    for (const std::string_view token : tokens_) num_bytes += token.size();
    parts_.vocabulary->reserve(tokens_.size(), num_bytes);
    constexpr std::size_t kAhead = 12;  // look-ups whose cache misses overlap, for texts stored in the file
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (i + kAhead < tokens_.size())
        parts_.vocabulary->prefetch(Vocabulary::hash_text(Vocabulary::kHashSeed, tokens_[i + kAhead]));
      const std::string_view text = text_of(i);
      if (text.empty()) {
        parts_.vocabulary->add_hidden(text, static_cast<TokenId>(i));
      } else {
        parts_.vocabulary->add(text, static_cast<TokenId>(i));
      }
    }
  }

  std::vector<float> scores() const {
    std::vector<float> out = file_.value("tokenizer.ggml.scores").floats();
    if (out.size() != tokens_.size())
      fail("tokenizer.ggml.scores", concat_text("has ", out.size(), " elements for ", tokens_.size(), " tokens"));
    for (std::size_t i = 0; i < out.size(); ++i)
      if (std::isnan(out[i])) fail("tokenizer.ggml.scores", concat_text("element ", i, " is not a number"));
    return out;
  }

  MergeTable merges() const {
    const std::vector<std::string_view> lines = file_.value("tokenizer.ggml.merges").strings();
    const Vocabulary& vocabulary = *parts_.vocabulary;
    const auto refuse = [&](std::size_t i, std::string_view what) {
      fail("tokenizer.ggml.merges", concat_text("merge ", i, " (\"", text_start(lines[i]), "\") ", what));
    };
    MergeList out(vocabulary, lines.size(), 0,
                  [&](std::size_t rank, std::string_view, std::string_view, std::string_view) {
                    refuse(rank, "has a token that is not in the vocabulary");
                  });
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::size_t space = lines[i].find(' ', 1);
      if (space == std::string_view::npos) refuse(i, "is not a pair of tokens with a space in between");
      out.add(lines[i].substr(0, space), lines[i].substr(space + 1));
    }
    return out.finish();
  }

  bool read_bpe(std::string_view pre) {
    const GgufPreTokenizer* p = find_gguf_pre_tokenizer(pre);
    if (p == nullptr) {
      throw Error(
          ErrorCode::Unsupported,
          concat_text(file_.source(), ": the pre-tokeniser \"", pre, "\" (tokenizer.ggml.pre) is not supported"),
          "use tokenizer.json of the model");
    }
    fill([&](std::size_t i) { return tokens_[i]; });
    BpeOptions options;
    options.ignore_merges = p->ignore_merges;
    if (!p->bytes) {
      options.byte_fallback = true;
      options.unknown = id_of("unknown");
      options.whole_texts = true;
      replace_spaces();
    }
    for (const std::string_view pattern : p->patterns) {
      PreTokenizerStep step;
      step.regex.emplace(pattern, file_.source());
      parts_.pre_tokenizer.add(std::move(step));
    }
    DecoderStep decoder;
    if (p->bytes) {
      PreTokenizerStep step;
      step.kind = PreTokenizerStep::Kind::ByteLevel;
      parts_.pre_tokenizer.add(std::move(step));
      decoder.kind = DecoderStep::Kind::ByteLevel;
      parts_.decoder.add(std::move(decoder));
    } else {
      decode_spaces(false);
    }
    parts_.model = std::make_unique<BpeModel>(*parts_.vocabulary, merges(), std::move(options));
    return p->add_bos;
  }

  void replace_spaces() {
    NormalizerStep step;
    step.kind = NormalizerStep::Kind::Replace;
    step.pattern = " ";
    step.content = kMark;
    parts_.normalizer.add(std::move(step));
  }

  void decode_spaces(bool strip_first) {
    DecoderStep step;
    step.kind = DecoderStep::Kind::Replace;
    step.pattern = kMark;
    step.content = " ";
    parts_.decoder.add(std::move(step));
    step = {};
    step.kind = DecoderStep::Kind::ByteFallback;
    parts_.decoder.add(step);
    step.kind = DecoderStep::Kind::Fuse;
    parts_.decoder.add(step);
    if (!strip_first) return;
    step.kind = DecoderStep::Kind::Strip;
    step.pattern = " ";
    step.start = 1;
    parts_.decoder.add(std::move(step));
  }

  // SentencePiece's BPE: the pair whose text has the highest score is merged first.
  void read_scored() {
    fill([&](std::size_t i) { return tokens_[i]; });
    const std::vector<float> by_id = scores();
    std::vector<float> sorted = by_id;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::vector<std::uint32_t> ranks(by_id.size());
    for (std::size_t i = 0; i < by_id.size(); ++i) {
      ranks[i] = static_cast<std::uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), by_id[i], std::greater<>()) -
                                            sorted.begin());
    }
    BpeOptions options;
    options.byte_fallback = true;
    options.whole_texts = true;
    options.unknown = id_of("unknown").value_or(0);
    const bool prefix = file_.get_bool("tokenizer.ggml.add_space_prefix", true);
    if (prefix) {
      NormalizerStep step;
      step.kind = NormalizerStep::Kind::Prepend;
      step.content = kMark;
      parts_.normalizer.add(std::move(step));
    }
    replace_spaces();
    decode_spaces(prefix);
    parts_.model = std::make_unique<BpeModel>(*parts_.vocabulary, std::move(ranks), std::move(options));
  }

  // In these files a word begins with U+2581 and a continuation has no prefix: the opposite of BERT's vocabulary.
  void read_wordpiece() {
    std::string text;
    fill([&](std::size_t i) -> std::string_view {
      const std::string_view token = tokens_[i];
      if (token.starts_with(kMark)) return token.substr(kMark.size());
      if (type_of(i) != GgufTokenType::Normal || (token.starts_with('[') && token.ends_with(']'))) return token;
      text = concat_text("##", token);
      return text;
    });
    const bool lowercase = file_.get_bool("tokenizer.ggml.normalizer.lowercase", true);
    NormalizerStep normalizer;
    normalizer.kind = NormalizerStep::Kind::Bert;
    BertNormalizerOptions options;
    options.lowercase = lowercase;
    options.strip_accents = file_.get_bool("tokenizer.ggml.normalizer.strip_accents", lowercase);
    normalizer.bert = std::make_shared<const BertNormalizer>(options);
    parts_.normalizer.add(std::move(normalizer));
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::Bert;
    parts_.pre_tokenizer.add(std::move(step));
    DecoderStep decoder;
    decoder.kind = DecoderStep::Kind::WordPiece;
    decoder.pattern = "##";
    decoder.flag = true;
    parts_.decoder.add(std::move(decoder));
    const std::optional<TokenId> unknown = id_of("unknown");
    if (!unknown)
      fail("tokenizer.ggml.unknown_token_id",
           names_no_token("unknown") ? "names no token, but words outside the vocabulary need one" : "is missing");
    parts_.model = std::make_unique<WordPieceModel>(*parts_.vocabulary, *unknown, "##", 100);
  }

  void read_unigram() {
    fill([&](std::size_t i) { return tokens_[i]; });
    if (const GgufValue* value = file_.find_value("tokenizer.ggml.precompiled_charsmap")) {
      std::string bytes;
      for (const std::int64_t byte : value->ints()) bytes += static_cast<char>(byte);
      NormalizerStep step;
      step.kind = NormalizerStep::Kind::Charsmap;
      step.charsmap = std::make_shared<const Charsmap>(bytes, file_.source());
      parts_.normalizer.add(std::move(step));
    }
    if (file_.get_bool("tokenizer.ggml.remove_extra_whitespaces", false)) {
      NormalizerStep step;
      step.kind = NormalizerStep::Kind::Replace;
      step.regex.emplace(" {2,}", file_.source());
      step.content = " ";
      parts_.normalizer.add(std::move(step));
      step = {};
      step.kind = NormalizerStep::Kind::Strip;
      step.left = step.right = true;
      parts_.normalizer.add(std::move(step));
    }
    const bool prefix = file_.get_bool("tokenizer.ggml.add_space_prefix", true);
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::Metaspace;
    step.replacement = kMark;
    step.prepend = prefix ? PreTokenizerStep::Prepend::Always : PreTokenizerStep::Prepend::Never;
    parts_.pre_tokenizer.add(std::move(step));
    DecoderStep decoder;
    decoder.kind = DecoderStep::Kind::Metaspace;
    decoder.pattern = kMark;
    decoder.flag = prefix;
    parts_.decoder.add(std::move(decoder));
    const std::vector<float> by_id = scores();
    parts_.model = std::make_unique<UnigramModel>(*parts_.vocabulary, std::vector<double>(by_id.begin(), by_id.end()),
                                                  id_of("unknown"), false);
  }

  // Decode omits control tokens. Control tokens and user-defined tokens are matched in raw texts.
  void read_added() {
    const std::string_view name = file_.get_string("general.name", "");
    const bool phi3 = name.find("phi-3") != std::string_view::npos || name.find("phi3") != std::string_view::npos ||
                      name.find("Phi-3") != std::string_view::npos || name.find("Phi3") != std::string_view::npos;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const GgufTokenType type = type_of(i);
      const bool control = type == GgufTokenType::Control || type == GgufTokenType::Unknown;
      if ((!control && type != GgufTokenType::UserDefined) || tokens_[i].empty()) continue;
      if (tokens_[i].size() > AddedTokenMatcher::kMaxBytes)
        fail("tokenizer.ggml.tokens", concat_text("special token ", i, " has ", tokens_[i].size(), " bytes"));
      AddedToken added;
      added.content = parts_.vocabulary->token(static_cast<TokenId>(i));
      added.id = static_cast<TokenId>(i);
      added.special = control;
      // Phi-3's chat tokens consume the white space after them, which these files cannot express.
      added.rstrip = phi3 && added.content != "<unk>" && added.content != "<s>" && added.content != "<|endoftext|>";
      parts_.added.push_back(std::move(added));
    }
  }

  const GgufFile& file_;
  std::vector<std::string_view> tokens_;
  std::vector<std::int64_t> types_;
  TokenizerParts parts_;
};

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_gguf(const GgufFile& file) try {
  return std::make_unique<PipelineTokenizer>(GgufTokenizerReader(file).read());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("tokenizer_from_gguf");
}

}  // namespace rlx
