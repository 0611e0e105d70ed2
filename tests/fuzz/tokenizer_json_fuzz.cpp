// Fuzz target: any bytes as a tokenizer.json and as the JSON files of a model; a tokeniser that loads must encode and
// decode, and its stream must give the same text.
#include <cstddef>
#include <cstdint>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/models/config.h"
#include "rlx/text/stream_decoder.h"
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

void use(const rlx::Tokenizer& t, std::string_view text) {
  const std::vector<rlx::TokenId> ids = t.encode(text);
  const std::string whole = t.decode(ids);
  rlx::StreamDecoder stream(t);
  std::string pieces;
  for (const rlx::TokenId id : ids) pieces += stream.push(id);
  rlx::check(pieces + stream.flush() == whole, "a stream gives the text of all ids");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  only_errors([&] {
    const rlx::JsonDocument document = rlx::JsonDocument::parse(text, "fuzz");
    only_errors([&] { (void)rlx::parse_bert_config(document); });
    only_errors([&] { (void)rlx::WordPieceTokenizer::options_from_config(document.root()); });
    only_errors([&] { (void)rlx::WordPieceTokenizer::from_json(document); });
    const std::unique_ptr<rlx::Tokenizer> t = rlx::tokenizer_from_json(document);
    only_errors([&] { use(*t, "Hello, foxes <l> [SEP] caf\xC3\xA9 \xE4\xB8\xAD ox xx  e\xCC\x81\xCC\xA3 123\r\n"); });
    only_errors(
        [&] { use(*t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaabaaa\xE2\x96\x81  \xF0\x9F\x98\x80"); });
  });
  return 0;
}
