// The components of tokenizer.json for each kind of GGUF vocabulary (tokenizer_gguf.cpp reads them).
#include "rlx/text/tokenizer/tokenizer_json_writer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rlx/base/json_writer.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/tokenizer/gguf_patterns.h"
#include "rlx/text/tokenizer/pipeline.h"

namespace rlx {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, which replaces a space

std::string base64_of(std::string_view bytes) {
  static constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t v = 0;
    for (std::size_t k = 0; k < 3; ++k)
      v = v << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : std::uint32_t{0});
    for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kBase64[v >> (18 - 6 * k) & 63];
  }
  return out;
}

class TokenizerJsonWriter {
 public:
  TokenizerJsonWriter(const GgufFile& file, const std::function<void(const std::string&)>& note)
      : file_(file),
        note_(note),
        tokenizer_(tokenizer_from_gguf(file)),
        model_(file.get_string("tokenizer.ggml.model")) {
    by_bytes_ = model_ == "gpt2" || model_ == "gemma4";
    if (by_bytes_) {
      pre_ = find_gguf_pre_tokenizer(model_ == "gemma4" ? "gemma4" : file.get_string("tokenizer.ggml.pre", ""));
      check(pre_ != nullptr, "a pre-tokenizer that was read before has a name");
      by_bytes_ = pre_->bytes;
    }
    name_tokens();
  }

  std::string write() {
    out_.begin_object().member("version", "1.0").key("truncation").null();
    write_padding();
    write_added();
    write_normalizer();
    write_pre_tokenizer();
    write_post_processor();
    write_decoder();
    write_model();
    out_.end_object();
    return out_.take() + "\n";
  }

 private:
  bool adds_space() const { return file_.get_bool("tokenizer.ggml.add_space_prefix", true); }
  const std::string& name_of(TokenId id) const { return names_[static_cast<std::size_t>(id)]; }
  const std::vector<AddedToken>& added() const {
    return static_cast<const PipelineTokenizer&>(*tokenizer_).added_tokens();
  }

  // Each id gets a name of its own. A token without text, or whose text another one has, gets a made-up one.
  void name_tokens() {
    const auto count = static_cast<TokenId>(tokenizer_->vocab_size());
    names_.resize(static_cast<std::size_t>(count));
    std::unordered_set<std::string_view> taken;
    std::vector<TokenId> nameless;
    for (TokenId id = 0; id < count; ++id) {
      const std::string_view text = tokenizer_->id_to_token(id).value_or(std::string_view());
      const bool found = !text.empty() && tokenizer_->token_to_id(text) == id;
      if (found)
        names_[static_cast<std::size_t>(id)] = text;
      else
        nameless.push_back(id);
      if (found) taken.insert(names_[static_cast<std::size_t>(id)]);
    }
    for (const TokenId id : nameless) {
      std::string name = concat_text("[unused ", id, "]");
      while (taken.count(name) != 0) name += "]";
      names_[static_cast<std::size_t>(id)] = std::move(name);
    }
    if (!nameless.empty() && note_)
      note_(concat_text("tokenizer.json: ", nameless.size(),
                        " tokens without text, or with the text of another token, "
                        "have made-up names: the first is ",
                        name_of(nameless.front())));
  }

  void write_padding() {
    out_.key("padding").begin_object().member("strategy", "BatchLongest").member("direction", "Right");
    out_.key("pad_to_multiple_of").null();
    out_.member("pad_id", tokenizer_->pad_id())
        .member("pad_type_id", 0)
        .member("pad_token", name_of(tokenizer_->pad_id()));
    out_.end_object();
  }

  void write_added() {
    out_.key("added_tokens").begin_array();
    for (const AddedToken& t : added()) {
      if (name_of(t.id) != t.content) continue;  // of two tokens of equal text, the one that is found
      out_.begin_object().member("id", t.id).member("content", t.content).member("single_word", t.single_word);
      out_.member("lstrip", t.lstrip).member("rstrip", t.rstrip).member("normalized", t.normalized);
      out_.member("special", t.special).end_object();
    }
    out_.end_array();
  }

  JsonWriter& component(std::string_view type) { return out_.begin_object().member("type", type); }
  void sequence(std::string_view members) { component("Sequence").key(members).begin_array(); }
  void end_sequence() { out_.end_array().end_object(); }
  void replace(const char* kind, std::string_view pattern, std::string_view content) {
    component("Replace").key("pattern").begin_object().member(kind, pattern).end_object().member("content", content);
    out_.end_object();
  }

