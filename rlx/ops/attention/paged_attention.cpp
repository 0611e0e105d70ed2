// PagedAttention: requests of several lengths whose keys are in KV pages of a pool. Composite of gathers and of
// Attention with lengths. The reference rule loops over tokens in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ops/attention/attention_core.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

AttentionSpec spec_of(const ops::PagedAttention& op) {
  return {op.num_heads, op.kv_heads, op.head_dim,           op.v_head_dim.value_or(op.head_dim), op.mask, op.window,
          op.scale,     op.softcap,  HeadLayout::HeadsInner};
}

// The number of elements of a row of a head in the pools.
std::int64_t row_of(QuantScheme scheme, std::int64_t dim) {
  if (!is_block_scheme(scheme)) return dim;
  return dim / block_layout(scheme).elements * block_layout(scheme).bytes;
}

// The numbers of a pool, dequantized.
std::vector<double> numbers_of(const Tensor& pool, QuantScheme scheme) {
  if (!is_block_scheme(scheme)) return pool.to_f64();
  const BlockLayout& l = block_layout(scheme);
  std::vector<float> numbers(pool.size_bytes() / static_cast<std::size_t>(l.bytes) *
                             static_cast<std::size_t>(l.elements));
  dequantize_blocks(scheme, {pool.data(), pool.size_bytes()}, numbers);
  return {numbers.begin(), numbers.end()};
}

// The request of token t is the number of starts of requests 1, 2, .. at or before t. The token belongs to it when its
// position t - start is in [0, length of the request). This is defined for any q_start.
struct Requests {
  const Tensor& start;
  std::int64_t tokens, count;
  std::int64_t at(std::int64_t b) const { return start.at_i64(b); }
  std::int64_t length(std::int64_t b) const { return std::clamp<std::int64_t>(at(b + 1) - at(b), 0, tokens); }
  std::int64_t of(std::int64_t t) const {
    std::int64_t n = 0;
    for (std::int64_t b = 1; b < count; ++b) n += at(b) <= t;
    return n;
  }
};

struct PagedAttentionRules {
  static Result<Shapes> infer(const InferContext& c) {
    const AttentionSpec s = spec_of(c.op<ops::PagedAttention>());
    if (auto e = check_attention_attrs(c, s)) return *e;
    const Shape &q = c.input("q"), &k = c.input("k_pool"), &v = c.input("v_pool"), &table = c.input("block_table");
    if (!is_float(q.dtype())) return c.dtype_error("q must be float, got ", q);
    const QuantScheme scheme = c.op<ops::PagedAttention>().pool_scheme;
    const bool blocks = is_block_scheme(scheme);
    if (!blocks && scheme != QuantScheme::Affine)
      return c.attr_error("the pools cannot hold ", enum_name(scheme), ", which is not a block scheme");
    if (blocks && k.dtype() != DType::U8) return c.dtype_error("k_pool must be u8 of ", enum_name(scheme), ", got ", k);
    if (!blocks && !is_float(k.dtype())) return c.dtype_error("k_pool must be float, got ", k);
    if (auto e = c.check_same_dtype(1, 3)) return *e;
    for (const std::int64_t dim : {s.head_dim, s.v_head_dim})
      if (blocks && dim % block_layout(scheme).elements != 0)
        return c.attr_error("heads of ", dim, " elements cannot be divided into blocks of ",
                            block_layout(scheme).elements);
    const std::int64_t k_row = row_of(scheme, s.head_dim), v_row = row_of(scheme, s.v_head_dim);
    if (q.rank() != 3 || !q.dim(1).is_static(s.num_heads) || !q.dim(2).is_static(s.head_dim))
      return c.error("q must be [T, ", s.num_heads, ", ", s.head_dim, "], got ", q);
    if (k.rank() != 4 || !k.dim(2).is_static(s.kv_heads) || !k.dim(3).is_static(k_row))
      return c.error("k_pool must be [P, page, ", s.kv_heads, ", ", k_row, "], got ", k);
    if (v.rank() != 4 || !(v.dim(0) == k.dim(0)) || !(v.dim(1) == k.dim(1)) || !v.dim(2).is_static(s.kv_heads) ||
        !v.dim(3).is_static(v_row))
      return c.error("v_pool must be ", dims_text({k.dim(0), k.dim(1), s.kv_heads, v_row}), ", got ", v);
    if (table.dtype() != DType::I32 || table.rank() != 2) return c.error("block_table must be I32 [B, M], got ", table);
    if (c.negative(k.dim(0) - min(Dim(1), table.dim(1)))) return c.error("k_pool ", k, " has no pages");
    const Dim& requests = table.dim(0);
    if (auto e = check_lengths(c, "kv_len", c.input("kv_len"), requests)) return *e;
    if (auto e = check_lengths(c, "q_start", c.input("q_start"), requests + Dim(1))) return *e;
    if (c.has("sinks")) {
      const Shape& x = c.input("sinks");
      if (!is_float(x.dtype())) return c.dtype_error("sinks must be float, got ", x);
      if (x.rank() != 1 || !x.dim(0).is_static(s.num_heads))
        return c.error("sinks must be [", s.num_heads, "], got ", x);
    }
    if (c.has("mask")) {
      const Shape& m = c.input("mask");
      if (!is_float(m.dtype()) && (s.mask == MaskKind::Bias || m.dtype() != DType::Bool))
        return c.dtype_error("the ", enum_name(s.mask), " mask must be ",
                             s.mask == MaskKind::Bias ? "float" : "Bool or float", ", got ", m);
      if (m.rank() != 2 || !(m.dim(0) == q.dim(0)) || m.dim(1).is_static(0))
        return c.error("the mask must be [", q.dim(0),
                       ", W], one row for each token over the new tokens of its request, got ", m);
    }
    return make_shapes(Shape({q.dim(0), s.num_heads, s.v_head_dim}, q.dtype()),
                       Shape({q.dim(0), s.num_heads}, accumulator_dtype(q.dtype())));
  }

