// Arrays in Python, and zero copy in and out: the buffer protocol and DLPack.
#include <cmath>
#include <cstring>

#include "python/bindings/calls.h"
#include "rlx/base/sigbus_guard.h"
#include "rlx/device/device.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/dlpack.h"

namespace rlx::python {
namespace {

struct Format {
  const char* code;
  DType type;
};
constexpr Format kFormats[] = {{"?", DType::Bool}, {"b", DType::I8},  {"h", DType::I16},  {"i", DType::I32},
                               {"l", DType::I64},  {"q", DType::I64}, {"B", DType::U8},   {"H", DType::U16},
                               {"I", DType::U32},  {"L", DType::U64}, {"Q", DType::U64},  {"e", DType::F16},
                               {"f", DType::F32},  {"d", DType::F64}, {"Zf", DType::C64}, {"Zd", DType::C128},
                               {"F", DType::C64},  {"D", DType::C128}};
static_assert(sizeof(long) == 8, "the buffer format 'l' is I64");

const char* format_of(DType t) {
  for (const Format& f : kFormats)
    if (f.type == t) return f.code;
  return nullptr;
}

bool interpreter_runs() { return Py_IsInitialized(); }

// Releases a Python object from any thread, also after the interpreter has ended.
struct PyHold {
  PyObject* object;
  explicit PyHold(PyObject* o) : object(Py_NewRef(o)) {}
  PyHold(const PyHold&) = delete;
  PyHold& operator=(const PyHold&) = delete;
  ~PyHold() {
    if (!interpreter_runs()) return;
    const nb::gil_scoped_acquire gil;
    Py_DECREF(object);
  }
};

// A Py_buffer that is released when the last owner of its bytes goes away, on any thread.
struct SharedBuffer {
  BufferHold hold;
  ~SharedBuffer() = default;
};
std::shared_ptr<const void> shared(std::unique_ptr<SharedBuffer> b) {
  return std::shared_ptr<const void>(b.release(), [](SharedBuffer* p) {
    if (!interpreter_runs()) return;
    const nb::gil_scoped_acquire gil;
    delete p;
  });
}

std::vector<std::int64_t> dims_of(const Py_buffer& v) { return std::vector<std::int64_t>(v.shape, v.shape + v.ndim); }

Shape shape_of(const std::vector<std::int64_t>& dims, DType t) { return Shape(Dims(dims.begin(), dims.end()), t); }

bool aligned(const void* p, DType t) { return reinterpret_cast<std::uintptr_t>(p) % alignment_of(t) == 0; }

// A dense copy of a strided buffer.
Tensor copied(const Py_buffer& v, DType t) {
  Tensor out = Tensor::uninitialized(shape_of(dims_of(v), t));
  if (v.len > 0 && PyBuffer_ToContiguous(out.mutable_data(), &v, v.len, 'C') != 0) throw nb::python_error();
  return out;
}

// NumPy arrays with a dtype of ml_dtypes do not support the buffer protocol. A view of their bytes as unsigned integers
// does.
std::optional<Tensor> by_view(nb::handle h, bool share) {
  if (!nb::hasattr(h, "dtype") || !nb::hasattr(h, "view")) return {};
  const auto t = dtype_or_none(h.attr("dtype"));
  if (!t) return {};
  const std::size_t bytes = size_bytes(*t);
  const bool nibbles = bytes == 0;  // ml_dtypes stores a 4-bit value in a byte; rlx packs two
  const char* as = bytes == 2 ? "uint16" : bytes <= 1 ? "uint8" : nullptr;
  if (!as) return {};
  const nb::object raw = h.attr("view")(as);
  Tensor codes = tensor_from(raw, "an array", share && !nibbles);
  const auto dims = codes.dims();
  if (!nibbles) {
    if (codes.num_elements() == 0) return Tensor::zeros(shape_of(dims, *t));
    auto owner = std::make_shared<Tensor>(codes);
    return Tensor::borrowed(owner->data(), shape_of(dims, *t), owner);
  }
  Tensor packed = Tensor::zeros(shape_of(dims, *t));
  const std::byte* from = codes.data();
  std::byte* to = packed.num_elements() ? packed.mutable_data() : nullptr;
  for (std::int64_t i = 0; i < packed.num_elements(); ++i) {
    const auto nibble = static_cast<unsigned>(from[i]) & 15U;
    to[i / 2] |= static_cast<std::byte>(i % 2 ? nibble << 4 : nibble);
  }
  return packed;
}

const char* kCapsule = "dltensor";
const char* kVersionedCapsule = "dltensor_versioned";

// DLPack before 1.0.
struct OldManaged {
  dlpack::Array tensor;
  void* manager_ctx;
  void (*deleter)(OldManaged*);
};

// Wraps an unversioned DLPack tensor as a versioned one, which then owns it.
dlpack::Managed* renewed(OldManaged* old) {
  auto* m = new dlpack::Managed{};
  m->version = {dlpack::kMajor, dlpack::kMinor};
  m->tensor = old->tensor;
  m->manager_ctx = old;
  m->deleter = [](dlpack::Managed* self) {
    auto* o = static_cast<OldManaged*>(self->manager_ctx);
    if (o->deleter) o->deleter(o);
    delete self;
  };
  return m;
}

// NumPy's dates and strings.
void refuse_no_numbers(nb::handle h) {
  const nb::object dtype = nb::getattr(h, "dtype", nb::none());
  if (!nb::hasattr(dtype, "kind")) return;
  const std::string kind = nb::str(nb::object(dtype.attr("kind"))).c_str();
  if (kind == "M" || kind == "m" || kind == "U" || kind == "S")
    raise(ErrorCode::DTypeMismatch, concat_text("an array of dtype ", nb::str(dtype).c_str(), " does not hold numbers"),
          "rlx.dtypes lists all dtypes");
}

std::optional<Tensor> by_dlpack(nb::handle h) {
  if (!nb::hasattr(h, "__dlpack__")) return {};
  refuse_no_numbers(h);
  const nb::object give = h.attr("__dlpack__");
  nb::object capsule;
  try {
    nb::dict keywords;
    keywords["max_version"] = nb::make_tuple(static_cast<int>(dlpack::kMajor), static_cast<int>(dlpack::kMinor));
    capsule = give(**keywords);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
    capsule = give();
  }
  if (void* p = PyCapsule_GetPointer(capsule.ptr(), kVersionedCapsule)) {
    Tensor t = adopt(static_cast<dlpack::Managed*>(p));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    return t;
  }
  PyErr_Clear();
  void* p = PyCapsule_GetPointer(capsule.ptr(), kCapsule);
  if (!p) throw nb::python_error();
  auto* m = renewed(static_cast<OldManaged*>(p));
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  try {
    return adopt(m);
  } catch (...) {
    m->deleter(m);
    throw;
  }
}

nb::tuple dlpack_device(const PyArray& a) {
  check_not_donated(a);
  dlpack::Managed* managed = to_dlpack(a.tensor);
  const nb::tuple out = nb::make_tuple(static_cast<int>(managed->tensor.device.type), managed->tensor.device.id);
  managed->deleter(managed);
  return out;
}

nb::object to_capsule(const PyArray& a, nb::handle max_version) {
  check_not_donated(a);
  bool versioned = false;
  if (nb::isinstance<nb::tuple>(max_version)) versioned = nb::cast<int>(max_version[nb::int_(0)]) >= 1;
  dlpack::Managed* m = to_dlpack(a.tensor);
  if (versioned) {
    PyObject* c = PyCapsule_New(m, kVersionedCapsule, [](PyObject* self) {
      if (!PyCapsule_IsValid(self, kVersionedCapsule)) return;
      auto* p = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(self, kVersionedCapsule));
      p->deleter(p);
    });
    if (!c) {
      m->deleter(m);
      throw nb::python_error();
    }
    return nb::steal(c);
  }
  auto* old = new OldManaged{m->tensor, m, [](OldManaged* self) {
                               auto* inner = static_cast<dlpack::Managed*>(self->manager_ctx);
                               inner->deleter(inner);
                               delete self;
                             }};
  PyObject* c = PyCapsule_New(old, kCapsule, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, kCapsule)) return;
    auto* p = static_cast<OldManaged*>(PyCapsule_GetPointer(self, kCapsule));
    p->deleter(p);
  });
  if (!c) {
    old->deleter(old);
    throw nb::python_error();
  }
  return nb::steal(c);
}

