// Requests with different adapters in one engine: answers, shared prefixes, drafts.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "rlx/generation/engine.h"
#include "rlx/generation/language_model.h"
#include "tests/support/decoder_gguf.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/random_tokens.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

std::map<RequestId, std::vector<TokenId>> answers_of(Engine& e) {
  std::map<RequestId, std::vector<TokenId>> out;
  for (int steps = 0; !e.idle(); ++steps) {
    REQUIRE(steps < 2000);
    for (const GenerationEvent& event : e.step())
      if (event.token >= 0) out[event.request].push_back(event.token);
  }
  return out;
}

}  // namespace

TEST_CASE("engine: each request has the adapter it asks for, and shares beginnings with those of the same one") {
  const test::TempDir model, qv, all;
  test::write_model(model, test::decoder_reference("llama2"));
  test::write_adapter(qv, test::adapter_reference("llama_qv"));
  test::write_adapter(all, test::adapter_reference("llama_all"));
  DecoderOptions o;
  o.context = 64;
  DecoderModel plain = DecoderModel::load(model.path(), o);
  o.adapters = {{"qv", {{qv.path()}}}, {"all", {{all.path()}}}};
  DecoderModel one = DecoderModel::load(model.path(), o);
  const std::string names[] = {"", "qv", "all"};
  const std::vector<TokenId> prompt{5, 17, 80, 3, 3, 41, 22, 9, 60, 2, 77};
  GenerationOptions options;
  options.sampling.temperature = 0.7F;
  options.sampling.seed = 4;
  options.max_new_tokens = 20;
  std::map<std::string, std::vector<TokenId>> wanted;
  for (std::int64_t a = 0; a < 3; ++a) {
    DecoderModel& m = a == 0 ? plain : one;
    m.reset();
    Sampler s(options.sampling);
    s.accept(prompt);
    std::vector<TokenId> next = prompt, &said = wanted[names[a]];
    while (said.size() < 20) {
      const SequenceTokens part{0, next, 1, a - 1};
      const Tensor logits = m.forward(std::span(&part, 1));
      next = {s.draw(logits.values<float>())};
      s.accept(next[0]);
      said.push_back(next[0]);
    }
  }
  CHECK(wanted["qv"] != wanted[""]);
  CHECK(wanted["all"] != wanted["qv"]);
  for (const bool drafts : {false, true}) {
    DecoderOptions several = o;
    several.sequences = 4, several.page = 4, several.max_tokens = 13;
    EngineOptions with;
    with.draft.lookup = drafts ? 1 : 0;
    std::optional<DraftModel> draft;
    if (drafts) {
      DecoderOptions small = several;
      small.adapters.clear();
      draft = DraftModel{DecoderModel::load(model.path(), small)};
    }
    Engine e(DecoderModel::load(model.path(), several), nullptr, with, std::move(draft));
    for (int round = 0; round < 2; ++round) {
      std::map<RequestId, std::string> of;
      for (int i = 0; i < 9; ++i) {
        options.adapter = names[(i * 2 + i / 3) % 3];
        of[e.submit(prompt, options)] = options.adapter;
      }
      const auto said = answers_of(e);
      CHECK(said.size() == 9);
      for (const auto& [id, tokens] : said) CHECK(tokens == wanted[of[id]]);
    }
    CHECK(e.statistics().reused_tokens >= 9 * 8);
    if (drafts) CHECK(e.statistics().accepted_tokens > 0);
    options.adapter = "qx";
    CHECK(
        test::contains(test::error_text([&] { (void)e.submit(prompt, options); }), "no adapter called 'qx' is loaded"));
    CHECK(test::contains(test::error_text([&] { (void)e.submit(prompt, options); }), "did you mean 'qv'"));
  }
  plain.reset();
  Engine none(std::move(plain), nullptr);
  CHECK(test::contains(test::error_text([&] { (void)none.submit(prompt, options); }), "DecoderOptions::adapters"));
}

namespace {

// A model with adapters, as files.
struct AdaptedFiles {
  AdaptedFiles(const std::string& name, const std::vector<std::string>& of, bool in_blocks = false)
      : reference(test::decoder_reference(name)), names(of), blocks(in_blocks) {
    test::write_model(folder, reference);
    if (blocks) folder.write("q8_0.gguf", test::with_blocks(test::decoder_gguf(reference), QuantScheme::Q8_0));
    for (const std::string& a : of) {
      folders.push_back(std::make_unique<test::TempDir>());
      test::write_adapter(*folders.back(), test::adapter_reference(a));
    }
  }
  DecoderModel load(DecoderOptions o, bool with_adapters = true) const {
    o.context = 192;
    if (blocks) o.matmul_precision = MatmulPrecision::Int8;
    for (std::size_t i = 0; with_adapters && i < names.size(); ++i)
      o.adapters.push_back({names[i], {{folders[i]->path()}}});
    return DecoderModel::load(blocks ? folder.file("q8_0.gguf") : folder.path(), o);
  }
  unsigned vocabulary() const { return static_cast<unsigned>(reference.logits.dim(1)); }

