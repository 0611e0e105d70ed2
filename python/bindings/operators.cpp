// Operators of arrays. On arrays and small numbers an operator is a call of a compiled function whose program is kept,
// and no Python code runs. All other calls go to the operator that is written in Python.
#include <array>
#include <span>
#include <string>
#include <utility>

#include "python/bindings/calls.h"

namespace rlx::python {
namespace {

struct Operator {
  std::string name;
  PyMethodDef def{};
  nb::object function;   // of rlx.numpy; its attribute `compiled` is the compiled function, once there is one
  nb::object in_python;  // the operator in Python
  nb::object compiled;   // `function.compiled`
  bool swapped = false;  // __radd__: the array is the right operand
};

constexpr std::size_t kMost = 64;
// They live as long as the process, as the class of arrays does.
std::array<Operator, kMost>& operators() {
  static auto* all = new std::array<Operator, kMost>();
  return *all;
}

PyObject* call_operator(Operator& o, PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (o.compiled.is_valid() && n <= 1) {
    std::array<PyObject*, 2> operands{self, n == 1 ? args[0] : nullptr};
    if (n == 1 && o.swapped) std::swap(operands[0], operands[1]);
    bool failed = false;
    PyObject* const out = call_known(o.compiled, std::span(operands).first(static_cast<std::size_t>(n) + 1), failed);
    if (out || failed) return out;
  }
  try {
    std::array<PyObject*, 3> all{self};
    if (n + 1 > static_cast<Py_ssize_t>(all.size())) throw nb::type_error("an operator takes at most two operands");
    for (Py_ssize_t i = 0; i < n; ++i) all[static_cast<std::size_t>(i) + 1] = args[i];
    const auto count = static_cast<std::size_t>(n) + 1;
    nb::object out = nb::steal(PyObject_Vectorcall(o.in_python.ptr(), all.data(), count, nullptr));
    if (!out.is_valid()) return nullptr;
    if (!o.compiled.is_valid() && nb::hasattr(o.function, "compiled")) o.compiled = o.function.attr("compiled");
    return out.release().ptr();
  } catch (...) {
    set_error_of_exception();
    return nullptr;
  }
}

template <std::size_t I>
PyObject* entry(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return call_operator(operators()[I], self, args, n);
}
using Entry = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
template <std::size_t... I>
constexpr std::array<Entry, kMost> entries_of(std::index_sequence<I...>) {
  return {entry<I>...};
}

// Gives the class of arrays the operator `name`: what `in_python` does, fast where `function` has a program.
void set_operator(const std::string& name, nb::object function, nb::object in_python, bool swapped) {
  static constexpr std::array<Entry, kMost> entries = entries_of(std::make_index_sequence<kMost>());
  static std::size_t count = 0;
  check(count < kMost, "more operators than there are entries for");
  Operator& o = operators()[count];
  o.name = name, o.function = std::move(function), o.in_python = std::move(in_python), o.swapped = swapped;
  o.def = {o.name.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entries[count])), METH_FASTCALL,
           nullptr};
  ++count;
  const nb::object method = nb::steal(PyDescr_NewMethod(array_type, &o.def));
  if (!method.is_valid()) throw nb::python_error();
  nb::setattr(nb::handle(reinterpret_cast<PyObject*>(array_type)), name.c_str(), method);
}

}  // namespace

void bind_operators(nb::module_& m) {
  m.def("set_operator", &set_operator, nb::arg("name"), nb::arg("function"), nb::arg("in_python"), nb::arg("swapped"));
}

}  // namespace rlx::python
