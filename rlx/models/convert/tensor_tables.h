// Internal: tensor and setting rules shared by several families.
#pragma once

#include "rlx/models/convert/gguf_architectures.h"

namespace rlx {

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

// Layer norms with biases.
#define RLX_INPUT_LAYER_NORM                                                \
  {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},    \
  {"model.layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias"}
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

// Settings that are more than a key are in convert_settings.cpp: head sizes, windows, rotary positions.
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
#define RLX_GEMMA_SETTINGS                                                                       \
  RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6),                                      \
  {"head_dim", "attention.key_length", GgufKind::U32, SettingNeed::Fallback, 256}

inline constexpr TensorRule kLlamaTensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(QueryPairs, KeyPairs), RLX_LAYER_NORMS, RLX_GATED_TENSORS(Always),
    RLX_GATED_BIASES,
};
inline constexpr TensorRule kQwen3MoeTensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_QK_NORMS(None), RLX_LAYER_NORMS, RLX_EXPERT_TENSORS,
};
inline constexpr SettingRule kDecoderSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
};
// clang-format on

}  // namespace rlx
