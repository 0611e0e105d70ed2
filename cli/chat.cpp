// `rlx chat`: a conversation with a language model.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/language_model_options.h"
#include "cli/shown_answer.h"
#include "rlx/generation/conversation.h"

namespace rlx::cli {
namespace {

struct ChatArgs : ModelArgs {
  std::string system;
  bool drop_oldest = false;
};

// A conversation at the terminal.
class Chat {
 public:
  Chat(const ChatArgs& args, LoadedModels loaded, std::optional<Grammar> grammar)
      : args_(args),
        options_(generation_options(args, loaded.model, std::move(grammar))),
        chat_(*loaded.model.chat),
        tokenizer_(loaded.model.tokenizer),
        engine_(make_engine(args, loaded)) {
    if (!args.system.empty()) c_.messages.push_back({"system", args.system});
    kept_ = c_.messages.size();
    if (!args.load_state.empty()) load(args.load_state);
  }

  void say(const std::string& line) {
    require_text(line, "the line");
    const Conversation before = c_;
    try {
      c_.messages.push_back({"user", line});
      std::vector<TokenId> ids = prompt();
      const ShownAnswer said = show_answer(engine_, ids, options_, args_.timings);
      c_.messages.push_back({"assistant", said.text});
      c_.tokens = std::move(ids);
      c_.tokens.insert(c_.tokens.end(), said.tokens.begin(), said.tokens.end());
      c_.answer = said.begun;
    } catch (...) {
      c_ = before;
      throw;
    }
  }
  // Replaces the system message; the turns stay.
  void set_system(const std::string& text) {
    require_text(text, "the system message");
    if (kept_ > 0)
      c_.messages.front().content = text;
    else
      c_.messages.insert(c_.messages.begin(), {"system", text});
    kept_ = 1;
  }
  std::string system() const { return kept_ > 0 ? c_.messages.front().content : ""; }
  void begin_anew() {
    c_.messages.resize(kept_);
    c_.tokens.clear();
  }
  bool said_something() const { return !c_.tokens.empty(); }
  void save(const std::string& path) {
    if (!said_something())
      throw Error(ErrorCode::InvalidArgument, concat_text("cannot save '", path, "': the conversation is empty"));
    (void)engine_.save(path, c_);
  }
  void load(const std::string& path) {
    Conversation c = engine_.load(path);
    if (c.messages.empty())
      throw Error(ErrorCode::InvalidArgument, concat_text(path, " has a text, not a conversation"),
                  "`rlx generate --load-state` continues it");
    c_ = std::move(c);
    kept_ = c_.messages.front().role == "system" ? 1 : 0;
  }

 private:
  std::vector<TokenId> prompt() {
    const auto encoded = [&](std::span<const ChatMessage> messages) {
      return tokenizer_->encode(chat_.render(messages), false);
    };
    const std::int64_t context = engine_.model().context();
    if (!args_.drop_oldest) {
      std::vector<TokenId> ids = encoded(c_.messages);
      if (static_cast<std::int64_t>(ids.size()) >= context)
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("a conversation of ", ids.size(),
                                " tokens leaves no room for an answer in a context of ", context),
                    "--drop-oldest drops the oldest turns, --context enlarges the context, /new starts over");
      return ids;
    }
    const std::size_t dropped =
        drop_oldest_turns(c_.messages, context - answer_room(context, options_.max_new_tokens),
                          [&](auto messages) { return static_cast<std::int64_t>(encoded(messages).size()); });
    if (dropped > 0)
      std::fprintf(stderr, "rlx: the conversation is too long for its context: the oldest %zu message%s dropped\n",
                   dropped, dropped == 1 ? " was" : "s were");
    return encoded(c_.messages);
  }

