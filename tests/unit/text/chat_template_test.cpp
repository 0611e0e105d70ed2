// Chat templates as users call them: files, variables, errors with positions, and adversarial templates.
#include "rlx/text/chat_template.h"

#include <doctest/doctest.h>

#include <ctime>
#include <filesystem>
#include <thread>

#include "rlx/error.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/gguf_writer.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace rlx;
using rlx::test::contains;
using rlx::test::error_text;

namespace {

const std::vector<ChatMessage> kHello = {{"system", "Be brief."}, {"user", "Hello"}};

std::string render(std::string_view source, const ChatTemplateOptions& options = {}) {
  return ChatTemplate::parse(source, "t").render(kHello, options);
}

std::string refusal(std::string_view source) {
  return error_text([&] { (void)render(source); });
}

}  // namespace

TEST_CASE("a chat template sees messages, tools, special tokens and what the caller adds") {
  const ChatTemplate chat = ChatTemplate::parse(
      "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m['content'] }}{% endfor %}"
      "{{ tools | tojson }}{{ documents is none }}{% if add_generation_prompt %}<assistant>{% endif %}{{ extra }}",
      "t");
  CHECK(chat.render(kHello) == "<system>Be brief.<user>HellonullTrue<assistant>");
  const JsonDocument tools = JsonDocument::parse(R"([{"name": "f"}])", "tools");
  const JsonDocument more = JsonDocument::parse(R"({"extra": [1, "ü"], "documents": []})", "more");
  ChatTemplateOptions options;
  options.add_generation_prompt = false;
  options.special_tokens = {{"bos_token", "<s>"}};
  options.tools = tools.root();
  options.variables = more.root();
  CHECK(chat.render(kHello, options) == "<s><system>Be brief.<user>Hello[{\"name\": \"f\"}]False[1, 'ü']");
  const JsonDocument json = JsonDocument::parse(R"([{"role": "user", "content": [{"type": "text"}]}])", "messages");
  CHECK(chat.render(json.root(), options) == "<s><user>[{'type': 'text'}][{\"name\": \"f\"}]False[1, 'ü']");
}

TEST_CASE("keys of tuples that share their parts cost as many steps as the tree has values") {
  const auto grown = [](int doublings, const std::string& use) {
    return concat_text("{% set a=namespace(s=()) %}{% set b=namespace(s=()) %}{% for i in range(", doublings,
                       ") %}{% set a.s=(a.s,a.s) %}{% set b.s=(b.s,b.s) %}{% endfor %}", use);
  };
  for (const char* use :
       {"{{ {a.s:1} | length }}", "{{ [a.s, b.s] | unique | list | length }}", "{{ a.s in {b.s: 1} }}",
        "{{ {1: 1}.get(a.s) }}", "{{ {1: 1}[a.s] }}", "{{ {a.s: 1} == {b.s: 1} }}"}) {
    CAPTURE(use);
    CHECK(contains(refusal(grown(100, use)), "takes too many steps"));
    CHECK(refusal(grown(10, use)).empty());
  }
  CHECK(render(grown(10, "{{ a.s in {b.s: 1} }}")) == "True");
}

TEST_CASE("strftime_now reads the time that is given") {
  ChatTemplateOptions options;
  options.now = 1753963200;  // noon UTC: the same day in nearly all time zones
  CHECK(render("{{ strftime_now('%Y-%m-%d %B %%') }}", options) == "2025-07-31 July %");
  CHECK(render("{{ strftime_now('%Y') | int >= 2025 }}") == "True");
  CHECK(render("{{ strftime_now('') }}") == "");
}

