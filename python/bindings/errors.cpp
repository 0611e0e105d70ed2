// Exceptions in Python: one class for each error code, which also inherits from a class of Python.
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "python/bindings/runtime.h"
#include "rlx/runtime/nan_check.h"

namespace rlx::python {
namespace {

PyObject* classes[static_cast<int>(ErrorCode::Internal) + 1];
PyObject* not_finite_class;
std::string package_folder;

struct ClassOf {
  ErrorCode code;
  const char *name, *doc;
  PyObject* also;
};

// Exceptions of Python code that was called from C++ code without exceptions. They wait here until the error of the run
// comes back. Guarded by the GIL. There are few: a run stops at its first failure.
std::map<std::string, nb::object>& kept() {
  static auto* exceptions = new std::map<std::string, nb::object>();
  return *exceptions;
}
constexpr std::string_view kKept = "Python exception ";

// C++ messages use the C++ spelling of names. This table has the Python spelling.
constexpr std::pair<std::string_view, std::string_view> kSpelling[] = {
    {"rlx::available_devices()", "rlx.devices()"},
    {"rlx::to(tensor, device)", "array.to(device)"},
    {"copy it there with rlx::to(tensor, *session.open_device())", "bring it by way of the host: array.to_host()"},
    {"CompileOptions::dim_binding", "the compile option dims"},
    {"CompileOptions::", "the compile option "},
    {"SymbolMode::runtime(bound)", "its largest value as mode"},
    {"SymbolMode::runtime(N)", "symbol_modes={name: N}"},
    {"{.max = N}", "max=N"},
    {"set EngineOptions::prefix_cache", "use load(prefix_cache=True)"},
    {"load adapters with the model: DecoderOptions::adapters", "load adapters with the model: load(adapters=)"},
    {"DecoderOptions::", "load: "},
    {"RerankerOptions::activation", "activation="},
    {"rlx::", "rlx."},
    {" (attribute max_trips: the loop", " (the loop"},
    {" (attribute max_trips)", ""},
    {"matmul precision '", "matmul_precision '"},
    {"load the model with matmul precision ", "load the model with matmul_precision "},
};
std::string as_python_writes(std::string text) {
  for (const auto& [ours, theirs] : kSpelling)
    for (std::size_t at = 0; (at = text.find(ours, at)) != text.npos; at += theirs.size())
      text.replace(at, ours.size(), theirs);
  return text;
}

Diagnostic in_python_words(const Error& e) {
  Diagnostic d = e.diagnostic();
  d.message = as_python_writes(std::move(d.message));
  d.hint = as_python_writes(std::move(d.hint));
  return d;
}
// The text as a Python string. Names of files and of what files hold may be any bytes: those that are no UTF-8 are
// \xNN.
nb::object text_of(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}
nb::object exception_that_says(const Diagnostic& d, nb::handle type = {}) {
  if (!type) type = classes[static_cast<int>(d.code)];
  nb::object value = type(text_of(d.text()));
  value.attr("message") = text_of(d.message);
  value.attr("where") = text_of(d.where);
  value.attr("hint") = text_of(d.hint);
  return value;
}

void raise_not_finite(const NotFinite& e, SourceLoc called) {
  Diagnostic d = in_python_words(e);
  const NanOrigin& o = e.origin();
  const bool elsewhere = called.line != 0;
  if (elsewhere) d.where = concat_text("called at ", called.file, ":", called.line);
  const nb::object value = exception_that_says(d, not_finite_class);
  const std::string& file = o.file;
  const int line = elsewhere ? called.line : o.line;
  value.attr("op") = text_of(o.op);
  value.attr("element") = nb::tuple(nb::cast(o.element));
  value.attr("value") = nb::float_(o.value == "nan" ? std::nan("") : o.value == "inf" ? HUGE_VAL : -HUGE_VAL);
  value.attr("iterations") = nb::tuple(nb::cast(o.iterations));
  value.attr("line") =
      line == 0 ? nb::object(nb::none()) : nb::make_tuple(elsewhere ? called.file : file.c_str(), line);
  PyErr_SetObject(not_finite_class, value.ptr());
}

void raise_error(const Error& e) {
  if (const auto* found = dynamic_cast<const NotFinite*>(&e)) return raise_not_finite(*found, {});
  const Diagnostic d = in_python_words(e);
  if (d.code == ErrorCode::Interrupted && (PyErr_Occurred() || PyErr_CheckSignals() != 0))
    return;  // KeyboardInterrupt, or what a handler raised
  if (d.hint.rfind(kKept, 0) == 0) {
    if (const auto it = kept().find(d.hint); it != kept().end()) {
      const nb::object exception = it->second;
      kept().erase(it);
      exception.attr("add_note")(text_of(concat_text("raised in ", d.message)));
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
      return;
    }
  }
  PyErr_SetObject(classes[static_cast<int>(d.code)], exception_that_says(d).ptr());
}

}  // namespace

nb::object exception_of(const Error& e) { return exception_that_says(in_python_words(e)); }

Diagnostic kept_exception(nb::python_error& e, const std::string& what) {
  static std::int64_t count = 0;
  std::string token = concat_text(kKept, ++count);
  // The traceback of the exception has the lines.
  std::string message =
      concat_text(what, ": ", nb::str(e.type().attr("__name__")).c_str(), ": ", nb::str(e.value()).c_str());
  if (kept().size() > 64) kept().clear();
  kept().emplace(token, nb::borrow(e.value()));
  return {ErrorCode::InvalidArgument, std::move(message), {}, std::move(token)};
}

void set_error_of_exception(bool ours) noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const NotFinite& e) {
    try {
      raise_not_finite(e, ours ? user_line() : SourceLoc());
    } catch (nb::python_error& inner) {
      inner.restore();
    }
  } catch (const Error& e) {
    try {
      raise_error(e);
    } catch (nb::python_error& inner) {
      inner.restore();
    }
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

std::string described(nb::handle h) {
  std::string text;
  if (const nb::object r = nb::steal(PyObject_Repr(h.ptr())); r.is_valid())
    text = nb::str(r).c_str();
  else
    PyErr_Clear();
  constexpr std::size_t kMost = 80;
  if (text.size() > kMost) text = concat_text(text.substr(0, kMost), "...");
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(h.ptr())));
  return h.is_none() ? text : concat_text(text, " (", nb::str(type.attr("__name__")).c_str(), ")");
}