  const ChatArgs& args_;
  GenerationOptions options_;
  ChatTemplate chat_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Engine engine_;
  Conversation c_;
  std::size_t kept_ = 0;  // messages that a new conversation begins with
};

constexpr const char* kHelp =
    "  /help            this list\n"
    "  /new, /clear     a new conversation with the same system message\n"
    "  /system [TEXT]   sets the system message; without a text shows it\n"
    "  /save FILE       saves the conversation\n"
    "  /load FILE       continues a saved one\n"
    "  /quit, /exit     the end, as ctrl-D\n"
    "  //TEXT           says TEXT with one slash in front of it\n"
    "Ctrl-C ends an answer. Every other line is said to the model.\n";

// A line as a command: "/save FILE" is {"save", "FILE"}. Lines whose first word is no word behind one slash, such as a
// path with two slashes, are none.
struct LineCommand {
  std::string name, argument;
};
std::optional<LineCommand> command_of(std::string_view line) {
  if (!line.starts_with('/')) return std::nullopt;
  const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
  const std::string_view word = line.substr(1, end - 1);
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '?';
  };
  if (!std::all_of(word.begin(), word.end(), in_name)) return std::nullopt;
  line.remove_prefix(end);
  const std::size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
  return LineCommand{std::string(word),
                     first == line.npos ? std::string() : std::string(line.substr(first, last + 1 - first))};
}

// Runs a command of the conversation. False: it ends.
bool run_command(Chat& chat, const LineCommand& c) {
  const auto refuse = [&](std::string what, std::string hint) {
    throw Error(ErrorCode::InvalidArgument, concat_text("/", c.name, " ", what), std::move(hint));
  };
  const auto plain = [&] {
    if (!c.argument.empty()) refuse("takes nothing after it", "/help lists the commands");
  };
  if (c.name == "save" || c.name == "load") {
    if (c.argument.empty()) refuse("needs the name of a file", concat_text("/", c.name, " FILE"));
    if (c.name == "save")
      chat.save(c.argument);
    else
      chat.load(c.argument);
  } else if (c.name == "system") {
    if (!c.argument.empty())
      chat.set_system(c.argument);
    else
      std::fprintf(stderr, "%s\n", chat.system().empty() ? "(no system message)" : chat.system().c_str());
  } else if (c.name == "new" || c.name == "clear") {
    plain();
    chat.begin_anew();
  } else if (c.name == "help" || c.name == "?") {
    std::fputs(kHelp, stderr);
  } else if (c.name == "quit" || c.name == "exit" || c.name == "bye" || c.name == "q") {
    plain();
    return false;
  } else {
    const std::vector<std::string> known{"help", "new", "clear", "system", "save", "load", "quit", "exit"};
    std::string guess = did_you_mean(c.name, known, "");
    const std::size_t quote = guess.find('\'');
    if (quote != guess.npos) guess.insert(quote + 1, "/");
    throw Error(
        ErrorCode::InvalidArgument, concat_text("there is no command /", c.name),
        concat_text(guess, guess.empty() ? "" : "; ", "/help lists the commands, //", c.name, " says it to the model"));
  }
  return true;
}

void run_chat(const ChatArgs& args) {
  require_text(args.system, "--system");
  for (const std::string& stop : args.stop) require_text(stop, "--stop");
  std::optional<Grammar> grammar = read_grammar(args);
  LoadedModels loaded = load_models(args);
  if (!loaded.model.chat)
    throw Error(ErrorCode::Unsupported, concat_text(args.model, " has no chat template"),
                "--chat-template takes one from a file; `rlx generate` continues a text");
  Chat chat(args, std::move(loaded), std::move(grammar));
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal)
    std::fputs("Ctrl-C ends an answer, ctrl-D or /quit the conversation; /help lists the commands.\n", stderr);
  std::string line;
  while (true) {
    if (terminal) show("> ");
    if (!std::getline(std::cin, line)) break;
    try {
      if (const auto command = command_of(line)) {
        if (!run_command(chat, *command)) break;
      } else if (line.find_first_not_of(" \t\r") != std::string::npos) {
        chat.say(line.starts_with("//") ? line.substr(1) : line);
      }
    } catch (const Error& e) {
      if (!terminal) throw;
      std::fprintf(stderr, "rlx: %s\n", e.what());
    }
  }
  if (!args.save_state.empty() && chat.said_something()) chat.save(args.save_state);
  if (terminal) show("\n");
}

}  // namespace

void register_chat(CommandLine& line) {
  auto args = std::make_shared<ChatArgs>();
  const Command cmd = line.add_command("chat", "Talk with a language model");
  add_model_options(cmd, *args);
  cmd.add_option("--system", args->system, kSystemUsage);
  cmd.add_flag("--drop-oldest", args->drop_oldest,
               "When the context is full, drop the oldest turns but keep the system message");
  cmd.footer(concat_text("Lines that begin with a slash are commands:\n", kHelp, kExitStatus));
  cmd.callback([args] { run_chat(*args); });
}

}  // namespace rlx::cli
