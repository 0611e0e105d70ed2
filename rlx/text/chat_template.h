// Chat templates: the Jinja programs in model files that render a conversation as the model's prompt text.
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

/// One message of a conversation. Messages with tool calls, images or reasoning are rendered from JSON.
struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool", ...
  std::string content;
};

/// The inputs of a template besides the messages.
struct ChatTemplateOptions {
  bool add_generation_prompt = true;   // end with the beginning of the assistant's message
  std::optional<JsonValue> tools;      // an array of tool schemas; none: the variable `tools` is none
  std::optional<JsonValue> documents;  // an array for retrieval templates
  std::optional<JsonValue> variables;  // an object: each member is a variable (enable_thinking, reasoning_effort, ...)
  std::vector<std::pair<std::string, std::string>> special_tokens;  // {"bos_token", "<s>"}: override those of the file
  std::string template_name;  // one of names(); empty: "tool_use" if it exists and there are tools, else the first
  std::optional<std::int64_t> now;       // the time of strftime_now, in seconds since 1970; none: the clock
  std::uint64_t max_steps = 20'000'000;  // budget of a render, about 10 ns a step
};

class GgufFile;

/// Special tokens by their template names, for example {"bos_token", "<s>"}.
using SpecialTokenNames = std::vector<std::pair<std::string, std::string>>;
/// The special tokens of a Hugging Face folder's tokenizer_config.json; empty without that file.
SpecialTokenNames special_token_names(const std::string& folder);
/// The special tokens that a GGUF file's metadata name.
SpecialTokenNames special_token_names(const GgufFile& file);
/// Special tokens of a GGUF file whose ids no token has, a sentence each. Such a file works without them.
std::vector<std::string> special_token_problems(const GgufFile& file);

/// Texts of tokens that end a turn in common chat formats. Older GGUF files name only the token that ends the text.
inline constexpr const char* kEndTokenTexts[] = {"<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>",
                                                 "<|endoftext|>"};

/// What happens to a template of a file that does not parse.
enum class BadTemplates : std::uint8_t {
  Throw,  // loading fails
  Defer,  // rendering with it fails: a model can be used without its template
};

/// A parsed chat template, rendered like Python's jinja2 in the sandbox of transformers. Immutable, so any number of
/// threads may render with one. Templates are untrusted programs: time, memory, output and nesting are bounded.
class ChatTemplate {
 public:
  /// Parses `source` for a model with these special tokens. Errors begin with `name`. Errors: BadFile with line and
  /// column, Unsupported for statements and filters that plain text has no use for.
  static ChatTemplate parse(std::string_view source, std::string name, SpecialTokenNames special_tokens = {});
  /// Reads `chat_template.jinja` of a Hugging Face model folder, or "chat_template" (one text, or named texts) of its
  /// `tokenizer_config.json` or `chat_template.json`, and the special tokens of `tokenizer_config.json`. Errors:
  /// NotFound when the folder holds no template; those of parse, with Defer when the template is rendered.
  static ChatTemplate load(const std::string& folder, BadTemplates bad = BadTemplates::Throw);
  /// Reads the template and the special tokens of a GGUF file. Errors: NotFound where it holds no template; those of
  /// parse.
  static ChatTemplate load(const GgufFile& file, BadTemplates bad = BadTemplates::Throw);

  /// Renders a conversation. Errors: InvalidArgument with the exception that the template raises (in Python's words,
  /// with line and column) or with the limit that it exceeds.
  std::string render(std::span<const ChatMessage> messages, const ChatTemplateOptions& options = {}) const;
  /// Renders messages given as JSON: an array of objects, as in chat APIs.
  std::string render(const JsonValue& messages, const ChatTemplateOptions& options = {}) const;

  /// Names of the templates, the default one first.
  std::vector<std::string> names() const;
  /// The text of a template; an empty name means the default template. Errors: NotFound.
  std::string_view source(std::string_view name = {}) const;
  /// Special tokens of the model's files, for example {"bos_token", "<s>"}.
  std::span<const std::pair<std::string, std::string>> special_tokens() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  static void add_template(Impl& impl, std::string_view name, std::string_view source, const std::string& path,
                           BadTemplates bad);
  const Impl& impl() const;  // throws for a template that was moved from
  std::shared_ptr<const Impl> impl_;
};

}  // namespace rlx
