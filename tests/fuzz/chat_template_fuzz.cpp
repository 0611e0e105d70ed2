// Fuzz target: any bytes as a chat template, and after a byte 0 as the JSON of its messages. What parses must render
// or refuse within its budget.
#include <cstddef>
#include <cstdint>

#include "rlx/error.h"
#include "rlx/text/chat_template.h"

namespace {

constexpr std::string_view kMessages = R"([{"role": "system", "content": "Be brief."},
  {"role": "user", "content": "Gr\u00fc\u00dfe, \ud83d\udc4b <b>\n x"},
  {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]},
  {"role": "tool", "content": [{"type": "text", "text": "22"}]}])";
constexpr std::string_view kTools =
    R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])";

template <class Call>
void only_errors(const Call& call) {
  try {
    call();
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = input.find('\0');
  only_errors([&] {
    const rlx::ChatTemplate chat = rlx::ChatTemplate::parse(input.substr(0, zero), "fuzz");
    const rlx::JsonDocument messages =
        rlx::JsonDocument::parse(zero == std::string_view::npos ? kMessages : input.substr(zero + 1), "messages");
    const rlx::JsonDocument tools = rlx::JsonDocument::parse(kTools, "tools");
    rlx::ChatTemplateOptions options;
    options.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    options.now = 0;
    options.max_steps = 200'000;
    only_errors([&] { (void)chat.render(messages.root(), options); });
    options.tools = tools.root();
    options.add_generation_prompt = false;
    only_errors([&] { (void)chat.render(messages.root(), options); });
  });
  return 0;
}
