// Speculative decoding: tokens per run and milliseconds per token, with drafts by prompt lookup and by a draft model.
// usage: speculation [MODEL [DRAFT]]
//
// Without files: a generated llama of 8 layers in f32, whose first 2 layers are the draft model. The other 6 layers
// change the result little, as the upper layers of trained models do for easy tokens. Most tokens follow a cycle of 40.
// The prompt is four cycles. Answers are drawn at temperature 0 and 0.8 and compared token for token.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/error.h"
#include "rlx/formats/safetensors.h"
#include "rlx/generation/engine.h"

namespace {

constexpr std::int64_t kRound = 40, kVocab = 200 * kRound, kHidden = 512, kWide = 1536, kLayers = 8, kTokens = 192;
constexpr double kSays = 3;

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("rlx_speculation_" + name)) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void write_llama(const Folder& folder, std::int64_t layers) {
  std::vector<rlx::NamedTensor> weights;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> dims, double spread) {
    std::mt19937 rng(static_cast<unsigned>(std::hash<std::string>()(name)));
    std::normal_distribution<float> normal(0, static_cast<float>(spread));
    std::size_t count = 1;
    for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
    std::vector<float> values(count, 1);
    if (dims.size() > 1)
      for (float& v : values) v = normal(rng);
    weights.push_back({name, rlx::Tensor::of<float>(dims, values)});
  };
  const double in = 1 / std::sqrt(static_cast<double>(kHidden));
  add("model.embed_tokens.weight", {kVocab, kHidden}, 1);
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::string at = "model.layers." + std::to_string(l) + ".";
    const double out = l < 2 ? 1 : 0.05;
    add(at + "input_layernorm.weight", {kHidden}, 0);
    add(at + "post_attention_layernorm.weight", {kHidden}, 0);
    for (const char* name : {"q", "k", "v"}) add(at + "self_attn." + name + "_proj.weight", {kHidden, kHidden}, 2 * in);
    add(at + "self_attn.o_proj.weight", {kHidden, kHidden}, out * in);
    add(at + "mlp.gate_proj.weight", {kWide, kHidden}, in);
    add(at + "mlp.up_proj.weight", {kWide, kHidden}, in);
    add(at + "mlp.down_proj.weight", {kHidden, kWide}, out * in);
  }
  add("model.norm.weight", {kHidden}, 0);
  add("lm_head.weight", {kVocab, kHidden}, 3 * in);
  // The head predicts the next token of the cycle.
  const auto embedding = weights.front().tensor.values<float>();
  std::vector<float> head(weights.back().tensor.values<float>().begin(), weights.back().tensor.values<float>().end());
  for (std::int64_t t = 0; t < kVocab; ++t) {
    const std::int64_t before = t / kRound * kRound + (t + kRound - 1) % kRound;
    for (std::int64_t i = 0; i < kHidden; ++i)
      head[static_cast<std::size_t>(t * kHidden + i)] +=
          static_cast<float>(kSays * in) * embedding[static_cast<std::size_t>(before * kHidden + i)];
  }
  weights.back().tensor = rlx::Tensor::of<float>({kVocab, kHidden}, head);
  rlx::write_safetensors(folder.file("model.safetensors"), weights);
  std::ofstream(folder.file("config.json"))
      << "{\"model_type\":\"llama\",\"vocab_size\":" << kVocab << ",\"hidden_size\":" << kHidden
      << ",\"intermediate_size\":" << kWide << ",\"num_hidden_layers\":" << layers
      << ",\"num_attention_heads\":8,\"max_position_embeddings\":1024,\"rms_norm_eps\":1e-6}";
}

struct Run {
  std::vector<rlx::TokenId> tokens;
  rlx::EngineStatistics statistics;
  double seconds = 0;
};

Run run(rlx::Engine& engine, const std::vector<rlx::TokenId>& prompt, float temperature) {
  const rlx::EngineStatistics before = engine.statistics();
  rlx::GenerationOptions options;
  options.sampling.temperature = temperature;
  options.sampling.seed = 1;
  options.max_new_tokens = kTokens;
  engine.submit(prompt, options);
  Run out;
  std::chrono::steady_clock::time_point start;
  while (!engine.idle()) {
    for (const rlx::GenerationEvent& e : engine.step()) {
      if (out.tokens.empty()) start = std::chrono::steady_clock::now();
      if (e.token >= 0) out.tokens.push_back(e.token);
    }
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.statistics = engine.statistics();
  out.statistics.runs -= before.runs;
  out.statistics.drafted_tokens -= before.drafted_tokens;
  out.statistics.accepted_tokens -= before.accepted_tokens;
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  compare_before_if_asked(argc, argv);
  const Folder model_folder("model"), draft_folder("draft");
  std::string model = model_folder.path(), draft = draft_folder.path();
  if (argc > 1) {
    model = argv[1];
    draft = argc > 2 ? argv[2] : "";
  } else {
    write_llama(model_folder, kLayers);
    write_llama(draft_folder, 2);
  }
  rlx::DecoderOptions o;
  o.context = 1024;
  std::vector<rlx::TokenId> prompt;
  for (std::int64_t i = 0; i < 4 * kRound; ++i) prompt.push_back(static_cast<rlx::TokenId>(7 * kRound + i % kRound));

  std::printf("%-28s %5s %12s %11s %9s\n", "drafts", "temp", "tokens/run", "right", "ms/token");
  std::vector<rlx::TokenId> wanted[2];
  for (int kind = 0; kind < (draft.empty() ? 2 : 4); ++kind) {
    const char* const names[] = {"none", "looking back", "small model", "both"};
    rlx::EngineOptions options;
    options.draft.lookup = kind & 1 ? 2 : 0;
    std::optional<rlx::DraftModel> drafter;
    if (kind & 2) drafter = rlx::DraftModel{rlx::DecoderModel::load(draft, o)};
    rlx::Engine engine(rlx::DecoderModel::load(model, o), nullptr, options, std::move(drafter));
    (void)run(engine, prompt, 0);  // binds the shapes
    for (const int warm : {0, 1}) {
      const Run r = run(engine, prompt, warm ? 0.8F : 0);
      if (kind == 0) wanted[warm] = r.tokens;
      if (r.tokens != wanted[warm]) throw rlx::Error(rlx::ErrorCode::Internal, "the answers differ");
      const auto count = [](std::int64_t n) { return static_cast<double>(n); };
      const rlx::EngineStatistics& s = r.statistics;
      std::printf("%-28s %5.1f %12.2f %10.0f%% %9.2f\n", names[kind], warm ? 0.8 : 0.0,
                  count(static_cast<std::int64_t>(r.tokens.size())) / count(s.runs),
                  s.drafted_tokens ? 100 * count(s.accepted_tokens) / count(s.drafted_tokens) : 0.0,
                  r.seconds * 1e3 / count(static_cast<std::int64_t>(r.tokens.size()) - 1));
    }
  }
  return 0;
} catch (const rlx::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
