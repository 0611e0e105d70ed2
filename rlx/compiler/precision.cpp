// Inserts casts between precision categories.
#include "rlx/compiler/precision.h"

#include <algorithm>
#include <map>
#include <memory>

#include "rlx/ir/functions.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {

PrecisionCategory precision_category(OpKind kind) { return op_def(kind).precision; }

bool PrecisionPolicy::is_f32() const {
  return std::all_of(dtypes.begin(), dtypes.end(), [](DType t) { return t == DType::F32; });
}

PrecisionPolicy PrecisionPolicy::of_precision(Precision p) {
  if (static_cast<int>(p) > static_cast<int>(Precision::BF16))
    detail::throw_no_enumerator("Precision", static_cast<std::int64_t>(p));
  if (p == Precision::F32) return {};
  DType t = p == Precision::F16 ? DType::F16 : DType::BF16;
  return {{t, DType::F32, t, t}};
}

PrecisionPolicy PrecisionPolicy::with_matmul_precision(MatmulPrecision precision, KeepValues keep_values) {
  (void)matmul_precision_name(precision);
  PrecisionPolicy policy;
  policy.matmul_precision = precision;
  policy.keep_values = keep_values;
  return policy;
}

namespace {

// Functions whose result exceeds the range of F16 for ordinary arguments.
bool overflows(const Node& n) {
  if (const auto* a = n.op.get_if<ops::Activation>()) return function_row(a->fn).f16 == F16Range::Leaves;
  if (const auto* b = n.op.get_if<ops::Binary>()) return binary_row(b->fn).f16 == F16Range::Leaves;
  return false;
}

bool body_overflows(const Node& n) {
  for (const AttrField& f : op_def(n.kind()).attrs)
    if (f.type == AttrType::Body && op_def(n.kind()).precision != PrecisionCategory::Stated)
      for (const Node& inner : std::get<Subgraph>(f.get(n.op.data()))->nodes())
        if (overflows(inner)) return true;
  return false;
}

// A copy of a body whose F32 inputs, constants and cast targets have dtype `t`.
Subgraph retype(const Graph& body, DType t) {
  auto out = std::make_shared<Graph>(body.name());
  for (const Node& n : body.nodes()) {
    OpBox op = n.op;
    if (const auto* in = n.op.get_if<ops::Input>(); in && in->dtype == DType::F32)
      op = ops::Input{in->name, in->dims, t};
    if (const auto* c = n.op.get_if<ops::Constant>(); c && c->value.dtype() == DType::F32)
      op = ops::Constant{c->value.cast(t)};
    if (const auto* c = n.op.get_if<ops::Cast>(); c && c->to == DType::F32) op = ops::Cast{t};
    out->add(std::move(op), n.inputs, n.origin.loc);
  }
  out->set_outputs(body.outputs());
  return out;
}

OpBox with_dtype(const OpBox& op, DType t) {
  const OpDef& def = op_def(op.kind());
  bool has_body =
      std::any_of(def.attrs.begin(), def.attrs.end(), [](const AttrField& f) { return f.type == AttrType::Body; });
  if (!has_body && !op.is<ops::Iota>()) return op;
  std::shared_ptr<void> copy = make_default_op(op.kind());
  for (const AttrField& f : def.attrs) {
    AttrValue value = f.get(op.data());
    if (auto* body = std::get_if<Subgraph>(&value)) *body = retype(**body, t);
    f.set(copy.get(), std::move(value));
  }
  return OpBox(op.kind(), std::move(copy));
}

Graph apply_outside_bodies(const Graph& g, const PrecisionPolicy& policy);

}  // namespace

Graph apply_precision(const Graph& g, const PrecisionPolicy& policy) {
  if (policy.is_f32()) return g;
  // Bodies first: values that cross the border of a body keep their dtype.
  if (const std::optional<Graph> inner = change_bodies(
          g, [&](const Graph& body) -> std::optional<Graph> { return drop_dead(apply_precision(body, policy)); }))
    return apply_outside_bodies(*inner, policy);
  return apply_outside_bodies(g, policy);
}

namespace {
Graph apply_outside_bodies(const Graph& g, const PrecisionPolicy& policy) {
  Rebuilder r(g, "mixed-precision");
  std::map<std::pair<Value, DType>, Value> casts;  // by value of the new graph: each is cast once
  auto as = [&](Value v, DType t) {
    if (r.graph().shape(v).dtype() == t) return v;
    auto [it, fresh] = casts.try_emplace({v, t});
    if (fresh) it->second = r.graph().add(ops::Cast{t}, {v}).value();
    return it->second;
  };
  // True for F32 values of the source graph, the only ones that the policy changes.
  auto participates = [&](Value v) { return g.shape(v).dtype() == DType::F32; };
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    NodeId id{i};
    const Node& n = g.node(id);
    bool leaf = op_def(n.kind()).is_leaf() || n.inputs.empty();
    if (leaf) {
      r.copy(id);
      continue;
    }
    DType t = overflows(n) || body_overflows(n) ? DType::F32 : policy.of(op_def(n.op).precision);
    std::vector<Value> operands;
    bool any = false;
    for (Value v : n.inputs) {
      Value now = r.mapped(v);
      if (participates(v)) now = as(now, t), any = true;
      operands.push_back(now);
    }
    Expr e = r.graph().add(any && op_def(n.op).precision != PrecisionCategory::Stated ? with_dtype(n.op, t) : n.op,
                           std::move(operands), n.origin.loc);
    std::vector<Expr> results;
    for (std::uint32_t k = 0; k < n.num_results(); ++k) results.push_back(e.result(k));
    r.replace(id, results);
  }
  // Inputs and outputs keep their dtypes.
  Graph& out = r.graph();
  copy_ends(out, g, [&](Value v) { return as(r.mapped(v), g.shape(v).dtype()); });
  return std::move(out);
}

}  // namespace

}  // namespace rlx
