// GPT-2: learned positions, matrices stored as [in, out].
#include "rlx/error.h"
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_gpt2(const ConfigKeys& k, DecoderConfig& c) {
  c.vocab_size = k.size("vocab_size");
  c.hidden_size = k.size("n_embd");
  c.layers.assign(static_cast<std::size_t>(k.size("n_layer", 1, kMostLayers)), {.window = 0, .rope = -1, .moe = false});
  c.num_heads = c.kv_heads = k.size("n_head");
  if (c.hidden_size % c.num_heads)
    k.bad(concat_text("\"n_embd\" ", c.hidden_size, " is not a multiple of \"n_head\" ", c.num_heads));
  c.head_dim = c.hidden_size / c.num_heads;
  c.ff_size = k.size_or("n_inner", 4 * c.hidden_size);
  c.max_positions = k.size("n_positions");
  c.norm = NormKind::Layer, c.norm_bias = true;
  c.norm_eps = k.positive("layer_norm_epsilon", 1e-5);
  c.activation = parse_activation(k, "activation_function", "gelu_new");
  for (const std::string_view key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    if (k.flag(key, false)) k.unsupported(concat_text("\"", key, "\" is true"));
  if (!k.flag("scale_attn_weights", true)) c.attention_scale = 1;
  c.gated = false;
  c.qkv_bias = c.o_bias = c.ff_bias = true;
  c.weights_in_out = true;
  c.tied = k.flag("tie_word_embeddings", true);
  DecoderNames& n = c.names;
  n.prefix = "transformer.";
  n.embedding = "transformer.wte", n.positions = "transformer.wpe", n.final_norm = "transformer.ln_f";
  n.head = "lm_head", n.layer = "transformer.h.{}.";
  n.qkv = "attn.c_attn", n.o = "attn.c_proj", n.attention_norm = "ln_1", n.ff_norm = "ln_2";
  n.up = "mlp.c_fc", n.down = "mlp.c_proj";
  n.ignored = {".attn.bias", ".attn.masked_bias"};
}

// One fused projection: all of q, then k, then v, also where the model itself has another order.
void read_gpt2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.activation = ActivationKind::GeluApprox;
  c.gated = false;
  DecoderNames& n = c.names;
  n.positions = "position_embd", n.qkv = "attn_qkv", n.q = n.k = n.v = n.gate = "";
  for (DecoderLayer& layer : c.layers) layer.rope = -1;
}

void write_gpt2(SettingsWriter& out) {
  out.integer("feed_forward_length", 4 * out.sizes().hidden);
  out.need("scale_attn_weights", true);
  out.need("scale_attn_by_inverse_layer_idx", false);
  out.need("add_cross_attention", false);
}

// clang-format off
constexpr TensorRule kGpt2Tensors[] = {
    {"transformer.wte.weight", "token_embd.weight"},
    {"transformer.wpe.weight", "position_embd.weight"},
    {"transformer.ln_f.weight", "output_norm.weight"},
    {"transformer.ln_f.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight", TensorChange::None, TensorNeed::Optional},
    {"transformer.h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"transformer.h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    {"transformer.h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", TensorChange::Transposed},
    {"transformer.h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    {"transformer.h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", TensorChange::Transposed},
    {"transformer.h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"transformer.h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"transformer.h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    {"transformer.h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", TensorChange::Transposed},
    {"transformer.h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    {"transformer.h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", TensorChange::Transposed},
    {"transformer.h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
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
// clang-format on

constexpr DecoderFamily kGpt2{
    .model_type = "gpt2",
    .hf_class = "GPT2LMHeadModel",
    .read_config = read_gpt2,
    .gguf = "gpt2",
    .read_gguf = read_gpt2,
    .tensors = kGpt2Tensors,
    .settings = kGpt2Settings,
    .activation = "gelu_new",
    .activation_keys = {"activation_function", ""},
    .tied = true,
    .has_head_dim = false,
    .prefix = "transformer.",
    .ignored = {".attn.bias", ".attn.masked_bias"},
    .rope = {.rotates = false},
    .llama_cpp = {.heads_fill_width = true},
    .write_gguf = write_gpt2,
};

}  // namespace

extern const ModelFamily gpt2_family;
const ModelFamily gpt2_family{.decoder = &kGpt2, .encoder = nullptr};

}  // namespace rlx
