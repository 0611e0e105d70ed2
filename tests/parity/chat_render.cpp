// Renders chat templates for chat_templates.py: standard input holds one JSON object a line, {"template": text,
// "variables": object, "now": seconds}, where a line without a template means the last one; each is answered by a line
// {"text": ...} or {"type": ..., "message": ..., "line": ..., "column": ...} with the class and the text of the
// exception that Python would raise.
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/text/jinja/json.h"
#include "rlx/text/jinja/render.h"

namespace {

namespace jinja = rlx::jinja;

std::string answer(const std::string& line, std::unique_ptr<jinja::Program>& program) {
  const rlx::JsonDocument job = rlx::JsonDocument::parse(line, "standard input");
  rlx::JsonWriter out;
  out.begin_object();
  try {
    jinja::Heap heap(jinja::Budget(20'000'000, std::size_t{512} << 20));
    if (job.root().find("template")) program = jinja::compile(job.root().get_string("template"), "template");
    jinja::Variables variables;
    for (const auto& [name, value] : job.root().at("variables").members("variables"))
      variables.emplace_back(std::string(name), jinja::from_json(heap, value));
    jinja::Renderer renderer(*program, heap, static_cast<std::time_t>(job.root().get_int("now", 0)));
    out.member("text", renderer.run(variables));
  } catch (const jinja::Raised& raised) {
    out.member("type", raised.type).member("message", raised.message);
    out.member("line", static_cast<std::int64_t>(raised.at.line));
    out.member("column", static_cast<std::int64_t>(raised.at.column));
  }
  out.end_object();
  return out.take();
}

}  // namespace

int main() try {
  std::ios::sync_with_stdio(false);
  std::unique_ptr<jinja::Program> program;
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line, program) << '\n';
  return 0;
} catch (const rlx::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
