// Fuzz target: any bytes as a tokenizer.json and as the JSON files of a model; a tokeniser that loads must encode and
// decode.
#include <cstddef>
#include <cstdint>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/models/config.h"
#include "rlx/text/wordpiece.h"

namespace {

template <class Call>
void only_errors(const Call& call) {
  try {
    call();
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  only_errors([&] {
    const rlx::JsonDocument document = rlx::JsonDocument::parse(text, "fuzz");
    only_errors([&] { (void)rlx::parse_bert_config(document); });
    only_errors([&] { (void)rlx::WordPieceTokenizer::options_from_config(document.root()); });
    const rlx::WordPieceTokenizer t = rlx::WordPieceTokenizer::from_json(document);
    (void)t.decode(t.encode("Hello, foxes <l> [SEP] caf\xC3\xA9 \xE4\xB8\xAD ox xx"));
  });
  return 0;
}
