// Calls of compiled functions: the arguments give a signature, the signature selects a program, and the program runs.
// No Python code is involved, so a call costs little more than the run.
#include <array>
#include <cstring>
#include <list>
#include <unordered_map>

#include "python/bindings/calls.h"
#include "python/bindings/traced_programs.h"
#include "python/bindings/tracing.h"
#include "python/bindings/trees.h"
#include "rlx/runtime/nan_check.h"

namespace rlx::python {
namespace {

struct JitFunction {
  nb::object compile;  // (args, kwargs) -> an object that `entry_from` reads
  nb::object inlined;  // (args, kwargs) -> result; for calls with values under trace
  // None, or, for a function that is traced at every call, (args, kwargs, whether to look at its captures) -> (program,
  // arrays that follow the leaves, out_tree, guards or None, whether it was compiled now, record)
  nb::object live;
  nb::object name;
  std::vector<Py_ssize_t> static_places;
  nb::object static_names;  // a frozenset
  std::size_t most = 0;     // the most entries that are kept
  bool symbolic = false;    // the signature leaves extents out
  bool any_static = false;  // leaves that are not arrays are static arguments
  std::unordered_map<std::string, std::shared_ptr<ProgramEntry>> entries;
  std::unordered_map<std::string, std::shared_ptr<LiveProgram>> live_entries;  // in place of entries
  nb::dict statics;                                                            // static argument -> number; bounded
  std::uint64_t next_static = 0;
  std::uint64_t clock = 0, misses = 0, calls = 0;
  bool is_static(Py_ssize_t place) const {
    for (Py_ssize_t p : static_places)
      if (p == place) return true;
    return false;
  }
};

PyTypeObject* value_type = nullptr;

[[noreturn]] void raise_no_array(JitFunction& f, nb::handle leaf, const std::string& where) {
  const std::string type =
      nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(leaf.ptr()))).attr("__name__"));
  raise(ErrorCode::DTypeMismatch,
        concat_text(nb::str(f.name).c_str(), ": ", where, " is of type ", type,
                    ", which is not an array, a number, or a tuple, list, dict or dataclass of them"),
        "name an argument that is not an array in static_argnames: rlx.jit(f, static_argnames=(\"mode\",))");
}

// Appends a leaf to the signature and to the views. Returns false for a value under trace.
bool take_leaf(JitFunction& f, CallScratch& s, nb::handle leaf) {
  TensorView view;
  bool weak = false;
  s.first_dim.push_back(s.dims.size());
  if (Py_TYPE(leaf.ptr()) == value_type) return false;
  if (Py_TYPE(leaf.ptr()) == array_type) {
    const PyArray& a = *nb::inst_ptr<PyArray>(leaf);
    check_not_donated(a);
    view_tensor(s, a.tensor, view);
    weak = a.weak;
  } else if (PyFloat_CheckExact(leaf.ptr()) || PyLong_CheckExact(leaf.ptr()) || PyBool_Check(leaf.ptr()) ||
             PyComplex_CheckExact(leaf.ptr())) {
    if (PyFloat_CheckExact(leaf.ptr()) || PyComplex_CheckExact(leaf.ptr()))
      s.numbers.push_back({s.views.size(), s.tensors.size(), s.key.size() + 1});
    s.tensors.push_back(*weak_scalar(leaf));
    view_tensor(s, s.tensors.back(), view);
    weak = true;
  } else if (!view_buffer(s, leaf, view)) {
    if (!is_array_like(leaf)) raise_no_array(f, leaf, concat_text("leaf ", s.views.size(), " of the arguments"));
    s.tensors.push_back(tensor_from(leaf, nb::str(f.name).c_str()));
    view_tensor(s, s.tensors.back(), view);
  }
  if (!weak && (view.dtype == DType::F64 || view.dtype == DType::C128)) s.wide = true;
  s.key.push_back('A');
  s.key.push_back(static_cast<char>(view.dtype));
  s.key.push_back(static_cast<char>((weak ? 1 : 0) | (view.buffer ? 2 : 0)));
  if (view.buffer) {  // the device of the run, unless the function names one
    append_bytes(s.key, view.buffer->device().kind);
    append_bytes(s.key, view.buffer->device().ordinal);
  }
  const std::size_t rank = s.dims.size() - s.first_dim.back();
  append_bytes(s.key, static_cast<std::uint32_t>(rank));
  if (!f.symbolic)
    s.key.append(reinterpret_cast<const char*>(s.dims.data() + s.first_dim.back()), rank * sizeof(std::int64_t));
  s.views.push_back(view);
  return true;
}

