// The writer of a Hugging Face vocabulary as GGUF metadata.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rlx/formats/gguf_writer.h"

namespace rlx {

/// Writes `tokenizer.ggml.*` and `tokenizer.chat_template` from tokenizer.json, tokenizer_config.json,
/// generation_config.json, config.json and chat_template.jinja of `folder`: byte-level BPE (model "gpt2") and
/// SentencePiece BPE with byte fallback ("llama"). Exactly `vocab_size` tokens are written; missing ones are named
/// "[PADn]" and marked unused. `pre` is the pre-tokeniser's name in llama.cpp; empty: derived from the patterns of
/// tokenizer.json. Added tokens beyond `vocab_size`, which have no model rows, are omitted and reported to `note`.
/// Returns false when the folder has no tokenizer.json. Errors: BadFile for malformed files, Unsupported for other
/// tokenisers and for patterns without a name, with advice on how to name one.
bool write_vocabulary(GgufWriter& out, const std::string& folder, std::int64_t vocab_size, const std::string& pre,
                      const std::function<void(const std::string&)>& note);

}  // namespace rlx
