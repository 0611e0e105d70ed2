// Chat templates: the Jinja programs in model files that turn a conversation into the text a model was trained on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/formats/json.h"

namespace rlx {

/// One turn of a conversation. Turns with tool calls, images or reasoning are rendered from JSON.
struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool", ...
  std::string content;
};

/// What a template sees besides the messages.
struct ChatTemplateOptions {
  bool add_generation_prompt = true;   // end with the beginning of the assistant's turn
  std::optional<JsonValue> tools;      // an array of tool schemas; none: the variable `tools` is none
  std::optional<JsonValue> documents;  // an array for retrieval templates
  std::optional<JsonValue> variables;  // an object: each member is a variable (enable_thinking, reasoning_effort, ...)
  std::vector<std::pair<std::string, std::string>> special_tokens;  // {"bos_token", "<s>"}: over those of the file
  std::string template_name;  // one of names(); empty: "tool_use" when there are tools and such a one, else the first
  std::optional<std::int64_t> now;       // what strftime_now reads, in seconds since 1970; none: the clock
  std::uint64_t max_steps = 20'000'000;  // work that a render may do, about 10 ns each
};

class GgufFile;

/// Special tokens by the names that templates know them by, for example {"bos_token", "<s>"}.
using SpecialTokenNames = std::vector<std::pair<std::string, std::string>>;
/// Those of a Hugging Face folder, by its tokenizer_config.json; none without one.
SpecialTokenNames special_token_names(const std::string& folder);
/// Those that a GGUF file's metadata name.
SpecialTokenNames special_token_names(const GgufFile& file);

/// A parsed chat template, rendered as Python's jinja2 does in the sandbox of transformers. Immutable, so any number
/// of threads may render with one. Templates are programs of strangers: time, memory, output and nesting are bounded.
class ChatTemplate {
 public:
  /// Parses `source` of a model with these special tokens; `name` opens every error. Errors: BadFile with line and
  /// column, Unsupported for statements and filters that have no place in plain text.
  static ChatTemplate parse(std::string_view source, std::string name, SpecialTokenNames special_tokens = {});
  /// Reads `chat_template.jinja` of a Hugging Face model folder, or "chat_template" (a text, or named ones) of its
  /// `tokenizer_config.json` or `chat_template.json`, and the special tokens of `tokenizer_config.json`.
  /// Errors: NotFound when the folder holds no template; those of parse.
  static ChatTemplate load(const std::string& folder);
  /// That of a GGUF file, with its special tokens. Errors: NotFound where it holds none; those of parse.
  static ChatTemplate load(const GgufFile& file);

  /// The text of a conversation. Errors: InvalidArgument with what the template raises (in Python's words, with line
  /// and column) or with the limit that it meets.
  std::string render(std::span<const ChatMessage> messages, const ChatTemplateOptions& options = {}) const;
  /// The same of messages as JSON, an array of objects, as the chat APIs write them.
  std::string render(const JsonValue& messages, const ChatTemplateOptions& options = {}) const;

  /// Names of the templates, the default one first.
  std::vector<std::string> names() const;
  /// The text of a template; empty: of the default one. Errors: NotFound.
  std::string_view source(std::string_view name = {}) const;
  /// Special tokens of the model's files, for example {"bos_token", "<s>"}.
  std::span<const std::pair<std::string, std::string>> special_tokens() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const;  // throws for a template that was moved from
  std::shared_ptr<const Impl> impl_;
};

}  // namespace rlx
