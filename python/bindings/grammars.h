// Grammars of answers.
#pragma once

#include "python/bindings/common.h"
#include "rlx/generation/json_schema.h"

namespace rlx::python {

/// An rlx.models.Grammar, or GBNF as a text; nb::cast_error for others.
Grammar grammar_from(nb::handle h);
/// The grammar of a JSON Schema, which is a dict, True, False or a JSON text; nb::cast_error for others.
Grammar schema_grammar_from(nb::handle h, const JsonSchemaOptions& form = {});

}  // namespace rlx::python
