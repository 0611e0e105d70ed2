// `rlx generate` and `rlx chat`: text from a language model.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/graph_file.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/driver/thread_pool.h"
#include "rlx/generation/conversation.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/json_schema.h"
#include "rlx/generation/language_model.h"
#include "rlx/generation/stop_strings.h"
#include "rlx/ir/utf8.h"

namespace rlx::cli {
namespace {

struct ModelArgs {
  std::string model, draft, device = "cpu", cache = "f32", products = "auto", order;
  DraftOptions drafts{};
  std::int64_t context = 0, tokens = 0;
  int threads = 0;
  SamplingOptions sampling{};
  std::vector<std::string> stop, adapters;
  std::string grammar, json_schema, load_state, save_state;
  bool timings = false, skip_memory_check = false;
};
struct GenerateArgs : ModelArgs {
  std::string prompt, file, system;
  bool raw = false;
};
struct ChatArgs : ModelArgs {
  std::string system;
  bool drop_oldest = false;
};

DecoderOptions decoder_options(const ModelArgs& args) {
  DecoderOptions o;
  o.context = args.context;
  o.page = kEnginePage;
  o.check_memory = !args.skip_memory_check;
  set_cache_type(o, args.cache);
  o.products = products_named(args.products, args.model);
  return o;
}

// All of them together, each "PATH" or "PATH=SCALE"; a path may have a "=" of its own.
constexpr const char* kAdapter = "adapter";
std::vector<AdapterOptions> adapter_options(const ModelArgs& args) {
  if (args.adapters.empty()) return {};
  AdapterOptions all{kAdapter};
  for (const std::string& arg : args.adapters) {
    AdapterPart part{arg};
    const std::size_t at = arg.rfind('=');
    if (at != arg.npos && !std::filesystem::exists(arg)) {
      part.path = arg.substr(0, at);
      const std::string scale = arg.substr(at + 1);
      char* end = nullptr;
      part.scale = std::strtod(scale.c_str(), &end);
      if (scale.empty() || *end != '\0' || !std::isfinite(part.scale))
        throw UsageError(ErrorCode::InvalidArgument, concat_text("--adapter ", arg, ": \"", scale, "\" is no scale"));
    }
    all.parts.push_back(part);
  }
  return {all};
}

// A schema is a JSON object or the name of a file.
std::optional<Grammar> read_grammar(const ModelArgs& args) {
  if (!args.grammar.empty()) return Grammar::from_gbnf(read_text(args.grammar), args.grammar);
  if (args.json_schema.empty()) return std::nullopt;
  const std::size_t first = args.json_schema.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && args.json_schema[first] == '{')
    return json_schema_grammar(args.json_schema, {}, "--json-schema");
  return json_schema_grammar(read_text(args.json_schema), {}, args.json_schema);
}

GenerationOptions generation_options(const ModelArgs& args, const LanguageModel& m, std::optional<Grammar> grammar) {
  GenerationOptions o;
  o.grammar = std::move(grammar);
  o.sampling = args.sampling;
  if (!args.order.empty()) o.sampling.order = parse_sampling_order(args.order);
  o.max_new_tokens = args.tokens;
  o.stop = args.stop;
  o.stop_tokens = m.end_tokens;
  if (!args.adapters.empty()) o.adapter = kAdapter;
  return o;
}

// Ctrl-C while text comes ends the answer, not the program.
volatile std::sig_atomic_t interrupted = 0;
void note_interrupt(int) { interrupted = 1; }
class AnswerInterrupts {
 public:
  AnswerInterrupts() : before_(std::signal(SIGINT, note_interrupt)) { interrupted = 0; }
  ~AnswerInterrupts() { std::signal(SIGINT, before_); }
  AnswerInterrupts(const AnswerInterrupts&) = delete;
  AnswerInterrupts& operator=(const AnswerInterrupts&) = delete;

