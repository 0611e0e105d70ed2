// Grammars of answers.
#pragma once

#include "python/bindings/common.h"
#include "rlx/generation/json_schema.h"

namespace rlx::python {

/// Converts an rlx.models.Grammar or a GBNF text. Throws nb::cast_error for other objects.
Grammar grammar_from(nb::handle h);
/// Compiles a JSON Schema: a dict, True, False or a JSON text. Throws nb::cast_error for other objects.
Grammar schema_grammar_from(nb::handle h, const JsonSchemaOptions& form = {});

}  // namespace rlx::python