// Appends a static argument to the signature: its number among the values seen so far.
void take_static(JitFunction& f, CallScratch& s, nb::handle value, nb::handle name) {
  const nb::object key =
      nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr()))), nb::borrow(value));
  PyObject* known = PyDict_GetItemWithError(f.statics.ptr(), key.ptr());
  if (!known && PyErr_Occurred()) {
    PyErr_Clear();
    raise(ErrorCode::DTypeMismatch,
          concat_text(nb::str(f.name).c_str(), ": the static argument ", nb::repr(name).c_str(), " is not hashable"),
          "static arguments are compared by value: use strings, numbers, and tuples in place of lists");
  }
  std::uint64_t number;
  if (known) {
    number = nb::cast<std::uint64_t>(nb::handle(known));
  } else {
    // A number is never reused, so a signature with a number that was dropped matches no program.
    if (nb::len(f.statics) >= 4 * f.most + 64) f.statics.clear();
    number = f.next_static++;
    f.statics[key] = nb::int_(number);
  }
  s.key.push_back('S');
  append_bytes(s.key, number);
}

bool array_leaf(nb::handle h) { return plain_leaf(h) || PyComplex_CheckExact(h.ptr()) || is_array_like(h); }

// Returns false if a leaf is a value under trace.
bool take_argument(JitFunction& f, CallScratch& s, nb::handle arg) {
  if (plain_leaf(arg)) {
    s.leaves.push_back(nb::borrow(arg));
    return take_leaf(f, s, arg);
  }
  const std::size_t first = s.leaves.size();
  flatten(arg, &s.leaves, nullptr, &s.key);
  std::size_t kept = first;
  for (std::size_t i = first; i < s.leaves.size(); ++i) {
    if (f.any_static && !array_leaf(s.leaves[i])) {
      take_static(f, s, s.leaves[i], s.leaves[i]);
      continue;
    }
    if (!take_leaf(f, s, s.leaves[i])) return false;
    if (kept != i) s.leaves[kept] = std::move(s.leaves[i]);
    ++kept;
  }
  s.leaves.resize(kept);
  return true;
}

std::shared_ptr<ProgramEntry> entry_from(nb::object made) {
  auto e = std::make_shared<ProgramEntry>();
  set_program(*e, nb::cast<std::shared_ptr<PyCompiled>>(made[nb::int_(0)]));
  e->out_tree = nb::cast<const TreeDef&>(made[nb::int_(1)]);
  e->weak = nb::cast<std::vector<bool>>(made[nb::int_(2)]);
  e->over = nb::cast<std::vector<std::int64_t>>(made[nb::int_(3)]);
  e->donated = nb::cast<std::vector<std::size_t>>(made[nb::int_(4)]);
  e->keeps = made[nb::int_(5)];
  // An output that cannot reuse its donated array gets memory of its own.
  if (e->direct)
    for (const LirAlias& a : e->compiled->program.compile_result().lir.plan.aliases)
      if (!a.refused.empty() && a.output < e->over.size()) e->over[a.output] = -1;
  return e;
}

// Beside arrays of float64, Python numbers become weak float64, so that they keep all digits.
void widen_numbers(CallScratch& s) {
  for (const CallScratch::Number& n : s.numbers) {
    const bool complex = s.views[n.leaf].dtype == DType::C64;
    const DType to = complex ? DType::C128 : DType::F64;
    Tensor& t = s.tensors[n.tensor];
    t = tensor_from(s.leaves[n.leaf], "a number", true, to);
    s.views[n.leaf].data = t.data();
    s.views[n.leaf].dtype = to;
    s.views[n.leaf].size_bytes = t.size_bytes();
    s.key[n.key] = static_cast<char>(to);
  }
}

