// The extension module `rlx._rlx`: the C++ part of the Python package.
#include "python/bindings/common.h"
#include "python/bindings/functions.h"

NB_MODULE(_rlx, m) {
  using namespace rlx::python;  // NOLINT
  m.doc() = "The compiled part of rlx.";
  nb::set_leak_warnings(false);  // dtypes and exceptions live as long as the process
  m.attr("version") = RLX_VERSION;
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
  bind_encoders(m);
  bind_custom(m);
  bind_text(m);
  bind_gguf(m);
  bind_flow(m);
  bind_grammars(m);
  bind_answer_options(m);
  bind_language_models(m);
}
