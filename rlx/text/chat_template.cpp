// Chat templates of model files: loading, variables, conversion of errors.
#include "rlx/text/chat_template.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/foreign_file.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/jinja/json.h"
#include "rlx/text/jinja/render.h"

namespace rlx {

struct ChatTemplate::Impl {
  struct Named {
    std::string name;
    std::unique_ptr<jinja::Program> program;  // none: `problem` says why
    std::string source{};                     // of a text that does not parse
    Diagnostic problem{};
  };
  std::vector<Named> programs;  // the default first
  SpecialTokenNames special_tokens;

  const Named& find(std::string_view name) const {
    if (name.empty()) return programs[0];
    for (const Named& p : programs)
      if (p.name == name) return p;
    std::vector<std::string> names;
    for (const Named& p : programs) names.push_back(p.name);
    throw Error(ErrorCode::NotFound, concat_text("there is no chat template '", name, "'"),
                concat_text("the templates are ", quoted_names(names)));
  }
  const jinja::Program& program(std::string_view name) const {
    const Named& p = find(name);
    if (!p.program) throw Error(p.problem);
    return *p.program;
  }
};

namespace {

namespace fs = std::filesystem;

// The source line of an error, shortened.
std::string place_in_template(const jinja::Program* program, jinja::Position at) {
  if (at.line == 0) return {};
  std::string out = concat_text("line ", at.line, ", column ", at.column);
  if (program == nullptr) return out;
  std::string_view text = program->source;
  for (std::uint32_t line = 1; line < at.line; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  constexpr std::size_t kLongLine = 100;
  if (text.size() <= kLongLine)
    return concat_text(out, ": ", text.substr(std::min(text.find_first_not_of(' '), text.size())));
  const std::size_t column = jinja::offset_of(text, false, at.column - 1);
  std::size_t start = column < 20 ? 0 : column - 20, end = std::min(start + kLongLine, text.size());
  while (start > 0 && is_utf8_continuation(text[start])) --start;
  while (end < text.size() && is_utf8_continuation(text[end])) --end;
  return concat_text(out, ": ", start > 0 ? "..." : "", text.substr(start, end - start),
                     end < text.size() ? "..." : "");
}

[[noreturn]] void throw_raised(const jinja::Raised& raised, const std::string& name, const jinja::Program* program) {
  Diagnostic d;
  constexpr std::size_t kLongMessage = 4096;
  std::string message = raised.message;
  if (message.size() > kLongMessage) {
    std::size_t end = kLongMessage;
    while (end > 0 && is_utf8_continuation(message[end])) --end;
    message.resize(end);
    message += "...";
  }
  d.where = place_in_template(program, raised.at);
  d.code = program == nullptr ? ErrorCode::BadFile : ErrorCode::InvalidArgument;
  const std::string opening = concat_text("chat template '", name, "'");
  if (raised.type == jinja::kUnsupported) {
    d.code = ErrorCode::Unsupported;
    d.message = concat_text(opening, ": ", message);
  } else if (raised.type == jinja::kLimit) {
    d.message = concat_text(opening, ": ", message);
    if (program != nullptr)
      d.hint = "templates of models need far fewer steps; ChatTemplateOptions::max_steps raises the limit";
  } else if (raised.type == "TemplateError") {
    d.message = concat_text(opening, " refuses the conversation: ", message);
  } else {
    d.message = concat_text(opening, ": ", raised.type, ": ", message);
  }
  throw Error(std::move(d));
}

std::unique_ptr<jinja::Program> compile_template(std::string_view source, const std::string& name) {
  try {
    return jinja::compile(source, name);
  } catch (const jinja::Raised& raised) {
    throw_raised(raised, name, nullptr);
  }
}

std::optional<std::string> special_token_text(const JsonValue& v) {
  if (v.is_string()) return std::string(v.as_string("token"));
  const std::optional<JsonValue> content = v.find("content");
  if (content && content->is_string()) return std::string(content->as_string("content"));
  return std::nullopt;
}

SpecialTokenNames special_tokens_of_config(const JsonValue& config) {
  SpecialTokenNames out;
  for (const std::string_view name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const std::optional<JsonValue> token = config.find(name);
    if (!token) continue;
    if (std::optional<std::string> text = special_token_text(*token)) out.emplace_back(name, *std::move(text));
  }
  return out;
}

}  // namespace

namespace jinja {

Value from_json(Heap& heap, const JsonValue& json) {
  switch (json.kind()) {
    case JsonKind::Null: return Value::none();
    case JsonKind::Bool: return Value::boolean(json.as_bool("value"));
    case JsonKind::Integer:
    case JsonKind::Number: {
      if (const std::optional<std::string> digits = json.large_integer()) {
        std::optional<BigInteger> big = BigInteger::parse(*digits, 10);
        if (!big) raise(kLimit, "an integer has more than 4300 digits");
        return heap.integer(*std::move(big));
      }
      return json.kind() == JsonKind::Integer ? Value::integer(json.as_int("value"))
                                              : Value::real(json.as_number("value"));
    }
    case JsonKind::String: return heap.string(std::string(json.as_string("value")));
    case JsonKind::Array: {
      std::vector<Value> items;
      for (const JsonValue& item : json.elements("value")) items.push_back(from_json(heap, item));
      return heap.list(std::move(items));
    }
    case JsonKind::Object: {
      std::vector<DictObject::Entry> entries;
      for (const auto& [key, value] : json.members("value"))
        entries.emplace_back(heap.string(std::string(key)), from_json(heap, value));
      return heap.dict(std::move(entries));
    }
  }
  return Value::none();
}

}  // namespace jinja

SpecialTokenNames special_token_names(const std::string& folder) {
  const std::string path = (fs::path(folder) / "tokenizer_config.json").string();
  if (!has_file(path)) return {};
  return special_tokens_of_config(JsonDocument::read(path).root_object());
}
namespace {
constexpr std::pair<const char*, const char*> kGgufNames[] = {
    {"bos_token", "bos_token_id"},       {"eos_token", "eos_token_id"}, {"unk_token", "unknown_token_id"},
    {"sep_token", "seperator_token_id"},  // the misspelt key of these files
    {"pad_token", "padding_token_id"},   {"cls_token", "cls_token_id"}, {"mask_token", "mask_token_id"}};
}  // namespace

SpecialTokenNames special_token_names(const GgufFile& file) {
  SpecialTokenNames out;
  if (!file.find_value("tokenizer.ggml.tokens")) return out;
  const std::vector<std::string_view> tokens = file.value("tokenizer.ggml.tokens").strings();
  for (const auto& [name, key] : kGgufNames) {
    const std::int64_t id = file.get_int(concat_text("tokenizer.ggml.", key), -1);
    if (id >= 0 && id < static_cast<std::int64_t>(tokens.size()))
      out.emplace_back(name, tokens[static_cast<std::size_t>(id)]);
  }
  return out;
}

void ChatTemplate::add_template(Impl& impl, std::string_view name, std::string_view source, const std::string& path,
                                BadTemplates bad) {
  Impl::Named added{std::string(name), nullptr};
  try {
    added.program = compile_template(source, path);
  } catch (const Error& e) {
    if (bad == BadTemplates::Throw) throw;
    added.problem = e.diagnostic();
    added.problem.hint =
        "use another template (--chat-template FILE, rlx.text.ChatTemplate), or give the prompt as plain "
        "text (--raw)";
    added.source = source;
  }
  impl.programs.insert(name == "default" ? impl.programs.begin() : impl.programs.end(), std::move(added));
}

std::vector<std::string> special_token_problems(const GgufFile& file) {
  std::vector<std::string> out;
  const GgufValue* tokens = file.find_value("tokenizer.ggml.tokens");
  if (tokens == nullptr) return out;
  const auto count = static_cast<std::int64_t>(tokens->strings().size());
  for (const auto& [name, key] : kGgufNames) {
    const std::string full = concat_text("tokenizer.ggml.", key);
    const GgufValue* value = file.find_value(full);
    if (value == nullptr) continue;
    const std::int64_t id = value->as_int();
    if (id < 0 || id >= count)
      out.push_back(concat_text(file.source(), ": ", full, " is ", id, ", but there are ", count,
                                " tokens: the model is used without this token"));
  }
  return out;
}

ChatTemplate ChatTemplate::load(const GgufFile& file, BadTemplates bad) try {
  const std::string_view text = file.get_string("tokenizer.chat_template", "");
  if (text.empty())
    throw Error(ErrorCode::NotFound, concat_text(file.source(), ": there is no chat template"),
                "a base model has none; chat models keep it under tokenizer.chat_template");
  auto impl = std::make_shared<Impl>();
  impl->special_tokens = special_token_names(file);
  add_template(*impl, "default", text, file.source(), bad);
  return ChatTemplate(std::move(impl));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("ChatTemplate::load");
}

ChatTemplate ChatTemplate::parse(std::string_view source, std::string name, SpecialTokenNames special_tokens) try {
  auto impl = std::make_shared<Impl>();
  impl->special_tokens = std::move(special_tokens);
  add_template(*impl, "default", source, name, BadTemplates::Throw);
  return ChatTemplate(std::move(impl));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("ChatTemplate::parse");
}

ChatTemplate ChatTemplate::load(const std::string& folder, BadTemplates bad) try {
  const auto file = [&](std::string_view name) { return (fs::path(folder) / name).string(); };
  const auto exists = [&](std::string_view name) { return has_file(file(name)); };
  auto impl = std::make_shared<Impl>();
  const auto add = [&](std::string_view name, std::string_view source, const std::string& path) {
    add_template(*impl, name, source, path, bad);
  };
  const auto add_from_json = [&](const JsonValue& root, const std::string& path) {
    const std::optional<JsonValue> value = root.find("chat_template");
    if (!value || value->is_null()) return;
    if (!value->is_array()) return add("default", value->as_string("chat_template"), path);
    for (const JsonValue& entry : value->elements("chat_template")) {
      const std::string_view name = entry.get_string("name");
      add(name, entry.get_string("template"), concat_text(path, " (", name, ")"));
    }
  };
  std::optional<JsonDocument> config;
  if (exists("tokenizer_config.json")) {
    config = JsonDocument::read(file("tokenizer_config.json"));
    impl->special_tokens = special_tokens_of_config(config->root_object());
  }
  if (exists("chat_template.jinja")) {
    const std::string path = file("chat_template.jinja"), source = read_file(path);
    if (const auto foreign = foreign_file(std::string_view(source).substr(0, 256)))
      throw Error(ErrorCode::BadFile, concat_text(path, " is ", foreign->what), std::string(foreign->hint));
    add("default", without_bom(source), path);
  } else {
    if (config) add_from_json(config->root(), file("tokenizer_config.json"));
    if (impl->programs.empty() && exists("chat_template.json")) {
      const JsonDocument document = JsonDocument::read(file("chat_template.json"));
      add_from_json(document.root_object(), file("chat_template.json"));
    }
  }
  if (impl->programs.empty())
    throw Error(ErrorCode::NotFound, concat_text(folder, ": there is no chat template"),
                "a base model has none; chat models keep it in chat_template.jinja or tokenizer_config.json");
  return ChatTemplate(std::move(impl));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("ChatTemplate::load");
}

namespace {

// Variables in order of precedence: later ones win.
jinja::Variables variables_of(jinja::Heap& heap, jinja::Value messages, const ChatTemplateOptions& options,
                              const SpecialTokenNames& tokens) {
  jinja::Variables out;
  for (const SpecialTokenNames* some : {&tokens, &options.special_tokens})
    for (const auto& [name, text] : *some) out.emplace_back(name, heap.string(text));
  const auto optional = [&](const std::optional<JsonValue>& v) {
    return v ? jinja::from_json(heap, *v) : jinja::Value::none();
  };
  out.emplace_back("messages", std::move(messages));
  out.emplace_back("tools", optional(options.tools));
  out.emplace_back("documents", optional(options.documents));
  out.emplace_back("add_generation_prompt", jinja::Value::boolean(options.add_generation_prompt));
  if (options.variables)
    for (const auto& [name, value] : options.variables->members("variables"))
      out.emplace_back(std::string(name), jinja::from_json(heap, value));
  return out;
}

template <class MakeMessages>
std::string render_program(const jinja::Program& program, const ChatTemplateOptions& options,
                           const SpecialTokenNames& tokens, const MakeMessages& make_messages) {
  constexpr std::size_t kMaxBytes = std::size_t{512} << 20;  // limit of live values
  try {
    jinja::Heap heap(jinja::Budget(options.max_steps, kMaxBytes));
    const jinja::Variables variables = variables_of(heap, make_messages(heap), options, tokens);
    jinja::Renderer renderer(program, heap, options.now ? static_cast<std::time_t>(*options.now) : std::time(nullptr));
    return renderer.run(variables);
  } catch (const jinja::Raised& raised) {
    throw_raised(raised, program.name, &program);
  }
}

const jinja::Program& pick_program(const ChatTemplateOptions& options, const std::vector<std::string>& names,
                                   auto find) {
  const bool tool_use = options.template_name.empty() && options.tools &&
                        std::find(names.begin(), names.end(), "tool_use") != names.end();
  return find(tool_use ? std::string_view("tool_use") : std::string_view(options.template_name));
}

}  // namespace

std::string ChatTemplate::render(std::span<const ChatMessage> messages, const ChatTemplateOptions& options) const try {
  for (std::size_t i = 0; i < messages.size(); ++i)
    for (const std::string* text : {&messages[i].role, &messages[i].content})
      if (const std::optional<std::size_t> bad = find_invalid_utf8(*text))
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("message ", i + 1, " is not valid UTF-8 at byte ", *bad, " of its ",
                                text == &messages[i].role ? "role" : "content"));
  const jinja::Program& program = pick_program(
      options, names(), [&](std::string_view n) -> const auto& { return impl().program(n); });
  return render_program(program, options, impl().special_tokens, [&](jinja::Heap& heap) {
    std::vector<jinja::Value> items;
    for (const ChatMessage& m : messages) {
      std::vector<jinja::DictObject::Entry> entries;
      entries.emplace_back(heap.string("role"), heap.string(m.role));
      entries.emplace_back(heap.string("content"), heap.string(m.content));
      items.push_back(heap.dict(std::move(entries)));
    }
    return heap.list(std::move(items));
  });
} catch (const std::bad_alloc&) {
  throw_out_of_memory("ChatTemplate::render");
}

std::string ChatTemplate::render(const JsonValue& messages, const ChatTemplateOptions& options) const try {
  if (!messages.is_array())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the messages of a conversation must be an array of objects, got ",
                            json_kind_name(messages.kind())));
  const jinja::Program& program = pick_program(
      options, names(), [&](std::string_view n) -> const auto& { return impl().program(n); });
  return render_program(program, options, impl().special_tokens,
                        [&](jinja::Heap& heap) { return jinja::from_json(heap, messages); });
} catch (const std::bad_alloc&) {
  throw_out_of_memory("ChatTemplate::render");
}

const ChatTemplate::Impl& ChatTemplate::impl() const {
  if (!impl_) throw Error(ErrorCode::InvalidArgument, "a ChatTemplate was used after it was moved from");
  return *impl_;
}

std::vector<std::string> ChatTemplate::names() const {
  std::vector<std::string> out;
  for (const Impl::Named& p : impl().programs) out.push_back(p.name);
  return out;
}

std::string_view ChatTemplate::source(std::string_view name) const {
  const Impl::Named& p = impl().find(name);
  return p.program ? std::string_view(p.program->source) : p.source;
}

std::span<const std::pair<std::string, std::string>> ChatTemplate::special_tokens() const {
  return impl().special_tokens;
}

}  // namespace rlx
