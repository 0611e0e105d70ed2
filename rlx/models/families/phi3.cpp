// Phi-3, Phi-4 and Phi-4-mini: fused q/k/v and gate/up matrices, LongRoPE.
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_phi3(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c, 1e-5);
  RopeDefaults d{.head_dim = c.head_dim, .max_positions = c.max_positions};
  d.partly = true, d.yarn_is_long = true;
  c.ropes = {read_rope(k, d)};
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.tied = k.flag("tie_word_embeddings", false);
  DecoderNames& n = c.names;
  n.q = n.k = n.v = n.gate = n.up = "";
  n.qkv = "self_attn.qkv_proj", n.gate_up = "mlp.gate_up_proj";
  read_common_window(k, c);
}

void read_phi3(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  DecoderNames& n = c.names;
  if (k.has_tensor("blk.0.attn_qkv.weight")) n.q = n.k = n.v = "", n.qkv = "attn_qkv";
  n.gate = n.up = "", n.gate_up = "ffn_up";
  read_windows(k, c, [](std::size_t) { return true; });
}

void write_phi3_config(ConfigWriter& out) {
  out.settings();
  if (out.sizes().rotated != out.sizes().head_dim) out.member("partial_rotary_factor", out.part_rotated());
  out.flags();
}

// clang-format off
constexpr TensorRule kPhi3Tensors[] = {
    RLX_TABLE_TENSORS, RLX_LAYER_NORMS,
    {"model.layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
};
constexpr SettingRule kPhi3Settings[] = {RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(1e4)};
// clang-format on

constexpr DecoderFamily kPhi3{
    .model_type = "phi3",
    .hf_class = "Phi3ForCausalLM",
    .read_config = read_phi3,
    .gguf = "phi3",
    .read_gguf = read_phi3,
    .tensors = kPhi3Tensors,
    .settings = kPhi3Settings,
    .has_head_dim = false,
    .window = GgufWindow::Always,
    .rope = {.longrope = true, .partly = true},
    .llama_cpp = {.heads_fill_width = true},
    .write_config = write_phi3_config,
};

}  // namespace

extern const ModelFamily phi3_family;
const ModelFamily phi3_family{.decoder = &kPhi3, .encoder = nullptr};

}  // namespace rlx
