// gpt-oss: attention sinks, experts with biases and clamps and one interleaved gate/up matrix.
#include <cmath>

#include "rlx/error.h"
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_gpt_oss(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c, 1e-5);
  read_ropes(k, c, 150000);
  if (!k.has("rope_parameters") && !k.has("rope_scaling")) {  // gpt-oss's default without a setting
    RopeSpec& s = c.ropes[0];
    s.scaling = RopeScaling::Yarn, s.factor = 32, s.original_context = 4096, s.truncate = false;
    s.beta_fast = 32, s.beta_slow = 1, s.table_scale = 0.1 * std::log(s.factor) + 1;
  }
  c.qkv_bias = c.o_bias = k.flag("attention_bias", true);
  c.tied = k.flag("tie_word_embeddings", false);
  c.names.sinks = "self_attn.sinks";
  MoeSpec m = read_experts(k, "num_local_experts", "intermediate_size");
  m.router = RouterKind::TopKSoftmax;
  m.layout = ExpertLayout::Interleaved;
  m.bias = m.router_bias = true;
  m.clamp = k.positive("swiglu_limit", 7);
  c.moe = m;
  DecoderNames& n = c.names;
  n.router = "mlp.router", n.expert_gate = "mlp.experts.gate_up_proj", n.expert_down = "mlp.experts.down_proj";
  n.expert_weight = "", n.expert_bias = "_bias";
  for (DecoderLayer& layer : c.layers) layer.moe = true;
  read_windows(k, c, read_window(k, 128), [](std::size_t i) { return i % 2 == 0; });
}

void read_gpt_oss(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half, 150000)};
  c.ropes[0].truncate = false;  // the metadata has no key for it
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

void write_gpt_oss(SettingsWriter& out) {
  out.integer("expert_feed_forward_length", out.config().get_int("intermediate_size"));
  out.check_window_pattern(2);
  out.need("attention_bias", true);
  if (const double clamp = number_or(out.config(), "swiglu_limit", 7); clamp != 7)
    SettingsWriter::refuse(concat_text("a \"swiglu_limit\" of ", clamp));
}
void write_gpt_oss_config(ConfigWriter& out) {
  out.settings(), out.heads(), out.flags();
  out.member("swiglu_limit", 7.0);
}

// clang-format off
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
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", TensorChange::Transposed},
    {"model.layers.{}.mlp.experts.down_proj_bias", "blk.{}.ffn_down_exps.bias"},
};
constexpr SettingRule kGptOssSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(150000),
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"sliding_window", "attention.sliding_window", GgufKind::U32, SettingNeed::Fallback, 128},
};
// clang-format on

constexpr DecoderFamily kGptOss{
    .model_type = "gpt_oss",
    .hf_class = "GptOssForCausalLM",
    .read_config = read_gpt_oss,
    .gguf = "gpt-oss",
    .read_gguf = read_gpt_oss,
    .tensors = kGptOssTensors,
    .settings = kGptOssSettings,
    .full_every = 2,
    .rope = {.theta = 150000, .truncate = false},
    .llama_cpp = {.head_is_own = true},
    .write_gguf = write_gpt_oss,
    .write_config = write_gpt_oss_config,
};

}  // namespace

extern const ModelFamily gpt_oss_family;
const ModelFamily gpt_oss_family{.decoder = &kGptOss, .encoder = nullptr};

}  // namespace rlx