TEST_CASE("errors of chat templates name the template, the place and Python's words") {
  CHECK(contains(refusal("a\n  {{ x.y }}"), "chat template 't': UndefinedError: 'x' is undefined"));
  CHECK(contains(refusal("a\n  {{ x.y }}"), "line 2, column 7: {{ x.y }}"));
  CHECK(
      contains(refusal("{{ raise_exception('Only ' ~ 2 ~ ' turns') }}"), "'t' refuses the conversation: Only 2 turns"));
  CHECK(
      contains(refusal("{% if x %}"), "bad file: chat template 't': TemplateSyntaxError: Unexpected end of template."));
  CHECK(contains(refusal("ü {{ 'x' | nosuch }}"), "No filter named 'nosuch'."));
  CHECK(contains(refusal("ü {{ 'x' | nosuch }}"), "line 1, column 12"));
  CHECK(contains(refusal("{% include 'x' %}"), "unsupported"));
  CHECK(contains(refusal("{{ 'x' | urlize }}"), "the filter 'urlize' is not supported"));
  CHECK(contains(refusal("{{ lipsum() }}"), "the function 'lipsum' is not supported"));
  CHECK(contains(refusal(std::string("a\xff")), "byte 1 is not valid UTF-8"));
  const std::vector<ChatMessage> bad = {{"user", "x\xc0"}};
  CHECK(contains(error_text([&] { (void)ChatTemplate::parse("x", "t").render(bad); }),
                 "message 1 is not valid UTF-8 at byte 1 of its content"));
  CHECK(contains(refusal("{% for x in y %}{% block a %}{% endblock %}{% endfor %}"), "write {% block a scoped %}"));
  CHECK(contains(refusal("{% block a required %}{% endblock %}"), "required %} is not supported"));
  CHECK(contains(refusal("{{ '&zigrarr;' | striptags }}"), "does not know the character reference &zigrarr;"));
  const std::string longest = refusal("{{ raise_exception('x' * 1000000) }}");
  CHECK(longest.size() < 5000);
}

TEST_CASE("chat templates write integers of messages and tools with all their digits") {
  const auto messages = JsonDocument::parse(
      R"([{"role": "user", "content": "x", "id": 12345678901234567890123, "ids": [18446744073709551615, -9]}])", "m");
  const ChatTemplate chat =
      ChatTemplate::parse("{{ messages[0].id }} {{ messages[0] | tojson }} {{ messages[0].id + 1 }}", "t");
  CHECK(chat.render(messages.root()) ==
        "12345678901234567890123 {\"role\": \"user\", \"content\": \"x\", \"id\": 12345678901234567890123, \"ids\": "
        "[18446744073709551615, -9]} 12345678901234567890124");
  CHECK(contains(refusal("{{ 10 ** 5000 }}"), "an integer has more than 4300 digits"));
  CHECK(contains(refusal("{{ " + std::string(5000, '9') + " }}"), "an integer has more than 4300 digits"));
}

