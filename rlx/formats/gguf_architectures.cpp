// The tables of names; a family is a few lines.
#include "rlx/formats/gguf_architectures.h"

#include "rlx/error.h"

namespace rlx {
namespace {

// clang-format off
#define RLX_TABLE_TENSORS                               \
  {"model.embed_tokens.weight", "token_embd.weight"},   \
  {"model.norm.weight", "output_norm.weight"},          \
  {"lm_head.weight", "output.weight", TensorChange::None, TensorNeed::Optional}
#define RLX_ATTENTION_TENSORS(query, key)                                                                         \
  {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", TensorChange::query},                       \
  {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", TensorChange::key},                         \
  {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},                                            \
  {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},                                       \
  {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias", TensorChange::query, TensorNeed::Optional},     \
  {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias", TensorChange::key, TensorNeed::Optional},       \
  {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias", TensorChange::None, TensorNeed::Optional},      \
  {"model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias", TensorChange::None, TensorNeed::Optional}
#define RLX_QK_NORMS(change)                                                                          \
  {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", TensorChange::change},     \
  {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", TensorChange::change}
#define RLX_LAYER_NORMS                                                            \
  {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},           \
  {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"}
#define RLX_GATED_TENSORS(need)                                                                             \
  {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight", TensorChange::None, TensorNeed::need}, \
  {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight", TensorChange::None, TensorNeed::need},     \
  {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight", TensorChange::None, TensorNeed::need}
#define RLX_GATED_BIASES                                                                                        \
  {"model.layers.{}.mlp.gate_proj.bias", "blk.{}.ffn_gate.bias", TensorChange::None, TensorNeed::Optional},     \
  {"model.layers.{}.mlp.up_proj.bias", "blk.{}.ffn_up.bias", TensorChange::None, TensorNeed::Optional},         \
  {"model.layers.{}.mlp.down_proj.bias", "blk.{}.ffn_down.bias", TensorChange::None, TensorNeed::Optional}
#define RLX_EXPERT_TENSORS                                                                                         \
  {"model.layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight", TensorChange::None, TensorNeed::ExpertLayers}, \
  {"model.layers.{}.mlp.experts.{e}.gate_proj.weight", "blk.{}.ffn_gate_exps.weight", TensorChange::Experts,       \
   TensorNeed::ExpertLayers},                                                                                      \
  {"model.layers.{}.mlp.experts.{e}.up_proj.weight", "blk.{}.ffn_up_exps.weight", TensorChange::Experts,           \
   TensorNeed::ExpertLayers},                                                                                      \
  {"model.layers.{}.mlp.experts.{e}.down_proj.weight", "blk.{}.ffn_down_exps.weight", TensorChange::Experts,       \
   TensorNeed::ExpertLayers}

constexpr TensorRule kLlamaTensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(QueryPairs, KeyPairs), RLX_LAYER_NORMS, RLX_GATED_TENSORS(Always),
    RLX_GATED_BIASES,
};
constexpr TensorRule kQwen2Tensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_LAYER_NORMS, RLX_GATED_TENSORS(Always),
};
constexpr TensorRule kQwen3Tensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_QK_NORMS(None), RLX_LAYER_NORMS,
    RLX_GATED_TENSORS(Always),
};
constexpr TensorRule kQwen3MoeTensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_QK_NORMS(None), RLX_LAYER_NORMS, RLX_EXPERT_TENSORS,
};
constexpr TensorRule kMixtralTensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(QueryPairs, KeyPairs), RLX_LAYER_NORMS,
    {"model.layers.{}.block_sparse_moe.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{e}.w1.weight", "blk.{}.ffn_gate_exps.weight", TensorChange::Experts},
    {"model.layers.{}.block_sparse_moe.experts.{e}.w3.weight", "blk.{}.ffn_up_exps.weight", TensorChange::Experts},
    {"model.layers.{}.block_sparse_moe.experts.{e}.w2.weight", "blk.{}.ffn_down_exps.weight", TensorChange::Experts},
};
// Layer norms with biases.
#define RLX_INPUT_LAYER_NORM                                                \
  {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},    \
  {"model.layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias"}
