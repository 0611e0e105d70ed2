// Ops of the op table in Python: nodes by name from Python arguments, type promotion as in JAX, and the table itself.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <unordered_map>

#include "python/bindings/tracing.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/custom.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx::python {
namespace {

// -- type promotion: the lattice of JAX, in which Python scalars lie below the array dtypes of their class --

struct Typed {
  DType type;
  bool weak;
};

int class_of(DType t) { return t == DType::Bool ? 0 : is_complex(t) ? 3 : is_float(t) ? 2 : 1; }

[[noreturn]] void no_common(DType a, DType b, std::string_view op) {
  raise(ErrorCode::DTypeMismatch, concat_text(op, ": ", numpy_name(a), " and ", numpy_name(b), " have no common dtype"),
        "cast one of them: x.astype(rlx.float32)");
}

Typed join(Typed a, Typed b, std::string_view op) {
  const auto both = [&](DType x, DType y) {
    const auto t = promote(x, y);
    if (!t) no_common(x, y, op);
    return *t;
  };
  if (a.weak == b.weak) {
    if (a.type == b.type) return a;
    if (!a.weak || class_of(a.type) == class_of(b.type)) return {both(a.type, b.type), a.weak};
    return class_of(a.type) > class_of(b.type) ? a : b;
  }
  const Typed weak = a.weak ? a : b, strong = a.weak ? b : a;
  if (is_storage_only(strong.type)) no_common(a.type, b.type, op);
  if (class_of(weak.type) <= class_of(strong.type)) return strong;
  if (class_of(weak.type) == 3 && class_of(strong.type) == 2) return {both(DType::C64, strong.type), false};
  return weak;
}

bool number(nb::handle h) {
  return PyBool_Check(h.ptr()) || PyFloat_CheckExact(h.ptr()) || PyLong_CheckExact(h.ptr()) ||
         PyComplex_CheckExact(h.ptr());
}

// The type of an operand, without adding a node for it.
std::optional<Typed> type_of(nb::handle h) {
  if (nb::isinstance<PyValue>(h)) {
    const PyValue& v = nb::cast<const PyValue&>(h);
    try {
      return Typed{v.expr.dtype(), v.weak};
    } catch (const Error&) {
      return {};  // operand_from raises the error
    }
  }
  if (nb::isinstance<PyArray>(h)) {
    const PyArray& a = nb::cast<const PyArray&>(h);
    return Typed{a.tensor.dtype(), a.weak};
  }
  if (number(h)) return Typed{weak_scalar(h)->dtype(), true};
  return {};
}

struct PromotedOperands {
  std::vector<Expr> values;
  bool all_weak = true;
};

// Casts the operands from `first` on to one dtype.
PromotedOperands promoted_operands(Graph& g, nb::sequence operands, std::size_t first, SourceLoc loc,
                                   std::string_view op) {
  const std::size_t n = nb::len(operands);
  std::optional<Typed> common;
  std::vector<nb::object> held;
  for (std::size_t i = 0; i < n; ++i) {
    nb::object o = operands[i];
    if (i >= first) {
      std::optional<Typed> t = type_of(o);
      if (!t && !nb::isinstance<PyValue>(o)) {  // NumPy arrays and lists become rlx arrays here
        o = array_object(tensor_from(o, "an operand", false));
        t = type_of(o);
      }
      // A Python integer takes the integer dtype of the other operands. It is checked to fit.
      if (t && t->weak && number(o) && class_of(t->type) == 1)
        t->type = common || t->type == DType::I32 ? DType::I32 : t->type;
      if (t) common = common ? join(*common, *t, op) : *t;
    }
    held.push_back(std::move(o));
  }
  PromotedOperands out;
  for (std::size_t i = 0; i < n; ++i) {
    bool weak = false;
    const bool joins = i >= first && common;
    Expr e = operand_from(g, held[i], loc, &weak, joins ? std::optional<DType>(common->type) : std::nullopt);
    if (joins && e.dtype() != common->type) e = g.add(ops::Cast{common->type}, {e}, loc);
    if (i >= first) out.all_weak = out.all_weak && weak;
    out.values.push_back(std::move(e));
  }
  out.all_weak = common && common->weak;
  return out;
}

// -- attributes --

[[noreturn]] void bad_attr(std::string_view op, const AttrField& f, nb::handle value, std::string_view wanted) {
  raise(ErrorCode::InvalidArgument, concat_text(op, ": ", f.name, " = ", nb::repr(value).c_str(), " is not ", wanted));
}

std::int64_t integer_of(std::string_view op, const AttrField& f, nb::handle value) {
  const nb::object n = nb::steal(PyNumber_Index(value.ptr()));
  if (!n.is_valid()) {
    PyErr_Clear();
    bad_attr(op, f, value, "an integer");
  }
  const long long v = PyLong_AsLongLong(n.ptr());
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    bad_attr(op, f, value, "an integer of 64 bits");
  }
  return v;
}

