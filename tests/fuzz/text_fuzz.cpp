// Fuzz target: any bytes as text under several settings; valid UTF-8 encodes to ids of the vocabulary, and its normal
// form is valid UTF-8 again.
#include <array>
#include <cstddef>
#include <cstdint>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/wordpiece.h"

namespace {

rlx::WordPieceTokenizer make(bool clean, bool strip, bool lower) {
  rlx::WordPieceOptions options;
  options.clean_text = clean;
  options.strip_accents = strip;
  options.lowercase = lower;
  options.max_chars_per_word = 20;
  return rlx::WordPieceTokenizer::from_vocab(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nthe\nquick\n##ing\n##a\n##b\n##c\n\xC3\xA9\n##\xC3\xA9\n\xE4\xB8\xAD\n,\n."
      "\n",
      "vocab.txt", options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array<rlx::WordPieceTokenizer, 3> kTokenizers = {make(true, true, true), make(false, false, false),
                                                                     make(true, false, true)};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const rlx::WordPieceTokenizer& t : kTokenizers) {
    bool valid = true;
    try {
      for (const rlx::TokenId id : t.encode(text))
        rlx::check(id >= 0 && id < t.vocab_size(), "ids are inside the vocabulary");
    } catch (const rlx::Error& e) {
      if (e.code() == rlx::ErrorCode::Internal) throw;
      valid = false;
    }
    rlx::check(valid == !rlx::find_invalid_utf8(text), "only invalid UTF-8 is refused");
    if (valid) rlx::check(!rlx::find_invalid_utf8(t.normalize(text)), "the normal form is valid UTF-8");
  }
  return 0;
}
