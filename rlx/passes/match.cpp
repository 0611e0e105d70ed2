// Patterns shared by several fusion passes.
#include "rlx/passes/match.h"

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/shape.h"

namespace rlx {
namespace {

bool is_row_vector(const Shape& s, const Dim& n) { return s.rank() == 1 && s.dim(0) == n; }

// The operand of a FusedDot whose epilogue is exactly acc + operand with operand [N].
std::optional<Value> bias_epilogue(const Graph& g, const Node& n, const Dim& width) {
  const Graph& body = *n.op.as<ops::FusedDot>().epilogue;
  if (n.inputs.size() != 3 || body.num_nodes() != 3) return std::nullopt;
  const Node& last = body.nodes()[2];
  const auto* add = last.op.get_if<ops::Binary>();
  if (!add || add->fn != BinaryKind::Add || body.outputs()[0] != Value(NodeId{2}) || last.inputs[0] == last.inputs[1])
    return std::nullopt;
  if (!is_row_vector(g.shape(n.inputs[2]), width)) return std::nullopt;
  return n.inputs[2];
}

}  // namespace

std::optional<BiasedMatmul> biased_matmul_at(const Graph& g, const UseIndex& uses, NodeId dot) {
  const Node& n = g.node(dot);
  if (n.kind() != OpKind::DotGeneral && n.kind() != OpKind::FusedDot) return std::nullopt;
  std::optional<MatmulDims> form = as_matmul(g, dot);
  if (!form || !form->batch.empty() || form->lhs_transposed || g.shape(form->rhs).rank() != 2) return std::nullopt;
  BiasedMatmul p{dot, Value(dot), form->lhs, form->rhs, form->rhs_transposed, form->n, {}};
  if (n.kind() == OpKind::FusedDot) {
    p.bias = bias_epilogue(g, n, form->n);
    if (!p.bias) return std::nullopt;
    return p;
  }
  if (!uses.single_use(p.result)) return p;
  const UseIndex::Use use = uses.uses(p.result)[0];
  if (!as_binary(g, use.user, BinaryKind::Add) || !(g.shape(use.user) == g.shape(p.result))) return p;
  const Value other = g.node(use.user).inputs[1 - use.operand];
  if (is_row_vector(g.shape(other), form->n)) p.result = use.user, p.bias = other;
  return p;
}

std::optional<BiasedMatmul> biased_product_of(const Graph& g, const UseIndex& uses, Value v) {
  if (as_binary(g, v, BinaryKind::Add)) {
    for (Value in : g.node(v.node).inputs) {
      std::optional<BiasedMatmul> p = biased_matmul_at(g, uses, in.node);
      if (p && p->result == v) return p;
    }
    return std::nullopt;
  }
  std::optional<BiasedMatmul> p = biased_matmul_at(g, uses, v.node);
  if (p && p->result != v) p->result = v, p->bias.reset();  // the bias is added after v
  return p;
}

std::optional<AxisRange> axis_range(const Graph& g, Value v) {
  const Node& n = g.node(v.node);
  const auto* s = n.op.get_if<ops::Slice>();
  if (!s) return std::nullopt;
  const Shape& x = g.shape(n.inputs[0]);
  std::optional<AxisRange> out;
  for (int d = 0; d < x.rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (!s->strides.empty() && s->strides[i] != 1) return std::nullopt;
    if (s->starts[i].is_static(0) && s->limits[i] == x.dim(d)) continue;
    if (out) return std::nullopt;
    out = AxisRange{n.inputs[0], d, s->starts[i], s->limits[i]};
  }
  return out;
}

const Node* as_binary(const Graph& g, Value v, BinaryKind fn) {
  const Node& n = g.node(v.node);
  const auto* op = n.op.get_if<ops::Binary>();
  return op && op->fn == fn ? &n : nullptr;
}

const Node* as_activation(const Graph& g, Value v, ActivationKind fn) {
  const Node& n = g.node(v.node);
  const auto* op = n.op.get_if<ops::Activation>();
  return op && op->fn == fn ? &n : nullptr;
}

std::optional<WithConstant> with_constant(const Graph& g, const Node& n) {
  const auto* op = n.op.get_if<ops::Binary>();
  if (!op) return std::nullopt;
  const bool commutes = op->fn == BinaryKind::Add || op->fn == BinaryKind::Mul;
  for (std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    if (i == 0 && !commutes) break;
    if (std::optional<double> c = constant_scalar(g, n.inputs[i])) return WithConstant{n.inputs[1 - i], *c};
  }
  return std::nullopt;
}

Scaled peel_scale(const Graph& g, Value v) {
  Scaled s{v, 1};
  while (true) {
    const Node& n = g.node(s.base.node);
    if (as_activation(g, s.base, ActivationKind::Neg)) {
      s = {n.inputs[0], -s.factor};
      continue;
    }
    const bool mul = as_binary(g, s.base, BinaryKind::Mul), div = as_binary(g, s.base, BinaryKind::Div);
    std::optional<WithConstant> c = mul || div ? with_constant(g, n) : std::nullopt;
    if (!c || !(g.shape(c->other) == n.shape())) return s;
    s = {c->other, mul ? s.factor * c->constant : s.factor / c->constant};
  }
}

}  // namespace rlx
