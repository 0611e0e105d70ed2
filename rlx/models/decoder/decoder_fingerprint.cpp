// Fingerprints of decoders. Each struct is destructured into all of its fields, so a new field does not compile until
// it is included here.
#include "rlx/models/decoder/decoder_fingerprint.h"

#include <bit>
#include <concepts>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rlx/error.h"
#include "rlx/models/rope_frequencies.h"

namespace rlx {
namespace {

class ConfigBytes {
 public:
  explicit ConfigBytes(std::int64_t context) : context_(context) {}

  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void put(T v) {
    const auto bits = static_cast<std::uint64_t>(v);
    for (int i = 0; i < 64; i += 8) bytes_ += static_cast<char>(bits >> i & 0xFF);
  }
  void put(double v) { put(std::bit_cast<std::uint64_t>(v)); }
  void put(float v) { put(std::bit_cast<std::uint32_t>(v)); }
  void put(const std::string& v) {
    put(v.size());
    bytes_ += v;
  }
  template <class T>
  void put(const std::vector<T>& v) {
    put(v.size());
    for (const T& one : v) put(one);
  }
  template <class T>
  void put(const std::optional<T>& v) {
    put(v.has_value());
    if (v) put(*v);
  }
  template <class... T>
  void all(const T&... fields) {
    (put(fields), ...);
  }

  // The frequencies stand for the base and for all scaling parameters.
  void put(const RopeSpec& r) {
    const auto& [theta, rotated, pairing, scaling, factor, original, table_scale, fast, slow, truncate, low, high,
                 shorts, longs] = r;
    all(rotated, pairing, table_scale, rope_frequencies(r, context_));
  }
  void put(const MoeSpec& m) {
    const auto& [experts, used, ff, shared, router, router_bias, normalize, scale, groups, used_groups, layout, bias,
                 clamp, alpha] = m;
    all(experts, used, ff, shared, router, router_bias, normalize, scale, groups, used_groups, layout, bias, clamp,
        alpha);
  }
  void put(const MlaSpec& m) {
    const auto& [q_rank, kv_rank, nope, rope, v] = m;
    all(q_rank, kv_rank, nope, rope, v);
  }
  void put(const DecoderLayer& l) {
    const auto& [window, rope, moe] = l;
    all(window, rope, moe);
  }
  void put(const DecoderNames& n) {
    const auto& [embedding, positions, final_norm, head, layer, q, k, v, qkv, o, q_norm, k_norm, sinks, q_a, q_a_norm,
                 q_b, kv_a, kv_a_norm, kv_b, k_b, v_b, attention_norm, attention_post_norm, ff_norm, ff_post_norm, gate,
                 up, gate_up, down, xielu, router, expert_gate, expert_up, expert_down, expert_weight, expert_bias,
                 shared_gate, shared_up, shared_down, prefix, ignored] = n;
    all(embedding, positions, final_norm, head, layer, q, k, v, qkv, o, q_norm, k_norm, sinks, q_a, q_a_norm, q_b, kv_a,
        kv_a_norm, kv_b, k_b, v_b, attention_norm, attention_post_norm, ff_norm, ff_post_norm, gate, up, gate_up, down,
        router, expert_gate, expert_up, expert_down, expert_weight, expert_bias, shared_gate, shared_up, shared_down,
        prefix, ignored);
    if (!xielu.empty()) put(xielu);  // keeps the fingerprints of models without xIELU from before it was supported
  }
  void put(const XieluSpec& x) {
    const auto& [alpha_p, alpha_n, beta, eps] = x;
    all(alpha_p, alpha_n, beta, eps);
  }
  void put(const DecoderConfig& c) {
    const auto& [family, vocab, hidden, ff, heads, kv_heads, head_dim, max_positions, norm, eps, offset, norm_bias,
                 parallel, activation, xielu, gated, qkv_bias, o_bias, ff_bias, head_bias, in_out, qk_norm, qkv_layout,
                 attention_scale, attention_cap, logit_cap, embedding_scale, residual_scale, logit_scale, tied,
                 bidirectional, moe, mla, ropes, layers, names] = c;
    all(family, vocab, hidden, ff, heads, kv_heads, head_dim, max_positions, norm, eps, offset, norm_bias, parallel,
        activation, gated, qkv_bias, o_bias, ff_bias, head_bias, in_out, qk_norm, qkv_layout, attention_scale,
        attention_cap, logit_cap, embedding_scale, residual_scale, logit_scale, tied, bidirectional, moe, mla, ropes,
        layers, names);
    if (!xielu.empty()) put(xielu);
  }

  Fingerprint fingerprint() const { return fingerprint_bytes(bytes_.data(), bytes_.size()); }

 private:
  std::int64_t context_;
  std::string bytes_;
};

Fingerprint fingerprint_of_text(std::string_view text) { return fingerprint_bytes(text.data(), text.size()); }

}  // namespace

Fingerprint config_fingerprint(const DecoderConfig& config, std::int64_t context) {
  ConfigBytes bytes(context);
  bytes.put(config);
  return bytes.fingerprint();
}

Fingerprint weights_fingerprint(const WeightLoader& loader, std::span<const std::string> names) {
  std::string all;
  for (const std::string& name : names) {
    const std::optional<TensorView> view = loader.find(name);
    if (!view) throw Error(ErrorCode::NotFound, concat_text("the weights have no tensor '", name, "'"));
    all += concat_text(name, " ", dtype_name(view->dtype), " ", dims_text(view->dims), " ",
                       fingerprint_bytes(view->data, view->size_bytes), "\n");
    loader.drop_all_pages(name);
  }
  return fingerprint_of_text(all);
}

Fingerprint sources_fingerprint(const WeightLoader& loader, std::span<const std::string> names) {
  std::string all, before;
  for (const std::string& name : names) {
    const std::optional<SourceIdentity> s = loader.identity(name);
    if (!s) return {};
    std::string line = concat_text(s->device, " ", s->inode, " ", s->size, " ", s->mtime_ns, " ", s->header, "\n");
    if (line != before) all += line;  // once for adjacent tensors
    before = std::move(line);
  }
  return fingerprint_of_text(all);
}

}  // namespace rlx