TEST_CASE("chat templates are found in model folders") {
  const auto source_of = [](const test::TempDir& dir) { return std::string(ChatTemplate::load(dir.path()).source()); };
  {
    test::TempDir dir;
    CHECK(contains(error_text([&] { (void)ChatTemplate::load(dir.path()); }), "there is no chat template"));
    dir.write("tokenizer_config.json", R"({"chat_template": null, "bos_token": "<s>"})");
    CHECK(contains(error_text([&] { (void)ChatTemplate::load(dir.path()); }), "there is no chat template"));
    dir.write("chat_template.json", R"({"chat_template": "of json"})");
    CHECK(source_of(dir) == "of json");
    dir.write("tokenizer_config.json", R"({"chat_template": "of config {{ bos_token }}{{ eos_token }}{{ pad_token }}",
      "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null})");
    const ChatTemplate chat = ChatTemplate::load(dir.path());
    CHECK(chat.render(kHello) == "of config <s></s>");
    CHECK(chat.names() == std::vector<std::string>{"default"});
    CHECK(chat.special_tokens().size() == 2);
    dir.write("chat_template.jinja", "of a file {{ bos_token }}\n");
    CHECK(ChatTemplate::load(dir.path()).render(kHello) == "of a file <s>");
    dir.write("chat_template.jinja", "{% if %}");
    CHECK(contains(error_text([&] { (void)source_of(dir); }), "chat_template.jinja"));
    // Loaded for a model, it fails where it is used.
    const ChatTemplate broken = ChatTemplate::load(dir.path(), BadTemplates::Defer);
    CHECK(broken.source() == "{% if %}");
    const std::string said = error_text([&] { (void)broken.render(kHello); });
    CHECK(contains(said, "chat_template.jinja': TemplateSyntaxError: Expected an expression"));
    CHECK(contains(said, "--chat-template FILE"));
    dir.write("chat_template.jinja", "\xEF\xBB\xBF of a file");
    CHECK(ChatTemplate::load(dir.path()).render(kHello) == " of a file");
  }
  {  // of a GGUF file, whose metadata name the special tokens
    const test::TempDir dir;
    const auto written = [&](const char* source) {
      GgufWriter out(dir.file("m.gguf"));
      out.set_string("general.architecture", "llama");
      out.set_strings("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>", "a"});
      out.set_int("tokenizer.ggml.bos_token_id", GgufKind::U32, 1);
      out.set_int("tokenizer.ggml.eos_token_id", GgufKind::U32, 2);
      out.set_int("tokenizer.ggml.padding_token_id", GgufKind::U32, 9);  // there is none
      if (source) out.set_string("tokenizer.chat_template", source);
      out.begin();
      out.commit();
      return GgufFile::open(dir.file("m.gguf"));
    };
    const ChatTemplate chat = ChatTemplate::load(*written("{{ bos_token }}{{ messages[1].content }}{{ eos_token }}"));
    CHECK(chat.render(kHello) == "<s>Hello</s>");
    CHECK(chat.special_tokens().size() == 2);
    CHECK(contains(error_text([&] { (void)ChatTemplate::load(*written("{% if %}")); }), dir.file("m.gguf")));
    const ChatTemplate broken = ChatTemplate::load(*written("{% if %}"), BadTemplates::Defer);
    CHECK(contains(error_text([&] { (void)broken.render(kHello); }), dir.file("m.gguf")));
    const auto none = written(nullptr);
    CHECK(contains(error_text([&] { (void)ChatTemplate::load(*none); }), "there is no chat template"));
    CHECK(ChatTemplate::parse("{{ bos_token }}", "own", special_token_names(*none)).render(kHello) == "<s>");
  }
  test::TempDir dir;
  dir.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "tools"},
    {"name": "default", "template": "plain"}, {"name": "rag", "template": "rag"}]})");
  const ChatTemplate chat = ChatTemplate::load(dir.path());
  CHECK(chat.names() == std::vector<std::string>{"default", "tool_use", "rag"});
  ChatTemplateOptions options;
  CHECK(chat.render(kHello, options) == "plain");
  options.template_name = "rag";
  CHECK(chat.render(kHello, options) == "rag");
  const JsonDocument tools = JsonDocument::parse("[]", "tools");
  options.tools = tools.root();
  CHECK(chat.render(kHello, options) == "rag");
  options.template_name.clear();
  CHECK(chat.render(kHello, options) == "tools");
  CHECK(chat.source("rag") == "rag");
  CHECK(contains(error_text([&] { (void)chat.source("nosuch"); }), "the templates are 'default', 'tool_use', 'rag'"));
}