constexpr TensorRule kStarcoder2Tensors[] = {
    RLX_TABLE_TENSORS, {"model.norm.bias", "output_norm.bias"}, RLX_INPUT_LAYER_NORM,
    RLX_ATTENTION_TENSORS(None, None),
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias"},
    {"model.layers.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias", TensorChange::None, TensorNeed::Optional},
    {"model.layers.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias", TensorChange::None, TensorNeed::Optional},
};
constexpr TensorRule kStablelmTensors[] = {
    RLX_TABLE_TENSORS, {"model.norm.bias", "output_norm.bias"}, RLX_INPUT_LAYER_NORM,
    RLX_ATTENTION_TENSORS(None, None),
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", TensorChange::None,
     TensorNeed::Optional},
    {"model.layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias", TensorChange::None, TensorNeed::Optional},
    RLX_GATED_TENSORS(Always),
};
constexpr TensorRule kPhiTensors[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight", TensorChange::None, TensorNeed::Optional},
    {"lm_head.bias", "output.bias"},
    {"model.final_layernorm.weight", "output_norm.weight"},
    {"model.final_layernorm.bias", "output_norm.bias"},
    RLX_INPUT_LAYER_NORM,
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias"},
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias"},
    {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"},
    {"model.layers.{}.self_attn.dense.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.self_attn.dense.bias", "blk.{}.attn_output.bias"},
    {"model.layers.{}.mlp.fc1.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.fc1.bias", "blk.{}.ffn_up.bias"},
    {"model.layers.{}.mlp.fc2.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.fc2.bias", "blk.{}.ffn_down.bias"},
};
// Norms behind attention and feed-forward instead of before them; those of q and k are over all heads.
constexpr TensorRule kOlmo2Tensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_QK_NORMS(None), RLX_GATED_TENSORS(Always),
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
};

