// Normalisers of tokeniser files: a list of steps that rewrite a text before it is split.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/regex.h"
#include "rlx/text/tokenizer/bert_normalizer.h"
#include "rlx/text/tokenizer/charsmap.h"
#include "rlx/text/unicode.h"

namespace rlx {

/// One step of a normaliser.
struct NormalizerStep {
  enum class Kind : std::uint8_t {
    Form,
    Lowercase,
    StripAccents,
    Strip,
    Replace,
    Prepend,
    Nmt,
    Charsmap,
    Bert,
    ByteLevel
  };
  Kind kind = Kind::Form;
  NormalForm form = NormalForm::Nfc;
  bool left = false, right = false;  // Strip
  std::string pattern;               // Replace: a text, unless `regex` is set
  std::string content;               // Replace, Prepend
  std::optional<Regex> regex;
  std::shared_ptr<const Charsmap> charsmap;
  std::shared_ptr<const BertNormalizer> bert;
};

/// The steps of a tokeniser in order. One object serves any number of threads.
class Normalizer {
 public:
  /// Scratch buffers of one caller.
  struct Buffers {
    std::string current, next;
  };
  void add(NormalizerStep step) { steps_.push_back(std::move(step)); }
  bool empty() const { return steps_.empty(); }
  /// The normalised form of valid UTF-8: `text` itself if nothing changes, else a view of a buffer.
  std::string_view run(std::string_view text, Buffers& buffers) const;

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace rlx
