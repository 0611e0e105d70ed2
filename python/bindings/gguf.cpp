// GGUF files in Python, and conversion of models.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "python/bindings/text.h"
#include "rlx/formats/encoding_error.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/gguf_writer.h"
#include "rlx/models/convert/model_convert.h"
#include "rlx/tensor/block_search.h"

// Without this, nanobind takes the class for copyable.
template <>
struct nanobind::detail::is_copy_constructible<rlx::GgufFile> : std::false_type {};

namespace rlx::python {
namespace {

using FilePtr = std::shared_ptr<GgufFile>;

struct PyGgufTensor {
  FilePtr file;
  const GgufTensor* tensor = nullptr;
};

nb::object value_object_of(const GgufValue& v) {
  switch (v.kind()) {
    case GgufKind::Bool: return nb::bool_(v.as_bool());
    case GgufKind::String: return text_object(v.as_string());
    case GgufKind::F32:
    case GgufKind::F64: return nb::float_(v.as_number());
    case GgufKind::U64: return v.as_number() < 0x1p63 ? nb::object(nb::int_(v.as_int())) : nb::float_(v.as_number());
    case GgufKind::Array: break;
    default: return nb::int_(v.as_int());
  }
  nb::list out;
  if (v.element_kind() == GgufKind::String) {
    for (const std::string_view s : v.strings()) out.append(text_object(s));
  } else {
    for (const GgufValue& e : v.elements()) out.append(value_object_of(e));
  }
  return out;
}

nb::dict metadata_dict(const GgufFile& f) {
  nb::dict out;
  for (const GgufValue& v : f.metadata()) out[text_object(v.key())] = value_object_of(v);
  return out;
}

Tensor numbers_of(const FilePtr& file, const GgufTensor& t) {
  const nb::gil_scoped_release free;
  return t.info().dtype ? GgufFile::tensor(file, t.name) : file->decoded(t.name);
}

// -- writing --

GgufType type_from(nb::handle h, const std::string& name) {
  const std::string text = text_from(h, concat_text("the type of '", name, "'"));
  if (const auto type = parse_gguf_type(text)) return *type;
  std::vector<std::string> known;
  for (const GgufTypeInfo& t : gguf_types()) known.emplace_back(t.name);
  raise(ErrorCode::InvalidArgument, concat_text("'", name, "': there is no type '", text, "'"),
        did_you_mean(text, known, "common types are F32, F16, BF16, Q8_0 and Q4_0"));
}

GgufType type_of_dtype(DType dtype, const std::string& name) {
  for (const GgufTypeInfo& t : gguf_types())
    if (t.dtype == dtype) return t.type;
  raise(ErrorCode::Unsupported, concat_text("'", name, "': GGUF files have no tensors of ", dtype_name(dtype)),
        "cast it: array.astype(\"float32\")");
}

struct TensorToWrite {
  std::string name;
  Tensor values;
  GgufType type;
};

TensorToWrite to_write(nb::handle key, nb::handle value) {
  TensorToWrite out;
  out.name = text_from(key, "gguf.save: a tensor's name");
  nb::object array = nb::borrow(value);
  std::optional<GgufType> type;
  if (nb::isinstance<nb::tuple>(value)) {
    const auto pair = nb::borrow<nb::tuple>(value);
    if (pair.size() != 2)
      raise(ErrorCode::InvalidArgument,
            concat_text("gguf.save: '", out.name, "' must be an array or a pair (array, type), got a tuple of ",
                        pair.size()),
            "(array, \"Q8_0\")");
    array = pair[0];
    type = type_from(pair[1], out.name);
  }
  out.values = on_host(tensor_from(array, out.name.c_str(), false));
  out.type = type ? *type : type_of_dtype(out.values.dtype(), out.name);
  const GgufTypeInfo& info = gguf_type_info(out.type);
  if (!info.dtype && !makes_blocks(info.scheme))
    raise(ErrorCode::Unsupported,
          concat_text("'", out.name, "': tensors of type ", info.name, " can be read but not written"));
  return out;
}

// An error of code that runs without the GIL, which is taken to find the user's line.
[[noreturn]] void refuse(std::string message, std::string hint) {
  const nb::gil_scoped_acquire gil;
  raise(ErrorCode::InvalidArgument, std::move(message), std::move(hint));
}

// What the file would hold of the tensor that is not what was given. Errors: InvalidArgument where weights would become
// infinite, or all of them be lost.
std::string problem_of(const TensorToWrite& t, const Tensor& plain, std::span<const std::byte> bytes) {
  const GgufTypeInfo& info = gguf_type_info(t.type);
  if (info.dtype == t.values.dtype()) return {};
  EncodingError error;
  if (!info.dtype) {
    error = encoding_error(t.type, plain.values<float>(), bytes);
  } else {
    const Tensor given = t.values.cast(DType::F64), kept = plain.cast(DType::F64);
    const auto x = given.values<double>(), y = kept.values<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x[i])) continue;
      if (!is_float(*info.dtype) && x[i] != y[i]) {
        char text[32];
        const std::string_view number(text, std::to_chars(text, text + sizeof text, x[i]).ptr - text);
        refuse(concat_text("gguf.save: '", t.name, "': ", info.name, " cannot hold the value ", number),
               "use a type that can");
      }
      if (!std::isfinite(y[i])) {
        ++error.infinite;
        continue;
      }
      error.error2 += (y[i] - x[i]) * (y[i] - x[i]);
      error.norm2 += x[i] * x[i];
    }
  }
  const std::string problem = encoding_problem(t.type, error);
  if (error.infinite > 0 || error.relative() >= 0.9995)
    refuse(concat_text("gguf.save: '", t.name, "': ", problem), "use F32 or BF16, or scale the weights");
  return problem.empty() ? problem : concat_text("gguf.save: '", t.name, "': ", problem);
}

