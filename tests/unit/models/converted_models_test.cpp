// Models that `rlx convert` made: the logits of transformers come out of the GGUF file and of the folder made of that.
#include <doctest/doctest.h>

#include "rlx/formats/model_convert.h"
#include "rlx/models/decoder_model.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"

namespace rlx {

TEST_CASE("converted models: logits of the file and of the folder made of it are those of transformers") {
  for (const char* name :
       {"llama2", "llama3", "llama_linear", "mistral", "smollm2", "qwen2", "qwen3", "gemma2_plain", "gemma3_plain"}) {
    CAPTURE(std::string(name));
    const test::DecoderReference reference = test::decoder_reference(name);
    const test::TempDir folder;
    test::write_model(folder, reference, 2);
    const std::string text = test::error_text([&] {
      convert_to_gguf(folder.path(), folder.file("m.gguf"), {});
      convert_to_folder(folder.file("m.gguf"), folder.file("back"), {});
      for (const char* made : {"m.gguf", "back"}) {
        CAPTURE(std::string(made));
        CHECK(test::logit_error(DecoderModel::load(folder.file(made)).forward(reference.tokens), reference) < 2e-5);
      }
    });
    CHECK(text == "");
  }
}

}  // namespace rlx
