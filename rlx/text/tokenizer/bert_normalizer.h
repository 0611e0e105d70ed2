// BERT's normaliser: cleans, spaces, strips and lower-cases text in one pass.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx {

/// The steps of a BertNormalizer. The defaults are those of uncased BERT.
struct BertNormalizerOptions {
  bool clean_text = true;            // drop control characters, turn all white space into spaces
  bool handle_chinese_chars = true;  // spaces around each CJK ideograph
  bool strip_accents = true;         // canonical decomposition, then nonspacing marks are dropped
  bool lowercase = true;
};

/// The normaliser. One object serves any number of threads.
class BertNormalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options);
  /// Appends the normalised form of valid UTF-8.
  void run(std::string_view text, std::string& out) const;

 private:
  BertNormalizerOptions options_;
  std::array<std::uint8_t, 128> ascii_{};  // replacement of each ASCII character
};

}  // namespace rlx
