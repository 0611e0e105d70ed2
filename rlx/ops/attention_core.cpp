// Checks and graph building shared by the attention ops.
#include "rlx/ops/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/wide.h"

namespace rlx {

double AttentionSpec::factor() const { return scale ? *scale : 1 / std::sqrt(static_cast<double>(head_dim)); }

std::optional<Diagnostic> check_attention_attrs(const InferContext& c, const AttentionSpec& s) {
  if (s.num_heads < 1 || s.kv_heads < 1 || s.head_dim < 1)
    return c.attr_error("num_heads, kv_heads and head_dim must be at least 1, got ", s.num_heads, ", ", s.kv_heads,
                        ", ", s.head_dim);
  if (s.num_heads % s.kv_heads) return c.attr_error("kv_heads ", s.kv_heads, " must divide num_heads ", s.num_heads);
  if (s.mask == MaskKind::SlidingWindow && s.window < 0)
    return c.attr_error("window must not be negative, got ", s.window);
  if (s.scale && !std::isfinite(*s.scale)) return c.attr_error("scale must be finite, got ", *s.scale);
  if (s.softcap && !(std::isfinite(*s.softcap) && *s.softcap > 0))
    return c.attr_error("softcap must be a finite number > 0, got ", *s.softcap);
  return std::nullopt;
}

Dims mask_dims4(const Shape& mask) {
  const Dims& d = mask.dims();
  Dims out(4 - d.size(), Dim(1));
  out.insert(out.end(), d.begin(), d.end());
  return out;
}

std::optional<Diagnostic> check_attention_mask(const InferContext& c, const AttentionSpec& s, const Shape& mask,
                                               const Dim& batch, const Dim& queries, const Dim& keys) {
  if (s.mask == MaskKind::Bias ? !is_float(mask.dtype()) : !is_float(mask.dtype()) && mask.dtype() != DType::Bool)
    return c.dtype_error("the ", enum_name(s.mask), " mask must be ",
                         s.mask == MaskKind::Bias ? "float" : "Bool or float", ", got ", mask);
  const Dims full{batch, s.num_heads, queries, keys};
  bool fits = mask.rank() <= 4;
  if (fits) {
    const Dims dims = mask_dims4(mask);
    for (std::size_t i = 0; i < 4; ++i) fits = fits && (dims[i] == full[i] || dims[i].is_static(1));
  }
  if (fits) return std::nullopt;
  Diagnostic d = c.error("the mask ", mask, " must broadcast to [B, H, S_q, S_k] = ", dims_text(full));
  // The commonest reason: a row of keys for each entry of the batch.
  if (mask.rank() == 2 && mask.dim(0) == batch && mask.dim(1) == keys)
    d.hint = concat_text("a mask of rank 2 is [S_q, S_k]; write one of keys as g.reshape(mask, ",
                         dims_text({batch, 1, 1, keys}), ")");
  return d;
}

std::optional<Diagnostic> check_attention(const InferContext& c, const AttentionSpec& s, int num_dense) {
  if (auto e = check_attention_attrs(c, s)) return e;
  if (!is_float(c.input(0).dtype())) return c.dtype_error("q must be float, got ", c.input(0));
  if (auto e = c.check_same_dtype(0, num_dense)) return e;
  static constexpr const char* kNames[] = {"q", "k", "v"};
  for (int i = 0; i < 3; ++i) {
    const Shape& x = c.input(i);
    const std::int64_t heads = i == 0 ? s.num_heads : s.kv_heads;
    const int rank = s.layout == HeadLayout::Merged ? 3 : 4;
    if (x.rank() != rank)
      return c.error(kNames[i], " must have rank ", rank, " in layout ", enum_name(s.layout), ", got ", x);
    const bool fits =
        s.layout == HeadLayout::Merged
            ? x.dim(2) == Dim(heads) * Dim(s.head_dim)
            : x.dim(3).is_static(s.head_dim) && x.dim(s.layout == HeadLayout::HeadsFirst ? 1 : 2).is_static(heads);
    if (!fits)
      return c.error(kNames[i], " ", x, " does not hold ", heads, " heads of ", s.head_dim, " elements in layout ",
                     enum_name(s.layout));
    if (!(x.dim(0) == c.input(0).dim(0)))
      return c.error(kNames[i], " ", x, " and q ", c.input(0), " differ in their batch");
  }
  if (!(c.input(1) == c.input(2))) return c.error("k ", c.input(1), " and v ", c.input(2), " must have one shape");
  const int axis = sequence_axis(s.layout);
  if (!c.has("mask")) return std::nullopt;
  return check_attention_mask(c, s, c.input("mask"), c.input(0).dim(0), c.input(0).dim(axis), c.input(1).dim(axis));
}

Expr split_heads(Graph& g, const AttentionSpec& spec, Expr x, std::int64_t heads, std::int64_t group) {
  const Dim batch = x.dim(0), seq = x.dim(sequence_axis(spec.layout));
  if (spec.layout == HeadLayout::Merged) x = g.reshape(x, {batch, seq, heads, spec.head_dim});
  if (spec.layout != HeadLayout::HeadsFirst) x = g.transpose(x, {0, 2, 1, 3});
  return group ? g.reshape(x, {batch, heads / group, group, seq, spec.head_dim}) : x;
}

Expr merge_heads(Graph& g, const AttentionSpec& spec, Expr x, std::int64_t heads, const Dims& dims) {
  if (x.rank() == 5) x = g.reshape(x, {x.dim(0), heads, x.dim(3), spec.head_dim});
  if (spec.layout != HeadLayout::HeadsFirst) x = g.transpose(x, {0, 2, 1, 3});
  return x.shape().dims() == dims ? x : g.reshape(x, dims);
}

AttentionGraph build_attention(Graph& g, const AttentionSpec& spec, Expr q, Expr k, Expr v, std::optional<Expr> mask) {
  AttentionGraph a;
  a.q = split_heads(g, spec, widen(q), spec.num_heads, spec.group());
  a.k = split_heads(g, spec, widen(k), spec.kv_heads, 0);
  a.v = split_heads(g, spec, widen(v), spec.kv_heads, 0);
  Expr s = g.dot_general(a.q, a.k, ops::DotGeneral{{4}, {3}, {0, 1}, {0, 1}}) * spec.factor();
  if (spec.softcap) {
    a.tanh = g.tanh(s / *spec.softcap);
    s = a.tanh * *spec.softcap;
  }
  const double hidden = -std::numeric_limits<double>::infinity();
  std::optional<Expr> visible;
  if (spec.mask == MaskKind::Causal || spec.mask == MaskKind::SlidingWindow) {
    const int axis = sequence_axis(spec.layout);
    const Dim queries = q.dim(axis), keys = k.dim(axis), ahead = keys - queries;
    Expr position = g.iota(Shape({queries, 1}, DType::I64), 0);  // of query i: i + (S_k - S_q)
    if (!ahead.is_static())
      position = position + (g.dim_size(k, axis) - g.dim_size(q, axis));
    else if (ahead.value() != 0)
      position = position + ahead.value();
    Expr key = g.iota(Shape({1, keys}, DType::I64), 1);
    visible = g.le(key, position);
    if (spec.mask == MaskKind::SlidingWindow) {
      const std::int64_t window =
          std::min(spec.window, std::int64_t{1} << 40);  // longer than any sequence; the subtraction cannot wrap
      visible = g.bit_and(*visible, g.ge(key, position - window));
    }
  } else if (takes_mask(spec.mask)) {
    const Dims d = mask_dims4(mask->shape());
    Expr m = *mask;
    const bool per_head = !d[1].is_static(1);
    const Dims dims = {d[0], per_head ? Dim(spec.kv_heads) : Dim(1), per_head ? Dim(spec.group()) : Dim(1), d[2], d[3]};
    if (m.shape().dims() != dims) m = g.reshape(m, dims);
    if (spec.mask == MaskKind::Bias) {
      s = s + g.cast(m, s.dtype());
      visible = g.ne(m, hidden);
    } else {
      visible = m.dtype() == DType::Bool ? m : g.ge(m, 0.5);
    }
  }
  if (visible) s = g.where(*visible, s, hidden);
  a.probabilities = g.softmax(s, 4);  // a row of -inf gives zeros
  // A NaN among the visible keys makes NaN of a row, but not of the hidden keys' weights and gradients.
  if (visible) a.probabilities = g.where(*visible, a.probabilities, 0);
  return a;
}

Expr behind_mask(const AttentionSpec& spec, Expr x) {
  Graph& g = x.graph();
  return spec.mask == MaskKind::None ? x : g.where(g.lt(g.abs(x), std::numeric_limits<double>::infinity()), x, 0);
}

Expr weigh_values(Graph& g, const AttentionSpec& spec, const AttentionGraph& a) {
  const ops::DotGeneral product{{4}, {2}, {0, 1}, {0, 1}};
  if (spec.mask == MaskKind::None) return g.dot_general(a.probabilities, a.v, product);
  // 0 * NaN is NaN, so the product sees finite values, and beside them which ones are not below inf or not above -inf:
  // their weighted counts are positive where a key with a weight brings +inf, -inf or (both) NaN.
  const double inf = std::numeric_limits<double>::infinity();
  const DType t = a.v.dtype();
  Expr joined = g.concat(
      {behind_mask(spec, a.v), g.cast(g.logical_not(g.lt(a.v, inf)), t), g.cast(g.logical_not(g.gt(a.v, -inf)), t)}, 3);
  Expr sums = g.dot_general(a.probabilities, joined, product);
  auto part = [&](int i) { return g.narrow(sums, 4, i * spec.head_dim, spec.head_dim); };
  return part(0) + g.where(g.gt(part(1), 0), inf, 0) + g.where(g.gt(part(2), 0), -inf, 0);
}

}  // namespace rlx
