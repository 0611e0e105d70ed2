// Attention and AttentionBackward: composites of dot_general and softmax. The reference rules loop over rows in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/attention/attention_core.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// The attention weights of one query.
struct Row {
  std::vector<double> p;      // by key; 0 from kv_len on
  std::vector<double> slope;  // derivative of the softcap at each score (1 without a softcap)
  double sink = 0;            // the weight of the sink
  double lse = kHidden;
};

// The operands of one reference run as doubles, and the position of element (b, head, s, d) in each.
struct AttentionData {
  AttentionSpec spec;
  std::int64_t batch, queries, keys;
  std::vector<double> q, k, v, mask, sinks;
  std::vector<std::int64_t> kv_len, q_len;  // clamped; one for each batch entry
  std::int64_t mask_strides[4] = {0, 0, 0, 0}, sinks_stride = 0;
  bool hides;  // some key may be masked for some query

  AttentionData(const AttentionSpec& s, const RefArgs& a)
      : spec(s),
        batch(a.in(0).dim(0)),
        queries(a.in(0).dim(sequence_axis(s.layout))),
        keys(a.in(1).dim(sequence_axis(s.layout))),
        q(a.in(0).to_f64()),
        k(a.in(1).to_f64()),
        v(a.in(2).to_f64()),
        kv_len(lengths(a, "kv_len", keys)),
        q_len(lengths(a, "q_len", queries)),
        hides(s.mask != MaskKind::None || a.has("kv_len") || a.has("q_len")) {
    if (a.has("sinks")) {
      sinks = a.in("sinks").to_f64();
      sinks_stride = a.in("sinks").rank() == 2 ? spec.num_heads : 0;
    }
    if (!a.has("mask")) return;
    const Tensor& m = a.in("mask");
    mask = m.to_f64();
    const Dims dims = mask_dims4(m.shape());
    std::int64_t stride = 1;
    for (std::size_t i = 4; i-- > 0;) {
      mask_strides[i] = dims[i].value() == 1 ? 0 : stride;
      stride *= dims[i].value();
    }
  }
  std::vector<std::int64_t> lengths(const RefArgs& a, std::string_view name, std::int64_t extent) const {
    std::vector<std::int64_t> out(static_cast<std::size_t>(batch), extent);
    if (a.has(name))
      for (std::int64_t b = 0; b < batch; ++b)
        out[static_cast<std::size_t>(b)] = std::clamp<std::int64_t>(a.in(name).at_i64(b), 0, extent);
    return out;
  }
  std::size_t at(std::int64_t b, std::int64_t head, std::int64_t heads, std::int64_t s, std::int64_t length,
                 std::int64_t depth) const {
    const std::int64_t row =
        spec.layout == HeadLayout::HeadsFirst ? (b * heads + head) * length + s : (b * length + s) * heads + head;
    return static_cast<std::size_t>(row * depth);
  }
  std::size_t q_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return at(b, h, spec.num_heads, i, queries, spec.head_dim);
  }
  std::size_t y_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return at(b, h, spec.num_heads, i, queries, spec.v_head_dim);
  }
  std::size_t k_at(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return at(b, h / spec.group(), spec.kv_heads, j, keys, spec.head_dim);
  }
  std::size_t v_at(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return at(b, h / spec.group(), spec.kv_heads, j, keys, spec.v_head_dim);
  }
  std::size_t mask_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(b * mask_strides[0] + h * mask_strides[1] + i * mask_strides[2] +
                                    j * mask_strides[3]);
  }
  std::size_t sink_at(std::int64_t b, std::int64_t h) const { return static_cast<std::size_t>(b * sinks_stride + h); }
  std::int64_t keys_of(std::int64_t b) const { return kv_len[static_cast<std::size_t>(b)]; }
  bool visible(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const std::int64_t position = i + keys_of(b) - q_len[static_cast<std::size_t>(b)];
    switch (spec.mask) {
      case MaskKind::Causal: return j <= position;
      case MaskKind::SlidingWindow: return j <= position && position - j <= spec.window;
      case MaskKind::Custom: return mask[mask_at(b, h, i, j)] >= 0.5;
      case MaskKind::Bias: return mask[mask_at(b, h, i, j)] != kHidden;
      default: return true;
    }
  }
  // Calls f(b, h, i, row) for every query below q_len.
  template <class F>
  void for_each_row(F f) const {
    Row row;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < spec.num_heads; ++h)
        for (std::int64_t i = 0; i < q_len[static_cast<std::size_t>(b)]; ++i) {
          weigh(b, h, i, row);
          f(b, h, i, row);
        }
  }
  void weigh(std::int64_t b, std::int64_t h, std::int64_t i, Row& row) const {
    const auto depth = static_cast<std::size_t>(spec.head_dim);
    const double factor = spec.factor();
    row.p.assign(static_cast<std::size_t>(keys), kHidden);
    row.slope.assign(row.p.size(), 1.0);
    const double* q_row = q.data() + q_at(b, h, i);
    const double sink = sinks.empty() ? kHidden : sinks[sink_at(b, h)];
    double highest = sink;
    bool any = sink != kHidden;
    for (std::int64_t j = 0; j < keys_of(b); ++j) {
      const double* k_row = k.data() + k_at(b, h, j);
      double s = 0;
      for (std::size_t d = 0; d < depth; ++d) s += q_row[d] * k_row[d];
      s *= factor;
      const auto at_j = static_cast<std::size_t>(j);
      if (spec.softcap) {
        const double t = std::tanh(s / *spec.softcap);
        row.slope[at_j] = 1 - t * t;
        s = t * *spec.softcap;
      }
      if (!visible(b, h, i, j))
        s = kHidden;
      else if (spec.mask == MaskKind::Bias)
        s += mask[mask_at(b, h, i, j)];
      row.p[at_j] = s;
      any = any || s != kHidden;  // a NaN counts too
      if (s > highest) highest = s;
    }
    row.sink = 0;
    row.lse = kHidden;
    if (!any) {  // fully masked: zeros
      row.p.assign(row.p.size(), 0.0);
      return;
    }
    row.sink = sink == kHidden ? 0 : std::exp(sink - highest);
    double sum = row.sink;
    for (double& s : row.p)
      if (s != kHidden) sum += s = std::exp(s - highest);
    // A masked key has weight 0 even when the sum is NaN. A score of -inf that is not masked contributes to that NaN.
    for (std::int64_t j = 0; j < keys; ++j) {
      double& s = row.p[static_cast<std::size_t>(j)];
      const bool seen = j < keys_of(b) && visible(b, h, i, j);
      s = seen ? (s == kHidden ? 0 : s) / sum : 0;
    }
    row.sink /= sum;
    row.lse = highest + std::log(sum);
  }
  // When keys may be masked, a key without weight in a query's row is not read for it. Its values may be arbitrary.
  bool skips(double part) const { return part == 0 && hides; }
};

