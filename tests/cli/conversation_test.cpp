// `rlx generate` and `rlx chat`: grammars, saved conversations, full contexts, memory, and what they say of mistakes.
#include <doctest/doctest.h>

#include <filesystem>

#include "rlx/formats/json.h"
#include "tests/support/error_text.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_model.h"

using namespace rlx;
using namespace rlx::test;

namespace {

struct ChatModel {
  ChatModel() { write_text_model(folder); }
  std::string generate(const std::string& rest) const { return "generate " + folder.path() + " " + rest; }
  std::string chat(const std::string& rest) const { return "chat " + folder.path() + " " + rest; }
  TempDir folder;
};

std::string said(const ProgramResult& r) {
  CHECK_MESSAGE(r.status == 0, r.err);
  return r.out;
}

}  // namespace

TEST_CASE("rlx generate: answers of a grammar and of a JSON schema") {
  const ChatModel m;
  const std::string g = m.folder.write("g.gbnf", "root ::= \"yes\" | \"no\"\n");
  const std::string schema = R"({"type":"array","items":{"enum":["ab","ba"]},"minItems":1,"maxItems":2})";
  const std::string s = m.folder.write("s.json", schema);
  for (const char* seed : {"1", "2", "3"}) {
    const std::string word = said(run_rlx(m.generate(concat_text("abc --seed ", seed, " --grammar ", g))));
    CHECK((word == "yes\n" || word == "no\n"));
    const std::string with = concat_text("abc --context 512 --seed ", seed, " --json-schema ");
    const std::string list = said(run_rlx(m.generate(with + s)));
    const JsonDocument parsed = JsonDocument::parse(list, "answer");
    const auto items = parsed.root().elements("answer");
    CHECK(items.size() >= 1);
    CHECK(items.size() <= 2);
    CHECK(said(run_rlx(m.generate(with + "'" + schema + "'"))) == list);
  }
  const std::string turns = said(run_rlx(m.chat("--grammar " + g), "abc\nabc\n"));
  CHECK((turns == "yes\nyes\n" || turns == "yes\nno\n" || turns == "no\nyes\n" || turns == "no\nno\n"));

  const std::string bad = m.folder.write("bad.gbnf", "root ::= \"a\"\nx ::= [a\n");
  expect_failure(run_rlx(m.generate("abc --grammar " + bad)), 1, bad + ":2:");
  expect_failure(run_rlx(m.generate("abc --grammar " + m.folder.file("none"))), 1, "No such file");
  expect_failure(run_rlx(m.generate("abc --json-schema '{\"type\": 3}'")), 1, "--json-schema");
  expect_failure(run_rlx(m.generate("abc --json-schema '{\"type\": '")), 1,
                 "--json-schema: not valid JSON at byte 9 (line 1, column 10)");
  const std::string bad_schema = m.folder.write("bad.json", "{\n  \"type\": ]\n}");
  expect_failure(run_rlx(m.generate("abc --json-schema " + bad_schema)), 1,
                 bad_schema + ": not valid JSON at byte 12 (line 2, column 11)");
  expect_failure(run_rlx(m.generate("abc --json-schema " + s + " --grammar " + g)), 2,
                 "--grammar excludes --json-schema");
  const std::string large = m.folder.write("large.gbnf", "root ::= \"zZ\"\n");
  const ProgramResult stuck = run_rlx(m.generate("abc --grammar " + large));
  CHECK(stuck.status == 1);
  CHECK(contains(stuck.err, "no token of the vocabulary can follow in the grammar"));
}

