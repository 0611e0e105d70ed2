// Checks and graph building for the attention ops.
#include "rlx/ops/attention/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/elementwise/representable.h"

namespace rlx {

double AttentionSpec::factor() const { return scale ? *scale : 1 / std::sqrt(static_cast<double>(head_dim)); }

std::optional<Diagnostic> check_attention_attrs(const InferContext& c, const AttentionSpec& s) {
  if (s.num_heads < 1 || s.kv_heads < 1 || s.head_dim < 1)
    return c.attr_error("num_heads, kv_heads and head_dim must be at least 1, got ", s.num_heads, ", ", s.kv_heads,
                        ", ", s.head_dim);
  if (s.v_head_dim < 1) return c.attr_error("v_head_dim must be at least 1, got ", s.v_head_dim);
  if (s.num_heads % s.kv_heads) return c.attr_error("kv_heads ", s.kv_heads, " must divide num_heads ", s.num_heads);
  if (s.mask == MaskKind::SlidingWindow && s.window < 0)
    return c.attr_error("window must not be negative, got ", s.window);
  if (s.scale && !std::isfinite(*s.scale)) return c.attr_error("scale must be finite, got ", *s.scale);
  if (s.softcap && !(std::isfinite(*s.softcap) && *s.softcap > 0))
    return c.attr_error("softcap must be a finite number > 0, got ", *s.softcap);
  const DType t = c.input(0).dtype();
  if (s.scale && !is_representable_for(t, *s.scale))
    return c.attr_error("scale ", *s.scale, " becomes infinite or 0 in f32, in which scores are computed");
  if (s.softcap && !is_representable_for(t, *s.softcap))
    return c.attr_error("softcap ", *s.softcap, " becomes infinite or 0 in f32, in which scores are computed");
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
  // The most common mistake: a mask with a row of keys for each batch entry.
  if (mask.rank() == 2 && mask.dim(0) == batch && mask.dim(1) == keys)
    d.hint = concat_text("a mask of rank 2 must be [S_q, S_k]; give a mask of keys as g.reshape(mask, ",
                         dims_text({batch, 1, 1, keys}), ")");
  return d;
}

std::optional<Diagnostic> check_lengths(const InferContext& c, std::string_view name, const Shape& x,
                                        const Dim& count) {
  if (x.dtype() != DType::I32) {
    Diagnostic d = c.dtype_error(name, " must be I32, got ", x);
    if (is_int(x.dtype())) d.hint = "cast it to I32";
    return d;
  }
  if (x.rank() == 1 && x.dim(0) == count) return std::nullopt;
  return c.error(name, " must be [", count, "], got ", x);
}

std::optional<Diagnostic> check_attention(const InferContext& c, const AttentionSpec& s) {
  if (auto e = check_attention_attrs(c, s)) return e;
  static constexpr const char* kNames[] = {"q", "k", "v"};
  for (int i = 0; i < 2; ++i)
    if (!is_float(c.input(i).dtype())) return c.dtype_error(kNames[i], " must be float, got ", c.input(i));
  if (auto e = c.check_same_dtype(1, 3)) return e;
  for (int i = 0; i < 3; ++i) {
    const Shape& x = c.input(i);
    const std::int64_t heads = i == 0 ? s.num_heads : s.kv_heads, depth = i == 2 ? s.v_head_dim : s.head_dim;
    const int rank = s.layout == HeadLayout::Merged ? 3 : 4;
    if (x.rank() != rank)
      return c.error(kNames[i], " must have rank ", rank, " in layout ", enum_name(s.layout), ", got ", x);
    const bool fits =
        s.layout == HeadLayout::Merged
            ? x.dim(2) == Dim(heads) * Dim(depth)
            : x.dim(3).is_static(depth) && x.dim(s.layout == HeadLayout::HeadsFirst ? 1 : 2).is_static(heads);
    if (!fits)
      return c.error(kNames[i], " ", x, " cannot be split into ", heads, " heads of ", depth, " elements in layout ",
                     enum_name(s.layout));
    if (!(x.dim(0) == c.input(0).dim(0)))
      return c.error(kNames[i], " ", x, " and q ", c.input(0), " differ in the batch dimension");
  }
  const int axis = sequence_axis(s.layout);
  const Shape& q = c.input(0);
  const Dim &batch = q.dim(0), &keys = c.input(1).dim(axis);
  if (!(keys == c.input(2).dim(axis)))
    return c.error("k ", c.input(1), " and v ", c.input(2), " must have the same number of rows");
  for (const char* name : {"kv_len", "q_len"})
    if (c.has(name))
      if (auto e = check_lengths(c, name, c.input(name), batch)) return e;
  if (c.has("sinks")) {
    const Shape& x = c.input("sinks");
    if (!is_float(x.dtype())) return c.dtype_error("sinks must be float, got ", x);
    const bool own = x.rank() == 2 && x.dim(0) == batch;
    if (!(x.rank() == 1 || own) || !x.dim(-1).is_static(s.num_heads))
      return c.error("sinks must be [", s.num_heads, "] or [", batch, ", ", s.num_heads, "], got ", x);
  }
  if (!c.has("mask")) return std::nullopt;
  return check_attention_mask(c, s, c.input("mask"), batch, q.dim(axis), keys);
}

Shape attention_result(const AttentionSpec& s, const Shape& q) {
  if (s.v_head_dim == s.head_dim) return q;
  Dims dims = q.dims();
  dims.back() = s.layout == HeadLayout::Merged ? Dim(s.num_heads) * Dim(s.v_head_dim) : Dim(s.v_head_dim);
  return Shape(std::move(dims), q.dtype());
}

Shape lse_shape(const AttentionSpec& s, const Shape& q) {
  return Shape({q.dim(0), s.num_heads, q.dim(sequence_axis(s.layout))}, accumulator_dtype(q.dtype()));
}

Expr split_heads(Graph& g, const AttentionSpec& spec, Expr x, std::int64_t heads, std::int64_t group,
                 std::int64_t depth) {
  const Dim batch = x.dim(0), seq = x.dim(sequence_axis(spec.layout));
  if (spec.layout == HeadLayout::Merged) x = g.reshape(x, {batch, seq, heads, depth});
  if (spec.layout != HeadLayout::HeadsFirst) x = g.transpose(x, {0, 2, 1, 3});
  return group ? g.reshape(x, {batch, heads / group, group, seq, depth}) : x;
}

Expr merge_heads(Graph& g, const AttentionSpec& spec, Expr x, std::int64_t heads, const Dims& dims) {
  if (x.rank() == 5) x = g.reshape(x, {x.dim(0), heads, x.dim(3), x.dim(4)});
  if (spec.layout != HeadLayout::HeadsFirst) x = g.transpose(x, {0, 2, 1, 3});
  return x.shape().dims() == dims ? x : g.reshape(x, dims);
}

namespace {

// Boolean masks from positions and lengths. `keys`: the keys that each query may attend to. `row`: the queries within
// q_len. Both broadcast to [B, KV, G, S_q, S_k].
struct Visibility {
  std::optional<Expr> keys, row;
};

Visibility visibility(Graph& g, const AttentionSpec& spec, const AttentionOperands& in) {
  const int axis = sequence_axis(spec.layout);
  const Dim queries = in.q.dim(axis), keys = in.k.dim(axis), ahead = keys - queries;
  const bool positions = spec.mask == MaskKind::Causal || spec.mask == MaskKind::SlidingWindow;
  const bool lengths = in.kv_len || in.q_len;
  Visibility out;
  if (!positions && !lengths) return out;
  const DType t = count_dtype(g, {{queries}, {keys}});
  Expr key = lengths ? g.iota(Shape({1, 1, 1, 1, keys}, t), 4) : g.iota(Shape({1, keys}, t), 1);
  Expr position = lengths ? g.iota(Shape({1, 1, 1, queries, 1}, t), 3) : g.iota(Shape({queries, 1}, t), 0);
  const auto extent = [&](const Expr& of) { return extent_of(g, of, axis, t); };
  // The lengths of the batch entries as [B, 1, 1, 1, 1], clamped between 0 and the extent.
  auto clamped = [&](const Expr& n, const Expr& of) {
    return g.reshape(g.max(g.min(g.cast(n, t), extent(of)), 0), {n.dim(0), 1, 1, 1, 1});
  };
  std::optional<Expr> kv_len, q_len;
  if (in.kv_len) kv_len = clamped(*in.kv_len, in.k), out.keys = g.lt(key, *kv_len);
  if (in.q_len) {
    q_len = clamped(*in.q_len, in.q), out.row = g.lt(position, *q_len);
    out.keys = out.keys ? g.bit_and(*out.keys, *out.row) : *out.row;
  }
  if (!positions) return out;
  // The position of query i: i + (kv_len - q_len).
  if (lengths)
    position = position + ((kv_len ? *kv_len : extent(in.k)) - (q_len ? *q_len : extent(in.q)));
  else if (!ahead.is_static())
    position = position + (extent(in.k) - extent(in.q));
  else if (ahead.value() != 0)
    position = position + ahead.value();
  Expr seen = g.le(key, position);
  if (spec.mask == MaskKind::SlidingWindow) {
    // Limits the window to more than any sequence has, so that the subtraction cannot wrap.
    const std::int64_t window = std::min(spec.window, std::int64_t{1} << (t == DType::I32 ? 29 : 40));
    seen = g.bit_and(seen, g.ge(key, position - window));
  }
  out.keys = out.keys ? g.bit_and(*out.keys, seen) : seen;
  return out;
}

}  // namespace

AttentionGraph build_attention(Graph& g, const AttentionSpec& spec, const AttentionOperands& in) {
  AttentionGraph a;
  const DType t = accumulator_dtype(in.q.dtype());
  a.q = split_heads(g, spec, g.cast(in.q, t), spec.num_heads, spec.group(), spec.head_dim);
  a.k = split_heads(g, spec, g.cast(in.k, t), spec.kv_heads, 0, spec.head_dim);
  a.v = split_heads(g, spec, g.cast(in.v, t), spec.kv_heads, 0, spec.v_head_dim);
  Expr s = g.dot_general(a.q, a.k, ops::DotGeneral{{4}, {3}, {0, 1}, {0, 1}}) * spec.factor();
  if (spec.softcap) {
    a.tanh = g.tanh(s / *spec.softcap);
    s = a.tanh * *spec.softcap;
  }
  const Visibility seen = visibility(g, spec, in);
  std::optional<Expr> visible = seen.keys;
  a.row = seen.row;
  if (takes_mask(spec.mask)) {
    const Dims d = mask_dims4(in.mask->shape());
    Expr m = *in.mask;
    const bool per_head = !d[1].is_static(1);
    const Dims dims = {d[0], per_head ? Dim(spec.kv_heads) : Dim(1), per_head ? Dim(spec.group()) : Dim(1), d[2], d[3]};
    if (m.shape().dims() != dims) m = g.reshape(m, dims);
    Expr shown;
    if (spec.mask == MaskKind::Bias) {
      s = s + g.cast(m, s.dtype());
      shown = g.ne(m, kHidden);
    } else {
      shown = m.dtype() == DType::Bool ? m : g.ge(m, 0.5);
    }
    visible = visible ? g.bit_and(*visible, shown) : shown;
  }
  a.hides = visible.has_value();
  a.scores = visible ? g.where(*visible, s, kHidden) : s;
  if (in.sinks) {
    const Expr x = g.cast(*in.sinks, t);
    a.sinks = g.reshape(x, {x.rank() == 2 ? x.dim(0) : Dim(1), spec.kv_heads, spec.group(), 1, 1});
    Dims column = a.scores.shape().dims();
    column.back() = 1;
    Expr p = g.softmax(g.concat({a.scores, g.expand(a.sinks, column)}, 4), 4);
    a.probabilities = g.narrow(p, 4, 0, a.scores.dim(4));
    a.sink_probabilities = g.narrow(p, 4, a.scores.dim(4), 1);
    if (a.row) a.sink_probabilities = g.where(*a.row, a.sink_probabilities, 0);
  } else {
    a.probabilities = g.softmax(a.scores, 4);  // a row of -inf gives zeros
  }
  // A NaN among the visible keys makes the row NaN, but not the weights and gradients of the masked keys.
  if (visible) a.probabilities = g.where(*visible, a.probabilities, 0);
  return a;
}

Expr behind_mask(const AttentionGraph& a, Expr x) {
  Graph& g = x.graph();
  return a.hides ? g.where(g.lt(g.abs(x), std::numeric_limits<double>::infinity()), x, 0) : x;
}

Expr weigh_values(Graph& graph, const AttentionSpec& spec, const AttentionGraph& a, bool may_branch) {
  const ops::DotGeneral product{{4}, {2}, {0, 1}, {0, 1}};
  if (!a.hides) return graph.dot_general(a.probabilities, a.v, product);
  // 0 * NaN is NaN, so the matmul gets finite values, plus two masks: values not below inf, and values not above -inf.
  // The weighted counts of the masks are positive where a key with a weight holds +inf, -inf or (both) NaN.
  const double inf = std::numeric_limits<double>::infinity();
  const DType t = a.v.dtype();
  const auto with_counts = [&](Graph& g) {
    Expr joined = g.concat({g.where(g.lt(g.abs(a.v), inf), a.v, 0), g.cast(g.logical_not(g.lt(a.v, inf)), t),
                            g.cast(g.logical_not(g.gt(a.v, -inf)), t)},
                           3);
    Expr sums = g.dot_general(a.probabilities, joined, product);
    auto part = [&](int i) { return g.narrow(sums, 4, i * spec.v_head_dim, spec.v_head_dim); };
    return part(0) + g.where(g.gt(part(1), 0), inf, 0) + g.where(g.gt(part(2), 0), -inf, 0);
  };
  // With few keys there is no branch: the extra work is small, and a branch takes time to compile.
  const Dim keys = a.v.dim(2);
  if (!may_branch || (keys.is_static() && keys.value() < 128)) return with_counts(graph);
  const Expr all = graph.reduce_min(graph.cast(graph.lt(graph.abs(a.v), inf), DType::I32), {0, 1, 2, 3});
  return graph.cond(
      graph.gt(all, 0), [&](Graph& g) { return ExprList{g.dot_general(a.probabilities, a.v, product)}; },
      [&](Graph& g) { return ExprList{with_counts(g)}; })[0];
}

Expr log_sum_exp(Graph& g, const AttentionSpec& spec, const AttentionGraph& a) {
  // The maximum over no keys is -inf.
  Expr largest = g.reduce_max(a.scores, {4}, true);
  if (a.sinks.valid()) largest = g.max(largest, a.sinks);
  const Expr base = g.stop_gradient(g.where(g.eq(largest, kHidden), 0, largest));
  Expr sum = g.sum(g.exp(a.scores - base), {4}, true);
  if (a.sinks.valid()) sum = sum + g.exp(a.sinks - base);
  Expr none = g.eq(sum, 0);
  if (a.row) none = g.bit_or(none, g.logical_not(*a.row));
  Expr lse = g.where(none, kHidden, base + g.log(g.where(none, 1, sum)));
  return g.reshape(lse, {lse.dim(0), spec.num_heads, lse.dim(3)});
}

}  // namespace rlx