  test::DecoderReference reference;
  std::vector<std::string> names;
  bool blocks;
  test::TempDir folder;
  std::vector<std::unique_ptr<test::TempDir>> folders;
};

// One adapter of each kind: low-rank matrices alone, embeddings and whole modules, row lengths, experts, windows, MLA,
// int8 matmuls.
std::vector<std::unique_ptr<AdaptedFiles>> adapted_models() {
  std::vector<std::unique_ptr<AdaptedFiles>> out;
  const auto add = [&](auto&&... args) { out.push_back(std::make_unique<AdaptedFiles>(args...)); };
  using Names = std::vector<std::string>;
  add("llama2", Names{"llama_qv", "llama_all", "llama_dora", "llama_saved"});
  add("llama2", Names{"llama_all", "llama_layers"}, true);
  add("qwen3_moe", Names{"qwen3_moe", "qwen3_moe_dora"});
  add("gemma2", Names{"gemma2"});
  add("gemma2_plain", Names{"gemma2_embedding"});
  add("deepseek_v2", Names{"deepseek_v2"});
  return out;
}

// The tokens of a request, with the bits of their log-probabilities.
struct SaidLikely {
  std::vector<TokenId> tokens;
  std::vector<double> logprobs;
  bool operator==(const SaidLikely& o) const {
    return tokens == o.tokens && logprobs.size() == o.logprobs.size() &&
           std::memcmp(logprobs.data(), o.logprobs.data(), logprobs.size() * sizeof(double)) == 0;
  }
};

std::map<RequestId, SaidLikely> likely_answers(Engine& e) {
  std::map<RequestId, SaidLikely> out;
  for (int steps = 0; !e.idle(); ++steps) {
    REQUIRE(steps < 2000);
    for (const GenerationEvent& event : e.step()) {
      REQUIRE(event.finish != FinishReason::Failed);
      if (event.token < 0) continue;
      SaidLikely& said = out[event.request];
      said.tokens.push_back(event.token);
      REQUIRE(event.logprobs.has_value());
      said.logprobs.push_back(event.logprobs->drawn);
      for (const TokenLogprob& t : event.logprobs->likeliest) {
        said.logprobs.push_back(static_cast<double>(t.id));
        said.logprobs.push_back(t.logprob);
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("adapters: rows have the same bits in runs of 1 to 64, beside other adapters and none" *
          doctest::test_suite(rlx::test::kSlow)) {
  for (const auto& files : adapted_models()) {
    CAPTURE(files->reference.name);
    CAPTURE(files->names[0]);
    DecoderOptions o;
    o.page = kEnginePage, o.sequences = 3, o.max_tokens = 64;
    DecoderModel m = files->load(o);
    const auto num_adapters = static_cast<std::int64_t>(files->names.size());
    const std::vector<TokenId> text = test::random_tokens(3, 64, files->vocabulary());
    // Token by token, alone; without an adapter it is the model itself.
    std::vector<std::vector<float>> wanted;
    const auto width = static_cast<std::size_t>(files->vocabulary());
    for (std::int64_t a = -1; a < num_adapters; ++a) {
      m.reset();
      std::vector<float>& rows = wanted.emplace_back();
      for (std::size_t t = 0; t < text.size(); ++t) {
        const SequenceTokens one{0, std::span(text).subspan(t, 1), -1, a};
        const Tensor got = m.forward(std::span(&one, 1));
        rows.insert(rows.end(), got.values<float>().begin(), got.values<float>().end());
      }
    }
    const Tensor own = files->load(o, false).forward(text);
    CHECK(std::memcmp(own.data(), wanted[0].data(), own.size_bytes()) == 0);
    for (std::int64_t a = 0; a < num_adapters; ++a) CHECK(wanted[static_cast<std::size_t>(a) + 1] != wanted[0]);
    int faults = 0;
    for (std::size_t rows = 1; rows <= 64; ++rows) {
      m.reset();
      // Up to three texts share a run, each with its own adapter or none.
      const std::size_t cuts[] = {rows - rows / 3 - rows / 4, rows / 3, rows / 4};
      std::vector<SequenceTokens> parts;
      for (std::size_t s = 0; s < 3; ++s) {
        const std::int64_t adapter = static_cast<std::int64_t>((rows + s) % (files->names.size() + 1)) - 1;
        if (cuts[s] != 0) parts.push_back({static_cast<std::int64_t>(s), std::span(text).first(cuts[s]), -1, adapter});
      }
      const Tensor got = m.forward(parts);
      const float* at = got.values<float>().data();
      for (const SequenceTokens& part : parts) {
        const std::size_t count = part.tokens.size() * width;
        if (std::memcmp(at, wanted[static_cast<std::size_t>(part.adapter + 1)].data(), count * sizeof(float)) != 0)
          ++faults;
        at += count;
      }
    }
    CHECK(faults == 0);
  }
}

TEST_CASE("adapters: tokens and logits do not depend on neighbours, chunks, pages, shared beginnings and drafts") {
  for (const auto& files : adapted_models()) {
    CAPTURE(files->reference.name);
    CAPTURE(files->names[0]);
    struct Wanted {
      std::vector<TokenId> prompt;
      GenerationOptions options;
      SaidLikely said;
    };
    std::vector<Wanted> all;
    const std::vector<TokenId> common = test::random_tokens(7, 70, files->vocabulary());
    {
      Engine alone(files->load({}), nullptr, {0, false});
      for (unsigned i = 0; i < 10; ++i) {
        Wanted w;
        if (i % 3 != 2) w.prompt = common;
        // Repeated words, for drafts by prompt lookup.
        for (unsigned n = i % 2; n < 3; ++n) {
          const std::vector<TokenId> own = test::random_tokens(20 + i / 4, 1 + i % 5, files->vocabulary());
          w.prompt.insert(w.prompt.end(), own.begin(), own.end());
        }
        const std::size_t adapter = i % (files->names.size() + 1);
        w.options.adapter = adapter == 0 ? "" : files->names[adapter - 1];
        w.options.sampling.temperature = i % 4 == 0 ? 0.0F : 0.6F;
        w.options.sampling.seed = i;
        w.options.max_new_tokens = 5 + i % 7;
        w.options.logprobs = 3;
        const RequestId id = alone.submit(w.prompt, w.options);
        w.said = likely_answers(alone)[id];
        CHECK(w.said.tokens.size() == static_cast<std::size_t>(w.options.max_new_tokens));
        all.push_back(std::move(w));
      }
    }
    struct Layout {
      std::int64_t sequences, max_tokens, page, pages;
      bool prefixes;
      std::int64_t lookup;
      bool draft;
    };
    std::int64_t reused = 0, preempted = 0, drafted = 0, accepted = 0;
    for (const Layout& l :
         {Layout{10, 512, 0, 0, false, 0, false}, Layout{4, 5, kEnginePage, 0, true, 1, false},
          Layout{6, 64, kEnginePage, 4, true, 0, true}, Layout{3, 2, 2 * kEnginePage, 0, true, 2, true}}) {
      CAPTURE(l.sequences);
      DecoderOptions o;
      o.sequences = l.sequences, o.max_tokens = l.max_tokens, o.page = l.page, o.pages = l.pages;
      EngineOptions with{0, l.prefixes};
      with.draft.lookup = l.lookup, with.draft.tokens = 6;
      std::optional<DraftModel> draft;
      if (l.draft) draft = DraftModel{files->load(o, false)};
      Engine e(files->load(o), nullptr, with, std::move(draft));
      for (int round = 0; round < 2; ++round) {
        std::map<RequestId, const Wanted*> wanted;
        for (const Wanted& w : all) wanted[e.submit(w.prompt, w.options)] = &w;
        const std::map<RequestId, SaidLikely> got = likely_answers(e);
        for (const auto& [id, w] : wanted) {
          const auto said = got.find(id);
          REQUIRE(said != got.end());
          CHECK(said->second.tokens == w->said.tokens);
          CHECK((said->second == w->said));
        }
      }
      reused += e.statistics().reused_tokens, preempted += e.statistics().preemptions;
      drafted += e.statistics().drafted_tokens, accepted += e.statistics().accepted_tokens;
    }
    CHECK(reused > 0);
    CHECK(preempted > 0);
    CHECK(drafted > accepted);
    CHECK(accepted > 0);
  }
}

}  // namespace rlx
