// A reference decoder with a tokenizer for its 96 ids and a chat template: a model that generates meaningless text.
#pragma once

#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace rlx::test {

/// The bytes of the tokens, by id. Ids 0 to 2 are special (<unk>, <s>, </s>). Then come letters and signs, single bytes
/// of multi-byte characters, and texts, some of which begin or end inside a character.
std::vector<std::string> text_model_tokens();

/// Writes config.json, the weights of the reference `name`, whose vocabulary has 96 ids, tokenizer.json, and
/// tokenizer_config.json with a chat template: "role: content" lines, then "assistant:".
void write_text_model(const TempDir& folder, const std::string& name = "llama2");

}  // namespace rlx::test
