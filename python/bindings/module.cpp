// The extension module `rlx._rlx`: the C++ part of the Python package.
#include "python/bindings/common.h"
#include "python/bindings/ending_threads.h"
#include "python/bindings/functions.h"
#include "python/bindings/hub.h"
#include "rlx/base/sigbus_guard.h"

// A second interpreter of the process would share the types and registries of the first, and take them along when it
// ends. It is refused before anything is made; what nanobind defines gets another name for that.
#define PyInit__rlx init_of_main_interpreter
NB_MODULE(_rlx, m) {
  using namespace rlx::python;  // NOLINT
  m.doc() = "The compiled part of rlx.";
  nb::set_leak_warnings(false);  // dtypes and exceptions live as long as the process
  m.attr("version") = RLX_VERSION;
  rlx::install_sigbus_guard(rlx::OnLostPage::Warn);
  bind_errors(m);
  bind_dtypes(m);
  bind_dims(m);
  bind_arrays(m);
  bind_trees(m);
  bind_graphs(m);
  bind_ops(m);
  bind_fft(m);
  bind_functions(m);
  bind_control(m);
  bind_special(m);
  bind_images(m);
  bind_linalg(m);
  bind_sequence(m);
  bind_transforms(m);
  bind_runtime(m);
  bind_dispatch(m);
  bind_files(m);
  bind_hub(m);
  bind_encoders(m);
  bind_custom(m);
  bind_text(m);
  bind_gguf(m);
  bind_flow(m);
  bind_grammars(m);
  bind_answer_options(m);
  bind_language_models(m);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&note_ending_thread));
}
#undef PyInit__rlx
extern "C" NB_EXPORT PyObject* PyInit__rlx(void) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return init_of_main_interpreter();
  PyErr_SetString(PyExc_ImportError,
                  "rlx works in the main interpreter of a process only, not in a subinterpreter: use threads, or "
                  "processes (multiprocessing)");
  return nullptr;
}
