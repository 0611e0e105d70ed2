// Hessian-vector products by forward over reverse mode. Jacobians batch one of the two modes over unit vectors.
#include "rlx/transforms/hvp.h"

#include "rlx/ir/build/counting.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "rlx/transforms/walk.h"

namespace rlx {
namespace {

// The names of the leaves, which every transform preserves.
std::vector<std::string> leaf_names(const Graph& forward, const std::vector<Wrt>& wrt, std::string_view who) {
  std::vector<std::string> names;
  for (const Wrt& w : wrt) names.push_back(forward.leaf_name(walk::resolve_leaf(forward, w, who).node));
  return names;
}

std::vector<Wrt> by_name(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

Dims joined(const Dims& a, const Dims& b) {
  Dims out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

void require_real(const Shape& s, std::string_view who) {
  if (!is_float(s.dtype()))
    throw Error(ErrorCode::Unsupported, concat_text(who, ": ", s, " must be real"), "Jacobians need float values");
}

// All unit vectors of the space of shape `shape`, as [n, shape.dims..] for n elements of the shape.
Expr unit_vectors(Graph& g, const Shape& shape) {
  Dim n = shape.num_elements_dim();
  const Shape square({n, n}, count_dtype(g, {{n}}));
  Expr eye = g.cast(g.eq(g.iota(square, 0), g.iota(square, 1)), shape.dtype());
  return g.reshape(eye, joined({n}, shape.dims()));
}

// `t` with all unit vectors as its input `name`: `t` batched over that input.
TransformResult over_unit_vectors(const TransformResult& t, const std::string& name, const Shape& shape) {
  TransformResult batched = vmap(t.graph, {{name, 0}}, shape.num_elements_dim());
  Graph g = copy_shell(batched.graph);
  NodeId seed = batched.graph.find_leaf(OpKind::Input, name);
  std::map<Value, Value> ids =
      walk::copy_nodes(g, batched.graph, [&](NodeId id) { return id == seed ? unit_vectors(g, shape) : Expr(); });
  copy_ends(g, batched.graph, [&](Value v) { return ids.at(v); });
  return {std::move(g), walk::compose(walk::compose(t.ids, batched.ids), ids), {}};
}

// `forward` with `count` of its outputs, from `first` on.
Graph with_outputs(Graph g, std::size_t first, std::size_t count) {
  std::vector<Value> outputs(g.outputs().begin() + static_cast<std::ptrdiff_t>(first),
                             g.outputs().begin() + static_cast<std::ptrdiff_t>(first + count));
  g.set_outputs(std::move(outputs));
  return g;
}

// Jacobians of every output of `forward`, output by output: out.dims ++ wrt.dims.
TransformResult jacfwd_all(const Graph& forward, const std::vector<std::string>& names, std::string_view who) {
  // One batched copy of the tangent computation per leaf, joined into one graph.
  const std::size_t num_outputs = forward.outputs().size();
  if (!forward.ordered().empty())  // each leaf has its own copy of the forward computation
    throw Error(Diagnostic{ErrorCode::Unsupported,
                           concat_text(who, ": '", forward.name(), "' has ordered ops, which would run several times"),
                           node_where(forward, forward.ordered().front()), "use jacrev, or jvp column by column"});
  Graph g = copy_shell(forward);
  std::map<Value, Value> ids = walk::copy_nodes(g, forward);
  copy_inner_ends(g, forward, [&](Value v) { return ids.at(v); });
  std::vector<std::vector<Value>> jacobians(num_outputs);
  for (const std::string& name : names) {
    const Shape in = forward.shape(walk::resolve(forward, Wrt(name), who));
    require_real(in, who);
    TransformResult t = jvp(forward, {Wrt(name)});
    t.graph = with_outputs(std::move(t.graph), num_outputs, num_outputs);
    TransformResult rows = over_unit_vectors(t, t.added_inputs[0], in);
    std::map<Value, Value> copy = walk::copy_nodes(g, rows.graph, [&](NodeId id) {
      OpKind kind = rows.graph.node(id).kind();
      if (!is_named_leaf(kind)) return Expr();
      return g.expr(g.find_leaf(kind, rows.graph.leaf_name(id)));
    });
    for (std::size_t i = 0; i < num_outputs; ++i) {
      const Shape out = forward.shape(forward.outputs()[i]);
      require_real(out, who);
      Expr j = g.expr(copy.at(rows.graph.outputs()[i]));  // [n, out..] -> [out.., n] -> [out.., in..]
      std::vector<std::int64_t> perm;
      for (int k = 1; k < j.rank(); ++k) perm.push_back(k);
      perm.push_back(0);
      jacobians[i].push_back(g.reshape(g.transpose(j, perm), joined(out.dims(), in.dims())).value());
    }
  }
  std::vector<Value> outputs;
  for (const auto& row : jacobians) outputs.insert(outputs.end(), row.begin(), row.end());
  g.set_outputs(std::move(outputs));
  Graph pruned = walk::prune(g, ids);
  return {std::move(pruned), std::move(ids), {}};
}

void require_outputs(const Graph& forward, std::string_view who) {
  if (forward.outputs().empty())
    throw Error(ErrorCode::InvalidArgument, concat_text(who, ": graph '", forward.name(), "' has no outputs"),
                "call set_outputs first");
}

}  // namespace

TransformResult hvp(const Graph& forward, const std::vector<Wrt>& wrt) {
  require_outputs(forward, "hvp");
  std::vector<std::string> names = leaf_names(forward, wrt, "hvp");
  GradResult first = grad_with_loss(forward, wrt);
  TransformResult second = jvp(with_outputs(std::move(first.graph), 0, 1 + wrt.size()), by_name(names));
  second.ids = walk::compose(first.ids, second.ids);
  second.added_inputs.insert(second.added_inputs.begin(), first.added_inputs.begin(), first.added_inputs.end());
  return second;
}

TransformResult jacrev(const Graph& forward, const std::vector<Wrt>& wrt) {
  require_outputs(forward, "jacrev");
  const Shape out = forward.shape(forward.outputs()[0]);
  require_real(out, "jacrev");
  std::vector<Shape> shapes;
  for (const Wrt& w : wrt) {
    shapes.push_back(forward.shape(walk::resolve(forward, w, "jacrev")));
    require_real(shapes.back(), "jacrev");
  }
  GradResult reverse = grad(forward, wrt);
  TransformResult r = over_unit_vectors(reverse, reverse.added_inputs[0], out);
  std::vector<Expr> outputs;
  for (std::size_t i = 0; i < wrt.size(); ++i)
    outputs.push_back(r.graph.reshape(r.graph.expr(r.graph.outputs()[i]), joined(out.dims(), shapes[i].dims())));
  r.graph.set_outputs(outputs);
  return r;
}

TransformResult jacfwd(const Graph& forward, const std::vector<Wrt>& wrt) {
  require_outputs(forward, "jacfwd");
  return jacfwd_all(with_outputs(forward, 0, 1), leaf_names(forward, wrt, "jacfwd"), "jacfwd");
}

TransformResult hessian(const Graph& forward, const std::vector<Wrt>& wrt) {
  require_outputs(forward, "hessian");
  std::vector<std::string> names = leaf_names(forward, wrt, "hessian");
  GradResult first = value_and_grad(forward, wrt);
  TransformResult second = jacfwd_all(with_outputs(std::move(first.graph), 1, wrt.size()), names, "hessian");
  second.ids = walk::compose(first.ids, second.ids);
  return second;
}

}  // namespace rlx
