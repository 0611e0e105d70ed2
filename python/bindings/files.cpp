// Files and whole models in Python: safetensors, sentence encoders.
#include <unistd.h>

#include "python/bindings/runtime.h"
#include "rlx/formats/safetensors.h"
#include "rlx/models/sentence_encoder.h"

namespace rlx::python {
namespace {

// One encoder for any number of threads: a call waits for the one before it.
struct PyEncoder {
  SentenceEncoder encoder;
  std::mutex busy{};
};

}  // namespace

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
      nb::arg("path"), "The arrays of a safetensors file, name -> array; they share the mapped file.");
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
      "Writes a dict of name -> array as a safetensors file, with a header of strings.");
  m.def("load_params", [](PyCompiled& c, const std::filesystem::path& path, bool strict) {
    const std::string file = existing(path);
    const nb::gil_scoped_release free;
    const Turn turn(c);
    return c.program.load_params(SafetensorsFile::open(file), strict ? LoadMode::Strict : LoadMode::Subset);
  });
  nb::class_<PyEncoder>(m, "SentenceEncoder",
                        "Sentence embeddings from a Hugging Face model folder (a BERT encoder with its tokenizer).")
      .def(
          "__init__",
          [](PyEncoder* self, const std::filesystem::path& path, int threads, std::int64_t max_batch,
             std::int64_t max_sequence, bool zero_empty, const std::string& device) {
            SentenceEncoderOptions o;
            o.num_threads = threads;
            o.max_batch = max_batch;
            o.max_sequence = max_sequence;
            o.zero_empty = zero_empty;
            o.device = device_from(device);
            const std::string folder = existing(path);
            const nb::gil_scoped_release free;
            new (self) PyEncoder{SentenceEncoder(folder, o)};
          },
          nb::arg("folder"), nb::kw_only(), nb::arg("threads") = 0, nb::arg("max_batch") = 32,
          nb::arg("max_sequence") = 0, nb::arg("zero_empty") = false, nb::arg("device") = "cpu")
      .def(
          "embed",
          [](PyEncoder& e, nb::handle texts) {
            const bool single = PyUnicode_Check(texts.ptr());
            std::vector<std::string> list;
            if (single)
              list.push_back(nb::cast<std::string>(texts));
            else
              list = cast_as<std::vector<std::string>>(texts, "embed: texts");
            Tensor out;
            {
              const nb::gil_scoped_release free;
              const std::lock_guard<std::mutex> lock(e.busy);
              out = single ? e.encoder.embed(list[0]) : e.encoder.embed(list);
            }
            return array_object(std::move(out));
          },
          nb::arg("texts").none(), "Float32 vectors [texts, hidden_size] of a list of texts, or [hidden_size] of one.")
      .def_prop_ro(
          "hidden_size", [](PyEncoder& e) { return e.encoder.hidden_size(); }, "How long a vector is.")
      .def_prop_ro(
          "max_sequence", [](PyEncoder& e) { return e.encoder.max_sequence(); },
          "How many tokens of a text are read at most.");
}

}  // namespace rlx::python