std::int64_t enumerator_of(std::string_view op, const AttrField& f, nb::handle value) {
  std::vector<std::string> names(f.enum_names.begin(), f.enum_names.end());
  if (PyUnicode_Check(value.ptr())) {
    const auto name = nb::cast<std::string>(value);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return static_cast<std::int64_t>(i);
    raise(ErrorCode::InvalidArgument, concat_text(op, ": ", f.name, " = '", name, "' is not known"),
          did_you_mean(name, names, quoted_names(names, 20)));
  }
  bad_attr(op, f, value, concat_text("one of ", quoted_names(names, 20)));
}

template <class F>
auto list_of(std::string_view op, const AttrField& f, nb::handle value, F&& element) {
  std::vector<decltype(element(value))> out;
  if (PyUnicode_Check(value.ptr()) || !PySequence_Check(value.ptr()) || nb::isinstance<PyValue>(value)) {
    out.push_back(element(value));
    return out;
  }
  const nb::sequence items = nb::borrow<nb::sequence>(value);
  for (std::size_t i = 0; i < nb::len(items); ++i) out.push_back(element(items[i]));
  (void)op, (void)f;
  return out;
}

double number_of(std::string_view op, const AttrField& f, nb::handle value) {
  const double d = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    bad_attr(op, f, value, "a number");
  }
  return d;
}

AttrValue attr_from(std::string_view op, const AttrField& f, nb::handle value) {
  if (value.is_none() && (is_optional(f.type) || f.type == AttrType::OptBody)) {
    if (f.type == AttrType::OptBody) return Subgraph();
    return std::monostate();
  }
  switch (f.type) {
    case AttrType::Bool:
    case AttrType::OptBool:
      if (!PyBool_Check(value.ptr())) bad_attr(op, f, value, "True or False");
      return value.ptr() == Py_True;
    case AttrType::I64:
    case AttrType::OptI64: return integer_of(op, f, value);
    case AttrType::F64:
    case AttrType::OptF64: return number_of(op, f, value);
    case AttrType::Enum:
    case AttrType::OptEnum: return enumerator_of(op, f, value);
    case AttrType::String:
      if (!PyUnicode_Check(value.ptr())) bad_attr(op, f, value, "a string");
      return nb::cast<std::string>(value);
    case AttrType::DType:
    case AttrType::OptDType: return dtype_from(value, concat_text(op, ": ", f.name).c_str());
    case AttrType::DimList: return dims_from(value, concat_text(op, ": ", f.name).c_str());
    case AttrType::I64List: return list_of(op, f, value, [&](nb::handle v) { return integer_of(op, f, v); });
    case AttrType::F64List: return list_of(op, f, value, [&](nb::handle v) { return number_of(op, f, v); });
    case AttrType::EnumList: return list_of(op, f, value, [&](nb::handle v) { return enumerator_of(op, f, v); });
    case AttrType::Bytes: {
      if (!nb::isinstance<nb::bytes>(value)) bad_attr(op, f, value, "bytes");
      const auto b = nb::cast<nb::bytes>(value);
      const auto* p = static_cast<const std::byte*>(b.data());
      return std::vector<std::byte>(p, p + b.size());
    }
    case AttrType::Tensor: return tensor_from(value, std::string(f.name).c_str(), false).to_host();
    case AttrType::Body:
    case AttrType::OptBody:
      if (!nb::isinstance<PyGraph>(value)) bad_attr(op, f, value, "a graph");
      return Subgraph(std::make_shared<const Graph>(nb::cast<const PyGraph&>(value).get()));
    case AttrType::Operands: return integer_of(op, f, value);
  }
  bad_attr(op, f, value, "of a known type");
}

bool is_axis(std::string_view name) { return name == "axis" || name == "axes"; }

