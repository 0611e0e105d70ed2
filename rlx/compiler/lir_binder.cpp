// Binding: checks conditions first, then binds the graph, then the plan.
#include "rlx/compiler/lir_binder.h"

#include <algorithm>

#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/partition.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {

LirBinder::LirBinder(const LirModule& lir) : lir_(&lir), graph_(lir.graph) {
  // Inference on symbolic shapes assumes what it cannot prove. Assumptions that the bounds do not prove are checked for
  // every value.
  std::set<std::string> known;
  collect(lir.graph, symbol_ranges(lir.graph), std::nullopt, known);
}

// Shape assumptions of a body are reported under the node that holds it.
void LirBinder::collect(const Graph& g, const SymbolRanges& ranges, std::optional<NodeId> control,
                        std::set<std::string>& known) {
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    if (n.kind() == OpKind::Custom && !control) custom_.push_back(NodeId{i});
    ShapeRefs operands;
    for (Value v : n.inputs) operands.add(g.shape(v));
    std::vector<Dim> assumed;
    (void)infer_shapes(n.op, operands, &assumed);
    for (Dim& d : assumed) {
      if (d.is_static() ? d.value() >= 0 : d.range(ranges).min >= 0) continue;
      if (known.insert(d.text()).second) conditions_.push_back({std::move(d), control.value_or(NodeId{i})});
    }
    if (op_def(n.op).bodies == BodyKind::Programs)
      for (const Subgraph& body : body_graphs(n.op)) collect(*body, ranges, control.value_or(NodeId{i}), known);
  }
}

// The shape rule of a custom op may need numbers, so it is called again for each value.
void LirBinder::check_custom(const Graph& g, NodeId id) const {
  const Node& n = g.node(id);
  ShapeRefs operands;
  for (Value v : n.inputs) operands.add(g.shape(v));
  Result<Shapes> shapes = infer_shapes(n.op, operands);
  if (shapes && *shapes == n.shapes) return;
  Diagnostic d = shapes ? Diagnostic{ErrorCode::Unsupported,
                                     concat_text(op_text_name(n.op),
                                                 " has one result shape for symbols and another for their values"),
                                     {},
                                     "make its shape rule agree for both, or specialise the symbols"}
                        : shapes.error();
  d.where = node_where(g, id);
  throw Error(std::move(d));
}

void LirBinder::check_conditions(const SymbolBinding& values, std::uint32_t nodes) const {
  for (const Condition& c : conditions_) {
    if (c.node.index >= nodes || c.value.evaluate(values) >= 0) continue;
    std::string list;
    for (const std::string& name : c.value.symbols())
      list += concat_text(list.empty() ? "" : ", ", name, " = ", values.find(name)->second);
    throw Error(Diagnostic{ErrorCode::ShapeMismatch,
                           concat_text(op_text_name(lir_->graph.node(c.node).op), " does not fit with ", list, ": ",
                                       c.value, " is negative"),
                           node_where(lir_->graph, c.node), "declare bounds of the symbols that exclude these values"});
  }
}

namespace {
// `whole`: false for the steps before a sync point.
void verify_bound([[maybe_unused]] const LirModule& lir, [[maybe_unused]] bool whole) {
#ifdef RLX_VERIFY
  const std::vector<std::string> problems =
      lir.plan.opaque ? check_parts(lir.graph, lir.plan) : check_plan(lir.graph, lir.plan, {nullptr, 0, whole});
  check(problems.empty(),
        problems.empty() ? std::string() : concat_text("memory plan at the bound extents: ", problems.front()));
#endif
}
}  // namespace

namespace {
// Kernels of bodies get the same values.
void set_symbols(LirModule& lir, const SymbolBinding& values) {
  lir.symbols = values;
  for (LirBodies& b : lir.plan.bodies)
    for (LirModule& m : b.modules) set_symbols(m, values);
  for (LirPart& p : lir.plan.parts)
    for (LirModule& m : p.modules) set_symbols(m, values);
}
}  // namespace

LirModule LirBinder::bind(const SymbolBinding& values) const {
  check_conditions(values, static_cast<std::uint32_t>(lir_->graph.num_nodes()));
  LirModule out;
  out.graph = graph_.bind(values);
  for (NodeId id : custom_) check_custom(out.graph, id);
  out.plan = resize_plan(out.graph, lir_->plan);
  set_symbols(out, values);
  verify_bound(out, true);
  return out;
}

LirModule LirBinder::bind_until(const SyncPoint& cut, const SymbolBinding& values) const {
  check_conditions(values, cut.nodes);
  LirModule out;
  out.graph = graph_.bind_first(cut.nodes, values);
  if (lir_->plan.opaque) out.graph.set_outputs(cut.sources);
  for (NodeId id : custom_)
    if (id.index < cut.nodes) check_custom(out.graph, id);
  out.plan = resize_plan(out.graph, plan_until(lir_->plan, cut));
  set_symbols(out, values);
  verify_bound(out, false);
  return out;
}

}  // namespace rlx
