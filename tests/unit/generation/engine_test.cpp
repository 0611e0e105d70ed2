// The engine against a plain loop over the model: requests alone and together, in chunks, with shared prefixes and with
// too few pages.
#include "rlx/generation/engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "rlx/formats/gguf_types.h"
#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/safetensors.h"
#include "rlx/generation/language_model.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

struct TinyModel {
  TinyModel() { test::write_model(folder, test::decoder_reference("llama2")); }
  DecoderModel load(DecoderOptions o = {}) const {
    if (o.context == 0) o.context = 64;
    return DecoderModel::load(folder.path(), o);
  }
  test::TempDir folder;
};

std::vector<TokenId> random_prompt(std::mt19937& rng, std::size_t size, std::int64_t vocab) {
  std::vector<TokenId> p(size);
  for (TokenId& t : p) t = static_cast<TokenId>(rng() % static_cast<unsigned>(vocab));
  return p;
}
GenerationOptions drawn(std::uint64_t seed, std::int64_t tokens) {
  GenerationOptions o;
  o.sampling.seed = seed;
  o.sampling.temperature = seed % 3 == 0 ? 0.0F : 0.8F;
  o.sampling.top_k = 20;
  o.max_new_tokens = tokens;
  return o;
}
// The plain loop: one sequence, one token per call.
std::vector<TokenId> alone(DecoderModel& m, const std::vector<TokenId>& prompt, const GenerationOptions& o) {
  m.reset();
  Sampler s(o.sampling);
  s.accept(prompt);
  Tensor logits = m.forward(prompt, LogitRows::Last);
  std::vector<TokenId> out;
  while (true) {
    const TokenId t = s.draw(logits.values<float>());
    s.accept(t);
    out.push_back(t);
    if (static_cast<std::int64_t>(out.size()) == o.max_new_tokens ||
        static_cast<std::int64_t>(s.sequence().size()) == m.context())
      return out;
    logits = m.forward(std::vector<TokenId>{t}, LogitRows::Last);
  }
}
struct Answer {
  std::vector<TokenId> tokens;
  FinishReason finish = FinishReason::None;
};
using Answers = std::map<RequestId, Answer>;
void step(Engine& e, Answers& out) {
  for (const GenerationEvent& event : e.step()) {
    if (event.token >= 0) out[event.request].tokens.push_back(event.token);
    if (event.finish != FinishReason::None) out[event.request].finish = event.finish;
  }
}
Answers run_all(Engine& e, Answers out = {}) {
  for (int steps = 0; !e.idle(); ++steps) {
    REQUIRE(steps < 5000);
    step(e, out);
  }
  return out;
}

}  // namespace

TEST_CASE("engine: answers are those of each request alone, whatever runs beside it") {
  const TinyModel tiny;
  struct Case {
    std::int64_t sequences, max_tokens, page, pages;
    bool prefixes;
    MatmulPrecision precision = MatmulPrecision::Exact;
  };
  for (const Case& c :
       {Case{4, 512, 0, 0, false}, Case{4, 7, 8, 0, true}, Case{3, 16, 4, 0, true}, Case{5, 9, 4, 22, true},
        Case{1, 1, 16, 0, true}, Case{3, 16, 4, 0, true, MatmulPrecision::BF16}}) {
    CAPTURE(c.pages);
    DecoderOptions o;
    o.matmul_precision = c.precision;
    DecoderModel plain = tiny.load(o);
    const std::int64_t vocab = plain.config().vocab_size;
    o.sequences = c.sequences, o.max_tokens = c.max_tokens, o.page = c.page, o.pages = c.pages;
    Engine e(tiny.load(o), nullptr, {0, c.prefixes});
    std::mt19937 rng(5);
    const std::vector<TokenId> common = random_prompt(rng, 21, vocab);
    for (int round = 0; round < 2; ++round) {
      std::map<RequestId, std::vector<TokenId>> wanted;
      Answers so_far;
      for (std::uint64_t i = 0; i < 9; ++i) {
        std::vector<TokenId> prompt = random_prompt(rng, 1 + rng() % 20, vocab);
        if (i % 2)
          prompt.insert(prompt.begin(), common.begin(), common.begin() + static_cast<std::ptrdiff_t>(10 + rng() % 12));
        const GenerationOptions options = drawn(i, 1 + static_cast<std::int64_t>(rng() % 20));
        wanted[e.submit(prompt, options)] = alone(plain, prompt, options);
        if (rng() % 2) step(e, so_far);
      }
      Answers got = run_all(e, so_far);
      CHECK(got.size() == wanted.size());
      for (const auto& one : wanted) {
        CHECK(got[one.first].tokens == one.second);
        CHECK(got[one.first].finish == FinishReason::MaxTokens);
      }
    }
    if (c.pages != 0) CHECK(e.statistics().preemptions > 0);
    if (c.prefixes && c.sequences > 1) CHECK(e.statistics().reused_tokens > 0);
  }
}

TEST_CASE("engine: the same prompt again computes one token") {
  const TinyModel tiny;
  DecoderOptions o;
  o.sequences = 2, o.page = 4;
  Engine e(tiny.load(o), nullptr);
  std::mt19937 rng(1);
  const std::vector<TokenId> prompt = random_prompt(rng, 17, e.model().config().vocab_size);
  e.submit(prompt, drawn(0, 3));
  const auto first = run_all(e);
  const std::int64_t before = e.statistics().prompt_tokens;
  e.submit(prompt, drawn(0, 3));
  const auto again = run_all(e);
  CHECK(again.begin()->second.tokens == first.begin()->second.tokens);
  CHECK(e.statistics().prompt_tokens - before == 1);
  CHECK(e.statistics().reused_tokens == 16);
}

