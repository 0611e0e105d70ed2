// Configurations of decoders: keys that are read, refusals and their texts.
#include "rlx/models/decoder_config.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/models/rope_frequencies.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;

DecoderConfig parsed(const std::string& text) { return parse_decoder_config(JsonDocument::parse(text, "config.json")); }
std::string refusal(const std::string& text) {
  return test::error_text([&] { (void)parsed(text); });
}
// A configuration with one member replaced, or removed without a value.
std::string with_member(std::string text, const std::string& key, const std::string& value) {
  const std::string member = "\"" + key + "\":";
  const std::size_t at = text.find(member);
  if (at == std::string::npos) return text.insert(1, member + value + ",");
  std::size_t end = at + member.size();
  for (int depth = 0; depth > 0 || (text[end] != ',' && text[end] != '}'); ++end)
    depth += text[end] == '{' || text[end] == '[' ? 1 : text[end] == '}' || text[end] == ']' ? -1 : 0;
  if (value.empty()) return text.erase(at, end - at + (text[end] == ',' ? 1 : 0));
  return text.replace(at, end - at, member + value);
}
std::string changed(const std::string& name, const std::string& key, const std::string& value) {
  return with_member(test::decoder_reference(name).config, key, value);
}

}  // namespace

TEST_CASE("decoder config: an unknown family names the known ones") {
  const std::string text = refusal(R"({"model_type": "rwkv"})");
  CHECK(contains(text, "config.json: \"model_type\" is \"rwkv\", which is not a decoder that rlx supports"));
  for (const std::string& family : decoder_families()) CHECK(contains(text, "'" + family + "'"));
  CHECK(contains(refusal("{}"), "missing key \"model_type\""));
}

TEST_CASE("decoder config: what files of Apertus and ERNIE 4.5 leave out") {
  const DecoderConfig a = parsed(with_member(test::decoder_reference("apertus").config, "rope_parameters", ""));
  CHECK(a.ropes[0].scaling == RopeScaling::Llama3);
  CHECK(a.ropes[0].theta == 12e6);
  CHECK(a.ropes[0].factor == 8);
  CHECK(a.ropes[0].original_context == 8192);
  CHECK(contains(refusal(changed("apertus", "hidden_act", "\"silu\"")), "\"hidden_act\" is \"silu\", expected"));
  const DecoderConfig e = parsed(with_member(test::decoder_reference("ernie4_5").config, "rope_parameters", ""));
  CHECK(e.ropes[0].theta == 500000);
  CHECK(e.tied);
}

TEST_CASE("decoder config: the table of families in the documentation names every one") {
  const std::string page = read_file(test::source_path("docs/language_models.md"));
  for (const std::string& family : decoder_families())
    CHECK_MESSAGE(contains(page, "`" + family + "`"), family, " is not in docs/language_models.md");
}

TEST_CASE("decoder config: sizes that are absent, of another type or do not fit together") {
  const auto llama = [](const char* key, const char* value) { return refusal(changed("llama2", key, value)); };
  CHECK(llama("hidden_size", "48").empty());
  CHECK(contains(llama("hidden_size", ""), "missing key \"hidden_size\""));
  CHECK(contains(llama("hidden_size", "\"48\""), "\"hidden_size\" must be an integer, got a string"));
  CHECK(contains(llama("hidden_size", "0"), "\"hidden_size\" is 0, expected 1 to"));
  CHECK(contains(llama("vocab_size", "99999999999"), "\"vocab_size\" is 99999999999"));
  CHECK(contains(llama("num_hidden_layers", "1000000"), "\"num_hidden_layers\" is 1000000, expected 1 to 1024"));
  CHECK(contains(llama("num_key_value_heads", "3"), "\"num_attention_heads\" 4 is not a multiple of"));
  CHECK(contains(llama("rms_norm_eps", "0"), "\"rms_norm_eps\" is 0, expected a positive number"));
  CHECK(contains(llama("rms_norm_eps", "2147483648"), "the epsilon of norms is 2147483648, expected a small number"));
  CHECK(contains(llama("hidden_act", "\"mish\""), "\"hidden_act\" is \"mish\""));
  CHECK(contains(llama("rope_theta", "-1"), "\"rope_theta\" is -1"));
  CHECK(contains(llama("rope_scaling", R"({"rope_type":"mrope"})"), "the rope scaling \"mrope\" is not supported"));
  CHECK(contains(llama("rope_scaling", R"({"rope_type":"linear"})"), "\"factor\" is 0, expected a positive number"));
  CHECK(contains(llama("rope_scaling", "3"), "\"rope_scaling\" must be an object"));
  CHECK(contains(llama("head_dim", "1"), "expected an even number of at least 2"));
  CHECK(parsed(changed("llama2", "num_key_value_heads", "null")).kv_heads == 4);
  CHECK(parsed(changed("llama2", "head_dim", "")).head_dim == 12);
  CHECK(contains(refusal(changed("gemma2", "layer_types", R"(["full_attention"])")), "has 1 entries for 4 layers"));
  CHECK(contains(refusal(changed("gemma2", "layer_types", R"(["full_attention","a","b","c"])")),
                 "\"layer_types\" holds \"a\""));
  CHECK(
      contains(refusal(changed("phi3", "rope_scaling", R"({"type":"longrope","short_factor":[1],"long_factor":[1]})")),
               "\"short_factor\" has 1 entries for 8 pairs"));
  CHECK(contains(refusal(changed("qwen3_moe", "num_experts_per_tok", "9")), "but there are 8 experts"));
  CHECK(contains(refusal(changed("deepseek_v2", "topk_method", "\"noaux_tc\"")), "supported are greedy"));
  CHECK(contains(refusal(changed("deepseek_v2", "n_group", "3")), "is not a multiple of \"n_group\" 3"));
  CHECK(contains(refusal(changed("gpt2", "add_cross_attention", "true")), "\"add_cross_attention\" is true"));
}

