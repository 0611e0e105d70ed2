// Descriptions of decoders from GGUF metadata: the keys of the format's specification, and what each architecture means
// without saying it.
#include "rlx/models/decoder/gguf_decoder.h"

#include <algorithm>
#include <cmath>

#include "rlx/error.h"
#include "rlx/models/decoder/gguf_keys.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::int64_t kMostBlocks = 1024;

DecoderNames gguf_names() {
  DecoderNames n;
  n.embedding = "token_embd", n.final_norm = "output_norm", n.head = "output", n.layer = "blk.{}.";
  n.q = "attn_q", n.k = "attn_k", n.v = "attn_v", n.o = "attn_output";
  n.attention_norm = "attn_norm", n.ff_norm = "ffn_norm";
  n.gate = "ffn_gate", n.up = "ffn_up", n.down = "ffn_down";
  n.router = "ffn_gate_inp";
  n.expert_gate = "ffn_gate_exps", n.expert_up = "ffn_up_exps", n.expert_down = "ffn_down_exps";
  n.shared_gate = "ffn_gate_shexp", n.shared_up = "ffn_up_shexp", n.shared_down = "ffn_down_shexp";
  n.ignored = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"};
  return n;
}

void read_sizes(const GgufKeys& k, DecoderConfig& c) {
  c.vocab_size = k.table_rows("token_embd.weight");
  c.hidden_size = k.size("embedding_length");
  c.layers.resize(static_cast<std::size_t>(k.size("block_count", kMostBlocks)));
  c.ff_size = k.size("feed_forward_length");
  c.num_heads = k.size("attention.head_count");
  c.kv_heads = k.size_or("attention.head_count_kv", c.num_heads);
  if (!k.has("attention.key_length") && c.hidden_size % c.num_heads)
    k.bad(concat_text("the embedding length ", c.hidden_size, " is not a multiple of the ", c.num_heads, " heads"));
  c.head_dim = k.size_or("attention.key_length", c.hidden_size / c.num_heads);
  if (k.size_or("attention.value_length", c.head_dim) != c.head_dim)
    k.unsupported("heads of values have another size than heads of keys");
  if (c.num_heads % c.kv_heads)
    k.bad(concat_text(c.num_heads, " heads are no multiple of ", c.kv_heads, " heads of keys and values"));
  c.max_positions = k.size("context_length");
  if (k.has("attention.layer_norm_rms_epsilon")) {
    c.norm_eps = k.positive("attention.layer_norm_rms_epsilon");
  } else {
    c.norm = NormKind::Layer, c.norm_bias = true;
    c.norm_eps = k.positive("attention.layer_norm_epsilon");
  }
  c.names = gguf_names();
  c.qkv_bias = k.has_tensor("blk.0.attn_q.bias") || k.has_tensor("blk.0.attn_qkv.bias");
  c.o_bias = k.has_tensor("blk.0.attn_output.bias");
  c.ff_bias = k.has_tensor("blk.0.ffn_up.bias");
  c.tied = !k.has_tensor("output.weight");
}

RopeSpec read_rope(const GgufKeys& k, const DecoderConfig& c, RopePairing pairing, double theta = 10000) {
  RopeSpec s;
  s.pairing = pairing;
  s.theta = k.positive_or("rope.freq_base", theta);
  s.rotated = k.size_or("rope.dimension_count", c.head_dim);
  if (s.rotated < 2 || s.rotated % 2 || s.rotated > c.head_dim)
    k.bad(concat_text("of heads of ", c.head_dim, " elements ", s.rotated,
                      " would be rotated, expected an even number from 2 on"));
  s.original_context = k.size_or("rope.scaling.original_context_length", c.max_positions);
  s.table_scale = k.positive_or("rope.scaling.attn_factor", 1);
  const std::string type = k.text("rope.scaling.type", "none");
  if (type == "linear") {
    s.scaling = RopeScaling::Linear;
    s.factor = k.positive("rope.scaling.factor");
  } else if (type == "yarn") {
    s.scaling = RopeScaling::Yarn;
    s.factor = k.positive("rope.scaling.factor");
    const double grown = s.factor <= 1 ? 1 : 0.1 * std::log(s.factor) + 1;
    s.table_scale *= k.positive_or("rope.scaling.yarn_attn_factor", grown);
    s.beta_fast = k.positive_or("rope.scaling.yarn_beta_fast", 32);
    s.beta_slow = k.positive_or("rope.scaling.yarn_beta_slow", 1);
  } else if (type != "none" && type != "longrope") {
    k.unsupported(concat_text("the rope scaling \"", type, "\" is not known"),
                  "known are none, linear, yarn and longrope");
  }
  // Factors of each pair, as tensors: one set for every length (Llama 3.1), or two.
  if (k.has_tensor("rope_freqs.weight")) {
    s.scaling = RopeScaling::Long;
    s.short_factors = s.long_factors = k.factors("rope_freqs.weight", s.rotated / 2);
  } else if (k.has_tensor("rope_factors_long.weight")) {
    s.scaling = RopeScaling::Long;
    s.long_factors = k.factors("rope_factors_long.weight", s.rotated / 2);
    s.short_factors = k.factors("rope_factors_short.weight", s.rotated / 2);
  } else if (type == "longrope") {
    k.bad("the rope scaling is longrope, but there is no tensor \"rope_factors_long.weight\"");
  }
  return s;
}

