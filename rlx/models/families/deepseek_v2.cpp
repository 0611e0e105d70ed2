// DeepSeek-V2 and V2-Lite: latent attention, routed and shared experts.
#include <cmath>

#include "rlx/error.h"
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_deepseek_v2(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  MlaSpec a;
  a.q_rank = k.size_or("q_lora_rank", 0);
  a.kv_rank = k.size("kv_lora_rank");
  a.nope_dim = k.size("qk_nope_head_dim"), a.rope_dim = k.size("qk_rope_head_dim"), a.v_dim = k.size("v_head_dim");
  c.mla = a;
  c.kv_heads = c.num_heads;
  c.head_dim = a.nope_dim + a.rope_dim;
  read_mla_rope(k, c);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.o_bias = k.flag("attention_bias", false);
  c.ff_bias = k.flag("mlp_bias", false);
  c.tied = k.flag("tie_word_embeddings", false);
  DecoderNames& n = c.names;
  n.k = n.v = "";
  n.q_a = "self_attn.q_a_proj", n.q_a_norm = "self_attn.q_a_layernorm", n.q_b = "self_attn.q_b_proj";
  n.kv_a = "self_attn.kv_a_proj_with_mqa", n.kv_a_norm = "self_attn.kv_a_layernorm", n.kv_b = "self_attn.kv_b_proj";
  if (!k.has("n_routed_experts")) return;
  MoeSpec m = read_experts(k, "n_routed_experts", "moe_intermediate_size");
  m.shared_ff_size = m.ff_size * k.size_or("n_shared_experts", 0, 0, kMostExperts);
  m.scale = k.positive("routed_scaling_factor", 1);
  // "routed_scaling_factor" applies only to expert weights that are not normalised, as in the authors' code.
  m.normalize = m.used > 1 && k.flag("norm_topk_prob", false);
  if (m.normalize) m.scale = 1;
  const std::string scores = k.text("scoring_func", "softmax"), method = k.text("topk_method", "greedy");
  if (scores != "softmax") k.unsupported(concat_text("\"scoring_func\" is \"", scores, "\", expected \"softmax\""));
  if (method == "group_limited_greedy") {
    m.groups = k.size("n_group", 1, m.experts), m.used_groups = k.size("topk_group", 1, m.groups);
    if (m.experts % m.groups)
      k.bad(concat_text("\"n_routed_experts\" ", m.experts, " is not a multiple of \"n_group\" ", m.groups));
    if (m.used > m.used_groups * (m.experts / m.groups))
      k.bad(concat_text("\"num_experts_per_tok\" is ", m.used, ", but the selected groups have ",
                        m.used_groups * (m.experts / m.groups), " experts"));
  } else if (method != "greedy" && method != "gready") {
    k.unsupported(concat_text("\"topk_method\" is \"", method, "\""), "supported are greedy and group_limited_greedy");
  }
  c.moe = m;
  n.router = "mlp.gate";
  name_experts(n, "mlp.experts.{}.");
  const std::string shared = "mlp.shared_experts.";
  n.shared_gate = shared + "gate_proj", n.shared_up = shared + "up_proj", n.shared_down = shared + "down_proj";
  const std::int64_t dense = k.size_or("first_k_dense_replace", 0, 0), every = k.size_or("moe_layer_freq", 1);
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].moe = static_cast<std::int64_t>(i) >= dense && static_cast<std::int64_t>(i) % every == 0;
}

