// Transforms of graphs, and of functions inside a trace: the function is traced alone, transformed, and inserted.
#include "python/bindings/tracing.h"
#include "rlx/ir/op_def.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"

namespace rlx::python {
namespace {

std::vector<Wrt> wrt_of(PyGraph& g, nb::handle names) {
  std::vector<Wrt> out;
  const auto add = [&](nb::handle h) {
    if (nb::isinstance<PyValue>(h)) {
      const Expr& e = nb::cast<const PyValue&>(h).expr;
      if (!e.belongs_to(g.get()))
        raise(ErrorCode::InvalidArgument, "wrt: a value belongs to another graph",
              "give the name of a leaf, or a value of this graph");
      out.emplace_back(e);
    } else if (PyUnicode_Check(h.ptr())) {
      out.emplace_back(nb::cast<std::string>(h));
    } else {
      raise(ErrorCode::DTypeMismatch, concat_text("wrt: ", nb::repr(h).c_str(), " is neither a name nor a value"));
    }
  };
  if (PyUnicode_Check(names.ptr()) || nb::isinstance<PyValue>(names)) {
    add(names);
  } else {
    for (nb::handle h : names) add(h);
  }
  return out;
}

nb::object transformed(TransformResult r) {
  return nb::make_tuple(nb::cast(PyGraph(std::move(r.graph))), nb::cast(r.added_inputs));
}

InAxes in_axes_of(nb::dict axes) {
  InAxes out;
  for (auto [name, axis] : axes)
    if (!axis.is_none()) out.emplace(nb::cast<std::string>(name), nb::cast<std::int64_t>(axis));
  return out;
}

OutAxes out_axes_of(nb::handle axes) {
  OutAxes out;
  if (axes.is_none()) return out;
  for (nb::handle a : axes) out.push_back(a.is_none() ? std::nullopt : std::optional(nb::cast<std::int64_t>(a)));
  return out;
}

Graph& traced() {
  Graph* g = traced_graph();
  if (!g) raise(ErrorCode::InvalidArgument, "a transform of values needs a function under trace");
  return *g;
}

// A Python function that is traced inside another trace. Its graph has the inputs "x0".., then one input for each
// captured value.
struct Inner {
  Graph graph;
  ExprList captured{};
};

Inner traced_inside(Graph& outer, const std::vector<Shape>& shapes, nb::handle fn, SourceLoc loc) {
  Inner inner{Graph("inner")};
  inner.graph.set_symbols(outer.symbols());
  const BodyScope scope(inner.graph, outer, loc);
  ExprList operands;
  for (const Shape& s : shapes) operands.push_back(inner.graph.input(concat_text("x", operands.size()), s, loc));
  std::vector<Expr> outputs;
  {
    const Frame frame(inner.graph);
    for (nb::handle h : fn(value_list(operands, loc))) outputs.push_back(operand_from(inner.graph, h, loc));
  }
  inner.graph.set_outputs(outputs, loc);
  for (const Expr& e : scope.captured()) inner.captured.push_back(e);
  return inner;
}

// Inserts the graph into `outer`, with its inputs by name.
ExprList put(Graph& outer, const Graph& g, const std::map<std::string, Expr, std::less<>>& values) {
  std::vector<Expr> operands;
  for (NodeId id : g.leaves(OpKind::Input)) {
    const auto it = values.find(g.leaf_name(id));
    check(it != values.end(), "every input of a transformed function needs a value");
    operands.push_back(it->second);
  }
  return inline_body(outer, g, operands);
}

using Named = std::map<std::string, Expr, std::less<>>;
Named named(const ExprList& xs, const ExprList& captured) {
  Named out;
  for (std::size_t i = 0; i < xs.size(); ++i) out.emplace(concat_text("x", i), xs[i]);
  for (std::size_t i = 0; i < captured.size(); ++i) out.emplace(concat_text("captured", i), captured[i]);
  return out;
}

struct Call {
  SourceLoc loc;
  Graph& outer;
  ExprList xs{};
  Inner inner{Graph("none")};
};

Call begin(nb::handle operands, nb::handle fn, const std::vector<Shape>* shapes = nullptr) {
  const SourceLoc loc = user_line();
  Graph& outer = traced();
  Call c{loc, outer};
  std::vector<Shape> own;
  for (nb::handle h : operands) {
    c.xs.push_back(operand_from(outer, h, loc));
    own.push_back(c.xs.back().shape());
  }
  c.inner = traced_inside(outer, shapes ? *shapes : own, fn, loc);
  return c;
}

// A function that is traced once, for its results and for derivatives, in this graph or in a body inside it.
struct Opened {
  Opened(Inner i, ExprList x, SourceLoc l) : inner(std::move(i)), xs(std::move(x)), loc(l) {}
  Inner inner;
  ExprList xs;
  SourceLoc loc;
  Named values(Graph& g) const {
    ExprList own, captured;
    for (const Expr& x : xs) own.push_back(value_in(g, x, {}, loc));
    for (const Expr& x : inner.captured) captured.push_back(value_in(g, x, {}, loc));
    return named(own, captured);
  }
};

ExprList operands_of(nb::handle values) {
  const SourceLoc loc = user_line();
  ExprList out;
  for (nb::handle h : values) out.push_back(operand_from(traced(), h, loc));
  return out;
}

std::vector<Wrt> leaves(const std::vector<std::size_t>& wrt) {
  std::vector<Wrt> out;
  for (std::size_t i : wrt) out.emplace_back(concat_text("x", i));
  return out;
}

}  // namespace

void bind_transforms(nb::module_& m) {
  // -- transforms of graphs: (graph, names of the added inputs) --
  m.def("graph_grad", [](PyGraph& g, nb::handle wrt) { return transformed(grad(g.get(), wrt_of(g, wrt))); });
  m.def("graph_grad_with_loss",
        [](PyGraph& g, nb::handle wrt) { return transformed(grad_with_loss(g.get(), wrt_of(g, wrt))); });
  m.def("graph_value_and_grad",
        [](PyGraph& g, nb::handle wrt) { return transformed(value_and_grad(g.get(), wrt_of(g, wrt))); });
  m.def("graph_vjp", [](PyGraph& g, nb::handle wrt) { return transformed(vjp(g.get(), wrt_of(g, wrt))); });
  m.def("graph_jvp", [](PyGraph& g, nb::handle wrt) { return transformed(jvp(g.get(), wrt_of(g, wrt))); });
  m.def("graph_hvp", [](PyGraph& g, nb::handle wrt) { return transformed(hvp(g.get(), wrt_of(g, wrt))); });
  m.def("graph_jacrev", [](PyGraph& g, nb::handle wrt) { return transformed(jacrev(g.get(), wrt_of(g, wrt))); });
  m.def("graph_jacfwd", [](PyGraph& g, nb::handle wrt) { return transformed(jacfwd(g.get(), wrt_of(g, wrt))); });
  m.def("graph_hessian", [](PyGraph& g, nb::handle wrt) { return transformed(hessian(g.get(), wrt_of(g, wrt))); });
  m.def(
      "graph_vmap",
      [](PyGraph& g, nb::dict in_axes, nb::handle batch, nb::handle out_axes) {
        return transformed(vmap(g.get(), in_axes_of(in_axes), dim_from(batch, "batch"), out_axes_of(out_axes)));
      },
      nb::arg("graph"), nb::arg("in_axes"), nb::arg("batch"), nb::arg("out_axes").none() = nb::none());

  // -- transforms of functions under trace, on lists of values --
  m.def(
      "insert_graph",
      [](PyGraph& g, nb::handle operands) {
        const SourceLoc loc = user_line();
        ExprList xs;
        for (nb::handle h : operands) xs.push_back(operand_from(traced(), h, loc));
        return value_list(inline_body(traced(), g.get(), xs), loc);
      },
      "Adds the nodes of a graph to the one under trace. The operands take the places of its inputs.");
  m.def("fn_open", [](nb::handle operands, nb::handle fn) {
    Call c = begin(operands, fn);
    return std::make_unique<Opened>(std::move(c.inner), std::move(c.xs), c.loc);
  });
  nb::class_<Opened>(m, "TracedFunction")
      .def("results",
           [](const Opened& o) { return value_list(put(traced(), o.inner.graph, o.values(traced())), o.loc); })
      .def("captured",
           [](const Opened& o) {
             ExprList out;
             for (const Expr& x : o.inner.captured) out.push_back(value_in(traced(), x, {}, o.loc));
             return value_list(out, o.loc);
           })
      .def("call",  // the results for other operands, and other values in the places of the captured ones
           [](const Opened& o, nb::handle operands, nb::handle captured) {
             const auto in = named(operands_of(operands), operands_of(captured));
             return value_list(put(traced(), o.inner.graph, in), o.loc);
           })
      .def("vjp", [](const Opened& o, const std::vector<std::size_t>& wrt, nb::handle cotangents) {
        Graph& g = traced();
        const std::size_t outputs = o.inner.graph.outputs().size();
        const TransformResult r = vjp(o.inner.graph, leaves(wrt));
        Named values = o.values(g);
        std::vector<Expr> seeds;
        for (nb::handle h : cotangents) seeds.push_back(h.is_none() ? Expr() : operand_from(g, h, o.loc));
        for (const std::string& name : r.added_inputs) {
          const std::size_t i = name == "d_output" ? 0 : static_cast<std::size_t>(std::stoul(name.substr(9)));
          const Shape& s = r.graph.shape(Value(r.graph.find_leaf(OpKind::Input, name)));
          Expr seed = i < seeds.size() && seeds[i].valid() ? seeds[i] : Expr();
          if (!seed.valid()) seed = g.expand(Operand(g.constant(Tensor::scalar(s.dtype(), 0), o.loc), o.loc), s.dims());
          values.emplace(name, seed);
        }
        const ExprList out = put(g, r.graph, values);
        return value_list(std::span(out).subspan(outputs), o.loc);
      });
  m.def("fn_value_and_grad", [](nb::handle operands, nb::handle fn, const std::vector<std::size_t>& wrt) {
    Call c = begin(operands, fn);
    const TransformResult r = value_and_grad(c.inner.graph, leaves(wrt));
    const ExprList out = put(c.outer, r.graph, named(c.xs, c.inner.captured));
    // [loss, grads.., further outputs..]
    const std::size_t n = wrt.size();
    return nb::make_tuple(value_object(out[0], c.loc), value_list(std::span(out).subspan(1, n), c.loc),
                          value_list(std::span(out).subspan(1 + n), c.loc));
  });
  m.def("fn_jvp", [](nb::handle operands, nb::handle fn, const std::vector<std::size_t>& wrt, nb::handle tangents) {
    Call c = begin(operands, fn);
    const std::size_t outputs = c.inner.graph.outputs().size();
    const TransformResult r = jvp(c.inner.graph, leaves(wrt));
    Named values = named(c.xs, c.inner.captured);
    std::size_t i = 0;
    for (nb::handle h : tangents) values.emplace(concat_text("tangent_x", wrt[i++]), operand_from(c.outer, h, c.loc));
    const ExprList out = put(c.outer, r.graph, values);
    return nb::make_tuple(value_list(std::span(out).first(outputs), c.loc),
                          value_list(std::span(out).subspan(outputs), c.loc));
  });
  m.def("fn_vmap", [](nb::handle operands, nb::handle fn, nb::handle axes, nb::handle batch, nb::handle out_axes) {
    const SourceLoc loc = user_line();
    Graph& outer = traced();
    std::vector<Shape> shapes;
    InAxes in_axes;
    std::size_t i = 0;
    const nb::sequence list = nb::borrow<nb::sequence>(operands);
    for (nb::handle axis : axes) {
      const Expr x = operand_from(outer, list[i], loc);
      if (axis.is_none()) {
        shapes.push_back(x.shape());
      } else {
        const auto a = static_cast<std::size_t>(normalize_axis(nb::cast<std::int64_t>(axis), x.rank(), "vmap"));
        Dims dims = x.shape().dims();
        dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(a));
        shapes.emplace_back(dims, x.dtype());
        in_axes.emplace(concat_text("x", i), static_cast<std::int64_t>(a));
      }
      ++i;
    }
    Call c = begin(operands, fn, &shapes);
    const nb::object places = out_axes(nb::int_(c.inner.graph.outputs().size()));
    const TransformResult r = vmap(c.inner.graph, in_axes, dim_from(batch, "batch"), out_axes_of(places));
    return value_list(put(c.outer, r.graph, named(c.xs, c.inner.captured)), c.loc);
  });
  m.def(
      "trace_inside",
      [](PyGraph& g, nb::handle fn) {
        const BodyScope scope(g.get(), traced(), user_line());
        const Frame frame(g.get());
        return fn();
      },
      "Calls fn(). Its operations become nodes of a scratch graph; values of the trace may be used.");
}

}  // namespace rlx::python
