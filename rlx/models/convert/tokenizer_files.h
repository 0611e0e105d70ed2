// Writes the tokenizer of a GGUF file as the files of a Hugging Face folder.
#pragma once

#include <functional>
#include <string>

#include "rlx/formats/gguf.h"

namespace rlx {

/// Writes tokenizer.json, tokenizer_config.json (special tokens, chat template) and generation_config.json (the tokens
/// that end an answer) into `folder`. A file without a vocabulary, or with one that rlx cannot read, gives a note.
void write_tokenizer_files(const GgufFile& file, const std::string& folder,
                           const std::function<void(const std::string&)>& note);

}  // namespace rlx
