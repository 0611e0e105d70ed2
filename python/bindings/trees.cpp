// Trees of arrays.
#include "python/bindings/trees.h"

#include <algorithm>

namespace rlx::python {
namespace {

// Class -> (flatten, unflatten) of registered classes; class -> field names of dataclasses. Guarded by the GIL.
PyObject* registered = nullptr;
PyObject* dataclass_fields = nullptr;

nb::object registration(nb::handle type) { return nb::borrow(PyDict_GetItemWithError(registered, type.ptr())); }

// The fields of a dataclass that hold children. Fields with static=True in their metadata belong to the treedef.
// Returns null for other classes.
nb::object fields_of(nb::handle type) {
  if (PyObject* known = PyDict_GetItemWithError(dataclass_fields, type.ptr())) return nb::borrow(known);
  if (!nb::hasattr(type, "__dataclass_fields__")) {
    PyErr_Clear();
    return nb::object();
  }
  nb::list arrays, others;
  for (nb::handle f : type.attr("__dataclass_fields__").attr("values")()) {
    if (nb::cast<std::string>(nb::object(nb::repr(nb::object(f.attr("_field_type"))))) != "_FIELD") continue;
    const nb::object flag = f.attr("metadata").attr("get")("static", false);
    const bool is_static = PyObject_IsTrue(flag.ptr()) == 1;
    (is_static ? others : arrays).append(f.attr("name"));
  }
  const nb::object out = nb::make_tuple(nb::tuple(arrays), nb::tuple(others));
  PyDict_SetItem(dataclass_fields, type.ptr(), out.ptr());
  return out;
}

class Walk {
 public:
  Walk(std::vector<nb::object>* leaves, TreeDef* def, std::string* key, nb::handle is_leaf)
      : leaves_(leaves), def_(def), key_(key), is_leaf_(is_leaf) {}

  void walk(nb::handle h) {
    if (++depth_ > 200)
      raise(ErrorCode::InvalidArgument, "a tree of arrays is nested more than 200 deep",
            "check whether a list or dict contains itself");
    if (plain_leaf(h) || (is_leaf_.is_valid() && nb::cast<bool>(nb::bool_(is_leaf_(h))))) {
      leaf(h);
    } else if (h.is_none()) {
      inner(TreeKind::None, 0);
    } else if (PyTuple_CheckExact(h.ptr())) {
      sequence(h, TreeKind::Tuple, nb::object());
    } else if (PyList_CheckExact(h.ptr())) {
      sequence(h, TreeKind::List, nb::object());
    } else if (PyDict_Check(h.ptr())) {
      dict(nb::borrow<nb::dict>(h));
    } else {
      other(h);
    }
    --depth_;
  }