// The cost of `num_matmuls` batched matmuls [B, H, S_q, S_k] of depth D, and of the softmax.
Cost attention_cost(const CostContext& c, const AttentionSpec& s, int num_matmuls) {
  const int axis = sequence_axis(s.layout);
  const double scores = static_cast<double>(c.inputs[0].dim(0).value()) * static_cast<double>(s.num_heads) *
                        static_cast<double>(c.inputs[0].dim(axis).value()) *
                        static_cast<double>(c.inputs[1].dim(axis).value());
  return c.with_flops(scores * (num_matmuls * static_cast<double>(s.head_dim + s.v_head_dim) + 6));
}

template <class Op>
struct AttentionAttrs {
  static constexpr AttrField attrs[] = {field<&Op::num_heads>("num_heads"),   field<&Op::kv_heads>("kv_heads"),
                                        field<&Op::head_dim>("head_dim"),     field<&Op::mask>("mask"),
                                        field<&Op::window>("window"),         field<&Op::scale>("scale"),
                                        field<&Op::softcap>("softcap"),       field<&Op::layout>("layout"),
                                        field<&Op::v_head_dim>("v_head_dim"), field<&Op::present>("present")};
};

using Named = std::vector<std::pair<std::string_view, Expr>>;
void name_optional(Named& operands, const AttentionOperands& in) {
  if (in.mask) operands.emplace_back("mask", *in.mask);
  if (in.kv_len) operands.emplace_back("kv_len", *in.kv_len);
  if (in.q_len) operands.emplace_back("q_len", *in.q_len);
  if (in.sinks) operands.emplace_back("sinks", *in.sinks);
}

