// Binding: conditions first, then the graph, then the plan.
#include "rlx/compiler/lir_binder.h"

#include <algorithm>

#include "rlx/compiler/memory_plan.h"
#include "rlx/ir/op_def.h"

namespace rlx {

LirBinder::LirBinder(const LirModule& lir) : lir_(&lir), graph_(lir.graph) {
  // Inference on symbolic shapes believes what it cannot know; what the bounds do not prove is asked of every value.
  const SymbolRanges ranges = symbol_ranges(lir.graph);
  for (std::uint32_t i = 0; i < lir.graph.num_nodes(); ++i) {
    const Node& n = lir.graph.nodes()[i];
    std::vector<Shape> operands;
    for (Value v : n.inputs) operands.push_back(lir.graph.shape(v));
    std::vector<Dim> believed;
    (void)infer_shapes(n.op, operands, &believed);
    for (Dim& d : believed) {
      const bool known =
          std::any_of(conditions_.begin(), conditions_.end(), [&](const Condition& c) { return c.value == d; });
      if (!known && d.range(ranges).min < 0) conditions_.push_back({std::move(d), NodeId{i}});
    }
  }
}

LirModule LirBinder::bind(const SymbolBinding& values) const {
  for (const Condition& c : conditions_) {
    if (c.value.evaluate(values) >= 0) continue;
    std::string list;
    for (const std::string& name : c.value.symbols())
      list += concat_text(list.empty() ? "" : ", ", name, " = ", values.find(name)->second);
    throw Error(Diagnostic{ErrorCode::ShapeMismatch,
                           concat_text(op_text_name(lir_->graph.node(c.node).op), " does not fit with ", list, ": ",
                                       c.value, " is negative"),
                           node_where(lir_->graph, c.node),
                           "declare bounds of the symbols that keep it from happening"});
  }
  LirModule out;
  out.graph = graph_.bind(values);
  out.plan = resize_plan(out.graph, lir_->plan);
#ifdef RLX_VERIFY
  const std::vector<std::string> problems = check_plan(out.graph, out.plan);
  check(problems.empty(),
        problems.empty() ? std::string() : concat_text("memory plan at other extents: ", problems.front()));
#endif
  return out;
}

}  // namespace rlx