  void write_normalizer() {
    out_.key("normalizer");
    if (model_ == "bert") {
      const bool lowercase = file_.get_bool("tokenizer.ggml.normalizer.lowercase", true);
      component("BertNormalizer").member("clean_text", true).member("handle_chinese_chars", true);
      out_.member("strip_accents", file_.get_bool("tokenizer.ggml.normalizer.strip_accents", lowercase));
      out_.member("lowercase", lowercase).end_object();
    } else if (model_ == "t5") {
      sequence("normalizers");
      if (const GgufValue* map = file_.find_value("tokenizer.ggml.precompiled_charsmap")) {
        std::string bytes;
        for (const std::int64_t byte : map->ints()) bytes += static_cast<char>(byte);
        component("Precompiled").member("precompiled_charsmap", base64_of(bytes)).end_object();
      }
      if (file_.get_bool("tokenizer.ggml.remove_extra_whitespaces", false)) {
        replace("Regex", " {2,}", " ");
        component("Strip").member("strip_left", true).member("strip_right", true).end_object();
      }
      end_sequence();
    } else if (by_bytes_) {
      out_.null();
    } else {
      sequence("normalizers");
      if (model_ == "llama" && adds_space()) component("Prepend").member("prepend", kSpaceMark).end_object();
      replace("String", " ", kSpaceMark);
      end_sequence();
    }
  }

  void write_metaspace() {
    component("Metaspace")
        .member("replacement", kSpaceMark)
        .member("prepend_scheme", adds_space() ? "always" : "never");
    out_.member("split", true).end_object();
  }

  void write_pre_tokenizer() {
    out_.key("pre_tokenizer");
    if (model_ == "bert") {
      component("BertPreTokenizer").end_object();
    } else if (model_ == "t5") {
      write_metaspace();
    } else if (pre_ == nullptr) {
      out_.null();
    } else {
      sequence("pretokenizers");
      for (const std::string_view pattern : pre_->patterns) {
        component("Split").key("pattern").begin_object().member("Regex", pattern).end_object();
        out_.member("behavior", "Isolated").member("invert", false).end_object();
      }
      if (by_bytes_) {
        component("ByteLevel").member("add_prefix_space", false).member("trim_offsets", true);
        out_.member("use_regex", false).end_object();
      }
      end_sequence();
    }
  }

  void write_post_processor() {
    out_.key("post_processor");
    if (tokenizer_->prefix_ids().empty() && tokenizer_->suffix_ids().empty()) {
      out_.null();
      return;
    }
    const auto special = [&](TokenId id, std::int32_t type) {
      out_.begin_object().key("SpecialToken").begin_object().member("id", name_of(id)).member("type_id", type);
      out_.end_object().end_object();
    };
    const auto text = [&](const char* id, std::int32_t type) {
      out_.begin_object().key("Sequence").begin_object().member("id", id).member("type_id", type).end_object();
      out_.end_object();
    };
    component("TemplateProcessing").key("single").begin_array();
    for (const TokenId id : tokenizer_->prefix_ids()) special(id, 0);
    text("A", 0);
    for (const TokenId id : tokenizer_->suffix_ids()) special(id, 0);
    out_.end_array().key("pair").begin_array();
    for (const PairPiece& p : tokenizer_->pair_pieces()) {
      if (p.part == PairPart::Special)
        special(p.id, p.type);
      else
        text(p.part == PairPart::First ? "A" : "B", p.type);
    }
    out_.end_array().key("special_tokens").begin_object();
    std::vector<TokenId> ids(tokenizer_->prefix_ids().begin(), tokenizer_->prefix_ids().end());
    for (const TokenId id : tokenizer_->suffix_ids())
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    for (const TokenId id : ids) {
      out_.key(name_of(id)).begin_object().member("id", name_of(id)).key("ids").begin_array().value(id).end_array();
      out_.key("tokens").begin_array().value(name_of(id)).end_array().end_object();
    }
    out_.end_object().end_object();
  }

  void write_decoder() {
    out_.key("decoder");
    if (model_ == "bert") {
      component("WordPiece").member("prefix", "##").member("cleanup", true).end_object();
    } else if (model_ == "t5") {
      write_metaspace();
    } else if (by_bytes_) {
      component("ByteLevel").member("add_prefix_space", false).member("trim_offsets", true);
      out_.member("use_regex", false).end_object();
    } else {
      sequence("decoders");
      replace("String", kSpaceMark, " ");
      component("ByteFallback").end_object();
      component("Fuse").end_object();
      if (model_ == "llama" && adds_space())
        component("Strip").member("content", " ").member("start", 1).member("stop", 0).end_object();
      end_sequence();
    }
  }