struct AttentionRules : AttentionAttrs<ops::Attention> {
  static Result<Shapes> infer(const InferContext& c) {
    const AttentionSpec spec = attention_spec(c.op<ops::Attention>());
    if (auto e = check_attention(c, spec)) return *e;
    return make_shapes(attention_result(spec, c.input(0)), lse_shape(spec, c.input(0)));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const AttentionSpec spec = attention_spec(c.op<ops::Attention>());
    const AttentionGraph a = build_attention(g, spec, attention_operands(c));
    Expr y = weigh_values(g, spec, a, c.may_branch());
    c.set_result(round_to(merge_heads(g, spec, y, spec.num_heads, c.result_shape().dims()), c.result_shape().dtype()));
    c.set_result(1, log_sum_exp(g, spec, a));
  }
  static void vjp(VjpContext& c) {
    const AttentionSpec spec = attention_spec(c.op<ops::Attention>());
    const AttentionOperands in = attention_operands(c);
    Named operands{{"q", in.q}, {"k", in.k}, {"v", in.v}, {"dy", c.cotangent()}};
    name_optional(operands, in);
    if (c.has_cotangent(1)) operands.emplace_back("dlse", c.cotangent(1));
    Expr d = c.graph().add_named(attention_op<ops::AttentionBackward>(spec), operands);
    for (int i = 0; i < 3; ++i) c.accumulate(i, d.result(static_cast<std::uint32_t>(i)));
    std::uint32_t next = 3;
    if (spec.mask == MaskKind::Bias) c.accumulate(c.index("mask"), d.result(next++));
    if (in.sinks) c.accumulate(c.index("sinks"), d.result(next));
  }
  static constexpr DerivedRule jvp = by_decomposition;
  // The batch is folded into B.
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    auto folded = [&](Expr x) {  // [V, B, ..] -> [V * B, ..]
      Dims dims(x.shape().dims().begin() + 1, x.shape().dims().end());
      dims[0] = x.dim(0) * x.dim(1);
      return g.reshape(x, dims);
    };
    const Dim entries = c.result_shape().dim(0);
    Named operands{{"q", folded(c.lifted(0))}, {"k", folded(c.lifted(1))}, {"v", folded(c.lifted(2))}};
    if (c.has("mask")) {
      const int at = c.index("mask");
      const Shape mask = c.input(at).shape();
      const Dims dims =
          mask_dims4(c.is_batched(at) ? Shape(Dims(mask.dims().begin() + 1, mask.dims().end()), mask.dtype()) : mask);
      const bool shared = !c.is_batched(at) && dims[0].is_static(1);
      Dims with_batch = dims;
      with_batch.insert(with_batch.begin(), c.is_batched(at) ? c.batch_size() : Dim(1));
      Expr m = g.reshape(c.input(at), shared ? dims : with_batch);
      if (!shared) {
        with_batch[0] = c.batch_size();
        with_batch[1] = entries;
        m = folded(g.expand(m, with_batch));
      }
      operands.emplace_back("mask", m);
    }
    for (std::string_view name : {"kv_len", "q_len"})
      if (c.has(name)) operands.emplace_back(name, folded(c.lifted(c.index(name))));
    if (c.has("sinks")) {
      const int at = c.index("sinks");
      Expr s = c.input(at);
      if (c.is_batched(at) || c.rank(at) == 2) {
        s = c.lifted(at);  // [V, H] or [V, B, H]
        if (c.rank(at) == 1) s = g.expand(g.unsqueeze(s, 1), {c.batch_size(), entries, s.dim(1)});
        s = folded(s);
      }
      operands.emplace_back("sinks", s);
    }
    Expr y = g.add_named(c.op<ops::Attention>(), operands);
    for (int r = 0; r < 2; ++r)
      c.set_result(
          r, g.reshape(y.result(static_cast<std::uint32_t>(r)), prepend(c.batch_size(), c.result_shape(r).dims())));
  }
  static void reference(const RefArgs& a) {
    const AttentionData data(attention_spec(a.op<ops::Attention>()), a);
    const AttentionSpec& spec = data.spec;
    std::vector<double> y(static_cast<std::size_t>(a.out().num_elements())),
        lse(static_cast<std::size_t>(a.out(1).num_elements()), kHidden);
    data.for_each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, const Row& row) {
      lse[static_cast<std::size_t>((b * spec.num_heads + h) * data.queries + i)] = row.lse;
      double* out = y.data() + data.y_at(b, h, i);
      for (std::int64_t j = 0; j < data.keys_of(b); ++j) {
        const double* v_row = data.v.data() + data.v_at(b, h, j);
        const double w = row.p[static_cast<std::size_t>(j)];
        if (data.skips(w)) continue;
        for (std::int64_t d = 0; d < spec.v_head_dim; ++d) out[d] += w * v_row[d];
      }
    });
    store_all(a.out(), y);
    store_all(a.out(1), lse);
  }
  static Cost cost(const CostContext& c) { return attention_cost(c, attention_spec(c.op<ops::Attention>()), 2); }
};

