// fuse-residual-norm: a residual sum and the norm that reads it become one op.
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

struct Match {
  Value x, residual;
  std::optional<Value> bias;
};

bool is_vector_of(const Shape& s, const Dim& n) { return s.rank() == 1 && s.dim(0) == n; }

const ops::Binary* as_add(const Graph& g, Value v) {
  const auto* b = g.node(v.node).op.get_if<ops::Binary>();
  return b && b->fn == BinaryKind::Add ? b : nullptr;
}

// One norm and the sum that it reads.
class NormFusion {
 public:
  NormFusion(GraphRewriter& r, const PassContext& context, ParamOnly& param_only, NodeId norm)
      : r_(r),
        g_(r.source()),
        context_(context),
        param_only_(param_only),
        norm_(norm),
        rms_(g_.node(norm).kind() == OpKind::RmsNorm),
        sum_(g_.node(norm).inputs[0]) {}

  void run() {
    const Node& norm = g_.node(norm_);
    const OpKind fused_kind = rms_ ? OpKind::FusedResidualRmsNorm : OpKind::FusedResidualLN;
    if (!as_add(g_, sum_) || !context_.claims->has(fused_kind) || r_.is_replaced(sum_.node)) return;
    const Shape& shape = g_.shape(sum_);
    const std::vector<std::int64_t>& axes = rms_ ? norm.op.as<ops::RmsNorm>().axes : norm.op.as<ops::LayerNorm>().axes;
    if (axes.size() != 1 || axes[0] != shape.rank() - 1)
      return miss(MissReason::AxisNotLast, concat_text("the norm runs over axes ", dims_text(axes), " of ", shape),
                  "normalise over the last axis");
    // Other readers of the sum get result 1, so no operand of the fused op may be the sum or depend on it.
    for (std::size_t i = 1; i < norm.inputs.size(); ++i) {
      const Value v = norm.inputs[i];
      if (v == sum_) return miss(MissReason::ShapeMismatch, concat_text("the norm reads the sum ", sum_, " twice"));
      if (v.node.index > sum_.node.index && (!param_only_(g_, v) || param_only_(g_, sum_)))
        return miss(MissReason::ShapeMismatch, concat_text(v, " is computed after the sum ", sum_));
    }
    std::optional<Match> m = match(shape);
    if (!m || emit(*m)) return;
    std::optional<Match> two =
        m->bias ? match_pair(shape) : std::nullopt;  // the target may claim only the variant without bias
    if (!two || !emit(*two)) not_claimed(fused_kind);
  }

 private:
  std::string pattern() const { return rms_ ? "residual_rms_norm" : "residual_ln"; }
  void miss(MissReason reason, std::string detail, std::string hint = {}) {
    context_.missed(pattern(), g_, norm_, reason, std::move(detail), std::move(hint));
  }
  void not_claimed(OpKind kind) {
    miss(MissReason::NotClaimed,
         concat_text("the target does not claim ", op_def(kind).name, " for ", g_.shape(sum_), ": ", why_not_));
  }

  // Matches a sum of two values of the norm's shape.
  std::optional<Match> match_pair(const Shape& shape) const {
    const std::vector<Value>& in = g_.node(sum_.node).inputs;
    if (g_.shape(in[0]) == shape && g_.shape(in[1]) == shape) return Match{in[0], in[1], {}};
    return std::nullopt;
  }