// What the `internal` field of an array's Py_buffer points to.
struct Exported {
  std::vector<Py_ssize_t> shape, strides;
  Tensor host;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const PyArray& a = nb::cast<const PyArray&>(nb::handle(self));
    check_not_donated(a);
    if (flags & PyBUF_WRITABLE) {
      PyErr_SetString(PyExc_BufferError, "rlx arrays are read-only: take a copy with numpy.array(x)");
      return -1;
    }
    const char* format = format_of(a.tensor.dtype());
    if (!format) {
      PyErr_Format(PyExc_BufferError, "the buffer protocol has no format for %s: use numpy.asarray(x) or DLPack",
                   numpy_name(a.tensor.dtype()).data());
      return -1;
    }
    auto out = std::make_unique<Exported>();
    out->host = on_host(a.tensor);
    const auto dims = out->host.dims(), strides = row_major_strides(dims);
    const auto item = static_cast<Py_ssize_t>(size_bytes(a.tensor.dtype()));
    out->shape.assign(dims.begin(), dims.end());
    for (std::int64_t s : strides) out->strides.push_back(static_cast<Py_ssize_t>(s) * item);
    static std::byte none[16];
    view->buf = out->host.num_elements() ? const_cast<std::byte*>(out->host.data()) : none;
    view->len = static_cast<Py_ssize_t>(out->host.size_bytes());
    view->readonly = 1;
    view->itemsize = item;
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
    view->ndim = static_cast<int>(dims.size());
    view->shape = flags & PyBUF_ND ? out->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? out->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = out.release();
    view->obj = Py_NewRef(self);
    return 0;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::BadFile)
      set_error_of_exception();
    else
      PyErr_SetString(PyExc_BufferError, e.what());
    return -1;
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_BufferError, e.what());
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                             {0, nullptr}};

