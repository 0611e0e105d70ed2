// Cross-encoders against the scores of sentence-transformers' CrossEncoder, and refusals.
#include "rlx/models/reranker.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/encoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// The pairs of one query.
std::vector<std::string> passages_of(const test::FolderReference& r, const std::string& query) {
  std::vector<std::string> out;
  for (const auto& pair : r.pairs)
    if (pair.first == query) out.push_back(pair.second);
  return out;
}

void replace_in(test::FolderReference& r, const std::string& path, const std::string& from, const std::string& to) {
  for (auto& file : r.files) {
    if (file.first != path) continue;
    const std::size_t at = file.second.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    file.second.replace(at, from.size(), to);
  }
}

std::string reranker_message(const test::FolderReference& r, const RerankerOptions& options = {}) {
  const test::TempDir folder;
  test::write_folder(folder, r);
  return error_text([&] { Reranker reranker(folder.path(), options); });
}

}  // namespace

TEST_CASE("reranker: scores of sentence-transformers, with cut pairs, in any batch") {
  for (const char* name : {"rerank_bert", "rerank_roberta"}) {
    CAPTURE(name);
    const test::FolderReference r = test::folder_reference(name);
    const test::TempDir folder;
    test::write_folder(folder, r);
    Reranker reranker(folder.path());
    CHECK(reranker.labels() == 1);
    CHECK(reranker.max_sequence() == (reranker.config().family == "bert" ? 32 : 100));
    std::size_t cut = 0;
    std::vector<float> scores;
    for (const auto& pair : r.pairs) {
      std::vector<TruncationNotice> notices;
      const Tensor got = reranker.score(pair.first, std::span(&pair.second, 1), &notices);
      scores.push_back(got.values<float>()[0]);
      cut += notices.size();
    }
    CHECK(test::relative_error(Tensor::of<float>({9}, scores), r.scores) <= 2e-5);
    CHECK(cut >= 2);
    const std::string& query = r.pairs[0].first;
    const std::vector<std::string> passages = passages_of(r, query);
    REQUIRE(passages.size() == 6);
    std::size_t done = 0;
    const Tensor all = reranker.score(query, passages, nullptr, [&](std::size_t n) { done = n; });
    CHECK(done == 6);
    RerankerOptions two;
    two.max_batch = 2;
    const Tensor in_twos = Reranker(folder.path(), two).score(query, passages);
    CHECK(std::memcmp(all.data(), in_twos.data(), all.size_bytes()) == 0);
    const std::vector<Match> best = reranker.rank(query, passages, 3);
    REQUIRE(best.size() == 3);
    for (std::size_t i = 0; i < best.size(); ++i) {
      CHECK(best[i].score == all.at(static_cast<std::int64_t>(best[i].index)));
      if (i) CHECK(best[i - 1].score >= best[i].score);
    }
    for (std::int64_t i = 0; i < 6; ++i) {
      bool in = false;
      for (const Match& m : best) in = in || m.index == static_cast<std::size_t>(i);
      if (!in) CHECK(all.at(i) <= best[2].score);
    }
    CHECK(reranker.score(query, std::vector<std::string>{}).dims() == std::vector<std::int64_t>{0, 1});
  }
}

TEST_CASE("reranker: the activation of files, and another one") {
  const test::FolderReference r = test::folder_reference("rerank_bert");
  const test::TempDir folder;
  test::write_folder(folder, r);
  const std::vector<std::string> passages{r.pairs[0].second, r.pairs[1].second};
  const Tensor scores = Reranker(folder.path()).score("sun", passages);
  RerankerOptions raw;
  raw.activation = ScoreActivation::Identity;
  const Tensor logits = Reranker(folder.path(), raw).score("sun", passages);
  for (std::int64_t i = 0; i < 2; ++i)
    CHECK(scores.at(i) == doctest::Approx(1 / (1 + std::exp(-logits.at(i)))).epsilon(1e-6));
  test::FolderReference other = r;
  replace_in(other, "config.json", "{",
             R"({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",)");
  const test::TempDir second;
  test::write_folder(second, other);
  CHECK(std::memcmp(Reranker(second.path()).score("sun", passages).data(), logits.data(), 8) == 0);
  other = r;
  replace_in(other, "config.json", "{",
             R"({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"},)");
  CHECK(contains(reranker_message(other),
                 "the activation of scores \"torch.nn.modules.activation.Tanh\" is not supported"));
  CHECK(reranker_message(other, raw).empty());
}