 private:
  void (*before_)(int);
};

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

struct ShownAnswer {
  std::string text;
  std::vector<TokenId> tokens;  // without one that ended it
  FinishReason finish = FinishReason::None;
  BegunAnswer begun{};  // where it stands in the end
};

// One answer, shown as it comes.
ShownAnswer answer(Engine& engine, std::span<const TokenId> prompt, const GenerationOptions& options, bool timings) {
  const AnswerInterrupts guard;
  const Clock::time_point start = Clock::now();
  const EngineStatistics before = engine.statistics();
  const RequestId id = engine.submit(prompt, options);
  ShownAnswer out;
  std::optional<Diagnostic> problem;
  double first = 0;
  std::size_t drawn = 0;
  try {
    while (out.finish == FinishReason::None) {
      if (interrupted) engine.cancel(id);
      for (const GenerationEvent& e : engine.step()) {
        if (e.request != id) continue;
        if (e.token >= 0 && drawn++ == 0) first = seconds_since(start);
        if (e.token >= 0 && e.finish != FinishReason::StopToken) out.tokens.push_back(e.token);
        show(e.text);
        out.text += e.text;
        out.finish = e.finish;
        out.begun = e.begun;
        problem = e.problem;
      }
    }
  } catch (...) {
    engine.cancel(id);  // the next answer is not to run beside it
    throw;
  }
  const double rest = seconds_since(start) - first;
  if (out.text.empty() || out.text.back() != '\n') show("\n");
  if (timings) {
    const std::size_t later = drawn - std::min<std::size_t>(drawn, 1);
    const double each = later > 0 ? rest / static_cast<double>(later) : 0;
    std::fprintf(stderr,
                 "prompt: %zu tokens (%lld reused), first token after %.0f ms; then %zu tokens, %.2f ms each (%.4g a "
                 "second)\n",
                 prompt.size(), static_cast<long long>(engine.statistics().reused_tokens - before.reused_tokens),
                 first * 1e3, later, each * 1e3, each > 0 ? 1 / each : 0.0);
  }
  const std::int64_t drafted = engine.statistics().drafted_tokens - before.drafted_tokens;
  if (timings && drafted > 0)
    std::fprintf(stderr, "drafts: %lld of %lld tokens were right; %lld runs\n",
                 static_cast<long long>(engine.statistics().accepted_tokens - before.accepted_tokens),
                 static_cast<long long>(drafted), static_cast<long long>(engine.statistics().runs - before.runs));
  if (problem) throw Error(*problem);
  if (out.finish == FinishReason::ContextFull)
    std::fprintf(stderr, "rlx: the answer ends here: the context of %lld tokens is full (--context)\n",
                 static_cast<long long>(engine.model().context()));
  return out;
}

struct LoadedModels {
  LanguageModel model;
  std::optional<DraftModel> draft{};
};
LoadedModels load(const ModelArgs& args) {
  (void)check_arguments([&] { return Sampler(args.sampling); });
  (void)check_arguments([&] { return StopStrings(args.stop); });
  if (!args.order.empty()) (void)check_arguments([&] { return parse_sampling_order(args.order); });
  Session session = session_on(args.device);
  session.with_threads(args.threads);
  const Clock::time_point start = Clock::now();
  DecoderOptions options = decoder_options(args);
  options.adapters = adapter_options(args);
  LanguageModel m = load_language_model(args.model, options, session);
  if (args.timings)
    std::fprintf(stderr, "loaded in %.2f s: %s, %lld layers, context %lld, cache %.1f MB, products %s\n",
                 seconds_since(start), m.decoder.config().family.c_str(),
                 static_cast<long long>(m.decoder.config().layers.size()), static_cast<long long>(m.decoder.context()),
                 static_cast<double>(m.decoder.cache_bytes()) / 1e6,
                 std::string(products_name(options.products)).c_str());
  if (const std::int64_t known = m.decoder.config().max_positions; known > 0 && m.decoder.context() > known)
    std::fprintf(stderr, "rlx: a context of %lld tokens is more than the %lld that the model was made for\n",
                 static_cast<long long>(m.decoder.context()), static_cast<long long>(known));
  LoadedModels loaded{std::move(m)};
  if (!args.draft.empty()) {
    options.products = products_named(args.products, args.draft);
    loaded.draft = load_draft_model(args.draft, options, loaded.model.decoder, session);
  }
  return loaded;
}

Engine make_engine(const ModelArgs& args, LoadedModels& loaded) {
  EngineOptions o;
  o.draft = args.drafts;
  return Engine(std::move(loaded.model.decoder), loaded.model.tokenizer, o, std::move(loaded.draft));
}

void require_text(const std::string& text, std::string_view what) {
  if (const auto bad = find_invalid_utf8(text))
    throw Error(ErrorCode::InvalidArgument, concat_text(what, ": invalid UTF-8 at byte ", *bad),
                "convert the text to UTF-8, for example with iconv");
}

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
    throw UsageError(ErrorCode::InvalidArgument, "--raw has no turns that --system could come before",
                     "write it at the beginning of the text");
  std::optional<Grammar> grammar = read_grammar(args);
  LoadedModels loaded = load(args);
  const LanguageModel& m = loaded.model;
  GenerationOptions options = generation_options(args, m, std::move(grammar));
  if (!m.chat && !args.system.empty())
    throw Error(ErrorCode::Unsupported, concat_text(args.model, " has no chat template for --system"),
                "write it at the beginning of the prompt");
  Engine engine = make_engine(args, loaded);
  Conversation c;
  const bool goes_on = !args.load_state.empty();
  if (goes_on) c = engine.load(args.load_state);
  // A conversation of turns gets one more, a text its next words; without a prompt the answer itself goes on.
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
      throw Error(ErrorCode::InvalidArgument, "the prompt is empty, and the model has no token that begins a text",
                  "give at least one character");
  }
  const ShownAnswer said = answer(engine, ids, options, args.timings);
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
      const ShownAnswer said = answer(engine_, ids, options_, args_.timings);
      c_.messages.push_back({"assistant", said.text});
      c_.tokens = std::move(ids);
      c_.tokens.insert(c_.tokens.end(), said.tokens.begin(), said.tokens.end());
      c_.answer = said.begun;
    } catch (...) {
      c_ = before;
      throw;
    }
  }
  void begin_anew() {
    c_.messages.resize(kept_);
    c_.tokens.clear();
  }
  bool said_something() const { return !c_.tokens.empty(); }
  void save(const std::string& path) {
    if (!said_something())
      throw Error(ErrorCode::InvalidArgument, concat_text("nothing was said yet that '", path, "' could hold"));
    (void)engine_.save(path, c_);
  }
  void load(const std::string& path) {
    Conversation c = engine_.load(path);
    if (c.messages.empty())
      throw Error(ErrorCode::InvalidArgument, concat_text(path, " holds a text, no conversation of turns"),
                  "`rlx generate --load-state` goes on with it");
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
                    "--drop-oldest goes on without the oldest turns, --context makes room, /new begins anew");
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