// An element as Python's bool, int, float or complex.
nb::object scalar_object(const Tensor& t, std::int64_t i) {
  switch (t.dtype()) {
    case DType::Bool: return nb::bool_(t.at_i64(i) != 0);
    case DType::U64: return nb::steal(PyLong_FromUnsignedLongLong(static_cast<std::uint64_t>(t.at_i64(i))));
    case DType::C64: {
      float p[2];
      std::memcpy(p, t.data() + i * 8, 8);
      return nb::steal(PyComplex_FromDoubles(static_cast<double>(p[0]), static_cast<double>(p[1])));
    }
    case DType::C128: {
      double p[2];
      std::memcpy(p, t.data() + i * 16, 16);
      return nb::steal(PyComplex_FromDoubles(p[0], p[1]));
    }
    default: break;
  }
  if (is_int(t.dtype()) || t.dtype() == DType::I4 || t.dtype() == DType::U4) return nb::int_(t.at_i64(i));
  return nb::float_(t.at(i));
}

nb::object nested(const Tensor& t, const std::vector<std::int64_t>& dims, std::size_t axis, std::int64_t& at) {
  if (axis == dims.size()) return scalar_object(t, at++);
  nb::list out;
  for (std::int64_t i = 0; i < dims[axis]; ++i) out.append(nested(t, dims, axis + 1, at));
  return out;
}