// Which layers see a window: as the file says, or else as `windowed(layer)` does.
template <class F>
void read_windows(const GgufKeys& k, DecoderConfig& c, F windowed) {
  const std::int64_t window = k.size_or("attention.sliding_window", 0, 0);
  if (window == 0) return;
  const std::vector<std::int64_t> pattern = k.pattern("attention.sliding_window_pattern", c.layers.size());
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].window = (pattern.empty() ? windowed(i) : pattern[i] != 0) ? window : 0;
}

MoeSpec read_experts(const GgufKeys& k, std::int64_t ff_size = 0) {
  MoeSpec m;
  m.experts = k.size("expert_count", 4096);
  m.used = k.size("expert_used_count", m.experts);
  m.ff_size = ff_size > 0 ? k.size_or("expert_feed_forward_length", ff_size) : k.size("expert_feed_forward_length");
  m.layout = ExpertLayout::Stacked;
  return m;
}

// Rows of q and k are in the order of interleaved pairs. With experts it is Mixtral.
void read_llama(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Interleaved)};
  read_windows(k, c, [](std::size_t) { return true; });
  if (!k.has("expert_count") || k.size("expert_count", 4096, 0) == 0) return;
  c.moe = read_experts(k, c.ff_size);
  c.moe->normalize = true;
  for (DecoderLayer& layer : c.layers) layer.moe = true;
}

void read_smollm3(const GgufKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  for (std::size_t i = 3; i < c.layers.size(); i += 4) c.layers[i].rope = -1;
}

void read_granite(const GgufKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.embedding_scale = k.positive_or("embedding_scale", 1);
  c.residual_scale = k.positive_or("residual_scale", 1);
  c.logit_scale = 1 / k.positive_or("logit_scale", 1);
  if (k.has("attention.scale")) c.attention_scale = k.positive("attention.scale");
}

void read_qwen2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
}

void read_qwen3(const GgufKeys& k, DecoderConfig& c) {
  read_qwen2(k, c);
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "attn_q_norm", c.names.k_norm = "attn_k_norm";
}

void read_qwen3_moe(const GgufKeys& k, DecoderConfig& c) {
  read_qwen3(k, c);
  c.moe = read_experts(k);
  c.moe->normalize = k.flag("expert_weights_norm", true);
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].moe = k.has_tensor("blk." + std::to_string(i) + ".ffn_gate_inp.weight");
}

void read_gemma(const GgufKeys& k, DecoderConfig& c) {  // whose norms have their 1 added already
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.activation = ActivationKind::GeluApprox;
  c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
}

void name_post_norms(DecoderNames& n) {
  n.attention_post_norm = "post_attention_norm", n.ff_post_norm = "post_ffw_norm";
}

// The largest model of Gemma 2 and 3 scales scores by the width of the layer for each head, all others by a head's.
void scale_gemma(DecoderConfig& c, std::size_t layers_of_largest) {
  if (c.layers.size() == layers_of_largest)
    c.attention_scale = std::sqrt(static_cast<double>(c.num_heads) / static_cast<double>(c.hidden_size));
}

void read_gemma2(const GgufKeys& k, DecoderConfig& c) {
  read_gemma(k, c);
  name_post_norms(c.names);
  scale_gemma(c, 46);
  if (k.has("attention.scale")) c.attention_scale = k.positive("attention.scale");
  c.attention_softcap = k.positive_or("attn_logit_softcapping", 50);
  c.logit_softcap = k.positive_or("final_logit_softcapping", 30);
  read_windows(k, c, [](std::size_t i) { return i % 2 == 0; });
}

void read_gemma3(const GgufKeys& k, DecoderConfig& c) {
  read_gemma(k, c);
  name_post_norms(c.names);
  scale_gemma(c, 62);
  if (k.has("attention.scale")) c.attention_scale = k.positive("attention.scale");
  if (k.has("final_logit_softcapping")) c.logit_softcap = k.positive("final_logit_softcapping");
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "attn_q_norm", c.names.k_norm = "attn_k_norm";
  read_windows(k, c, [](std::size_t i) { return (i + 1) % 6 != 0; });
  RopeSpec local{.theta = k.positive_or("rope.freq_base_swa", 10000), .rotated = c.head_dim};
  c.ropes = {read_rope(k, c, RopePairing::Half, 1e6), local};
  for (DecoderLayer& layer : c.layers) layer.rope = layer.window ? 1 : 0;
}

