// Decoders of tokeniser files: a list of steps from token texts to the whole text, one token at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/work_budget.h"
#include "rlx/text/regex.h"

namespace rlx {

/// One step of a decoder.
struct DecoderStep {
  enum class Kind : std::uint8_t {
    Join,
    ByteLevel,
    ByteFallback,
    Fuse,
    Strip,
    Replace,
    Metaspace,
    WordPiece,
    Bpe,
    Ctc
  };
  Kind kind = Kind::Join;
  std::string pattern;              // Replace, Strip, Metaspace, WordPiece (prefix), Bpe (suffix), Ctc (padding)
  std::string content;              // Replace; Ctc: the word delimiter
  std::optional<Regex> regex;       // Replace by pattern
  std::size_t start = 0, stop = 0;  // Strip: maximum number of characters
  bool flag = false;                // Metaspace: the first token loses its space; WordPiece, Ctc: clean-up
  bool fused = false;               // an earlier step joins all tokens into one (set by TokenDecoder::add)
};

/// The steps in order. One object serves any number of threads, each with its own Run.
class TokenDecoder {
 public:
  void add(DecoderStep step);

  /// The bytes that a token appends to a text. They may begin or end inside a character. Errors: Unsupported for steps
  /// that depend on other tokens.
  std::string token_bytes(std::string_view token) const;

  /// Incremental decoding: tokens in, pieces of text out, never a partial character. All pieces together with the rest
  /// from `finish` are the text of all tokens.
  class Run {
   public:
    explicit Run(const TokenDecoder& decoder);
    /// Takes the text of one token and appends the final part of the text. Errors: Unsupported where the steps make far
    /// more text than the tokens have.
    void push(std::string_view token, std::string& out);
    /// Appends the rest. The next token begins a new text.
    void finish(std::string& out);

   private:
    struct State {
      std::size_t count = 0;  // tokens seen, or characters stripped
      std::string pending;    // text that waits for more tokens
      bool open = false;      // `pending` is in use
    };
    void feed(std::size_t index, std::string_view piece);
    void flush(std::size_t index);
    void replace_in_stream(std::size_t index, std::string_view piece);
    void strip_in_stream(std::size_t index, std::string_view piece);
    void byte_level(std::size_t index, std::string_view piece);
    void byte_fallback(std::size_t index, std::string_view piece);
    void whole(std::size_t index, std::string_view token);

    const std::vector<DecoderStep>& steps_;
    std::vector<State> states_;
    std::string* out_ = nullptr;
    WorkBudget budget_;
  };

 private:
  std::vector<DecoderStep> steps_;
};

/// WordPiece's clean-up of a piece: no space before . ? ! , and contractions.
void clean_up_tokenization(std::string& text);

}  // namespace rlx
