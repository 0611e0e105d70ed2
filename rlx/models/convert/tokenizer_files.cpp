// The vocabulary, special tokens and chat template of a GGUF file as JSON files.
#include "rlx/models/convert/tokenizer_files.h"

#include <algorithm>
#include <vector>

#include "rlx/base/json_writer.h"
#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/tokenizer.h"
#include "rlx/text/tokenizer/tokenizer_json_writer.h"

namespace rlx {
namespace {

std::string tokenizer_config_of(const GgufFile& file) {
  JsonWriter w(2);
  w.begin_object().member("tokenizer_class", "PreTrainedTokenizerFast");
  for (const auto& [name, text] : special_token_names(file)) w.member(name, text);
  for (const char* name : {"add_bos_token", "add_eos_token"})
    if (const GgufValue* v = file.find_value(concat_text("tokenizer.ggml.", name))) w.member(name, v->as_bool());
  w.member("clean_up_tokenization_spaces", false);
  if (const std::string_view chat = file.get_string("tokenizer.chat_template", ""); !chat.empty())
    w.member("chat_template", chat);
  return w.end_object().take() + "\n";
}

// The ids of tokens that end an answer, as load_language_model finds them in the GGUF file.
std::string generation_config_of(const GgufFile& file, const Tokenizer& tokenizer) {
  std::vector<std::int64_t> ends;
  const auto id_of = [&](std::string_view name) {
    const std::int64_t id = file.get_int(concat_text("tokenizer.ggml.", name, "_token_id"), -1);
    return id < tokenizer.vocab_size() ? id : -1;
  };
  const auto add = [&](std::int64_t id) {
    if (id >= 0 && std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  for (const char* name : {"eos", "eot", "eom"}) add(id_of(name));
  for (const char* text : kEndTokenTexts)
    if (const auto id = tokenizer.token_to_id(text)) add(*id);
  JsonWriter w(2);
  w.begin_object();
  if (id_of("bos") >= 0) w.member("bos_token_id", id_of("bos"));
  if (!ends.empty()) {
    w.key("eos_token_id").begin_array();
    for (const std::int64_t id : ends) w.value(id);
    w.end_array();
  }
  if (id_of("padding") >= 0) w.member("pad_token_id", id_of("padding"));
  return w.end_object().take() + "\n";
}

}  // namespace

void write_tokenizer_files(const GgufFile& file, const std::string& folder,
                           const std::function<void(const std::string&)>& note) {
  const auto missing = [&](std::string_view why) {
    if (note) note(concat_text("tokenizer.json is not written: ", why, "; copy it from the original model's folder"));
  };
  if (file.find_value("tokenizer.ggml.model") == nullptr) return missing("the GGUF file has no vocabulary");
  try {
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_from_gguf(file);
    write_file(join_path(folder, "tokenizer.json"), tokenizer_json_of(file, note));
    write_file(join_path(folder, "tokenizer_config.json"), tokenizer_config_of(file));
    write_file(join_path(folder, "generation_config.json"), generation_config_of(file, *tokenizer));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Unsupported) throw;
    missing(e.diagnostic().message);
  }
}

}  // namespace rlx