 private:
  void leaf(nb::handle h) {
    if (leaves_) leaves_->push_back(nb::borrow(h));
    if (def_) {
      def_->nodes.push_back({});
      ++def_->leaves;
    }
  }
  void inner(TreeKind kind, std::size_t arity, nb::object type = {}, nb::object keys = {}) {
    if (key_) {
      key_->push_back('(');
      key_->push_back(static_cast<char>(kind));
      append_bytes(*key_, static_cast<std::uint32_t>(arity));
      if (type.is_valid()) append_bytes(*key_, type.ptr());
    }
    if (def_) def_->nodes.push_back({kind, static_cast<std::uint32_t>(arity), std::move(type), std::move(keys)});
  }
  void sequence(nb::handle h, TreeKind kind, nb::object type) {
    const bool list = kind == TreeKind::List;
    const Py_ssize_t n = list ? PyList_Size(h.ptr()) : PyTuple_Size(h.ptr());
    inner(kind, static_cast<std::size_t>(n), std::move(type));
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (list && i >= PyList_Size(h.ptr())) raise(ErrorCode::InvalidArgument, "a list changed while it was read");
      walk(list ? PyList_GetItem(h.ptr(), i) : PyTuple_GetItem(h.ptr(), i));
    }
  }
  // Keys in sorted order, so that dicts with equal keys have one treedef. An OrderedDict keeps its own order.
  void dict(nb::dict d) {
    nb::list keys = nb::steal<nb::list>(PyDict_Keys(d.ptr()));
    nb::object type;
    if (!PyDict_CheckExact(d.ptr()))
      if (nb::object ordered = nb::module_::import_("collections").attr("OrderedDict"); d.type().is(ordered))
        type = std::move(ordered);
    if (!type.is_valid() && PyList_Sort(keys.ptr()) != 0) {
      PyErr_Clear();
      raise(ErrorCode::DTypeMismatch, "the keys of a dict of arrays cannot be compared with each other",
            "use keys of one type, strings for example");
    }
    inner(TreeKind::Dict, nb::len(keys), type, keys);
    for (nb::handle k : keys) {
      if (key_) text_key(k);
      PyObject* value = PyDict_GetItemWithError(d.ptr(), k.ptr());
      if (!value) raise(ErrorCode::InvalidArgument, "a dict changed while it was read");
      walk(nb::borrow(value));
    }
  }
  void text_key(nb::handle k) {
    const nb::object text = PyUnicode_Check(k.ptr()) ? nb::borrow(k) : nb::object(nb::repr(k));
    Py_ssize_t n = 0;
    const char* s = PyUnicode_AsUTF8AndSize(text.ptr(), &n);
    if (!s) throw nb::python_error();
    append_bytes(*key_, PyUnicode_Check(k.ptr()) ? n : -n - 1);
    key_->append(s, static_cast<std::size_t>(n));
  }
  void other(nb::handle h) {
    const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(h.ptr())));
    if (const nb::object r = registration(type); r.is_valid()) {
      const nb::object parts = r[nb::int_(0)](h);
      const bool pair = PyTuple_Check(parts.ptr()) && PyTuple_Size(parts.ptr()) == 2;
      const nb::object held = pair ? nb::steal(PySequence_Tuple(PyTuple_GetItem(parts.ptr(), 0))) : nb::object();
      if (!held.is_valid()) {
        PyErr_Clear();
        raise(ErrorCode::DTypeMismatch, concat_text("the flatten function of ", nb::repr(type).c_str(), " returns ",
                                                    described(parts), ", not (children, static part)"));
      }
      const nb::tuple children = nb::borrow<nb::tuple>(held);
      const nb::object rest = nb::borrow(PyTuple_GetItem(parts.ptr(), 1));
      inner(TreeKind::Registered, nb::len(children), type, rest);
      if (key_) static_key(rest);
      for (nb::handle c : children) walk(c);
      return;
    }
    if (PyTuple_Check(h.ptr()))
      return sequence(h, nb::hasattr(type, "_fields") ? TreeKind::NamedTuple : TreeKind::Tuple, type);
    if (PyList_Check(h.ptr())) return sequence(h, TreeKind::List, type);
    if (const nb::object fields = fields_of(type); fields.is_valid()) {
      const nb::tuple arrays = nb::borrow<nb::tuple>(fields[nb::int_(0)]),
                      others = nb::borrow<nb::tuple>(fields[nb::int_(1)]);
      nb::list statics;
      for (nb::handle name : others) statics.append(h.attr(nb::str(name)));
      const nb::object rest = nb::make_tuple(arrays, others, nb::tuple(statics));
      inner(TreeKind::DataClass, nb::len(arrays), type, rest);
      if (key_) static_key(nb::tuple(statics));
      for (nb::handle name : arrays) walk(h.attr(nb::str(name)));
      return;
    }
    leaf(h);
  }
  // A registered class: the hash and the text of its static part belong to the treedef.
  void static_key(nb::handle h) {
    const Py_hash_t hash = PyObject_Hash(h.ptr());
    if (hash == -1) {
      PyErr_Clear();
      raise(ErrorCode::DTypeMismatch, concat_text("the static part of a tree is not hashable: ", nb::repr(h).c_str()),
            "make it a tuple or a string");
    }
    append_bytes(*key_, hash);
    text_key(nb::repr(h));
  }

  std::vector<nb::object>* leaves_;
  TreeDef* def_;
  std::string* key_;
  nb::handle is_leaf_;
  int depth_ = 0;
};

struct Builder {
  const TreeDef& def;
  const nb::object* leaves;
  std::size_t node = 0, leaf = 0;