nb::object run_named(ProgramEntry& e, CallScratch& s, const TreeDef& tree) {
  check_donated_once(e, s);
  NamedTensors in;
  for (std::size_t i = 0; i < s.leaves.size(); ++i)
    in.emplace(e.inputs[i], tensor_from(s.leaves[i], e.inputs[i].c_str()));
  if (s.wide)
    for (const CallScratch::Number& n : s.numbers) in.insert_or_assign(e.inputs[n.leaf], s.tensors[n.tensor]);
  take_donated(e, s);
  s.tensors.clear();  // `in` holds the only references, so that the run may reuse donated ones
  std::vector<Tensor> made;
  {
    const nb::gil_scoped_release free;
    const CtrlC interruptible(e.compiled->may_last);
    CompiledGraph& program = e.compiled->program;
    made = e.compiled->on_host ? program.run_typed(in) : program.run_device(std::move(in));
    in.clear();
  }
  std::vector<nb::object> outs;
  for (std::size_t i = 0; i < made.size(); ++i) outs.push_back(array_object(std::move(made[i]), e.weak[i]));
  return results_object(tree, outs);
}

template <class Entries>
void make_room(Entries& entries, std::size_t most) {
  while (entries.size() >= most && !entries.empty()) {
    auto oldest = entries.begin();
    for (auto it = entries.begin(); it != entries.end(); ++it)
      if (it->second->used < oldest->second->used) oldest = it;
    entries.erase(oldest);
  }
}

nb::object run(ProgramEntry& e, CallScratch& s, const TreeDef& tree) {
  return e.direct ? run_direct(e, s, tree) : run_named(e, s, tree);
}

// Most traced calls between two looks at the captures of a function whose guards failed.
constexpr std::uint32_t kMostWait = 64;

// A call of a function that is traced at every call, unless nothing that it captures can have changed.
nb::object call_live(JitFunction& f, CallScratch& s, nb::handle args, nb::handle kwargs, nb::object* record) {
  const auto it = f.live_entries.find(s.key);
  const std::shared_ptr<LiveProgram> p = it == f.live_entries.end() ? nullptr : it->second;
  if (p && p->current()) {
    p->used = ++f.clock;
    if (record) *record = p->record;
    append_arrays(s, p->constants);
    return run(*p->program, s, p->out_tree);
  }
  const std::string key = s.key;
  auto next = std::make_shared<LiveProgram>();  // a call of another thread may be using the old one
  if (p) next->failures = p->failures, next->wait = p->wait;
  if (p && p->kept) next->wait = std::min(kMostWait, 1u << std::min<std::uint32_t>(next->failures++, 6));
  const bool look = next->wait == 0;  // not at the first call: many functions are called once
  const nb::object made =
      f.live(nb::borrow(args), kwargs.is_valid() ? nb::borrow(kwargs) : nb::object(nb::dict()), look);
  next->wait = look ? kMostWait : next->wait - 1;
  next->program = nb::cast<std::shared_ptr<ProgramEntry>>(made[nb::int_(0)]);
  for (nb::handle a : made[nb::int_(1)]) next->constants.push_back(nb::borrow(a));
  next->out_tree = nb::cast<const TreeDef&>(made[nb::int_(2)]);
  const nb::object guards = made[nb::int_(3)];
  next->kept = !guards.is_none();
  if (next->kept) next->guards = guards_from(guards);
  if (nb::cast<bool>(made[nb::int_(4)])) ++f.misses;
  next->record = made[nb::int_(5)];
  if (record) *record = next->record;
  next->used = ++f.clock;
  if (!f.live_entries.contains(key)) make_room(f.live_entries, f.most);
  f.live_entries[key] = next;
  append_arrays(s, next->constants);
  return run(*next->program, s, next->out_tree);
}

