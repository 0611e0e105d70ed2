// The components of tokenizer.json by type, with the defaults of the reference library.
#include "rlx/text/tokenizer/component_json.h"

#include <algorithm>

#include "rlx/base/utf8.h"
#include "rlx/text/tokenizer/json_parts.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

constexpr int kMaxSteps = 64;                  // steps nest at run time; real files have a handful
constexpr std::size_t kMaxReplacement = 4096;  // bytes of the replacement of one match

// Counts the steps of one component, including nested sequences.
class StepCount {
 public:
  StepCount(const std::string& source, std::string_view part) : source_(source), part_(part) {}
  void add() {
    if (++count_ > kMaxSteps)
      bad_tokenizer_file(source_, concat_text("the ", part_, " has more than ", kMaxSteps, " steps"));
  }

 private:
  const std::string& source_;
  std::string_view part_;
  int count_ = 0;
};

std::string short_text(const JsonValue& step, std::string_view key, const std::string& source) {
  const std::string_view text = step.get_string(key);
  if (text.size() > kMaxReplacement)
    bad_tokenizer_file(source,
                       concat_text("\"", key, "\" has ", text.size(), " bytes, expected at most ", kMaxReplacement));
  return std::string(text);
}

// Reads one character; the reference library requires exactly one.
std::string one_character(const JsonValue& step, std::string_view key, std::string_view fallback,
                          const std::string& source) {
  const std::string_view text = step.get_string(key, fallback);
  std::size_t at = 0;
  if (!text.empty()) (void)decode_utf8(text, at);
  if (text.empty() || at != text.size())
    bad_tokenizer_file(source, concat_text("\"", key, "\" must be one character, got \"", text_start(text, 40), "\""));
  return std::string(text);
}

std::size_t count_of(const JsonValue& step, std::string_view key, const std::string& source) {
  const std::int64_t value = step.get_int(key);
  if (value < 0 || value > 4096)
    bad_tokenizer_file(source, concat_text("\"", key, "\" is ", value, ", expected 0 to 4096"));
  return static_cast<std::size_t>(value);
}

// Reads {"String": "x"} or {"Regex": "x+"}: the text, or the pattern.
void read_pattern(const JsonValue& step, const std::string& where, std::string& text, std::optional<Regex>& regex) {
  const JsonValue pattern = step.at("pattern");
  if (const std::optional<JsonValue> literal = part_of(pattern, "String")) {
    text = literal->as_string("String");
  } else {
    regex.emplace(pattern.get_string("Regex"), where);
  }
}

SplitBehavior behavior_of(const JsonValue& step, std::string_view fallback, const std::string& source) {
  const std::string_view name = step.get_string("behavior", fallback);
  if (name == "Removed") return SplitBehavior::Removed;
  if (name == "Isolated") return SplitBehavior::Isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::MergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::MergedWithNext;
  if (name == "Contiguous") return SplitBehavior::Contiguous;
  unknown_component(source, "behavior", name);
}

PreTokenizerStep::Prepend prepend_of(const JsonValue& step, const std::string& source) {
  const std::string_view name = step.get_string("prepend_scheme", "always");
  PreTokenizerStep::Prepend scheme = PreTokenizerStep::Prepend::Always;
  if (name == "never") {
    scheme = PreTokenizerStep::Prepend::Never;
  } else if (name == "first") {
    scheme = PreTokenizerStep::Prepend::First;
  } else if (name != "always") {
    unknown_component(source, "prepend_scheme", name);
  }
  // Older files use a flag. Where both exist, the flag must not contradict.
  if (!step.get_bool("add_prefix_space", true)) {
    if (part_of(step, "prepend_scheme") && scheme != PreTokenizerStep::Prepend::Never)
      bad_tokenizer_file(source, concat_text("add_prefix_space is false, but prepend_scheme is \"", name, "\""));
    scheme = PreTokenizerStep::Prepend::Never;
  }
  return scheme;
}

