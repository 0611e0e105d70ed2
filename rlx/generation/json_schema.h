// Grammars of JSON texts: any value, or those that a schema describes.
#pragma once

#include <cstdint>
#include <string_view>

#include "rlx/generation/grammar.h"

namespace rlx {

/// What stands between the tokens of a JSON text.
enum class JsonWhitespace : std::uint8_t {
  None,      // {"a":[1,2]}
  Spaced,    // {"a": [1, 2]}, as Python's json.dumps writes it
  Flexible,  // up to `max_whitespace` spaces, tabs and line ends wherever JSON allows them, but before and after the
             // text
};

struct JsonSchemaOptions {
  JsonWhitespace whitespace = JsonWhitespace::Flexible;
  std::uint32_t max_whitespace = 64;
  /// Objects have no members but those named, and arrays no items but those of prefixItems, where the schema leaves
  /// additionalProperties or items out. JSON Schema means the opposite, which lets a model go on and on.
  bool closed = false;
};

/// The grammar of the JSON texts that `schema` (the text of a JSON Schema, draft 2020-12) describes; docs/grammars.md
/// lists the keywords. Members come in the order of the schema. `source` (a file name) opens the places of errors.
/// Errors: BadFile for what is no JSON, no schema, or a schema that no value satisfies; Unsupported naming a keyword
/// that would constrain but cannot, and its JSON pointer.
Grammar json_schema_grammar(std::string_view schema, const JsonSchemaOptions& options = {},
                            std::string_view source = "schema");

/// The grammar of all JSON texts.
Grammar json_grammar(const JsonSchemaOptions& options = {});

}  // namespace rlx