TEST_CASE("rlx generate: a saved answer goes on as if it had not stopped") {
  const ChatModel m;
  const std::string state = m.folder.file("c.rlxchat");
  for (const char* raw : {"", "--raw "}) {
    // A seed whose answer does not end by itself.
    std::string options, whole;
    for (int seed = 1; seed < 20 && whole.size() < 95; ++seed) {
      options = concat_text("--seed ", seed, " --context 400 ", raw);
      whole = said(run_rlx(m.generate(options + "-n 90 'abc def'")));
    }
    REQUIRE(whole.size() >= 95);
    std::string first = said(run_rlx(m.generate(options + "-n 70 'abc def' --save-state " + state)));
    const ProgramResult rest = run_rlx(m.generate(options + "-n 20 --timings --load-state " + state));
    CHECK(contains(rest.err, "(64 reused)"));
    REQUIRE(first.ends_with("\n"));
    if (!whole.starts_with(first)) first.pop_back();  // the line end of the command
    CHECK(first + said(rest) == whole);
    // More words behind it, and saved again to the same file.
    const std::string more = options + "-n 5 --load-state " + state + " --save-state " + state + " zzz";
    CHECK_FALSE(said(run_rlx(m.generate(more))).empty());
  }
  expect_failure(run_rlx(m.generate("abc --load-state " + m.folder.file("none"))), 1, "cannot open");
  expect_failure(run_rlx(m.generate("abc --load-state " + m.folder.file("config.json"))), 1,
                 "not a saved conversation");
  expect_failure(run_rlx(m.generate("abc --cache bf16 --context 400 --load-state " + state)), 1,
                 "a cache of f32, but the model has bf16");
  CHECK(contains(run_rlx(m.generate("abc -n 2 --save-state /nowhere/x")).err, "/nowhere"));
}

TEST_CASE("rlx chat: conversations are saved and loaded between turns") {
  const ChatModel m;
  const std::string state = m.folder.file("c.rlxchat"), options = "--seed 3 --context 800 -n 40 --system abc ";
  const std::string whole = said(run_rlx(m.chat(options), "one\ntwo\nthree\n"));
  const std::string two = said(run_rlx(m.chat(options), "one\ntwo\n/save " + state + "\n"));
  REQUIRE(whole.starts_with(two));
  CHECK(two + said(run_rlx(m.chat(options), "/load " + state + "\nthree\n")) == whole);
  CHECK(two + said(run_rlx(m.chat(options + "--load-state " + state), "three\n")) == whole);
  const std::string later = m.folder.file("later");
  CHECK(said(run_rlx(m.chat(options + "--save-state " + later), "one\ntwo\n")) == two);
  CHECK(two + said(run_rlx(m.chat(options), "other\n/new\n/load " + later + "\nthree\n"))
                  .substr(said(run_rlx(m.chat(options), "other\n")).size()) ==
        whole);
  CHECK(contains(run_rlx(m.chat(options), "/load\n").err, "/load needs the name of a file"));
  CHECK(contains(run_rlx(m.chat(options), "/save " + m.folder.file("empty") + "\n").err, "the conversation is empty"));
  CHECK_FALSE(std::filesystem::exists(m.folder.file("empty")));
  CHECK(run_rlx(m.chat(options + "--save-state " + m.folder.file("empty")), "").status == 0);
  CHECK(contains(run_rlx(m.chat(options), "/load " + m.folder.file("none") + "\n").err, "cannot open"));
  CHECK(run_rlx(m.generate("abc --raw -n 3 --save-state " + later)).status == 0);
  CHECK(contains(run_rlx(m.chat("--load-state " + later), "a\n").err, "has a text, not a conversation"));
}

TEST_CASE("rlx chat: commands are carried out here and never said to the model") {
  const ChatModel m;
  const std::string options = "--seed 3 --context 800 -n 10 ";
  const std::string one = said(run_rlx(m.chat(options), "one\n"));
  for (const char* lines : {"/help\none\n", "/?\none\n", "one\n/quit\ntwo\n", "one\n/exit\ntwo\n", "/clear\none\n",
                            "/new \none\n", "/system\none\n", "one\n/bye\n/nonsense\n", "\none\n"}) {
    CAPTURE(lines);
    const ProgramResult r = run_rlx(m.chat(options), lines);
    CHECK(r.status == 0);
    CHECK(r.out == one);
  }
  for (const char* word : {"/help", "/clear", "/system", "/save", "/load", "/quit", "//TEXT"})
    CHECK(contains(run_rlx(m.chat(options), "/help\n").err, word));
  CHECK(said(run_rlx(m.chat(options + "--system abc"), "one\n")) ==
        said(run_rlx(m.chat(options), "/system abc\none\n")));
  CHECK(said(run_rlx(m.chat(options + "--system zz"), "/system  abc \none\n")) ==
        said(run_rlx(m.chat(options + "--system abc"), "one\n")));
  CHECK(contains(run_rlx(m.chat(options + "--system abc"), "/system\n").err, "abc"));
  // Unknown commands are errors with a guess; text behind two slashes, and paths, are said.
  for (const auto& [said_line, wanted] :
       {std::pair("/hlep", "did you mean '/help'"), std::pair("/quite\n", "'/quit'"), std::pair("/Save x", "'/save'"),
        std::pair("/nonsense", "/help lists the commands"), std::pair("/clear all", "takes nothing after it"),
        std::pair("/", "no command /")}) {
    const std::string line = said_line, guess = wanted;
    CAPTURE(line);
    const ProgramResult r = run_rlx(m.chat(options), line + "\none\n");
    CHECK(r.status == 1);
    CHECK(r.out.empty());
    CHECK(contains(r.err, guess));
  }
  CHECK(run_rlx(m.chat(options), "//one\n").status == 0);
  CHECK(run_rlx(m.chat(options), "/usr/bin a\n").status == 0);
}