// With weights p and dp = dy v^T: ds = p (dp - sum(p dp) + dlse) slope; dq = factor ds k, dk = factor ds^T q, dv = p^T
// dy. For a sink of weight p_s: sum(p_s (dlse - sum(p dp))).
struct AttentionBackwardRules : AttentionAttrs<ops::AttentionBackward> {
  static Result<Shapes> infer(const InferContext& c) {
    const AttentionSpec spec = attention_spec(c.op<ops::AttentionBackward>());
    if (auto e = check_attention(c, spec)) return *e;
    const Shape y = attention_result(spec, c.input(0)), lse = lse_shape(spec, c.input(0));
    if (!(c.input(3) == y)) return c.error("dy ", c.input(3), " must have the shape of the result, ", y);
    if (c.has("dlse") && !(c.input("dlse") == lse))
      return c.error("dlse ", c.input("dlse"), " must have the shape of lse, ", lse);
    Shapes out{c.input(0), c.input(1), c.input(2)};
    if (spec.mask == MaskKind::Bias) out.push_back(c.input("mask"));
    if (c.has("sinks")) out.push_back(c.input("sinks"));
    return out;
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const AttentionSpec spec = attention_spec(c.op<ops::AttentionBackward>());
    const AttentionGraph a = build_attention(g, spec, attention_operands(c));
    Expr dy = split_heads(g, spec, widen(c.input(3)), spec.num_heads, spec.group(), spec.v_head_dim);
    if (a.row) dy = g.where(*a.row, dy, 0);
    Expr dp = g.dot_general(dy, a.v, ops::DotGeneral{{4}, {3}, {0, 1}, {0, 1}});
    // Where the weight is 0, scores and dp can be NaN from a masked k and v.
    auto weighted = [&](Expr x) { return a.hides ? g.where(g.eq(a.probabilities, 0), 0, x) : x; };
    dp = weighted(dp);
    // The amount subtracted in each row's derivatives: the mean of dp minus the cotangent of lse.
    Expr above = g.sum(a.probabilities * dp, {4}, true);
    if (c.has("dlse")) {
      const Dims& rows = above.shape().dims();
      above = above - g.reshape(c.input("dlse"), rows);
    }
    Expr ds = weighted(a.probabilities * (dp - above));
    int next = 3;
    // Sums over the axes along which an operand of dims [B or 1, H or 1, ..] was broadcast.
    auto unrepeated = [&](Expr d, const Dims& dims) {
      std::vector<std::int64_t> axes;
      for (std::size_t i = 0; i < dims.size(); ++i)
        if (dims[i].is_static(1) && !d.dim(static_cast<int>(i)).is_static(1))
          axes.push_back(static_cast<std::int64_t>(i));
      return axes.empty() ? d : g.sum(d, axes, true);
    };
    if (spec.mask == MaskKind::Bias) {
      const Shape& mask = c.result_shape(next);
      Expr d = unrepeated(g.reshape(ds, {ds.dim(0), spec.num_heads, ds.dim(3), ds.dim(4)}), mask_dims4(mask));
      c.set_result(next++, round_to(g.reshape(d, mask.dims()), mask.dtype()));
    }
    if (a.sinks.valid()) {
      const Shape& sinks = c.result_shape(next);
      // A row whose sink has weight 0 contributes nothing to the sink's derivative, for any values in the row.
      Expr d = g.where(g.eq(a.sink_probabilities, 0), 0, a.sink_probabilities * -above);
      d = g.sum(g.reshape(d, {d.dim(0), spec.num_heads, d.dim(3)}), {2});
      if (sinks.rank() == 1) d = g.sum(d, {0});
      c.set_result(next, round_to(d, sinks.dtype()));
    }
    if (spec.softcap) ds = weighted(ds * (1.0 - g.square(a.tanh)));
    ds = ds * spec.factor();
    // A q or k that is not finite makes ds NaN wherever it is not masked.
    Expr k = behind_mask(a, a.k), q = behind_mask(a, a.q);
    Expr dq = g.dot_general(ds, k, ops::DotGeneral{{4}, {2}, {0, 1}, {0, 1}});        // [B, KV, G, S_q, D]
    Expr dk = g.dot_general(ds, q, ops::DotGeneral{{2, 3}, {2, 3}, {0, 1}, {0, 1}});  // [B, KV, S_k, D]
    Expr dv = g.dot_general(a.probabilities, dy, ops::DotGeneral{{2, 3}, {2, 3}, {0, 1}, {0, 1}});
    const auto set = [&](int r, Expr d, std::int64_t heads) {
      c.set_result(r, round_to(merge_heads(g, spec, d, heads, c.result_shape(r).dims()), c.result_shape(r).dtype()));
    };
    set(0, dq, spec.num_heads);
    set(1, dk, spec.kv_heads);
    set(2, dv, spec.kv_heads);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static void reference(const RefArgs& a) {
    const AttentionData data(attention_spec(a.op<ops::AttentionBackward>()), a);
    const AttentionSpec& spec = data.spec;
    const std::vector<double> dy = a.in(3).to_f64();
    std::vector<double> dlse;
    if (a.has("dlse")) dlse = a.in("dlse").to_f64();
    std::vector<double> dq(data.q.size()), dk(data.k.size()), dv(data.v.size()), dmask(data.mask.size()),
        dsinks(data.sinks.size()), dp(static_cast<std::size_t>(data.keys));
    data.for_each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, const Row& row) {
      const std::size_t q_row = data.q_at(b, h, i), y_row = data.y_at(b, h, i);
      double above = 0;
      for (std::int64_t j = 0; j < data.keys; ++j) {
        const auto at_j = static_cast<std::size_t>(j);
        const std::size_t v_row = data.v_at(b, h, j);
        dp[at_j] = 0;
        const bool skipped = data.skips(row.p[at_j]);
        for (std::size_t d = 0; d < static_cast<std::size_t>(spec.v_head_dim); ++d) {
          if (!skipped) dp[at_j] += dy[y_row + d] * data.v[v_row + d];
          dv[v_row + d] += row.p[at_j] * dy[y_row + d];
        }
        above += row.p[at_j] * dp[at_j];
      }
      if (!dlse.empty()) above -= dlse[static_cast<std::size_t>((b * spec.num_heads + h) * data.queries + i)];
      if (!dsinks.empty() && row.sink != 0) dsinks[data.sink_at(b, h)] -= row.sink * above;
      for (std::int64_t j = 0; j < data.keys; ++j) {
        const auto at_j = static_cast<std::size_t>(j);
        const std::size_t k_row = data.k_at(b, h, j);
        if (data.skips(row.p[at_j])) continue;
        const double masked = row.p[at_j] * (dp[at_j] - above), ds = masked * row.slope[at_j] * spec.factor();
        if (spec.mask == MaskKind::Bias) dmask[data.mask_at(b, h, i, j)] += masked;
        for (std::size_t d = 0; d < static_cast<std::size_t>(spec.head_dim); ++d) {
          if (data.skips(ds)) continue;
          dq[q_row + d] += ds * data.k[k_row + d];
          dk[k_row + d] += ds * data.q[q_row + d];
        }
      }
    });
    store_all(a.out(0), dq);
    store_all(a.out(1), dk);
    store_all(a.out(2), dv);
    int next = 3;
    if (spec.mask == MaskKind::Bias) store_all(a.out(next++), dmask);
    if (a.has("sinks")) store_all(a.out(next), dsinks);
  }
  static Cost cost(const CostContext& c) {
    return attention_cost(c, attention_spec(c.op<ops::AttentionBackward>()), 5);
  }
};

}  // namespace

