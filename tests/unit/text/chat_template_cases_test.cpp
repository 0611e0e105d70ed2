// Chat templates against the output of Python's jinja2. The cases are in tests/parity/chat_cases.py, and
// chat_templates.py --update-cases writes the file.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "rlx/formats/json.h"
#include "rlx/text/jinja/json.h"
#include "rlx/text/jinja/render.h"
#include "tests/support/paths.h"

using namespace rlx;

namespace {

struct Outcome {
  std::string type, message;  // "text" and the text, or what is raised
  std::int64_t line = 0;
};

Outcome outcome_of(std::string_view source, const JsonValue& variables) {
  constexpr std::time_t kNow = 1753963200;  // as in jinja_reference.py
  try {
    jinja::Heap heap(jinja::Budget(20'000'000, std::size_t{64} << 20));
    const std::unique_ptr<jinja::Program> program = jinja::compile(source, "case");
    jinja::Variables given;
    for (const auto& [name, value] : variables.members("variables"))
      given.emplace_back(std::string(name), jinja::from_json(heap, value));
    return {"text", jinja::Renderer(*program, heap, kNow).run(given), 0};
  } catch (const jinja::Raised& raised) {
    return {raised.type, raised.message, raised.at.line};
  }
}

// Python counts the parts of its output, and rlx makes other parts.
std::string without_piece(std::string message) {
  const std::string opening = "sequence item ";
  if (message.starts_with(opening)) message.erase(opening.size(), message.find(':') - opening.size());
  return message;
}

}  // namespace

TEST_CASE("chat templates render, and refuse, as jinja2 does") {
  std::ifstream file(test::source_path("tests/unit/text/chat_template_cases.jsonl"));
  std::string line;
  REQUIRE(std::getline(file, line));
  const JsonDocument shared = JsonDocument::parse(line, "chat_template_cases.jsonl");
  std::size_t texts = 0, faults = 0;
  while (std::getline(file, line)) {
    const JsonDocument document = JsonDocument::parse(line, "chat_template_cases.jsonl");
    const JsonValue expected = document.root();
    const std::string source(expected.get_string("template"));
    const JsonValue variables = expected.find("variables").value_or(shared.root().at("variables"));
    const Outcome got = outcome_of(source, variables);
    CAPTURE(source);
    if (expected.find("text")) {
      CHECK(got.type == "text");
      CHECK(got.message == expected.get_string("text"));
      ++texts;
      continue;
    }
    ++faults;
    CHECK(got.type == expected.get_string("type"));
    CHECK(without_piece(got.message) == without_piece(std::string(expected.get_string("message"))));
    if (!expected.at("line").is_null()) CHECK(got.line == expected.get_int("line"));
  }
  CHECK(texts > 150);
  CHECK(faults > 100);
}
