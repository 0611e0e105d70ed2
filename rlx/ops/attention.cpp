// Attention and AttentionBackward: composites of dot_general and softmax; the reference rules loop over rows in double.
#include <cmath>
#include <limits>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/attention_core.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/ops/wide.h"

namespace rlx {
namespace {

// Operands of one reference run as doubles, and where element (b, head, s, d) of each lies.
struct AttentionData {
  AttentionSpec spec;
  std::int64_t batch, queries, keys;
  std::vector<double> q, k, v, mask;
  std::int64_t mask_strides[4] = {0, 0, 0, 0};

  AttentionData(const AttentionSpec& s, const RefArgs& a)
      : spec(s),
        batch(a.in(0).dim(0)),
        queries(a.in(0).dim(sequence_axis(s.layout))),
        keys(a.in(1).dim(sequence_axis(s.layout))),
        q(a.in(0).to_f64()),
        k(a.in(1).to_f64()),
        v(a.in(2).to_f64()) {
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
  std::size_t at(std::int64_t b, std::int64_t head, std::int64_t heads, std::int64_t s, std::int64_t length) const {
    const std::int64_t row =
        spec.layout == HeadLayout::HeadsFirst ? (b * heads + head) * length + s : (b * length + s) * heads + head;
    return static_cast<std::size_t>(row * spec.head_dim);
  }
  std::size_t q_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return at(b, h, spec.num_heads, i, queries);
  }
  std::size_t k_at(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return at(b, h / spec.group(), spec.kv_heads, j, keys);
  }
  std::size_t mask_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(b * mask_strides[0] + h * mask_strides[1] + i * mask_strides[2] +
                                    j * mask_strides[3]);
  }
  bool visible(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const std::int64_t position = i + keys - queries;
    switch (spec.mask) {
      case MaskKind::Causal: return j <= position;
      case MaskKind::SlidingWindow: return j <= position && position - j <= spec.window;
      case MaskKind::Custom: return mask[mask_at(b, h, i, j)] >= 0.5;
      case MaskKind::Bias: return mask[mask_at(b, h, i, j)] != -std::numeric_limits<double>::infinity();
      default: return true;
    }
  }
  // Attention weights of one query; `slope` is the softcap's derivative at each score (1 without one).
  void weights(std::int64_t b, std::int64_t h, std::int64_t i, std::vector<double>& p,
               std::vector<double>& slope) const {
    const auto n = static_cast<std::size_t>(keys);
    const auto depth = static_cast<std::size_t>(spec.head_dim);
    const double hidden = -std::numeric_limits<double>::infinity(), factor = spec.factor();
    p.assign(n, hidden);
    slope.assign(n, 1.0);
    const double* q_row = q.data() + q_at(b, h, i);
    double highest = hidden;
    bool any = false;
    for (std::int64_t j = 0; j < keys; ++j) {
      const double* k_row = k.data() + k_at(b, h, j);
      double s = 0;
      for (std::size_t d = 0; d < depth; ++d) s += q_row[d] * k_row[d];
      s *= factor;
      const auto at_j = static_cast<std::size_t>(j);
      if (spec.softcap) {
        const double t = std::tanh(s / *spec.softcap);
        slope[at_j] = 1 - t * t;
        s = t * *spec.softcap;
      }
      if (!visible(b, h, i, j))
        s = hidden;
      else if (spec.mask == MaskKind::Bias)
        s += mask[mask_at(b, h, i, j)];
      p[at_j] = s;
      any = any || s != hidden;  // also for NaN
      if (s > highest) highest = s;
    }
    if (!any) {  // fully masked: zeros
      p.assign(n, 0.0);
      return;
    }
    double sum = 0;
    for (double& s : p) sum += s = s == hidden ? 0 : std::exp(s - highest);
    for (double& s : p)
      if (s != 0) s /= sum;  // also where the sum is NaN
  }
  // With a mask nothing of a key that has no part in a query's row is read for it: it may hold anything.
  bool skips(double part) const { return part == 0 && spec.mask != MaskKind::None; }
};

// B H S_q S_k products of depth D (times `num_products`) and the softmax.
Cost attention_cost(const CostContext& c, const AttentionSpec& s, int num_products) {
  const int axis = sequence_axis(s.layout);
  const double scores = static_cast<double>(c.inputs[0].dim(0).value()) * static_cast<double>(s.num_heads) *
                        static_cast<double>(c.inputs[0].dim(axis).value()) *
                        static_cast<double>(c.inputs[1].dim(axis).value());
  return c.with_flops(scores * (2.0 * num_products * static_cast<double>(s.head_dim) + 6));
}

template <class Op>
struct AttentionAttrs {
  static constexpr AttrField attrs[] = {field<&Op::num_heads>("num_heads"), field<&Op::kv_heads>("kv_heads"),
                                        field<&Op::head_dim>("head_dim"),   field<&Op::mask>("mask"),
                                        field<&Op::window>("window"),       field<&Op::scale>("scale"),
                                        field<&Op::softcap>("softcap"),     field<&Op::layout>("layout")};
};

// The cases of both ops: (q, k, v shapes, mask or none, attributes).
template <class Add>
void attention_cases(Add add) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  using M = MaskKind;
  using L = HeadLayout;
  const auto spec = [](std::int64_t h, std::int64_t kv, std::int64_t d, M m = M::None, L l = L::Merged) {
    return AttentionSpec{h, kv, d, m, 0, std::nullopt, std::nullopt, l};
  };
  const Shape merged = f32({2, 3, 4});
  const std::optional<SampleInput> no_mask;
  add("plain", merged, merged, no_mask, spec(2, 2, 2));
  add("heads first", f32({1, 2, 3, 2}), f32({1, 2, 2, 2}), no_mask, spec(2, 2, 2, M::None, L::HeadsFirst));
  add("heads inner, as many heads as queries", f32({1, 2, 2, 2}), f32({1, 3, 2, 2}), no_mask,
      spec(2, 2, 2, M::None, L::HeadsInner));
  add("grouped heads", f32({1, 2, 8}), f32({1, 3, 4}), no_mask, spec(4, 2, 2));
  add("one key head", f32({1, 2, 3, 2}), f32({1, 2, 1, 2}), no_mask, spec(3, 1, 2, M::None, L::HeadsInner));
  add("causal", merged, merged, no_mask, spec(2, 2, 2, M::Causal));
  add("causal, more keys", f32({1, 2, 2}), f32({1, 4, 2}), no_mask, spec(1, 1, 2, M::Causal));
  add("causal, more queries", f32({1, 4, 2}), f32({1, 2, 2}), no_mask, spec(1, 1, 2, M::Causal));
  AttentionSpec s = spec(1, 1, 2, M::SlidingWindow);
  s.window = 1;
  add("window", f32({1, 3, 2}), f32({1, 4, 2}), no_mask, s);
  s = spec(2, 1, 2);
  s.scale = 0.3;
  s.softcap = 1.5;
  add("scale and softcap", merged, f32({2, 3, 2}), no_mask, s);
  s = spec(1, 1, 2, M::Causal);
  s.scale = 2.0;
  s.softcap = 3.0;
  add("scale, softcap and causal", f32({1, 3, 2}), f32({1, 3, 2}), no_mask, s);
  add("mask of keys", merged, merged, SampleInput(Shape({2, 1, 1, 3}, DType::Bool), Fill::Boolean),
      spec(2, 2, 2, M::Custom));
  add("mask of queries and keys, as many entries as queries", f32({3, 3, 4}), f32({3, 2, 4}),
      SampleInput(Shape({3, 2}, DType::Bool), Fill::Boolean), spec(2, 2, 2, M::Custom));
  add("float mask", merged, merged, SampleInput(f32({2, 1, 3, 3}), Fill::Boolean), spec(2, 2, 2, M::Custom));
  add("mask of heads", f32({1, 2, 8}), f32({1, 2, 4}), SampleInput(Shape({4, 2, 2}, DType::Bool), Fill::Boolean),
      spec(4, 2, 2, M::Custom));
  add("bias", f32({1, 2, 8}), f32({1, 3, 4}), SampleInput(f32({1, 4, 2, 3})), spec(4, 2, 2, M::Bias));
  add("bias of keys", merged, merged, SampleInput(f32({2, 1, 1, 3})), spec(2, 2, 2, M::Bias));
  add("bias, one for all keys", merged, merged, SampleInput(f32({3, 1})), spec(2, 2, 2, M::Bias));
  add("bias, broadcast", merged, merged, SampleInput(f32({2, 1, 3})), spec(2, 2, 2, M::Bias));
  add("no keys", f32({1, 2, 2}), f32({1, 0, 2}), no_mask, spec(1, 1, 2));
  add("no queries", f32({1, 0, 2}), f32({1, 2, 2}), no_mask, spec(1, 1, 2));
  add("one of each", f32({1, 1, 1}), f32({1, 1, 1}), no_mask, spec(1, 1, 1));
  add("f64", Shape({1, 2, 4}, DType::F64), Shape({1, 2, 4}, DType::F64), no_mask, spec(2, 2, 2));
  add("bf16", Shape({1, 2, 4}, DType::BF16), Shape({1, 2, 4}, DType::BF16), no_mask, spec(2, 2, 2, M::Causal));
  add("f16", Shape({1, 2, 4}, DType::F16), Shape({1, 2, 4}, DType::F16), no_mask, spec(2, 2, 2));
}