constinit const OpDef ops::Attention::def{
    .kind = kind,
    .name = "attention",
    .what =
        "softmax(mask(softcap(q k^T * scale))) v for each head, with lengths and sinks; and the log-sum-exp of the "
        "scores.",
    .inputs = inputs("q", "k", "v", maybe("mask"), maybe("kv_len"), maybe("q_len"), maybe("sinks"))
                  .masked_by<&ops::Attention::present>()
                  .presence_from(3, mask_present<ops::Attention, 3>),
    .attrs = AttentionRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = AttentionRules::infer,
    .decompose = AttentionRules::decompose,
    .vjp = AttentionRules::vjp,
    .jvp = AttentionRules::jvp,
    .batch = AttentionRules::batch,
    .reference = AttentionRules::reference,
    .cost = AttentionRules::cost};

constinit const OpDef ops::AttentionBackward::def{
    .kind = kind,
    .name = "attention_backward",
    .what = "The cotangents of attention: dq, dk, dv, dmask for a bias mask, and dsinks for sinks.",
    .inputs = inputs("q", "k", "v", "dy", maybe("mask"), maybe("kv_len"), maybe("q_len"), maybe("sinks"), maybe("dlse"))
                  .masked_by<&ops::AttentionBackward::present>()
                  .presence_from(4, mask_present<ops::AttentionBackward, 4>),
    .attrs = AttentionBackwardRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = AttentionBackwardRules::infer,
    .decompose = AttentionBackwardRules::decompose,
    .vjp = AttentionBackwardRules::vjp,
    .jvp = AttentionBackwardRules::jvp,
    .batch = AttentionBackwardRules::batch,
    .reference = AttentionBackwardRules::reference,
    .cost = AttentionBackwardRules::cost};

}  // namespace rlx
