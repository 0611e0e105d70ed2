// Shared rules of the ops with bodies.
#include "rlx/ops/control/control.h"

#include <limits>
#include <numeric>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {

std::vector<Tensor> run_body(const Graph& body, std::span<const Tensor> inputs) {
  NamedTensors values;
  std::size_t next = 0;
  for (NodeId id : body.leaves(OpKind::Input)) values.emplace(body.leaf_name(id), inputs[next++]);
  return evaluate(body, values);
}

namespace {
// Copies one row between a stacked tensor and a tensor of its own.
void move_row(DType dtype, std::span<const std::int64_t> dims, std::byte* dst, std::int64_t to, const std::byte* src,
              std::int64_t from) {
  StridedView out = whole(dims), in = whole(dims);
  std::int64_t elements = 1;
  for (std::int64_t d : dims) elements *= d;
  out.offset = to * elements;
  in.offset = from * elements;
  copy_strided(dtype, dims, dst, out, src, in);
}
}  // namespace

Tensor row_of(const Tensor& stack, std::int64_t t) {
  const Shape shape = row_shape(stack.shape());
  Tensor row = Tensor::zeros(shape);
  if (row.size_bytes() != 0) move_row(shape.dtype(), shape.static_dims(), row.mutable_data(), 0, stack.data(), t);
  return row;
}

void set_row(Tensor& stack, std::int64_t t, const Tensor& row) {
  if (row.size_bytes() != 0) move_row(row.dtype(), row.dims(), stack.mutable_data(), t, row.data(), 0);
}

Cost body_cost(const Graph& body) {
  Cost sum;
  for (const Node& n : body.nodes()) {
    Shapes operands;
    for (Value v : n.inputs) operands.push_back(body.shape(v));
    const Cost c = op_def(n.op).cost(CostContext{n.op, operands, n.shapes});
    sum.flops += c.flops;
    sum.read_bytes += c.read_bytes;
    sum.write_bytes += c.write_bytes;
  }
  return sum;
}

Cost repeated(const Cost& once, double times) {
  return {once.flops * times, once.read_bytes * times, once.write_bytes * times};
}

Mask slice_of(const Mask& m, std::size_t first, std::size_t count) {
  const auto begin = m.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}
void append(Mask& to, const Mask& more) { to.insert(to.end(), more.begin(), more.end()); }

Mask inexact_of(std::span<const Shape> shapes) {
  Mask out;
  for (const Shape& s : shapes) out.push_back(is_inexact(s.dtype()));
  return out;
}

Mask both(const Mask& a, const Mask& b) {
  Mask out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] && b[i];
  return out;
}

Shapes input_shapes(const Graph& body) {
  Shapes out;
  for (NodeId id : body.leaves(OpKind::Input)) out.push_back(body.shape(id));
  return out;
}

Shapes output_shapes(const Graph& body) {
  Shapes out;
  for (Value v : body.outputs()) out.push_back(body.shape(v));
  return out;
}

Exprs add_inputs(Graph& body, const Shapes& shapes, std::string_view prefix) {
  Exprs out;
  for (const Shape& s : shapes) out.push_back(body.input(concat_text(prefix, out.size()), s));
  return out;
}

Shape row_shape(const Shape& stack) { return Shape(Dims(stack.dims().begin() + 1, stack.dims().end()), stack.dtype()); }
Shape stacked_shape(const Dim& n, const Shape& row) { return Shape(prepend(n, row.dims()), row.dtype()); }

Graph like_body(const Graph& like) { return copy_shell(like); }

Graph permuted(const Graph& body, const std::vector<std::size_t>& inputs, const std::vector<std::size_t>& outputs) {
  Graph out = like_body(body);
  out.reserve(body.num_nodes());
  const std::vector<NodeId> leaves = body.leaves(OpKind::Input);
  check(inputs.size() == leaves.size(), "the permutation lists every input of the body once");
  std::vector<NodeId> map(body.num_nodes());
  for (std::size_t k : inputs) map[leaves[k].index] = out.add_node(Node(body.node(leaves[k])));
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
    Node copy = body.nodes()[i];
    if (copy.kind() == OpKind::Input) continue;
    for (Value& v : copy.inputs) v = Value(map[v.node.index], v.result);
    map[i] = out.add_node(std::move(copy));
  }
  std::vector<Value> values;
  for (std::size_t k : outputs) {
    const Value v = body.outputs()[k];
    values.emplace_back(map[v.node.index], v.result);
  }
  out.set_outputs(std::move(values));
  return out;
}