TEST_CASE("reranker: folders, options and texts that are refused") {
  const test::FolderReference good = test::folder_reference("rerank_bert");
  CHECK(reranker_message(good).empty());
  RerankerOptions o;
  o.max_sequence = 3;
  CHECK(contains(reranker_message(good, o), "max_sequence must be in [4, 48], got 3"));
  o.max_sequence = 49;
  CHECK(contains(reranker_message(good, o), "max_sequence must be in [4, 48], got 49"));
  o = {};
  o.max_batch = 0;
  CHECK(contains(reranker_message(good, o), "max_batch must be at least 1, got 0"));
  o = {};
  o.num_threads = -1;
  CHECK(contains(reranker_message(good, o), "num_threads must not be negative, got -1"));
  CHECK(contains(error_text([] { Reranker("/no_such_folder"); }), "\"/no_such_folder\" does not exist"));
  test::FolderReference bad = good;
  std::erase_if(bad.weights, [](const NamedTensor& w) { return w.name == "classifier.weight"; });
  CHECK(contains(reranker_message(bad), "1 tensor is missing: 'classifier.weight'"));
  bad = good;
  replace_in(bad, "tokenizer_config.json", "\"model_max_length\": 32", "\"model_max_length\": 3");
  CHECK(contains(reranker_message(bad), "pairs may have 3 tokens, expected more than the 3 special ones"));
  bad = good;
  replace_in(bad, "config.json", "\"type_vocab_size\": 2", "\"type_vocab_size\": 1");
  CHECK(contains(reranker_message(bad), "is [2, 32], expected [1, 32]"));
  bad = good;
  replace_in(bad, "tokenizer.json", "\"type_id\":1", "\"type_id\":2");
  CHECK(contains(reranker_message(bad), "the tokeniser uses the token type 2, but"));
  bad = good;
  replace_in(bad, "config.json", "\"model_type\": \"bert\"", "\"model_type\": \"electra\"");
  CHECK(contains(reranker_message(bad), "\"model_type\" is \"electra\", which is not a text encoder"));

  const test::TempDir folder;
  test::write_folder(folder, good);
  Reranker reranker(folder.path());
  const auto text = [&](const std::string& query, const std::string& passage) {
    return error_text([&] { (void)reranker.score(query, std::span(&passage, 1)); });
  };
  CHECK(text("sun", "").empty());
  CHECK(contains(text("", "sun"), "the query is empty: it has no tokens"));
  CHECK(contains(text("a\xff", "sun"), "the query: "));
  CHECK(contains(text("sun", "a\xff"), "passage 1: "));
  bad = good;
  for (NamedTensor& w : bad.weights)
    if (w.name == "classifier.bias") w.tensor = Tensor::full(Shape({1}, DType::F32), std::nan(""));
  const test::TempDir spoilt;
  test::write_folder(spoilt, bad);
  Reranker broken(spoilt.path());
  CHECK(contains(error_text([&] {
                   (void)broken.score("sun", std::vector<std::string>{"rain"}, nullptr, nullptr,
                                      [](std::size_t) { return "notes:3"; });
                 }),
                 "notes:3: its score is nan"));
  Reranker taken = std::move(reranker);
  // NOLINTNEXTLINE(bugprone-use-after-move)
  CHECK(contains(error_text([&] { (void)reranker.labels(); }), "a Reranker was used after it was moved from"));
}

TEST_CASE("reranker: models with several labels score, and do not rank") {
  test::FolderReference r = test::folder_reference("rerank_bert");
  replace_in(r, "config.json", "\"id2label\": {\n    \"0\": \"LABEL_0\"\n  }",
             "\"id2label\": {\"0\": \"no\", \"1\": \"yes\"}");
  for (NamedTensor& w : r.weights) {
    if (w.name == "classifier.weight") w.tensor = Tensor::full(Shape({2, 32}, DType::F32), 0.5);
    if (w.name == "classifier.bias") w.tensor = Tensor::of<float>({2}, std::vector<float>{1, 2});
  }
  const test::TempDir folder;
  test::write_folder(folder, r);
  Reranker reranker(folder.path());
  const std::vector<std::string> passages{"rain", "sun", "the cat"};
  const Tensor scores = reranker.score("sun", passages);
  CHECK(scores.dims() == std::vector<std::int64_t>{3, 2});
  for (std::int64_t i = 0; i < 3; ++i) CHECK(scores.at(2 * i + 1) - scores.at(2 * i) == doctest::Approx(1));
  CHECK(contains(error_text([&] { (void)reranker.rank("sun", passages, 1); }),
                 "the model returns 2 scores for a pair, but ranking needs one"));
}

