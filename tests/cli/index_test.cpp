// `rlx index`, and `rlx search` over folders and indexes, as their users call them.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "rlx/formats/json.h"
#include "tests/support/encoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// A folder of notes with what nobody wants to search.
void write_notes(const TempDir& dir) {
  dir.write("notes/one.txt", "a b\n\nc c a\n");
  dir.write("notes/sub/two.md", "b b\na b\n");
  dir.write("notes/sub/skipped.log", "c a c\n");
  dir.write("notes/.gitignore", "*.log\n");
  dir.write("notes/.hidden.txt", "b a a\n");
  dir.write("notes/picture.png", std::string_view("\x89PNG\0\0", 6));
}

std::string file_of(const JsonValue& row) { return std::string(row.get_string("file")); }

}  // namespace

TEST_CASE("rlx search: folders, with what is left out of them, and equal passages once") {
  const TinyModel model;
  const TempDir dir;
  write_notes(dir);
  const std::string notes = dir.file("notes"), with = " --model " + model.path() + " --format json --top 99 ";
  const auto rows_of = [&](const std::string& arguments) {
    const ProgramResult r = run_rlx("search b " + arguments + with);
    CHECK_MESSAGE(r.status == 0, r.err);
    std::vector<std::string> out;
    const JsonDocument document = JsonDocument::parse(r.out, "out");
    for (const JsonValue& row : document.root().elements("rows"))
      out.push_back(std::string(row.get_string("text")) + " " +
                    file_of(row).substr(std::min(notes.size() + 1, file_of(row).size())) + ":" +
                    std::to_string(row.get_int("line")) +
                    (row.find("also") ? " +" + std::to_string(row.at("also").size()) : ""));
    std::sort(out.begin(), out.end());
    return out;
  };
  using Rows = std::vector<std::string>;
  CHECK(rows_of(notes + " --passages lines") == Rows{"a b one.txt:1 +1", "b b sub/two.md:1", "c c a one.txt:3"});
  // Chunks of what the model reads are the default for folders.
  const Rows chunks = rows_of(notes);
  CHECK(std::find(chunks.begin(), chunks.end(), "b b\na b sub/two.md:1") != chunks.end());
  CHECK(rows_of(notes + " --passages lines --glob '*.md'") == Rows{"a b sub/two.md:2", "b b sub/two.md:1"});
  CHECK(rows_of(notes + " --passages lines --glob '!sub/' --hidden").size() == 4);
  CHECK(rows_of(notes + " --passages lines --no-ignore -g '*.log'") == Rows{"c a c sub/skipped.log:1"});
  CHECK(rows_of(notes + "/one.txt " + notes + " --paragraphs").size() == 3);
  const ProgramResult text = run_rlx("search b --top 9 --passages lines --model " + model.path() + " " + notes);
  CHECK(contains(text.out, notes + "/one.txt:1 (and 1 more)  a b\n"));
  CHECK(contains(text.err, "note: left out: 1 binary file\n"));
  expect_failure(run_rlx("search b --model " + model.path()), 2, "nothing to search is given");
  expect_failure(run_rlx("search b " + notes), 2, "--model is required");
  expect_failure(run_rlx("search b " + notes + " -g '[a' --model " + model.path()), 1, "the glob '[a' is malformed");
  expect_failure(run_rlx("search b " + notes + " --chunk-tokens 4 --overlap 3 --model " + model.path()), 2,
                 "--overlap is at most half of --chunk-tokens");
  expect_failure(run_rlx("search b " + notes + " -g '*.none' --model " + model.path()), 1, "hold no text to search");
}

TEST_CASE("rlx search: a text longer than the model reads is searched to its end") {
  const TinyModel model;
  const TempDir dir;
  const std::string file = dir.write("long.txt", "a a a a a a a a a a a a a a a c b c b\n");
  const ProgramResult r = run_rlx("search 'c b c b' --top 1 --model " + model.path() + " " + file);
  CHECK_MESSAGE(r.status == 0, r.err);
  CHECK(r.err.empty());  // nothing was truncated
  CHECK(contains(r.out, "c b"));
}

