// `rlx rerank`, and `rlx embed` and `rlx search` with models of other families, as their users call them.
#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/formats/json.h"
#include "rlx/models/reranker.h"
#include "rlx/models/sentence_encoder.h"
#include "tests/support/encoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::ProgramResult;
using test::run_rlx;

}  // namespace

TEST_CASE("rlx rerank: passages in the order of the model's scores") {
  const test::FolderReference r = test::folder_reference("rerank_bert");
  const test::TempDir model, dir;
  test::write_folder(model, r);
  std::string lines;
  std::vector<std::string> passages;
  for (std::size_t i = 0; i < 6; ++i) passages.push_back(r.pairs[i].second), lines += r.pairs[i].second + "\n";
  const std::string file = dir.write("a.txt", lines);
  const std::string command = "rerank --model " + model.path() + " --query '" + r.pairs[0].first + "' ";
  const std::vector<Match> best = Reranker(model.path()).rank(r.pairs[0].first, passages, 6);
  const ProgramResult json = run_rlx(command + "--format json --top 4 " + file);
  CHECK_MESSAGE(json.status == 0, json.err);
  const JsonDocument document = JsonDocument::parse(json.out, "out");
  const std::vector<JsonValue> rows = document.root().elements("rows");
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].get_number("score") == doctest::Approx(best[i].score));
    CHECK(rows[i].get_int("line") == static_cast<std::int64_t>(best[i].index) + 1);
    CHECK(rows[i].get_string("text") == passages[best[i].index]);
  }
  CHECK(test::contains(json.err, "1 passages have more than 32 tokens with the query"));
  const ProgramResult text = run_rlx(command + file);
  CHECK(std::count(text.out.begin(), text.out.end(), '\n') == 6);
  CHECK(test::contains(text.out, file + ":" + std::to_string(best[0].index + 1) + "  "));
  const ProgramResult raw = run_rlx(command + "--raw --top 1 --format json " + file);
  CHECK(JsonDocument::parse(raw.out, "raw").root().elements("rows")[0].get_number("score") !=
        doctest::Approx(best[0].score));
  const ProgramResult nameless = run_rlx("rerank -q a " + file);
  CHECK(nameless.status == 2);
  CHECK(test::contains(nameless.err, "--model is required"));
  const ProgramResult none = run_rlx("rerank --model " + dir.path() + " -q a " + file);
  CHECK(none.status == 1);
  CHECK(test::contains(none.err, "holds no config.json"));
}

TEST_CASE("rlx rerank: the form of earlier commits gives the same and says the new one") {
  const test::FolderReference r = test::folder_reference("rerank_bert");
  const test::TempDir model, dir;
  test::write_folder(model, r);
  const std::string file = dir.write("a.txt", r.pairs[0].second + "\n" + r.pairs[1].second + "\n");
  const std::string query = " -q '" + r.pairs[0].first + "' ";
  const ProgramResult now = run_rlx("rerank --model " + model.path() + query + file);
  CHECK_MESSAGE(now.status == 0, now.err);
  CHECK_FALSE(test::contains(now.err, "is now --model"));
  for (const std::string& old :
       {"rerank " + model.path() + " " + file + query, "rerank" + query + model.path() + " " + file}) {
    const ProgramResult got = run_rlx(old);
    CHECK_MESSAGE(got.status == 0, got.err);
    CHECK(got.out == now.out);
    CHECK(test::contains(got.err, "the model of rerank is now --model"));
  }
  const ProgramResult empty = run_rlx("rerank --model ''" + query + file + " " + file);  // a variable without a value
  CHECK(empty.status != 0);
  CHECK_FALSE(test::contains(empty.err, "is now --model"));
  CHECK(test::contains(empty.err, "--model: must not be empty"));
}

TEST_CASE("rlx rerank: a model that answers yes or no, and what it is told to look for") {
  const test::FolderReference r = test::folder_reference("asked");
  const test::TempDir model, bert, dir;
  test::write_folder(model, r);
  const std::string file = dir.write("a.txt", r.pairs[0].second + "\n" + r.pairs[1].second + "\n");
  const auto scores = [&](const std::string& options) {
    const ProgramResult got =
        run_rlx("rerank --model " + model.path() + " -q '" + r.pairs[0].first + "' --format json " + options + file);
    CHECK_MESSAGE(got.status == 0, got.err);
    std::vector<double> out(2);
    const JsonDocument document = JsonDocument::parse(got.out, "out");
    for (const JsonValue& row : document.root().elements("rows"))
      out.at(static_cast<std::size_t>(row.get_int("line") - 1)) = row.get_number("score");
    return out;
  };
  const auto expected = [&](const char* name, std::int64_t i) {
    for (const auto& known : r.vectors)
      if (known.first == name) return known.second.at(i);
    return r.scores.at(i);
  };
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(scores("")[at] == doctest::Approx(expected("", i)).epsilon(1e-4));
    CHECK(scores("--raw ")[at] == doctest::Approx(expected("raw", i)).epsilon(1e-4));
    CHECK(scores("--instruction 'find the weather' ")[at] == doctest::Approx(expected("instruction", i)).epsilon(1e-4));
  }
  test::write_folder(bert, test::folder_reference("rerank_bert"));
  const ProgramResult refused = run_rlx("rerank " + bert.path() + " -q sun --instruction find " + file);
  CHECK(refused.status == 1);
  CHECK(test::contains(refused.err, "a bert takes no instruction"));
}

TEST_CASE("rlx embed, rlx search: other families, prompts and fewer dimensions") {
  const test::FolderReference r = test::folder_reference("mean");
  const test::TempDir model, dir;
  test::write_folder(model, r);
  const std::string command = "embed --model " + model.path() + " --text '" + r.texts[0] + "' ";
  const auto first = [&](const std::string& options) {
    const ProgramResult got = run_rlx(command + options);
    CHECK_MESSAGE(got.status == 0, got.err);
    std::vector<double> out;
    const JsonDocument document = JsonDocument::parse(got.out, "out");
    for (const JsonValue& v : document.root().elements("rows").at(0).elements("row")) out.push_back(v.as_number("x"));
    return out;
  };
  for (const auto& known : r.vectors) {
    const std::vector<double> got = first(known.first.empty() ? "" : "--prompt-name " + known.first);
    REQUIRE(got.size() == 24);
    CHECK(got[3] == doctest::Approx(known.second.at(3)).epsilon(1e-4));
  }
  CHECK(first("--prompt 'query: ' ")[3] == first("--prompt-name query")[3]);
  CHECK(first("--dimensions 5").size() == 5);
  const ProgramResult unknown = run_rlx(command + "--prompt-name title");
  CHECK(unknown.status == 1);
  CHECK(test::contains(unknown.err, "the model has no prompt called \"title\""));
  CHECK(run_rlx(command + "--prompt a --prompt-name query").status == 2);
  const std::string file = dir.write("a.txt", r.texts[0] + "\n" + r.texts[1] + "\n");
  SentenceEncoder encoder(model.path());
  const std::string passage = "passage: " + r.texts[1];
  const ProgramResult search = run_rlx("search --model " + model.path() + " --top 1 '" + r.texts[1] + "' " + file);
  CHECK_MESSAGE(search.status == 0, search.err);
  const Tensor query = encoder.embed(std::span(&r.texts[1], 1), nullptr, nullptr, nullptr, "query: ");
  const std::vector<Match> best =
      best_matches(query.reshaped({24}), encoder.embed(std::span(r.texts).first(2)), 1);  // with the default prompt
  CHECK(test::contains(search.out, file + ":" + std::to_string(best[0].index + 1) + "  "));
}

}  // namespace rlx
