// A language model from a Hugging Face folder: the logits of a prompt, of one token at a time after it, and of two
// sequences at once. The program writes the model itself, with generated weights, so it needs no download.
#include <rlx/formats/safetensors.h>
#include <rlx/models/decoder_model.h>
#include <rlx/rlx.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

// A weight of sine waves; each weight has its own wavelength.
rlx::NamedTensor weight(const std::string& name, std::vector<std::int64_t> dims, float level, float size) {
  std::size_t count = 1, seed = 7;
  for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  for (const char c : name) seed = (seed * 31 + static_cast<unsigned char>(c)) % 9973;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = level + size * static_cast<float>((i * i * 17 + i * seed) % 199) / 99.0f - size;
  return {name, rlx::Tensor::of<float>(dims, values).cast(rlx::DType::BF16)};
}

void write_model(const std::string& folder) {
  std::ofstream(folder + "/config.json") << R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 16,
    "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": true})";
  std::vector<rlx::NamedTensor> w{weight("model.embed_tokens.weight", {32, 16}, 0, 0.3f),
                                  weight("model.norm.weight", {16}, 1, 0)};
  for (int layer = 0; layer < 2; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    w.push_back(weight(at + "input_layernorm.weight", {16}, 1, 0));
    w.push_back(weight(at + "post_attention_layernorm.weight", {16}, 1, 0));
    w.push_back(weight(at + "self_attn.q_proj.weight", {16, 16}, 0, 1));
    w.push_back(weight(at + "self_attn.k_proj.weight", {8, 16}, 0, 1));
    w.push_back(weight(at + "self_attn.v_proj.weight", {8, 16}, 0, 1));
    w.push_back(weight(at + "self_attn.o_proj.weight", {16, 16}, 0, 1));
    w.push_back(weight(at + "mlp.gate_proj.weight", {32, 16}, 0, 1));
    w.push_back(weight(at + "mlp.up_proj.weight", {32, 16}, 0, 1));
    w.push_back(weight(at + "mlp.down_proj.weight", {16, 32}, 0, 1));
  }
  rlx::write_safetensors(folder + "/model.safetensors", w, {{"format", "pt"}});
}

// The argmax of each row of logits.
std::vector<rlx::TokenId> best(const rlx::Tensor& logits) {
  std::vector<rlx::TokenId> out;
  const auto width = static_cast<std::size_t>(logits.dim(1));
  const std::span<const float> x = logits.values<float>();
  for (std::size_t row = 0; row < x.size(); row += width)
    out.push_back(static_cast<rlx::TokenId>(std::max_element(&x[row], &x[row] + width) - &x[row]));
  return out;
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "rlx_example_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  write_model(folder);

  // A folder or a .gguf file. Weights stay in the dtype of the file; the cache has room for two texts of 24 tokens.
  auto model = rlx::DecoderModel::load(folder, {.context = 24, .sequences = 2});
  std::printf("%s, %zu layers, cache of %zu bytes\n", model.config().family.c_str(), model.config().layers.size(),
              model.cache_bytes());

  // A prompt, then one token after the other: each run adds to the cache and reads it.
  const std::vector<rlx::TokenId> prompt{3, 1, 4, 1, 5};
  std::vector<rlx::TokenId> text = prompt;
  rlx::Tensor logits = model.forward(prompt, rlx::LogitRows::Last);
  while (text.size() < 12) {
    text.push_back(best(logits)[0]);
    logits = model.forward(std::span(&text.back(), 1), rlx::LogitRows::Last);
  }
  for (const rlx::TokenId t : text) std::printf("%d ", t);
  std::printf("\n");

  // The whole text at once, as the second sequence, gives the same argmax tokens.
  const rlx::SequenceTokens whole[] = {{1, text}};
  const std::vector<rlx::TokenId> again = best(model.forward(whole));
  std::printf("the same again: %s\n",
              std::equal(text.begin() + prompt.size(), text.end(), again.begin() + prompt.size() - 1) ? "yes" : "no");

  // truncate goes back to the prompt. A text longer than the cache is an error.
  model.truncate(5);
  std::printf("%lld tokens, and %lld of the other\n", static_cast<long long>(model.length()),
              static_cast<long long>(model.length(1)));
  try {
    model.forward(std::vector<rlx::TokenId>(20, 1));
  } catch (const rlx::Error& e) {
    std::printf("%s\n", e.what());
  }
  std::filesystem::remove_all(folder);
  return 0;
}
