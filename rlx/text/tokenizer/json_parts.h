// Helpers of the tokeniser file readers: errors that name the file, and optional members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/error.h"
#include "rlx/formats/json.h"

namespace rlx {

[[noreturn]] inline void bad_tokenizer_file(const std::string& source, const std::string& message,
                                            std::string hint = {}) {
  throw Error(ErrorCode::BadFile, concat_text(source, ": ", message), std::move(hint));
}

[[noreturn]] inline void unknown_component(const std::string& source, std::string_view part, std::string_view type) {
  throw Error(ErrorCode::Unsupported, concat_text(source, ": the ", part, " \"", type, "\" is not supported"),
              "supported are the components of tokenizers 0.23 except UnicodeScripts and WordLevel");
}

/// The value of `key` unless it is missing or null.
inline std::optional<JsonValue> part_of(const JsonValue& object, std::string_view key) {
  std::optional<JsonValue> part = object.find(key);
  if (part && part->is_null()) return std::nullopt;
  return part;
}

/// Limits an id. Ids are dense in real files, and a huge id would make the table by id enormous.
inline void require_token_id(std::int64_t id, std::size_t num_tokens, std::string_view token,
                             const std::string& source) {
  const std::int64_t limit = static_cast<std::int64_t>(num_tokens) * 4 + 65536;
  if (id < 0 || id >= limit) {
    bad_tokenizer_file(source, concat_text("token \"", token, "\" has the id ", id, ", expected 0 to ", limit - 1,
                                           " for a vocabulary of ", num_tokens, " tokens"));
  }
}

}  // namespace rlx
