// Checks a body against the operands of its op.
#include "rlx/ops/body.h"

#include "rlx/ir/inspect.h"

namespace rlx {

Result<Shapes> infer_body(const InferContext& c, const Graph& body, std::span<const Shape> operands,
                          std::string_view what) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < body.num_nodes(); ++i) {
    const NodeId id{static_cast<std::uint32_t>(i)};
    const Node& node = body.node(id);
    if (node.kind() == OpKind::Param || node.kind() == OpKind::State)
      return c.attr_error(what, " holds a ", op_def(node.kind()).name, "; pass it as an operand");
    if (node.kind() == OpKind::Input) {
      if (next == operands.size())
        return c.attr_error(what, " has more inputs than the ", operands.size(), " operands of the node");
      if (node.shapes.size() != 1 || !(node.shape() == operands[next])) {
        Diagnostic d = c.error("input ", next, " of ", what, " is ", node.shapes.empty() ? Shape() : node.shape(),
                               ", but its operand is ", operands[next]);
        d.hint = "declare the input with the operand's shape; the ops of the body broadcast";
        return d;
      }
      ++next;
      continue;
    }
    ShapeRefs in;
    for (Value v : node.inputs) {
      if (v.node.index >= i || v.result >= body.node(v.node).shapes.size())
        return c.attr_error(what, " is not in topological order");
      in.add(body.shape(v));
    }
    Result<Shapes> inferred = infer_shapes(node.op, in, c.assumed());
    if (!inferred) return c.error("in ", what, ": ", inferred.error().message);
    if (!(*inferred == node.shapes))
      return c.error("in ", what, ": ", node_text(body, id), " should be ", inferred->front());
  }
  if (next != operands.size())
    return c.attr_error(what, " has ", next, " inputs, but the node has ", operands.size(), " operands for it");
  if (!body.state_updates().empty()) return c.attr_error(what, " must not update a state");
  Shapes results;
  for (Value v : body.outputs()) {
    if (v.node.index >= body.num_nodes() || v.result >= body.node(v.node).shapes.size())
      return c.attr_error(what, " returns a value that does not exist");
    results.push_back(body.shape(v));
  }
  return results;
}

Result<Shapes> infer_epilogue(const InferContext& c, const Subgraph& epilogue, const Shape& acc,
                              std::string_view what) {
  if (!epilogue) return c.attr_error("needs an epilogue");
  std::vector<Shape> operands{acc};
  for (int i = 2; i < c.num_inputs(); ++i) operands.push_back(c.input(i));
  auto results = infer_body(c, *epilogue, operands, "the epilogue");
  if (!results) return results.error();
  if (results->size() != 1) return c.attr_error("the epilogue must have one output, it has ", results->size());
  const Shape& result = results->front();
  if (result.dims() != acc.dims())
    return c.error("the epilogue changes the dimensions of ", what, " from ", acc, " to ", result);
  return make_shapes(result);
}

void decompose_epilogue(DecomposeContext& c, const Graph& epilogue, Expr acc) {
  std::vector<Expr> operands{acc};
  for (int i = 2; i < c.num_inputs(); ++i) operands.push_back(c.input(i));
  c.set_result(inline_body(c.graph(), epilogue, operands)[0]);
}

}  // namespace rlx
