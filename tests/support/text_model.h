// A reference decoder with a tokeniser of its 96 ids and a chat template: a model that writes text, if no sense.
#pragma once

#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace rlx::test {

/// Bytes of the tokens, by id: 0 to 2 are special (<unk>, <s>, </s>); then letters and signs, single bytes of longer
/// characters, and texts, some of which begin or end within a character.
std::vector<std::string> text_model_tokens();

/// Writes config.json, weights (those of the reference `name`, whose vocabulary has 96 ids), tokenizer.json and
/// tokenizer_config.json with a chat template: "role: content" lines, then "assistant:".
void write_text_model(const TempDir& folder, const std::string& name = "llama2");

}  // namespace rlx::test