namespace {

// The score of each pair alone.
Tensor scores_of(Reranker& reranker, const test::FolderReference& r, std::size_t* cut = nullptr) {
  std::vector<float> out;
  for (const auto& pair : r.pairs) {
    std::vector<TruncationNotice> notices;
    out.push_back(reranker.score(pair.first, std::span(&pair.second, 1), &notices).values<float>()[0]);
    if (cut) *cut += notices.size();
  }
  return Tensor::of<float>({static_cast<std::int64_t>(out.size())}, out);
}

const Tensor& said(const test::FolderReference& r, const std::string& name) {
  for (const auto& known : r.vectors)
    if (known.first == name) return known.second;
  FAIL("the reference has no " << name);
  return r.scores;
}

Tensor scores_of(const test::FolderReference& r, const RerankerOptions& options, std::size_t* cut = nullptr) {
  const test::TempDir folder;
  test::write_folder(folder, r);
  Reranker reranker(folder.path(), options);
  return scores_of(reranker, r, cut);
}

}  // namespace

TEST_CASE("reranker: a Qwen3 that answers yes or no has the scores of transformers") {
  const test::FolderReference r = test::folder_reference("asked");
  RerankerOptions raw, other, short_ones;
  raw.activation = ScoreActivation::Identity;
  other.instruction = "find the weather";
  short_ones.max_sequence = 410;
  std::size_t cut = 0;
  CHECK(test::relative_error(scores_of(r, {}, &cut), r.scores) <= 2e-5);
  CHECK(cut == 0);
  CHECK(test::relative_error(scores_of(r, raw), said(r, "raw")) <= 2e-5);
  CHECK(test::relative_error(scores_of(r, other), said(r, "instruction")) <= 2e-5);
  CHECK(test::relative_error(scores_of(r, short_ones, &cut), said(r, "410")) <= 2e-5);
  CHECK(cut == 2);
  CHECK(test::relative_error(said(r, "instruction"), r.scores) > 0.01);  // the scores that are compared differ
  CHECK(test::relative_error(said(r, "410"), r.scores) > 0.01);

  const test::TempDir folder;
  test::write_folder(folder, r);
  Reranker reranker(folder.path());
  CHECK(reranker.labels() == 1);
  CHECK(reranker.max_sequence() == 640);
  const std::vector<std::string> passages = passages_of(r, r.pairs[0].first);
  const Tensor all = reranker.score(r.pairs[0].first, passages);
  for (std::size_t i = 0; i < passages.size(); ++i)
    CHECK(all.at(static_cast<std::int64_t>(i)) ==
          reranker.score(r.pairs[0].first, std::span(&passages[i], 1)).at(0));  // in any batch
  const std::vector<Match> best = reranker.rank(r.pairs[0].first, passages, passages.size());
  for (std::size_t i = 1; i < best.size(); ++i) CHECK(best[i - 1].score >= best[i].score);

  // A separate output layer with the same values.
  test::FolderReference untied = r;
  replace_in(untied, "config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  CHECK(contains(reranker_message(untied), "1 tensor is missing: 'lm_head.weight'"));
  for (std::size_t i = 0; i < r.weights.size(); ++i)
    if (r.weights[i].name == "model.embed_tokens.weight")
      untied.weights.push_back({"lm_head.weight", r.weights[i].tensor});
  CHECK(scores_of(untied, {}).identical(scores_of(r, {})));
}

TEST_CASE("reranker: the same Qwen3 as a classifier of one label") {
  const test::FolderReference r = test::folder_reference("asked");
  test::FolderReference classifier = r;
  replace_in(classifier, "config.json", "Qwen3ForCausalLM", "Qwen3ForSequenceClassification");
  replace_in(classifier, "config.json", "{", "{\"id2label\": {\"0\": \"LABEL_0\"},");
  // Its weights are the row of "yes" minus that of "no", as in published models.
  std::int64_t no = 0, yes = 0, width = 0;
  {
    const test::TempDir folder;
    test::write_folder(folder, r);
    const Reranker reranker(folder.path());
    no = *reranker.tokenizer().token_to_id("no"), yes = *reranker.tokenizer().token_to_id("yes");
    width = reranker.config().hidden_size;
  }
  std::vector<float> row;
  for (const NamedTensor& w : r.weights)
    if (w.name == "model.embed_tokens.weight")
      for (std::int64_t i = 0; i < width; ++i)
        row.push_back(static_cast<float>(w.tensor.at(yes * width + i) - w.tensor.at(no * width + i)));
  classifier.weights.push_back({"score.weight", Tensor::of<float>({1, width}, row)});
  RerankerOptions asked;
  asked.instruction = "find the weather";
  CHECK(test::relative_error(scores_of(classifier, asked), said(r, "instruction")) <= 2e-5);
  asked.activation = ScoreActivation::Identity;
  asked.instruction = "Given a web search query, retrieve relevant passages that answer the query";
  CHECK(test::relative_error(scores_of(classifier, asked), said(r, "raw")) <= 2e-5);
  CHECK(test::relative_error(scores_of(classifier, {}), r.scores) > 0.01);  // bare pairs
}

TEST_CASE("reranker: what cannot be asked") {
  const test::FolderReference good = test::folder_reference("asked");
  RerankerOptions asked;
  asked.instruction = "find";
  CHECK(contains(reranker_message(test::folder_reference("rerank_bert"), asked), "a bert takes no instruction"));
  asked.instruction = "\xff";
  CHECK(contains(reranker_message(good, asked), "the instruction: "));
  test::FolderReference bad = good;
  replace_in(bad, "config.json", "Qwen3ForCausalLM", "Qwen2ForCausalLM");
  replace_in(bad, "config.json", "\"model_type\": \"qwen3\"", "\"model_type\": \"qwen2\"");
  const std::string other = reranker_message(bad);
  CHECK(contains(other, "a Qwen2ForCausalLM is not a reranker that rlx supports"));
  CHECK(contains(other, "Qwen3ForCausalLM, which answers yes or no"));
  bad = good;
  bad.files.emplace_back("modules.json", R"([{"type": "a.Transformer"}, {"type": "a.Pooling", "path": "1_Pooling"}])");
  CHECK(contains(reranker_message(bad), "so this is an embedding model"));
  bad = good;
  replace_in(bad, "config.json", "[\n    \"Qwen3ForCausalLM\"\n  ]", "[]");  // a classifier without one
  CHECK(contains(reranker_message(bad), "1 tensor is missing: 'score.weight'"));
  bad = good;
  replace_in(bad, "tokenizer.json", "\"yes\":", "\"yet\":");
  replace_in(bad, "tokenizer.json", "[\"ye\",\"s\"],", "");
  CHECK(contains(reranker_message(bad), "the tokeniser has no token \"yes\""));
  bad = good;
  for (int i = 0; i < 2; ++i) replace_in(bad, "tokenizer.json", "<|im_start|>", "<|im_begin|>");
  CHECK(contains(reranker_message(bad), "the tokeniser has no token \"<|im_start|>\""));
  RerankerOptions o;
  o.max_sequence = 100;
  CHECK(contains(reranker_message(good, o), "max_sequence must be in ["));
  o.max_sequence = 350;
  const test::TempDir folder;
  test::write_folder(folder, good);
  Reranker reranker(folder.path(), o);
  const auto text = [&](const std::string& query, const std::string& passage) {
    return error_text([&] { (void)reranker.score(query, std::span(&passage, 1)); });
  };
  CHECK(text("sun", "rain").empty());
  CHECK(text("sun", "").empty());
  CHECK(contains(text("", "rain"), "the query is empty"));
  CHECK(contains(text("s\xff", "rain"), "the query: "));
  CHECK(contains(text("sun", "a\xff"), "passage 1: "));
  CHECK(contains(text("sun", "a\xff"), "byte 1"));
  const std::string longer = text(std::string(200, 'q'), "rain");
  CHECK(contains(longer, "the instruction and the query have "));
  CHECK(contains(longer, "give a larger max_sequence"));
}

}  // namespace rlx