  nb::object build() {
    const TreeNode& n = def.nodes[node++];
    switch (n.kind) {
      case TreeKind::Leaf: return leaves[leaf++];
      case TreeKind::None: return nb::none();
      case TreeKind::Tuple:
      case TreeKind::NamedTuple: {
        nb::object t = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(n.arity)));
        for (std::uint32_t i = 0; i < n.arity; ++i)
          PyTuple_SetItem(t.ptr(), static_cast<Py_ssize_t>(i), build().release().ptr());
        if (n.kind == TreeKind::NamedTuple) return n.type.attr("_make")(t);
        return n.type.is_valid() ? n.type(t) : t;
      }
      case TreeKind::List: {
        nb::list l;
        for (std::uint32_t i = 0; i < n.arity; ++i) l.append(build());
        return n.type.is_valid() ? n.type(l) : nb::object(l);
      }
      case TreeKind::Dict: {
        nb::object d = n.type.is_valid() ? n.type() : nb::object(nb::dict());
        for (nb::handle k : n.keys) d[k] = build();
        return d;
      }
      case TreeKind::DataClass: {
        // Bypasses __init__, which may check or change its arguments.
        nb::object o = n.type.attr("__new__")(n.type);
        const nb::object set = nb::borrow(reinterpret_cast<PyObject*>(&PyBaseObject_Type)).attr("__setattr__");
        for (nb::handle name : nb::borrow(n.keys[nb::int_(0)])) set(o, name, build());
        std::size_t i = 0;
        for (nb::handle name : nb::borrow(n.keys[nb::int_(1)])) set(o, name, n.keys[nb::int_(2)][nb::int_(i++)]);
        return o;
      }
      case TreeKind::Registered: {
        nb::list children;
        for (std::uint32_t i = 0; i < n.arity; ++i) children.append(build());
        const nb::object r = registration(n.type);
        return r[nb::int_(1)](n.keys, nb::tuple(children));
      }
    }
    return nb::none();
  }
};

bool same(const nb::object& a, const nb::object& b) {
  if (!a.is_valid() || !b.is_valid()) return a.is_valid() == b.is_valid();
  const int eq = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (eq < 0) PyErr_Clear();
  return eq == 1;
}

void describe(const TreeDef& d, std::size_t& at, std::string& out) {
  const TreeNode& n = d.nodes[at++];
  const auto children = [&](const char* open, const char* close) {
    out += open;
    for (std::uint32_t i = 0; i < n.arity; ++i) {
      if (i) out += ", ";
      if (n.kind == TreeKind::Dict) out += concat_text(nb::repr(n.keys[nb::int_(i)]).c_str(), ": ");
      if (n.kind == TreeKind::DataClass)
        out += concat_text(nb::cast<std::string>(nb::object(n.keys[nb::int_(0)][nb::int_(i)])), "=");
      describe(d, at, out);
    }
    out += close;
  };
  const std::string type = n.type.is_valid() ? nb::cast<std::string>(n.type.attr("__name__")) : "";
  switch (n.kind) {
    case TreeKind::Leaf: out += "*"; break;
    case TreeKind::None: out += "None"; break;
    case TreeKind::Tuple: children("(", n.arity == 1 ? ",)" : ")"); break;
    case TreeKind::List: children("[", "]"); break;
    case TreeKind::Dict: children((type + "{").c_str(), "}"); break;
    default: children((type + "(").c_str(), ")"); break;
  }
}

// The path to each leaf, in order: (kind, key) of each step.
void collect_paths(const TreeDef& d, std::size_t& at, std::vector<nb::object>& steps, nb::list& out) {
  const TreeNode& n = d.nodes[at++];
  if (n.kind == TreeKind::Leaf) {
    nb::list path;
    for (const nb::object& s : steps) path.append(s);
    out.append(nb::tuple(path));
    return;
  }
  for (std::uint32_t i = 0; i < n.arity; ++i) {
    const nb::int_ index(i);
    switch (n.kind) {
      case TreeKind::Dict: steps.push_back(nb::make_tuple("key", n.keys[index])); break;
      case TreeKind::DataClass: steps.push_back(nb::make_tuple("name", n.keys[nb::int_(0)][index])); break;
      case TreeKind::NamedTuple: steps.push_back(nb::make_tuple("name", n.type.attr("_fields")[index])); break;
      case TreeKind::Registered: steps.push_back(nb::make_tuple("child", index)); break;
      default: steps.push_back(nb::make_tuple("index", index)); break;
    }
    collect_paths(d, at, steps, out);
    steps.pop_back();
  }
}

}  // namespace