template <class Op>
Op op_of(const AttentionSpec& s) {
  return Op{s.num_heads, s.kv_heads, s.head_dim, s.mask, s.window, s.scale, s.softcap, s.layout};
}

struct AttentionRules : AttentionAttrs<ops::Attention> {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = check_attention(c, attention_spec(c.op<ops::Attention>()), 3)) return *e;
    return Shapes{c.input(0)};
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const AttentionSpec spec = attention_spec(c.op<ops::Attention>());
    const AttentionGraph a = build_attention(g, spec, c.input(0), c.input(1), c.input(2), c.optional_input("mask"));
    Expr y = weigh_values(g, spec, a);
    c.set_result(round_to(merge_heads(g, spec, y, spec.num_heads, c.result_shape().dims()), c.result_shape().dtype()));
  }
  static void vjp(VjpContext& c) {
    const AttentionSpec spec = attention_spec(c.op<ops::Attention>());
    std::vector<Value> operands{c.input(0), c.input(1), c.input(2), c.cotangent()};
    if (c.has("mask")) operands.push_back(c.input("mask"));
    Expr d = c.graph().add(op_of<ops::AttentionBackward>(spec), operands);
    for (int i = 0; i < 3; ++i) c.accumulate(i, d.result(static_cast<std::uint32_t>(i)));
    if (spec.mask == MaskKind::Bias) c.accumulate(3, d.result(3));
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
    std::vector<Value> operands;
    for (int i = 0; i < 3; ++i) operands.push_back(folded(c.lifted(i)));
    if (c.has("mask")) {
      const Shape mask = c.input(3).shape();
      const Dims dims =
          mask_dims4(c.is_batched(3) ? Shape(Dims(mask.dims().begin() + 1, mask.dims().end()), mask.dtype()) : mask);
      const bool shared = !c.is_batched(3) && dims[0].is_static(1);
      Dims with_batch = dims;
      with_batch.insert(with_batch.begin(), c.is_batched(3) ? c.batch_size() : Dim(1));
      Expr m = g.reshape(c.input(3), shared ? dims : with_batch);
      if (!shared) {
        with_batch[0] = c.batch_size();
        with_batch[1] = c.result_shape().dim(0);
        m = folded(g.expand(m, with_batch));
      }
      operands.push_back(m);
    }
    c.set_result(g.reshape(g.add(c.op<ops::Attention>(), operands), prepend(c.batch_size(), c.result_shape().dims())));
  }
  static void reference(const RefArgs& a) {
    const AttentionData data(attention_spec(a.op<ops::Attention>()), a);
    const AttentionSpec& spec = data.spec;
    std::vector<double> y(data.q.size()), p, slope;
    for (std::int64_t b = 0; b < data.batch; ++b) {
      for (std::int64_t h = 0; h < spec.num_heads; ++h) {
        for (std::int64_t i = 0; i < data.queries; ++i) {
          data.weights(b, h, i, p, slope);
          double* out = y.data() + data.q_at(b, h, i);
          for (std::int64_t j = 0; j < data.keys; ++j) {
            const double* v_row = data.v.data() + data.k_at(b, h, j);
            const double w = p[static_cast<std::size_t>(j)];
            if (data.skips(w)) continue;
            for (std::int64_t d = 0; d < spec.head_dim; ++d) out[d] += w * v_row[d];
          }
        }
      }
    }
    store_all(a.out(), y);
  }
  static Cost cost(const CostContext& c) { return attention_cost(c, attention_spec(c.op<ops::Attention>()), 2); }
  static void samples(SampleSet& set) {
    attention_cases([&](const char* name, const Shape& q, const Shape& kv, const std::optional<SampleInput>& mask,
                        const AttentionSpec& spec) {
      std::vector<SampleInput> in{q, kv, kv};
      if (mask) in.push_back(*mask);
      // A float Custom mask is a step function of its operand: its derivative is zero away from 0.5.
      set.add(name, std::move(in), op_of<ops::Attention>(spec));
    });
  }
};