void normalizer_steps(const JsonValue& value, const std::string& source, Normalizer& out, StepCount& count) {
  using Kind = NormalizerStep::Kind;
  const std::string_view type = value.get_string("type");
  if (type == "Sequence") {
    for (const JsonValue& step : value.at("normalizers").elements("normalizers"))
      normalizer_steps(step, source, out, count);
    return;
  }
  count.add();
  NormalizerStep step;
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    step.form = type == "NFC"    ? NormalForm::Nfc
                : type == "NFD"  ? NormalForm::Nfd
                : type == "NFKC" ? NormalForm::Nfkc
                                 : NormalForm::Nfkd;
  } else if (type == "Lowercase") {
    step.kind = Kind::Lowercase;
  } else if (type == "StripAccents") {
    step.kind = Kind::StripAccents;
  } else if (type == "Strip") {
    step.kind = Kind::Strip;
    step.left = value.get_bool("strip_left");
    step.right = value.get_bool("strip_right");
  } else if (type == "Replace") {
    step.kind = Kind::Replace;
    step.content = short_text(value, "content", source);
    read_pattern(value, concat_text(source, ": normalizer Replace"), step.pattern, step.regex);
    if (!step.regex && step.pattern.empty()) return;  // an empty pattern never matches
  } else if (type == "Prepend") {
    step.kind = Kind::Prepend;
    step.content = short_text(value, "prepend", source);
  } else if (type == "Nmt") {
    step.kind = Kind::Nmt;
  } else if (type == "Precompiled") {
    step.kind = Kind::Charsmap;
    const std::optional<JsonValue> map = part_of(value, "precompiled_charsmap");
    const std::string_view text = map ? map->as_string("precompiled_charsmap") : std::string_view();
    if (text.empty()) return;  // no rules
    const std::optional<std::string> bytes = decode_base64(text);
    if (!bytes) bad_tokenizer_file(source, "the precompiled charsmap is not base64");
    step.charsmap = std::make_shared<const Charsmap>(*bytes, source);
  } else if (type == "BertNormalizer") {
    step.kind = Kind::Bert;
    BertNormalizerOptions options;
    options.clean_text = value.get_bool("clean_text", true);
    options.handle_chinese_chars = value.get_bool("handle_chinese_chars", true);
    options.lowercase = value.get_bool("lowercase", true);
    options.strip_accents = value.get_bool("strip_accents", options.lowercase);  // null: as lowercase
    step.bert = std::make_shared<const BertNormalizer>(options);
  } else if (type == "ByteLevel") {
    step.kind = Kind::ByteLevel;
  } else {
    unknown_component(source, "normalizer", type);
  }
  out.add(std::move(step));
}