TEST_CASE("rlx generate: values out of range, biased tokens, white space of JSON") {
  const ChatModel m;
  for (const auto& [given, wanted] :
       {std::pair("--top-p 2", "top_p is 2, but must be"), std::pair("--top-p 0", "top_p is 0"),
        std::pair("--top-k -5", "top_k is -5, but must be"),
        std::pair("--seed -1", "--seed: must be an integer from 0 to"),
        std::pair("--seed 99999999999999999999", "got 99999999999999999999"),
        std::pair("-n 99999999999999999999", "must be an integer from"),
        std::pair("-n -1", "must be 0 or more, got -1"),
        std::pair("--top-k 3000000000", "must be an integer from -2147483648 to 2147483647"),
        std::pair("--penalty-window -2", "penalty_window is -2"), std::pair("--temperature nan", "temperature is nan"),
        std::pair("--typical-p 1.5", "typical_p is 1.5"), std::pair("--mirostat 3", "mirostat is 3"),
        std::pair("--logit-bias x", "--logit-bias x is not TOKEN=BIAS"),
        std::pair("--logit-bias 5=inf", "is not TOKEN=BIAS"), std::pair("--logit-bias 5=", "is not TOKEN=BIAS"),
        std::pair("--logit-bias =5", "is not TOKEN=BIAS"), std::pair("--logit-bias 96=1", "there is no token 96"),
        std::pair("--json-whitespace none", "requires"),
        std::pair("--json-schema {} --json-whitespace tabs", "tabs")}) {
    const std::string option = given, words = wanted;
    CAPTURE(option);
    const ProgramResult r = run_rlx(m.generate("abc -n 3 " + option));
    CHECK(r.status == 2);
    CHECK(contains(r.err, words));
  }
  CHECK(said(run_rlx(m.generate("abc -n 3 --seed 18446744073709551615"))).size() > 0);
  // A forced token, by its id and by its text.
  const std::string forced = said(run_rlx(m.generate("abc --raw -n 4 --logit-bias b=1000")));
  CHECK(forced == "bbbb\n");
  const std::string other = said(run_rlx(m.generate("abc --raw -n 4 --logit-bias b=1000 --logit-bias b=-inf")));
  CHECK(other != forced);
  const std::string schema = R"('{"type":"array","items":{"enum":["ab","ba"]},"minItems":2,"maxItems":2}')";
  for (const char* seed : {"1", "2", "3", "4"}) {
    const std::string with = concat_text("abc --context 512 --seed ", seed, " --json-schema ", schema);
    // At most one blank in each of the four places.
    const std::string usual = said(run_rlx(m.generate(with)));
    CHECK(JsonDocument::parse(usual, "answer").root().size() == 2);
    CHECK(usual.size() <= std::string("[\"ab\",\"ba\"]\n").size() + 4);
    CHECK(contains(said(run_rlx(m.generate(with + " --json-whitespace spaced"))), "\", \""));
    CHECK(said(run_rlx(m.generate(with + " --json-whitespace none"))).size() ==
          std::string("[\"ab\",\"ba\"]\n").size());
    const std::string free = said(run_rlx(m.generate(with + " --json-whitespace flexible")));
    CHECK(JsonDocument::parse(free, "answer").root().size() == 2);
  }
}