TEST_CASE("rlx index: made, up to date, updated, searched without its folder and model being named") {
  const TinyModel model;
  const TempDir dir;
  write_notes(dir);
  const std::string index = dir.file("notes.rlxi"), notes = dir.file("notes"), to = " -o " + index;
  expect_failure(run_rlx("index" + to), 2, "there is no index yet\n  hint: rlx index --model DIR FOLDER -o " + index);
  expect_failure(run_rlx("index " + notes + to), 2, "--model is required");
  expect_failure(run_rlx("index --vectors int8" + to), 2, "--vectors requires paths");
  const ProgramResult made = run_rlx("index --passages lines --model " + model.path() + " " + notes + to);
  CHECK_MESSAGE(made.status == 0, made.err);
  CHECK(contains(made.out, index + ": 2 files (2 new), 3 passages (3 embedded), "));
  CHECK(contains(made.err, "note: left out: 1 binary file\n"));
  CHECK(contains(run_rlx("index" + to).out, index + " is up to date: 2 files, 3 passages, "));
  const ProgramResult found = run_rlx("search 'b b' --top 9 --index " + index);
  CHECK_MESSAGE(found.status == 0, found.err);
  CHECK(found.err.empty());
  // The same lines as without an index, whose vectors are not rounded.
  const ProgramResult plain = run_rlx("search 'b b' --top 9 --passages lines --model " + model.path() + " " + notes);
  const auto places = [](const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      out.push_back(text.substr(at + 9, text.find('\n', at) - at - 9));
    std::sort(out.begin(), out.end());
    return out;
  };
  CHECK(places(found.out) == places(plain.out));
  // From the folder above, names are short.
  CHECK(contains(run_shell("cd " + dir.path() + "; " + rlx_command() + "search 'b b' -i notes.rlxi --format json").out,
                 "\"file\":\"notes/sub/two.md\""));
  dir.write("notes/sub/two.md", "b b\nc a b\n");
  CHECK(contains(run_rlx("search 'b b' --index " + index).err,
                 "lie in files that changed since; update with `rlx index"));
  CHECK(contains(run_rlx("index" + to).out, ": 2 files (1 changed), 4 passages (1 embedded), "));
  std::filesystem::remove(dir.file("notes/one.txt"));
  CHECK(contains(run_rlx("index" + to).out, ": 1 files (1 removed), 2 passages, "));
  const ProgramResult int8 =
      run_rlx("index --vectors int8 --passages lines --model " + model.path() + " " + notes + to);
  CHECK(contains(int8.err, "note: the index was made anew: its vectors are of type f16\n"));
  CHECK(run_rlx("search b --index " + index).status == 0);
  // An index of another model, and files of other kinds.
  const TempDir other;
  write_folder(other, folder_reference("mean"));
  expect_failure(run_rlx("search b --model " + other.path() + " -i " + index), 1, "are those of another model than");
  expect_failure(run_rlx("search b -i " + dir.write("x.txt", "text")), 1, "x.txt\" is not an index of texts");
  expect_failure(run_rlx("index --model " + model.path() + " " + notes + " -o " + dir.file("x.txt")), 1,
                 "is not replaced by one");
  expect_failure(run_rlx("search b " + notes + " -i " + index), 2, "excludes");
  expect_failure(run_rlx("search b -g '*.md' -i " + index), 2, "excludes");
  std::filesystem::resize_file(index, 300);
  expect_failure(run_rlx("search b -i " + index), 1, "the index \"" + index + "\" ");
  const ProgramResult healed = run_rlx("index --passages lines --model " + model.path() + " " + notes + to);
  CHECK(contains(healed.err, "note: the index was made anew: the index \"" + index + "\" "));
  CHECK(healed.status == 0);
}

TEST_CASE("rlx embed, search, index: a cross-encoder is no embedding model") {
  const TempDir model, dir;
  write_folder(model, folder_reference("rerank_bert"));
  const std::string file = dir.write("a.txt", "some text\n"), with = " --model " + model.path() + " ";
  for (const std::string& command :
       {"embed --text a" + with, "search a " + file + with, "index " + file + with + "-o " + dir.file("a.rlxi")}) {
    CAPTURE(command);
    expect_failure(
        run_rlx(command), 1,
        "\"BertForSequenceClassification\" is a cross-encoder or a classifier, and there is no modules.json");
  }
  CHECK_FALSE(std::filesystem::exists(dir.file("a.rlxi")));
}

TEST_CASE("rlx index: the note that answers a question" * doctest::test_suite(kNeedsModel)) {
  if (model_dir().empty()) return skip("the all-MiniLM-L6-v2 model");
  const TempDir dir;
  std::string long_note = "# Diary\n";
  for (int day = 1; day < 60; ++day) long_note += concat_text("On day ", day, " it rained, and I read a book.\n");
  dir.write("notes/diary.md", long_note + "\nAt last I baked a loaf of bread in the oven.\n");
  dir.write("notes/travel.md", "The train to the sea leaves at noon.\n");
  dir.write("notes/copy/travel.md", "The train to the sea leaves at noon.\n");
  const std::string index = dir.file("notes.rlxi"), model = " --model '" + model_dir() + "' ";
  REQUIRE(run_rlx("index " + dir.file("notes") + " -o " + index + model).status == 0);
  CHECK(contains(run_rlx("search 'when does the railway depart?' --top 1 -i " + index).out,
                 "notes/travel.md:1 (and 1 more)  The train to the sea leaves at noon.\n"));
  // It stands at the end of a text that is longer than the model reads.
  for (const std::string& where : {"-i " + index, dir.file("notes") + model}) {
    const ProgramResult bread = run_rlx("search 'a loaf from the oven' --top 1 --format json " + where);
    CHECK(contains(bread.out, "baked a loaf of bread"));
    CHECK(bread.err.empty());
  }
}
