// Fuzz target: any bytes as a GGUF file; a tokeniser that its metadata gives must encode and decode.
#include <cstddef>
#include <cstdint>

#include "rlx/error.h"
#include "rlx/formats/gguf.h"
#include "rlx/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = rlx::GgufFile::from_bytes(std::as_bytes(std::span(data, size)), "fuzz");
    const std::unique_ptr<rlx::Tokenizer> t = rlx::tokenizer_from_gguf(*file);
    (void)t->decode(t->encode("ab aab <|end|> 12  caf\xC3\xA9\n\xF0\x9F\x98\x80"));
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
  return 0;
}
