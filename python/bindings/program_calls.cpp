// Calls of programs with one signature. If all leaves match the program, no Python code runs.
#include <utility>

#include "python/bindings/calls.h"

namespace rlx::python {
namespace {

/// The base class of rlx.Program. Calls that it cannot run go to Program._run_tree.
struct ProgramCall {
  ProgramCall() = default;
  ProgramCall(const ProgramCall&) = delete;
  ProgramCall& operator=(const ProgramCall&) = delete;
  ProgramEntry entry;
  std::vector<Shape> takes;  // static extents of its inputs
};

// Appends a leaf to the views. Returns false if it does not match the input of the program.
bool take(const ProgramCall& p, CallScratch& s, nb::handle leaf) {
  const std::size_t place = s.views.size();
  if (place == p.takes.size()) return false;
  TensorView view;
  const std::size_t first = s.dims.size();
  s.first_dim.push_back(first);
  if (Py_TYPE(leaf.ptr()) == array_type) {
    const PyArray& a = *nb::inst_ptr<PyArray>(leaf);
    check_not_donated(a);
    view_tensor(s, a.tensor, view);
  } else if (!view_buffer(s, leaf, view)) {
    return false;
  }
  const Shape& want = p.takes[place];
  const Dims& dims = want.dims();
  if (view.buffer || view.dtype != want.dtype() || s.dims.size() - first != dims.size()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!dims[i].is_static(s.dims[first + i])) return false;
  s.views.push_back(view);
  return true;
}

bool take_tree(const ProgramCall& p, CallScratch& s, nb::handle tree) {
  if (plain_leaf(tree)) return take(p, s, tree);
  const std::size_t first = s.leaves.size();
  flatten(tree, &s.leaves, nullptr);
  for (std::size_t i = first; i < s.leaves.size(); ++i)
    if (!take(p, s, s.leaves[i])) return false;
  return true;
}

// Returns no object if a leaf does not match.
nb::object run_as_it_lies(ProgramCall& p, nb::handle args, nb::handle kwargs) {
  if (!p.entry.direct) return {};
  CallScratchHold hold;
  CallScratch& s = *hold;
  const Py_ssize_t n = PyTuple_Size(args.ptr());
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!take_tree(p, s, PyTuple_GetItem(args.ptr(), i))) return {};
  if (kwargs.is_valid() && !take_tree(p, s, kwargs)) return {};
  if (s.views.size() != p.takes.size()) return {};
  return run_direct(p.entry, s, p.entry.out_tree);
}

PyObject* program_tp_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  try {
    if (nb::inst_ready(self)) {
      nb::object out = run_as_it_lies(*nb::inst_ptr<ProgramCall>(nb::handle(self)), args, kwargs);
      if (out.is_valid()) return out.release().ptr();
    }
    const nb::object run_tree = nb::handle(self).attr("_run_tree");
    return PyObject_Call(run_tree.ptr(), args, kwargs);
  } catch (...) {
    set_error_of_exception();
    return nullptr;
  }
}

PyType_Slot program_slots[] = {{Py_tp_call, reinterpret_cast<void*>(program_tp_call)}, {0, nullptr}};

}  // namespace

void bind_program_calls(nb::module_& m) {
  nb::class_<ProgramCall>(m, "ProgramCall", nb::type_slots(program_slots), "Runs a program with one signature.")
      .def("__init__", [](ProgramCall* self, std::shared_ptr<PyCompiled> compiled, const TreeDef& out_tree,
                          std::vector<bool> weak) {
        new (self) ProgramCall();
        ProgramEntry& e = self->entry;
        set_program(e, std::move(compiled));
        e.out_tree = out_tree;
        e.weak = std::move(weak);
        for (const IoInfo& i : e.compiled->program.inputs()) self->takes.push_back(i.shape);
        // Calls take the leaves of the tree from the results without a look.
        if (e.out_tree.leaves != e.outputs.size() || e.weak.size() != e.outputs.size())
          raise(ErrorCode::InvalidArgument,
                concat_text("a program of ", e.outputs.size(), " results cannot have a tree of ", e.out_tree.leaves,
                            " leaves and ", e.weak.size(), " flags of weak dtypes"));
      });
}

}  // namespace rlx::python
