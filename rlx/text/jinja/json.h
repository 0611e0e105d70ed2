// JSON values as values of chat templates.
#pragma once

#include "rlx/formats/json.h"
#include "rlx/text/jinja/value.h"

namespace rlx::jinja {

/// Converts JSON to a template value. Errors: Raised limit for an integer of more than 4300 digits and for more than
/// 200 nested levels.
Value from_json(Heap& heap, const JsonValue& json);

}  // namespace rlx::jinja