#define RLX_GEMMA_TENSORS                                                                                     \
  {"model.embed_tokens.weight", "token_embd.weight"},                                                         \
  {"model.norm.weight", "output_norm.weight", TensorChange::AddOne},                                          \
  {"lm_head.weight", "output.weight", TensorChange::None, TensorNeed::Optional},                              \
  {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", TensorChange::AddOne},                \
  {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},                                        \
  {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},                                        \
  {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},                                        \
  {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},                                   \
  RLX_GATED_TENSORS(Always)
#define RLX_GEMMA_POST_NORMS                                                                                      \
  {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight", TensorChange::AddOne}, \
  {"model.layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight", TensorChange::AddOne},           \
  {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight", TensorChange::AddOne}
constexpr TensorRule kGemmaTensors[] = {
    RLX_GEMMA_TENSORS,
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", TensorChange::AddOne},
};
constexpr TensorRule kGemma2Tensors[] = {RLX_GEMMA_TENSORS, RLX_GEMMA_POST_NORMS};
constexpr TensorRule kGemma3Tensors[] = {RLX_GEMMA_TENSORS, RLX_GEMMA_POST_NORMS, RLX_QK_NORMS(AddOne)};

constexpr TensorRule kPhi3Tensors[] = {
    RLX_TABLE_TENSORS, RLX_LAYER_NORMS,
    {"model.layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kGpt2Tensors[] = {
    {"transformer.wte.weight", "token_embd.weight"},
    {"transformer.wpe.weight", "position_embd.weight"},
    {"transformer.ln_f.weight", "output_norm.weight"},
    {"transformer.ln_f.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight", TensorChange::None, TensorNeed::Optional},
    {"transformer.h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"transformer.h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    {"transformer.h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", TensorChange::Turned},
    {"transformer.h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    {"transformer.h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", TensorChange::Turned},
    {"transformer.h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"transformer.h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"transformer.h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    {"transformer.h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", TensorChange::Turned},
    {"transformer.h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    {"transformer.h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", TensorChange::Turned},
    {"transformer.h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
};
constexpr TensorRule kGptNeoxTensors[] = {
    {"gpt_neox.embed_in.weight", "token_embd.weight"},
    {"gpt_neox.final_layer_norm.weight", "output_norm.weight"},
    {"gpt_neox.final_layer_norm.bias", "output_norm.bias"},
    {"embed_out.weight", "output.weight", TensorChange::None, TensorNeed::Optional},
    {"gpt_neox.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"gpt_neox.layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias"},
    {"gpt_neox.layers.{}.attention.query_key_value.weight", "blk.{}.attn_qkv.weight", TensorChange::HeadsToParts},
    {"gpt_neox.layers.{}.attention.query_key_value.bias", "blk.{}.attn_qkv.bias", TensorChange::HeadsToParts},
    {"gpt_neox.layers.{}.attention.dense.weight", "blk.{}.attn_output.weight"},
    {"gpt_neox.layers.{}.attention.dense.bias", "blk.{}.attn_output.bias"},
    {"gpt_neox.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"gpt_neox.layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h.weight", "blk.{}.ffn_up.weight"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h.bias", "blk.{}.ffn_up.bias"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h.weight", "blk.{}.ffn_down.weight"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h.bias", "blk.{}.ffn_down.bias"},
};
constexpr TensorRule kGptOssTensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None),
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.mlp.router.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.router.bias", "blk.{}.ffn_gate_inp.bias"},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight", TensorChange::EvenColumns},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_up_exps.weight", TensorChange::OddColumns},
    {"model.layers.{}.mlp.experts.gate_up_proj_bias", "blk.{}.ffn_gate_exps.bias", TensorChange::EvenColumns},
    {"model.layers.{}.mlp.experts.gate_up_proj_bias", "blk.{}.ffn_up_exps.bias", TensorChange::OddColumns},
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", TensorChange::Turned},
    {"model.layers.{}.mlp.experts.down_proj_bias", "blk.{}.ffn_down_exps.bias"},
};
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

// What has rules that are more than a key is in convert_settings.cpp: head sizes, windows, rotary positions.
#define RLX_SIZES                                    \
  {"max_position_embeddings", "context_length"},     \
  {"hidden_size", "embedding_length"},               \
  {"num_hidden_layers", "block_count"},              \
  {"intermediate_size", "feed_forward_length"},      \
  {"num_attention_heads", "attention.head_count"},   \
  {"vocab_size", "vocab_size"}
#define RLX_KEY_HEADS {"num_key_value_heads", "attention.head_count_kv", GgufKind::U32, SettingNeed::Optional}
#define RLX_RMS_NORM(eps) \
  {"rms_norm_eps", "attention.layer_norm_rms_epsilon", GgufKind::F32, SettingNeed::Fallback, eps}
#define RLX_THETA(theta) {"rope_theta", "rope.freq_base", GgufKind::F32, SettingNeed::Fallback, theta}
constexpr SettingRule kDecoderSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
};
constexpr SettingRule kQwen3Settings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
    {"head_dim", "attention.key_length", GgufKind::U32, SettingNeed::Fallback, 128},
};
constexpr SettingRule kOlmo2Settings[] = {RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(1e4)};
constexpr SettingRule kSmolLm3Settings[] = {RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(2e6)};
constexpr SettingRule kPhi3Settings[] = {RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(1e4)};
constexpr SettingRule kGraniteSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
    {"attention_multiplier", "attention.scale", GgufKind::F32, SettingNeed::Fallback, 1},
    {"embedding_multiplier", "embedding_scale", GgufKind::F32, SettingNeed::Fallback, 1},
    {"residual_multiplier", "residual_scale", GgufKind::F32, SettingNeed::Fallback, 1},
    {"logits_scaling", "logit_scale", GgufKind::F32, SettingNeed::Fallback, 1},
};
constexpr SettingRule kQwen3MoeSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
};
constexpr SettingRule kMixtralSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(1e6),
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
};
constexpr SettingRule kOlmoeSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(1e4),
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
};
constexpr SettingRule kStarcoder2Settings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_THETA(1e4),
    {"norm_epsilon", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
};
constexpr SettingRule kStablelmSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_THETA(1e4),
    {"layer_norm_eps", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
    {"use_parallel_residual", "use_parallel_residual", GgufKind::Bool, SettingNeed::Fallback, 0},
};
constexpr SettingRule kPhiSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_THETA(1e4),
    {"layer_norm_eps", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
};
constexpr SettingRule kGptOssSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(150000),
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"sliding_window", "attention.sliding_window", GgufKind::U32, SettingNeed::Fallback, 128},
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
constexpr SettingRule kGpt2Settings[] = {
    {"n_positions", "context_length"},
    {"n_embd", "embedding_length"},
    {"n_layer", "block_count"},
    {"n_inner", "feed_forward_length", GgufKind::U32, SettingNeed::Optional},
    {"n_head", "attention.head_count"},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
    {"vocab_size", "vocab_size"},
};
constexpr SettingRule kGptNeoxSettings[] = {
    {"max_position_embeddings", "context_length"},
    {"hidden_size", "embedding_length"},
    {"num_hidden_layers", "block_count"},
    {"intermediate_size", "feed_forward_length"},
    {"num_attention_heads", "attention.head_count"},
    {"layer_norm_eps", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
    {"rotary_emb_base", "rope.freq_base", GgufKind::F32, SettingNeed::Optional},
    {"use_parallel_residual", "use_parallel_residual", GgufKind::Bool, SettingNeed::Fallback, 1},
    {"vocab_size", "vocab_size"},
};

#define RLX_GEMMA_SETTINGS                                                                       \
  RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6),                                      \
  {"head_dim", "attention.key_length", GgufKind::U32, SettingNeed::Fallback, 256}
