// Low-rank adapters against logits of the Python package PEFT: several adapters at once, beside tokens without any,
// over quantized weights; and the errors of adapters that do not fit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>

#include "rlx/models/adapter/peft_adapter.h"
#include "rlx/models/decoder_model.h"
#include "tests/support/decoder_gguf.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::adapter_reference;
using test::AdapterReference;
using test::contains;
using test::error_text;

constexpr double kNearPeft = 2e-5;  // of the largest logit

// A case of decoder_references with adapters, as files.
class Adapted {
 public:
  explicit Adapted(const std::string& model) : reference(test::decoder_reference(model)) {
    test::write_model(folder_, reference);
  }
  AdapterOptions option(const AdapterReference& a, double scale = 1) {
    adapters_.push_back(std::make_unique<test::TempDir>());
    test::write_adapter(*adapters_.back(), a);
    return {a.name, {{adapters_.back()->path(), scale}}};
  }
  DecoderModel load(std::vector<AdapterOptions> adapters, DecoderOptions o = {}) const {
    return load_from(folder_.path(), std::move(adapters), o);
  }
  DecoderModel load_from(const std::string& path, std::vector<AdapterOptions> adapters, DecoderOptions o = {}) const {
    o.context = static_cast<std::int64_t>(reference.tokens.size());
    o.adapters = std::move(adapters);
    return DecoderModel::load(path, o);
  }
  std::span<const TokenId> tokens() const { return reference.tokens; }
  test::DecoderReference reference;

 private:
  test::TempDir folder_;
  std::vector<std::unique_ptr<test::TempDir>> adapters_;
};

Tensor run_adapted(DecoderModel& m, std::span<const TokenId> tokens, std::int64_t adapter, std::int64_t sequence = 0) {
  const SequenceTokens part{sequence, tokens, -1, adapter};
  return m.forward(std::span(&part, 1));
}

// As logit_error, for the reference model with the logits of the adapter.
double adapter_error(const Tensor& got, test::DecoderReference model, const Tensor& logits, std::int64_t first = 0) {
  model.logits = logits;
  return test::logit_error(got, model, first);
}

bool same_bits(const Tensor& a, std::int64_t first, const Tensor& b) {
  if (a.dim(1) != b.dim(1) || first + b.dim(0) > a.dim(0)) return false;
  const auto x = a.values<float>().subspan(static_cast<std::size_t>(first * a.dim(1)), b.values<float>().size());
  return std::memcmp(x.data(), b.values<float>().data(), x.size_bytes()) == 0;
}

NamedTensor& half_of(AdapterReference& a, const std::string& name) {
  const auto at = std::find_if(a.weights.begin(), a.weights.end(),
                               [&](const NamedTensor& w) { return w.name == "base_model.model." + name; });
  REQUIRE(at != a.weights.end());
  return *at;
}

}  // namespace

TEST_CASE("adapters: logits are PEFT's, at once and in steps, and those of the model itself without one") {
  std::set<std::string> models;
  for (const std::string& name : test::adapter_references()) {
    CAPTURE(name);
    const AdapterReference a = adapter_reference(name);
    Adapted base(a.of);
    models.insert(a.of);
    DecoderModel plain = base.load({}), m = base.load({base.option(a)});
    REQUIRE(m.adapters() == std::vector<std::string>{name});
    CHECK(adapter_error(run_adapted(m, base.tokens(), 0), base.reference, a.logits) <= kNearPeft);
    CHECK(adapter_error(plain.forward(base.tokens()), base.reference, a.logits) > 1e-2);  // the adapter has an effect
    m.reset(), plain.reset();
    CHECK(same_bits(m.forward(base.tokens()), 0, plain.forward(base.tokens())));
    m.reset();
    double worst = 0;
    for (std::size_t at = 0, n = 1; at < base.tokens().size(); at += n, n = 1 + at % 3) {
      n = std::min(n, base.tokens().size() - at);
      const double error = adapter_error(run_adapted(m, base.tokens().subspan(at, n), 0), base.reference, a.logits,
                                         static_cast<std::int64_t>(at));
      if (!(error <= worst)) worst = error;
    }
    CHECK(worst <= kNearPeft);
  }
  CHECK(models.size() >= 8);
}

