// Chat templates: messages, tools as JSON, variables, and a template that raises an error.
#include <rlx/text/chat_template.h>

#include <cstdio>

#include "rlx/error.h"

namespace {

// A small chat template, as in a model's tokenizer_config.json or GGUF file.
constexpr std::string_view kSource = R"({{ bos_token }}
{%- for m in messages %}
    {%- if m.role not in ('system', 'user', 'assistant') %}
        {{- raise_exception('there is no role ' ~ m.role) }}
    {%- endif %}
    {{- '<|' ~ m.role ~ '|>' ~ m.content | trim ~ '\n' }}
{%- endfor %}
{%- for tool in tools or [] %}
    {{- tool.function | tojson ~ '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' ~ ('<think>' if enable_thinking) }}
{%- endif %})";

void run() {
  const auto chat = rlx::ChatTemplate::parse(kSource, "small");
  const std::vector<rlx::ChatMessage> messages = {{"system", "Be brief."}, {"user", "Hello!"}};
  rlx::ChatTemplateOptions options;
  options.special_tokens = {{"bos_token", "<s>"}};
  std::printf("%s\n\n", chat.render(messages, options).c_str());

  const auto tools = rlx::JsonDocument::parse(R"([{"function": {"name": "now", "parameters": {}}}])", "tools");
  const auto more = rlx::JsonDocument::parse(R"({"enable_thinking": true})", "variables");
  options.tools = tools.root();
  options.variables = more.root();
  const auto json = rlx::JsonDocument::parse(R"([{"role": "user", "content": "What time is it?"}])", "messages");
  std::printf("%s\n\n", chat.render(json.root(), options).c_str());

  const auto strange = rlx::JsonDocument::parse(R"([{"role": "bard", "content": "Sing"}])", "messages");
  try {
    chat.render(strange.root(), options);
  } catch (const rlx::Error& e) {
    std::printf("%s\n", e.what());
  }
}

}  // namespace

int main() try {
  run();
  return 0;
} catch (const rlx::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
