// Texts, token ids and JSON between Python and C++, and the tokeniser as Python sees it.
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

/// The UTF-8 of a str, or the bytes of a bytes object; InvalidArgument naming the place of a lone surrogate, TypeError
/// for others, after `what`.
std::string text_from(nb::handle h, std::string_view what);
/// A str of UTF-8; what is none becomes U+FFFD.
nb::object text_object(std::string_view text);
/// The ids of a list of integers or an array [T] of integers; TypeError for others, InvalidArgument for an integer
/// beyond 32 bits, after `what`.
std::vector<TokenId> tokens_from(nb::handle h, std::string_view what);
/// The id of one token; errors as tokens_from.
TokenId token_from(nb::handle h, std::string_view what);
/// Ids as a NumPy array [T] int32.
nb::object ids_object(std::span<const TokenId> ids);

/// What Python's json makes of an object; TypeError naming `what` for what is no JSON.
std::string json_text_from(nb::handle h, const std::string& what);
/// The same, read again.
JsonDocument json_from(nb::handle h, const std::string& what);
/// Python's object of a JSON value.
nb::object object_of_json(const JsonValue& v);

/// The text of a conversation (a str: one message of the user; a list of dicts) and what of `options` a template takes,
/// which is taken out of it: tools, documents, variables, special_tokens, template, now, add_generation_prompt.
/// TypeError for another one where `all` are to be known.
std::string render_chat(const ChatTemplate& chat, nb::handle messages, nb::dict options, bool all = false);

}  // namespace rlx::python