nb::object only_element(const PyArray& a, const char* what) {
  check_not_donated(a);
  if (a.tensor.num_elements() != 1)
    raise(ErrorCode::InvalidArgument,
          concat_text(what, ": an array ", a.tensor.shape(), " has ", a.tensor.num_elements(), " elements, not one"));
  return scalar_object(on_host(a.tensor), 0);
}

// A NumPy array over the same bytes. 4-bit values are copied, because NumPy stores each of them in a byte.
nb::object to_numpy(nb::handle self) {
  const PyArray& a = nb::cast<const PyArray&>(self);
  check_not_donated(a);
  const nb::module_ np = nb::module_::import_("numpy");
  const DType t = a.tensor.dtype();
  if (format_of(t)) return np.attr("asarray")(nb::steal(PyMemoryView_FromObject(self.ptr())));
  const Tensor host = on_host(a.tensor);
  const nb::object dtype = dtype_object(t).attr("dtype");
  if (size_bytes(t) == 0) {
    Tensor codes = Tensor::zeros(shape_of(host.dims(), DType::U8));
    for (std::int64_t i = 0; i < host.num_elements(); ++i) {
      const auto b = static_cast<unsigned>(host.data()[i / 2]) >> (i % 2 ? 4 : 0) & 15U;
      const bool negative = t == DType::I4 && b > 7;  // ml_dtypes sign-extends
      codes.set_i64(i, static_cast<std::int64_t>(negative ? b | 0xF0U : b));
    }
    return np.attr("asarray")(nb::steal(PyMemoryView_FromObject(array_object(codes).ptr()))).attr("view")(dtype);
  }
  auto owner = std::make_shared<Tensor>(host);
  const Tensor raw =
      host.num_elements()
          ? Tensor::borrowed(host.data(), shape_of(host.dims(), size_bytes(t) == 2 ? DType::U16 : DType::U8), owner)
          : Tensor::zeros(shape_of(host.dims(), size_bytes(t) == 2 ? DType::U16 : DType::U8));
  return np.attr("asarray")(nb::steal(PyMemoryView_FromObject(array_object(raw).ptr()))).attr("view")(dtype);
}

}  // namespace

BufferHold::~BufferHold() {
  if (held_) PyBuffer_Release(&view_);
}
bool BufferHold::take(nb::handle h, bool writable) {
  if (!PyObject_CheckBuffer(h.ptr())) return false;
  held_ = PyObject_GetBuffer(h.ptr(), &view_, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) == 0;
  if (!held_) PyErr_Clear();
  return held_;
}
std::optional<DType> BufferHold::dtype() const {
  const char* f = view_.format ? view_.format : "B";
  if (*f == '@' || *f == '=' || *f == '<') ++f;
  for (const Format& known : kFormats)
    if (std::strcmp(known.code, f) == 0) return known.type;
  return {};
}
bool BufferHold::dense() const { return PyBuffer_IsContiguous(&view_, 'C') != 0; }

bool is_donated(const PyArray& a) { return a.tensor.empty() && a.tensor.num_elements() == 0 && a.tensor.rank() == 0; }
void check_not_donated(const PyArray& a) {
  if (is_donated(a))
    raise(ErrorCode::InvalidArgument, "this array was donated to an earlier call",
          "a donated array has no data after the call: use the results of the call");
}

// The tensor of an array that was not donated: the shape of what is left would be ().
const Tensor& of_living(const PyArray& a) {
  check_not_donated(a);
  return a.tensor;
}

Tensor on_host(Tensor t) {
  if (!t.buffer()) {
    GuardedReads::check_readable(t.data(), t.size_bytes());
    return t;
  }
  const nb::gil_scoped_release free;
  return t.to_host();
}

PyTypeObject* array_type = nullptr;

nb::object array_object(Tensor t, bool weak) {
  // Every call makes an array, and nb::cast would look up the class each time.
  nb::object out = nb::inst_alloc(reinterpret_cast<PyObject*>(array_type));
  new (nb::inst_ptr<PyArray>(out)) PyArray{std::move(t), weak};
  nb::inst_mark_ready(out);
  return out;
}