void pre_tokenizer_steps(const JsonValue& value, const std::string& source, PreTokenizer& out, StepCount& count) {
  using Kind = PreTokenizerStep::Kind;
  const std::string_view type = value.get_string("type");
  if (type == "Sequence") {
    for (const JsonValue& step : value.at("pretokenizers").elements("pretokenizers"))
      pre_tokenizer_steps(step, source, out, count);
    return;
  }
  count.add();
  PreTokenizerStep step;
  if (type == "ByteLevel") {
    step.kind = Kind::ByteLevel;
    step.prefix_space = value.get_bool("add_prefix_space", true);
    if (value.get_bool("use_regex", true)) step.regex.emplace(kGpt2Pattern, source);
  } else if (type == "Split") {
    const std::string where = concat_text(source, ": pre_tokenizer Split");
    std::string text;
    read_pattern(value, where, text, step.regex);
    if (!step.regex) step.regex.emplace(Regex::literal(text, where));
    step.behavior = behavior_of(value, "Isolated", source);
    step.invert = value.get_bool("invert", false);
  } else if (type == "Whitespace") {
    step.kind = Kind::Whitespace;
  } else if (type == "WhitespaceSplit") {
    step.kind = Kind::WhitespaceSplit;
  } else if (type == "Metaspace") {
    step.kind = Kind::Metaspace;
    step.replacement = one_character(value, "replacement", "\xE2\x96\x81", source);
    step.prepend = prepend_of(value, source);
    step.split = value.get_bool("split", true);
  } else if (type == "Digits") {
    step.kind = Kind::Digits;
    step.behavior = value.get_bool("individual_digits", false) ? SplitBehavior::Isolated : SplitBehavior::Contiguous;
  } else if (type == "Punctuation") {
    step.kind = Kind::Punctuation;
    step.behavior = behavior_of(value, "Isolated", source);
  } else if (type == "BertPreTokenizer") {
    step.kind = Kind::Bert;
  } else if (type == "CharDelimiterSplit") {
    step.kind = Kind::Delimiter;
    step.replacement = one_character(value, "delimiter", "", source);
  } else if (type == "FixedLength") {
    step.kind = Kind::FixedLength;
    step.length = value.get_int("length", 5);
    if (step.length < 1) bad_tokenizer_file(source, concat_text("FixedLength has the length ", step.length));
  } else {
    unknown_component(source, "pre_tokenizer", type);
  }
  out.add(std::move(step));
}

void decoder_steps(const JsonValue& value, const std::string& source, TokenDecoder& out, StepCount& count) {
  using Kind = DecoderStep::Kind;
  const std::string_view type = value.get_string("type");
  if (type == "Sequence") {
    for (const JsonValue& step : value.at("decoders").elements("decoders")) decoder_steps(step, source, out, count);
    return;
  }
  count.add();
  DecoderStep step;
  if (type == "ByteLevel") {
    step.kind = Kind::ByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = Kind::ByteFallback;
  } else if (type == "Fuse") {
    step.kind = Kind::Fuse;
  } else if (type == "Strip") {
    step.kind = Kind::Strip;
    step.pattern = one_character(value, "content", "", source);
    step.start = count_of(value, "start", source);
    step.stop = count_of(value, "stop", source);
  } else if (type == "Replace") {
    step.kind = Kind::Replace;
    step.content = short_text(value, "content", source);
    read_pattern(value, concat_text(source, ": decoder Replace"), step.pattern, step.regex);
  } else if (type == "Metaspace") {
    step.kind = Kind::Metaspace;
    step.pattern = one_character(value, "replacement", "\xE2\x96\x81", source);
    step.flag = prepend_of(value, source) != PreTokenizerStep::Prepend::Never;
  } else if (type == "WordPiece") {
    step.kind = Kind::WordPiece;
    step.pattern = value.get_string("prefix", "##");
    step.flag = value.get_bool("cleanup", true);
  } else if (type == "BPEDecoder") {
    step.kind = Kind::Bpe;
    step.pattern = value.get_string("suffix", "</w>");
  } else if (type == "CTC") {
    step.kind = Kind::Ctc;
    step.pattern = value.get_string("pad_token", "<pad>");
    step.content = value.get_string("word_delimiter_token", "|");
    step.flag = value.get_bool("cleanup", true);
  } else {
    unknown_component(source, "decoder", type);
  }
  out.add(std::move(step));
}

}  // namespace

void read_normalizer(const JsonValue& normalizer, const std::string& source, Normalizer& out) {
  StepCount count(source, "normalizer");
  normalizer_steps(normalizer, source, out, count);
}

void read_pre_tokenizer(const JsonValue& pre_tokenizer, const std::string& source, PreTokenizer& out) {
  StepCount count(source, "pre_tokenizer");
  pre_tokenizer_steps(pre_tokenizer, source, out, count);
}

void read_decoder(const JsonValue& decoder, const std::string& source, TokenDecoder& out) {
  StepCount count(source, "decoder");
  decoder_steps(decoder, source, out, count);
}

}  // namespace rlx
