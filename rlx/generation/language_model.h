// A complete language model from a Hugging Face folder or a GGUF file: decoder, tokeniser, chat template.
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

/// A decoder with its tokeniser, chat template and end tokens.
struct LanguageModel {
  DecoderModel decoder;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat{};   // none: the files have no template
  std::vector<TokenId> end_tokens{};    // tokens that end an answer: end of text, end of turn
  SpecialTokenNames special_tokens{};   // for a chat template of the caller: ChatTemplate::parse
  std::vector<std::string> problems{};  // of the files, where the model works in spite of them
};

/// Loads the model at `path`. A folder: config.json, *.safetensors, the tokeniser, end tokens from
/// `generation_config.json` or config.json, and the chat template if present. A GGUF file: the same from its metadata.
/// A template that does not parse is an error when it is rendered. Errors: those of DecoderModel::load and
/// load_tokenizer.
LanguageModel load_language_model(const std::string& path, const DecoderOptions& options = {},
                                  const Session& session = Session());
/// Loads the model at `path` as a draft model for `model`, with `options`, but with the context and sequences of
/// `model` and without adapters. Errors: those of load_language_model.
DraftModel load_draft_model(const std::string& path, DecoderOptions options, const DecoderModel& model,
                            const Session& session = Session());
/// The allowed precision loss by name: "exact", "bf16", "int8"; "auto": int8 for a GGUF file at `path` with quantized
/// blocks, bf16 for a bf16 file or folder, else exact. Errors: InvalidArgument for another name; those of
/// GgufFile::open.
MatmulPrecision matmul_precision_named(std::string_view name, const std::string& path);
/// Sets the KV cache type by name: "f32", "bf16", "f16", or a block scheme such as "q8_0" and "q4_0". InvalidArgument
/// for another name.
void set_cache_type(DecoderOptions& options, std::string_view name);
/// True for a GGUF file, false for a folder.
bool is_gguf_path(const std::string& path);

[[deprecated("now matmul_precision_named")]] inline MatmulPrecision products_named(std::string_view name,
                                                                                   const std::string& path) {
  return matmul_precision_named(name, path);
}

}  // namespace rlx
