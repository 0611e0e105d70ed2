// Functions of the rule contexts: checks, zeros, the reverse of broadcasting, lifting, decomposition.
#include "rlx/ir/op_def.h"

#include <algorithm>

namespace rlx {

Diagnostic InferContext::make(ErrorCode code, std::string message) const {
  return Diagnostic{code, concat_text(op_text_name(op_), ": ", message), {}, {}};
}

std::optional<Diagnostic> InferContext::check_axis(std::int64_t axis, const Shape& x) const {
  if (axis >= 0 && axis < x.rank()) return std::nullopt;
  return attr_error("axis ", axis, " is outside ", x);
}

std::optional<Diagnostic> InferContext::check_same_dtype(int first, int last) const {
  for (int i = first + 1; i < last; ++i)
    if (input(i).dtype() != input(first).dtype())
      return dtype_error("operand ", i, " is ", input(i), ", operand ", first, " is ", input(first));
  return std::nullopt;
}

namespace {
// Whether a tensor can have this shape, by its integer extents.
bool possible(const Shape& shape) {
  std::int64_t elements = 1;
  bool none = false, too_many = false;
  for (const Dim& d : shape.dims()) {
    if (!d.is_static()) continue;
    if (d.value() < 0) return false;
    none = none || d.value() == 0;
    too_many = too_many || __builtin_mul_overflow(elements, d.value(), &elements) || elements >= kMaxElements;
  }
  return none || !too_many;
}
}  // namespace

Shapes InferContext::inputs() const {
  Shapes out;
  out.reserve(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) out.push_back(inputs_.at(static_cast<std::int64_t>(i)));
  return out;
}

Result<Shapes> infer_shapes(const OpBox& op, const ShapeRefs& inputs, std::vector<Dim>* assumed) {
  const OpDef& def = op_def(op);
  InferContext c(op, inputs, assumed);
  if (auto e = check_operand_count(op, static_cast<int>(inputs.size()))) return *e;
  for (const AttrField& f : def.attrs) {  // the rule would dereference a body that was never set
    if (f.type == AttrType::Body && !std::get<Subgraph>(f.get(op.data())))
      return c.attr_error("attribute '", f.name, "' is not set");
    if (f.type == AttrType::Enum) {
      auto v = std::get<std::int64_t>(f.get(op.data()));
      if (v < 0 || v >= static_cast<std::int64_t>(f.enum_names.size()))
        return c.attr_error("attribute '", f.name, "' is out of range");
    }
  }
  try {
    Result<Shapes> shapes = def.infer(c);
    if (shapes.ok() && shapes->empty()) {
      const bool custom = op.kind() == OpKind::Custom;
      Diagnostic d = c.attr_error(custom ? "the shape rule returns no result" : "the body returns no value");
      d.hint = custom ? concat_text("correct the OpDef of '", op_text_name(op), "' given to register_op")
                      : "return at least one value";
      return d;
    }
    if (shapes.ok() && op.kind() == OpKind::Custom)
      for (std::size_t r = 0; r < shapes->size(); ++r)
        if (!possible((*shapes)[r])) {
          Diagnostic d = c.error("the shape rule returns ", (*shapes)[r], " for result ", r,
                                 ": extents must be 0 or more, and their product below 2^60");
          d.hint = concat_text("correct the OpDef of '", op_text_name(op), "' given to register_op");
          return d;
        }
    return shapes;
  } catch (const Error& e) {  // such as overflow in Dim arithmetic
    if (e.code() == ErrorCode::Internal) throw;
    Diagnostic d = e.diagnostic();
    d.message = concat_text(op_text_name(op), ": ", d.message);
    return d;
  }
}

void detail::throw_no_rule(const char* reason) {
  throw Error(ErrorCode::Unsupported, concat_text("the op has no such rule: ", reason ? reason : "it is derived"));
}

void detail::broken_rule(const OpBox& op, const std::string& what) {
  if (op.kind() == OpKind::Custom)
    throw Error(ErrorCode::InvalidArgument, what,
                concat_text("correct the OpDef of '", op_text_name(op), "' given to register_op"));
  check(false, what);
}

Expr BuildContext::full(const Shape& shape, double value) const {
  Expr s = graph_.scalar(value, shape.dtype());
  return shape.rank() == 0 ? s : graph_.expand(s, shape.dims());
}
Expr BuildContext::own(const Expr& e) const {
  if (&e.graph() != &graph_)  // graph() throws for an empty or dead value
    throw Error(ErrorCode::InvalidArgument,
                concat_text("a rule of ", op_text_name(op_), " returns a value of another graph"),
                "build the value in context.graph(), from context.input(i)");
  return e;
}
Expr BuildContext::zeros(const Shape& shape) const { return full(shape, 0); }

namespace {
// g summed over the axes that broadcasting from `to` added or stretched. None for a g that no broadcast gives.
std::optional<Expr> sum_to_shape(Graph& graph, Expr g, const Shape& to) {
  if (g.shape().dims() == to.dims()) return g;
  int extra = g.rank() - to.rank();
  if (extra < 0) return std::nullopt;
  for (int i = 0; i < to.rank(); ++i) {
    const Dim &from = g.dim(i + extra), &kept = to.dim(i);
    if (from.is_static() && kept.is_static() && from != kept && !kept.is_static(1)) return std::nullopt;
  }
  std::vector<std::int64_t> axes;
  for (int i = 0; i < g.rank(); ++i)
    if (i < extra || (to.dim(i - extra).is_static(1) && !g.dim(i).is_static(1))) axes.push_back(i);
  if (!axes.empty()) g = graph.sum(g, axes, true);
  return g.shape().dims() == to.dims() ? g : graph.reshape(g, to.dims());
}
}  // namespace

void VjpContext::throw_no_notes() const {
  throw Error(ErrorCode::InvalidArgument,
              concat_text("the vjp rule of ", op_text_name(box()), " reads notes, but no augment rule made any"),
              "give the OpDef an augment rule that returns notes");
}

void VjpContext::accumulate(int i, Expr g) {
  g = own(g);
  if (!wants(i)) return;
  const Shape& to = input(i).shape();
  if (g.dtype() != to.dtype()) g = graph().cast(g, to.dtype());
  const std::optional<Expr> summed = sum_to_shape(graph(), g, to);
  if (!summed)
    detail::broken_rule(box(), concat_text("the vjp rule of ", op_text_name(box()), " gives ", g.shape(),
                                           " as the gradient of operand ", i, ", which is ", to));
  g = *summed;
  Expr& slot = gradients_[detail::checked_index("operand", i, gradients_.size())];
  slot = slot.valid() ? graph().add(slot, g) : g;
}

void JvpContext::set_tangent(int r, Expr t) {
  t = own(t);
  const Shape& to = result_shape(r);
  if (t.dtype() != to.dtype()) t = graph().cast(t, to.dtype());
  if (t.shape().dims() != to.dims()) t = graph().expand(t, to.dims());
  result_tangents_[static_cast<std::size_t>(r)] = t;
}

void JvpContext::add_tangent(int r, Expr t) {
  Expr old = result_tangents_[detail::checked_index("result", r, result_tangents_.size())];
  set_tangent(r, old.valid() ? graph().add(old, t) : t);
}

Expr BatchContext::lifted(int i) const {
  Expr x = input(i);
  if (is_batched(i)) return x;
  Dims dims{batch_};
  dims.insert(dims.end(), x.shape().dims().begin(), x.shape().dims().end());
  return graph().expand(x, dims);
}

Expr BatchContext::aligned(int i, int to_rank) const {
  Expr x = input(i);
  int missing = to_rank - rank(i);
  check(missing >= 0, "aligned to a lower rank");
  if (!is_batched(i)) return x;  // right-aligned broadcasting covers the other axes
  if (missing == 0) return x;
  Dims dims{batch_};
  dims.insert(dims.end(), static_cast<std::size_t>(missing), Dim(1));
  dims.insert(dims.end(), x.shape().dims().begin() + 1, x.shape().dims().end());
  return graph().reshape(x, dims);
}

void BatchContext::emit_lifted(OpBox op) {
  std::vector<Value> operands;
  for (int i = 0; i < num_inputs(); ++i) operands.push_back(lifted(i));
  Expr first = graph().add(std::move(op), std::move(operands));
  for (int r = 0; r < num_results(); ++r) set_result(r, first.result(static_cast<std::uint32_t>(r)));
}

Cost CostContext::with_flops(double flops) const {
  Cost cost{flops, 0, 0};
  for (const Shape& s : inputs) cost.read_bytes += static_cast<double>(s.size_bytes());
  for (const Shape& s : outputs) cost.write_bytes += static_cast<double>(s.size_bytes());
  return cost;
}

std::vector<Expr> decompose_into(Graph& graph, const OpBox& op, std::span<const Expr> inputs, FusionPolicy policy,
                                 bool may_branch) {
  const OpDef& def = op_def(op);
  if (!def.decompose.has())
    throw Error(ErrorCode::Unsupported, concat_text(op_text_name(op), " has no decomposition: ",
                                                    def.decompose.reason() ? def.decompose.reason() : "none"));
  std::vector<Shape> input_shapes;
  for (const Expr& e : inputs) input_shapes.push_back(e.shape());
  std::vector<Shape> result_shapes = infer_shapes(op, input_shapes).value();
  DecomposeContext c(graph, op, inputs, result_shapes, policy, may_branch);
  def.decompose(c);
  for (int r = 0; r < c.num_results(); ++r) {
    Expr e = c.results()[static_cast<std::size_t>(r)];
    check_rule(e.valid(), op, "decomposition of ", def.name, " did not set result ", r);
    check_rule(e.shape() == c.result_shape(r), op, "decomposition of ", def.name, " gives ", e.shape(), " for result ",
               r, " of ", c.result_shape(r));
  }
  return c.results();
}

std::vector<Expr> inline_body(Graph& graph, const Graph& body, std::span<const Expr> inputs) {
  if (&body == &graph)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("inline_body: cannot inline graph '", graph.name(), "' into itself"),
                "copy the graph first: const Graph body = graph");
  if (!body.state_updates().empty())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("inline_body: '", body.name(), "' sets states, which would be lost"),
                "make the new values outputs of the body, and set the states of the graph to them");
  const std::size_t takes = body.leaves(OpKind::Input).size();
  if (takes != inputs.size())
    throw Error(ErrorCode::InvalidArgument, concat_text("inline_body: '", body.name(), "' has ", takes, " inputs, got ",
                                                        inputs.size(), " operands"));
  std::vector<std::uint32_t> map(body.num_nodes());  // body node -> graph node
  std::vector<Value> input_values(body.num_nodes());
  std::size_t next_input = 0;
  auto mapped = [&](Value v) {
    return body.node(v.node).kind() == OpKind::Input ? input_values[v.node.index]
                                                     : Value(NodeId{map[v.node.index]}, v.result);
  };
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
    const Node& n = body.nodes()[i];
    if (n.kind() == OpKind::Input) {
      const Expr& operand = inputs[next_input++];
      if (!operand.belongs_to(graph))
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("inline_body: ", operand.value(), " does not belong to graph '", graph.name(), "'"));
      input_values[i] = operand.value();
      continue;
    }
    std::vector<Value> operands;
    for (Value v : n.inputs) operands.push_back(mapped(v));
    Expr e = graph.add(n.op, std::move(operands), n.origin.loc);
    map[i] = e.value().node.index;
    // Labels place nodes on devices.
    if (graph.node(NodeId{map[i]}).origin.label.empty()) graph.set_label(NodeId{map[i]}, n.origin.label);
  }
  std::vector<Expr> out;
  for (Value v : body.outputs()) out.push_back(graph.expr(mapped(v)));
  return out;
}

}  // namespace rlx
