// The reference evaluator.
#include "rlx/ir/evaluate.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/cotangent_name.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/rewrite/symbol_order.h"

namespace rlx {
namespace {

bool has_leaf(const Graph& g, std::string_view name) {
  return g.find_leaf(OpKind::Input, name).valid() || g.find_leaf(OpKind::Param, name).valid() ||
         g.find_leaf(OpKind::State, name).valid();
}

// Solves declared == actual for one symbol when `declared` is linear in it: a*s + b. False when this does not determine
// a symbol yet.
bool solve_dim(const Dim& declared, std::int64_t actual, SymbolBinding& binding) {
  Dim d = declared.bind(binding);
  std::vector<std::string> names = d.symbols();
  if (names.size() != 1) return false;
  // d(s) is linear in s when d(1) - d(0) = d(2) - d(1) holds; probe it.
  auto at = [&](std::int64_t v) { return d.bind({{names[0], v}}); };
  Dim d0 = at(0), d1 = at(1), d2 = at(2);
  if (!d0.is_static() || !d1.is_static() || !d2.is_static()) return false;
  std::int64_t slope = d1.value() - d0.value();
  if (slope == 0 || d2.value() - d1.value() != slope || (actual - d0.value()) % slope != 0) return false;
  std::int64_t s = (actual - d0.value()) / slope;
  if (!at(s).is_static(actual)) return false;
  binding.emplace(names[0], s);
  return true;
}

}  // namespace

SymbolBinding solve_symbols(const Graph& g, const std::map<std::string, std::vector<std::int64_t>, std::less<>>& dims) {
  SymbolBinding binding;
  bool progress = true;
  while (progress) {
    progress = false;
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
      NodeId id{i};
      if (!is_named_leaf(g.node(id).kind())) continue;
      auto it = dims.find(g.leaf_name(id));
      const Shape& declared = g.shape(id);
      if (it == dims.end() || declared.is_static() || static_cast<int>(it->second.size()) != declared.rank()) continue;
      for (int a = 0; a < declared.rank(); ++a)
        progress = solve_dim(declared.dim(a), it->second[static_cast<std::size_t>(a)], binding) || progress;
    }
  }
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    NodeId id{i};
    if (!is_named_leaf(g.node(id).kind())) continue;
    auto it = dims.find(g.leaf_name(id));
    if (it == dims.end()) continue;
    Shape bound = g.shape(id).bind(binding);
    bool fits = static_cast<int>(it->second.size()) == bound.rank();
    for (int a = 0; fits && a < bound.rank(); ++a)
      fits = bound.dim(a).is_static(it->second[static_cast<std::size_t>(a)]);
    if (!fits)
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("'", it->first, "' is declared ", g.shape(id), ", got ", dims_text(it->second)),
                  g.shape(id).is_static() ? "pass a tensor with the declared shape"
                                          : "every symbol must have one value in all tensors");
  }
  return binding;
}

std::vector<Tensor> evaluate_op(const OpBox& op, std::span<const Tensor> inputs) {
  const OpDef& def = op_def(op);
  std::vector<Shape> input_shapes;
  for (const Tensor& t : inputs) input_shapes.push_back(t.shape());
  std::vector<Shape> shapes = infer_shapes(op, input_shapes).value();
  // An empty result needs no computation. Its other extents may be too large for the loops of the rules.
  if (!is_ordered(op) &&
      std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.num_elements() == 0; })) {
    std::vector<Tensor> outputs;
    for (const Shape& s : shapes) outputs.push_back(Tensor::zeros(s));
    return outputs;
  }
  if (def.reference.has()) {
    std::vector<Tensor> outputs;
    for (const Shape& s : shapes) outputs.push_back(Tensor::zeros(s));
    RefArgs args{op, inputs, outputs};
    def.reference(args);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      check_rule(outputs[i].shape() == shapes[i], op, "reference rule of ", def.name, " gives ", outputs[i].shape(),
                 " for result ", i, " of ", shapes[i]);
    return outputs;
  }
  if (!def.reference.derived())
    throw Error(ErrorCode::Unsupported,
                concat_text(op_text_name(op), " cannot be evaluated: ", def.reference.reason()));
  Graph g("decomposition");
  std::vector<Expr> operands;
  NamedTensors values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::string name = "x" + std::to_string(i);
    operands.push_back(g.input(name, inputs[i].shape()));
    values.emplace(name, inputs[i]);
  }
  g.set_outputs(decompose_into(g, op, operands));
  return evaluate(g, values);
}

