// What all models of tokenisers have in common: a word in, token ids out.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "rlx/text/vocabulary.h"

namespace rlx {

/// Turns words into ids, with the buffers of one caller.
class WordEncoder {
 public:
  virtual ~WordEncoder() = default;
  /// Appends the ids of a word, valid UTF-8 and not empty.
  virtual void encode(std::string_view word, std::vector<TokenId>& ids) = 0;
};

/// A model; one object serves any number of threads.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// An encoder for texts of some `text_bytes` bytes, which decides what is worth remembering.
  virtual std::unique_ptr<WordEncoder> encoder(std::size_t text_bytes) const = 0;
};

}  // namespace rlx