void read_phi3(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  DecoderNames& n = c.names;
  if (k.has_tensor("blk.0.attn_qkv.weight")) n.q = n.k = n.v = "", n.qkv = "attn_qkv";
  n.gate = n.up = "", n.gate_up = "ffn_up";
  read_windows(k, c, [](std::size_t) { return true; });
}

// One projection, of all of q, then k, then v, also where the model itself has another order.
void read_gpt2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.activation = ActivationKind::GeluApprox;
  c.gated = false;
  DecoderNames& n = c.names;
  n.positions = "position_embd", n.qkv = "attn_qkv", n.q = n.k = n.v = n.gate = "";
  for (DecoderLayer& layer : c.layers) layer.rope = -1;
}

void read_gpt_neox(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.activation = ActivationKind::Gelu;
  c.gated = false;
  c.parallel = k.flag("use_parallel_residual", true);
  DecoderNames& n = c.names;
  n.qkv = "attn_qkv", n.q = n.k = n.v = n.gate = "";
}

void read_olmo2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.qk_norm = QkNorm::Width;
  DecoderNames& n = c.names;
  n.q_norm = "attn_q_norm", n.k_norm = "attn_k_norm", n.attention_norm = n.ff_norm = "";
  name_post_norms(n);
}

void read_olmoe(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.qk_norm = QkNorm::Width;
  c.names.q_norm = "attn_q_norm", c.names.k_norm = "attn_k_norm";
  c.moe = read_experts(k, c.ff_size);
  c.moe->normalize = k.flag("expert_weights_norm", false);
  for (DecoderLayer& layer : c.layers) layer.moe = true;
}

void read_starcoder2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.activation = ActivationKind::GeluApprox;
  c.gated = false;
  c.names.gate = "";
}

// Where attention and feed-forward start from one norm, the second has none.
void read_stablelm(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  if (k.has_tensor("blk.0.attn_q_norm.weight")) k.unsupported("its q and k have layer norms (StableLM 2 12B)");
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.parallel = !k.has_tensor("blk.0.ffn_norm.weight");
  if (c.parallel) c.names.ff_norm = c.names.attention_norm;
}

void read_phi2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.activation = ActivationKind::GeluApprox;
  c.gated = false;
  c.parallel = c.head_bias = true;
  DecoderNames& n = c.names;
  n.gate = "", n.ff_norm = n.attention_norm;
  if (k.has_tensor("blk.0.attn_qkv.weight")) n.q = n.k = n.v = "", n.qkv = "attn_qkv";
}

void read_gpt_oss(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half, 150000)};
  c.ropes[0].truncate = false;  // which the metadata has no key for
  c.names.sinks = "attn_sinks.weight";
  c.names.ff_norm = "post_attention_norm";
  MoeSpec m = read_experts(k);
  m.router = RouterKind::TopKSoftmax;
  m.bias = m.router_bias = true;
  m.clamp = 7;
  c.moe = m;
  for (DecoderLayer& layer : c.layers) layer.moe = true;
  read_windows(k, c, [](std::size_t i) { return i % 2 == 0; });
}

