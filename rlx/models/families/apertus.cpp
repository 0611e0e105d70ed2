// Apertus: q and k are normalised for each head; one matrix before xIELU and one after it.
#include <string>
#include <vector>

#include "rlx/error.h"
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {
namespace {

void read_apertus(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c, 1e-5);
  read_ropes(k, c, 12e6);
  if (!k.has("rope_parameters") && !k.has("rope_scaling")) {  // Apertus's default without a setting
    RopeSpec& s = c.ropes[0];
    s.scaling = RopeScaling::Llama3, s.factor = 8, s.original_context = 8192;
  }
  if (const std::string act = k.text("hidden_act", "xielu"); act != "xielu")
    k.unsupported(concat_text("\"hidden_act\" is \"", act, "\", expected \"xielu\""));
  c.gated = false;
  c.qkv_bias = c.o_bias = k.flag("attention_bias", false);
  c.tied = k.flag("tie_word_embeddings", false);
  c.qk_norm = QkNorm::Head;
  DecoderNames& n = c.names;
  n.q_norm = "self_attn.q_norm", n.k_norm = "self_attn.k_norm";
  n.attention_norm = "attention_layernorm", n.ff_norm = "feedforward_layernorm";
  n.gate = "", n.xielu = "mlp.act_fn";
}

void read_apertus(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.gated = false;
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "attn_q_norm", c.names.k_norm = "attn_k_norm", c.names.gate = "";
  const std::size_t layers = c.layers.size();
  const std::vector<double> alpha_p = k.layer_numbers("xielu.alpha_p", layers),
                            alpha_n = k.layer_numbers("xielu.alpha_n", layers),
                            beta = k.layer_numbers("xielu.beta", layers), eps = k.layer_numbers("xielu.eps", layers);
  for (std::size_t i = 0; i < layers; ++i) c.xielu.push_back({alpha_p[i], alpha_n[i], beta[i], eps[i]});
}

void write_apertus(SettingsWriter& out) {
  if (!present(out.config(), "rope_parameters") && !present(out.config(), "rope_scaling"))
    SettingsWriter::refuse("the default rope scaling of a file without \"rope_parameters\"");
}

// clang-format off
constexpr TensorRule kApertusTensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_QK_NORMS(None),
    {"model.layers.{}.attention_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.feedforward_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.act_fn.alpha_p", "xielu.alpha_p", TensorChange::Number},
    {"model.layers.{}.mlp.act_fn.alpha_n", "xielu.alpha_n", TensorChange::Number},
    {"model.layers.{}.mlp.act_fn.beta", "xielu.beta", TensorChange::NumberScalar},
    {"model.layers.{}.mlp.act_fn.eps", "xielu.eps", TensorChange::NumberScalar},
};
constexpr SettingRule kApertusSettings[] = {RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(12e6)};
// clang-format on

constexpr DecoderFamily kApertus{
    .model_type = "apertus",
    .hf_class = "ApertusForCausalLM",
    .read_config = read_apertus,
    .gguf = "apertus",
    .read_gguf = read_apertus,
    .tensors = kApertusTensors,
    .settings = kApertusSettings,
    .activation = "xielu",
    .rope = {.llama3 = true},
    .write_gguf = write_apertus,
};

}  // namespace

extern const ModelFamily apertus_family;
const ModelFamily apertus_family{.decoder = &kApertus, .encoder = nullptr};

}  // namespace rlx
