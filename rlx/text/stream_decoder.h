// Text of token ids as they come, for answers that are shown while they are made.
#pragma once

#include <memory>
#include <string>

#include "rlx/text/vocabulary.h"

namespace rlx {

class Tokenizer;

/// Decodes ids one by one. All pieces together, with the rest that `flush` gives, are what Tokenizer::decode makes of
/// all ids; no piece ends inside a code point. Byte tokens (<0x0A>) wait for the end of their run, since one that is
/// invalid changes how all of them decode.
class StreamDecoder {
 public:
  /// The tokeniser must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  /// The text that is certain after this id, often empty. Errors: InvalidArgument for an id outside the vocabulary, or
  /// for a decoder that was moved from.
  std::string push(TokenId id);
  /// The rest of the text; the next push begins a new one.
  std::string flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