constexpr SettingRule kGemmaSettings[] = {RLX_GEMMA_SETTINGS, RLX_THETA(1e4)};
constexpr SettingRule kGemma2Settings[] = {
    RLX_GEMMA_SETTINGS, RLX_THETA(1e4),
    {"sliding_window", "attention.sliding_window", GgufKind::U32, SettingNeed::Fallback, 4096},
    {"attn_logit_softcapping", "attn_logit_softcapping", GgufKind::F32, SettingNeed::Fallback, 50},
    {"final_logit_softcapping", "final_logit_softcapping", GgufKind::F32, SettingNeed::Fallback, 30},
};
constexpr SettingRule kGemma3Settings[] = {
    RLX_GEMMA_SETTINGS, RLX_THETA(1e6),
    {"sliding_window", "attention.sliding_window", GgufKind::U32, SettingNeed::Fallback, 4096},
    {"rope_local_base_freq", "rope.freq_base_swa", GgufKind::F32, SettingNeed::Fallback, 1e4},
    {"final_logit_softcapping", "final_logit_softcapping", GgufKind::F32, SettingNeed::Optional},
};

constexpr std::string_view kTanhGelu = "gelu_pytorch_tanh";
constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", "llama", kLlamaTensors, kDecoderSettings},
    {"mistral", "MistralForCausalLM", "llama", kLlamaTensors, kDecoderSettings},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", kQwen2Tensors, kDecoderSettings},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", kQwen3Tensors, kQwen3Settings},
    {"qwen3_moe", "Qwen3MoeForCausalLM", "qwen3moe", kQwen3MoeTensors, kQwen3MoeSettings},
    {"gemma", "GemmaForCausalLM", "gemma", kGemmaTensors, kGemmaSettings, kTanhGelu, true},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", kGemma2Tensors, kGemma2Settings, kTanhGelu, true},
    {"gemma3_text", "Gemma3ForCausalLM", "gemma3", kGemma3Tensors, kGemma3Settings, kTanhGelu, true},
    {"phi3", "Phi3ForCausalLM", "phi3", kPhi3Tensors, kPhi3Settings},
    {"smollm3", "SmolLM3ForCausalLM", "smollm3", kLlamaTensors, kSmolLm3Settings, "silu", true},
    {"granite", "GraniteForCausalLM", "granite", kLlamaTensors, kGraniteSettings},
    {"olmo2", "Olmo2ForCausalLM", "olmo2", kOlmo2Tensors, kOlmo2Settings},
    {"gpt2", "GPT2LMHeadModel", "gpt2", kGpt2Tensors, kGpt2Settings, "gelu_new", true, "transformer.",
     {".attn.bias", ".attn.masked_bias"}},
    {"gpt_neox", "GPTNeoXForCausalLM", "gptneox", kGptNeoxTensors, kGptNeoxSettings, "gelu", false, "",
     {".attention.bias", ".attention.masked_bias"}},
    {"gpt_oss", "GptOssForCausalLM", "gpt-oss", kGptOssTensors, kGptOssSettings},
    {"mixtral", "MixtralForCausalLM", "llama", kMixtralTensors, kMixtralSettings},
    {"olmoe", "OlmoeForCausalLM", "olmoe", kQwen3MoeTensors, kOlmoeSettings},
    {"starcoder2", "Starcoder2ForCausalLM", "starcoder2", kStarcoder2Tensors, kStarcoder2Settings, kTanhGelu, true},
    {"stablelm", "StableLmForCausalLM", "stablelm", kStablelmTensors, kStablelmSettings},
    {"phi", "PhiForCausalLM", "phi2", kPhiTensors, kPhiSettings, "gelu_new"},
    {"deepseek_v2", "DeepseekV2ForCausalLM", "deepseek2", kDeepseek2Tensors, kDeepseek2Settings},
};
// clang-format on

