// Rewrites variances as results of layer norms whose kernels can skip the normalized result.
#include "rlx/compiler/norm_variances.h"

#include "rlx/device/target.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/match.h"

namespace rlx {
namespace {

using VarianceAxes = std::vector<std::int64_t>;
// Longer groups stay with reductions, which sum in blocks and split one group among threads.
constexpr double kLongestGroup = 16384;

// True when v is the mean of x over `axes`, with these axes kept as 1, ready to broadcast against x.
bool is_mean_over(const Graph& g, Value v, Value x, const VarianceAxes& axes) {
  const Shape& of = g.shape(x);
  if (g.shape(v).rank() != of.rank()) return false;
  while (g.node(v.node).kind() == OpKind::StopGradient ||
         (g.node(v.node).kind() == OpKind::Expand && g.shape(g.node(v.node).inputs[0]).rank() == of.rank()))
    v = g.node(v.node).inputs[0];
  Dims want = of.dims();
  for (std::int64_t a : axes) want[static_cast<std::size_t>(a)] = 1;
  if (!(g.shape(v).dims() == want)) return false;
  if (g.node(v.node).kind() == OpKind::Reshape) v = g.node(v.node).inputs[0];
  const auto* mean = g.node(v.node).op.get_if<ops::Reduce>();
  return mean && mean->fn == ReduceKind::Mean && mean->axes == axes && g.node(v.node).inputs[0] == x;
}

// If v is a square, square(d) or d * d, and the only use of d, returns d.
std::optional<Value> sole_square(const Graph& g, const UseIndex& uses, Value v) {
  if (!uses.single_use(v)) return std::nullopt;
  const Node& n = g.node(v.node);
  const bool product = as_binary(g, v, BinaryKind::Mul) && n.inputs[0] == n.inputs[1];
  if (!product && !as_activation(g, v, ActivationKind::Square)) return std::nullopt;
  const Value d = n.inputs[0];
  if (uses.is_output(d) || uses.uses(d).size() != n.inputs.size()) return std::nullopt;
  return d;
}

// Rewrites the sum or mean of squared distances from the mean at node `id`.
void variance_at(GraphRewriter& r, const PassContext& context, const Target& target, NodeId id) {
  const Graph& g = r.source();
  const Node& n = g.node(id);
  const auto& op = n.op.as<ops::Reduce>();
  const DType t = n.shape().dtype();
  if ((op.fn != ReduceKind::Sum && op.fn != ReduceKind::Mean) || (t != DType::F32 && t != DType::F64)) return;
  const std::optional<Value> d = sole_square(g, r.uses(), n.inputs[0]);
  const Node* const centred = d ? as_binary(g, *d, BinaryKind::Sub) : nullptr;
  if (!centred) return;
  const Value x = centred->inputs[0];
  const Shape& shape = g.shape(x);
  if (!(shape == g.shape(*d)) || op.axes.empty() || !is_mean_over(g, centred->inputs[1], x, op.axes)) return;
  double count = 1;
  for (std::int64_t a : op.axes) {
    const Dim& dim = shape.dim(static_cast<int>(a));
    if (!dim.is_static() || dim.value() == 0) return;
    count *= static_cast<double>(dim.value());
  }
  if (count > kLongestGroup) return;
  Graph& stage = r.stage();
  const Expr y = stage.layer_norm(r.expr(x), std::nullopt, std::nullopt, 0.0, op.axes);
  const NodeId norm = Value(y).node;
  if (context.refuses(r, y, Value(id)) || !target.skips_unread(stage, norm, 0)) return;
  // Not 1 / rstd^2, because that square overflows when the variance is subnormal.
  const Expr deviation = stage.recip(y.result(2));
  Expr variance = stage.mul(deviation, deviation);
  if (op.fn == ReduceKind::Sum) variance = stage.mul(variance, stage.scalar(count, t));
  r.replace(Value(id), op.keep_dims ? variance : stage.reshape(variance, n.shape().dims()));
  context.fused("variance");
}

std::optional<Graph> run_norm_variances(const Graph& g, const PassContext& context) {
  const auto* const target = dynamic_cast<const Target*>(context.claims);
  if (!target || target->places()) return std::nullopt;
  GraphRewriter r(g);
  for (NodeId id : r.nodes())
    if (g.node(id).kind() == OpKind::Reduce) variance_at(r, context, *target, id);
  if (!r.changed()) return std::nullopt;
  return r.commit(norm_variances.name).graph;
}

}  // namespace

const Pass norm_variances{
    "norm-variances",
    "Computes the sum or mean of (x - mean x)^2 from the rstd of a layer norm whose y is unread: x is read once, and "
    "no result of its size is written. Legal: F32 and F64, the differences have no other reader, and the target's norm "
    "over these axes can skip y.",
    run_norm_variances};

}  // namespace rlx