// Latent attention: of files since 2025 keys are those of one head of latent vectors and what is rotated, and the head
// sizes of the model stand behind "_mla"; older ones have the heads as they are.
void read_deepseek2(const GgufKeys& k, DecoderConfig& c) {
  const bool split = k.has("attention.key_length_mla");
  c.vocab_size = k.table_rows("token_embd.weight");
  c.hidden_size = k.size("embedding_length");
  c.layers.resize(static_cast<std::size_t>(k.size("block_count", kMostBlocks)));
  c.ff_size = k.size("feed_forward_length");
  c.num_heads = c.kv_heads = k.size("attention.head_count");
  c.head_dim = k.size(split ? "attention.key_length_mla" : "attention.key_length");
  c.max_positions = k.size("context_length");
  c.norm_eps = k.positive("attention.layer_norm_rms_epsilon");
  c.tied = !k.has_tensor("output.weight");
  MlaSpec a;
  a.q_rank = k.size_or("attention.q_lora_rank", 0, 0);
  if (!k.has_tensor("blk.0.attn_q_a.weight")) a.q_rank = 0;
  a.kv_rank = k.size("attention.kv_lora_rank");
  a.rope_dim = k.size("rope.dimension_count");
  a.nope_dim = c.head_dim - a.rope_dim;
  a.v_dim = k.size(split ? "attention.value_length_mla" : "attention.value_length");
  if (a.nope_dim < 1 || a.rope_dim % 2)
    k.bad(concat_text("of heads of ", c.head_dim, " elements ", a.rope_dim, " would be rotated"));
  c.mla = a;
  c.names = gguf_names();
  DecoderNames& n = c.names;
  n.k = n.v = "";
  n.q_a = "attn_q_a", n.q_a_norm = "attn_q_a_norm", n.q_b = "attn_q_b";
  n.kv_a = "attn_kv_a_mqa", n.kv_a_norm = "attn_kv_a_norm";
  if (split)
    n.k_b = "attn_k_b", n.v_b = "attn_v_b";
  else
    n.kv_b = "attn_kv_b";
  DecoderConfig heads = c;
  heads.head_dim = a.rope_dim;
  RopeSpec rope = read_rope(k, heads, RopePairing::Interleaved);
  double growth = 1;
  if (rope.scaling == RopeScaling::Yarn) {
    // A tenth of "mscale_all_dim"; "mscale" is the same number in all models that files can hold.
    const double log_multiplier = k.positive("rope.scaling.yarn_log_multiplier");
    growth = rope.factor <= 1 ? 1 : log_multiplier * std::log(rope.factor) + 1;
    rope.table_scale = 1;
  }
  c.attention_scale = growth * growth / std::sqrt(static_cast<double>(c.head_dim));
  c.ropes = {rope};
  if (!k.has("expert_count") || k.size("expert_count", 4096, 0) == 0) return;
  if (k.size_or("expert_gating_func", 1, 0) > 1)
    k.unsupported("its experts are not chosen by softmax", "DeepSeek-V3 and what is built like it is not built");
  if (k.size_or("expert_group_count", 1) != 1) k.unsupported("its experts are chosen by groups");
  MoeSpec m = read_experts(k);
  m.shared_ff_size = m.ff_size * k.size_or("expert_shared_count", 0, 0);
  m.normalize = k.flag("expert_weights_norm", false);
  m.scale = k.positive_or("expert_weights_scale", 1);
  c.moe = m;
  const auto dense = static_cast<std::size_t>(k.size_or("leading_dense_block_count", 0, 0));
  for (std::size_t i = dense; i < c.layers.size(); ++i) c.layers[i].moe = true;
}

struct Architecture {
  std::string_view name;
  void (*read)(const GgufKeys&, DecoderConfig&);
};
constexpr Architecture kArchitectures[] = {
    {"deepseek2", read_deepseek2},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3", read_gemma3},
    {"gpt-oss", read_gpt_oss},
    {"gpt2", read_gpt2},
    {"gptneox", read_gpt_neox},
    {"granite", read_granite},
    {"llama", read_llama},
    {"olmo2", read_olmo2},
    {"olmoe", read_olmoe},
    {"phi2", read_phi2},
    {"phi3", read_phi3},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"qwen3moe", read_qwen3_moe},
    {"smollm3", read_smollm3},
    {"stablelm", read_stablelm},
    {"starcoder2", read_starcoder2},
};

}  // namespace

std::vector<std::string> gguf_architectures() {
  std::vector<std::string> out;
  for (const Architecture& a : kArchitectures) out.emplace_back(a.name);
  return out;
}

DecoderConfig read_decoder_config(const GgufFile& file) try {
  const GgufKeys keys(file);
  for (const Architecture& a : kArchitectures) {
    if (a.name != file.architecture()) continue;
    DecoderConfig c;
    c.family = a.name;
    a.read(keys, c);
    return c;
  }
  const std::vector<std::string> known = gguf_architectures();
  keys.unsupported(
      concat_text("\"general.architecture\" is \"", file.architecture(), "\", which is no decoder that rlx knows"),
      concat_text("known are ", quoted_names(known, known.size())));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_decoder_config");
}

ModelWeights gguf_weights(std::shared_ptr<const GgufFile> file) try {
  if (!file) throw Error(ErrorCode::InvalidArgument, "gguf_weights: no file was given (a null pointer)");
  const GgufFile* f = file.get();
  const std::string source = file->source();
  const auto scheme = [f](std::string_view name) -> std::optional<QuantScheme> {
    const GgufTensor* t = f->find_tensor(name);
    if (!t || t->info().dtype) return std::nullopt;
    if (t->info().scheme == QuantScheme::Affine)
      throw Error(
          ErrorCode::Unsupported,
          concat_text(f->source(), ": the tensor '", name, "' is ", t->info().name, ", which rlx does not read"),
          "convert the file to another type, for example Q4_K or Q8_0");
    return t->info().scheme;
  };
  return {std::move(file), source, scheme};
} catch (const std::bad_alloc&) {
  throw_out_of_memory("gguf_weights");
}

}  // namespace rlx
