// Builder functions of branches, loops and calls. A function builds each body; captured values become operands.
#include <map>
#include <memory>
#include <set>

#include "rlx/ir/build/body_scope.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"

namespace rlx {
namespace {

// A body that a function has built. Its Inputs are in the order of their creation.
struct Draft {
  Graph graph;
  std::unique_ptr<BodyScope> scope;
  ExprList declared;  // its operands
  ExprList outputs{};
};

std::unique_ptr<Draft> start(Graph& parent, const std::string& name, SourceLoc loc) {
  auto d = std::make_unique<Draft>(Draft{Graph(name), nullptr, {}});
  d->graph.set_symbols(parent.symbols());
  d->scope = std::make_unique<BodyScope>(d->graph, parent, loc);
  return d;
}

ExprList declare(Draft& d, const std::vector<Shape>& shapes, std::string_view prefix, SourceLoc loc) {
  ExprList out;
  for (const Shape& s : shapes) out.push_back(d.graph.input(concat_text(prefix, out.size()), s, loc));
  d.declared.insert(d.declared.end(), out.begin(), out.end());
  return out;
}

void end(Draft& d, const ExprList& outputs, SourceLoc loc) {
  d.scope->require_alive(loc);
  for (const Expr& e : outputs) d.outputs.push_back(value_in(d.graph, e, d.graph.name(), loc));
}

std::vector<Shape> shapes_of(const ExprList& values) {
  std::vector<Shape> out;
  for (const Expr& e : values) out.push_back(e.shape());
  return out;
}

ExprList own_all(Graph& g, const ExprList& values, std::string_view what, SourceLoc loc) {
  ExprList out;
  for (const Expr& e : values) out.push_back(value_in(g, e, what, loc));
  return out;
}

// The values that the bodies of one op capture, each once.
class Captures {
 public:
  explicit Captures(std::initializer_list<const Draft*> drafts) {
    std::set<Value> known;
    for (const Draft* d : drafts)
      for (const Expr& e : d->scope->captured())
        if (known.insert(e.value()).second) values_.push_back(e);
  }
  const ExprList& values() const { return values_; }