bool is_array_like(nb::handle h) {
  return nb::isinstance<PyArray>(h) || PyObject_CheckBuffer(h.ptr()) || nb::hasattr(h, "__dlpack__") ||
         nb::hasattr(h, "__array__");
}

std::optional<Tensor> weak_scalar(nb::handle h) {
  PyObject* o = h.ptr();
  if (PyBool_Check(o)) return Tensor::scalar(DType::Bool, o == Py_True);
  if (PyFloat_CheckExact(o)) return Tensor::scalar(DType::F32, PyFloat_AsDouble(o));
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow > 0) {
      const unsigned long long u = PyLong_AsUnsignedLongLong(o);
      if (PyErr_Occurred())
        PyErr_Clear();
      else {
        Tensor t = Tensor::zeros(Shape({}, DType::U64));
        t.set_i64(0, static_cast<std::int64_t>(u));
        return t;
      }
    }
    if (overflow)
      raise(ErrorCode::DTypeMismatch,
            concat_text("the integer ", nb::str(h).c_str(), " does not fit in any integer dtype"),
            "write it as a float");
    const bool wide = v < INT32_MIN || v > INT32_MAX;
    return Tensor::scalar_i64(wide ? DType::I64 : DType::I32, v);
  }
  if (PyComplex_CheckExact(o)) {
    Tensor t = Tensor::zeros(Shape({}, DType::C64));
    const float parts[2] = {static_cast<float>(PyComplex_RealAsDouble(o)),
                            static_cast<float>(PyComplex_ImagAsDouble(o))};
    std::memcpy(t.mutable_data(), parts, 8);
    return t;
  }
  return {};
}

namespace {

// A Python number must keep its value in the requested dtype: an integer must fit, a complex number needs a complex
// dtype, NaN and infinity need a floating dtype. Fractions are truncated.
void check_numbers(const Tensor& t, DType to, const char* what) {
  if (is_complex(t.dtype()) && !is_complex(to) && to != DType::Bool)
    raise(ErrorCode::DTypeMismatch, concat_text(what, ": cannot convert a complex number to ", numpy_name(to)),
          "use its .real");
  if (!is_int(to)) return;
  const int bits = dtype_bits(to);
  const bool is_signed = is_signed_int(to) || to == DType::I4;
  const double least = is_signed ? -std::ldexp(1.0, bits - 1) : 0.0;
  const double above = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    double v = t.at(i);
    if (is_float(t.dtype())) v = std::trunc(v);
    const bool wraps = t.dtype() == DType::U64 && to == DType::I64 && t.at_i64(i) < 0;
    // 2^63 - 1 is 2^63 as a double.
    const bool good = is_float(t.dtype()) || bits < 64 ? v >= least && v < above : v >= least && !wraps;
    if (!good)
      raise(ErrorCode::InvalidArgument, concat_text(what, ": ", t.at(i), " is not a value of ", numpy_name(to)),
            "use a dtype that holds it");
  }
}

}  // namespace