// "/save FILE" for the name of `command`; nothing for another line.
std::optional<std::string> file_of(std::string_view line, std::string_view command) {
  if (!line.starts_with(command)) return std::nullopt;
  line.remove_prefix(command.size());
  if (!line.empty() && line.front() != ' ') return std::nullopt;
  const std::size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
  if (first == std::string_view::npos)
    throw Error(ErrorCode::InvalidArgument, concat_text(command, " names no file"), concat_text(command, " FILE"));
  return std::string(line.substr(first, last + 1 - first));
}

void run_chat(const ChatArgs& args) {
  require_text(args.system, "--system");
  for (const std::string& stop : args.stop) require_text(stop, "--stop");
  std::optional<Grammar> grammar = read_grammar(args);
  LoadedModels loaded = load(args);
  if (!loaded.model.chat)
    throw Error(ErrorCode::Unsupported, concat_text(args.model, " has no chat template"),
                "`rlx generate` continues a text");
  Chat chat(args, std::move(loaded), std::move(grammar));
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal)
    std::fputs(
        "Ctrl-C ends an answer, Ctrl-D the conversation; /new begins a new one, /save FILE and /load FILE keep one.\n",
        stderr);
  std::string line;
  while (true) {
    if (terminal) show("> ");
    if (!std::getline(std::cin, line)) break;
    try {
      if (line == "/new")
        chat.begin_anew();
      else if (const auto to = file_of(line, "/save"))
        chat.save(*to);
      else if (const auto from = file_of(line, "/load"))
        chat.load(*from);
      else if (line.find_first_not_of(" \t\r") != std::string::npos)
        chat.say(line);
    } catch (const Error& e) {
      if (!terminal) throw;
      std::fprintf(stderr, "rlx: %s\n", e.what());
    }
  }
  if (!args.save_state.empty() && chat.said_something()) chat.save(args.save_state);
  if (terminal) show("\n");
}

constexpr const char* kSystemUsage = "What the model is told before a new conversation";

