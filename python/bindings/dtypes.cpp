// Dtypes in Python: one object each, which compares equal to the names and types of other libraries.
#include <array>

#include "python/bindings/common.h"

namespace rlx::python {
namespace {

constexpr std::array<std::string_view, kNumDTypes> kNumpyNames = {
    "bool",       "int8",          "int16",       "int32",   "int64",   "uint8",        "uint16",
    "uint32",     "uint64",        "bfloat16",    "float16", "float32", "float64",      "complex64",
    "complex128", "float8_e4m3fn", "float8_e5m2", "int4",    "uint4",   "float4_e2m1fn"};
PyObject* objects[kNumDTypes];

std::optional<DType> named(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (kNumpyNames[static_cast<std::size_t>(i)] == name) return static_cast<DType>(i);
  if (name == "bool_") return DType::Bool;
  return parse_dtype(name);
}

std::optional<DType> of_text(nb::handle text) {
  const char* s = PyUnicode_AsUTF8AndSize(text.ptr(), nullptr);
  if (!s) {
    PyErr_Clear();
    return {};
  }
  return named(s);
}

// The dtype object of NumPy. NumPy, and ml_dtypes for the types that NumPy lacks, are imported at first use.
nb::object numpy_dtype(DType t) {
  const nb::module_ np = nb::module_::import_("numpy");
  const std::string_view name = numpy_name(t);
  if (t != DType::BF16 && !is_storage_only(t)) return np.attr("dtype")(nb::str(name.data(), name.size()));
  const nb::module_ ml = nb::module_::import_("ml_dtypes");
  return np.attr("dtype")(ml.attr(nb::str(name.data(), name.size())));
}

}  // namespace

std::string_view numpy_name(DType t) { return kNumpyNames[static_cast<std::size_t>(checked_dtype(t))]; }

nb::object dtype_object(DType t) { return nb::borrow(objects[static_cast<int>(checked_dtype(t))]); }

std::optional<DType> dtype_or_none(nb::handle h) {
  if (nb::isinstance<PyDType>(h)) return nb::cast<const PyDType&>(h).type;
  if (PyUnicode_Check(h.ptr())) return of_text(h);
  if (h.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::F32;
  if (h.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::I32;
  if (h.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  if (h.ptr() == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::C64;
  // A NumPy dtype has a `name`, a scalar type (np.float32) a `__name__`.
  for (const char* attribute : {"name", "__name__"}) {
    const nb::object name = nb::steal(PyObject_GetAttrString(h.ptr(), attribute));
    if (!name.is_valid()) {
      PyErr_Clear();
      continue;
    }
    if (PyUnicode_Check(name.ptr()))
      if (auto t = of_text(name)) return t;
  }
  return {};
}

namespace {

// NumPy knows further names: "f4", "<f4".
std::optional<DType> by_numpy(nb::handle h) {
  if (!PyUnicode_Check(h.ptr())) return {};
  try {
    return dtype_or_none(nb::module_::import_("numpy").attr("dtype")(h));
  } catch (nb::python_error&) {
    return {};
  }
}

}  // namespace

DType dtype_from(nb::handle h, const char* what) {
  if (auto t = dtype_or_none(h)) return *t;
  if (auto t = by_numpy(h)) return *t;
  raise(ErrorCode::DTypeMismatch, concat_text(what, ": ", nb::repr(h).c_str(), " is not a dtype of rlx"),
        "use rlx.float32, \"float32\" or numpy.float32; rlx.dtypes lists all dtypes");
}

void bind_dtypes(nb::module_& m) {
  nb::class_<PyDType>(m, "dtype", "The type of the elements of an array.")
      .def(nb::new_([](nb::handle of) { return PyDType{dtype_from(of)}; }), nb::arg("of").none())
      .def_prop_ro(
          "name", [](const PyDType& d) { return numpy_name(d.type); }, "The name that NumPy uses.")
      .def_prop_ro(
          "short_name", [](const PyDType& d) { return dtype_name(d.type); }, "The name in graph texts.")
      .def_prop_ro(
          "itemsize", [](const PyDType& d) { return size_bytes(d.type); },
          "Bytes of an element; 0 for packed 4-bit types.")
      .def_prop_ro(
          "bits", [](const PyDType& d) { return dtype_bits(d.type); }, "Bits of an element.")
      .def_prop_ro(
          "kind",
          [](const PyDType& d) {
            const DType t = d.type;
            return t == DType::Bool                       ? "b"
                   : is_signed_int(t) || t == DType::I4   ? "i"
                   : is_unsigned_int(t) || t == DType::U4 ? "u"
                   : is_complex(t)                        ? "c"
                                                          : "f";
          },
          "'b', 'i', 'u', 'f' or 'c', as in NumPy.")
      .def_prop_ro(
          "dtype", [](const PyDType& d) { return numpy_dtype(d.type); }, "The NumPy dtype of the same name.")
      .def(
          "__eq__",
          [](const PyDType& d, nb::handle other) {
            const auto t = dtype_or_none(other);
            return t && *t == d.type;
          },
          nb::arg("other").none())
      .def("__hash__", [](const PyDType& d) { return static_cast<int>(d.type) + 7919; })
      .def("__reduce__",
           [](nb::handle self) {
             const std::string_view name = numpy_name(nb::cast<const PyDType&>(self).type);
             return nb::make_tuple(self.type(), nb::make_tuple(nb::str(name.data(), name.size())));
           })
      .def("__str__", [](const PyDType& d) { return numpy_name(d.type); })
      .def("__repr__", [](const PyDType& d) { return concat_text("rlx.", numpy_name(d.type)); });
  nb::list all;
  for (int i = 0; i < kNumDTypes; ++i) {
    nb::object o = nb::cast(PyDType{static_cast<DType>(i)});
    m.attr(std::string(kNumpyNames[static_cast<std::size_t>(i)] == "bool" ? "bool_"
                                                                          : kNumpyNames[static_cast<std::size_t>(i)])
               .c_str()) = o;
    all.append(o);
    objects[i] = o.release().ptr();  // for the life of the process
  }
  m.attr("dtypes") = nb::tuple(all);
  m.def(
      "promote",
      [](nb::handle a, nb::handle b) -> nb::object {
        const auto t = promote(dtype_from(a), dtype_from(b));
        return t ? dtype_object(*t) : nb::none();
      },
      "The dtype that two operands are promoted to, by the table of JAX with 64-bit types; None if there is none.");
}

}  // namespace rlx::python