// With p the weights and dp = dy v^T: ds = p (dp - sum(p dp)) slope; dq = factor ds k, dk = factor ds^T q, dv = p^T dy.
struct AttentionBackwardRules : AttentionAttrs<ops::AttentionBackward> {
  static Result<Shapes> infer(const InferContext& c) {
    const AttentionSpec spec = attention_spec(c.op<ops::AttentionBackward>());
    if (auto e = check_attention(c, spec, 4)) return *e;
    if (!(c.input(3) == c.input(0))) return c.error("dy ", c.input(3), " must have the shape of q ", c.input(0));
    Shapes out{c.input(0), c.input(1), c.input(2)};
    if (spec.mask == MaskKind::Bias) out.push_back(c.input(4));
    return out;
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const AttentionSpec spec = attention_spec(c.op<ops::AttentionBackward>());
    const AttentionGraph a = build_attention(g, spec, c.input(0), c.input(1), c.input(2), c.optional_input("mask"));
    Expr dy = split_heads(g, spec, widen(c.input(3)), spec.num_heads, spec.group());
    Expr dp = g.dot_general(dy, a.v, ops::DotGeneral{{4}, {3}, {0, 1}, {0, 1}});
    // Where the weight is 0, scores and dp may be NaN of a k and v that nobody sees.
    auto weighted = [&](Expr x) { return spec.mask == MaskKind::None ? x : g.where(g.eq(a.probabilities, 0), 0, x); };
    dp = weighted(dp);
    Expr ds = weighted(a.probabilities * (dp - g.sum(a.probabilities * dp, {4}, true)));
    if (spec.mask == MaskKind::Bias) {
      const Shape& mask = c.result_shape(3);
      const Dims dims = mask_dims4(mask);
      Expr d = g.reshape(ds, {ds.dim(0), spec.num_heads, ds.dim(3), ds.dim(4)});
      std::vector<std::int64_t> axes;
      for (int i = 0; i < 4; ++i)
        if (dims[static_cast<std::size_t>(i)].is_static(1) && !d.dim(i).is_static(1)) axes.push_back(i);
      if (!axes.empty()) d = g.sum(d, axes, true);
      c.set_result(3, round_to(g.reshape(d, mask.dims()), mask.dtype()));
    }
    if (spec.softcap) ds = weighted(ds * (1.0 - g.square(a.tanh)));
    ds = ds * spec.factor();
    // A q or k that is not finite makes NaN of ds wherever it is seen.
    Expr k = behind_mask(spec, a.k), q = behind_mask(spec, a.q);
    Expr dq = g.dot_general(ds, k, ops::DotGeneral{{4}, {2}, {0, 1}, {0, 1}});        // [B, KV, G, S_q, D]
    Expr dk = g.dot_general(ds, q, ops::DotGeneral{{2, 3}, {2, 3}, {0, 1}, {0, 1}});  // [B, KV, S_k, D]
    Expr dv = g.dot_general(a.probabilities, dy, ops::DotGeneral{{2, 3}, {2, 3}, {0, 1}, {0, 1}});
    const DType t = c.result_shape().dtype();
    c.set_result(0, round_to(merge_heads(g, spec, dq, spec.num_heads, c.result_shape(0).dims()), t));
    c.set_result(1, round_to(merge_heads(g, spec, dk, spec.kv_heads, c.result_shape(1).dims()), t));
    c.set_result(2, round_to(merge_heads(g, spec, dv, spec.kv_heads, c.result_shape(2).dims()), t));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static void reference(const RefArgs& a) {
    const AttentionData data(attention_spec(a.op<ops::AttentionBackward>()), a);
    const AttentionSpec& spec = data.spec;
    const std::vector<double> dy = a.in(3).to_f64();
    std::vector<double> dq(data.q.size()), dk(data.k.size()), dv(data.v.size()), dmask(data.mask.size()), p, slope;
    std::vector<double> dp(static_cast<std::size_t>(data.keys));
    for (std::int64_t b = 0; b < data.batch; ++b) {
      for (std::int64_t h = 0; h < spec.num_heads; ++h) {
        for (std::int64_t i = 0; i < data.queries; ++i) {
          data.weights(b, h, i, p, slope);
          const std::size_t q_row = data.q_at(b, h, i);
          double mean = 0;
          for (std::int64_t j = 0; j < data.keys; ++j) {
            const auto at_j = static_cast<std::size_t>(j);
            const std::size_t k_row = data.k_at(b, h, j);
            dp[at_j] = 0;
            const bool skipped = data.skips(p[at_j]);
            for (std::size_t d = 0; d < static_cast<std::size_t>(spec.head_dim); ++d) {
              if (!skipped) dp[at_j] += dy[q_row + d] * data.v[k_row + d];
              dv[k_row + d] += p[at_j] * dy[q_row + d];
            }
            mean += p[at_j] * dp[at_j];
          }
          for (std::int64_t j = 0; j < data.keys; ++j) {
            const auto at_j = static_cast<std::size_t>(j);
            const std::size_t k_row = data.k_at(b, h, j);
            if (data.skips(p[at_j])) continue;
            const double masked = p[at_j] * (dp[at_j] - mean), ds = masked * slope[at_j] * spec.factor();
            if (spec.mask == MaskKind::Bias) dmask[data.mask_at(b, h, i, j)] += masked;
            for (std::size_t d = 0; d < static_cast<std::size_t>(spec.head_dim); ++d) {
              if (data.skips(ds)) continue;
              dq[q_row + d] += ds * data.k[k_row + d];
              dk[k_row + d] += ds * data.q[q_row + d];
            }
          }
        }
      }
    }
    store_all(a.out(0), dq);
    store_all(a.out(1), dk);
    store_all(a.out(2), dv);
    if (spec.mask == MaskKind::Bias) store_all(a.out(3), dmask);
  }
  static Cost cost(const CostContext& c) {
    return attention_cost(c, attention_spec(c.op<ops::AttentionBackward>()), 5);
  }
  static void samples(SampleSet& set) {
    attention_cases([&](const char* name, const Shape& q, const Shape& kv, const std::optional<SampleInput>& mask,
                        const AttentionSpec& spec) {
      std::vector<SampleInput> in{q, kv, kv, q};
      if (mask) in.push_back(*mask);
      set.add(name, std::move(in), op_of<ops::AttentionBackward>(spec));
    });
  }
};

}  // namespace

constinit const OpDef ops::Attention::def{
    .kind = kind,
    .name = "attention",
    .what = "softmax(mask(softcap(q k^T * scale))) v per head; kv heads may be shared by query heads.",
    .inputs = inputs("q", "k", "v", maybe("mask")).present_when(mask_present<ops::Attention, 3>),
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
    .cost = AttentionRules::cost,
    .samples = AttentionRules::samples};

constinit const OpDef ops::AttentionBackward::def{
    .kind = kind,
    .name = "attention_backward",
    .what = "The cotangents of attention: dq, dk, dv and, of a bias mask, dmask.",
    .inputs = inputs("q", "k", "v", "dy", maybe("mask")).present_when(mask_present<ops::AttentionBackward, 4>),
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
    .cost = AttentionBackwardRules::cost,
    .samples = AttentionBackwardRules::samples};

}  // namespace rlx