// Sets attribute `name`. Axes may be negative; they count from the rank of the first operand.
void set_attr(const NamedOp& op, std::string_view op_name, const std::string& name, nb::handle value, int rank) {
  for (const AttrField& f : op.def->attrs) {
    if (f.name != name || f.place == AttrPlace::Mnemonic || f.place == AttrPlace::Suffix) continue;
    AttrValue v = attr_from(op_name, f, value);
    if (is_axis(name) && rank >= 0) {
      if (auto* one = std::get_if<std::int64_t>(&v)) *one = normalize_axis(*one, rank, op_name);
      if (auto* many = std::get_if<std::vector<std::int64_t>>(&v))
        for (auto& a : *many) a = normalize_axis(a, rank, op_name);
    }
    f.set(op.op.get(), std::move(v));
    return;
  }
  std::vector<std::string> names;
  for (const AttrField& f : op.def->attrs)
    if (f.place != AttrPlace::Mnemonic && f.place != AttrPlace::Suffix && f.type != AttrType::Operands)
      names.emplace_back(f.name);
  for (int i = 0; i < op.def->inputs.count; ++i)
    if (op.def->inputs.is_optional(i)) names.emplace_back(op.def->inputs.names[i]);
  PyErr_SetString(PyExc_TypeError,
                  concat_text(op_name, ": there is no argument '", name, "'", names.empty() ? "" : "; ",
                              did_you_mean(name, names, quoted_names(names, 20)))
                      .c_str());
  throw nb::python_error();
}

bool names_operand(const InputSpec& spec, std::string_view name) {
  for (int i = 0; i < spec.count; ++i)
    if (spec.names[i] == name) return true;
  return false;
}

bool has_attr(const OpDef& def, std::string_view name) {
  return std::any_of(def.attrs.begin(), def.attrs.end(), [&](const AttrField& f) { return f.name == name; });
}

// The graph that a call adds to: the given one, else that of the function under trace, else that of the first value.
Graph& graph_for(nb::handle given, nb::sequence operands) {
  if (!given.is_none()) return nb::cast<const PyGraph&>(given).get();
  if (Graph* g = traced_graph()) return *g;
  for (std::size_t i = 0; i < nb::len(operands); ++i) {
    const nb::object o = operands[i];
    if (nb::isinstance<PyValue>(o)) return graph_of(nb::cast<const PyValue&>(o));
  }
  raise(ErrorCode::InvalidArgument, "there is no graph to add to",
        "call it on values of a graph, or in a function under rlx.jit");
}

// True for ops whose result is weak if all operands are weak: ops that compute or move elements, and not ops that state
// a dtype.
bool keeps_weakness(const OpDef& def, const Expr& result, const std::vector<Expr>& operands) {
  return def.kind != OpKind::Cast && !operands.empty() && result.dtype() == operands.back().dtype() &&
         result.dtype() != DType::Bool;
}

