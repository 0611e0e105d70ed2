// recognize-attention: two matmuls around a softmax, with scale, softcap and mask, become one attention.
#include <algorithm>
#include <cmath>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/match.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;
constexpr std::string_view kAttentionPattern = "attention";

// An operand, and the axis order that makes it [batch.., S, D].
struct PermutedOperand {
  Value x;
  Axes perm;
};

// The one axis in neither list, or -1.
std::int64_t free_axis(int rank, const Axes& contract, const Axes& batch) {
  std::int64_t out = -1;
  for (std::int64_t a = 0; a < rank; ++a) {
    bool used = false;
    for (const Axes* list : {&contract, &batch})
      for (std::int64_t b : *list) used = used || a == b;
    if (used) continue;
    if (out >= 0) return -1;
    out = a;
  }
  return out;
}

// The side with the transposes before it absorbed.
PermutedOperand through_transposes(const Graph& g, PermutedOperand s) {
  while (const auto* t = g.node(s.x.node).op.get_if<ops::Transpose>()) {
    for (std::int64_t& a : s.perm) a = t->perm[static_cast<std::size_t>(a)];
    s.x = g.node(s.x.node).inputs[0];
  }
  return s;
}

class Attention {
  // True for a matmul in the dtype of its operands, the only kind that attention has.
  bool is_product(NodeId id) const {
    const Node& n = g_.node(id);
    return n.kind() == OpKind::DotGeneral && n.shape().dtype() == g_.shape(n.inputs[0]).dtype();
  }

 public:
  Attention(GraphRewriter& r, const PassContext& context, NodeId softmax)
      : r_(r), g_(r.source()), context_(context), softmax_(softmax) {}