// The number that stands for "{}" in a name of a pattern, the empty text where the pattern has none; nothing where the
// name is another.
std::optional<std::string_view> layer_of(std::string_view pattern, std::string_view name) {
  const std::size_t at = pattern.find("{}");
  if (at == std::string_view::npos) return pattern == name ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + 2);
  if (name.size() <= before.size() + after.size() || name.substr(0, at) != before ||
      name.substr(name.size() - after.size()) != after)
    return std::nullopt;
  const std::string_view number = name.substr(at, name.size() - before.size() - after.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  if (number.size() > 1 && number[0] == '0') return std::nullopt;
  return number;
}

}  // namespace

std::span<const GgufArchitecture> gguf_architecture_table() { return kArchitectures; }

const GgufArchitecture* find_architecture_of_model_type(std::string_view model_type) {
  for (const GgufArchitecture& a : kArchitectures)
    if (a.model_type == model_type) return &a;
  return nullptr;
}

const GgufArchitecture* find_architecture_of_gguf(std::string_view name, bool has_window, bool has_experts) {
  if (name == "llama" && has_experts) return find_architecture_of_model_type("mixtral");
  if (name == "llama" && has_window) return find_architecture_of_model_type("mistral");
  for (const GgufArchitecture& a : kArchitectures)
    if (a.gguf == name) return &a;
  return nullptr;
}

std::string_view setting_of_key(const GgufArchitecture& a, std::string_view gguf) {
  for (const SettingRule& rule : a.settings)
    if (rule.gguf == gguf) return rule.hf;
  check(false, "a setting that every architecture has");
  return {};
}

std::string numbered_name(std::string_view name, std::string_view mark, std::int64_t number) {
  std::string out(name);
  if (const std::size_t at = out.find(mark); at != std::string::npos)
    out.replace(at, mark.size(), std::to_string(number));
  return out;
}

std::optional<RuledTensor> translate_tensor(const GgufArchitecture& a, std::string_view name) {
  for (const TensorRule& rule : a.tensors) {
    const std::optional<std::string_view> layer = layer_of(rule.gguf, name);
    if (!layer) continue;
    std::string hf(rule.hf);
    if (!layer->empty()) hf.replace(hf.find("{}"), 2, *layer);
    return RuledTensor{&rule, std::move(hf)};
  }
  return std::nullopt;
}

}  // namespace rlx