// Multi-head latent attention (MLA). GGUF files since 2025 describe it as multi-query attention: one key head, the
// latent vector plus the rotated elements. The model's own head sizes have keys that end in "_mla". Older files give
// the sizes of the model's own heads.
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
    k.bad(concat_text("rope rotates ", a.rope_dim, " elements of heads of ", c.head_dim,
                      ", expected an even number below the head size"));
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
    // The key holds a tenth of "mscale_all_dim" of config.json. GGUF has no key for "mscale": the converter takes only
    // models in which both are the same number.
    const double log_multiplier = k.positive("rope.scaling.yarn_log_multiplier");
    growth = rope.factor <= 1 ? 1 : log_multiplier * std::log(rope.factor) + 1;
    rope.table_scale = 1;
  }
  c.attention_scale = growth * growth / std::sqrt(static_cast<double>(c.head_dim));
  c.ropes = {rope};
  if (!k.has("expert_count") || k.size("expert_count", 4096, 0) == 0) return;
  if (k.size_or("expert_gating_func", 1, 0) > 1)
    k.unsupported("its experts are not selected by softmax", "DeepSeek-V3 and models like it are not supported");
  if (k.size_or("expert_group_count", 1) != 1) k.unsupported("its experts are selected by groups");
  MoeSpec m = read_experts(k);
  m.shared_ff_size = m.ff_size * k.size_or("expert_shared_count", 0, 0);
  m.normalize = k.flag("expert_weights_norm", false);
  m.scale = k.positive_or("expert_weights_scale", 1);
  c.moe = m;
  const auto dense = static_cast<std::size_t>(k.size_or("leading_dense_block_count", 0, 0));
  for (std::size_t i = dense; i < c.layers.size(); ++i) c.layers[i].moe = true;
}

void deepseek_sizes(const JsonValue& config, ModelSizes& s) {
  s.nope_dim = config.get_int("qk_nope_head_dim"), s.v_dim = config.get_int("v_head_dim");
  s.rotated = config.get_int("qk_rope_head_dim"), s.head_dim = s.nope_dim + s.rotated;
  s.q_rank = config.get_int("q_lora_rank", 0);
  s.shared_experts = config.get_int("n_shared_experts", 0);
  s.dense_layers = config.get_int("first_k_dense_replace", 0);
}
void deepseek_sizes_of_gguf(const GgufFile& file, ModelSizes& s) {
  const auto key = [](std::string_view name) { return concat_text("deepseek2.", name); };
  // An older file gives the sizes of the model's own heads, and has one up-projection of keys and values.
  s.latent_whole = file.find_tensor("blk.0.attn_kv_b.weight") != nullptr;
  s.head_dim = file.get_int(key(s.latent_whole ? "attention.key_length" : "attention.key_length_mla"));
  s.v_dim = file.get_int(key(s.latent_whole ? "attention.value_length" : "attention.value_length_mla"));
  s.rotated = file.get_int(key("rope.dimension_count"));
  s.nope_dim = s.head_dim - s.rotated, s.q_rank = file.get_int(key("attention.q_lora_rank"), 0);
  s.shared_experts = file.get_int(key("expert_shared_count"), 0);
  s.dense_layers = file.get_int(key("leading_dense_block_count"), 0);
}

// Writes MLA as multi-query attention: one key head, the latent vector plus the rotated elements.
void write_deepseek(SettingsWriter& out) {
  const JsonValue& config = out.config();
  const std::int64_t rank = config.get_int("kv_lora_rank");
  out.integer("attention.head_count_kv", 1);
  out.integer("attention.key_length", rank + out.sizes().rotated);
  out.integer("attention.value_length", rank);
  out.integer("attention.key_length_mla", out.sizes().head_dim);
  out.integer("attention.value_length_mla", out.sizes().v_dim);
  const bool normalised = config.get_int("num_experts_per_tok") > 1 && config.get_bool("norm_topk_prob", false);
  out.number("expert_weights_scale", normalised ? 1 : number_or(config, "routed_scaling_factor", 1));
  out.flag("expert_weights_norm", normalised);
  out.integer("expert_gating_func", 1);  // softmax
  if (const std::string_view scores = config.get_string("scoring_func", "softmax"); scores != "softmax")
    SettingsWriter::refuse(concat_text("\"scoring_func\": \"", scores, "\" of DeepSeek-V2"));
  if (const std::string_view method = config.get_string("topk_method", "greedy");
      method != "greedy" && method != "gready")
    SettingsWriter::refuse(concat_text("\"topk_method\": \"", method, "\""));
  if (config.get_int("moe_layer_freq", 1) != 1) SettingsWriter::refuse("a \"moe_layer_freq\" other than 1");
  out.need("attention_bias", false);
  out.need("mlp_bias", false);
}
void write_deepseek_config(ConfigWriter& out) {
  out.settings(), out.flags();
  const GgufFile& file = out.file();
  if (file.get_int(out.key("expert_gating_func"), 1) != 1)
    out.unsupported("experts that are not selected by softmax (DeepSeek-V3) are not supported");
  for (const char* groups : {"expert_group_count", "expert_group_used_count"})
    if (file.get_int(out.key(groups), 1) != 1) out.unsupported("experts in groups are not supported");
  out.member("num_key_value_heads", out.sizes().heads);
  out.member("qk_nope_head_dim", out.sizes().nope_dim), out.member("v_head_dim", out.sizes().v_dim);
  out.member("norm_topk_prob", file.get_bool(out.key("expert_weights_norm"), false));
  out.member("routed_scaling_factor", static_cast<float>(file.get_number(out.key("expert_weights_scale"), 1)));
  out.member("topk_method", "greedy"), out.member("scoring_func", "softmax");
}

