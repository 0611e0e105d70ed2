// Conversions of texts, token ids and JSON between Python and C++, and the Python class of tokenizers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "python/bindings/common.h"
#include "rlx/formats/json.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/tokenizer.h"

namespace rlx::python {

struct PyTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
};
struct PyChatTemplate {
  ChatTemplate chat;
};

/// The UTF-8 of a str, or the bytes of a bytes object. Throws InvalidArgument, with the position, for a lone surrogate
/// and TypeError for other objects. Messages begin with `what`.
std::string text_from(nb::handle h, std::string_view what);
/// A str of UTF-8. Invalid bytes become U+FFFD.
nb::object text_object(std::string_view text);
/// Token ids of a list of integers or of an array [T] of integers. Throws TypeError for other objects and
/// InvalidArgument for an integer beyond 32 bits. Messages begin with `what`.
std::vector<TokenId> tokens_from(nb::handle h, std::string_view what);
/// The id of one token. Throws as tokens_from does.
TokenId token_from(nb::handle h, std::string_view what);
/// Ids as a NumPy array [T] int32.
nb::object ids_object(std::span<const TokenId> ids);

/// The JSON text of an object. Throws TypeError, which names `what`, for an object without a JSON text.
std::string json_text_from(nb::handle h, const std::string& what);
/// The same, parsed.
JsonDocument json_from(nb::handle h, const std::string& what);
/// The Python object of a JSON value.
nb::object object_of_json(const JsonValue& v);

/// Renders a conversation (a str, one message of the user, or a list of dicts). Removes the options of the template
/// from `options`: tools, documents, variables, special_tokens, template, now, add_generation_prompt. If `all` is set,
/// throws TypeError for any other option.
std::string render_chat(const ChatTemplate& chat, nb::handle messages, nb::dict options, bool all = false);

}  // namespace rlx::python