TEST_CASE("decoder config: the newer layout of rotary positions says the same") {
  const auto same = [](const DecoderConfig& a, const DecoderConfig& b) {
    REQUIRE(a.ropes.size() == b.ropes.size());
    for (std::size_t i = 0; i < a.ropes.size(); ++i) {
      CHECK(rope_frequencies(a.ropes[i], 100) == rope_frequencies(b.ropes[i], 100));
      CHECK(a.ropes[i].table_scale == b.ropes[i].table_scale);
    }
  };
  const auto newer = [](const std::string& name, const std::string& parameters) {
    std::string text = changed(name, "rope_parameters", parameters);
    for (const char* key : {"rope_theta", "rope_scaling"}) {
      const std::size_t at =
          text.find(std::string("\"") + key + "\":", text.find("rope_parameters") + 15 + parameters.size());
      if (at != std::string::npos) text.replace(at + 1, 4, "none");
    }
    return parsed(text);
  };
  same(parsed(test::decoder_reference("llama3").config),
       newer("llama3", R"({"rope_type":"llama3","rope_theta":1000.0,"factor":8.0,"low_freq_factor":1.0,)"
                       R"("high_freq_factor":4.0,"original_max_position_embeddings":64})"));
  same(parsed(test::decoder_reference("gemma3").config),
       newer("gemma3", R"({"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":1000000.0},)"
                       R"("sliding_attention":{"rope_type":"default","rope_theta":10000.0}})"));
}

TEST_CASE("decoder config: null is not the same as a key that is left out") {
  CHECK(parsed(changed("gemma2", "attn_logit_softcapping", "")).attention_softcap == 50);
  CHECK_FALSE(parsed(changed("gemma2", "attn_logit_softcapping", "null")).attention_softcap.has_value());
  CHECK(parsed(changed("gemma2", "final_logit_softcapping", "")).logit_softcap == 30);
  CHECK_FALSE(parsed(changed("gemma2", "final_logit_softcapping", "null")).logit_softcap.has_value());
  CHECK(parsed(changed("mistral", "sliding_window", "")).layers[0].window == 4096);
  CHECK(parsed(changed("mistral", "sliding_window", "null")).layers[0].window == 0);
  // A sliding-window layer needs a window.
  const char* const missing = "\"layer_types\" holds \"sliding_attention\", but there is no \"sliding_window\"";
  const std::string types =
      changed("qwen2_window", "layer_types", R"(["full_attention","sliding_attention","full_attention"])");
  CHECK(parsed(types).layers[1].window == 9);
  CHECK(contains(refusal(changed("gpt_oss", "sliding_window", "null")), missing));
}

TEST_CASE("decoder config: names that only some versions write") {
  const std::string renamed = changed("qwen3_moe", "num_experts", "");
  CHECK(contains(refusal(renamed), "missing key \"num_experts\""));
  CHECK(parsed(with_member(renamed, "num_local_experts", "8")).moe->experts == 8);
  const auto activation = [](const char* value) { return parsed(changed("gemma", "hidden_act", value)).activation; };
  CHECK(activation("\"gelu\"") == ActivationKind::GeluApprox);
  CHECK(activation("") == ActivationKind::GeluApprox);
  CHECK(activation("\"relu\"") == ActivationKind::Relu);
  // Each family reads its own keys.
  CHECK(parsed(changed("gpt_neox", "rms_norm_eps", "0.5")).norm_eps == 1e-5);
  CHECK(parsed(changed("qwen3", "mlp_bias", "true")).ff_bias == false);
  CHECK_FALSE(parsed(changed("gemma3", "attn_logit_softcapping", "5.0")).attention_softcap.has_value());
}

