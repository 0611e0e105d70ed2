// Pre-tokenisers of tokeniser files: a list of steps that split a normalised text into words.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/regex.h"

namespace rlx {

/// What happens to the matches of a splitting step.
enum class SplitBehavior : std::uint8_t { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

/// One step of a pre-tokeniser.
struct PreTokenizerStep {
  enum class Kind : std::uint8_t {
    ByteLevel,
    Split,
    Whitespace,
    WhitespaceSplit,
    Metaspace,
    Digits,
    Punctuation,
    Bert,
    Delimiter,
    FixedLength
  };
  enum class Prepend : std::uint8_t { Never, First, Always };
  Kind kind = Kind::Split;
  SplitBehavior behavior = SplitBehavior::Isolated;
  bool invert = false;        // Split: the text between matches is the match
  bool split = true;          // Metaspace: split before each replacement
  bool prefix_space = false;  // ByteLevel: a space before each text that begins without one
  Prepend prepend = Prepend::Never;
  std::string replacement;     // Metaspace, Delimiter: one character
  std::int64_t length = 0;     // FixedLength: characters of a word
  std::optional<Regex> regex;  // Split, and ByteLevel where it splits
};

/// The steps of a tokeniser in order. One object serves any number of threads, each with its own Run.
class PreTokenizer {
 public:
  void add(PreTokenizerStep step) { steps_.push_back(std::move(step)); }
  bool empty() const { return steps_.empty(); }

  /// Scratch buffers and matchers of one caller.
  class Run {
   public:
    explicit Run(const PreTokenizer& pre_tokenizer);
    /// Splits a text into words in order. `first`: the text is at the beginning of the whole text.
    template <class Word>
    void split(std::string_view text, bool first, const Word& word) {
      sink_ = [&word](std::string_view w) { word(w); };
      step(0, text, first);
    }

   private:
    struct State {
      std::string text;
      std::optional<Regex::Matcher> matcher;
    };
    void step(std::size_t index, std::string_view text, bool first);
    void byte_level(std::size_t index, std::string_view text, bool first);
    void metaspace(std::size_t index, std::string_view text, bool first);
    template <class NextMatch>
    void cut(std::size_t index, std::string_view text, bool first, SplitBehavior behavior, bool invert,
             const NextMatch& next_match);
    template <class Test>
    void cut_characters(std::size_t index, std::string_view text, bool first, SplitBehavior behavior, const Test& test);

    const std::vector<PreTokenizerStep>& steps_;
    std::vector<State> states_;
    std::function<void(std::string_view)> sink_;
  };

 private:
  std::vector<PreTokenizerStep> steps_;
};

}  // namespace rlx