Tensor tensor_from(nb::handle h, const char* what, bool share, std::optional<DType> dtype) {
  const auto as = [&](Tensor t) { return dtype && t.dtype() != *dtype ? on_host(t).cast(*dtype) : t; };
  if (nb::isinstance<PyArray>(h)) return as(nb::cast<const PyArray&>(h).tensor);
  if (nb::isinstance<PyValue>(h))
    raise(ErrorCode::InvalidArgument, concat_text(what, ": a traced value has no elements"),
          "its numbers exist only while the compiled function runs: use rlx.numpy inside it");
  if (PyObject_CheckBuffer(h.ptr()) && !PyBytes_Check(h.ptr()) && !PyByteArray_Check(h.ptr())) {
    auto b = std::make_unique<SharedBuffer>();
    if (b->hold.take(h)) {
      const auto t = b->hold.dtype();
      const Py_buffer& v = b->hold.view();
      if (t == DType::U8) refuse_no_numbers(h);  // dates
      if (!t) {
        const std::string format = v.format ? v.format : "";
        if (format[0] == '>' && format.size() < 4) {  // numbers in the other byte order
          const nb::object x = nb::module_::import_("numpy").attr("asarray")(h);
          return tensor_from(x.attr("astype")(x.attr("dtype").attr("newbyteorder")("=")), what, share, dtype);
        }
        raise(ErrorCode::DTypeMismatch, concat_text(what, ": an array with elements of format '", format, "'"),
              format == "O" ? "rlx has no object arrays; give the numbers a dtype: numpy.asarray(x, numpy.float32)"
                            : "cast it to a dtype of rlx.dtypes");
      }
      if (share && b->hold.dense() && aligned(v.buf, *t)) {
        if (v.len == 0) return as(Tensor::zeros(shape_of(dims_of(v), *t)));
        const Shape shape = shape_of(dims_of(v), *t);
        const void* data = v.buf;
        return as(Tensor::borrowed(data, shape, shared(std::move(b))));
      }
      return as(copied(v, *t));
    }
    if (auto t = by_view(h, share)) return as(*std::move(t));
  }
  if (auto t = weak_scalar(h)) {
    if (dtype) check_numbers(*t, *dtype, what);
    if (dtype && (is_int(*dtype) || *dtype == DType::F64) && PyLong_CheckExact(h.ptr()) && *dtype != t->dtype()) {
      Tensor out = is_int(*dtype) ? Tensor::scalar_i64(*dtype, t->at_i64(0)) : t->cast(*dtype);
      return out;
    }
    if (dtype == DType::C128 && PyComplex_CheckExact(h.ptr())) {
      const double parts[2] = {PyComplex_RealAsDouble(h.ptr()), PyComplex_ImagAsDouble(h.ptr())};
      return Tensor::copy_of(parts, Shape({}, DType::C128));
    }
    if (dtype && PyFloat_CheckExact(h.ptr())) return Tensor::scalar(*dtype, PyFloat_AsDouble(h.ptr()));
    return as(*std::move(t));
  }
  if (auto t = by_dlpack(h)) return as(share ? *std::move(t) : Tensor::copy_of(on_host(*t).data(), t->shape()));
  if (PyUnicode_Check(h.ptr()) || PyBytes_Check(h.ptr()) || h.is_none())
    raise(ErrorCode::DTypeMismatch, concat_text(what, ": ", nb::repr(h).c_str(), " is not an array"));
  // Lists, NumPy scalars, and everything else that NumPy can read.
  const nb::module_ np = nb::module_::import_("numpy");
  nb::object a = np.attr("asarray")(h);
  const std::string kind = nb::cast<std::string>(a.attr("dtype").attr("kind"));
  if (kind == "O" || kind == "U" || kind == "S")
    raise(ErrorCode::DTypeMismatch,
          concat_text(what, ": an object of type ",
                      nb::str(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(h.ptr()))).attr("__name__")).c_str(),
                      " is not an array of numbers"),
          "rows of nested lists need equal lengths; dicts, tuples and dataclasses of arrays can be arguments of "
          "functions");
  const bool python_numbers = nb::isinstance<nb::list>(h) || nb::isinstance<nb::tuple>(h);
  Tensor t = tensor_from(a, what, !python_numbers ? share : true);
  if (dtype && python_numbers) check_numbers(t, *dtype, what);
  if (dtype) return t.cast(*dtype);
  // NumPy gives Python numbers 64-bit dtypes. rlx uses 32 bits unless the value needs more.
  if (python_numbers && t.dtype() == DType::F64) return t.cast(DType::F32);
  if (python_numbers && t.dtype() == DType::C128) return t.cast(DType::C64);
  if (python_numbers && t.dtype() == DType::I64) {
    bool fits = true;
    for (std::int64_t v : t.values<std::int64_t>()) fits = fits && v >= INT32_MIN && v <= INT32_MAX;
    if (fits) return t.cast(DType::I32);
  }
  return t;
}