std::vector<std::byte> bytes_of(const TensorToWrite& t, std::vector<std::string>& problems) {
  const GgufTypeInfo& info = gguf_type_info(t.type);
  const Tensor plain = t.values.cast(info.dtype ? *info.dtype : DType::F32);
  std::vector<std::byte> out;
  if (info.dtype) {
    out.assign(plain.data(), plain.data() + plain.size_bytes());
  } else {
    out.resize(gguf_size_bytes(t.type, plain.dims()));
    search_blocks(info.scheme, plain.values<float>(), {}, out);
  }
  if (std::string problem = problem_of(t, plain, out); !problem.empty()) problems.push_back(std::move(problem));
  return out;
}

constexpr struct {
  DType dtype;
  GgufKind kind;
} kKinds[] = {{DType::U8, GgufKind::U8},   {DType::I8, GgufKind::I8},   {DType::U16, GgufKind::U16},
              {DType::I16, GgufKind::I16}, {DType::U32, GgufKind::U32}, {DType::I32, GgufKind::I32},
              {DType::U64, GgufKind::U64}, {DType::I64, GgufKind::I64}};

// A Python int is written as u32 if it fits, which readers of GGUF expect.
GgufKind kind_for(std::int64_t low, std::int64_t high) {
  if (low >= 0 && high <= std::numeric_limits<std::uint32_t>::max()) return GgufKind::U32;
  if (low >= std::numeric_limits<std::int32_t>::min() && high <= std::numeric_limits<std::int32_t>::max())
    return GgufKind::I32;
  return GgufKind::I64;
}

[[noreturn]] void refuse_value(const std::string& key, nb::handle v) {
  raise(ErrorCode::DTypeMismatch, concat_text("metadata '", key, "' cannot be ", described(v)),
        "give a bool, an int, a float, a string, a list of one of these, or a NumPy number or array for another width");
}

void set_array(GgufWriter& w, const std::string& key, nb::handle v) {
  const Tensor t = on_host(tensor_from(v, key.c_str()));
  if (t.rank() > 1) refuse_value(key, v);
  if (is_float(t.dtype())) {
    if (t.rank() == 0) return w.set_number(key, t.dtype() == DType::F64 ? GgufKind::F64 : GgufKind::F32, t.at(0));
    const Tensor floats = t.cast(DType::F32);
    return w.set_floats(key, floats.values<float>());
  }
  if (t.rank() == 0 && t.dtype() == DType::Bool) return w.set_bool(key, t.at(0) != 0);
  for (const auto& k : kKinds) {
    if (k.dtype != t.dtype()) continue;
    const Tensor wide = t.cast(DType::I64);
    const auto values = wide.values<std::int64_t>();
    return t.rank() == 0 ? w.set_int(key, k.kind, values[0]) : w.set_ints(key, k.kind, values);
  }
  refuse_value(key, v);
}