nb::object add_node(std::string name, nb::sequence operands, nb::dict attrs, nb::handle graph,
                    std::optional<int> same) {
  const SourceLoc loc = user_line();
  std::optional<NamedOp> op = find_op(name);
  if (!op) {
    std::vector<std::string> names;
    for (const OpDef* d : all_op_defs()) names.emplace_back(d->name);
    raise(ErrorCode::NotFound, concat_text("there is no op '", name, "'"),
          did_you_mean(name, names, "dir(rlx.ops) lists all ops"));
  }
  Graph& g = graph_for(graph, operands);
  const OpDef& def = *op->def;
  if (def.kind == OpKind::Cast && nb::len(operands) == 1 && nb::isinstance<PyValue>(operands[0]) &&
      attrs.contains("to")) {
    const DType to = dtype_from(attrs["to"]);
    if (nb::inst_ptr<PyValue>(operands[0])->number.is_valid() && (is_float(to) || is_complex(to)))
      return value_object(operand_from(g, operands[0], loc, nullptr, to), loc);
  }
  if (!same && def.elementwise != ElementwiseKind::No) same = def.kind == OpKind::Where ? 1 : 0;
  const std::size_t first = same ? static_cast<std::size_t>(*same) : nb::len(operands);
  PromotedOperands own = promoted_operands(g, operands, first, loc, name);
  if (first >= own.values.size()) {
    own.all_weak = !own.values.empty();
    for (std::size_t i = 0; i < own.values.size(); ++i) {
      const auto t = type_of(operands[i]);
      own.all_weak = own.all_weak && t && t->weak;
    }
  }
  const int rank = own.values.empty() ? -1 : own.values[0].rank();
  std::vector<std::pair<std::string_view, Expr>> by_name;
  std::vector<std::string> operand_names;
  operand_names.reserve(nb::len(attrs));
  for (auto [key, value] : attrs) {
    const auto attr = nb::cast<std::string>(key);
    // A string is an attribute with the same name as an operand: mask="causal" of attention.
    if (names_operand(def.inputs, attr) && !PyUnicode_Check(value.ptr())) {
      if (value.is_none()) continue;
      operand_names.push_back(attr);
      by_name.emplace_back(operand_names.back(), operand_from(g, value, loc));
      // An array with that name selects the mask attribute: truth values, or numbers that are added to scores.
      if (attr == "mask" && has_attr(def, attr))
        set_attr(*op, name, attr, nb::str(by_name.back().second.dtype() == DType::Bool ? "custom" : "bias"), rank);
    } else {
      set_attr(*op, name, attr, value, rank);
    }
  }
  // As in C++: each head has a kv head of its own unless the call says otherwise.
  if (attrs.contains("num_heads") && !attrs.contains("kv_heads") && has_attr(def, "kv_heads"))
    set_attr(*op, name, "kv_heads", attrs["num_heads"], rank);
  const OpBox box(def.kind, op->op);
  Expr made;
  if (!by_name.empty() || def.inputs.masked) {
    if (own.values.size() > static_cast<std::size_t>(def.inputs.count))
      raise(ErrorCode::InvalidArgument,
            concat_text(name, " takes ", def.inputs.text(), ", got ", own.values.size(), " operands"));
    std::vector<std::pair<std::string_view, Expr>> all;
    for (std::size_t i = 0; i < own.values.size(); ++i) all.emplace_back(def.inputs.names[i], own.values[i]);
    all.insert(all.end(), by_name.begin(), by_name.end());
    made = g.add_named(box, all, loc);
  } else {
    made = g.add(box, std::vector<Value>(own.values.begin(), own.values.end()), loc);
  }
  const std::uint32_t results = g.node(made.value().node).num_results();
  const bool weak = own.all_weak && keeps_weakness(def, made, own.values);
  if (results == 1) return value_object(made, loc, weak);
  nb::list out;
  for (std::uint32_t r = 0; r < results; ++r) out.append(value_object(made.result(r), loc));
  return nb::tuple(out);
}

std::string default_text(const OpDef& def, const AttrField& f) {
  const AttrValue v = f.get(default_op(def.kind).data());
  if (std::holds_alternative<std::monostate>(v)) return "None";
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "True" : "False";
  if (const auto* i = std::get_if<std::int64_t>(&v)) {
    if (f.type == AttrType::Enum || f.type == AttrType::OptEnum)
      return concat_text("'", f.enum_names[static_cast<std::size_t>(*i)], "'");
    return std::to_string(*i);
  }
  if (const auto* d = std::get_if<double>(&v)) {
    std::string text;
    detail::append_text(text, *d);
    return text;
  }
  if (const auto* t = std::get_if<DType>(&v)) return concat_text("'", numpy_name(*t), "'");
  if (const auto* l = std::get_if<std::vector<std::int64_t>>(&v)) {
    std::string text = "(";
    for (std::int64_t i : *l) text += concat_text(i, ", ");
    return l->empty() ? "()" : text.substr(0, text.size() - (l->size() > 1 ? 2 : 1)) + ")";
  }
  return "";
}

std::string_view type_text(AttrType t) {
  switch (t) {
    case AttrType::Bool:
    case AttrType::OptBool: return "bool";
    case AttrType::I64:
    case AttrType::OptI64: return "int";
    case AttrType::F64:
    case AttrType::OptF64: return "float";
    case AttrType::Enum:
    case AttrType::OptEnum:
    case AttrType::String: return "str";
    case AttrType::DType:
    case AttrType::OptDType: return "dtype";
    case AttrType::DimList: return "shape";
    case AttrType::I64List: return "ints";
    case AttrType::F64List: return "floats";
    case AttrType::EnumList: return "strs";
    case AttrType::Bytes: return "bytes";
    case AttrType::Tensor: return "array";
    case AttrType::Body:
    case AttrType::OptBody: return "graph";
    case AttrType::Operands: return "operands";
  }
  return "";
}

