// Incremental decoding of token ids, for answers that are shown while they are generated.
#pragma once

#include <memory>
#include <string>

#include "rlx/text/vocabulary.h"

namespace rlx {

class Tokenizer;

/// Decodes ids one by one. All pieces together with the rest from `flush` equal Tokenizer::decode of all ids. No piece
/// ends inside a code point. Byte tokens (<0x0A>) wait for the end of their run, since one invalid byte changes how the
/// whole run decodes.
class StreamDecoder {
 public:
  /// The tokeniser must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  /// The text that is final after this id, often empty. Errors: InvalidArgument for an id outside the vocabulary, or
  /// for a decoder that was moved from.
  std::string push(TokenId id);
  /// The rest of the text. The next push begins a new text.
  std::string flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
