// Command lines that cannot work: each ends with status 1 or 2, at once, and with a message that names what is wrong.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"

using namespace rlx;
using namespace rlx::test;

namespace {

const char* const kGraph = R"(graph @g {
  symbol n [1, 8]
  %0 = input() {name = "x"} : [n, 3] f32
  %1 = relu(%0) : [n, 3] f32
  return %1
}
)";

// Whether the message can be shown: a head, no control characters, nothing of the inside.
void check_message(const std::string& args, const ProgramResult& r) {
  CAPTURE(args);
  CAPTURE(r.err);
  CHECK((r.status == 1 || r.status == 2));
  CHECK(r.out.empty());
  CHECK(r.err.starts_with("rlx: "));
  CHECK(r.err.size() < 4000);
  for (const char* inside : {"internal", "basic_string", "std::", "stoi", "terminate", "Assertion"})
    CHECK_FALSE(contains(r.err, inside));
  for (const char c : r.err) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
}

}  // namespace

TEST_CASE("command lines: options, files and values that are wrong") {
  const TempDir dir;
  const std::string graph = dir.write("g.rlx", kGraph), text = dir.write("text", "hello\nworld\n"),
                    empty = dir.write("empty", ""), page = dir.write("page", "<!DOCTYPE html><html>"),
                    pointer =
                        dir.write("pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"),
                    bytes = dir.write("bytes", std::string("\x80\x00\xff\x01", 4)), folder = dir.path();
  std::vector<std::string> lines = {"'' ", "runn", "RUN", "-x", "--verson", "--", "help", graph};
  for (const char* command : {"run", "chat", "generate", "convert", "embed", "search", "index", "rerank", "pull",
                              "devices", "inspect", "opt", "ops", "bench"})
    for (const char* rest : {"--nonsense", "--hepl", "--threads x", "--threads -1", "--threads 1.5",
                             "--threads 99999999999999999999", "--threads", "--format xml", "a b c d e", "''",
                             "-d nodevice", "--batch 0", "--batch -5", "\"$(printf '\\033[31m\\302\\233')\""})
      lines.push_back(std::string(command) + " " + rest);
  for (const std::string& file : {text, empty, page, pointer, bytes, folder, folder + "/nofile"}) {
    for (const char* command : {"run ", "opt ", "inspect ", "bench ", "generate ", "chat ", "inspect --model "})
      lines.push_back(command + file);
    lines.push_back("run " + graph + " -i " + file);
    lines.push_back("run " + graph + " -w " + file + " -i " + file);
    lines.push_back("convert " + file + " " + folder + "/out");
    lines.push_back("search a " + text + " --model " + file);
    lines.push_back("embed --text a --model " + file);
    lines.push_back("rerank " + text + " -q a --model " + file);
    lines.push_back("search a -i " + file);
  }
  for (const char* rest : {"", "-i =", "-i x=", "-i y=y.npy", "-o /nodir/y.npy", "--max-values -1", "--max-values nan",
                           "--oracle -d cpu", "-d cuda", "-d tpu,plugin=/nofile", "-d cpu:99", "-d cpu,a=b"})
    lines.push_back("run " + graph + " " + rest);
  for (const char* rest : {"-b n=99", "-b m=2", "-b n=x", "-b n", "-b n=-1", "-b n=99999999999999999999", "-s nostage",
                           "--html /nodir/x.html", "--profile", "--batch 2"})
    lines.push_back("inspect " + graph + " " + rest);
  for (const char* rest :
       {"-n -1", "-n x", "-n 99999999999999999999", "--context -1", "--cache q2", "--temperature x", "--seed -1",
        "--seed 99999999999999999999", "--seed x", "--draft-tokens -1", "--lookup -1", "--json-whitespace compact",
        "--matmul-precision int4", "--json-schema ''", "--grammar ''", "--grammar a --json-schema b", "--top_p 0.5"})
    for (const char* command : {"generate ", "chat "}) lines.push_back(command + text + " " + rest);
  for (const char* rest : {"--type Q9", "--head-type X", "--split-max-size 0", "--split-max-size -1",
                           "--split-max-size 1Z", "--split-max-size 99999999999999999999G", "--importance /nofile"})
    lines.push_back("convert " + folder + " " + folder + "/out.gguf " + rest);
  for (const char* name : {"''", "a/b/c", "../../etc", "org/name@", "org/name:", "'ORG NAME/x'", "a/b@../x", "a/..",
                           "http://x/y", "./m", "a/b --retries -1", "a/b --retries x"})
    lines.push_back(std::string("pull ") + name);
  for (const std::string& line : lines) check_message(line, run_rlx(line + " </dev/null"));
  CHECK(lines.size() > 300);
}

TEST_CASE("command lines: misspelt options and commands get a guess") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--verson", "did you mean '--version'?"},
      {"embedd", "did you mean 'embed'?"},
      {"run --inptu x", "did you mean '--input'?"},
      {"generate m --top_p 1", "did you mean '--top-p'?"},
  };
  for (const auto& [line, part] : cases) expect_failure(run_rlx(line), 2, part);
}

TEST_CASE("command lines: control characters of arguments are shown, not obeyed") {
  for (const char* command : {"", "run ", "generate ", "pull ", "devices "}) {
    const ProgramResult r = run_rlx(std::string(command) + "\"$(printf 'a\\033[31m\\177\\302\\233b')\"");
    CAPTURE(command);
    CHECK_MESSAGE(contains(r.err, "a\\x1b[31m\\x7f\\xc2\\x9bb"), r.err);
  }
}
