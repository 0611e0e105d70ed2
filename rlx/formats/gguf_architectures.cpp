// The tables of names; a family is a few lines.
#include "rlx/formats/gguf_architectures.h"

#include "rlx/error.h"

namespace rlx {
namespace {

// clang-format off
#define RLX_DECODER_TENSORS(query, key)                                                         \
  {"model.embed_tokens.weight", "token_embd.weight"},                                           \
  {"model.norm.weight", "output_norm.weight"},                                                  \
  {"lm_head.weight", "output.weight"},                                                          \
  {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},                        \
  {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", TensorChange::query},     \
  {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", TensorChange::key},       \
  {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},                          \
  {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},                     \
  {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias", TensorChange::query},         \
  {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias", TensorChange::key},           \
  {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"},                              \
  {"model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias"},                         \
  {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},                \
  {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},                           \
  {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},                               \
  {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"}
constexpr TensorRule kLlamaTensors[] = {RLX_DECODER_TENSORS(QueryPairs, KeyPairs)};
constexpr TensorRule kQwen2Tensors[] = {RLX_DECODER_TENSORS(None, None)};
constexpr TensorRule kQwen3Tensors[] = {
    RLX_DECODER_TENSORS(None, None),
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
};
#undef RLX_DECODER_TENSORS

// Norms around attention and feed-forward, before and after.
#define RLX_GEMMA_TENSORS                                                                                       \
  {"model.embed_tokens.weight", "token_embd.weight"},                                                           \
  {"model.norm.weight", "output_norm.weight", TensorChange::AddOne},                                            \
  {"lm_head.weight", "output.weight"},                                                                          \
  {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", TensorChange::AddOne},                  \
  {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},                                          \
  {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},                                          \
  {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},                                          \
  {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},                                     \
  {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight", TensorChange::AddOne}, \
  {"model.layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight", TensorChange::AddOne},         \
  {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight", TensorChange::AddOne},   \
  {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},                                           \
  {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},                                               \
  {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"}
constexpr TensorRule kGemma2Tensors[] = {RLX_GEMMA_TENSORS};
constexpr TensorRule kGemma3Tensors[] = {
    RLX_GEMMA_TENSORS,
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", TensorChange::AddOne},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", TensorChange::AddOne},
};
#undef RLX_GEMMA_TENSORS

// num_key_value_heads, head_dim and rope settings have defaults of their own: gguf_convert_settings.cpp.
constexpr SettingRule kDecoderSettings[] = {
    {"max_position_embeddings", "context_length"},
    {"hidden_size", "embedding_length"},
    {"num_hidden_layers", "block_count"},
    {"intermediate_size", "feed_forward_length"},
    {"num_attention_heads", "attention.head_count"},
    {"num_key_value_heads", "attention.head_count_kv", GgufKind::U32, false},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", GgufKind::F32},
    {"rope_theta", "rope.freq_base", GgufKind::F32, false},
    {"vocab_size", "vocab_size"},
};

#define RLX_GEMMA_SETTINGS                                              \
  {"max_position_embeddings", "context_length"},                        \
  {"hidden_size", "embedding_length"},                                  \
  {"num_hidden_layers", "block_count"},                                 \
  {"intermediate_size", "feed_forward_length"},                         \
  {"num_attention_heads", "attention.head_count"},                      \
  {"num_key_value_heads", "attention.head_count_kv"},                   \
  {"head_dim", "attention.key_length"},                                 \
  {"rms_norm_eps", "attention.layer_norm_rms_epsilon", GgufKind::F32},  \
  {"rope_theta", "rope.freq_base", GgufKind::F32, false},               \
  {"sliding_window", "attention.sliding_window"}
constexpr SettingRule kGemma2Settings[] = {
    RLX_GEMMA_SETTINGS,
    {"attn_logit_softcapping", "attn_logit_softcapping", GgufKind::F32},
    {"final_logit_softcapping", "final_logit_softcapping", GgufKind::F32},
};
constexpr SettingRule kGemma3Settings[] = {
    RLX_GEMMA_SETTINGS,
    {"rope_local_base_freq", "rope.freq_base_swa", GgufKind::F32, false},
};
#undef RLX_GEMMA_SETTINGS

constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", "llama", kLlamaTensors, kDecoderSettings},
    {"mistral", "MistralForCausalLM", "llama", kLlamaTensors, kDecoderSettings},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", kQwen2Tensors, kDecoderSettings},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", kQwen3Tensors, kDecoderSettings},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", kGemma2Tensors, kGemma2Settings, "gelu_pytorch_tanh"},
    {"gemma3_text", "Gemma3ForCausalLM", "gemma3", kGemma3Tensors, kGemma3Settings, "gelu_pytorch_tanh"},
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

const GgufArchitecture* find_architecture_of_gguf(std::string_view name, bool has_window) {
  if (name == "llama" && has_window) return find_architecture_of_model_type("mistral");
  for (const GgufArchitecture& a : kArchitectures)
    if (a.gguf == name) return &a;
  return nullptr;
}

std::optional<RuledTensor> translate_tensor(const GgufArchitecture& a, std::string_view name, bool from_hf) {
  for (const TensorRule& rule : a.tensors) {
    const std::optional<std::string_view> layer = layer_of(from_hf ? rule.hf : rule.gguf, name);
    if (!layer) continue;
    std::string other(from_hf ? rule.gguf : rule.hf);
    if (!layer->empty()) other.replace(other.find("{}"), 2, *layer);
    return RuledTensor{&rule, std::move(other)};
  }
  return std::nullopt;
}

}  // namespace rlx
