// The interface of tokenisation models: a word in, token ids out.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "rlx/base/work_budget.h"
#include "rlx/error.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// The steps that one call may take for its words. A real vocabulary takes tens of steps a byte; one of very long
/// tokens would make them grow with the square of a word.
class WordBudget {
 public:
  void begin(std::string_view word) { left_.allow(kStepsPerByte * word.size(), 0); }
  void spend(std::uint64_t steps) {
    if (!left_.spend(steps))
      throw Error(ErrorCode::Unsupported, "the vocabulary of this tokeniser needs too many steps for this text",
                  "the tokenizer file is damaged or malicious");
  }

 private:
  static constexpr std::uint64_t kStepsPerByte = 4096;
  WorkBudget left_{std::uint64_t{1} << 22, 0};
};

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
