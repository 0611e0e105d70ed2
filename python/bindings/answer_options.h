// Options of answers by their names.
#pragma once

#include "python/bindings/common.h"
#include "rlx/generation/engine.h"

namespace rlx::python {

/// Sets options that Python gave by name. TypeError for an unknown name; errors of each option name it.
void set_answer_options(GenerationOptions& out, nb::dict given);
/// Compiles the grammar or schema of `options`, so that many answers share it: "grammar" is then an rlx.models.Grammar.
void share_grammar(nb::dict options);

}  // namespace rlx::python