 private:
  ExprList values_;
};

// The finished body. It has Inputs for all values that any body of the op captures, before or after its operands.
Subgraph close(const Draft& d, const ExprList& captured, bool captured_first, SourceLoc loc) {
  const Graph& from = d.graph;
  const auto fail = [&](std::string message, std::string hint) {
    throw Error(Diagnostic{ErrorCode::InvalidArgument, concat_text(from.name(), ": ", message), built_at(loc),
                           std::move(hint)});
  };
  Graph out(from.name());
  std::vector<NodeId> map(from.num_nodes());
  const auto add_captured = [&] {
    std::map<Value, NodeId> here;  // those of this body
    for (std::size_t k = 0; k < d.scope->captured().size(); ++k)
      here.emplace(d.scope->captured()[k].value(), d.scope->inputs()[k]);
    for (std::size_t k = 0; k < captured.size(); ++k) {
      const Expr input = out.input(concat_text("captured", k), captured[k].shape(), loc);
      if (const auto it = here.find(captured[k].value()); it != here.end()) map[it->second.index] = input.value().node;
    }
  };
  if (captured_first) add_captured();
  for (const Expr& e : d.declared) map[e.value().node.index] = out.add_node(Node(from.node(e.value().node)));
  if (!captured_first) add_captured();
  for (std::uint32_t i = 0; i < from.num_nodes(); ++i) {
    Node n = from.nodes()[i];
    if (n.kind() == OpKind::Param || n.kind() == OpKind::State || (n.kind() == OpKind::Input && !map[i].valid()))
      fail(concat_text("the body declares ", op_def(n.kind()).name, " '", from.leaf_name(NodeId{i}),
                       "', which is not allowed in a body"),
           "create it in the outer graph, and use its value in the body");
    if (n.kind() == OpKind::Input) continue;
    for (Value& v : n.inputs) v = Value(map[v.node.index], v.result);
    map[i] = out.add_node(std::move(n));
  }
  if (!from.state_updates().empty())
    fail("the body sets a state", "return the new value, and set the state in the outer graph");
  std::vector<Value> outputs;
  for (const Expr& e : d.outputs) outputs.emplace_back(map[e.value().node.index], e.value().result);
  out.set_outputs(std::move(outputs));
  // The symbols that the body depends on, with their bounds in the enclosing graphs.
  std::map<std::string, SymbolInfo> symbols;
  for (const std::string& name : out.dynamic_symbols()) {
    const auto it = from.symbols().find(name);
    symbols.emplace(name, it == from.symbols().end() ? SymbolInfo{} : it->second);
  }
  out.set_symbols(std::move(symbols));
  return std::make_shared<const Graph>(std::move(out));
}

ExprList results_of(const Expr& first, std::size_t begin, std::size_t count) {
  ExprList out;
  for (std::size_t r = begin; r < begin + count; ++r) out.push_back(first.result(static_cast<std::uint32_t>(r)));
  return out;
}

Expr add_op(Graph& g, OpBox op, std::initializer_list<const ExprList*> parts, SourceLoc loc) {
  std::vector<Value> operands;
  for (const ExprList* p : parts) operands.insert(operands.end(), p->begin(), p->end());
  return g.add(std::move(op), std::move(operands), loc);
}

std::unique_ptr<Draft> drawn(Graph& parent, const std::string& name, const std::vector<Shape>& shapes, const BodyFn& fn,
                             SourceLoc loc) {
  auto d = start(parent, name, loc);
  const ExprList operands = declare(*d, shapes, "x", loc);
  end(*d, fn(d->graph, operands), loc);
  return d;
}

[[noreturn]] void fail_at(SourceLoc loc, std::string message, std::string hint) {
  throw Error(Diagnostic{ErrorCode::InvalidArgument, std::move(message), built_at(loc), std::move(hint)});
}

void require_fn(bool given, std::string_view what, SourceLoc loc) {
  if (!given) fail_at(loc, concat_text(what, ": the body function is empty"), "pass a function that builds the body");
}

ExprList call_of(Graph& g, std::string name, const ExprList& operands, const BodyFn& body, CallSave save,
                 SourceLoc loc) {
  require_fn(static_cast<bool>(body), name, loc);
  const ExprList own = own_all(g, operands, name, loc);
  const auto draft = drawn(g, name, shapes_of(own), body, loc);
  const Captures captures({draft.get()});
  ops::Call op;
  op.save = save;
  op.body = close(*draft, captures.values(), false, loc);
  const Expr first = add_op(g, std::move(op), {&own, &captures.values()}, loc);
  return results_of(first, 0, draft->outputs.size());
}

// The number of iterations also by its name of the last release.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
LoopResult loop_result(ExprList carries, ExprList ys, const Expr& iterations) {
  return {std::move(carries), std::move(ys), iterations, iterations};
}
#pragma GCC diagnostic pop

}  // namespace

namespace {

// A dimension where the results of two branches differ: the larger extent, and the result of the op that has the value.
struct RaggedDim {
  std::size_t result, axis, told;
  DimRange range;
};

// Pads the results of both branches to the larger extents, and appends their true extents.
std::vector<RaggedDim> even_out(Graph& g, Draft& yes, Draft& no, SourceLoc loc) {
  std::vector<RaggedDim> out;
  if (yes.outputs.size() != no.outputs.size()) return out;  // the shape rule reports it
  const std::size_t results = yes.outputs.size();
  ExprList told[2];
  for (std::size_t r = 0; r < results; ++r) {
    const Shape a = yes.outputs[r].shape(), b = no.outputs[r].shape();
    if (a.rank() != b.rank() || a.dtype() != b.dtype() || a.dims() == b.dims()) continue;
    Dims larger;
    for (int axis = 0; axis < a.rank(); ++axis) {
      larger.push_back(a.dim(axis) == b.dim(axis) ? a.dim(axis) : max(a.dim(axis), b.dim(axis)));
      if (a.dim(axis) == b.dim(axis)) continue;
      const DimRange x = building::bounds_of(g, a.dim(axis)), y = building::bounds_of(g, b.dim(axis));
      out.push_back(
          {r, static_cast<std::size_t>(axis), results + out.size(), {std::min(x.min, y.min), std::max(x.max, y.max)}});
    }
    for (Draft* d : {&yes, &no}) {
      Graph& body = d->graph;
      const Expr own = d->outputs[r];
      for (int axis = 0; axis < own.rank(); ++axis)
        if (!(a.dim(axis) == b.dim(axis))) told[d == &no].push_back(extent_of(body, own, axis, DType::I64, loc));
      if (own.shape().dims() == larger) continue;
      const Expr zero = body.constant(Tensor::zeros(Shape({}, own.dtype())), loc);
      const Expr starts = body.constant(Tensor::zeros(Shape({own.rank()}, DType::I64)), loc);
      d->outputs[r] = body.dynamic_update_slice(Operand(body.expand(Operand(zero, loc), larger), loc),
                                                Operand(own, loc), Operand(starts, loc));
    }
  }
  yes.outputs.insert(yes.outputs.end(), told[0].begin(), told[0].end());
  no.outputs.insert(no.outputs.end(), told[1].begin(), told[1].end());
  return out;
}

ExprList cond_of(Graph& g, const Operand& pred, const ExprList& operands, const BodyFn& then, const BodyFn& otherwise,
                 bool ragged, SourceLoc loc) {
  require_fn(then && otherwise, "cond", loc);
  if (pred.is_scalar())
    fail_at(loc, "cond: pred must be a value of a graph, got a number",
            "use if of C++ for a number that is known while the graph is built");
  const ExprList own = own_all(g, operands, "cond", loc), choice = own_all(g, pred.expr(), "cond", loc);
  const auto yes = drawn(g, "then", shapes_of(own), then, loc), no = drawn(g, "else", shapes_of(own), otherwise, loc);
  const std::size_t results = yes->outputs.size();
  std::vector<RaggedDim> uneven;
  if (ragged) uneven = even_out(g, *yes, *no, loc);
  const Captures captures({yes.get(), no.get()});
  ops::If op{close(*yes, captures.values(), false, loc), close(*no, captures.values(), false, loc)};
  const Expr first = add_op(g, std::move(op), {&choice, &own, &captures.values()}, loc);
  ExprList out = results_of(first, 0, results);
  std::vector<Dims> limits;
  for (const Expr& e : out) limits.push_back(e.shape().dims());
  for (const RaggedDim& d : uneven) {
    const Expr value = first.result(static_cast<std::uint32_t>(d.told));
    limits[d.result][d.axis] = g.value_dim(Operand(value, loc), d.range.max, d.range.min);
  }
  for (std::size_t r = 0; r < out.size(); ++r)
    if (!(limits[r] == out[r].shape().dims()))
      out[r] = g.slice(Operand(out[r], loc), Dims(limits[r].size(), Dim(0)), limits[r]);
  return out;
}

}  // namespace

ExprList Builder::cond(Operand pred, const ExprList& operands, const BodyFn& then, const BodyFn& otherwise,
                       SourceLoc loc) {
  return cond_of(graph(), pred, operands, then, otherwise, false, loc);
}

ExprList Builder::cond_ragged(Operand pred, const ExprList& operands, const BodyFn& then, const BodyFn& otherwise,
                              SourceLoc loc) {
  return cond_of(graph(), pred, operands, then, otherwise, true, loc);
}

ExprList Builder::cond(Operand pred, const BranchFn& then, const BranchFn& otherwise, SourceLoc loc) {
  require_fn(then && otherwise, "cond", loc);
  return cond(
      pred, ExprList{}, [&](Graph& b, const ExprList&) { return then(b); },
      [&](Graph& b, const ExprList&) { return otherwise(b); }, loc);
}

LoopResult Builder::scan(const ExprList& init, const ExprList& xs, const ScanFn& body, const ScanOptions& options,
                         SourceLoc loc) {
  Graph& g = graph();
  require_fn(static_cast<bool>(body), "scan", loc);
  const ExprList start_values = own_all(g, init, options.name, loc), stacks = own_all(g, xs, options.name, loc);
  Dims length;  // one extent, once it is known
  if (options.length) length = {*options.length};
  std::vector<Shape> rows;
  for (const Expr& x : stacks) {
    if (x.rank() == 0)
      fail_at(loc, concat_text(options.name, ": x ", rows.size(), " is ", x.shape(), ", a scalar, which has no rows"),
              "stack rows along axis 0, or capture a value that every step reads");
    if (length.empty()) length = {x.dim(0)};
    rows.emplace_back(Dims(x.shape().dims().begin() + 1, x.shape().dims().end()), x.dtype());
  }
  if (length.empty())
    fail_at(loc, concat_text(options.name, ": the length is not known: there are no xs"), "set ScanOptions::length");
  const auto draft = start(g, options.name, loc);
  const ExprList carries = declare(*draft, shapes_of(start_values), "carry", loc),
                 row = declare(*draft, rows, "x", loc);
  const LoopStep step = body(draft->graph, carries, row);
  if (step.carries.size() != init.size())
    fail_at(loc,
            concat_text(options.name, ": the body returns ", step.carries.size(), " carries, but the loop has ",
                        init.size()),
            "return LoopStep{carries, ys}");
  end(*draft, step.carries, loc);
  end(*draft, step.ys, loc);
  const Captures captures({draft.get()});
  ops::Scan op;
  op.invariants = static_cast<std::int64_t>(captures.values().size());
  op.carries = static_cast<std::int64_t>(init.size());
  op.length = length;
  op.reverse = options.reverse;
  op.checkpoint = options.checkpoint;
  op.body = close(*draft, captures.values(), true, loc);
  const Expr first = add_op(g, std::move(op), {&captures.values(), &start_values, &stacks}, loc);
  return loop_result(results_of(first, 0, init.size()), results_of(first, init.size(), step.ys.size()), {});
}

LoopResult Builder::while_loop(const ExprList& init, const ConditionFn& condition, const WhileFn& body,
                               const WhileOptions& asked, SourceLoc loc) {
  const WhileOptions options = asked.with_new_names();
  Graph& g = graph();
  require_fn(condition && body, "while_loop", loc);
  const ExprList start_values = own_all(g, init, options.name, loc);
  const auto test = start(g, options.name + "_cond", loc), draft = start(g, options.name, loc);
  end(*test, condition(test->graph, declare(*test, shapes_of(start_values), "carry", loc)), loc);
  const LoopStep step = body(draft->graph, declare(*draft, shapes_of(start_values), "carry", loc));
  if (step.carries.size() != init.size())
    fail_at(loc,
            concat_text(options.name, ": the body returns ", step.carries.size(), " carries, but the loop has ",
                        init.size()),
            "return LoopStep{carries, ys}");
  end(*draft, step.carries, loc);
  end(*draft, step.ys, loc);
  const Captures captures({test.get(), draft.get()});
  ops::While op;
  op.invariants = static_cast<std::int64_t>(captures.values().size());
  op.max_trips = options.max_iterations;
  op.cond = close(*test, captures.values(), true, loc);
  op.body = close(*draft, captures.values(), true, loc);
  const Expr first = add_op(g, std::move(op), {&captures.values(), &start_values}, loc);
  const std::size_t outputs = init.size() + step.ys.size();
  LoopResult result = loop_result(results_of(first, 0, init.size()), results_of(first, init.size(), step.ys.size()),
                                  first.result(static_cast<std::uint32_t>(outputs)));
  if (!options.truncate_ys || result.ys.empty()) return result;
  const Dim iterations = g.value_dim(Operand(result.iterations, loc), *options.max_iterations);  // ys require it
  for (Expr& y : result.ys) y = g.narrow(Operand(y, loc), 0, 0, iterations);
  return result;
}

ExprList Builder::call(std::string name, const ExprList& operands, const BodyFn& body, SourceLoc loc) {
  return call_of(graph(), std::move(name), operands, body, CallSave::All, loc);
}

ExprList Builder::checkpoint(const ExprList& operands, const BodyFn& body, CallSave save, SourceLoc loc) {
  return call_of(graph(), "checkpoint", operands, body, save, loc);
}

ExprList Builder::custom_fn(const ExprList& operands, const CustomFn& fn, SourceLoc loc) {
  Graph& g = graph();
  require_fn(static_cast<bool>(fn.body), fn.name, loc);
  const ExprList own = own_all(g, operands, fn.name, loc);
  const std::vector<Shape> shapes = shapes_of(own);
  const auto inexact = [](const std::vector<Shape>& all) {
    std::vector<Shape> out;
    for (const Shape& s : all)
      if (is_inexact(s.dtype())) out.push_back(s);
    return out;
  };
  const auto joined = [](std::vector<Shape> a, const std::vector<Shape>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  // The derivatives use only the operands.
  const auto draw = [&](const char* part, const std::vector<Shape>& takes, const BodyFn& body,
                        std::vector<Shape>& gives) {
    const auto d = drawn(g, *part ? concat_text(fn.name, "_", part) : fn.name, takes, body, loc);
    if (!d->scope->captured().empty())
      fail_at(loc,
              concat_text(d->graph.name(), " uses ", d->scope->captured()[0].value(), " of graph '", g.name(),
                          "', which is not one of its operands"),
              "pass it as an operand, so that the derivative rules can return its cotangent");
    gives = shapes_of(d->outputs);
    return close(*d, {}, false, loc);
  };
  ops::Call op;
  std::vector<Shape> results, given;
  op.body = draw("", shapes, fn.body, results);
  std::vector<Shape> residuals = joined(shapes, results);
  if (fn.forward) {
    op.forward = draw("forward", shapes, fn.forward, given);
    if (given.size() < results.size())
      fail_at(
          loc,
          concat_text(fn.name, ": forward returns ", given.size(), " values, but the body returns ", results.size()),
          "return the results, then the residuals");
    residuals.assign(given.begin() + static_cast<std::ptrdiff_t>(results.size()), given.end());
  }
  const auto require_count = [&](std::string_view part, std::size_t wanted, std::string_view hint) {
    if (given.size() != wanted)
      fail_at(loc, concat_text(fn.name, ": ", part, " gives ", given.size(), " values, not ", wanted),
              std::string(hint));
  };
  if (fn.backward) {
    op.backward = draw("backward", joined(residuals, inexact(results)), fn.backward, given);
    require_count("backward", inexact(shapes).size(), "return one cotangent for each float operand, in order");
  }
  if (fn.jvp) {
    op.jvp = draw("jvp", joined(shapes, inexact(shapes)), fn.jvp, given);
    require_count("jvp", results.size() + inexact(results).size(),
                  "return the results, then one tangent for each float result");
  }
  const Expr first = add_op(g, std::move(op), {&own}, loc);
  return results_of(first, 0, results.size());
}

ExprList Builder::optimization_barrier(const ExprList& xs, SourceLoc loc) {
  const ExprList own = own_all(graph(), xs, "optimization_barrier", loc);
  const Expr first = add_op(graph(), ops::OptimizationBarrier{}, {&own}, loc);
  return results_of(first, 0, own.size());
}

}  // namespace rlx