bool TreeDef::operator==(const TreeDef& o) const {
  if (nodes.size() != o.nodes.size()) return false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const TreeNode &a = nodes[i], &b = o.nodes[i];
    if (a.kind != b.kind || a.arity != b.arity || !same(a.type, b.type) || !same(a.keys, b.keys)) return false;
  }
  return true;
}

std::string TreeDef::text() const {
  std::string out;
  std::size_t at = 0;
  if (!nodes.empty()) describe(*this, at, out);
  return out;
}

bool plain_leaf(nb::handle h) {
  return Py_TYPE(h.ptr()) == array_type || nb::isinstance<PyArray>(h) || nb::isinstance<PyValue>(h) ||
         PyFloat_CheckExact(h.ptr()) || PyLong_CheckExact(h.ptr()) || PyBool_Check(h.ptr());
}

void flatten(nb::handle tree, std::vector<nb::object>* leaves, TreeDef* def, std::string* key) {
  Walk(leaves, def, key, {}).walk(tree);
}

nb::object unflatten(const TreeDef& def, const nb::object* leaves, std::size_t count) {
  if (count != def.leaves)
    raise(ErrorCode::InvalidArgument,
          concat_text("the tree ", def.text(), " has ", def.leaves, " leaves, got ", count));
  return Builder{def, leaves}.build();
}

void bind_trees(nb::module_& m) {
  registered = PyDict_New();
  dataclass_fields = PyDict_New();
  nb::class_<TreeDef>(m, "TreeDef", "The structure of a tree of arrays, without its leaves.")
      .def_prop_ro("num_leaves", [](const TreeDef& d) { return d.leaves; })
      .def_prop_ro(
          "_plain",
          [](const TreeDef& d) {
            return std::ranges::all_of(d.nodes, [](const TreeNode& n) {
              return n.kind != TreeKind::NamedTuple && n.kind != TreeKind::DataClass && n.kind != TreeKind::Registered;
            });
          },
          "True if it has no class of the user, whose methods could read anything.")
      .def(
          "unflatten",
          [](const TreeDef& d, nb::handle leaves) {
            std::vector<nb::object> held;
            for (nb::handle l : leaves) held.push_back(nb::borrow(l));
            return unflatten(d, held.data(), held.size());
          },
          nb::arg("leaves"), "The tree with this structure and these leaves.")
      .def(
          "paths",
          [](const TreeDef& d) {
            nb::list out;
            std::vector<nb::object> steps;
            std::size_t at = 0;
            if (!d.nodes.empty()) collect_paths(d, at, steps, out);
            return out;
          },
          "The path to each leaf, as steps: (\"key\", of a dict), (\"index\", ...), (\"name\", ...) or (\"child\", "
          "...).")
      .def(
          "__eq__",
          [](const TreeDef& a, nb::handle b) { return nb::isinstance<TreeDef>(b) && a == nb::cast<const TreeDef&>(b); },
          nb::arg("other").none())
      .def("__hash__", [](const TreeDef& a) { return std::hash<std::string>()(a.text()); })
      .def("__repr__", [](const TreeDef& a) { return concat_text("TreeDef(", a.text(), ")"); });
  m.def(
      "tree_flatten",
      [](nb::handle tree, nb::handle is_leaf) {
        std::vector<nb::object> leaves;
        TreeDef def;
        Walk(&leaves, &def, nullptr, is_leaf.is_none() ? nb::handle() : is_leaf).walk(tree);
        nb::list out;
        for (nb::object& l : leaves) out.append(std::move(l));
        return nb::make_tuple(out, nb::cast(std::move(def)));
      },
      nb::arg("tree").none(), nb::arg("is_leaf").none() = nb::none(),
      "(leaves, treedef) of a tree of tuples, lists, dicts, dataclasses and registered classes.");
  m.def(
      "register_tree",
      [](nb::handle type, nb::handle apart, nb::handle together) {
        if (!PyType_Check(type.ptr()) || !PyCallable_Check(apart.ptr()) || !PyCallable_Check(together.ptr()))
          raise(ErrorCode::DTypeMismatch,
                concat_text("tree.register takes a class and two functions, got ", described(type), ", ",
                            described(apart), " and ", described(together)));
        const nb::object pair = nb::make_tuple(apart, together);
        PyDict_SetItem(registered, type.ptr(), pair.ptr());
      },
      nb::arg("type").none(), nb::arg("flatten").none(), nb::arg("unflatten").none());
}

}  // namespace rlx::python