  void run() {
    const Value p(softmax_);
    const Shape& shape = g_.shape(p);
    if (g_.node(softmax_).op.as<ops::Softmax>().axis != shape.rank() - 1 || shape.rank() < 2 || shape.rank() > 4)
      return;
    // The matmul that reads the probabilities. Another reader stops the match.
    for (const UseIndex::Use& u : r_.uses().uses(p))
      if (u.operand == 0 && is_product(u.user)) weighted_ = u.user;
    if (!weighted_.valid() || !scores(g_.node(softmax_).inputs[0])) return;
    const int rank = shape.rank();
    const Node& pv = g_.node(weighted_);
    const auto& second = pv.op.as<ops::DotGeneral>();
    const Node& qk = g_.node(product_);
    const auto& first = qk.op.as<ops::DotGeneral>();
    // When all leading axes are 1, the matmuls have no batch axes: q [1, 1, S_q, D] x k [S_k, D].
    const bool flat =
        first.lhs_batch.empty() && second.lhs_batch.empty() &&
        std::all_of(shape.dims().begin(), shape.dims().end() - 2, [](const Dim& d) { return d.is_static(1); });
    const int num_batch = flat ? 0 : rank - 2;
    for (Value v : between_) {
      if (r_.uses().is_output(v)) return miss(MissReason::IsOutput, concat_text(v, " is an output of the graph"));
      if (!r_.uses().single_use(v))
        return miss(MissReason::MultiConsumer, concat_text(v, " has ", r_.uses().use_count(v), " readers"));
    }
    // scores = q [batch, S_q, D] x k [batch, S_k, D]; result = p [batch, S_q, S_k] x v [batch, S_k, D].
    Axes leading;
    for (int i = 0; i < num_batch; ++i) leading.push_back(i);
    const Value q = qk.inputs[0], k = qk.inputs[1], v = pv.inputs[1];
    Axes q_ones;  // the leading axes of a flat q
    for (std::int64_t a = 0; flat && first.lhs_contract.size() == 1 && a < g_.shape(q).rank(); ++a)
      if (a != first.lhs_contract[0]) q_ones.push_back(a);
    std::int64_t q_free = -1;
    if (q_ones.empty())
      q_free = free_axis(g_.shape(q).rank(), first.lhs_contract, first.lhs_batch);
    else
      q_free = q_ones.back(), q_ones.pop_back();
    const std::int64_t k_free = free_axis(g_.shape(k).rank(), first.rhs_contract, first.rhs_batch);
    const std::int64_t v_free = free_axis(g_.shape(v).rank(), second.rhs_contract, second.rhs_batch);
    if (first.lhs_contract.size() != 1 || static_cast<int>(first.lhs_batch.size()) != num_batch || q_free < 0 ||
        k_free < 0)
      return miss(MissReason::ShapeMismatch,
                  concat_text("the scores are not rows of q times rows of k: ", node_text(g_, product_)));
    if (second.lhs_contract != Axes{rank - 1} || second.lhs_batch != leading || v_free < 0)
      return miss(MissReason::ShapeMismatch,
                  concat_text("the probabilities are not multiplied with the rows of v: ", node_text(g_, weighted_)));
    auto side = [&](Value x, Axes batch, std::int64_t rows, std::int64_t depth) {
      batch.push_back(rows);
      batch.push_back(depth);
      return through_transposes(g_, {x, std::move(batch)});
    };
    const PermutedOperand sides[3] = {side(q, flat ? q_ones : first.lhs_batch, q_free, first.lhs_contract[0]),
                                      side(k, first.rhs_batch, k_free, first.rhs_contract[0]),
                                      side(v, second.rhs_batch, second.rhs_contract[0], v_free)};
    const Dim depth = g_.shape(q).dim(static_cast<int>(first.lhs_contract[0]));
    const Dim heads = num_batch == 2 ? g_.shape(q).dim(static_cast<int>(first.lhs_batch[1])) : Dim(1);
    const Dim v_depth = g_.shape(v).dim(static_cast<int>(v_free));
    if (!depth.is_static() || depth.is_static(0) || heads.is_static(0) || !v_depth.is_static() || v_depth.is_static(0))
      return miss(MissReason::ShapeMismatch,
                  concat_text("q has ", heads, " heads of ", depth, " elements, v ", v_depth, " elements"));

    Graph& stage = r_.stage();
    ops::Attention op;
    // The op counts heads with a number. A symbolic number of heads becomes part of the batch, with equal results.
    const bool in_batch = !heads.is_static();
    op.num_heads = op.kv_heads = in_batch ? 1 : heads.value();
    op.head_dim = depth.value();
    if (!(v_depth == depth)) op.v_head_dim = v_depth.value();
    op.scale = scale_;
    op.softcap = softcap_;
    // Heads next to their row, as projections produce them, need no transpose: [B, S, H, D] is [B, S, H * D].
    const Axes inner{0, 2, 1, 3};
    const bool rows_first =
        num_batch == 2 && !in_batch && sides[0].perm == inner && sides[1].perm == inner && sides[2].perm == inner;
    op.layout = num_batch == 2 && !rows_first && !in_batch ? HeadLayout::HeadsFirst : HeadLayout::Merged;
    auto joined = [&](Expr x) { return stage.reshape(x, {x.dim(0) * x.dim(1), x.dim(2), x.dim(3)}); };  // [B * H, S, D]
    std::vector<Value> operands;
    for (const PermutedOperand& s : sides) {
      Expr x = r_.expr(s.x);
      if (rows_first)
        x = stage.reshape(x, {x.dim(0), x.dim(1), heads * x.dim(3)});
      else if (Axes order = s.perm; !std::is_sorted(order.begin(), order.end()))
        x = stage.transpose(x, order);
      operands.push_back(num_batch == 0 ? stage.reshape(x, {1, x.dim(-2), x.dim(-1)}) : in_batch ? joined(x) : x);
    }
    if (mask_) {
      Expr m = mask(op, rank - 2);
      if (in_batch && !(m.dim(0).is_static(1) && m.dim(1).is_static(1))) {
        m = stage.expand(m, {shape.dim(0), shape.dim(1), m.dim(2), m.dim(3)});
        m = stage.reshape(m, {shape.dim(0) * shape.dim(1), 1, m.dim(2), m.dim(3)});
      }
      operands.push_back(m);
    }
    Expr y = stage.add(op, std::move(operands));
    if (const char* why = context_.refuses(r_, y, Value(weighted_)))
      return miss(MissReason::NotClaimed,
                  concat_text("the target does not claim ", node_text(stage, y.value().node), ": ", why));
    if (rows_first) y = stage.transpose(stage.reshape(y, {y.dim(0), y.dim(1), heads, v_depth}), inner);
    if (in_batch || num_batch == 0) y = stage.reshape(y, pv.shape().dims());
    r_.replace(Value(weighted_), y);
    context_.fused(kAttentionPattern);
  }

 private:
  // Reads [mask](softcap(scale * q k)) from the softmax back to the matmul. False when there is no matmul.
  bool scores(Value s) {
    between_ = {Value(softmax_)};
    if (g_.node(s.node).op.is<ops::Where>()) {
      const std::vector<Value>& in = g_.node(s.node).inputs;
      std::optional<double> fill = constant_scalar(g_, in[2]);
      if (!fill || !scaled_matmul(in[1])) return false;
      between_.insert(between_.begin(), s);
      if (!(*fill <= kOutweighed)) {
        miss(MissReason::NotFused, concat_text("masked scores are ", *fill, ", which is not low enough to mask"),
             "mask with -infinity");
        return false;
      }
      mask_ = in[0], fill_ = *fill;
      return same_shape(s);
    }
    if (as_binary(g_, s, BinaryKind::Add)) {
      const std::vector<Value>& in = g_.node(s.node).inputs;
      for (std::size_t i = 0; i < 2; ++i) {
        if (!scaled_matmul(in[i])) continue;
        between_.insert(between_.begin(), s);
        mask_ = in[1 - i];
        return same_shape(s);
      }
    }
    return scaled_matmul(s);
  }
  // A mask does not have larger dims than the scores.
  bool same_shape(Value s) {
    if (g_.shape(s) == g_.node(product_).shape()) return true;
    miss(MissReason::ShapeMismatch,
         concat_text("the mask broadcasts to ", g_.shape(s), " from scores ", g_.node(product_).shape()));
    return false;
  }

