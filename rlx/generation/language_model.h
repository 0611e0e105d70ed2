// A language model as people hand it around: a Hugging Face folder or a GGUF file, with all that text needs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/generation/draft.h"
#include "rlx/models/decoder_model.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

/// A decoder, its tokeniser, how it is spoken to and how it ends.
struct LanguageModel {
  DecoderModel decoder;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat{};  // none: the files hold no template
  std::vector<TokenId> end_tokens{};   // that end an answer: end of text, end of turn
  SpecialTokenNames special_tokens{};  // for a chat template of one's own: ChatTemplate::parse
};

/// Loads the model at `path`. Of a folder: config.json, *.safetensors, the tokeniser, `generation_config.json` or
/// config.json for the ends, the chat template if there is one. Of a GGUF file: the same of its metadata. Errors: those
/// of DecoderModel::load, load_tokenizer and ChatTemplate.
LanguageModel load_language_model(const std::string& path, const DecoderOptions& options = {},
                                  const Session& session = Session());
/// Loads the model at `path` to draft for `model`: with `options`, but its context and sequences, and no adapters.
/// Errors: those of load_language_model.
DraftModel load_draft_model(const std::string& path, DecoderOptions options, const DecoderModel& model,
                            const Session& session = Session());
/// What products may lose, by name: "exact", "bf16", "int8"; "auto": int8 for a GGUF file at `path` that holds blocks,
/// bf16 for a file or folder of bf16, else exact. Errors: InvalidArgument for another name; those of GgufFile::open.
MatmulPrecision matmul_precision_named(std::string_view name, const std::string& path);
/// Sets what keys and values are kept as, by name: "f32", "bf16", "f16", or a scheme of blocks such as "q8_0" and
/// "q4_0". InvalidArgument for another name.
void set_cache_type(DecoderOptions& options, std::string_view name);
/// True for a GGUF file, which is no folder.
bool is_gguf_path(const std::string& path);

[[deprecated("now matmul_precision_named")]] inline constexpr auto& products_named = matmul_precision_named;

}  // namespace rlx