TEST_CASE("adapters: several in one run, each token with its own") {
  Adapted base("llama2");
  std::vector<AdapterOptions> all;
  std::vector<AdapterReference> references;
  for (const char* name : {"llama_qv", "llama_all", "llama_regex", "llama_layers", "llama_dora", "llama_saved"}) {
    references.push_back(adapter_reference(name));
    all.push_back(base.option(references.back()));
  }
  DecoderOptions o;
  o.sequences = 6;
  DecoderModel m = base.load(all, o), plain = base.load({}, o);
  std::vector<Tensor> alone;
  for (std::int64_t i = -1; i < 6; ++i) {
    alone.push_back(run_adapted(m, base.tokens(), i));
    m.reset();
    if (i >= 0) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(adapter_error(alone.back(), base.reference, references[at].logits) <= kNearPeft);
    }
  }
  CHECK(same_bits(plain.forward(base.tokens()), 0, alone[0]));
  // Sequences at different positions of the text, in parts that a run splits.
  const std::int64_t adapters[] = {2, -1, 4, 1, 5, 0};
  std::size_t done[6] = {};
  for (int round = 0; round < 4; ++round) {
    std::vector<SequenceTokens> parts;
    for (std::size_t s = 0; s < 6; ++s) {
      const std::size_t count = 1 + (s * 5 + static_cast<std::size_t>(round) * 3) % 11;
      parts.push_back({static_cast<std::int64_t>(s), base.tokens().subspan(done[s], count), -1, adapters[s]});
    }
    const Tensor got = m.forward(parts);
    std::int64_t row = 0;
    for (std::size_t s = 0; s < 6; ++s) {
      const auto count = static_cast<std::int64_t>(parts[s].tokens.size());
      const Tensor& want = alone[static_cast<std::size_t>(adapters[s] + 1)];
      const auto width = static_cast<std::size_t>(want.dim(1));
      const auto rows = want.values<float>().subspan(done[s] * width, static_cast<std::size_t>(count) * width);
      CHECK(same_bits(got, row, Tensor::of<float>({count, want.dim(1)}, rows)));
      row += count, done[s] += static_cast<std::size_t>(count);
    }
  }
  const SequenceTokens beyond[] = {{0, base.tokens().first(1), -1, 6}}, below[] = {{0, base.tokens().first(1), -1, -2}};
  CHECK(contains(error_text([&] { (void)m.forward(beyond); }), "there is no adapter 6: the model has 6"));
  CHECK(contains(error_text([&] { (void)m.forward(below); }), "there is no adapter -2"));
}

TEST_CASE("adapters: parts are added up, each with its scale") {
  Adapted base("llama2");
  AdapterReference one = adapter_reference("llama_qv"), two = adapter_reference("llama_all");
  AdapterOptions both = base.option(one, 0.5);
  both.parts.push_back(base.option(two, -2).parts[0]);
  // The same as one adapter: concatenated ranks, with the scale in the second half.
  AdapterReference sum = two;
  const auto number = [](const NamedTensor& w, std::int64_t i) { return static_cast<float>(w.tensor.at(i)); };
  for (NamedTensor& w : sum.weights) {
    if (!w.name.ends_with("lora_A.weight")) continue;
    const std::string module = w.name.substr(0, w.name.size() - std::string_view("lora_A.weight").size());
    NamedTensor& b = *std::find_if(sum.weights.begin(), sum.weights.end(),
                                   [&](const NamedTensor& x) { return x.name == module + "lora_B.weight"; });
    const auto other =
        std::find_if(one.weights.begin(), one.weights.end(), [&](const NamedTensor& x) { return x.name == w.name; });
    const std::int64_t r = w.tensor.dim(0), in = w.tensor.dim(1), out = b.tensor.dim(0);
    const std::int64_t more = other == one.weights.end() ? 0 : other->tensor.dim(0);
    const bool q1 = contains(module, "layers.1.self_attn.q_proj"), up = contains(module, "mlp.up_proj");
    REQUIRE(r == (q1 ? 2 : contains(module, "down_proj") ? 5 : 3));
    std::vector<float> a, wide;
    for (std::int64_t i = 0; i < r * in; ++i) a.push_back(number(w, i));
    for (std::int64_t i = 0; i < more * in; ++i) a.push_back(number(*other, i));
    for (std::int64_t n = 0; n < out; ++n) {
      for (std::int64_t i = 0; i < r; ++i)
        wide.push_back(number(b, n * r + i) * -2 * (up ? 20.0F : 8.0F) / static_cast<float>(r));
      for (std::int64_t i = 0; i < more; ++i) wide.push_back(number(*std::next(other), n * more + i) * 0.5F * 6 / 4);
    }
    w.tensor = Tensor::of<float>({r + more, in}, a);
    b.tensor = Tensor::of<float>({out, r + more}, wide);
  }
  sum.config = R"({"peft_type":"LORA","r":3,"lora_alpha":3,"target_modules":"ALL-linear","rank_pattern":{)"
               R"("layers.0.self_attn.[qv]_proj":7,"layers.2.self_attn.[qv]_proj":7,"layers.1.self_attn.q_proj":6,)"
               R"("layers.1.self_attn.v_proj":7,"down_proj":5},"alpha_pattern":{"layers.0.self_attn.[qv]_proj":7,)"
               R"("layers.2.self_attn.[qv]_proj":7,"layers.1.self_attn.q_proj":6,"layers.1.self_attn.v_proj":7,)"
               R"("down_proj":5}})";
  DecoderModel m = base.load({both, base.option(sum)});
  const Tensor added = run_adapted(m, base.tokens(), 0);
  m.reset();
  CHECK(adapter_error(run_adapted(m, base.tokens(), 1), base.reference, added) <= kNearPeft);
  CHECK(adapter_error(added, base.reference, two.logits) > 1e-2);
  // Scale 0 gives the model itself, except for signs of zeros.
  DecoderModel off = base.load({base.option(two, 0)});
  CHECK(test::logit_error(run_adapted(off, base.tokens(), 0), base.reference) <= kNearPeft);
}