  // v as scale * dot, or as softcap * tanh(scale / softcap * dot).
  bool scaled_matmul(Value v) {
    const Scaled outer = peel_scale(g_, v);
    Scaled inner = outer;
    const Node* tanh = as_activation(g_, outer.base, ActivationKind::Tanh);
    if (tanh) {
      inner = peel_scale(g_, tanh->inputs[0]);
      inner.factor *= outer.factor;
    }
    if (!is_product(inner.base.node) || (tanh && !(outer.factor > 0))) return false;
    if (!std::isfinite(inner.factor) || !std::isfinite(outer.factor)) return false;
    product_ = inner.base.node;
    scale_ = inner.factor;
    softcap_ = tanh ? std::optional(outer.factor) : std::nullopt;
    between_.resize(1);
    for (Value at = v; at != inner.base; at = step(at)) between_.push_back(at);
    between_.push_back(inner.base);
    return true;
  }
  // The operand at which peel_scale and the softcap continue.
  Value step(Value v) const {
    const std::vector<Value>& in = g_.node(v.node).inputs;
    return in.size() > 1 && constant_scalar(g_, in[0]) ? in[1] : in[0];
  }

  // The mask operand as [B, H, S_q, S_k], with extent 1 where it repeats.
  Expr mask(ops::Attention& op, int num_batch) {
    Graph& stage = r_.stage();
    Value source = *mask_;
    while (g_.node(source.node).kind() == OpKind::Expand) source = g_.node(source.node).inputs[0];
    Expr m = r_.expr(source);
    Dims dims = m.shape().dims();
    dims.insert(dims.begin(), static_cast<std::size_t>(num_batch + 2 - m.rank()), Dim(1));
    if (num_batch < 2) dims.insert(dims.begin() + num_batch, static_cast<std::size_t>(2 - num_batch), Dim(1));
    if (dims != m.shape().dims()) m = stage.reshape(m, dims);
    op.mask = MaskKind::Bias;
    if (!fill_) return m;
    if (std::isinf(*fill_)) {
      op.mask = MaskKind::Custom;
      return m;
    }
    // A completely masked row keeps uniform weights: every score plus the fill value equals the fill value.
    const DType t = g_.node(product_).shape().dtype();
    return stage.where(m, stage.scalar(0, t), stage.scalar(*fill_, t));
  }

  void miss(MissReason reason, std::string detail, std::string hint = {}) const {
    context_.missed(kAttentionPattern, g_, softmax_, reason, std::move(detail), std::move(hint));
  }

  // Scores at or below this value have the effect of minus infinity beside any other score.
  static constexpr double kOutweighed = -1e30;

  GraphRewriter& r_;
  const Graph& g_;
  const PassContext& context_;
  NodeId softmax_, weighted_, product_;
  std::vector<Value> between_;  // nodes that disappear; each has one reader
  std::optional<Value> mask_;
  std::optional<double> fill_;  // of a where mask
  double scale_ = 1;
  std::optional<double> softcap_;
};

std::optional<Graph> run_recognize_attention(const Graph& g, const PassContext& context) {
  if (!context.claims->has(OpKind::Attention)) return std::nullopt;
  GraphRewriter r(g);
  for (NodeId id : r.nodes())
    if (g.node(id).kind() == OpKind::Softmax) Attention(r, context, id).run();
  if (!r.changed()) return std::nullopt;
  Graph joined = r.commit(recognize_attention.name).graph;
  // Heads move back next to their rows: the ops that split them cancel with those made here.
  std::optional<Graph> tidy = cancel_layout_ops.run(joined, context);
  return tidy ? std::move(*tidy) : std::move(joined);
}

}  // namespace

const Pass recognize_attention{
    "recognize-attention",
    "Joins q k^T, a constant scale, tanh softcap, a mask (an added bias, or where with a fill of -1e30 or less), the "
    "softmax over keys and the matmul with v into attention. Legal: at most two batch axes (the second one counts "
    "heads), nothing else reads the intermediates.",
    run_recognize_attention};

}  // namespace rlx
