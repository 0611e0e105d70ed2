// What a decoder-only language model is made of: its sizes, and which of the known variants each part is. One
// description serves every family; what a family's files call things is its record in families/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/ops/rope.h"

namespace rlx {

class JsonDocument;

/// How the frequencies of rotary positions are stretched beyond the context that a model was trained for.
enum class RopeScaling : std::uint8_t { None, Linear, Dynamic, Yarn, Llama3, Long };
/// "none", "linear", "dynamic", "yarn", "llama3", "longrope".
std::string_view rope_scaling_name(RopeScaling scaling);

/// One set of rotary angles; rope_frequencies (rope_frequencies.h) has the formulas.
struct RopeSpec {
  double theta = 10000;
  std::int64_t rotated = 0;  // elements of a head that are rotated, even
  RopePairing pairing = RopePairing::Half;
  RopeScaling scaling = RopeScaling::None;
  double factor = 1;                     // of Linear, Dynamic, Yarn, Llama3
  std::int64_t original_context = 0;     // that the model was trained for; of all but Linear
  double table_scale = 1;                // cos and sin are multiplied by it: YaRN's and LongRoPE's attention factor
  double beta_fast = 32, beta_slow = 1;  // Yarn: rotations at the ends of the ramp
  bool truncate = true;                  // Yarn: the ramp ends at whole dimensions
  double low_freq_factor = 1, high_freq_factor = 4;     // Llama3
  std::vector<double> short_factors{}, long_factors{};  // Long: one for each pair of elements
};

enum class NormKind : std::uint8_t { Rms, Layer };
/// q and k are normalised by head, or over all heads together.
enum class QkNorm : std::uint8_t { None, Head, Width };
/// Where a fused projection of q, k and v has its rows: all of q, then k, then v; or q, k and v of each head in turn.
enum class QkvLayout : std::uint8_t { Parts, Heads };

/// How a router makes weights of its scores [T, E].
enum class RouterKind : std::uint8_t {
  Softmax,      // softmax over all experts, then the best k
  TopKSoftmax,  // the best k, then softmax over these
};
/// How the matrices of a layer's experts lie in files.
enum class ExpertLayout : std::uint8_t {
  Apart,        // a tensor of each expert, [out, in]
  Stacked,      // one of all, [E, out, in]
  Interleaved,  // one of all, [E, in, out], whose columns are gate and up in turn
};
/// A mixture of experts in place of the feed-forward layer.
struct MoeSpec {
  std::int64_t experts = 0, used = 0;  // of a token
  std::int64_t ff_size = 0;            // of one expert
  std::int64_t shared_ff_size = 0;     // of the one that every token has; 0: none
  RouterKind router = RouterKind::Softmax;
  bool router_bias = false;
  bool normalize = false;                    // the weights of a token's experts sum to one
  double scale = 1;                          // of the weights
  std::int64_t groups = 1, used_groups = 1;  // experts are chosen from the best groups
  ExpertLayout layout = ExpertLayout::Apart;
  bool bias = false;     // [E, out]
  double clamp = 0;      // of gate (above) and up; 0: the layer is act(gate) * up,
  double alpha = 1.702;  // else (up + 1) * gate * sigmoid(alpha * gate) of the clamped ones (gpt-oss)
};
/// Multi-head latent attention: keys and values of a token from one vector of `kv_rank` elements (DeepSeek-V2).
struct MlaSpec {
  std::int64_t q_rank = 0;  // 0: queries are projected at once
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0, rope_dim = 0, v_dim = 0;  // of a head
};

/// The numbers of xIELU, act(x) = a x^2 + beta x above zero and b (expm1(min(x, eps)) - x) + beta x else, where
/// a = softplus(alpha_p) and b = beta + softplus(alpha_n) (Huang and Schlag 2024, arXiv:2411.13010).
struct XieluSpec {
  double alpha_p = 0, alpha_n = 0, beta = 0.5, eps = -1e-6;
};

/// What may differ from layer to layer.
struct DecoderLayer {
  std::int64_t window = 0;  // keys that a token sees, itself among them; 0: all
  int rope = 0;             // in `ropes`; -1: none
  bool moe = false;
};

/// Names of weights, without ".weight" and ".bias"; those of layers behind `layer`, where "{}" stands for the number.
/// An empty name: the model has no such part.
struct DecoderNames {
  std::string embedding, positions, final_norm, head, layer;
  std::string q, k, v, qkv, o, q_norm, k_norm, sinks;
  std::string q_a, q_a_norm, q_b, kv_a, kv_a_norm;  // MLA
  std::string kv_b, k_b, v_b;  // its matrix of each head, [keys and values, rank]; or [rank, keys] and [values, rank]
  std::string attention_norm, attention_post_norm, ff_norm, ff_post_norm;
  std::string gate, up, gate_up, down;
  std::string xielu;  // of the numbers of xIELU, where these are weights
  std::string router;
  // Of experts; where each has a tensor of its own, "{}" is the number. `expert_gate` is both,
  // gate and up, where these are interleaved. Biases end in `expert_bias` instead of `expert_weight`.
  std::string expert_gate, expert_up, expert_down, expert_weight = ".weight", expert_bias = ".bias";
  std::string shared_gate, shared_up, shared_down;
  std::string prefix;                // of all but the head, which files may leave out
  std::vector<std::string> ignored;  // ends of names that files may hold and nobody needs
};

/// A decoder-only language model.
struct DecoderConfig {
  std::string family;  // "llama", "qwen2", ...: `model_type`
  std::int64_t vocab_size = 0, hidden_size = 0, ff_size = 0;
  std::int64_t num_heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t max_positions = 0;  // that the model says it is good for
  NormKind norm = NormKind::Rms;
  double norm_eps = 1e-6;
  double norm_offset = 0;  // added to the norms' weights (Gemma: 1)
  bool norm_bias = false;
  bool parallel = false;  // attention and feed-forward both start from the layer's input
  ActivationKind activation = ActivationKind::Silu;
  std::vector<XieluSpec> xielu{};  // of each layer in place of `activation`, where these are no weights
  bool gated = true;               // down(act(gate(x)) * up(x)), else down(act(up(x)))
  bool qkv_bias = false, o_bias = false, ff_bias = false, head_bias = false;
  bool weights_in_out = false;  // matrices lie as [in, out] (GPT-2)
  QkNorm qk_norm = QkNorm::None;
  QkvLayout qkv_layout = QkvLayout::Parts;
  std::optional<double> attention_scale{};  // head_dim^-0.5
  std::optional<double> attention_softcap{}, logit_softcap{};
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  bool tied = false;           // the output layer is the embedding
  bool bidirectional = false;  // tokens see those behind them too: for embeddings of texts alone
  std::optional<MoeSpec> moe{};
  std::optional<MlaSpec> mla{};
  std::vector<RopeSpec> ropes;
  std::vector<DecoderLayer> layers;
  DecoderNames names;

  /// What the cache holds of a token, of keys and of values, or once for both: heads of so many elements.
  std::int64_t cached_heads() const { return mla ? 1 : kv_heads; }
  std::int64_t cached_dim() const { return mla ? mla->kv_rank + mla->rope_dim : head_dim; }
  /// States of a layer: keys and values, or latent vectors.
  std::size_t cached_states() const { return mla ? 1 : 2; }
};

/// Reads a `config.json`. Errors: BadFile for missing keys, wrong types, and sizes that do not fit together;
/// Unsupported for a family that is none of decoder_families(), naming those, or a variant of one that is not built.
DecoderConfig parse_decoder_config(const JsonDocument& document);
/// The same for a model that is to embed texts, which may be bidirectional.
DecoderConfig parse_decoder_of_texts(const JsonDocument& document);
/// Reads `config.json` of a model folder. Errors: NotFound; those of parse_decoder_config.
DecoderConfig read_decoder_config(const std::string& folder);
/// The families that are known, by their `model_type`, sorted.
std::vector<std::string> decoder_families();

}  // namespace rlx