  // A value + vector that only this sum reads, and that no matmul's epilogue would absorb.
  std::optional<std::pair<Value, Value>> biased(Value v, const Shape& shape) const {
    if (!as_add(g_, v) || !r_.uses().single_use(v) || r_.is_replaced(v.node)) return std::nullopt;
    const std::vector<Value>& in = g_.node(v.node).inputs;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!(g_.shape(in[i]) == shape) || !is_vector_of(g_.shape(in[1 - i]), shape.dim(-1))) continue;
      OpKind producer = g_.node(in[i].node).kind();
      const bool product = producer == OpKind::DotGeneral || producer == OpKind::MatMul || producer == OpKind::FusedDot;
      if (product && r_.uses().single_use(in[i]) && context_.claims->has(OpKind::FusedDot)) return std::nullopt;
      return std::pair(in[i], in[1 - i]);
    }
    return std::nullopt;
  }

  std::optional<Match> match(const Shape& shape) {
    const std::vector<Value>& in = g_.node(sum_.node).inputs;
    if (std::optional<Match> pair = match_pair(shape)) {
      if (auto b = biased(pair->x, shape)) return Match{b->first, pair->residual, b->second};
      if (auto b = biased(pair->residual, shape)) return Match{pair->x, b->first, b->second};
      return pair;
    }
    // (x + residual) + bias
    for (std::size_t i = 0; i < 2; ++i) {
      if (!(g_.shape(in[i]) == shape) || !is_vector_of(g_.shape(in[1 - i]), shape.dim(-1))) continue;
      if (!as_add(g_, in[i]) || !r_.uses().single_use(in[i]) || r_.is_replaced(in[i].node)) break;
      const std::vector<Value>& inner = g_.node(in[i].node).inputs;
      if (g_.shape(inner[0]) == shape && g_.shape(inner[1]) == shape) return Match{inner[0], inner[1], in[1 - i]};
    }
    miss(MissReason::ShapeMismatch, concat_text("the norm reads ", g_.shape(in[0]), " + ", g_.shape(in[1]),
                                                "; a residual must have the shape of the norm, ", shape));
    return std::nullopt;
  }

  bool emit(const Match& m) {
    const Node& norm = g_.node(norm_);
    Graph& stage = r_.stage();
    std::vector<std::pair<std::string_view, Expr>> operands{{"x", r_.expr(m.x)}, {"residual", r_.expr(m.residual)}};
    if (m.bias) operands.emplace_back("bias", r_.expr(*m.bias));
    const auto places = static_cast<int>(norm.inputs.size());
    for (int i = 1; i < places; ++i)
      operands.emplace_back(operand_name(norm.op, places, i), r_.expr(norm.inputs[static_cast<std::size_t>(i)]));
    const OpBox op = rms_ ? OpBox(ops::FusedResidualRmsNorm{norm.op.as<ops::RmsNorm>().eps, {}})
                          : OpBox(ops::FusedResidualLN{norm.op.as<ops::LayerNorm>().eps, {}});
    const Expr fused = stage.add_named(op, operands);
    why_not_ = context_.refuses(r_, fused, Value(norm_));
    if (why_not_) return false;
    // The sum follows y, and the norm's other results follow the sum.
    r_.replace(Value(norm_), fused);
    const auto results = static_cast<std::uint32_t>(norm.shapes.size());
    for (std::uint32_t i = 1; i < results; ++i) r_.replace(Value(norm_, i), fused.result(i + 1));
    if (r_.uses().use_count(sum_) > 1) r_.replace(sum_, fused.result(1));
    context_.fused(pattern());
    return true;
  }

  GraphRewriter& r_;
  const Graph& g_;
  const PassContext& context_;
  ParamOnly& param_only_;
  NodeId norm_;
  bool rms_;
  Value sum_;
  const char* why_not_ = nullptr;  // the last refusal of the target
};

std::optional<Graph> run_fuse_residual_norm(const Graph& g, const PassContext& context) {
  GraphRewriter r(g);
  ParamOnly param_only;
  for (NodeId id : r.nodes())
    if (g.node(id).kind() == OpKind::LayerNorm || g.node(id).kind() == OpKind::RmsNorm)
      NormFusion(r, context, param_only, id).run();
  if (!r.changed()) return std::nullopt;
  return r.commit(fuse_residual_norm.name).graph;
}

}  // namespace

const Pass fuse_residual_norm{"fuse-residual-norm",
                              "Joins a sum of two values of one shape [+ a vector] with the LayerNorm or RmsNorm of "
                              "its last axis. Legal always: other readers of the sum get it as the second result.",
                              run_fuse_residual_norm};

}  // namespace rlx
