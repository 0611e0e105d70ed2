// Loads a language model with its tokeniser, chat template and end tokens.
#include "rlx/generation/language_model.h"

#include <algorithm>
#include <filesystem>

#include "rlx/base/stop_request.h"
#include "rlx/error.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

void add_end(std::vector<TokenId>& ends, std::int64_t id, const DecoderConfig& config) {
  if (id < 0 || id >= config.vocab_size) return;  // files name end tokens outside the vocabulary
  const auto token = static_cast<TokenId>(id);
  if (std::find(ends.begin(), ends.end(), token) == ends.end()) ends.push_back(token);
}

// Reads "eos_token_id", one number or several.
bool add_ends_of(const std::string& file, std::vector<TokenId>& ends, const DecoderConfig& config) {
  if (!has_file(file)) return false;
  const JsonDocument document = JsonDocument::read(file);
  const auto found = document.root_object().find("eos_token_id");
  if (!found || found->is_null()) return false;
  if (!found->is_array()) {
    add_end(ends, found->as_int("eos_token_id"), config);
  } else {
    for (const JsonValue& id : found->elements("eos_token_id")) add_end(ends, id.as_int("eos_token_id"), config);
  }
  return true;
}

LanguageModel load_folder(const std::string& path, const DecoderOptions& options, const Session& session) {
  LanguageModel m{DecoderModel::load(path, options, session), load_tokenizer(path)};
  if (!add_ends_of(join_path(path, "generation_config.json"), m.end_tokens, m.decoder.config()))
    (void)add_ends_of(join_path(path, "config.json"), m.end_tokens, m.decoder.config());
  m.special_tokens = special_token_names(path);
  try {
    m.chat = ChatTemplate::load(path, BadTemplates::Defer);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::NotFound) throw;
  }
  return m;
}

LanguageModel load_gguf(const std::string& path, const DecoderOptions& options, const Session& session) {
  const std::shared_ptr<GgufFile> file = GgufFile::open(path);
  LanguageModel m{DecoderModel::load(path, options, session), tokenizer_from_gguf(*file)};
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    add_end(m.end_tokens, file->get_int(key, -1), m.decoder.config());
  for (const char* token : kEndTokenTexts)
    if (const auto id = m.tokenizer->token_to_id(token)) add_end(m.end_tokens, *id, m.decoder.config());
  m.special_tokens = special_token_names(*file);
  m.problems = special_token_problems(*file);
  if (!file->get_string("tokenizer.chat_template", "").empty()) m.chat = ChatTemplate::load(*file, BadTemplates::Defer);
  return m;
}

// The precision loss that the file's author already accepted for weights; activations are rounded likewise. Float files
// lose nothing without a request.
MatmulPrecision usual_matmul_precision(const std::string& path) {
  if (is_gguf_path(path)) {
    const std::shared_ptr<GgufFile> file = GgufFile::open(path);
    const auto has = [&](auto is) { return std::ranges::any_of(file->tensors(), is); };
    if (has([](const GgufTensor& t) { return t.info().scheme != QuantScheme::Affine; })) return MatmulPrecision::Int8;
    return has([](const GgufTensor& t) { return t.type == GgufType::BF16; }) ? MatmulPrecision::BF16
                                                                             : MatmulPrecision::Exact;
  }
  try {
    const std::shared_ptr<SafetensorsFolder> folder = SafetensorsFolder::open(path);
    const auto is_bf16 = [&](const std::string& name) { return folder->find(name)->dtype == DType::BF16; };
    return std::ranges::any_of(folder->names(), is_bf16) ? MatmulPrecision::BF16 : MatmulPrecision::Exact;
  } catch (const Error&) {
    return MatmulPrecision::Exact;  // the loader reports what is wrong with the folder
  }
}

}  // namespace

MatmulPrecision matmul_precision_named(std::string_view name, const std::string& path) {
  if (name == "auto") return usual_matmul_precision(path);
  for (const MatmulPrecision p : {MatmulPrecision::Exact, MatmulPrecision::BF16, MatmulPrecision::Int8})
    if (matmul_precision_name(p) == name) return p;
  throw Error(ErrorCode::InvalidArgument,
              concat_text("matmul precision '", name, "' is not one of auto, exact, bf16 and int8"));
}

void set_cache_type(DecoderOptions& options, std::string_view name) {
  if (const auto dtype = parse_dtype(name); dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16) {
    options.cache_dtype = *dtype;
    options.cache_scheme.reset();
    return;
  }
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    const auto scheme = static_cast<QuantScheme>(i);
    if (quant_scheme_name(scheme) != name) continue;
    options.cache_scheme = scheme;
    return;
  }
  throw Error(ErrorCode::InvalidArgument, concat_text("the KV cache cannot have the type '", name, "'"),
              "use f32, bf16, f16, q8_0 or q4_0");
}

bool is_gguf_path(const std::string& path) { return is_file(path); }

LanguageModel load_language_model(const std::string& path, const DecoderOptions& options, const Session& session) try {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw Error(ErrorCode::NotFound, concat_text("there is no file or folder \"", path, "\""),
                "give a GGUF file, a Hugging Face folder with config.json, *.safetensors and tokenizer.json, or the "
                "path that `rlx pull ORG/NAME` or rlx.hub.pull prints");
  LanguageModel m = is_gguf_path(path) ? load_gguf(path, options, session) : load_folder(path, options, session);
  StopRequest::check();
  return m;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("load_language_model");
}

DraftModel load_draft_model(const std::string& path, DecoderOptions options, const DecoderModel& model,
                            const Session& session) {
  options.context = model.context();
  options.sequences = model.cache().sequences();
  options.adapters.clear();
  LanguageModel draft = load_language_model(path, options, session);
  return {std::move(draft.decoder), std::move(draft.tokenizer)};
}

}  // namespace rlx