std::int64_t integer_from(const std::string& key, nb::handle v) {
  int overflow = 0;
  const long long n = PyLong_AsLongLongAndOverflow(v.ptr(), &overflow);
  if (overflow != 0) refuse_value(key, v);
  return n;
}

void set_list(GgufWriter& w, const std::string& key, nb::handle list) {
  std::vector<std::string> texts;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::size_t count = 0;
  for (nb::handle v : nb::borrow<nb::sequence>(list)) {
    ++count;
    if (PyUnicode_Check(v.ptr()))
      texts.push_back(text_from(v, key));
    else if (PyLong_Check(v.ptr()) && !PyBool_Check(v.ptr()))
      ints.push_back(integer_from(key, v)), floats.push_back(static_cast<float>(ints.back()));
    else if (PyFloat_Check(v.ptr()))
      floats.push_back(static_cast<float>(PyFloat_AsDouble(v.ptr())));
    else
      refuse_value(key, list);
  }
  if (texts.size() == count && count != 0) return w.set_strings(key, texts);
  if (ints.size() == count && count != 0) {
    const auto [low, high] = std::minmax_element(ints.begin(), ints.end());
    return w.set_ints(key, kind_for(*low, *high), ints);
  }
  if (floats.size() != count || count == 0) refuse_value(key, list);
  w.set_floats(key, floats);
}

void set_value(GgufWriter& w, const std::string& key, nb::handle v) {
  if (PyUnicode_Check(v.ptr())) return w.set_string(key, text_from(v, key));
  if (PyBool_Check(v.ptr())) return w.set_bool(key, v.is(nb::handle(Py_True)));
  if (PyLong_Check(v.ptr())) {
    const std::int64_t n = integer_from(key, v);
    return w.set_int(key, kind_for(n, n), n);
  }
  if (PyFloat_CheckExact(v.ptr())) return w.set_number(key, GgufKind::F32, PyFloat_AsDouble(v.ptr()));
  if (nb::isinstance<nb::list>(v) || nb::isinstance<nb::tuple>(v)) return set_list(w, key, v);
  if (is_array_like(v)) return set_array(w, key, v);
  refuse_value(key, v);
}

// Returns what is coarser in the file than usual, a line for each tensor.
std::vector<std::string> save(const std::filesystem::path& path, nb::handle tensors, nb::handle metadata) {
  std::vector<std::string> problems;
  std::vector<TensorToWrite> list;
  GgufWriter w(path.string());
  for (const auto [key, value] : cast_as<nb::dict>(metadata, "gguf.save: metadata"))
    set_value(w, text_from(key, "gguf.save: a key of metadata"), value);
  for (const auto [key, value] : cast_as<nb::dict>(tensors, "gguf.save: tensors")) list.push_back(to_write(key, value));
  const nb::gil_scoped_release free;
  for (const TensorToWrite& t : list) w.add_tensor(t.name, t.type, t.values.dims());
  (void)w.begin();
  for (const TensorToWrite& t : list) w.write(bytes_of(t, problems));
  w.commit();
  return problems;
}

void convert(const std::filesystem::path& source, const std::filesystem::path& target, nb::handle type,
             nb::handle head_type, const std::string& importance, int threads, std::size_t split_max_bytes,
             nb::handle note) {
  ConvertOptions o;
  if (!type.is_none()) o.type = type_from(type, "type");
  if (!head_type.is_none()) o.head_type = type_from(head_type, "head_type");
  o.importance = importance;
  o.threads = threads;
  o.split_max_bytes = split_max_bytes;
  if (!note.is_none())
    o.note = [note](const std::string& text) {
      const nb::gil_scoped_acquire gil;
      note(text_object(text));
    };
  const std::string from = existing(source);
  const nb::gil_scoped_release free;
  if (target.extension() == ".gguf")
    convert_to_gguf(from, target.string(), o);
  else
    convert_to_folder(from, target.string(), o);
}

}  // namespace

