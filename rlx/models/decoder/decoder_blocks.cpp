// Decoder blocks: embedding, attention over the KV cache, output layer.
#include "rlx/models/decoder/decoder_blocks.h"

#include <cmath>
#include <vector>

#include "rlx/error.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/models/adapter/adapter_set.h"
#include "rlx/models/rope_frequencies.h"

namespace rlx {

std::string with_number(const std::string& text, std::int64_t number) {
  const std::size_t at = text.find("{}");
  return at == text.npos ? text : text.substr(0, at) + std::to_string(number) + text.substr(at + 2);
}

Shape shape_of_cache(const DecoderConfig& c, const DecoderGraphOptions& o, const DecoderLayer& layer) {
  const bool windowed = layer.window != 0 && o.window_page != 0;
  const std::int64_t rows = windowed ? o.window_pages * o.window_page : o.pages * o.page, heads = c.cached_heads(),
                     width = c.cached_dim();
  if (!o.cache_scheme) return Shape({rows, heads * width}, o.cache_dtype);
  const BlockLayout& layout = block_layout(*o.cache_scheme);
  return Shape({rows, heads, width / layout.elements * layout.bytes}, DType::U8);
}

DecoderBuilder::DecoderBuilder(Flow& flow, const DecoderConfig& config, const DecoderGraphOptions& options,
                               AdapterSet* adapters)
    : flow_(flow), g_(flow.graph()), c_(config), o_(options), set_(adapters) {
  tokens_ = g_.symbol("tokens", SymbolInfo{.min = 1, .max = o_.max_tokens});
  const Dim rows = g_.symbol("rows", SymbolInfo{.min = 1, .max = o_.max_tokens});
  const auto input = [&](const char* name, Dims dims) { return g_.input(name, Shape(std::move(dims), DType::I32)); };
  ids_ = input("tokens", {tokens_});
  positions_ = input("positions", {tokens_});
  slots_ = input("slots", {tokens_});
  block_table_ = input("block_table", {o_.sequences, o_.pages_per_sequence});
  kv_len_ = input("kv_len", {o_.sequences});
  q_start_ = input("q_start", {o_.sequences + 1});
  rows_ = input("rows", {rows});
  if (o_.window_page != 0) {
    window_slots_ = input("window_slots", {tokens_});
    window_table_ = input("window_table", {o_.sequences, (o_.context + o_.window_page - 1) / o_.window_page});
  }
  if (set_) adapters_ = input("adapters", {tokens_});
  // Angles are computed in F32, as in the models. A table would hold the same for every position of the context.
  auto scope = g_.scope("rope");
  for (const RopeSpec& spec : c_.ropes) {
    const std::vector<float> f = rope_frequencies(spec, o_.context);
    const auto n = static_cast<std::int64_t>(f.size());
    const Expr turns = g_.constant(Tensor::of<float>({1, n}, f));
    const Expr angle = g_.reshape(g_.cast(positions_, DType::F32), {tokens_, 1}) * turns;
    Angles a{g_.cos(angle), g_.sin(angle)};
    if (spec.table_scale != 1) a = {a.cos * spec.table_scale, a.sin * spec.table_scale};
    angles_.push_back(a);
  }
}

// `adapters`: adapter ids of the rows of x, where they differ from the run's tokens.
Expr DecoderBuilder::norm(Expr x, const std::string& name, std::optional<Expr> adapters) {
  return norm(x, name, c_.norm, c_.norm_eps, c_.norm_bias, c_.norm_offset, adapters.value_or(adapters_));
}

Expr DecoderBuilder::norm(Expr x, const std::string& name, NormKind kind, double eps, bool bias, double offset,
                          Expr adapters) {
  const Expr y = flow_.norm(x, name, kind, eps, bias, offset);
  if (!set_) return y;
  const auto plain = [&] {
    return kind == NormKind::Rms ? g_.rms_norm(x, std::nullopt, std::nullopt, eps)
                                 : g_.layer_norm(x, std::nullopt, std::nullopt, eps);
  };
  return set_->norm(y, plain, name, offset, bias, adapters);
}

Expr DecoderBuilder::linear(Expr x, const std::string& name, std::int64_t out, bool bias) {
  return adapted(flow_.linear(x, name, out, bias, c_.weights_in_out), x, name, out, bias);
}

Expr DecoderBuilder::adapted(Expr y, Expr x, const std::string& name, std::int64_t out, bool bias) {
  if (!set_) return y;
  return set_->add(y, x, name, adapters_, bias ? std::optional(flow_.weight(name + ".bias", {out})) : std::nullopt);
}

Expr DecoderBuilder::embedded() {
  auto scope = g_.scope("embedding");
  const auto rows = [&](const std::string& name, Expr ids, std::int64_t count) {
    const Expr x = flow_.embed(name + ".weight", ids, count, c_.hidden_size);
    return set_ ? set_->embed(x, ids, name, count, adapters_) : x;
  };
  Expr x = rows(c_.names.embedding, ids_, c_.vocab_size);
  if (!c_.names.positions.empty()) x = x + rows(c_.names.positions, positions_, c_.max_positions);
  return c_.embedding_scale == 1 ? x : x * c_.embedding_scale;
}

Expr DecoderBuilder::logits(Expr x) {
  std::optional<Expr> adapters;
  if (set_) adapters = g_.gather(adapters_, rows_);
  x = norm(g_.gather(x, rows_), c_.names.final_norm, adapters);
  const bool shared = c_.tied && !flow_.has(c_.names.head + ".weight");
  Expr y;
  if (shared)
    y = g_.matmul(x, g_.t(flow_.weight(c_.names.embedding + ".weight", {c_.vocab_size, c_.hidden_size})));
  else
    y = flow_.linear(x, c_.names.head, c_.vocab_size, c_.head_bias);
  std::optional<Expr> bias;
  if (!shared && c_.head_bias) bias = flow_.weight(c_.names.head + ".bias", {c_.vocab_size});
  if (set_) y = set_->add(y, x, c_.names.head, *adapters, bias, true);
  if (c_.logit_scale != 1) y = y * c_.logit_scale;
  if (c_.logit_softcap) y = g_.tanh(y / *c_.logit_softcap) * *c_.logit_softcap;
  return y;
}

Expr DecoderBuilder::head_norm(Expr x, const std::string& name, std::int64_t heads) {
  if (c_.qk_norm == QkNorm::Width) return norm(x, at(name));
  const Expr y = norm(g_.reshape(x, {tokens_, heads, c_.head_dim}), at(name));
  return g_.reshape(y, {tokens_, heads * c_.head_dim});
}

Expr DecoderBuilder::rotate(Expr x, std::int64_t heads, std::int64_t head_dim, const DecoderLayer& layer) {
  if (layer.rope < 0) return x;
  const RopeSpec& spec = c_.ropes[static_cast<std::size_t>(layer.rope)];
  const Angles& a = angles_[static_cast<std::size_t>(layer.rope)];
  ops::Rope op;
  op.head_dim = head_dim, op.n_rot = spec.rotated, op.pairing = spec.pairing, op.layout = HeadLayout::Merged;
  const Expr y = g_.rope(g_.reshape(x, {1, tokens_, heads * head_dim}), a.cos, a.sin, op);
  return g_.reshape(y, {tokens_, heads * head_dim});
}

DecoderBuilder::Heads DecoderBuilder::project(Expr x, const DecoderLayer& layer) {
  const DecoderNames& n = c_.names;
  const std::int64_t q_width = c_.num_heads * c_.head_dim, kv_width = c_.kv_heads * c_.head_dim;
  Heads h;
  if (n.qkv.empty()) {
    h.q = linear(x, at(n.q), q_width, c_.qkv_bias);
    h.k = linear(x, at(n.k), kv_width, c_.qkv_bias);
    h.v = linear(x, at(n.v), kv_width, c_.qkv_bias);
  } else {
    // In file order where an adapter adds to the rows, since its rows have that order.
    const bool ordered = c_.qkv_layout != QkvLayout::Parts && !set_;
    const Expr all = ordered ? flow_.linear_of_heads(x, at(n.qkv), c_.num_heads, c_.head_dim, c_.qkv_bias)
                             : linear(x, at(n.qkv), q_width + 2 * kv_width, c_.qkv_bias);
    if (ordered || c_.qkv_layout == QkvLayout::Parts) {
      h.q = g_.narrow(all, 1, 0, q_width);
      h.k = g_.narrow(all, 1, q_width, kv_width);
      h.v = g_.narrow(all, 1, q_width + kv_width, kv_width);
    } else {  // q, k and v of each head in turn; all heads have keys of their own
      const Expr heads = g_.reshape(all, {tokens_, c_.num_heads, 3, c_.head_dim});
      const auto part = [&](std::int64_t i) { return g_.reshape(g_.narrow(heads, 2, i, 1), {tokens_, q_width}); };
      h = {part(0), part(1), part(2)};
    }
  }
  if (c_.qk_norm != QkNorm::None) {
    h.q = head_norm(h.q, n.q_norm, c_.num_heads);
    h.k = head_norm(h.k, n.k_norm, c_.kv_heads);
  }
  h.q = rotate(h.q, c_.num_heads, c_.head_dim, layer);
  h.k = rotate(h.k, c_.kv_heads, c_.head_dim, layer);
  return h;
}

// Latent attention (MLA). The cache has one vector for each token. Each head would derive its keys and values from it
// by its own up-projections. Here the key projection is absorbed into the queries, and the value projection is applied
// after the weighted sum of latent vectors. So all heads read the cache as it is, and no key or value of a head is ever
// computed. A part of the keys, shared by all heads, is rotated.
Expr DecoderBuilder::latent_attention(Expr x, std::size_t index) {
  const DecoderNames& n = c_.names;
  const DecoderLayer& layer = c_.layers[index];
  const MlaSpec& m = *c_.mla;
  const std::int64_t heads = c_.num_heads;
  const auto latent_norm = [&](Expr y, const std::string& name) {
    // The authors fix this epsilon; it is not from the configuration.
    return norm(y, at(name), NormKind::Rms, 1e-6, false, 0, adapters_);
  };
  const Expr latent = linear(x, at(n.kv_a), m.kv_rank + m.rope_dim, c_.o_bias);
  const Expr turned = rotate(g_.narrow(latent, 1, m.kv_rank, m.rope_dim), 1, m.rope_dim, layer);
  const Expr entry = g_.concat({latent_norm(g_.narrow(latent, 1, 0, m.kv_rank), n.kv_a_norm), turned}, 1);

  Expr q = m.q_rank == 0 ? linear(x, at(n.q), heads * c_.head_dim, false)
                         : linear(latent_norm(linear(x, at(n.q_a), m.q_rank, c_.o_bias), n.q_a_norm), at(n.q_b),
                                  heads * c_.head_dim, false);
  q = g_.reshape(q, {tokens_, heads, c_.head_dim});
  const Expr q_turned = rotate(g_.reshape(g_.narrow(q, 2, m.nope_dim, m.rope_dim), {tokens_, heads * m.rope_dim}),
                               heads, m.rope_dim, layer);
  // The matrices of each head: [heads, nope_dim, kv_rank] or transposed, and [heads, v_dim, kv_rank].
  Expr to_keys, to_values;
  if (n.kv_b.empty()) {
    to_keys = flow_.weight(at(n.k_b) + ".weight", {heads, m.kv_rank, m.nope_dim});
    to_values = flow_.weight(at(n.v_b) + ".weight", {heads, m.v_dim, m.kv_rank});
  } else {
    const Expr both = g_.reshape(flow_.weight(at(n.kv_b) + ".weight", {heads * (m.nope_dim + m.v_dim), m.kv_rank}),
                                 {heads, m.nope_dim + m.v_dim, m.kv_rank});
    to_keys = g_.narrow(both, 1, 0, m.nope_dim), to_values = g_.narrow(both, 1, m.nope_dim, m.v_dim);
  }
  ops::DotGeneral by_head;  // [T, heads, K] and [heads, .., ..] -> [heads, T, N]
  by_head.lhs_contract = {2}, by_head.lhs_batch = {1}, by_head.rhs_batch = {0};
  by_head.rhs_contract = {n.kv_b.empty() ? 2 : 1};
  Expr q_latent = g_.dot_general(g_.narrow(q, 2, 0, m.nope_dim), to_keys, by_head);
  q_latent = g_.transpose(q_latent, {1, 0, 2});
  q = g_.concat({q_latent, g_.reshape(q_turned, {tokens_, heads, m.rope_dim})}, 2);

  ops::PagedAttention op = paged_attention(layer);
  Expr k = cached(entry, "cache.k." + std::to_string(index), layer);
  std::int64_t v_width = m.kv_rank;
  if (o_.cache_scheme) {
    const BlockLayout& blocks = block_layout(*o_.cache_scheme);
    if (m.kv_rank % blocks.elements == 0)
      v_width = m.kv_rank / blocks.elements * blocks.bytes;
    else  // values end inside a quantized block
      k = g_.dequantize(k, *o_.cache_scheme), op.pool_scheme = QuantScheme::Affine, op.round_q = false;
  }
  const Expr v = g_.narrow(k, 3, 0, v_width);
  op.kv_heads = 1, op.head_dim = m.kv_rank + m.rope_dim, op.v_head_dim = m.kv_rank;
  op.scale = c_.attention_scale.value_or(1 / std::sqrt(static_cast<double>(c_.head_dim)));
  const Expr y = g_.paged_attention(q, k, v, table(layer), kv_len_, q_start_, op);
  by_head.rhs_contract = {2};
  const Expr out = g_.dot_general(y, to_values, by_head);
  return linear(g_.reshape(g_.transpose(out, {1, 0, 2}), {tokens_, heads * m.v_dim}), at(n.o), c_.hidden_size,
                c_.o_bias);
}

// The pool [P, page, KV, width or block bytes] with x [T, KV * width] written at its slots. While the weights have
// errors the pool has one row: a wrong configuration must not cost memory, and its graph never runs.
Expr DecoderBuilder::cached(Expr x, const std::string& name, const DecoderLayer& layer) {
  const std::int64_t heads = c_.cached_heads(), width = c_.cached_dim();
  DecoderGraphOptions o = o_;
  if (!flow_.fits()) {
    o.pages = o.page = 1;
    if (o.window_page != 0) o.window_pages = o.window_page = 1;
  }
  const Shape shape = shape_of_cache(c_, o, layer);
  Expr rows = g_.add(ops::State{name, shape.dims(), shape.dtype(), {}}, {});  // zeros, not allocated yet
  if (o_.cache_scheme) x = g_.quantize(g_.reshape(x, {tokens_, heads, width}), *o_.cache_scheme);
  rows = g_.scatter(ScatterKind::Set, rows, windowed(layer) ? window_slots_ : slots_, x);
  g_.set_state(name, rows);
  const std::int64_t page = windowed(layer) ? o.window_page : o.page;
  return g_.reshape(rows, {rows.dim(0).value() / page, page, heads, o_.cache_scheme ? rows.dim(2) : Dim(width)});
}

ops::PagedAttention DecoderBuilder::paged_attention(const DecoderLayer& layer) const {
  ops::PagedAttention op;
  op.num_heads = c_.num_heads, op.kv_heads = c_.kv_heads, op.head_dim = c_.head_dim;
  op.mask = layer.window ? MaskKind::SlidingWindow : MaskKind::Causal;
  op.window = layer.window ? layer.window - 1 : 0;  // the op counts keys before the token itself
  op.scale = c_.attention_scale, op.softcap = c_.attention_softcap;
  if (o_.cache_scheme) op.pool_scheme = *o_.cache_scheme;
  op.round_q = o_.round_q && op.pool_scheme == QuantScheme::Q8_0;
  return op;
}

Expr DecoderBuilder::attention(Expr x, std::size_t index) {
  if (c_.mla) return latent_attention(x, index);
  const DecoderLayer& layer = c_.layers[index];
  const std::string number = std::to_string(index);
  const Heads h = project(x, layer);
  const Expr k = cached(h.k, "cache.k." + number, layer), v = cached(h.v, "cache.v." + number, layer);
  AttentionOptions options;
  if (!c_.names.sinks.empty()) options.sinks = flow_.weight(at(c_.names.sinks), {c_.num_heads});
  const Expr y = g_.paged_attention(g_.reshape(h.q, {tokens_, c_.num_heads, c_.head_dim}), k, v, table(layer), kv_len_,
                                    q_start_, paged_attention(layer), options);
  return linear(g_.reshape(y, {tokens_, c_.num_heads * c_.head_dim}), at(c_.names.o), c_.hidden_size, c_.o_bias);
}

Expr DecoderBuilder::layer(Expr x, std::size_t index) {
  const DecoderNames& n = c_.names;
  layer_ = index, prefix_ = with_number(n.layer, static_cast<std::int64_t>(index));
  const auto before = [&](Expr y, const std::string& name) { return name.empty() ? y : norm(y, at(name)); };
  const auto after = before;
  const auto second = [&](Expr y) {
    y = before(y, n.ff_norm);
    y = c_.layers[index].moe ? experts(y) : feed_forward(y);
    return branch(after(y, n.ff_post_norm));
  };
  const Expr first = branch(after(attention(before(x, n.attention_norm), index), n.attention_post_norm));
  if (c_.parallel) return x + first + second(x);
  x = x + first;
  return x + second(x);
}

}  // namespace rlx
