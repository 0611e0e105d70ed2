// BERT's normaliser: cleaned, spaced, stripped and lower-cased text in one walk.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx {

/// Which of its steps a BertNormalizer takes; the defaults are those of uncased BERT.
struct BertNormalizerOptions {
  bool clean_text = true;            // drop control characters, turn all white space into spaces
  bool handle_chinese_chars = true;  // spaces around each CJK ideograph
  bool strip_accents = true;         // canonical decomposition, then nonspacing marks dropped
  bool lowercase = true;
};

/// The normaliser; one object serves any number of threads.
class BertNormalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options);
  /// Appends the normal form of valid UTF-8.
  void run(std::string_view text, std::string& out) const;

 private:
  BertNormalizerOptions options_;
  std::array<std::uint8_t, 128> ascii_{};  // what an ASCII character becomes
};

}  // namespace rlx
