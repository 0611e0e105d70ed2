// The files of a text-generating model.
#include "tests/support/text_model.h"

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/text/tokenizer/byte_level.h"
#include "tests/support/decoder_reference.h"

namespace rlx::test {

std::vector<std::string> text_model_tokens() {
  std::vector<std::string> out{"<unk>", "<s>", "</s>"};
  for (char c = 'a'; c <= 'z'; ++c) out.emplace_back(1, c);
  for (const char c : std::string("0123456789 \n{}[]\":,.-\\<>/|\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"))
    out.emplace_back(1, c);
  for (const char* text : {"ab",
                           "ba",
                           "aba",
                           "abc",
                           "{\"",
                           "\":",
                           "\", \"",
                           "\",\"",
                           "true",
                           "false",
                           "null",
                           " a",
                           " the",
                           "e+",
                           "00",
                           "12",
                           "}}",
                           "]}",
                           "\"}",
                           "[]",
                           "ing",
                           "th",
                           "\n\n",
                           "\xC3\xA4",
                           "\xC3\xA4z",
                           "a\xE2",
                           "\xAC\"",
                           "\x82\xAC x",
                           "\xF0\x9F",
                           "\x98\x80",
                           "\xF0\x9F\x98\x80",
                           "ar"})
    out.emplace_back(text);
  check(out.size() == 96, "the reference decoders have 96 ids");
  return out;
}

void write_text_model(const TempDir& folder, const std::string& name) {
  write_model(folder, decoder_reference(name));
  const std::vector<std::string> tokens = text_model_tokens();
  JsonWriter json;
  json.begin_object();
  json.key("added_tokens").begin_array();
  for (int id = 0; id < 3; ++id)
    json.begin_object()
        .member("id", id)
        .member("content", tokens[static_cast<std::size_t>(id)])
        .member("special", true)
        .member("normalized", false)
        .end_object();
  json.end_array();
  json.key("pre_tokenizer").begin_object();
  json.member("type", "ByteLevel").member("add_prefix_space", false).member("use_regex", false).end_object();
  json.key("decoder").begin_object().member("type", "ByteLevel").end_object();
  json.key("model").begin_object().member("type", "BPE").key("vocab").begin_object();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    std::string letters;
    if (id < 3)
      letters = tokens[id];
    else
      append_byte_characters(letters, tokens[id]);
    json.member(letters, static_cast<std::int64_t>(id));
  }
  json.end_object().key("merges").begin_array().end_array().end_object().end_object();
  folder.write("tokenizer.json", json.take());
  JsonWriter config;
  config.begin_object().member(
      "chat_template",
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:"
      "{% endif %}");
  config.member("bos_token", "<s>").member("eos_token", "</s>").end_object();
  folder.write("tokenizer_config.json", config.take());
}

}  // namespace rlx::test