  // The pages of each request concatenated: [P, page, KV, D] -> [B, M page, KV, D], dequantized.
  static Expr gathered(Graph& g, Expr pool, Expr table, QuantScheme scheme) {
    Expr x = g.gather(pool, table, 0);
    x = g.reshape(x, {x.dim(0), x.dim(1) * x.dim(2), x.dim(3), x.dim(4)});
    return is_block_scheme(scheme) ? g.dequantize(x, scheme) : x;
  }

  // Arranges each request's tokens in rows [B, T, ..], runs Attention with lengths, and restores the order of the
  // tokens.
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const ops::PagedAttention& op = c.op<ops::PagedAttention>();
    const Expr q = c.input("q"), table = c.input("block_table");
    const Dim tokens = q.dim(0), requests = table.dim(0);
    if (tokens.is_static(0) || requests.is_static(0)) {  // nothing to gather from
      c.set_result(0, c.zeros(c.result_shape(0)));
      return c.set_result(1, c.full(c.result_shape(1), kHidden));
    }
    const Expr k = gathered(g, c.input("k_pool"), table, op.pool_scheme),
               v = gathered(g, c.input("v_pool"), table, op.pool_scheme);
    const Dim keys = k.dim(1), width = c.has("mask") ? c.input("mask").dim(1) : Dim(1);
    const DType count = count_dtype(g, {{requests, tokens}, {tokens, width}, {keys}});
    const Expr extent = dim_value(g, tokens, count);
    // A request that starts outside of [-T, T] has no tokens, and one that ends beyond 2 T has as many as possible. So
    // clamping the starts changes no result.
    const Expr starts = g.max(g.min(g.cast(c.input("q_start"), count), extent * 2), -extent);
    const Expr start = g.narrow(starts, 0, 0, requests), behind = g.narrow(starts, 0, 1, requests);
    const Expr q_len = g.max(g.min(behind - start, extent), 0);
    // Token (b, i) of the rows is token start[b] + i.
    const Expr token = g.reshape(start, {requests, 1}) + positions(g, tokens, 1, 2, count);
    const Expr rows = g.gather(q, token, 0);  // [B, T, H, D]; clamps
    ops::Attention inner;
    inner.num_heads = op.num_heads, inner.kv_heads = op.kv_heads, inner.head_dim = op.head_dim;
    inner.mask = op.mask, inner.window = op.window, inner.scale = op.scale, inner.softcap = op.softcap;
    inner.v_head_dim = op.v_head_dim, inner.layout = HeadLayout::HeadsInner;
    std::vector<std::pair<std::string_view, Expr>> operands{
        {"q", rows}, {"k", k}, {"v", v}, {"kv_len", c.input("kv_len")}, {"q_len", g.cast(q_len, DType::I32)}};
    if (c.has("mask")) operands.emplace_back("mask", spread_mask(c, op.mask, token, q_len, keys));
    if (c.has("sinks")) operands.emplace_back("sinks", c.input("sinks"));
    const Expr y = g.add_named(inner, operands), lse = y.result(1);
    // The request of each token, its position there, and whether it belongs to one.
    const Expr t = positions(g, tokens, 0, 1, count);
    const Expr later = g.narrow(start, 0, 1, requests - Dim(1));
    const Expr request =
        g.sum(g.cast(g.le(g.reshape(later, {1, later.dim(0)}), g.reshape(t, {tokens, 1})), count), {1});
    const Expr place = t - g.gather(start, request, 0);
    const Expr there = g.bit_and(g.ge(place, 0), g.lt(place, g.gather(q_len, request, 0)));
    const Expr row = request * extent + place;      // out of range only for tokens without a request
    const auto back = [&](Expr x, double absent) {  // [B, T, ..] -> [T, ..]
      Dims dims(x.shape().dims().begin() + 1, x.shape().dims().end());
      dims[0] = requests * tokens;
      Expr flat = g.gather(g.reshape(x, dims), row, 0);
      Dims seen(static_cast<std::size_t>(flat.rank()), Dim(1));
      seen[0] = tokens;
      return g.where(g.reshape(there, seen), flat, absent);
    };
    c.set_result(0, back(y, 0));
    c.set_result(1, back(g.transpose(lse, {0, 2, 1}), kHidden));
  }
  // A mask [T, W] over a request's new tokens as a mask [B, 1, T, S] over its keys.
  static Expr spread_mask(DecomposeContext& c, MaskKind kind, Expr token, Expr q_len, const Dim& keys) {
    Graph& g = c.graph();
    const Expr mask = c.input("mask");
    const Dim tokens = mask.dim(0), width = mask.dim(1), requests = token.dim(0);
    const DType count = token.dtype();
    const Expr last = dim_value(g, width, count);
    const Expr kv_len = g.max(g.min(g.cast(c.input("kv_len"), count), dim_value(g, keys, count)), 0);
    // The new-token index of each key; older keys are below 0.
    const Expr fresh =
        g.reshape(positions(g, keys, 1, 2, count) - g.reshape(kv_len - q_len, {requests, 1}), {requests, 1, keys});
    const Expr row = g.max(g.min(token, dim_value(g, tokens, count) - 1), 0);
    const Expr at = g.reshape(row, {requests, tokens, 1}) * last + g.max(g.min(fresh, last - 1), 0);
    Expr value = g.gather(g.reshape(mask, {tokens * width}), at, 0);  // [B, T, S]
    const Expr old = g.lt(fresh, 0), beyond = g.ge(fresh, last);
    if (kind == MaskKind::Bias)
      value = g.where(old, 0, g.where(beyond, kHidden, value));
    else
      value = g.bit_or(old, g.bit_and(g.logical_not(beyond), value.dtype() == DType::Bool ? value : g.ge(value, 0.5)));
    return g.reshape(value, {requests, 1, tokens, keys});
  }

  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;

  static void reference(const RefArgs& a) {
    const AttentionSpec s = spec_of(a.op<ops::PagedAttention>());
    const Tensor &k_pool = a.in("k_pool"), &table = a.in("block_table"), &lengths = a.in("kv_len");
    const QuantScheme scheme = a.op<ops::PagedAttention>().pool_scheme;
    const std::vector<double> q = a.in("q").to_f64(), k = numbers_of(k_pool, scheme),
                              v = numbers_of(a.in("v_pool"), scheme);
    const std::int64_t tokens = a.in("q").dim(0), pages = k_pool.dim(0), page = k_pool.dim(1), most = table.dim(1);
    const Requests requests{a.in("q_start"), tokens, table.dim(0)};
    const std::vector<double> sinks = a.has("sinks") ? a.in("sinks").to_f64() : std::vector<double>{};
    const std::vector<double> mask = a.has("mask") ? a.in("mask").to_f64() : std::vector<double>{};
    const std::int64_t width = a.has("mask") ? a.in("mask").dim(1) : 0;
    std::vector<double> y(static_cast<std::size_t>(a.out().num_elements())),
        lse(static_cast<std::size_t>(a.out(1).num_elements()), kHidden), score;
    for (std::int64_t t = 0; t < tokens && requests.count > 0; ++t) {
      const std::int64_t b = requests.of(t), i = t - requests.at(b), n = requests.length(b);
      if (i < 0 || i >= n) continue;
      const std::int64_t keys = std::clamp<std::int64_t>(lengths.at_i64(b), 0, most * page), first = keys - n;
      // The position of key j of the request in the pool, in heads.
      const auto key = [&](std::int64_t j) {
        const std::int64_t p = std::clamp<std::int64_t>(table.at_i64(b * most + j / page), 0, pages - 1);
        return (p * page + j % page) * s.kv_heads;
      };
      for (std::int64_t h = 0; h < s.num_heads; ++h) {
        const double sink = sinks.empty() ? kHidden : sinks[static_cast<std::size_t>(h)];
        const double* q_row = q.data() + (t * s.num_heads + h) * s.head_dim;
        double highest = sink;
        bool any = sink != kHidden;
        score.assign(static_cast<std::size_t>(keys), kHidden);
        for (std::int64_t j = 0; j < keys; ++j) {
          const std::int64_t fresh = j - first;
          if (s.mask == MaskKind::Causal && j > first + i) continue;
          if (s.mask == MaskKind::SlidingWindow && (j > first + i || first + i - j > s.window)) continue;
          const bool masked = takes_mask(s.mask) && fresh >= 0;
          const double m = masked && fresh < width ? mask[static_cast<std::size_t>(t * width + fresh)] : 0;
          if (masked && (fresh >= width || (s.mask == MaskKind::Custom ? !(m >= 0.5) : m == kHidden))) continue;
          const double* k_row = k.data() + (key(j) + h / s.group()) * s.head_dim;
          double x = 0;
          for (std::int64_t d = 0; d < s.head_dim; ++d) x += q_row[d] * k_row[d];
          x *= s.factor();
          if (s.softcap) x = std::tanh(x / *s.softcap) * *s.softcap;
          if (s.mask == MaskKind::Bias) x += m;
          score[static_cast<std::size_t>(j)] = x;
          any = any || x != kHidden;  // a NaN counts too
          highest = x > highest ? x : highest;
        }
        if (!any) continue;
        double sum = sink == kHidden ? 0 : std::exp(sink - highest);
        for (double& x : score)
          if (x != kHidden) sum += x = std::exp(x - highest);
        lse[static_cast<std::size_t>(t * s.num_heads + h)] = highest + std::log(sum);
        double* out = y.data() + (t * s.num_heads + h) * s.v_head_dim;
        for (std::int64_t j = 0; j < keys; ++j) {
          const double part = score[static_cast<std::size_t>(j)], w = part / sum;
          if (part == kHidden || w == 0) continue;  // a key without weight is not read
          const double* v_row = v.data() + (key(j) + h / s.group()) * s.v_head_dim;
          for (std::int64_t d = 0; d < s.v_head_dim; ++d) out[d] += w * v_row[d];
        }
      }
    }
    store_all(a.out(), y);
    store_all(a.out(1), lse);
  }

  static Cost cost(const CostContext& c) {
    const AttentionSpec s = spec_of(c.op<ops::PagedAttention>());
    const double keys =
        static_cast<double>(c.inputs[3].dim(1).value()) * static_cast<double>(c.inputs[1].dim(1).value());
    const double scores = static_cast<double>(c.inputs[0].dim(0).value()) * static_cast<double>(s.num_heads) * keys;
    return c.with_flops(scores * (2.0 * static_cast<double>(s.head_dim + s.v_head_dim) + 6));
  }

  static constexpr AttrField attrs[] = {
      field<&ops::PagedAttention::num_heads>("num_heads"),     field<&ops::PagedAttention::kv_heads>("kv_heads"),
      field<&ops::PagedAttention::head_dim>("head_dim"),       field<&ops::PagedAttention::mask>("mask"),
      field<&ops::PagedAttention::window>("window"),           field<&ops::PagedAttention::scale>("scale"),
      field<&ops::PagedAttention::softcap>("softcap"),         field<&ops::PagedAttention::v_head_dim>("v_head_dim"),
      field<&ops::PagedAttention::pool_scheme>("pool_scheme"), field<&ops::PagedAttention::round_q>("round_q"),
      field<&ops::PagedAttention::present>("present")};
};

}  // namespace

constinit const OpDef ops::PagedAttention::def{
    .kind = kind,
    .name = "paged_attention",
    .what = "Attention of the tokens of several requests over keys and values in pages of a pool.",
    .inputs = inputs("q", "k_pool", "v_pool", "block_table", "kv_len", "q_start", maybe("mask"), maybe("sinks"))
                  .masked_by<&ops::PagedAttention::present>()
                  .presence_from(6, mask_present<ops::PagedAttention, 6>),
    .attrs = PagedAttentionRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = PagedAttentionRules::infer,
    .decompose = PagedAttentionRules::decompose,
    .vjp = PagedAttentionRules::vjp,
    .jvp = PagedAttentionRules::jvp,
    .batch = PagedAttentionRules::batch,
    .reference = PagedAttentionRules::reference,
    .cost = PagedAttentionRules::cost};

}  // namespace rlx
