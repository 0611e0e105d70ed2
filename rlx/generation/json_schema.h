// Grammars of JSON texts: any value, or the values of a schema.
#pragma once

#include <cstdint>
#include <string_view>

#include "rlx/generation/grammar.h"

namespace rlx {

/// The white space between the tokens of a JSON text.
enum class JsonWhitespace : std::uint8_t {
  None,      // {"a":[1,2]}
  Spaced,    // {"a": [1, 2]}, as Python's json.dumps writes it
  Flexible,  // up to `max_whitespace` spaces, tabs and line ends wherever JSON allows them inside the text
};

struct JsonSchemaOptions {
  /// Flexible with its many characters accepts what people and programs write. A weak model fills an answer with them:
  /// `rlx generate --json-schema` and Python's json_schema= allow one character.
  JsonWhitespace whitespace = JsonWhitespace::Flexible;
  std::uint32_t max_whitespace = 64;
  /// Objects have only the members that the schema names, and arrays only the items of prefixItems, where the schema
  /// omits additionalProperties or items. JSON Schema's default is the opposite, which lets a model add members without
  /// end.
  bool closed = false;
};

/// The grammar of the JSON texts that `schema` (a JSON Schema, draft 2020-12) describes. docs/grammars.md lists the
/// keywords. Members come in the order of the schema. Error positions begin with `source` (a file name). Errors:
/// BadFile for invalid JSON, an invalid schema, or a schema that no value satisfies; Unsupported naming an unsupported
/// constraining keyword and its JSON pointer.
Grammar json_schema_grammar(std::string_view schema, const JsonSchemaOptions& options = {},
                            std::string_view source = "schema");

/// The grammar of all JSON texts.
Grammar json_grammar(const JsonSchemaOptions& options = {});

}  // namespace rlx
