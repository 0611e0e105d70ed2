// The interface of tokenisation models: a word in, token ids out.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "rlx/text/vocabulary.h"

namespace rlx {

/// Encodes words as ids, with the scratch buffers of one caller.
class WordEncoder {
 public:
  virtual ~WordEncoder() = default;
  /// Appends the ids of a word. The word is valid UTF-8 and not empty.
  virtual void encode(std::string_view word, std::vector<TokenId>& ids) = 0;
};

/// A tokenisation model. One object serves any number of threads.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// An encoder for texts of about `text_bytes` bytes. The size decides how much it caches.
  virtual std::unique_ptr<WordEncoder> encoder(std::size_t text_bytes) const = 0;
};

}  // namespace rlx