// `record`, if given, gets the record of a live call.
nb::object call(JitFunction& f, nb::handle args, nb::handle kwargs, nb::object* record = nullptr) {
  CallScratchHold hold;
  CallScratch& s = *hold;
  ++f.calls;
  bool traced = false;
  const Py_ssize_t n = PyTuple_Size(args.ptr());
  append_bytes(s.key, n);
  for (Py_ssize_t i = 0; i < n && !traced; ++i) {
    const nb::handle arg = PyTuple_GetItem(args.ptr(), i);
    if (f.is_static(i))
      take_static(f, s, arg, nb::int_(i));
    else
      traced = !take_argument(f, s, arg);
  }
  if (kwargs.is_valid() && !traced) {
    nb::list names = nb::steal<nb::list>(PyDict_Keys(kwargs.ptr()));
    names.sort();
    for (nb::handle name : names) {
      const nb::handle arg = PyDict_GetItemWithError(kwargs.ptr(), name.ptr());
      s.key.push_back('K');
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
      if (!text) throw nb::python_error();
      append_bytes(s.key, size);
      s.key.append(text, static_cast<std::size_t>(size));
      if (PySequence_Contains(f.static_names.ptr(), name.ptr()) == 1) {
        take_static(f, s, arg, name);
      } else if (!take_argument(f, s, arg)) {
        traced = true;
        break;
      }
    }
  }
  if (traced || traced_graph()) {
    // Arguments that are values of a graph built by hand: the nodes go to that graph. A value whose trace has ended is
    // an error here.
    std::optional<Frame> frame;
    if (!traced_graph())
      for (const nb::object& leaf : s.leaves)
        if (!frame && Py_TYPE(leaf.ptr()) == value_type) frame.emplace(graph_of(*nb::inst_ptr<PyValue>(leaf)));
    return f.inlined(nb::borrow(args), kwargs.is_valid() ? nb::borrow(kwargs) : nb::object(nb::dict()));
  }
  if (s.wide) widen_numbers(s);
  if (!f.live.is_none()) return call_live(f, s, args, kwargs, record);
  auto it = f.entries.find(s.key);
  std::shared_ptr<ProgramEntry> entry;
  if (it != f.entries.end()) {
    entry = it->second;
  } else {
    ++f.misses;
    const std::string key = s.key;
    entry = entry_from(f.compile(nb::borrow(args), kwargs.is_valid() ? nb::borrow(kwargs) : nb::object(nb::dict())));
    make_room(f.entries, f.most);
    f.entries[key] = entry;
  }
  entry->used = ++f.clock;
  return run(*entry, s, entry->out_tree);
}

// True for a function of the package that keeps its programs, such as numpy.log. Its nodes have the line of the first
// call.
bool is_ours(nb::handle self, const JitFunction& f) {
  const nb::object of_user = nb::getattr(self, "of_user", nb::bool_(true));
  return f.live.is_none() && of_user.is(nb::bool_(false));
}

// An operand whose elements fit in every dtype of the other one, so that nothing about it has to be checked.
bool small_number(PyObject* o) {
  if (PyFloat_CheckExact(o) || PyBool_Check(o)) return true;
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow == 0 && v >= 0 && v < 128;
}

PyObject* tp_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  JitFunction& f = *nb::inst_ptr<JitFunction>(nb::handle(self));
  try {
    return call(f, args, kwargs).release().ptr();
  } catch (const NotFinite&) {
    set_error_of_exception(is_ours(self, f));
  } catch (...) {
    set_error_of_exception();
  }
  return nullptr;
}

}  // namespace

PyObject* call_known(nb::handle compiled, std::span<PyObject* const> args, bool& failed) noexcept {
  JitFunction& f = *nb::inst_ptr<JitFunction>(compiled);
  if (traced_graph() || !f.live.is_none() || !f.static_places.empty()) return nullptr;
  try {
    CallScratchHold hold;
    CallScratch& s = *hold;
    append_bytes(s.key, static_cast<Py_ssize_t>(args.size()));
    for (PyObject* const arg : args) {
      const bool array = Py_TYPE(arg) == array_type;
      if (array ? is_donated(*nb::inst_ptr<PyArray>(nb::handle(arg))) : !small_number(arg)) return nullptr;
      s.leaves.push_back(nb::borrow(arg));
      if (!take_leaf(f, s, arg)) return nullptr;
    }
    if (s.wide) widen_numbers(s);
    const auto it = f.entries.find(s.key);
    if (it == f.entries.end()) return nullptr;
    const std::shared_ptr<ProgramEntry> entry = it->second;  // another thread may drop it
    ++f.calls;
    entry->used = ++f.clock;
    failed = true;
    PyObject* const out = run(*entry, s, entry->out_tree).release().ptr();
    failed = false;
    return out;
  } catch (const NotFinite&) {
    set_error_of_exception(is_ours(compiled, f));
  } catch (...) {
    set_error_of_exception();
  }
  failed = true;
  return nullptr;
}