// clang-format off
constexpr TensorRule kDeepseek2Tensors[] = {
    RLX_TABLE_TENSORS, RLX_LAYER_NORMS, RLX_GATED_TENSORS(DenseLayers), RLX_EXPERT_TENSORS,
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", TensorChange::None, TensorNeed::NoQueryRank},
    {"model.layers.{}.self_attn.q_a_proj.weight", "blk.{}.attn_q_a.weight", TensorChange::None, TensorNeed::QueryRank},
    {"model.layers.{}.self_attn.q_a_layernorm.weight", "blk.{}.attn_q_a_norm.weight", TensorChange::None,
     TensorNeed::QueryRank},
    {"model.layers.{}.self_attn.q_b_proj.weight", "blk.{}.attn_q_b.weight", TensorChange::None, TensorNeed::QueryRank},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa.weight", "blk.{}.attn_kv_a_mqa.weight"},
    {"model.layers.{}.self_attn.kv_a_layernorm.weight", "blk.{}.attn_kv_a_norm.weight"},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_k_b.weight", TensorChange::LatentKeys,
     TensorNeed::LatentSplit},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_v_b.weight", TensorChange::LatentValues,
     TensorNeed::LatentSplit},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_kv_b.weight", TensorChange::None,
     TensorNeed::LatentWhole},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight", TensorChange::None,
     TensorNeed::SharedExpert},
    {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight", TensorChange::None,
     TensorNeed::SharedExpert},
    {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight", TensorChange::None,
     TensorNeed::SharedExpert},
};
constexpr SettingRule kDeepseek2Settings[] = {
    RLX_SIZES, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
    {"q_lora_rank", "attention.q_lora_rank", GgufKind::U32, SettingNeed::Fallback, 0},
    {"kv_lora_rank", "attention.kv_lora_rank"},
    {"qk_rope_head_dim", "rope.dimension_count"},
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"n_shared_experts", "expert_shared_count", GgufKind::U32, SettingNeed::Fallback, 0},
    {"first_k_dense_replace", "leading_dense_block_count", GgufKind::U32, SettingNeed::Fallback, 0},
};
// clang-format on

constexpr DecoderFamily kDeepseekV2{
    .model_type = "deepseek_v2",
    .hf_class = "DeepseekV2ForCausalLM",
    .read_config = read_deepseek_v2,
    .gguf = "deepseek2",
    .read_gguf = read_deepseek2,
    .tensors = kDeepseek2Tensors,
    .settings = kDeepseek2Settings,
    .has_head_dim = false,
    .own_heads = true,
    .rope = {.mscale = true},
    .sizes_of_config = deepseek_sizes,
    .sizes_of_gguf = deepseek_sizes_of_gguf,
    .write_gguf = write_deepseek,
    .write_config = write_deepseek_config,
};

}  // namespace

extern const ModelFamily deepseek_v2_family;
const ModelFamily deepseek_v2_family{.decoder = &kDeepseekV2, .encoder = nullptr};

}  // namespace rlx