// All that the signature and the docstring of an op need.
nb::dict describe(const OpDef& def) {
  nb::dict out;
  out["name"] = nb::str(def.name.data(), def.name.size());
  out["what"] = nb::str(def.what.data(), def.what.size());
  out["level"] = def.level == Level::Hir ? "hir" : def.level == Level::Mir ? "mir" : "lir";
  out["leaf"] = def.is_leaf();
  out["elementwise"] = def.elementwise != ElementwiseKind::No;
  nb::list operands;
  for (int i = 0; i < def.inputs.count; ++i)
    operands.append(
        nb::make_tuple(nb::str(def.inputs.names[i].data(), def.inputs.names[i].size()), def.inputs.is_optional(i)));
  out["operands"] = operands;
  out["variadic"] = def.inputs.variadic;
  out["behind"] = def.inputs.trailing;
  nb::list attrs, names;
  for (const AttrField& f : def.attrs) {
    nb::list values;
    for (std::string_view v : f.enum_names) values.append(nb::str(v.data(), v.size()));
    if (f.place == AttrPlace::Mnemonic || f.place == AttrPlace::Suffix) {
      for (std::string_view v : f.enum_names) {
        const std::string name = f.place == AttrPlace::Mnemonic ? std::string(v) : concat_text(def.name, "_", v);
        names.append(nb::str(name.c_str()));
      }
      continue;
    }
    if (f.type == AttrType::Operands) continue;
    nb::dict a;
    a["name"] = nb::str(f.name.data(), f.name.size());
    a["type"] = nb::str(type_text(f.type).data());
    a["default"] = nb::str(default_text(def, f).c_str());
    a["values"] = values;
    attrs.append(a);
  }
  out["attrs"] = attrs;
  if (nb::len(names) == 0) names.append(nb::str(def.name.data(), def.name.size()));
  out["names"] = names;
  return out;
}

// The first sample of an op as text: the dtypes that may replace f32, and the shapes of operands and results.
struct OpExample {
  std::string_view name, dtypes, text;
};
constexpr OpExample kOpExamples[] = {
#include "python/bindings/op_examples.txt"
};

// For the docstring of an op: the dtypes by NumPy's names, and the shapes.
nb::tuple example_of(const std::string& name) {
  nb::list dtypes;
  const auto* example =
      std::find_if(std::begin(kOpExamples), std::end(kOpExamples), [&](const OpExample& e) { return e.name == name; });
  if (example == std::end(kOpExamples)) return nb::make_tuple(dtypes, "");
  std::istringstream words{std::string(example->dtypes)};
  for (std::string word; words >> word;)
    if (const auto t = parse_dtype(word)) dtypes.append(nb::str(std::string(numpy_name(*t)).c_str()));
  return nb::make_tuple(dtypes, nb::str(example->text.data(), example->text.size()));
}

ExprList values_of(Graph& g, nb::handle list, SourceLoc loc) {
  ExprList out;
  for (nb::handle h : list) out.push_back(operand_from(g, h, loc));
  return out;
}

// Builder functions that add several nodes: nb::object f(Graph&, operands, SourceLoc).
template <class F>
nb::object built(nb::sequence operands, F&& f) {
  const UserCall line;
  const SourceLoc loc = line.loc();
  Graph& g = graph_for(nb::none(), operands);
  std::vector<Operand> own;
  for (std::size_t i = 0; i < nb::len(operands); ++i) own.emplace_back(operand_from(g, operands[i], loc), loc);
  return f(g, own, loc);
}
nb::object one(Expr e, SourceLoc loc) { return value_object(std::move(e), loc); }

}  // namespace

