// `rlx generate`: an answer of a language model.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/language_model_options.h"
#include "cli/shown_answer.h"
#include "cli/terminal.h"
#include "cli/usage.h"

namespace rlx::cli {
namespace {

struct GenerateArgs : ModelArgs {
  std::string prompt, file, system;
  bool raw = false;
};

void run_generate(const GenerateArgs& args) {
  std::string prompt = args.prompt;
  if (!args.file.empty()) {
    if (!prompt.empty()) throw UsageError(ErrorCode::InvalidArgument, "both a prompt and --file are given");
    prompt = read_text(args.file);
  } else if (prompt.empty() && args.load_state.empty()) {
    if (isatty(STDIN_FILENO) != 0) std::fputs("rlx: write the prompt, Ctrl-D ends it\n", stderr);
    prompt = read_text("-");
  }
  require_text(prompt, args.file.empty() ? "the prompt" : args.file);
  for (const std::string& stop : args.stop) require_text(stop, "--stop");
  if (args.raw && !args.system.empty())
    throw UsageError(ErrorCode::InvalidArgument, "--system needs the chat template, which --raw does not use",
                     "write the system message at the beginning of the prompt");
  std::optional<Grammar> grammar = read_grammar(args);
  LoadedModels loaded = load_models(args);
  const LanguageModel& m = loaded.model;
  GenerationOptions options = generation_options(args, m, std::move(grammar));
  if (!m.chat && !args.system.empty())
    throw Error(ErrorCode::Unsupported, concat_text(args.model, " has no chat template for --system"),
                "--chat-template takes one from a file, or write it at the beginning of the prompt");
  Engine engine = make_engine(args, loaded);
  Conversation c;
  const bool goes_on = !args.load_state.empty();
  if (goes_on) c = engine.load(args.load_state);
  // The prompt becomes the next turn of a chat, or is appended to a text. Without a prompt the last answer continues.
  const bool turns = m.chat && !args.raw && (!goes_on || !c.messages.empty());
  const bool further = goes_on && prompt.empty();
  std::vector<TokenId> ids = c.tokens;
  if (further) {
    options.begun = c.answer;
  } else if (turns) {
    if (!goes_on && !args.system.empty()) c.messages.push_back({"system", args.system});
    c.messages.push_back({"user", prompt});
    ids = m.tokenizer->encode(m.chat->render(c.messages), false);
  } else {
    const std::vector<TokenId> more = m.tokenizer->encode(prompt, !goes_on);
    ids.insert(ids.end(), more.begin(), more.end());
    if (ids.empty())
      throw Error(ErrorCode::InvalidArgument, "the prompt is empty, and the model has no BOS token",
                  "give at least one character");
  }
  const ShownAnswer said = show_answer(engine, ids, options, args.timings);
  if (args.save_state.empty()) return;
  c.tokens = std::move(ids);
  c.tokens.insert(c.tokens.end(), said.tokens.begin(), said.tokens.end());
  c.answer = said.begun;
  if (!turns)
    c.messages.clear();
  else if (further && c.messages.back().role == "assistant")
    c.messages.back().content += said.text;
  else
    c.messages.push_back({"assistant", said.text});
  (void)engine.save(args.save_state, c);
}

}  // namespace

void register_generate(CommandLine& line) {
  auto args = std::make_shared<GenerateArgs>();
  const Command cmd = line.add_command("generate", "Answer a prompt with a language model");
  add_model_options(cmd, *args);
  cmd.add_option("prompt", args->prompt, "The prompt (default: --file, or the standard input)");
  cmd.add_option("--file", args->file, "Read the prompt from a file").type_name("FILE");
  cmd.add_option("--system", args->system, kSystemUsage);
  cmd.add_flag("--raw", args->raw, "Continue the text as it is, without the model's chat template");
  cmd.callback([args] { run_generate(*args); });
}

}  // namespace rlx::cli