TEST_CASE("adapters: over GGUF files, whose rows and names differ, and over weights in blocks" *
          doctest::test_suite(rlx::test::kSlow)) {
  std::set<std::string> models;
  for (const std::string& name : test::adapter_references()) {
    CAPTURE(name);
    const AdapterReference a = adapter_reference(name);
    if (!test::has_gguf(a.of)) continue;
    models.insert(a.of);
    Adapted base(a.of);
    const test::TempDir folder;
    const std::string bytes = test::decoder_gguf(base.reference);
    folder.write("f32.gguf", bytes);
    DecoderModel m = base.load_from(folder.file("f32.gguf"), {base.option(a)});
    CHECK(adapter_error(run_adapted(m, base.tokens(), 0), base.reference, a.logits) <= kNearPeft);
    folder.write("q8_0.gguf", test::with_blocks(bytes, QuantScheme::Q8_0));
    DecoderModel blocks = base.load_from(folder.file("q8_0.gguf"), {base.option(a)}),
                 plain = base.load_from(folder.file("q8_0.gguf"), {});
    const double near = adapter_error(run_adapted(blocks, base.tokens(), 0), base.reference, a.logits);
    CHECK(near < 0.2);
    CHECK(near < adapter_error(plain.forward(base.tokens()), base.reference, a.logits) / 2);
    blocks.reset(), plain.reset();
    CHECK(same_bits(blocks.forward(base.tokens()), 0, plain.forward(base.tokens())));
  }
  CHECK(models == std::set<std::string>{"gemma2_plain", "gpt2", "gpt_neox", "granite", "llama2", "phi3", "qwen3"});
}

TEST_CASE("adapters: GPT-2 whose file has names without their prefix") {
  const AdapterReference a = adapter_reference("gpt2");
  Adapted base("gpt2");
  test::DecoderReference cut = base.reference;
  for (NamedTensor& w : cut.weights) w.name = w.name.substr(std::string_view("transformer.").size());
  const test::TempDir folder;
  test::write_model(folder, cut);
  DecoderModel m = base.load_from(folder.path(), {base.option(a)});
  CHECK(adapter_error(run_adapted(m, base.tokens(), 0), base.reference, a.logits) <= kNearPeft);
}