Subgraph finished(Graph& body, const Exprs& outputs) {
  body.set_outputs(outputs);
  return std::make_shared<const Graph>(std::move(body));
}

Expr zeros_in(Graph& g, const Shape& shape) {
  const Expr zero = g.constant(Tensor::zeros(Shape({}, shape.dtype())));
  return shape.rank() == 0 ? zero : g.expand(zero, shape.dims());
}

Expr select_examples(Graph& g, Expr cond, Expr a, Expr b) {
  Dims dims = cond.shape().dims();
  dims.resize(static_cast<std::size_t>(a.rank()), Dim(1));
  return g.where(dims.size() == 1 ? cond : g.reshape(cond, std::move(dims)), a, b);
}

namespace {
// x, with derivatives where `kept` (Bool [B] or a scalar) is true. The call is inlined, so values cost nothing; with
// tangents they cost a copy.
Expr with_derivative_where(Graph& g, Expr kept, Expr x) {
  const Shapes shapes{kept.shape(), x.shape(), x.shape()};
  ops::Call form;
  Graph body = copy_shell(g, "derivative_where"), jvp = copy_shell(g, "derivative_where");
  form.body = finished(body, {add_inputs(body, {shapes[0], shapes[1]}, "x")[1]});
  const Exprs in = add_inputs(jvp, shapes, "x");
  form.jvp = finished(jvp, {select_examples(jvp, in[0], in[1], jvp.stop_gradient(in[1])),
                            select_examples(jvp, in[0], in[2], zeros_in(jvp, shapes[2]))});
  return add_node(g, std::move(form), {kept, x})[0];
}
}  // namespace

namespace {
// Row `one` of x [B, ..]. Batches of a symbolic extent may be empty, of which no row can be gathered.
Expr row_of_batch(Graph& g, Expr x, Expr one) {
  if (x.shape().dim(0).is_static()) return g.gather(x, one, 0);
  const Expr own = g.eq(g.iota(Shape({x.shape().dim(0)}, one.dtype()), 0), one);
  const bool flags = x.dtype() == DType::Bool;
  if (flags) x = g.cast(x, DType::I32);
  const Expr row = g.sum(select_examples(g, own, x, zeros_in(g, x.shape())), {0});
  return flags ? g.cast(row, DType::Bool) : row;
}
}  // namespace

Exprs operands_of_kept(Graph& g, Expr kept, const Exprs& operands, const Mask& batched) {
  Exprs out = operands;
  bool shared = false;
  for (std::size_t k = 0; k < out.size(); ++k) shared = shared || (!batched[k] && is_inexact(out[k].dtype()));
  const bool replaces = shared && !kept.shape().dim(0).is_static(0);
  // The first example that is kept.
  const Expr places = replaces ? g.iota(Shape({kept.shape().dim(0)}, DType::I32), 0) : kept;
  const Expr last = replaces ? g.scalar(std::numeric_limits<std::int32_t>::max(), DType::I32) : kept;
  const Expr first = replaces ? g.reduce(ReduceKind::Min, g.where(kept, places, last), {}) : kept;
  const Expr any = shared ? g.gt(g.reduce(ReduceKind::Max, g.cast(kept, DType::I32), {}), 0) : kept;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const bool derivative = is_inexact(out[k].dtype());
    if (!batched[k]) {
      if (derivative) out[k] = with_derivative_where(g, any, out[k]);
    } else if (replaces && !is_storage_only(out[k].dtype())) {
      out[k] = select_examples(g, kept, out[k], g.stop_gradient(row_of_batch(g, out[k], first)));
    } else if (derivative) {
      out[k] = with_derivative_where(g, kept, out[k]);
    }
  }
  return out;
}

Exprs add_node(Graph& g, OpBox op, const Exprs& operands) {
  std::vector<Value> values(operands.begin(), operands.end());
  const Expr first = g.add(std::move(op), std::move(values));
  Exprs out;
  for (std::uint32_t r = 0; r < g.node(first.value().node).num_results(); ++r) out.push_back(first.result(r));
  return out;
}

Exprs concat_exprs(std::initializer_list<Exprs> parts) {
  Exprs out;
  for (const Exprs& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

Expr swap_leading(Graph& g, Expr x) {
  std::vector<std::int64_t> perm = identity_perm(x.rank());
  std::swap(perm[0], perm[1]);
  return g.transpose(x, perm);
}

}  // namespace rlx