void bind_gguf(nb::module_& m) {
  nb::class_<PyGgufTensor>(m, "GgufTensor", "A tensor of a GGUF file.")
      .def_prop_ro(
          "name", [](const PyGgufTensor& t) { return text_object(t.tensor->name); }, "The name.")
      .def_prop_ro(
          "type", [](const PyGgufTensor& t) { return text_object(t.tensor->info().name); },
          "The type of its elements: \"F32\", \"BF16\", \"Q4_K\".")
      .def_prop_ro(
          "scheme",
          [](const PyGgufTensor& t) -> nb::object {
            return t.tensor->info().dtype ? nb::none() : text_object(quant_scheme_name(t.tensor->info().scheme));
          },
          "The scheme of its quantized blocks, as rlx.ops.dequantize takes it; None if it is not quantized.")
      .def_prop_ro(
          "shape", [](const PyGgufTensor& t) { return dims_object(t.tensor->dims); },
          "The shape of the tensor, a tuple.")
      .def_prop_ro(
          "nbytes", [](const PyGgufTensor& t) { return t.tensor->bytes.size(); }, "The number of bytes in the file.")
      .def(
          "array", [](const PyGgufTensor& t) { return array_object(numbers_of(t.file, *t.tensor)); },
          "The tensor as an array. Quantized blocks are decoded to float32; other types keep their dtype and share the "
          "mapped file.")
      .def(
          "stored", [](const PyGgufTensor& t) { return array_object(GgufFile::tensor(t.file, t.tensor->name)); },
          "The stored bytes as an array that shares the mapped file; quantized blocks as uint8 [.., row bytes].")
      .def("__repr__", [](const PyGgufTensor& t) {
        return concat_text("<", t.tensor->name, " ", t.tensor->info().name, " ",
                           Shape(Dims(t.tensor->dims.begin(), t.tensor->dims.end()), DType::F32).text(), ">");
      });
  nb::class_<GgufFile>(m, "GgufFile",
                       "A mapped GGUF file, with all shards of a split file. len(file), name in file and file[name] go "
                       "by tensor names; file[name] is the array of a tensor.")
      .def(nb::new_([](const std::filesystem::path& path) {
             const std::string file = existing(path);
             const nb::gil_scoped_release free;
             return GgufFile::open(file);
           }),
           nb::arg("path"))
      .def_prop_ro("metadata", &metadata_dict,
                   "Key -> value, a new dict: numbers, bools, strings, and lists of these. It is large if the file "
                   "holds a vocabulary.")
      .def_prop_ro(
          "architecture", [](const GgufFile& f) { return text_object(f.architecture()); },
          "The value of general.architecture: \"llama\", \"qwen3\".")
      .def_prop_ro(
          "tensors",
          [](const FilePtr& f) {
            nb::list out;
            for (const GgufTensor& t : f->tensors()) out.append(nb::cast(PyGgufTensor{f, &t}));
            return out;
          },
          "All tensors, in the order of the file.")
      .def(
          "tensor",
          [](const FilePtr& f, nb::handle name) {
            return PyGgufTensor{f, &f->at(text_from(name, "tensor: name"))};
          },
          nb::arg("name").none(), "The tensor of this name.")
      .def(
          "__getitem__",
          [](const FilePtr& f, nb::handle name) {
            return array_object(numbers_of(f, f->at(text_from(name, "a tensor's name"))));
          },
          nb::arg("name").none())
      .def(
          "__contains__",
          [](const FilePtr& f, nb::handle name) {
            return PyUnicode_Check(name.ptr()) && f->find_tensor(text_from(name, "a tensor's name")) != nullptr;
          },
          nb::arg("name").none())
      .def("__len__", [](const GgufFile& f) { return f.tensors().size(); })
      .def("__iter__",
           [](const FilePtr& f) {
             nb::list names;
             for (const GgufTensor& t : f->tensors()) names.append(text_object(t.name));
             return nb::iter(names);
           })
      .def_prop_ro("version", &GgufFile::version, "The version of the format, 2 or 3.")
      .def_prop_ro(
          "parts", [](const GgufFile& f) { return f.num_parts(); },
          "The number of files: 1, or the shards of a split file.")
      .def("__repr__", [](const GgufFile& f) {
        return concat_text("<GGUF file ", f.source(), ", ", f.tensors().size(), " tensors>");
      });
  m.def("gguf_save", &save, nb::arg("path"), nb::arg("tensors").none(), nb::arg("metadata").none(),
        "Writes a GGUF file of version 3.");
  m.def("convert_model", &convert, nb::arg("source"), nb::arg("target"), nb::kw_only(),
        nb::arg("type").none() = nb::none(), nb::arg("head_type").none() = nb::none(), nb::arg("importance") = "",
        nb::arg("threads") = 0, nb::arg("split_max_bytes") = 0, nb::arg("note").none() = nb::none(),
        "Converts a model.");
}

}  // namespace rlx::python