TEST_CASE("decoder config: who has windows, as transformers has it") {
  const char* const full = R"(["full_attention","full_attention","full_attention","full_attention"])";
  CHECK(parsed(changed("phi3_short", "layer_types", full)).layers[0].window == 11);
  const std::string moe = with_member(changed("qwen3_moe", "use_sliding_window", "true"), "sliding_window", "5");
  CHECK(parsed(with_member(moe, "layer_types", R"(["full_attention"])")).layers[2].window == 5);
  const std::string smol = changed("smollm3", "layer_types",
                                   R"(["sliding_attention","full_attention","full_attention","sliding_attention"])");
  const DecoderConfig c = parsed(with_member(smol, "sliding_window", "7"));  // with or without use_sliding_window
  CHECK(c.layers[0].window == 7);
  CHECK(c.layers[1].window == 0);
}

TEST_CASE("decoder config: tokens that see those behind them write no text") {
  CHECK(contains(refusal(changed("llama2", "is_causal", "false")), "\"is_causal\" is false"));
  CHECK(refusal(changed("llama2", "is_causal", "true")).empty());
  for (const char* name : {"gemma", "gemma2", "gemma3"})
    CHECK(contains(refusal(changed(name, "use_bidirectional_attention", "true")),
                   "\"use_bidirectional_attention\" is true"));
  const auto of_texts = [](const std::string& text) {
    return parse_decoder_of_texts(JsonDocument::parse(text, "config.json"));
  };
  CHECK(of_texts(changed("mistral", "is_causal", "false")).bidirectional);
  CHECK(of_texts(changed("mistral", "is_causal", "false")).layers[0].window == 13);
  CHECK(of_texts(changed("gemma", "use_bidirectional_attention", "true")).bidirectional);
}

TEST_CASE("decoder config: which of several keys about rotary positions counts") {
  const auto rope = [](const std::string& text) { return parsed(text).ropes[0]; };
  // Scaling in the older key takes precedence over the newer object.
  const std::string both = changed("llama2", "rope_parameters", R"({"rope_type":"default","rope_theta":5.0})");
  CHECK(rope(with_member(both, "rope_scaling", R"({"rope_type":"linear","factor":3.0})")).factor == 3);
  CHECK(rope(with_member(both, "rope_scaling", "{}")).theta == 5);
  // Dynamic scaling starts at max_position_embeddings, whatever other keys say.
  CHECK(rope(changed("llama_dynamic", "rope_scaling",
                     R"({"rope_type":"dynamic","factor":2.0,"original_max_position_embeddings":8})"))
            .original_context == 32);
  // The top-level key takes precedence over that of the object.
  CHECK(rope(changed("llama_yarn", "original_max_position_embeddings", "16")).original_context == 16);
  const std::string yarn = R"({"rope_type":"yarn","factor":null,"original_max_position_embeddings":32})";
  CHECK(rope(changed("llama_yarn", "rope_scaling", yarn)).factor == 4);
  const char* const factors = "[1,1,1,1,1,1,1,1]";
  const std::string longer = concat_text("{\"type\":\"longrope\",\"factor\":2.0,\"short_factor\":", factors,
                                         ",\"long_factor\":", factors, "}");
  CHECK(rope(changed("phi3", "rope_scaling", longer)).table_scale == std::sqrt(1 + std::log(2.0) / std::log(32.0)));
  // Early Phi-3 files use another name.
  const std::string early =
      concat_text("{\"type\":\"yarn\",\"short_factor\":", factors, ",\"long_factor\":", factors, "}");
  CHECK(rope(changed("phi3", "rope_scaling", early)).scaling == RopeScaling::Long);
  CHECK(contains(refusal(changed("llama2", "partial_rotary_factor", "0.5")),
                 "\"partial_rotary_factor\" is 0.5, but this family rotates whole heads"));
  CHECK(refusal(changed("llama2", "partial_rotary_factor", "1.0")).empty());
  CHECK(rope(changed("smollm3", "rope_parameters", R"({"rope_type":"default"})")).theta == 2e6);
  const std::string neox = changed("gpt_neox", "rotary_emb_base", "500");
  CHECK(rope(neox).theta == 500);
  CHECK(rope(with_member(neox, "rope_theta", "7")).theta == 500);
  const RopeSpec oss = rope(changed("gpt_oss", "rope_scaling", ""));
  CHECK(oss.scaling == RopeScaling::Yarn);
  CHECK(oss.factor == 32);
}

TEST_CASE("decoder config: angles of known checkpoints") {
  // Llama 3.1: wavelengths below 2048 are kept, those above 8192 are scaled by 8, and those between are interpolated.
  RopeSpec s{.theta = 500000, .rotated = 128, .scaling = RopeScaling::Llama3, .factor = 8, .original_context = 8192};
  const std::vector<float> f = rope_frequencies(s, 1), plain = rope_frequencies({.theta = 500000, .rotated = 128}, 1);
  CHECK(f[0] == 1);
  CHECK(f[10] == plain[10]);
  CHECK(f[63] == plain[63] / 8);
  CHECK(f[32] < plain[32]);
  CHECK(f[32] > plain[32] / 8);
  CHECK(plain[1] == doctest::Approx(std::pow(500000.0, -1.0 / 64)).epsilon(1e-6));
}

}  // namespace rlx
