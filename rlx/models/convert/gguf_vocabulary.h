// The vocabulary of a Hugging Face model as metadata of a GGUF file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rlx/formats/gguf_writer.h"

namespace rlx {

/// Writes `tokenizer.ggml.*` and `tokenizer.chat_template` from tokenizer.json, tokenizer_config.json,
/// generation_config.json, config.json and chat_template.jinja of `folder`: byte-level BPE (model "gpt2") and BPE of
/// SentencePiece with byte fallback ("llama"). `vocab_size` tokens are written; those that the vocabulary lacks are
/// called "[PADn]" and unused. `pre` names the pre-tokeniser as llama.cpp does; empty: what tokenizer.json's patterns
/// say. Added tokens beyond `vocab_size`, which the model has no rows for, are left out and told to `note`. False when
/// the folder has no tokenizer.json. Errors: BadFile for what is malformed, Unsupported for other kinds of tokenisers
/// and for patterns without a name, saying how to give one.
bool write_vocabulary(GgufWriter& out, const std::string& folder, std::int64_t vocab_size, const std::string& pre,
                      const std::function<void(const std::string&)>& note);

}  // namespace rlx