void bind_arrays(nb::module_& m) {
  nb::class_<PyArray>(m, "Array", nb::type_slots(array_slots), nb::is_weak_referenceable(),
                      "An immutable array of numbers on the host or on a device. numpy.asarray(x) and "
                      "torch.from_dlpack(x) share its memory without a copy.")
      .def_prop_ro(
          "shape", [](const PyArray& a) { return dims_object(of_living(a).dims()); }, "The shape, a tuple of int.")
      .def_prop_ro(
          "dtype", [](const PyArray& a) { return dtype_object(of_living(a).dtype()); }, "The dtype of its elements.")
      .def_prop_ro(
          "ndim", [](const PyArray& a) { return a.tensor.rank(); }, "The number of axes.")
      .def_prop_ro(
          "size", [](const PyArray& a) { return a.tensor.num_elements(); }, "The number of elements.")
      .def_prop_ro(
          "nbytes", [](const PyArray& a) { return a.tensor.size_bytes(); }, "The number of bytes of all elements.")
      .def_prop_ro(
          "weak_type", [](const PyArray& a) { return a.weak; },
          "True if the array was made from Python scalars alone: in arithmetic it takes the dtype of the other "
          "operand.")
      .def_prop_ro(
          "device", [](const PyArray& a) { return device_text(a.tensor.device()); },
          "The device that holds the array: \"cpu\", \"cuda:1\".")
      .def(
          "item", [](const PyArray& a) { return only_element(a, "item"); },
          "The single element of the array, as a Python number.")
      .def(
          "tolist",
          [](const PyArray& a) {
            check_not_donated(a);
            const Tensor host = on_host(a.tensor);
            std::int64_t at = 0;
            return nested(host, host.dims(), 0, at);
          },
          "The elements as nested lists of Python numbers.")
      .def(
          "__array__",
          [](nb::handle self, nb::object dtype, nb::object copy) {
            const bool must = copy.is(nb::handle(Py_True)), never = copy.is(nb::handle(Py_False));
            const nb::object whole = to_numpy(self);
            const nb::object out = dtype.is_none() ? whole : whole.attr("astype")(dtype, nb::arg("copy") = false);
            if (never && (!out.is(whole) || nb::cast<const PyArray&>(self).tensor.buffer()))
              throw nb::value_error("copy=False, but a change of dtype and an array on a device need a copy");
            return must && out.is(whole) ? out.attr("copy")() : out;
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def(
          "__dlpack__",
          [](const PyArray& a, nb::object stream, nb::object max_version, nb::object dl_device, nb::object copy) {
            (void)stream;  // submitted work has ended: to_dlpack waits for it
            const bool must = copy.is(nb::handle(Py_True)), never = copy.is(nb::handle(Py_False));
            const bool to_host = !dl_device.is_none() && dl_device.equal(nb::make_tuple(1, 0)) && a.tensor.buffer();
            if (!dl_device.is_none() && !to_host && !dl_device.equal(dlpack_device(a)))
              throw nb::buffer_error(
                  concat_text(
                      "an array on ", device_text(a.tensor.device()),
                      " can be exported by DLPack to its own device or to the host: call array.to(device) first")
                      .c_str());
            if (to_host && never) throw nb::buffer_error("copy=False, but an array on a device needs a copy");
            check_not_donated(a);
            if (!must && !to_host) return to_capsule(a, max_version);
            const Tensor t = a.tensor;  // other threads may donate the array meanwhile
            return to_capsule({t.buffer() ? on_host(t) : Tensor::copy_of(t.data(), t.shape())}, max_version);
          },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", &dlpack_device)
      .def("__bool__", [](const PyArray& a) { return nb::bool_(only_element(a, "bool")); })
      .def("__int__", [](const PyArray& a) { return nb::steal(PyNumber_Long(only_element(a, "int").ptr())); })
      .def("__float__", [](const PyArray& a) { return nb::steal(PyNumber_Float(only_element(a, "float").ptr())); })
      .def("__complex__",
           [](const PyArray& a) {
             nb::object one = only_element(a, "complex");
             return nb::borrow(reinterpret_cast<PyObject*>(&PyComplex_Type))(one);
           })
      .def("__index__",
           [](const PyArray& a) {
             if (is_inexact(a.tensor.dtype()))
               raise(ErrorCode::DTypeMismatch, concat_text("an array ", a.tensor.shape(), " is not an index"));
             return only_element(a, "an index");
           })
      .def("__len__",
           [](const PyArray& a) {
             if (a.tensor.rank() == 0) throw nb::type_error("len() of a scalar array");
             return a.tensor.dim(0);
           })
      .def("__hash__",
           [](const PyArray&) -> int {
             throw nb::type_error("rlx arrays are not hashable: they compare element by element");
           })
      .def(
          "to",
          [](nb::handle self, const std::string& device) -> nb::object {
            const PyArray& a = nb::cast<const PyArray&>(self);
            check_not_donated(a);
            const DeviceId id = device_from(device);
            if (id == a.tensor.device()) return nb::borrow(self);
            const bool weak = a.weak;
            Tensor t = a.tensor;  // other threads may donate the array meanwhile
            {
              const nb::gil_scoped_release free;
              t = to(t, id);
            }
            return array_object(std::move(t), weak);
          },
          nb::arg("device"), "The array on a device (\"cpu\", \"cuda:1\"); the same array if it is there already.")
      .def(
          "to_host",
          [](nb::handle self) -> nb::object {
            const PyArray& a = nb::cast<const PyArray&>(self);
            check_not_donated(a);
            return a.tensor.buffer() ? array_object(on_host(a.tensor), a.weak) : nb::borrow(self);
          },
          "The array on the host; the same array if it is there already.")
      .def(
          "block_until_ready",
          [](nb::handle self) {
            const PyArray& a = nb::cast<const PyArray&>(self);
            if (a.tensor.buffer()) {
              const nb::gil_scoped_release free;
              a.tensor.buffer()->written().wait();
            }
            return nb::borrow(self);
          },
          "Waits until the device has computed the array. Raises the error of a computation that failed.")
      .def("_with_weak",
           [](const PyArray& a, bool weak) {
             return PyArray{a.tensor, weak};
           })
      .def("_reshaped",
           [](const PyArray& a, const std::vector<std::int64_t>& dims) {
             return PyArray{a.tensor.reshaped(dims), a.weak};
           })
      .def("_address", [](const PyArray& a) { return reinterpret_cast<std::uintptr_t>(a.tensor.data()); })
      .def("_text", [](const PyArray& a) { return on_host(a.tensor).text(); });
  m.def(
      "array_from",
      [](nb::handle x, nb::handle dtype, bool copy) {
        std::optional<DType> t;
        if (!dtype.is_none()) t = dtype_from(dtype);
        const bool weak = !t && weak_scalar(x).has_value();
        Tensor out = tensor_from(x, "array", !copy, t);
        if (copy && nb::isinstance<PyArray>(x) == false && !out.buffer() && !out.owned())
          out = Tensor::copy_of(out.data(), out.shape());
        return PyArray{std::move(out), weak};
      },
      nb::arg("x").none(), nb::arg("dtype").none() = nb::none(), nb::arg("copy") = false);
  m.def("empty", [](const std::vector<std::int64_t>& dims, nb::handle dtype) {
    return PyArray{Tensor::uninitialized(shape_of(dims, dtype_from(dtype)))};
  });
  array_type = reinterpret_cast<PyTypeObject*>(nb::type<PyArray>().ptr());
}

}  // namespace rlx::python