const char* lasting_name(std::string_view file) {
  static std::set<std::string, std::less<>>* names = new std::set<std::string, std::less<>>();  // under the GIL
  auto it = names->find(file);
  if (it == names->end()) it = names->emplace(file).first;
  return it->c_str();
}

void warn_renamed(const std::string& old_name, const std::string& new_name, int level) {
  static auto* told = new std::set<std::string>();  // under the GIL
  if (!told->insert(old_name).second) return;
  const std::string text =
      concat_text(old_name, " is deprecated and goes in the next release: use ", new_name, " instead");
  if (PyErr_WarnEx(PyExc_DeprecationWarning, text.c_str(), level) != 0) throw nb::python_error();
}

void set_package_folder(const std::string& folder) { package_folder = folder; }

SourceLoc user_line() {
  const nb::gil_scoped_acquire held;  // errors are raised in places that have let it go too
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  SourceLoc last;
  while (frame.is_valid() && !frame.is_none()) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    const nb::object name = code.attr("co_filename");
    const char* file = PyUnicode_AsUTF8AndSize(name.ptr(), nullptr);
    if (!file) {
      PyErr_Clear();
      file = "";
    }
    const bool ours = !package_folder.empty() && std::strncmp(file, package_folder.c_str(), package_folder.size()) == 0;
    if (!ours) return {lasting_name(file), PyFrame_GetLineNumber(f)};
    frame = frame.attr("f_back");
  }
  return last;
}

void bind_errors(nb::module_& m) {
  const ClassOf table[] = {
      {ErrorCode::InvalidArgument, "InvalidArgument", "Wrong use: an invalid name, length, axis or option.",
       PyExc_ValueError},
      {ErrorCode::ShapeMismatch, "ShapeMismatch", "Shapes that do not fit together.", PyExc_ValueError},
      {ErrorCode::DTypeMismatch, "DTypeMismatch", "Dtypes that do not fit together.", PyExc_TypeError},
      {ErrorCode::NotFound, "NotFound", "A name or a file that does not exist.", PyExc_ValueError},
      {ErrorCode::BadFile, "BadFile", "A file or a text that does not follow its format.", PyExc_ValueError},
      {ErrorCode::Unsupported, "Unsupported", "A valid request that this op, device or build does not support.",
       PyExc_NotImplementedError},
      {ErrorCode::DeviceUnavailable, "DeviceUnavailable", "The device is missing in this build or on this machine.",
       PyExc_RuntimeError},
      {ErrorCode::DeviceLost, "DeviceLost", "The device failed or went away.", PyExc_RuntimeError},
      {ErrorCode::OutOfMemory, "OutOfMemory", "A device or the host has not enough memory.", PyExc_MemoryError},
      {ErrorCode::Interrupted, "Interrupted", "A run was interrupted.", PyExc_RuntimeError},
      {ErrorCode::Internal, "InternalError", "A bug in rlx: please report it.", PyExc_RuntimeError},
  };
  nb::object base = nb::steal(PyErr_NewExceptionWithDoc(
      "rlx.Error",
      "The base of all errors of rlx. It has `message`, `where` (the node, and the line that built it) and `hint`.",
      PyExc_Exception, nullptr));
  m.attr("Error") = base;
  for (const ClassOf& c : table) {
    const nb::object bases = nb::make_tuple(base, nb::borrow(c.also));
    nb::object type =
        nb::steal(PyErr_NewExceptionWithDoc(concat_text("rlx.", c.name).c_str(), c.doc, bases.ptr(), nullptr));
    m.attr(c.name) = type;
    classes[static_cast<int>(c.code)] = type.release().ptr();  // for the life of the process
  }
  const nb::object bases = nb::make_tuple(base, nb::borrow(PyExc_FloatingPointError));
  nb::object type = nb::steal(PyErr_NewExceptionWithDoc(
      "rlx.NotFinite",
      "A result of a run that is checked holds NaN, or an infinity if the check asks for that. "
      "It has `op`, `element`, `value`, `iterations` of loops, and `line` (file, number).",
      bases.ptr(), nullptr));
  m.attr("NotFinite") = type;
  not_finite_class = type.release().ptr();  // for the life of the process
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      raise_error(e);
    } catch (const nb::cast_error&) {
      PyErr_SetString(PyExc_TypeError, "an argument has a type that this function does not accept");
    }
  });
  m.def("set_package_folder", &set_package_folder);
  m.def("warn_renamed", &warn_renamed, nb::arg("old_name"), nb::arg("new_name"), nb::arg("level"));
  m.def("user_line", [] {
    const SourceLoc loc = user_line();
    return nb::make_tuple(loc.file, loc.line);
  });
}

}  // namespace rlx::python
