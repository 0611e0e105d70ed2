// Pulls of models whose requests are made by the standard library of Python (rlx/hub.py).
#include "python/bindings/hub.h"

#include "python/bindings/runtime.h"
#include "python/bindings/text.h"
#include "rlx/hub/hub.h"

namespace rlx::python {
namespace {

// rlx.hub.find, which the package sets: a module that this one imports could not import this one.
PyObject*& finder() {
  static PyObject* function = nullptr;
  return function;
}

// Asks the function get(url, headers, seconds, begin, body) of rlx/hub.py. An exception in it ends the pull.
class PythonTransport : public HttpTransport {
 public:
  explicit PythonTransport(nb::handle get) : get_(get) {}
  std::string get(const HttpRequest& request, HttpSink& sink) override {
    const nb::gil_scoped_acquire gil;
    nb::dict headers;
    for (const auto& [name, value] : request.headers) headers[text_object(name)] = text_object(value);
    const nb::object begin = nb::cpp_function([&sink](int status, const std::string& redirect, nb::dict fields) {
      HttpReply reply;
      reply.status = status;
      reply.redirect = redirect;
      for (const auto [name, value] : fields)
        reply.headers.insert_or_assign(nb::cast<std::string>(name), nb::cast<std::string>(value));
      const nb::gil_scoped_release free;
      sink.begin(reply);
    });
    const nb::object body = nb::cpp_function([&sink](const nb::bytes& bytes) {
      const std::string_view piece(bytes.c_str(), bytes.size());
      const nb::gil_scoped_release free;
      return sink.body(piece);
    });
    return nb::cast<std::string>(get_(text_object(request.url), headers, request.timeout, begin, body));
  }

 private:
  nb::handle get_;
};

PullOptions pull_options(bool verify, nb::handle note, nb::handle progress) {
  PullOptions o;
  o.verify = verify;
  if (!note.is_none())
    o.note = [note](const std::string& text) {
      const nb::gil_scoped_acquire gil;
      note(text_object(text));
    };
  if (!progress.is_none())
    o.progress = [progress](std::uint64_t done, std::uint64_t total) {
      const nb::gil_scoped_acquire gil;
      progress(done, total);
    };
  return o;
}

HubName hub_name_from(nb::handle h, const char* what) {
  const std::string text = text_from(h, what);
  if (auto name = parse_hub_name(text)) return *name;
  raise(ErrorCode::InvalidArgument, concat_text(what, ": '", text, "' is not the name of a model on a hub"),
        "names are ORG/NAME, ORG/NAME:FILE or ORG/NAME@REVISION");
}

}  // namespace

std::string existing_model(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) || !parse_hub_name(path.string())) return existing(path);
  return existing(nb::cast<std::filesystem::path>(nb::handle(finder())(nb::str(path.c_str()))));
}

void bind_hub(nb::module_& m) {
  m.def("set_model_finder", [](nb::callable f) { finder() = f.release().ptr(); });
  m.def(
      "pull_model",
      [](nb::handle name, nb::handle get, bool verify, int retries, nb::handle note, nb::handle progress) {
        const HubName wanted = hub_name_from(name, "pull");
        HubSettings settings = HubSettings::from_environment();
        if (retries < 0)
          raise(ErrorCode::InvalidArgument, concat_text("pull: retries must not be negative: ", retries));
        settings.retries = retries;
        PythonTransport transport(get);
        const PullOptions options = pull_options(verify, note, progress);
        const nb::gil_scoped_release free;
        const CtrlC interruptible(true);
        return pull_model(wanted, transport, settings, options);
      },
      nb::arg("name").none(), nb::arg("get"), nb::arg("verify"), nb::arg("retries"), nb::arg("note").none(),
      nb::arg("progress").none());
  m.def(
      "cached_model",
      [](nb::handle name) {
        const HubName wanted = hub_name_from(name, "cached");
        return cached_model(wanted, HubSettings::from_environment());
      },
      nb::arg("name").none());
  m.def(
      "find_model",
      [](const std::string& text, nb::handle get, nb::handle note, nb::handle progress) {
        PythonTransport transport(get);
        const PullOptions options = pull_options(false, note, progress);
        const nb::gil_scoped_release free;
        const CtrlC interruptible(true);
        return find_model(text, transport, options);
      },
      nb::arg("text"), nb::arg("get"), nb::arg("note").none(), nb::arg("progress").none());
}

}  // namespace rlx::python
