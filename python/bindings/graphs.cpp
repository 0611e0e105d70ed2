// Graphs, values and symbolic dimensions in Python.
#include "python/bindings/tracing.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"

namespace rlx::python {
namespace {

thread_local Frame* top_frame = nullptr;
std::int64_t last_frame_id = 0;  // guarded by the GIL

bool is_alive(const PyValue& v) {
  try {
    (void)v.expr.shape();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Says why `v` cannot be an operand here: it is a value of another live graph, of a trace that has ended or that does
// not enclose this one (JAX: a leaked tracer), or of a graph that is gone.
[[noreturn]] void raise_leaked(const PyValue& v) {
  const std::string made =
      v.loc.line ? concat_text("made at ", v.loc.file, ":", v.loc.line) : "made by a function under trace";
  if (!v.trace && is_alive(v))
    raise(ErrorCode::InvalidArgument, concat_text("a value ", made, " belongs to another graph"),
          "a value can only be an operand in its own graph");
  raise(ErrorCode::InvalidArgument,
        v.trace ? concat_text("a traced value ", made, " is used outside of the function under trace, or after it")
                : concat_text("a value ", made, " belongs to a graph that was compiled or deleted"),
        v.trace
            ? "return it from the function instead of storing it: a traced value has no numbers outside of its trace"
            : "compile consumes the graph: keep a copy with graph.copy()");
}

nb::object symbol_info(const Graph& g) {
  nb::dict out;
  for (const auto& [name, info] : g.symbols()) out[name.c_str()] = nb::make_tuple(info.min, info.max, info.divisor);
  return out;
}

PyGraph copy_of(const PyGraph& g) { return PyGraph(Graph(g.get())); }

const Shape& shape_of(const PyValue& v) {
  try {
    return v.expr.shape();
  } catch (const Error&) {
    raise_leaked(v);
  }
}

Value value_of(const Graph& g, nb::handle h) {
  const PyValue& v = nb::cast<const PyValue&>(h);
  if (!v.expr.belongs_to(g)) raise_leaked(v);
  return v.expr.value();
}

NamedTensors tensors_of(nb::dict d) {
  NamedTensors out;
  for (auto [name, value] : d) out.emplace(nb::cast<std::string>(name), tensor_from(value, "a value"));
  return out;
}

}  // namespace

Graph& graph_of(const PyValue& v) {
  try {
    return v.expr.graph();
  } catch (const Error&) {
    raise_leaked(v);
  }
}

Graph& PyGraph::get() const {
  if (!graph) raise(ErrorCode::InvalidArgument, "this graph was consumed by compile", "compile a copy: graph.copy()");
  return *graph;
}

Frame::Frame(Graph& g, bool closed) : graph(g), id(++last_frame_id), below_(top_frame), closed_(closed) {
  top_frame = this;
}
Frame::~Frame() { top_frame = below_; }
Frame* Frame::top() { return top_frame; }
Frame& Frame::root() {
  Frame* f = this;
  while (f->below_ && !f->closed_ && BodyScope::encloses(f->below_->graph, f->graph)) f = f->below_;
  return *f;
}

Graph* traced_graph() { return top_frame ? &top_frame->graph : nullptr; }

nb::object value_object(Expr e, SourceLoc loc, bool weak) {
  return nb::cast(PyValue{std::move(e), weak, loc, top_frame ? top_frame->id : 0});
}

nb::list value_list(std::span<const Expr> values, SourceLoc loc) {
  nb::list out;
  for (const Expr& e : values) out.append(value_object(e, loc));
  return out;
}

// `beside` is the dtype of the other operand of an arithmetic op: Python numbers, which are weakly typed, take it. The
// branches: values of graphs, arrays (a constant each, shared by the frames of a trace), symbolic extents (refused),
// Python numbers, and other array-likes.
Expr operand_from(Graph& g, nb::handle h, SourceLoc loc, bool* weak, std::optional<DType> beside) {
  if (weak) *weak = false;
  if (nb::isinstance<PyValue>(h)) {
    const PyValue& v = nb::cast<const PyValue&>(h);
    if (weak) *weak = v.weak;
    // A weak constant is made again from its Python number, which does not round twice.
    if (v.number.is_valid() && beside && *beside != v.expr.dtype() && (is_float(*beside) || is_complex(*beside)))
      return operand_from(g, v.number, loc, weak, beside);
    try {
      return value_in(g, v.expr, {}, loc);
    } catch (const Error&) {
      raise_leaked(v);
    }
  }
  if (nb::isinstance<PyArray>(h)) {
    const PyArray& a = nb::cast<const PyArray&>(h);
    if (weak) *weak = a.weak;
    if (!top_frame || &top_frame->graph != &g) return g.constant(a.tensor.to_host(), loc);
    Frame& root = top_frame->root();
    auto [it, fresh] = root.constants.try_emplace(h.ptr());
    if (fresh) it->second = {nb::borrow(h), root.graph.constant(a.tensor.to_host(), loc)};
    return value_in(g, it->second.second, {}, loc);
  }
  if (nb::isinstance<Dim>(h)) {
    // A Dim belongs to no graph, so it names no value from which the extent could be read.
    raise(ErrorCode::InvalidArgument, concat_text("the symbolic extent ", nb::cast<const Dim&>(h), " is not a value"),
          "rlx.numpy.size_of(x, axis) is the extent of an axis as a value");
  }
  if (auto scalar = weak_scalar(h)) {
    if (weak) *weak = true;
    if (!beside) return g.constant(*scalar, loc);
    if (PyLong_CheckExact(h.ptr()) && is_int(*beside)) {
      if (scalar->dtype() == DType::U64) return g.scalar(static_cast<std::uint64_t>(scalar->at_i64(0)), *beside, loc);
      return g.scalar(scalar->at_i64(0), *beside, loc);
    }
    if (PyFloat_CheckExact(h.ptr())) return g.scalar(PyFloat_AsDouble(h.ptr()), *beside, loc);
    if (PyLong_CheckExact(h.ptr())) return g.constant(scalar->cast(DType::I64).cast(*beside), loc);
    if (PyComplex_CheckExact(h.ptr())) return g.constant(tensor_from(h, "a number", true, *beside), loc);
    return g.constant(scalar->cast(*beside), loc);
  }
  return g.constant(tensor_from(h, "an operand", false), loc);
}

// -- dims --

nb::object dim_object(const Dim& d) { return d.is_static() ? nb::object(nb::int_(d.value())) : nb::cast(d); }

Dim dim_from(nb::handle h, const char* what) {
  if (nb::isinstance<Dim>(h)) return nb::cast<const Dim&>(h);
  const nb::object n = nb::steal(PyNumber_Index(h.ptr()));
  if (!n.is_valid()) {
    PyErr_Clear();
    raise(ErrorCode::DTypeMismatch, concat_text(what, ": ", nb::repr(h).c_str(), " is not an integer"),
          nb::isinstance<PyValue>(h)
              ? "extents must be known while a function is traced: name the argument in static_argnames"
              : "");
  }
  const long long v = PyLong_AsLongLong(n.ptr());
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    raise(ErrorCode::InvalidArgument, concat_text(what, ": ", nb::repr(h).c_str(), " is too large"));
  }
  return Dim(static_cast<std::int64_t>(v));
}

Dims dims_from(nb::handle h, const char* what) {
  Dims out;
  if (nb::isinstance<nb::tuple>(h) || nb::isinstance<nb::list>(h)) {
    for (nb::handle d : h) out.push_back(dim_from(d, what));
  } else {
    out.push_back(dim_from(h, what));
  }
  return out;
}

nb::tuple dims_object(const Dims& dims) {
  nb::list out;
  for (const Dim& d : dims) out.append(dim_object(d));
  return nb::tuple(out);
}
nb::tuple dims_object(std::span<const std::int64_t> dims) {
  PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(dims.size()));
  for (std::size_t i = 0; i < dims.size(); ++i)
    PyTuple_SetItem(t, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(dims[i]));
  return nb::steal<nb::tuple>(t);
}

void bind_dims(nb::module_& m) {
  // Python control flow needs the answer while tracing (JAX: a ConcretizationTypeError).
  const auto undecided = [](const Dim& a, const char* op, nb::handle b) {
    raise(ErrorCode::InvalidArgument,
          concat_text("whether ", a, " ", op, " ", nb::str(b).c_str(), " is not known while a function is traced"),
          "the extent is symbolic: make it static, or compare values with rlx.numpy");
  };
  nb::class_<Dim>(m, "Dim", "A symbolic extent, an expression over symbols: \"2*seq + 1\".")
      .def("__add__", [](const Dim& a, nb::handle b) { return dim_object(a + dim_from(b)); })
      .def("__radd__", [](const Dim& a, nb::handle b) { return dim_object(dim_from(b) + a); })
      .def("__sub__", [](const Dim& a, nb::handle b) { return dim_object(a - dim_from(b)); })
      .def("__rsub__", [](const Dim& a, nb::handle b) { return dim_object(dim_from(b) - a); })
      .def("__mul__", [](const Dim& a, nb::handle b) { return dim_object(a * dim_from(b)); })
      .def("__rmul__", [](const Dim& a, nb::handle b) { return dim_object(dim_from(b) * a); })
      .def("__floordiv__", [](const Dim& a, nb::handle b) { return dim_object(floordiv(a, dim_from(b))); })
      .def("__mod__", [](const Dim& a, nb::handle b) { return dim_object(mod(a, dim_from(b))); })
      .def("__neg__", [](const Dim& a) { return dim_object(Dim(0) - a); })
      .def(
          "__eq__",
          [](const Dim& a, nb::handle b) {
            if (nb::isinstance<Dim>(b)) return a == nb::cast<const Dim&>(b);
            return false;
          },
          nb::arg("other").none())
      .def("__lt__", [=](const Dim& a, nb::handle b) { undecided(a, "<", b); })
      .def("__le__", [=](const Dim& a, nb::handle b) { undecided(a, "<=", b); })
      .def("__gt__", [=](const Dim& a, nb::handle b) { undecided(a, ">", b); })
      .def("__ge__", [=](const Dim& a, nb::handle b) { undecided(a, ">=", b); })
      .def("__bool__",
           [=](const Dim& a) -> bool {
             undecided(a, "!=", nb::int_(0));
             return false;
           })
      .def("__index__",
           [](const Dim& a) -> int {
             raise(ErrorCode::InvalidArgument, concat_text("the symbolic extent ", a, " is not a Python integer"),
                   "its value is known only when the program runs; rlx.numpy.size_of(x, axis) gives it as a value");
           })
      .def("__hash__", [](const Dim& a) { return std::hash<std::string>()(a.text()); })
      .def_prop_ro(
          "symbols", [](const Dim& a) { return nb::cast(a.symbols()); }, "The names of its symbols.")
      .def("__str__", [](const Dim& a) { return a.text(); })
      .def("__repr__", [](const Dim& a) { return concat_text("rlx.Dim(", a, ")"); });
}

namespace {

std::string name_from(nb::handle h, const char* what) {
  auto name = cast_as<std::string>(h, what);
  if (name.find('\0') != name.npos)
    raise(ErrorCode::InvalidArgument, concat_text(what, " contains a zero byte: ", described(h)));
  return name;
}

}  // namespace

void bind_graphs(nb::module_& m) {
  nb::class_<PyValue>(m, "Value", nb::is_weak_referenceable(),
                      "A value of a graph under construction, or of a function that is traced.")
      .def_prop_ro(
          "shape", [](const PyValue& v) { return dims_object(shape_of(v).dims()); },
          "The shape, a tuple of int, or of Dim where an extent is symbolic.")
      .def_prop_ro(
          "dtype", [](const PyValue& v) { return dtype_object(shape_of(v).dtype()); }, "The dtype of its elements.")
      .def_prop_ro(
          "ndim", [](const PyValue& v) { return shape_of(v).rank(); }, "The number of axes.")
      .def_prop_ro(
          "size", [](const PyValue& v) { return dim_object(shape_of(v).num_elements_dim()); },
          "The number of elements, an int or a Dim.")
      .def_prop_ro(
          "weak_type", [](const PyValue& v) { return v.weak; },
          "True if the value was made from Python scalars alone: in arithmetic it takes the dtype of the other "
          "operand.")
      .def_prop_ro(
          "alive", [](const PyValue& v) { return is_alive(v); },
          "False after its trace has ended or its graph was compiled; the value cannot be used then.")
      .def_prop_ro(
          "id", [](const PyValue& v) { return v.expr.value().text(); }, "The name in graph texts: \"%3\", \"%3#1\".")
      .def_prop_ro(
          "made_at", [](const PyValue& v) { return nb::make_tuple(v.loc.file, v.loc.line); },
          "(file, line) of your code that made it.")
      .def("_with_weak",
           [](const PyValue& v, bool weak) {
             PyValue out = v;
             out.weak = weak;
             return out;
           })
      .def("_text", [](const PyValue& v) {
        const Shape& s = shape_of(v);
        return concat_text(v.expr.value(), ": ", s);
      });

  // The methods in this order: leaves, outputs and states, symbols, look-ups, copy and texts, checks and evaluation.
  nb::class_<PyGraph>(m, "Graph",
                      "A graph under construction: add nodes, set the outputs, compile. Every op of rlx.ops is a "
                      "method: g.softmax(x, axis=-1).")
      .def(nb::init<std::string>(), nb::arg("name") = "graph")
      .def_prop_ro(
          "name", [](const PyGraph& g) { return g.get().name(); }, "The name of the graph.")
      .def("__len__", [](const PyGraph& g) { return g.get().num_nodes(); })
      .def(
          "input",
          [](PyGraph& g, nb::handle py_name, nb::handle shape, nb::handle dtype) {
            const SourceLoc loc = user_line();
            auto name = name_from(py_name, "Graph.input: name");
            return value_object(g.get().input(std::move(name), Shape(dims_from(shape), dtype_from(dtype)), loc), loc);
          },
          nb::arg("name").none(), nb::arg("shape").none(), nb::arg("dtype").none() = "float32",
          "Adds an input, which each run binds by name.")
      .def(
          "param",
          [](PyGraph& g, nb::handle py_name, nb::handle shape, nb::handle dtype, bool changes) {
            const SourceLoc loc = user_line();
            auto name = name_from(py_name, "Graph.param: name");
            return value_object(g.get().param(std::move(name), Shape(dims_from(shape), dtype_from(dtype)),
                                              changes ? ParamMode::Mutable : ParamMode::Frozen, loc),
                                loc);
          },
          nb::arg("name").none(), nb::arg("shape").none(), nb::arg("dtype").none() = "float32",
          nb::arg("mutable") = false,
          "Adds a weight, which the compiled program binds by name. `mutable`: the weight is set between runs, so it "
          "is not packed.")
      .def(
          "constant",
          [](PyGraph& g, nb::handle value, nb::handle dtype) {
            const SourceLoc loc = user_line();
            std::optional<DType> t;
            if (!dtype.is_none()) t = dtype_from(dtype);
            return value_object(g.get().constant(tensor_from(value, "constant", false, t).to_host(), loc), loc);
          },
          nb::arg("value").none(), nb::arg("dtype") = nb::none(), "Adds a constant.")
      .def(
          "state",
          [](PyGraph& g, nb::handle py_name, nb::handle init, nb::handle dtype) {
            const SourceLoc loc = user_line();
            auto name = name_from(py_name, "Graph.state: name");
            std::optional<DType> t;
            if (!dtype.is_none()) t = dtype_from(dtype);
            return value_object(g.get().state(std::move(name), tensor_from(init, "state", false, t).to_host(), loc),
                                loc);
          },
          nb::arg("name").none(), nb::arg("init").none(), nb::arg("dtype") = nb::none(),
          "Adds a state: a value that persists from run to run and begins as `init`.")
      .def(
          "set_outputs",
          [](PyGraph& g, nb::args outputs) {
            const SourceLoc loc = user_line();
            nb::object list = outputs;
            if (outputs.size() == 1 && (nb::isinstance<nb::list>(outputs[0]) || nb::isinstance<nb::tuple>(outputs[0])))
              list = nb::borrow(outputs[0]);
            std::vector<Expr> values;
            for (nb::handle h : list) values.push_back(operand_from(g.get(), h, loc));
            g.get().set_outputs(values, loc);
          },
          "Sets the outputs of a run, in this order.")
      .def(
          "set_state",
          [](PyGraph& g, nb::handle py_name, nb::handle value) {
            const SourceLoc loc = user_line();
            const auto name = name_from(py_name, "Graph.set_state: name");
            g.get().set_state(name, operand_from(g.get(), value, loc), loc);
          },
          nb::arg("name").none(), nb::arg("value").none(), "Sets the value of state `name` after a run.")
      .def(
          "symbol",
          [](PyGraph& g, const std::string& name, std::optional<std::int64_t> min, std::optional<std::int64_t> max,
             std::optional<std::int64_t> divisor) {
            if (!min && !max && !divisor) return dim_object(g.get().symbol(name));
            SymbolInfo info;
            if (min) info.min = *min;
            if (max) info.max = *max;
            if (divisor) info.divisor = *divisor;
            return dim_object(g.get().symbol(name, info));
          },
          nb::arg("name"), nb::arg("min") = nb::none(), nb::arg("max") = nb::none(), nb::arg("divisor") = nb::none(),
          "Adds a symbolic extent, whose value each run takes from its inputs.")
      .def_prop_ro(
          "symbols", [](const PyGraph& g) { return symbol_info(g.get()); }, "Name -> (least, largest, divisor).")
      .def_prop_ro(
          "outputs",
          [](PyGraph& g) {
            nb::list out;
            for (Value v : g.get().outputs()) out.append(nb::cast(PyValue{g.get().expr(v), false, {}, 0}));
            return out;
          },
          "The outputs of a run.")
      .def(
          "leaf",
          [](PyGraph& g, nb::handle py_name) -> nb::object {
            const auto name = name_from(py_name, "Graph.leaf: name");
            for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
              if (const NodeId id = g.get().find_leaf(kind, name); id.valid())
                return nb::cast(PyValue{g.get().expr(id), false, {}, 0});
            std::vector<std::string> names;
            for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
              for (NodeId id : g.get().leaves(kind)) names.push_back(g.get().leaf_name(id));
            raise(ErrorCode::NotFound, concat_text("no input, param or state '", name, "'"),
                  did_you_mean(name, names, quoted_names(names)));
          },
          nb::arg("name").none(), "The value of the input, param or state with this name.")
      .def(
          "inputs",
          [](const PyGraph& g) {
            nb::list out;
            for (NodeId id : g.get().leaves(OpKind::Input)) out.append(nb::str(g.get().leaf_name(id).c_str()));
            return out;
          },
          "The names of the inputs.")
      .def(
          "params",
          [](const PyGraph& g) {
            nb::list out;
            for (NodeId id : g.get().leaves(OpKind::Param)) out.append(nb::str(g.get().leaf_name(id).c_str()));
            return out;
          },
          "The names of the params.")
      .def(
          "states",
          [](const PyGraph& g) {
            nb::list out;
            for (NodeId id : g.get().leaves(OpKind::State)) out.append(nb::str(g.get().leaf_name(id).c_str()));
            return out;
          },
          "The names of the states.")
      .def(
          "set_label",
          [](PyGraph& g, nb::handle v, nb::handle label) {
            g.get().set_label(value_of(g.get(), v).node, cast_as<std::string>(label, "Graph.set_label: label"));
          },
          nb::arg("value").none(), nb::arg("label").none(), "Labels a node, for messages and reports.")
      .def(
          "copy", [](const PyGraph& g) { return copy_of(g); },
          "An independent copy. Values of this graph do not belong to it.")
      .def(
          "text", [](const PyGraph& g) { return print_text(g.get()); }, "The graph as text, which rlx.parse reads.")
      .def(
          "inspect", [](const PyGraph& g) { return inspect_graph(g.get()); },
          "A summary for people, one line for each node.")
      .def(
          "fingerprint", [](const PyGraph& g) { return fingerprint(g.get()).text(); },
          "A hash of the graph. Equal graphs have equal hashes on every machine.")
      .def(
          "verify", [](const PyGraph& g) { verify_or_throw(g.get(), Level::Hir, "graph"); },
          "Checks the graph. Raises an error that lists all problems.")
      .def(
          "to_bytes",
          [](const PyGraph& g) {
            const auto b = to_bytes(g.get());
            return nb::bytes(reinterpret_cast<const char*>(b.data()), b.size());
          },
          "The graph in its versioned binary format, which rlx.parse reads.")
      .def(
          "evaluate",
          [](const PyGraph& g, nb::dict values) {
            NamedTensors in = tensors_of(values);
            std::vector<Tensor> out;
            const Graph& graph = g.get();  // before the release: its error names the line of the user
            {
              const nb::gil_scoped_release released;
              out = evaluate(graph, in);
            }
            nb::list result;
            for (Tensor& t : out) result.append(array_object(std::move(t)));
            return result;
          },
          nb::arg("values") = nb::dict(), "Computes the outputs with the reference rules, op by op. It is slow.")
      .def(
          "ops",
          [](const PyGraph& g) {
            nb::list out;
            for (const Node& n : g.get().nodes()) out.append(nb::str(op_text_name(n.op).c_str()));
            return out;
          },
          "The op name of each node, in order.")
      .def("__str__", [](const PyGraph& g) { return print_text(g.get(), {.max_elements = 8}); });
  m.def(
      "parse",
      [](nb::handle source, const std::string& file) {
        if (nb::isinstance<nb::bytes>(source)) {
          const auto b = nb::cast<nb::bytes>(source);
          return PyGraph(from_bytes({static_cast<const std::byte*>(b.data()), b.size()}, file));
        }
        return PyGraph(parse_text(cast_as<std::string>(source, "parse: source"), file));
      },
      nb::arg("source").none(), nb::arg("file") = "graph", "Reads a graph from its text or its binary format.");
}

}  // namespace rlx::python