  std::optional<TokenId> unknown_id() const {
    const std::int64_t id = file_.get_int("tokenizer.ggml.unknown_token_id", -1);
    if (id >= 0 && id < static_cast<std::int64_t>(names_.size())) return static_cast<TokenId>(id);
    return std::nullopt;
  }

  void write_vocabulary() {
    out_.key("vocab").begin_object();
    for (std::size_t id = 0; id < names_.size(); ++id) out_.member(names_[id], id);
    out_.end_object();
  }

  void write_model() {
    out_.key("model");
    if (model_ == "bert") {
      component("WordPiece").member("unk_token", name_of(unknown_id().value_or(0)));
      out_.member("continuing_subword_prefix", "##").member("max_input_chars_per_word", 100);
      write_vocabulary();
    } else if (model_ == "t5") {
      component("Unigram").key("unk_id");
      if (const auto id = unknown_id())
        out_.value(*id);
      else
        out_.null();
      out_.key("vocab").begin_array();
      const std::vector<float> scores = file_.value("tokenizer.ggml.scores").floats();
      for (std::size_t id = 0; id < names_.size(); ++id) {
        if (!std::isfinite(scores[id]))
          throw Error(ErrorCode::Unsupported, concat_text(file_.source(), ": the score of token ", id,
                                                          " is not finite, which tokenizer.json cannot hold"));
        out_.begin_array().value(names_[id]).value(double{scores[id]}).end_array();
      }
      out_.end_array().member("byte_fallback", false);
    } else {
      write_bpe();
    }
    out_.end_object();
  }

  void write_bpe() {
    component("BPE").key("dropout").null();
    const std::optional<TokenId> unknown = model_ == "llama" ? unknown_id().value_or(0)
                                           : by_bytes_       ? std::nullopt
                                                             : unknown_id();
    out_.key("unk_token");
    if (unknown)
      out_.value(name_of(*unknown));
    else
      out_.null();
    out_.key("continuing_subword_prefix").null().key("end_of_word_suffix").null();
    out_.member("fuse_unk", false).member("byte_fallback", !by_bytes_);
    out_.member("ignore_merges", pre_ != nullptr && pre_->ignore_merges);
    write_vocabulary();
    out_.key("merges").begin_array();
    const auto merge = [&](std::string_view left, std::string_view right) {
      out_.begin_array().value(left).value(right).end_array();
    };
    if (model_ == "llama") {
      for (const auto& [left, right] : merges_by_score()) merge(left, right);
    } else {
      for (const std::string_view line : file_.value("tokenizer.ggml.merges").strings()) {
        const std::size_t space = line.find(' ', 1);
        merge(line.substr(0, space), line.substr(space + 1));
      }
    }
    out_.end_array();
  }

  // Every split of a token into two tokens is a merge; tokens of higher score come first, of equal ones the first.
  std::vector<std::pair<std::string_view, std::string_view>> merges_by_score() const {
    const std::vector<float> scores = file_.value("tokenizer.ggml.scores").floats();
    std::unordered_set<std::string_view> known;
    std::vector<std::size_t> order;
    for (std::size_t id = 0; id < names_.size(); ++id) {
      const std::string_view text = tokenizer_->id_to_token(static_cast<TokenId>(id)).value_or(std::string_view());
      if (text != names_[id]) continue;
      known.insert(names_[id]);
      order.push_back(id);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    std::vector<std::pair<std::string_view, std::string_view>> out;
    std::size_t equal = 0, before = names_.size();
    for (const std::size_t id : order) {
      const std::string_view text = names_[id];
      const std::size_t from = out.size();
      for (std::size_t at = 1; at < text.size(); ++at)
        if (!is_utf8_continuation(text[at]) && known.count(text.substr(0, at)) != 0 &&
            known.count(text.substr(at)) != 0)
          out.emplace_back(text.substr(0, at), text.substr(at));
      if (out.size() == from) continue;
      if (before < names_.size() && scores[before] == scores[id]) ++equal;
      before = id;
    }
    if (equal > 0 && note_)
      note_(concat_text("tokenizer.json: ", equal,
                        " tokens have the score of another one. Where both can be merged, the "
                        "GGUF file prefers the left one, tokenizer.json the token of the smaller id"));
    return out;
  }

  const GgufFile& file_;
  const std::function<void(const std::string&)>& note_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string_view model_;
  const GgufPreTokenizer* pre_ = nullptr;  // of BPE by merges
  bool by_bytes_ = false;
  std::vector<std::string> names_;  // by id
  JsonWriter out_{0};
};

}  // namespace

std::string tokenizer_json_of(const GgufFile& file, const std::function<void(const std::string&)>& note) try {
  return TokenizerJsonWriter(file, note).write();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("tokenizer_json_of");
}

}  // namespace rlx