TEST_CASE("rlx generate: a chat template that does not parse stops only what needs it") {
  const ChatModel m;
  const std::string options = "abc -n 3 --seed 2 ";
  const std::string raw = said(run_rlx(m.generate(options + "--raw")));
  const std::string own = m.folder.write("own.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  const std::string with_own = said(run_rlx(m.generate(options + "--chat-template " + own)));
  m.folder.write("chat_template.jinja", "{% if messages %}\n{% bogus %}");
  CHECK(said(run_rlx(m.generate(options + "--raw"))) == raw);
  CHECK(said(run_rlx(m.generate(options + "--chat-template " + own))) == with_own);
  for (const ProgramResult& r : {run_rlx(m.generate(options)), run_rlx(m.chat(""), "abc\n")}) {
    CHECK(r.status == 1);
    CHECK(contains(r.err, "chat_template.jinja': TemplateSyntaxError: Encountered unknown tag 'bogus'"));
    CHECK(contains(r.err, "--chat-template FILE"));
  }
}

TEST_CASE("rlx chat: when the context is full") {
  const ChatModel m;
  const std::string line = "aaaaaaaaaaaaaaaaaaaa\n", lines = line + line + line + line + line + line;
  const std::string options = "--context 128 -n 10 --system s ";
  const ProgramResult full = run_rlx(m.chat(options), lines);
  CHECK(full.status == 1);
  CHECK(contains(full.err, "leaves no room for an answer in a context of 128"));
  CHECK(contains(full.err, "--drop-oldest"));
  const ProgramResult dropped = run_rlx(m.chat(options + "--drop-oldest"), lines);
  CHECK(dropped.status == 0);
  CHECK(contains(dropped.err, "the oldest 2 messages were dropped"));
  // A single turn that does not fit is refused all the same.
  CHECK(contains(run_rlx(m.chat(options + "--drop-oldest"), std::string(200, 'a') + "\n").err,
                 "leaves no room for an answer"));
  const ProgramResult cut = run_rlx(m.generate("--context 40 --skip-memory-check aaaa"));
  CHECK(cut.status == 0);
  CHECK(contains(cut.err, "the context of 40 tokens is full"));
}

TEST_CASE("rlx generate: what Mirostat has learnt and where a schema stands are saved with an answer") {
  const ChatModel m;
  const std::string state = m.folder.file("c.rlxchat");
  const std::string schema =
      "--json-schema '{\"type\":\"array\",\"items\":{\"enum\":[\"ab\",\"ba\"]},\"minItems\":7,\"maxItems\":7}'";
  for (const std::string& how : {std::string("--mirostat 2 --mirostat-tau 2 --mirostat-eta 0.5"),
                                 std::string("--mirostat 1 --mirostat-tau 3"), schema}) {
    CAPTURE(how);
    // A seed whose answer does not end by itself too soon.
    std::string options, whole;
    for (int seed = 1; seed < 30 && whole.size() < (how == schema ? 30 : 60); ++seed) {
      options = concat_text("--seed ", seed, " --context 400 --raw ", how, " ");
      whole = said(run_rlx(m.generate(options + "-n 60 'abc def'")));
    }
    REQUIRE(whole.size() >= 30);
    std::string first = said(run_rlx(m.generate(options + "-n 20 'abc def' --save-state " + state)));
    const std::string rest = said(run_rlx(m.generate(options + "-n 40 --load-state " + state)));
    if (!whole.starts_with(first)) first.pop_back();  // the line end of the command
    if (!contains(first, "\xEF\xBF\xBD")) CHECK(first + rest == whole);
    CHECK(whole.size() > first.size());
  }
  // Another grammar does not go on with it.
  const ProgramResult other = run_rlx(m.generate("--raw --json-schema '{\"type\":\"integer\"}' --load-state " + state));
  CHECK(other.status == 1);
  CHECK(contains(other.err, "is not allowed by the grammar here"));
}

TEST_CASE("rlx generate and chat: weights in the forms that products read are kept for later starts") {
  const ChatModel m;
  const std::string forms = m.folder.file("forms"), options = "-n 20 --timings abc --packed-weights " + forms;
  const std::string plain = said(run_rlx(m.generate("-n 20 abc")));
  const ProgramResult first = run_rlx(m.generate(options));
  CHECK(said(first) == plain);
  CHECK_MESSAGE(contains(first.err, "packed weights: 0.0 MB found, "), first.err);
  CHECK_FALSE(contains(first.err, "found, 0.0 MB saved"));
  for (const char* more : {"", " --verify-packed-weights"}) {
    const ProgramResult later = run_rlx(m.generate(options + more));
    CHECK(said(later) == plain);
    CHECK_MESSAGE(contains(later.err, "found, 0.0 MB saved"), later.err);
    CHECK_FALSE(contains(later.err, "packed weights: 0.0 MB found"));
    CHECK_FALSE(contains(later.err, "rlx:"));
  }
  const ProgramResult talk = run_rlx(m.chat("-n 20 --timings --packed-weights " + forms), "abc\n");
  CHECK(said(talk) == plain);
  CHECK(contains(talk.err, "found, 0.0 MB saved"));
  const ProgramResult old = run_rlx(m.generate("-n 20 --timings abc --verify-forms --forms " + forms));
  CHECK(said(old) == plain);
  CHECK(contains(old.err, "found, 0.0 MB saved"));
  CHECK(contains(old.err, "rlx: --verify-forms is now --verify-packed-weights; "));
  CHECK(contains(old.err, "rlx: --forms is now --packed-weights; "));

  // A damaged form is told, and made anew.
  std::string form;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(forms))
    if (entry.is_regular_file()) form = entry.path().string();
  std::filesystem::resize_file(form, 100);
  const ProgramResult healed = run_rlx(m.generate(options));
  CHECK(said(healed) == plain);
  CHECK_MESSAGE(contains(healed.err, "rlx: packed weight file \"" + form + "\" has a damaged header"), healed.err);
  CHECK_FALSE(contains(run_rlx(m.generate(options)).err, "damaged"));
  // So is a disk that fills, once: files of 512 bytes at most stand for it.
  const std::string full =
      "ulimit -f 1; " + rlx_command() + m.generate("-n 20 abc --packed-weights " + m.folder.file("full"));
  const ProgramResult stopped = run_shell(full);
  CHECK(said(stopped) == plain);
  CHECK_MESSAGE(
      contains(stopped.err, "rlx: packed weights are no longer saved: cannot write \"" + m.folder.file("full")),
      stopped.err);
  CHECK(contains(stopped.err, "File too large"));
  CHECK(stopped.err.find("no longer") == stopped.err.rfind("no longer"));

  expect_failure(run_rlx(m.generate("abc --packed-weights " + m.folder.file("config.json"))), 1,
                 "folder of packed weights");
  expect_failure(run_rlx(m.generate("abc --packed-weights ''")), 2, "--packed-weights: must not be empty");
  expect_failure(run_rlx(m.generate("abc --verify-packed-weights")), 2,
                 "--verify-packed-weights requires --packed-weights");
}

