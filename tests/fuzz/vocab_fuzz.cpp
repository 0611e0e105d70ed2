// Fuzz target: any bytes as a vocab.txt; ids of a vocabulary that loads must stay inside it.
#include <cstddef>
#include <cstdint>

#include "rlx/error.h"
#include "rlx/text/wordpiece.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const rlx::WordPieceTokenizer t = rlx::WordPieceTokenizer::from_vocab(text, "fuzz");
    for (const rlx::TokenId id : t.encode(text))
      rlx::check(id >= 0 && id < t.vocab_size(), "ids are inside the vocabulary");
    (void)t.decode(t.encode("hello world"));
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
  return 0;
}