TEST_CASE("hostile chat templates end in an error, soon and within bounds" * doctest::test_suite(test::kSlow)) {
  const auto times = [](std::string_view text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  const std::pair<std::string, std::string> cases[] = {
      {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "too many steps"},
      {"{% set ns = namespace(s='xxxxxxxx') %}{% for a in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
       "64 MiB"},
      {"{% for a in range(100000) %}{{ 'x' * 10000 }}{% endfor %}", "64 MiB"},
      {"{{ 'x' * 10 ** 15 }}", "64 MiB"},
      {"{{ [0] * 10 ** 12 }}", "16 million"},
      {"{{ 'a'.center(10 ** 12) }}", "64 MiB"},
      {"{{ '%999999999d' % 1 }}", "64 MiB"},
      {"{{ '%.999999999f' % 1 }}", "10,000 digits"},
      {"{{ '{:>999999999}'.format('x') }}", "64 MiB"},
      {"{{ ('a' * 100000) | replace('a', 'b' * 100000) }}", "64 MiB"},
      {"{{ ('a' * 100000).replace('', 'b' * 100000) }}", "64 MiB"},
      {"{{ ('x' * 1000).join(range(9) | map('string') | list * 100000) }}", ""},
      {"{{ 'x\\ty'.expandtabs(10 ** 15) }}", "64 MiB"},
      {"{{ 'x' | indent(10 ** 12, true) }}", "64 MiB"},
      {"{{ [[1]] | tojson(indent=10 ** 12) }}", "64 MiB"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "calls itself"},
      {"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "calls itself"},
      {"{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}", "too many steps"},
      {"{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}", "calls itself"},
      {"{% set ns = namespace(l=[]) %}{% for a in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}", "200 deep"},
      {"{% set ns = namespace(l=[]) %}{% for a in range(999) %}{% set ns.l = ns.l | map('upper') %}{% endfor %}",
       "200 deep"},
      {"{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", "recursion"},
      {"{% set ns = namespace(l=[0]) %}{% for a in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}", ""},
      {"{% set ns = namespace(l=[1, 1]) %}{% for a in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
       ""},
      {"{% set ns = namespace(l=[1, 1]) %}{% for a in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l == "
       "ns.l + [] }}",
       ""},
      {"{{ 9223372036854775807 ** 300 }}", "4300 digits"},
      {"{{ 2 ** 2 ** 40 }}", ""},
      {"{{ 2 ** 99999999999999999999 }}", "4300 digits"},
      {"{% set ns = namespace(n=3) %}{% for a in range(99) %}{% set ns.n = ns.n * ns.n %}{% endfor %}", "4300 digits"},
      {times("(", 5000), ""},
      {"{{ " + times("(", 5000), "nested too deeply"},
      {"{{ " + times("[", 5000), "nested too deeply"},
      {"{{ " + times("not ", 5000), "nested too deeply"},
      {"{{ " + times("-", 5000), "nested too deeply"},
      {"{{ 1" + times(" + 1", 5000) + " }}", "nested too deeply"},
      {"{{ a" + times(".b", 5000) + " }}", "nested too deeply"},
      {"{{ a" + times("|string", 5000) + " }}", "nested too deeply"},
      {"{{ a" + times(" if b else c", 5000) + " }}", "nested too deeply"},
      {times("{% if a %}", 5000), "nested too deeply"},
      {times("{% for a in b %}", 5000), "nested too deeply"},
      {std::string(2 << 20, 'x'), "at most 1 MiB"},
  };
  for (const auto& one : cases) {
    const std::string source = one.first, part = one.second;
    const std::clock_t start = std::clock();  // CPU time of this process, because the machine may be busy
    const std::string said = error_text([&] { (void)render(source); });
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    CAPTURE(source.substr(0, 120));
    CHECK_MESSAGE(contains(said, part), said);
    CHECK(seconds < 20);  // at most two, except under sanitizers
    if (!part.empty()) CHECK(!said.empty());
  }
}

TEST_CASE("a smaller budget stops sooner, and one template serves many threads") {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% macro m(x) %}{{ x | upper }}{% endmacro %}{% set ns = namespace(t='') %}"
      "{% for i in range(200) %}{% set ns.t = ns.t ~ m('a') %}{% endfor %}{{ ns.t | length }}",
      "t");
  ChatTemplateOptions options;
  options.max_steps = 1000;
  CHECK(contains(error_text([&] { (void)chat.render(kHello, options); }), "max_steps"));
  std::vector<std::string> results(8);
  {
    std::vector<std::thread> threads;
    for (std::string& result : results) threads.emplace_back([&] { result = chat.render(kHello); });
    for (std::thread& t : threads) t.join();
  }
  for (const std::string& result : results) CHECK(result == "200");
}