TEST_CASE("rlx generate: system messages, and what is wrong with a command line or a model") {
  const ChatModel m;
  const std::string with = said(run_rlx(m.generate("abc -n 20 --system def")));
  CHECK(with == said(run_rlx(m.chat("-n 20 --system def"), "abc\n")));
  CHECK(with != said(run_rlx(m.generate("abc -n 20"))));
  expect_failure(run_rlx(m.generate("abc --raw --system def")), 2,
                 "--system needs the chat template, which --raw does not use");
  expect_failure(run_rlx("generate " + m.folder.file("none.gguf") + " abc"), 1,
                 "there is no file or folder \"" + m.folder.file("none.gguf") + "\"");
  expect_failure(run_rlx(m.generate("abc -n -1")), 2, "--tokens: must be 0 or more, got -1");
  expect_failure(run_rlx(m.generate("abc --stop ''")), 2, "a stop string is empty");
  expect_failure(run_rlx(m.generate("abc --stop '\xFF'")), 1, "--stop: invalid UTF-8 at byte 0");
  expect_failure(run_rlx(m.chat("--system '\xFF'"), "abc\n"), 1, "--system: invalid UTF-8 at byte 0");
  const ProgramResult more = run_rlx(m.generate("abc -n 1 --context 20000"));
  CHECK(more.status == 0);
  CHECK(contains(more.err, "a context of 20000 tokens is more than the"));
  const ProgramResult timed = run_rlx(m.generate("abc -n 9 --timings"));
  CHECK(contains(timed.err, " a second)"));
  // Another template than the model's.
  const std::string own = m.folder.write("own.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  CHECK(said(run_rlx(m.generate("abc -n 20 --chat-template " + own))) == said(run_rlx(m.generate("abc -n 20 --raw"))));
  const std::string bad = m.folder.write("bad.jinja", "{% if %}");
  expect_failure(run_rlx(m.generate("abc --chat-template " + bad)), 1, bad);
  expect_failure(run_rlx(m.generate("abc --chat-template " + m.folder.file("none"))), 1, "cannot read");
}
