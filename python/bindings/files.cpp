// Safetensors files in Python, and the writer of files.
#include <unistd.h>

#include "python/bindings/runtime.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx::python {
std::string existing(const std::filesystem::path& path) {
  if (access(path.c_str(), R_OK) != 0) {
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
    throw nb::python_error();
  }
  return path.string();
}

void bind_files(nb::module_& m) {
  m.def(
      "load_safetensors",
      [](const std::filesystem::path& path) {
        const std::shared_ptr<const SafetensorsFile> file = SafetensorsFile::open(existing(path));
        nb::dict out;
        for (const std::string& name : file->names())
          out[name.c_str()] = array_object(SafetensorsFile::tensor(file, name));
        return out;
      },
      nb::arg("path"), "The arrays of a safetensors file, name -> array. They share the mapped file.");
  m.def(
      "save_safetensors",
      [](const std::filesystem::path& path, nb::handle tensors, std::map<std::string, std::string> metadata) {
        std::vector<NamedTensor> list;
        std::vector<Tensor> held;
        for (auto [key, value] : cast_as<nb::dict>(tensors, "save_safetensors: tensors")) {
          const auto name = cast_as<std::string>(key, "save_safetensors: a tensor's name");
          held.push_back(tensor_from(value, name.c_str()).to_host());
          list.push_back({name, held.back()});
        }
        const nb::gil_scoped_release free;
        write_safetensors(path.string(), list, {metadata.begin(), metadata.end()});
      },
      nb::arg("path"), nb::arg("tensors").none(), nb::arg("metadata") = std::map<std::string, std::string>(),
      "Writes a dict name -> array as a safetensors file. metadata: strings for its header.");
  m.def(
      "write_file",
      [](const std::filesystem::path& path, const nb::bytes& content) {
        const nb::gil_scoped_release free;
        write_file(path.string(), std::string_view(content.c_str(), content.size()));
      },
      nb::arg("path"), nb::arg("content"), "Replaces a file as a whole: a kill or a full disk leaves the old one.");
  m.def(
      "checksum",
      [](nb::handle content) {
        Py_buffer view;
        if (PyObject_GetBuffer(content.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
        const Fingerprint sum = fingerprint_bytes(view.buf, static_cast<std::size_t>(view.len));
        PyBuffer_Release(&view);
        return nb::bytes(reinterpret_cast<const char*>(&sum), sizeof sum);
      },
      nb::arg("content"), "The checksum of bytes, 16 bytes: XXH3.");
  m.def("load_params", [](PyCompiled& c, const std::filesystem::path& path, bool strict) {
    const std::string file = existing(path);
    const nb::gil_scoped_release free;
    return c.program.load_params(SafetensorsFile::open(file), strict ? LoadMode::Strict : LoadMode::Subset);
  });
}

}  // namespace rlx::python
