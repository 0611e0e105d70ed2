// The configuration of a decoder-only language model: its sizes, and the variant of each part. One struct serves every
// family; each family's key and tensor names are its record in families/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/op_kind.h"

namespace rlx {

class JsonDocument;

/// How rotary frequencies are scaled beyond the trained context.
enum class RopeScaling : std::uint8_t { None, Linear, Dynamic, Yarn, Llama3, Long };
/// "none", "linear", "dynamic", "yarn", "llama3", "longrope".
std::string_view rope_scaling_name(RopeScaling scaling);

/// One set of rotary angles. rope_frequencies (rope_frequencies.h) has the formulas.
struct RopeSpec {
  double theta = 10000;
  std::int64_t rotated = 0;  // elements of a head that are rotated, an even number
  RopePairing pairing = RopePairing::Half;
  RopeScaling scaling = RopeScaling::None;
  double factor = 1;                                 // scaling factor; used by Linear, Dynamic, Yarn, Llama3
  std::int64_t original_context = 0;                 // trained context; of all but Linear
  double table_scale = 1;                            // factor of cos and sin: the attention factor of YaRN and LongRoPE
  double beta_fast = 32, beta_slow = 1;              // Yarn: rotations at the ends of the ramp
  bool truncate = true;                              // Yarn: the ramp ends at whole dimensions
  double low_freq_factor = 1, high_freq_factor = 4;  // Llama3
  std::vector<double> short_factors{}, long_factors{};  // Long: one for each pair of elements
};

enum class NormKind : std::uint8_t { Rms, Layer };
/// Normalisation of q and k: for each head, or over all heads together.
enum class QkNorm : std::uint8_t { None, Head, Width };
/// Row order of a fused q/k/v projection: all of q, then k, then v; or q, k and v of each head in turn.
enum class QkvLayout : std::uint8_t { Parts, Heads };

/// How a router computes weights from its scores [T, E].
enum class RouterKind : std::uint8_t {
  Softmax,      // softmax over all experts, then top k
  TopKSoftmax,  // top k, then softmax over these
};
/// Layout of a layer's expert matrices in files.
enum class ExpertLayout : std::uint8_t {
  Apart,        // one tensor for each expert, [out, in]
  Stacked,      // one tensor for all, [E, out, in]
  Interleaved,  // one tensor for all, [E, in, out], with alternating gate and up columns
};
/// A mixture of experts in place of the feed-forward layer.
struct MoeSpec {
  std::int64_t experts = 0, used = 0;  // used: experts of one token
  std::int64_t ff_size = 0;            // width of one expert
  std::int64_t shared_ff_size = 0;     // width of the shared expert; 0: none
  RouterKind router = RouterKind::Softmax;
  bool router_bias = false;
  bool normalize = false;                    // the weights of a token's experts sum to one
  double scale = 1;                          // factor of the weights
  std::int64_t groups = 1, used_groups = 1;  // experts are chosen from the best groups
  ExpertLayout layout = ExpertLayout::Apart;
  bool bias = false;     // [E, out]
  double clamp = 0;      // limit of gate (above) and up; 0: the layer is act(gate) * up,
  double alpha = 1.702;  // else (up + 1) * gate * sigmoid(alpha * gate) of the clamped values (gpt-oss)
};
/// Multi-head latent attention: the keys and values of a token come from one vector of `kv_rank` elements
/// (DeepSeek-V2).
struct MlaSpec {
  std::int64_t q_rank = 0;  // 0: queries have one full-rank projection
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0, rope_dim = 0, v_dim = 0;  // elements of a head
};

/// The parameters of xIELU: act(x) = a x^2 + beta x for x above zero, else b (expm1(min(x, eps)) - x) + beta x, where a
/// = softplus(alpha_p) and b = beta + softplus(alpha_n) (Huang and Schlag 2024, arXiv:2411.13010).
struct XieluSpec {
  double alpha_p = 0, alpha_n = 0, beta = 0.5, eps = -1e-6;
};

/// Properties that may differ between layers.
struct DecoderLayer {
  std::int64_t window = 0;  // keys that a token attends to, including itself; 0: all
  int rope = 0;             // index in `ropes`; -1: none
  bool moe = false;
};

/// Names of weights, without ".weight" and ".bias". Names of layer weights follow `layer`, where "{}" stands for the
/// layer number. An empty name means that the model has no such part.
struct DecoderNames {
  std::string embedding, positions, final_norm, head, layer;
  std::string q, k, v, qkv, o, q_norm, k_norm, sinks;
  std::string q_a, q_a_norm, q_b, kv_a, kv_a_norm;  // MLA
  std::string kv_b, k_b, v_b;  // up-projection of each head, [keys and values, rank]; or [rank, keys], [values, rank]
  std::string attention_norm, attention_post_norm, ff_norm, ff_post_norm;
  std::string gate, up, gate_up, down;
  std::string xielu;  // the parameters of xIELU, where they are weights
  std::string router;
  // Expert weights. Where each expert has its own tensor, "{}" is its number. `expert_gate` names gate and up where
  // these are interleaved. Biases end in `expert_bias` instead of `expert_weight`.
  std::string expert_gate, expert_up, expert_down, expert_weight = ".weight", expert_bias = ".bias";
  std::string shared_gate, shared_up, shared_down;
  std::string prefix;                // prefix of all names but the head; files may omit it
  std::vector<std::string> ignored;  // suffixes of names that files may hold and the model does not read
};

/// A larger epsilon would decide the results of norms.
inline constexpr double kMostNormEps = 1;

/// A decoder-only language model.
struct DecoderConfig {
  std::string family;  // "llama", "qwen2", ...: `model_type`
  std::int64_t vocab_size = 0, hidden_size = 0, ff_size = 0;
  std::int64_t num_heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t max_positions = 0;  // the longest context that the model supports
  NormKind norm = NormKind::Rms;
  double norm_eps = 1e-6;
  double norm_offset = 0;  // added to the norms' weights (Gemma: 1)
  bool norm_bias = false;
  bool parallel = false;  // attention and feed-forward both read the layer's input
  ActivationKind activation = ActivationKind::Silu;
  std::vector<XieluSpec> xielu{};  // one per layer, in place of `activation`, where they are not weights
  bool gated = true;               // down(act(gate(x)) * up(x)), else down(act(up(x)))
  bool qkv_bias = false, o_bias = false, ff_bias = false, head_bias = false;
  bool weights_in_out = false;  // matrices are stored as [in, out] (GPT-2)
  QkNorm qk_norm = QkNorm::None;
  QkvLayout qkv_layout = QkvLayout::Parts;
  std::optional<double> attention_scale{};  // unset: head_dim^-0.5
  std::optional<double> attention_softcap{}, logit_softcap{};
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  bool tied = false;           // the output layer is the embedding
  bool bidirectional = false;  // no causal mask: for text embeddings only
  std::optional<MoeSpec> moe{};
  std::optional<MlaSpec> mla{};
  std::vector<RopeSpec> ropes;
  std::vector<DecoderLayer> layers;
  DecoderNames names;

  /// The cache row of a token: this many heads of `cached_dim` elements, for keys and for values, or once for both
  /// (MLA).
  std::int64_t cached_heads() const { return mla ? 1 : kv_heads; }
  std::int64_t cached_dim() const { return mla ? mla->kv_rank + mla->rope_dim : head_dim; }
  /// Cache states of a layer: keys and values, or latent vectors.
  std::size_t cached_states() const { return mla ? 1 : 2; }
};

/// Reads a `config.json`. Errors: BadFile for missing keys, wrong types, and inconsistent sizes; Unsupported for a
/// family that is not in decoder_families(), naming those, or an unsupported variant.
DecoderConfig parse_decoder_config(const JsonDocument& document);
/// The same for a text embedding model, which may be bidirectional.
DecoderConfig parse_decoder_of_texts(const JsonDocument& document);
/// Reads `config.json` of a model folder. Errors: NotFound; those of parse_decoder_config.
DecoderConfig read_decoder_config(const std::string& folder);
/// The supported families, by their `model_type`, sorted.
std::vector<std::string> decoder_families();

}  // namespace rlx
