// Options of answers by their names.
#pragma once

#include "python/bindings/common.h"
#include "rlx/generation/engine.h"

namespace rlx::python {

/// Sets options from Python keywords. Throws TypeError for an unknown name; other errors name the option.
void set_answer_options(GenerationOptions& out, nb::dict given);
/// Compiles the grammar or schema in `options`, so that many answers share it. "grammar" is then an rlx.models.Grammar.
void share_grammar(nb::dict options);

}  // namespace rlx::python