TEST_CASE("adapters: what is wrong with lengths of rows, whole modules and embeddings is named") {
  const auto message = [](const char* name, const std::function<void(AdapterReference&)>& spoil) {
    AdapterReference bad = adapter_reference(name);
    Adapted base(bad.of);
    spoil(bad);
    return error_text([&] { (void)base.load({base.option(bad)}); });
  };
  const auto with = [&](const char* name, const std::string& tensor, Tensor value) {
    return message(name, [&](AdapterReference& a) { half_of(a, tensor).tensor = value; });
  };
  const auto without = [&](const char* name, const std::string& tensor) {
    return message(name, [&](AdapterReference& a) {
      const std::string whole = half_of(a, tensor).name;
      std::erase_if(a.weights, [&](const NamedTensor& w) { return w.name == whole; });
    });
  };
  const auto zeros = [](std::vector<std::int64_t> dims) {
    return Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), DType::F32));
  };
  const std::string q0 = "model.layers.0.self_attn.q_proj", embedding = "model.embed_tokens";
  std::string text = with("llama_dora", q0 + ".lora_magnitude_vector", zeros({63}));
  CHECK(contains(text, "'" + q0 + "' has a lora_magnitude_vector [63], expected [64]"));
  CHECK(contains(with("llama_dora", q0 + ".lora_magnitude_vector", zeros({64, 1})), "is [64, 1], expected a vector"));
  CHECK(contains(without("llama_dora", q0 + ".lora_magnitude_vector"), "has no lora_magnitude_vector"));
  text = message("llama_dora", [&](AdapterReference& a) {
    std::erase_if(a.weights, [&](const NamedTensor& w) {
      return contains(w.name, q0 + ".lora_A") || contains(w.name, q0 + ".lora_B");
    });
  });
  CHECK(contains(text, "'" + q0 + "' has a lora_magnitude_vector without lora_A and lora_B"));
  text = message("llama_dora", [&](AdapterReference& a) {
    half_of(a, q0 + ".lora_magnitude_vector").tensor.mutable_values<float>()[5] =
        std::numeric_limits<float>::infinity();
  });
  CHECK(contains(text, "row 5 of the changed matrix"));
  text = message("llama_dora", [&](AdapterReference& a) {
    half_of(a, q0 + ".lora_A.weight").name = "base_model.model." + embedding + ".lora_embedding_A";
  });
  CHECK(contains(text, "changes an embedding, which DoRA does not support"));
  {
    const AdapterReference dora = adapter_reference("llama_dora"), plain = adapter_reference("llama_qv");
    Adapted base(dora.of);
    AdapterOptions both = base.option(dora);
    both.parts.push_back(base.option(plain).parts[0]);
    CHECK(contains(error_text([&] { (void)base.load({both}); }), "so a DoRA adapter must be the only part"));
    const AdapterReference saved = adapter_reference("llama_saved");
    AdapterOptions twice = base.option(saved);
    twice.parts.push_back(base.option(saved).parts[0]);
    text = error_text([&] { (void)base.load({twice}); });
    CHECK_MESSAGE(contains(text, "is also replaced by another part of the adapter"), text);
  }
  text = with("llama_saved", "lm_head.weight", zeros({96, 47}));
  CHECK(contains(text, "'lm_head' is [96, 47], expected [96, 48]"));
  text = with("llama_saved", "model.norm.weight", zeros({47}));
  CHECK_MESSAGE(contains(text, "'model.norm' is [47], expected [48]"), text);
  CHECK(contains(without("llama_saved", embedding + ".weight"), "'" + embedding + "' is in \"modules_to_save\""));
  text = message("llama_saved", [&](AdapterReference& a) {
    a.weights.push_back({"base_model.model.lm_head.bias", zeros({96})});
  });
  CHECK(contains(text, "'lm_head' has a bias, but the layer in the model has none"));
  text = without("gpt2_dora", "transformer.h.1.mlp.c_proj.bias");
  CHECK(contains(text, "'transformer.h.1.mlp.c_proj' has no bias, but the layer in the model has one"));
  CHECK(contains(without("gpt2_dora", "transformer.h.1.mlp.c_proj.weight"), "c_proj' is missing, expected [192, 48]"));
  text = message("llama_saved", [&](AdapterReference& a) {
    a.weights.push_back({"base_model.model." + q0 + ".lora_A.weight", zeros({4, 48})});
  });
  CHECK(contains(text, "'" + q0 + "' has both a full replacement and low-rank matrices"));
  text = message("llama_saved", [&](AdapterReference& a) {
    a.weights.push_back({"base_model.model.model.rotary_norm.weight", zeros({4})});
  });
  CHECK(contains(text, "'model.rotary_norm' is not a part of a llama of 3 layers that an adapter can change"));

  text = with("gemma2_embedding", embedding + ".lora_embedding_A", zeros({5, 95}));
  CHECK(contains(text,
                 "'" + embedding + "' has lora_embedding_A [5, 95] and lora_embedding_B [48, 5], expected [5, 96]"));
  CHECK(contains(without("gemma2_embedding", embedding + ".lora_embedding_B"), "has lora_embedding_A without"));
  text = message("gemma2_embedding", [&](AdapterReference& a) {
    half_of(a, embedding + ".lora_embedding_A").name = "base_model.model." + embedding + ".lora_A.weight";
  });
  CHECK(contains(text, "'" + embedding + "' has lora_A or lora_B, but is an embedding"));
  text = message("gemma2_embedding", [&](AdapterReference& a) {
    half_of(a, "model.layers.0.self_attn.v_proj.lora_A.weight").name =
        "base_model.model.model.layers.0.self_attn.v_proj.lora_embedding_A";
  });
  CHECK(contains(text, "has lora_embedding matrices, but is not an embedding"));
  text = message("gemma2_embedding", [&](AdapterReference& a) {
    std::erase_if(a.weights, [](const NamedTensor& w) { return contains(w.name, "lora_embedding"); });
  });
  CHECK(contains(text, "'" + embedding + "' is one of the target modules"));
  // PEFT may also write the embedding of the model, which must be unchanged.
  for (const bool same : {true, false}) {
    text = message("gemma2_embedding", [&](AdapterReference& a) {
      const test::DecoderReference model = test::decoder_reference(a.of);
      const auto table = std::find_if(model.weights.begin(), model.weights.end(),
                                      [&](const NamedTensor& w) { return w.name == embedding + ".weight"; });
      Tensor copy = Tensor::copy_of(table->tensor.data(), table->tensor.shape());
      if (!same) copy.mutable_values<float>()[77] += 1;
      a.weights.push_back({"base_model.model." + embedding + ".base_layer.weight", copy});
    });
    CHECK((same ? text.empty() : contains(text, "has a base_layer.weight [96, 48] that differs from the model's")));
  }
}