TEST_CASE("engine: how answers end") {
  const TinyModel tiny;
  DecoderOptions o;
  o.context = 12;
  Engine e(tiny.load(o), nullptr);
  const std::vector<TokenId> prompt{1, 2, 3};
  const auto answer = [&](GenerationOptions options) {
    const RequestId id = e.submit(prompt, options);
    return run_all(e)[id];
  };
  GenerationOptions greedy;
  greedy.sampling.temperature = 0;
  const Answer full = answer(greedy);
  CHECK(full.finish == FinishReason::ContextFull);
  CHECK(full.tokens.size() == 9);
  greedy.stop_tokens = {full.tokens[2]};
  const Answer stopped = answer(greedy);
  CHECK(stopped.finish == FinishReason::StopToken);
  CHECK(stopped.tokens.size() <= 3);

  const RequestId id = e.submit(prompt, {});
  (void)e.step();
  CHECK(e.cancel(id));
  CHECK_FALSE(e.cancel(id));
  CHECK_FALSE(e.cancel(99));
  CHECK(run_all(e)[id].finish == FinishReason::Cancelled);
  CHECK(finish_reason_name(FinishReason::ContextFull) == "context_full");
}

TEST_CASE("engine: its model between requests") {
  const TinyModel tiny;
  DecoderOptions o;
  o.context = 128;
  DecoderModel plain = tiny.load(o);
  o.sequences = 2, o.page = 64, o.pages = 2;  // one sequence may need all pages
  Engine e(tiny.load(o), nullptr);
  std::mt19937 rng(3);
  const std::vector<TokenId> prompt = random_prompt(rng, 80, plain.config().vocab_size);
  const std::vector<TokenId> wanted = alone(plain, prompt, drawn(3, 6));
  plain.reset();
  const Tensor logits = plain.forward(prompt);
  for (int round = 0; round < 2; ++round) {
    const RequestId id = e.submit(prompt, drawn(3, 6));
    CHECK(contains(error_text([&] { e.idle_model(); }), "the engine still has 1 unfinished requests"));
    Answers got = run_all(e);
    CHECK(got[id].tokens == wanted);
    // The prefix cache gives up its pages for the whole context.
    DecoderModel& m = e.idle_model();
    CHECK(m.cache().free_pages() == 2);
    const Tensor again = m.forward(prompt);
    CHECK(std::equal(again.values<float>().begin(), again.values<float>().end(), logits.values<float>().begin(),
                     logits.values<float>().end()));
    m.forward(random_prompt(rng, 48, m.config().vocab_size));
    CHECK(m.length() == 128);
    CHECK(contains(error_text([&] { e.submit(prompt, {}); }),
                   "sequence 0 of the model has 128 tokens from runs outside"));
    CHECK(e.idle());
    m.reset();
  }
}

TEST_CASE("language models: caches and products by name") {
  DecoderOptions o;
  set_cache_type(o, "q4_0");
  CHECK(o.cache_scheme == QuantScheme::Q4_0);
  set_cache_type(o, "bf16");
  CHECK((!o.cache_scheme && o.cache_dtype == DType::BF16));
  for (const char* name : {"i8", "affine", "", "Q8_0"})
    CHECK(contains(error_text([&] { set_cache_type(o, name); }), "the KV cache cannot have the type"));
  CHECK(o.cache_dtype == DType::BF16);
  const TinyModel tiny;
  CHECK(matmul_precision_named("auto", tiny.folder.path()) == MatmulPrecision::Exact);
  for (const GgufType type : {GgufType::F32, GgufType::F16, GgufType::BF16, GgufType::Q8_0}) {
    const std::string path = tiny.folder.file(concat_text(gguf_type_info(type).name, ".gguf"));
    const std::vector<std::int64_t> dims{32, 32};
    GgufWriter file(path);
    file.set_string("general.architecture", "llama");
    file.add_tensor("w", type, dims);
    file.begin();
    file.write(std::vector<std::byte>(gguf_size_bytes(type, dims)));
    file.commit();
    CHECK(matmul_precision_named("auto", path) == (type == GgufType::Q8_0   ? MatmulPrecision::Int8
                                                   : type == GgufType::BF16 ? MatmulPrecision::BF16
                                                                            : MatmulPrecision::Exact));
  }
  for (const DType dtype : {DType::BF16, DType::F16, DType::F32}) {
    const test::TempDir folder;
    write_safetensors(folder.file("model.safetensors"),
                      std::array{NamedTensor{"w", Tensor::zeros(Shape({4, 4}, dtype))}});
    CHECK(matmul_precision_named("auto", folder.path()) ==
          (dtype == DType::BF16 ? MatmulPrecision::BF16 : MatmulPrecision::Exact));
  }
  CHECK(matmul_precision_named("auto", tiny.folder.path() + "/nothing") == MatmulPrecision::Exact);
  CHECK(
      contains(error_text([&] { (void)matmul_precision_named("auto", tiny.folder.path() + "/config.json"); }), "GGUF"));
  CHECK(matmul_precision_named("exact", "") == MatmulPrecision::Exact);
  CHECK(matmul_precision_named("bf16", "") == MatmulPrecision::BF16);
  CHECK(matmul_precision_named("int8", "") == MatmulPrecision::Int8);
  CHECK(
      contains(error_text([&] { (void)matmul_precision_named("int4", ""); }), "not one of auto, exact, bf16 and int8"));
}

}  // namespace rlx
