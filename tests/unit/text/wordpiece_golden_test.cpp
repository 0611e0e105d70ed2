// Token ids with the real MiniLM vocabulary against ids recorded from the Python package `tokenizers`.
// tests/parity/wordpiece_parity.py --update-golden writes the file and compares many more texts.
#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/needs.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx {

TEST_CASE("wordpiece: recorded ids of the MiniLM vocabulary" * doctest::test_suite(test::kNeedsModel)) {
  const std::string folder = test::model_dir();
  if (folder.empty()) return test::skip("the all-MiniLM-L6-v2 model");
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(folder);
  CHECK(tokenizer->vocab_size() == 30522);
  CHECK(tokenizer->encode("The weather is lovely today.") ==
        std::vector<TokenId>{101, 1996, 4633, 2003, 8403, 2651, 1012, 102});
  // The same ids must come from vocab.txt alone.
  const test::TempDir copy;
  copy.write("vocab.txt", read_file(join_path(folder, "vocab.txt")));
  const std::unique_ptr<Tokenizer> plain = load_tokenizer(copy.path());

  const std::string golden = test::read_file(test::source_path("tests/unit/text/wordpiece_golden.jsonl"));
  int num_lines = 0;
  for (std::size_t at = 0; at < golden.size();) {
    const std::size_t end = std::min(golden.find('\n', at), golden.size());
    const JsonDocument line =
        JsonDocument::parse(std::string_view(golden).substr(at, end - at), "wordpiece_golden.jsonl");
    at = end + 1;
    ++num_lines;
    std::vector<TokenId> want;
    for (const JsonValue& id : line.root().at("ids").elements("ids"))
      want.push_back(static_cast<TokenId>(id.as_int("ids")));
    const std::string_view text = line.root().get_string("text");
    CAPTURE(num_lines);
    CHECK(tokenizer->encode(text) == want);
    CHECK(plain->encode(text) == want);
  }
  CHECK(num_lines > 100);
}

}  // namespace rlx