TEST_CASE("adapters: what does not fit is named") {
  Adapted base("llama2");
  const AdapterReference good = adapter_reference("llama_qv");
  const auto message = [&](const std::function<void(AdapterReference&)>& spoil) {
    AdapterReference bad = good;
    spoil(bad);
    return error_text([&] { (void)base.load({base.option(bad)}); });
  };
  const std::string q0 = "model.layers.0.self_attn.q_proj";
  const auto erase = [&](AdapterReference& a, const std::string& name) {
    const std::string whole = half_of(a, name).name;
    std::erase_if(a.weights, [&](const NamedTensor& w) { return w.name == whole; });
  };
  std::string text = message([&](AdapterReference& a) { erase(a, q0 + ".lora_B.weight"); });
  CHECK(contains(text, "'" + q0 + "' has lora_A without lora_B"));
  text = message([&](AdapterReference& a) { erase(a, q0 + ".lora_A.weight"); });
  CHECK(contains(text, "'" + q0 + "' has lora_B without lora_A"));
  text = message([&](AdapterReference& a) {
    erase(a, q0 + ".lora_A.weight");
    erase(a, q0 + ".lora_B.weight");
  });
  CHECK(contains(text, "'" + q0 + "' is one of the target modules 'q_proj', 'v_proj', but has no matrices"));
  text = message([&](AdapterReference& a) {
    half_of(a, q0 + ".lora_A.weight").tensor = Tensor::zeros(Shape({4, 47}, DType::F32));
  });
  CHECK(contains(text, "'" + q0 + "' has lora_A [4, 47] and lora_B [64, 4], expected [rank, 48] and [64, rank]"));
  text = message([&](AdapterReference& a) {
    half_of(a, q0 + ".lora_A.weight").tensor = Tensor::zeros(Shape({3, 48}, DType::F32));
  });
  CHECK(contains(text, "'" + q0 + "' has lora_A of rank 3, lora_B of rank 4, and the configuration says 4"));
  text = message(
      [&](AdapterReference& a) { half_of(a, q0 + ".lora_A.weight").tensor = Tensor::zeros(Shape({4}, DType::F32)); });
  CHECK(contains(text, "lora_A.weight' is [4], expected a matrix"));
  text = message([&](AdapterReference& a) {
    half_of(a, q0 + ".lora_A.weight").tensor = Tensor::zeros(Shape({4, 48}, DType::I32));
  });
  CHECK(contains(text, "holds i32, expected floats"));
  text = message([&](AdapterReference& a) {
    for (const char* half : {".lora_A.weight", ".lora_B.weight"})
      half_of(a, q0 + half).name = std::string("base_model.model.model.layers.7.self_attn.q_proj") + half;
  });
  CHECK(contains(text,
                 "'model.layers.7.self_attn.q_proj' is not a part of a llama of 3 layers that an adapter can change"));
  CHECK(contains(text, "'" + q0 + "' is one of the target modules"));
  const auto named = [&](const std::string& name) {
    return message([&](AdapterReference& a) { half_of(a, q0 + ".lora_A.weight").name = name; });
  };
  CHECK(contains(named("something"), "the tensor 'something' is not a LoRA tensor"));
  CHECK(contains(named("base_model.model." + q0 + ".lora_magnitude_vector"), "belongs to DoRA"));
  CHECK(contains(named("base_model.model." + q0 + ".lora_B.bias"), "is a bias of lora_B"));
  CHECK(contains(named("base_model.model.lm_head.weight"), "is a full weight of the model"));
  CHECK(contains(named("base_model.model.lm_head.base_layer.weight"),
                 "'lm_head' has a base_layer.weight [4, 48] that differs from the model's"));

  const auto config = [&](const std::string& from, const std::string& to) {
    return message([&](AdapterReference& a) {
      const std::size_t at = a.config.find(from);
      REQUIRE(at != std::string::npos);
      a.config.replace(at, from.size(), to);
    });
  };
  CHECK(contains(config("\"r\":4", "\"r\":5"), "the configuration says 5"));
  CHECK(contains(config("\"r\":4", "\"r\":0"), "\"r\""));
  CHECK(contains(config("\"q_proj\",", "\"k_proj\","),
                 "'" + q0 + "' has matrices, but is not one of the target modules 'k_proj', 'v_proj'"));
  text = config("[\"q_proj\",\"v_proj\"]", "[\"query\",\"value\"]");
  CHECK(contains(text, "the target modules 'query', 'value' match nothing in a llama of 3 layers"));
  CHECK_MESSAGE(contains(text, "have other names than 'model.embed_tokens'"), text);
  CHECK(contains(config("[\"q_proj\",\"v_proj\"]", "\"(\""), "target_modules"));
  CHECK(contains(config("[\"q_proj\",\"v_proj\"]", "null"), "\"target_modules\" is missing"));
  CHECK(contains(config("[\"q_proj\",\"v_proj\"]", "[1]"), "target_modules"));
  CHECK(contains(config("\"use_dora\":false", "\"use_dora\":true"),
                 "'" + q0 + "' has no lora_magnitude_vector, which DoRA needs"));
  CHECK(contains(config("\"modules_to_save\":null", "\"modules_to_save\":[\"lm_head\"]"),
                 "'lm_head' is in \"modules_to_save\", but has no tensor"));
  CHECK(contains(config("\"ensure_weight_tying\":false", "\"ensure_weight_tying\":true"),
                 "\"ensure_weight_tying\" is set"));
  CHECK(contains(config("\"lora_bias\":false", "\"lora_bias\":true"), "\"lora_bias\" is set"));
  CHECK(contains(config("\"bias\":\"none\"", "\"bias\":\"all\""), "\"bias\" is \"all\""));
  CHECK(contains(config("\"peft_type\":\"LORA\"", "\"peft_type\":\"IA3\""), "\"peft_type\" is \"IA3\""));
  CHECK(contains(config("\"init_lora_weights\":true", "\"init_lora_weights\":\"pissa\""),
                 "changes the weights of the model"));
  CHECK(contains(config("\"rank_pattern\":{}", "\"rank_pattern\":{\"q_proj\":2.5}"),
                 "\"rank_pattern\" gives \"q_proj\" 2.5"));
  CHECK(contains(config("{", "["), "adapter_config.json"));

  const auto loads = [&](std::vector<AdapterOptions> adapters) {
    return error_text([&] { (void)base.load(std::move(adapters)); });
  };
  AdapterOptions option = base.option(good);
  CHECK(contains(loads({option, option}), "two adapters are called 'llama_qv'"));
  CHECK(contains(loads({{"", option.parts}}), "has no name"));
  CHECK(contains(loads({{"empty", {}}}), "'empty' has no folders"));
  option.parts[0].scale = std::numeric_limits<double>::quiet_NaN();
  CHECK(contains(loads({option}), "the scale of the adapter"));
  const test::TempDir folder;
  CHECK(contains(loads({{"x", {{folder.path()}}}}), "holds no adapter_config.json"));
  folder.write("adapter_config.json", good.config);
  CHECK(contains(loads({{"x", {{folder.path()}}}}), "holds no adapter_model.safetensors"));
  folder.write("adapter_model.bin", "PK");
  CHECK(contains(loads({{"x", {{folder.path()}}}}), "pickle"));
}

}  // namespace rlx