void bind_ops(nb::module_& m) {
  m.def("add_node", &add_node, nb::arg("name"), nb::arg("operands"), nb::arg("attrs"),
        nb::arg("graph").none() = nb::none(), nb::arg("same") = nb::none());
  m.def("op_table", [] {
    nb::list out;
    for (const OpDef* d : all_op_defs()) out.append(describe(*d));
    return out;
  });
  m.def("op_example", &example_of);
  m.def(
      "result_type",
      [](nb::args operands) {
        std::optional<Typed> common;
        for (nb::handle h : operands) {
          std::optional<Typed> t = type_of(h);
          if (!t)
            if (const auto d = dtype_or_none(h)) t = Typed{*d, false};
          if (!t) t = Typed{tensor_from(h, "an operand").dtype(), false};
          common = common ? join(*common, *t, "result_type") : *t;
        }
        if (!common) raise(ErrorCode::InvalidArgument, "result_type: no operands");
        return nb::make_tuple(dtype_object(common->type), common->weak);
      },
      "The dtype that operands are promoted to, and whether it is weak.");
  m.def(
      "trace",
      [](PyGraph& g, nb::handle fn) {
        const Frame frame(g.get());
        return fn();
      },
      nb::arg("graph"), nb::arg("fn"), "Calls fn(); its operations become nodes of the graph.");
  m.def(
      "tracing", [] { return traced_graph() != nullptr; }, "True while this thread traces a function.");
  m.def(
      "value",
      [](nb::handle x, nb::handle graph) {
        const SourceLoc loc = user_line();
        nb::list l;
        l.append(x);
        Graph& g = graph_for(graph, nb::borrow<nb::sequence>(l));
        bool weak = false;
        Expr e = operand_from(g, x, loc, &weak);
        nb::object out = value_object(std::move(e), loc, weak);
        if (nb::isinstance<PyValue>(x)) nb::inst_ptr<PyValue>(out)->number = nb::inst_ptr<PyValue>(x)->number;
        if (number(x) && !PyBool_Check(x.ptr())) nb::inst_ptr<PyValue>(out)->number = nb::borrow(x);
        return out;
      },
      nb::arg("x").none(), nb::arg("graph").none() = nb::none());

  m.def("sort", [](nb::sequence xs, std::int64_t axis, bool descending) {
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) -> nb::object {
      if (x.size() == 1) return one(g.sort(x[0], axis, descending), loc);
      ExprList more;
      for (std::size_t i = 1; i < x.size(); ++i) more.push_back(x[i].expr());
      return nb::tuple(value_list(g.sort(x[0], more, axis, descending), loc));
    });
  });
  m.def("argsort", [](nb::sequence xs, std::int64_t axis, bool descending) {
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) {
      return one(g.argsort(x[0], axis, descending), loc);
    });
  });
  m.def("pad", [](nb::sequence xs, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high,
                  const std::vector<std::int64_t>& interior) {
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) {
      return one(g.pad(x[0], low, high, x[1], interior), loc);
    });
  });
  m.def("take_along_axis", [](nb::sequence xs, std::int64_t axis) {
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) {
      return one(g.take_along_axis(x[0], x[1], axis), loc);
    });
  });
  m.def("dim_size", [](nb::sequence xs, std::int64_t axis) {
    return built(xs,
                 [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) { return one(g.dim_size(x[0], axis), loc); });
  });
  m.def("reshape", [](nb::sequence xs, nb::handle dims) {
    const Dims to = dims_from(dims);
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) { return one(g.reshape(x[0], to), loc); });
  });
  m.def("expand", [](nb::sequence xs, nb::handle dims) {
    const Dims to = dims_from(dims);
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) { return one(g.expand(x[0], to), loc); });
  });
  m.def("matmul", [](nb::sequence xs) {
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) { return one(g.matmul(x[0], x[1]), loc); });
  });
  m.def("rng_key", [](std::uint64_t seed) {
    const SourceLoc loc = user_line();
    Graph* g = traced_graph();
    if (!g) raise(ErrorCode::InvalidArgument, "there is no graph to add to");
    return one(g->rng_key(seed, loc), loc);
  });
  m.def("rng_split", [](nb::sequence xs, std::int64_t count) {
    return built(xs,
                 [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) { return one(g.rng_split(x[0], count), loc); });
  });
  m.def("rng_fold_in", [](nb::sequence xs) {
    return built(xs,
                 [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) { return one(g.rng_fold_in(x[0], x[1]), loc); });
  });
  m.def("rng_bits", [](nb::sequence xs, nb::handle dims, nb::handle dtype) {
    const Dims to = dims_from(dims);
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) {
      return one(g.rng_bits(x[0], to, dtype_from(dtype)), loc);
    });
  });
  m.def("rng_uniform", [](nb::sequence xs, nb::handle dims, nb::handle dtype, double low, double high) {
    const Dims to = dims_from(dims);
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) {
      return one(g.rng_uniform(x[0], to, dtype_from(dtype), low, high), loc);
    });
  });
  m.def("rng_normal", [](nb::sequence xs, nb::handle dims, nb::handle dtype) {
    const Dims to = dims_from(dims);
    return built(xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) {
      return one(g.rng_normal(x[0], to, dtype_from(dtype)), loc);
    });
  });
  m.def("rng_bernoulli", [](nb::sequence xs, double p, nb::handle dims) {
    const Dims to = dims_from(dims);
    return built(
        xs, [&](Graph& g, std::vector<Operand>& x, SourceLoc loc) { return one(g.rng_bernoulli(x[0], p, to), loc); });
  });
  m.def("barrier", [](nb::sequence xs) {
    const SourceLoc loc = user_line();
    Graph& g = graph_for(nb::none(), xs);
    return nb::tuple(value_list(g.optimization_barrier(values_of(g, xs, loc), loc), loc));
  });
}

}  // namespace rlx::python