namespace {

int tp_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  JitFunction& f = *nb::inst_ptr<JitFunction>(nb::handle(self));
  for (const nb::object* o : {&f.compile, &f.inlined, &f.live, &f.name, &f.static_names}) Py_VISIT(o->ptr());
  Py_VISIT(f.statics.ptr());
  for (const auto& [key, entry] : f.entries) Py_VISIT(entry->keeps.ptr());
  for (const auto& [key, entry] : f.live_entries) {
    Py_VISIT(entry->record.ptr());
    for (const nb::object& a : entry->constants) Py_VISIT(a.ptr());
    for (const Guard& g : entry->guards)
      for (const nb::object* o : {&g.container, &g.name, &g.expected}) Py_VISIT(o->ptr());
  }
  // A type without a tp_traverse of its own gets one from nanobind, which visits the type. The reference is held during
  // the visit.
  if (PyObject* dict = PyObject_GenericGetDict(self, nullptr)) {
    Py_DECREF(dict);
    Py_VISIT(dict);
  }
  return 0;
}
int tp_clear(PyObject* self) {
  JitFunction& f = *nb::inst_ptr<JitFunction>(nb::handle(self));
  for (nb::object* o : {&f.compile, &f.inlined, &f.live, &f.name, &f.static_names}) o->reset();
  f.statics.clear();
  f.entries.clear();
  f.live_entries.clear();
  if (PyObject* dict = PyObject_GenericGetDict(self, nullptr)) {
    PyDict_Clear(dict);
    Py_DECREF(dict);
  }
  return 0;
}

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(tp_call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(tp_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(tp_clear)},
                       {0, nullptr}};

}  // namespace

void bind_dispatch(nb::module_& m) {
  value_type = reinterpret_cast<PyTypeObject*>(nb::type<PyValue>().ptr());
  bind_program_calls(m);
  bind_operators(m);
  m.def(
      "call_known",
      [](nb::handle compiled, nb::tuple args) -> nb::object {
        std::array<PyObject*, 8> all{};
        const auto n = static_cast<std::size_t>(PyTuple_Size(args.ptr()));
        if (n > all.size()) return nb::none();
        for (std::size_t i = 0; i < n; ++i) all[i] = PyTuple_GetItem(args.ptr(), static_cast<Py_ssize_t>(i));
        bool failed = false;
        PyObject* const out = call_known(compiled, std::span(all).first(n), failed);
        if (failed) throw nb::python_error();
        return out ? nb::steal(out) : nb::none();
      },
      nb::arg("compiled"), nb::arg("args"));
  bind_traced_programs(m);
  m.def("is_array_leaf", &array_leaf, nb::arg("x").none());
  nb::class_<JitFunction>(m, "JitFunction", nb::type_slots(slots), nb::dynamic_attr(), nb::is_weak_referenceable(),
                          "A function that is compiled once for each signature of its arguments.")
      .def(
          "__init__",
          [](JitFunction* self, nb::object compile, nb::object inlined, nb::object live, nb::object name,
             std::vector<Py_ssize_t> places, nb::object names, std::size_t most, bool symbolic, bool any_static) {
            new (self) JitFunction();
            self->compile = std::move(compile);
            self->inlined = std::move(inlined);
            self->live = std::move(live);
            self->name = std::move(name);
            self->static_places = std::move(places);
            self->static_names = std::move(names);
            self->most = most;
            self->symbolic = symbolic;
            self->any_static = any_static;
          },
          nb::arg("compile"), nb::arg("inlined"), nb::arg("live").none(), nb::arg("name"), nb::arg("places"),
          nb::arg("names"), nb::arg("most"), nb::arg("symbolic"), nb::arg("any_static"))
      .def(
          "__get__",
          [](nb::handle self, nb::handle object, nb::handle) -> nb::object {
            if (object.is_none()) return nb::borrow(self);
            return nb::module_::import_("types").attr("MethodType")(self, object);
          },
          nb::arg("object").none(), nb::arg("type").none() = nb::none())
      .def("_recorded",
           [](JitFunction& f, nb::args args) {
             nb::object record = nb::none();
             nb::object result = call(f, args, {}, &record);
             return nb::make_tuple(result, record);
           })
      .def(
          "cache_size", [](const JitFunction& f) { return f.entries.size() + f.live_entries.size(); },
          "The number of programs in the cache.")
      .def(
          "cache_clear",
          [](JitFunction& f) {
            f.entries.clear();
            f.live_entries.clear();
            f.statics.clear();
          },
          "Drops all programs from the cache.")
      .def_prop_ro(
          "misses", [](const JitFunction& f) { return f.misses; },
          "The number of compiles: calls whose signature was not in the cache.")
      .def_prop_ro(
          "programs",
          [](const JitFunction& f) {
            nb::list out;
            for (const auto& [key, e] : f.entries) out.append(nb::cast(e->compiled));
            for (const auto& [key, e] : f.live_entries)
              if (e->program) out.append(nb::cast(e->program->compiled));
            return out;
          },
          "The programs in the cache, as CompiledGraph.");
}

}  // namespace rlx::python