EvaluateResult evaluate_with_states(const Graph& graph, const NamedTensors& given) {
  if (!in_symbol_order(graph)) return evaluate_with_states(sorted_by_symbols(graph), given);
  NamedTensors values;
  for (const auto& [name, tensor] : given) {
    const std::string other(other_cotangent_name(name));
    const bool alias = !other.empty() && !has_leaf(graph, name) && has_leaf(graph, other);
    if (!values.emplace(alias ? other : name, tensor).second)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("'", name, "' and '", other, "' are the same input, which is given twice"));
  }
  std::map<std::string, std::vector<std::int64_t>, std::less<>> dims;
  for (const auto& [name, tensor] : values) {
    if (!has_leaf(graph, name)) {
      std::vector<std::string> names;
      for (std::uint32_t i = 0; i < graph.num_nodes(); ++i)
        if (is_named_leaf(graph.nodes()[i].kind())) names.push_back(graph.leaf_name(NodeId{i}));
      throw Error(ErrorCode::NotFound,
                  concat_text("graph '", graph.name(), "' has no input, param or state '", name, "'"),
                  did_you_mean(name, names));
    }
    dims.emplace(name, tensor.dims());
  }
  SymbolBinding binding = solve_symbols(graph, dims);
  const bool dynamic = !graph.is_static();
  Graph bound = dynamic ? graph.bind(binding) : Graph();
  const Graph& g = dynamic ? bound : graph;

  // The last reader of each node, so that intermediate tensors are freed as early as possible.
  std::vector<std::uint32_t> last_use(g.num_nodes(), 0);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    for (Value v : g.nodes()[i].inputs) last_use[v.node.index] = i;
  constexpr std::uint32_t kNever = 0xffffffffu;
  for (const Root& r : roots(g))
    if (r.is_read()) last_use[r.value.node.index] = kNever;

  EvaluateResult result;
  std::vector<std::vector<Tensor>> results(g.num_nodes());
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    NodeId id{i};
    const Node& n = g.node(id);
    if (is_named_leaf(n.kind())) {
      auto it = values.find(g.leaf_name(id));
      Tensor t = it != values.end() ? it->second : Tensor();
      if (const auto* state = n.op.get_if<ops::State>()) {
        if (t.empty()) t = state->init.empty() ? Tensor::zeros(n.shape()) : state->init;
        result.states.emplace(state->name, t);
      }
      if (t.empty())
        throw Error(Diagnostic{ErrorCode::NotFound, concat_text("no value for '", g.leaf_name(id), "' ", n.shape()),
                               node_where(g, id), "bind every input and param"});
      if (!(t.shape() == n.shape()))
        throw Error(ErrorCode::DTypeMismatch,
                    concat_text("'", g.leaf_name(id), "' is declared ", n.shape(), ", got ", t.shape()));
      results[i] = {std::move(t)};
    } else {
      std::vector<Tensor> operands;
      for (Value v : n.inputs) operands.push_back(results[v.node.index][v.result]);
      try {
        results[i] = evaluate_op(n.op, operands);
      } catch (const Error& e) {
        if (e.code() != ErrorCode::OutOfMemory || !e.diagnostic().where.empty()) throw;
        throw Error(Diagnostic{ErrorCode::OutOfMemory, concat_text("graph '", g.name(), "': ", e.diagnostic().message),
                               node_where(g, id), "use smaller dimensions, or a machine with more memory"});
      }
    }
    for (Value v : n.inputs)
      if (last_use[v.node.index] == i) results[v.node.index].clear();
    // A symbol whose value is computed here. Later nodes have its extents.
    bool known = false;
    for (const auto& [symbol, source] : graph.symbol_sources())
      if (source.node.index == i && dynamic) {
        const std::int64_t value = results[i][source.result].at_i64(0);
        check_computed_symbol(graph, symbol, value);
        known = binding.emplace(symbol, value).second || known;
      }
    if (known) bound = graph.bind(binding);
  }
  for (Value v : g.outputs()) result.outputs.push_back(results[v.node.index][v.result]);
  for (const Graph::StateUpdate& u : g.state_updates())
    result.states.insert_or_assign(u.name, results[u.value.node.index][u.value.result]);
  return result;
}

std::vector<Tensor> evaluate(const Graph& g, const NamedTensors& values) {
  return evaluate_with_states(g, values).outputs;
}

namespace {
DType widen(DType t) { return is_complex(t) ? DType::C128 : is_float(t) ? DType::F64 : t; }
}  // namespace

Graph to_f64(const Graph& g) {
  Graph out = copy_shell(g);
  for (const Node& n : g.nodes()) {
    const OpDef& def = op_def(n.op);
    std::shared_ptr<void> copy = make_default_op(n.kind());
    for (const AttrField& f : def.attrs) {
      AttrValue value = f.get(n.op.data());
      if (auto* t = std::get_if<DType>(&value)) *t = widen(*t);
      if (auto* t = std::get_if<Tensor>(&value); t && !t->empty()) *t = t->cast(widen(t->dtype()));
      if (auto* body = std::get_if<Subgraph>(&value); body && *body)
        *body = std::make_shared<const Graph>(to_f64(**body));
      f.set(copy.get(), std::move(value));
    }
    Expr e = out.add(OpBox(n.kind(), std::move(copy)), n.inputs, n.origin.loc);
    out.origin(e.value().node) = n.origin;
  }
  copy_ends(out, g, [](Value v) { return v; });
  return out;
}

}  // namespace rlx
