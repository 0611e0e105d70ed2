// Readers that the GGUF metadata of many decoder families share.
#include "rlx/models/family_gguf.h"

#include <cmath>
#include <string>
#include <vector>

#include "rlx/error.h"

namespace rlx {

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
    k.unsupported("value heads do not have the size of key heads");
  if (c.num_heads % c.kv_heads)
    k.bad(concat_text(c.num_heads, " heads are not a multiple of ", c.kv_heads, " KV heads"));
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

RopeSpec read_rope(const GgufKeys& k, const DecoderConfig& c, RopePairing pairing, double theta) {
  RopeSpec s;
  s.pairing = pairing;
  s.theta = k.positive_or("rope.freq_base", theta);
  s.rotated = k.size_or("rope.dimension_count", c.head_dim);
  if (s.rotated < 2 || s.rotated % 2 || s.rotated > c.head_dim)
    k.bad(concat_text("rope rotates ", s.rotated, " elements of heads of ", c.head_dim,
                      ", expected an even number from 2 to the head size"));
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
    k.unsupported(concat_text("the rope scaling \"", type, "\" is not supported"),
                  "supported are none, linear, yarn and longrope");
  }
  // Factors of each pair, stored as tensors: one set for every length (Llama 3.1), or two.
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

void read_windows(const GgufKeys& k, DecoderConfig& c, const std::function<bool(std::size_t)>& windowed) {
  const std::int64_t window = k.size_or("attention.sliding_window", 0, 0);
  if (window == 0) return;
  const std::vector<std::int64_t> pattern = k.pattern("attention.sliding_window_pattern", c.layers.size());
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].window = (pattern.empty() ? windowed(i) : pattern[i] != 0) ? window : 0;
}

MoeSpec read_experts(const GgufKeys& k, std::int64_t ff_size) {
  MoeSpec m;
  m.experts = k.size("expert_count", 4096);
  m.used = k.size("expert_used_count", m.experts);
  m.ff_size = ff_size > 0 ? k.size_or("expert_feed_forward_length", ff_size) : k.size("expert_feed_forward_length");
  m.layout = ExpertLayout::Stacked;
  return m;
}

void name_post_norms(DecoderNames& n) {
  n.attention_post_norm = "post_attention_norm", n.ff_post_norm = "post_ffw_norm";
}

}  // namespace rlx