void add_model_options(CLI::App* cmd, ModelArgs& args) {
  cmd->add_option("model", args.model, "A GGUF file, or a folder with config.json, *.safetensors and tokenizer.json")
      ->required()
      ->type_name("MODEL");
  cmd->add_option("-n,--tokens", args.tokens, "Tokens of an answer at most; 0: until the context is full")
      ->check(not_negative())
      ->capture_default_str();
  cmd->add_option("--context", args.context,
                  "Tokens of a conversation at most; 0: what the model is good for, up to 4096")
      ->check(not_negative())
      ->capture_default_str();
  cmd->add_option("--cache", args.cache, "What keys and values are kept as")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "q8_0", "q4_0"}))
      ->capture_default_str();
  cmd->add_option("--products", args.products,
                  "What products may lose: int8 rounds what they read; auto: int8 for GGUF")
      ->check(CLI::IsMember({"auto", "exact", "bf16", "int8"}))
      ->capture_default_str();
  cmd->add_option("-d,--device", args.device, kDeviceUsage)->capture_default_str();
  cmd->add_option("--threads", args.threads, "Threads; 0: as many as the machine grants")
      ->check(CLI::Range(0, kMaxThreads))
      ->capture_default_str();
  cmd->add_option("--adapter", args.adapters,
                  "A LoRA adapter in PEFT's layout and what its change is multiplied by (may be given several times)")
      ->type_name("FOLDER[=SCALE]");
  const char* drafting = "Speculative decoding (the text is the same, and may come sooner)";
  cmd->add_option("--draft", args.draft, "A small model of the same vocabulary that drafts tokens")
      ->type_name("MODEL")
      ->group(drafting);
  cmd->add_option("--draft-tokens", args.drafts.tokens, "Tokens of a draft at most")
      ->check(not_negative())
      ->capture_default_str()
      ->group(drafting);
  cmd->add_option("--lookup", args.drafts.lookup,
                  "Draft what followed where the text ended the same way before, in this many tokens or more; 0: off")
      ->check(not_negative())
      ->capture_default_str()
      ->group(drafting);
  cmd->add_option("--stop", args.stop, "Text that ends the answer (may be given several times)");
  cmd->add_flag("--timings", args.timings, "Say on the standard error how long things took");
  cmd->add_flag("--skip-memory-check", args.skip_memory_check,
                "Load the model even where it seems not to fit into memory");
  CLI::Option* grammar =
      cmd->add_option("--grammar", args.grammar, "Answers are texts of this GBNF grammar")->type_name("FILE");
  cmd->add_option("--json-schema", args.json_schema, "Answers are JSON of this schema: a file, or the schema itself")
      ->type_name("FILE|TEXT")
      ->excludes(grammar);
  cmd->add_option("--save-state", args.save_state, "Write the conversation with its keys and values at the end")
      ->type_name("FILE");
  cmd->add_option("--load-state", args.load_state, "Go on with a conversation that was saved")->type_name("FILE");
  SamplingOptions& s = args.sampling;
  const char* group = "Sampling";
  const auto number = [&](const char* name, auto& value, const char* what) {
    cmd->add_option(name, value, what)->capture_default_str()->group(group);
  };
  number("--seed", s.seed, "Key of the draws: the same seed gives the same text");
  number("--temperature", s.temperature, "0: always the likeliest token");
  number("--dynamic-range", s.dynamic_range, "Temperature varies by this much with the entropy");
  number("--dynamic-exponent", s.dynamic_exponent, "Exponent of that");
  number("--top-k", s.top_k, "Keep this many tokens; 0: off");
  number("--top-p", s.top_p, "Keep the likeliest tokens that add up to this; 1: off");
  number("--min-p", s.min_p, "Keep tokens at least this likely, relative to the likeliest");
  number("--typical-p", s.typical_p, "Locally typical sampling; 1: off");
  number("--top-n-sigma", s.top_n_sigma, "Keep logits within n standard deviations of the best; 0: off");
  number("--xtc-probability", s.xtc_probability, "Chance of leaving out the likeliest tokens");
  number("--xtc-threshold", s.xtc_threshold, "Which of them: all but one of at least this probability");
  number("--repetition-penalty", s.repetition_penalty, "Of tokens said before; 1: off");
  number("--frequency-penalty", s.frequency_penalty, "For each time that a token was said");
  number("--presence-penalty", s.presence_penalty, "For tokens that were said");
  number("--penalty-window", s.penalty_window, "Tokens that penalties look back at; -1: all");
  number("--dry-multiplier", s.dry_multiplier, "Penalty of going on with a repetition; 0: off");
  number("--dry-base", s.dry_base, "Its growth with the length of the repetition");
  number("--dry-allowed-length", s.dry_allowed_length, "Repetitions of this length and more");
  number("--mirostat", s.mirostat, "0: off, or version 1 or 2");
  number("--mirostat-tau", s.mirostat_tau, "Surprise that Mirostat aims at, in bits");
  number("--mirostat-eta", s.mirostat_eta, "Its rate");
  cmd->add_option("--order", args.order, "Steps in order, for example \"top_k;top_p;temperature\"")->group(group);
}

}  // namespace

void register_generate(CLI::App& app) {
  auto args = std::make_shared<GenerateArgs>();
  CLI::App* cmd = app.add_subcommand("generate", "Answer a prompt with a language model");
  add_model_options(cmd, *args);
  cmd->add_option("prompt", args->prompt, "The prompt; none: --file, or the standard input");
  cmd->add_option("--file", args->file, "Read the prompt from a file")->type_name("FILE");
  cmd->add_option("--system", args->system, kSystemUsage);
  cmd->add_flag("--raw", args->raw, "Continue the text as it is, without the model's chat template");
  cmd->callback([args] { run_generate(*args); });
}

void register_chat(CLI::App& app) {
  auto args = std::make_shared<ChatArgs>();
  CLI::App* cmd = app.add_subcommand("chat", "Talk with a language model");
  add_model_options(cmd, *args);
  cmd->add_option("--system", args->system, kSystemUsage);
  cmd->add_flag("--drop-oldest", args->drop_oldest,
                "When the context is full, go on without the oldest turns, but with the system message");
  cmd->callback([args] { run_chat(*args); });
}

}  // namespace rlx::cli
