// `rlx generate` and `rlx chat`: text from a language model.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/graph_file.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/driver/thread_pool.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/language_model.h"
#include "rlx/ir/utf8.h"

namespace rlx::cli {
namespace {

struct ModelArgs {
  std::string model, device = "cpu", cache = "f32", products = "auto", order;
  std::int64_t context = 0, tokens = 0;
  int threads = 0;
  SamplingOptions sampling{};
  std::vector<std::string> stop;
  bool timings = false;
};
struct GenerateArgs : ModelArgs {
  std::string prompt, file;
  bool raw = false;
};
struct ChatArgs : ModelArgs {
  std::string system;
};

DecoderOptions decoder_options(const ModelArgs& args) {
  DecoderOptions o;
  o.context = args.context;
  o.page = 64;  // a multiple of 64: answers do not depend on pages
  if (args.cache == "bf16")
    o.cache_dtype = DType::BF16;
  else if (args.cache == "f16")
    o.cache_dtype = DType::F16;
  else if (args.cache == "q8_0")
    o.cache_scheme = QuantScheme::Q8_0;
  else if (args.cache == "q4_0")
    o.cache_scheme = QuantScheme::Q4_0;
  const bool int8 = args.products == "int8" || (args.products == "auto" && is_gguf_path(args.model));
  o.products = int8 ? Products::Int8 : args.products == "bf16" ? Products::BF16 : Products::Exact;
  return o;
}

GenerationOptions generation_options(const ModelArgs& args, const LanguageModel& m) {
  GenerationOptions o;
  o.sampling = args.sampling;
  if (!args.order.empty()) o.sampling.order = parse_sampling_order(args.order);
  o.max_new_tokens = args.tokens;
  o.stop = args.stop;
  o.stop_tokens = m.end_tokens;
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

// One answer, shown as it comes; returns its text.
std::string answer(Engine& engine, std::span<const TokenId> prompt, const GenerationOptions& options, bool timings) {
  const AnswerInterrupts guard;
  const Clock::time_point start = Clock::now();
  const RequestId id = engine.submit(prompt, options);
  const std::int64_t reused_before = engine.statistics().reused_tokens;
  std::string text;
  double first = 0;
  std::int64_t tokens = 0;
  for (bool more = true; more;) {
    if (interrupted) engine.cancel(id);
    for (const GenerationEvent& e : engine.step()) {
      if (e.token >= 0 && tokens++ == 0) first = seconds_since(start);
      show(e.text);
      text += e.text;
      more = more && e.finish == FinishReason::None;
    }
  }
  const double rest = seconds_since(start) - first;
  if (text.empty() || text.back() != '\n') show("\n");
  if (timings)
    std::fprintf(stderr,
                 "prompt: %zu tokens (%lld reused), first token after %.0f ms; then %lld tokens, %.2f ms each\n",
                 prompt.size(), static_cast<long long>(engine.statistics().reused_tokens - reused_before), first * 1e3,
                 static_cast<long long>(std::max<std::int64_t>(0, tokens - 1)),
                 tokens > 1 ? rest * 1e3 / static_cast<double>(tokens - 1) : 0.0);
  return text;
}

LanguageModel load(const ModelArgs& args) {
  (void)check_arguments([&] { return Sampler(args.sampling); });
  if (!args.order.empty()) (void)check_arguments([&] { return parse_sampling_order(args.order); });
  Session session = session_on(args.device);
  session.with_threads(args.threads);
  const Clock::time_point start = Clock::now();
  LanguageModel m = load_language_model(args.model, decoder_options(args), session);
  if (args.timings)
    std::fprintf(stderr, "loaded in %.2f s: %s, %lld layers, context %lld, cache %.1f MB, products %s\n",
                 seconds_since(start), m.decoder.config().family.c_str(),
                 static_cast<long long>(m.decoder.config().layers.size()), static_cast<long long>(m.decoder.context()),
                 static_cast<double>(m.decoder.cache_bytes()) / 1e6,
                 std::string(products_name(decoder_options(args).products)).c_str());
  return m;
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
  } else if (prompt.empty()) {
    prompt = read_text("-");
  }
  require_text(prompt, args.file.empty() ? "the prompt" : args.file);
  LanguageModel m = load(args);
  const GenerationOptions options = generation_options(args, m);
  std::vector<TokenId> ids;
  if (m.chat && !args.raw) {
    const ChatMessage message{"user", prompt};
    ids = m.tokenizer->encode(m.chat->render(std::span(&message, 1)), false);
  } else {
    ids = m.tokenizer->encode(prompt);
  }
  Engine engine(std::move(m.decoder), m.tokenizer);
  answer(engine, ids, options, args.timings);
}

void run_chat(const ChatArgs& args) {
  LanguageModel m = load(args);
  if (!m.chat)
    throw Error(ErrorCode::Unsupported, concat_text(args.model, " has no chat template"),
                "`rlx generate` continues a text");
  const GenerationOptions options = generation_options(args, m);
  const ChatTemplate chat = *m.chat;
  const std::shared_ptr<const Tokenizer> tokenizer = m.tokenizer;
  Engine engine(std::move(m.decoder), tokenizer);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  std::vector<ChatMessage> messages;
  if (!args.system.empty()) messages.push_back({"system", args.system});
  const std::size_t kept = messages.size();
  if (terminal) std::fputs("Ctrl-C ends an answer, Ctrl-D the conversation; /new begins a new one.\n", stderr);
  std::string line;
  while (true) {
    if (terminal) show("> ");
    if (!std::getline(std::cin, line)) break;
    if (line == "/new") {
      messages.resize(kept);
      continue;
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      require_text(line, "the line");
      messages.push_back({"user", line});
      const std::vector<TokenId> ids = tokenizer->encode(chat.render(messages), false);
      messages.push_back({"assistant", answer(engine, ids, options, args.timings)});
    } catch (const Error& e) {
      if (!terminal) throw;
      std::fprintf(stderr, "rlx: %s\n", e.what());
      if (messages.size() > kept && messages.back().role == "user") messages.pop_back();
    }
  }
  if (terminal) show("\n");
}

void add_model_options(CLI::App* cmd, ModelArgs& args) {
  cmd->add_option("model", args.model, "A GGUF file, or a folder with config.json, *.safetensors and tokenizer.json")
      ->required()
      ->type_name("MODEL");
  cmd->add_option("-n,--tokens", args.tokens, "Tokens of an answer at most; 0: until the context is full")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  cmd->add_option("--context", args.context,
                  "Tokens of a conversation at most; 0: what the model is good for, up to 4096")
      ->check(CLI::NonNegativeNumber)
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
  cmd->add_option("--stop", args.stop, "Text that ends the answer (may be given several times)");
  cmd->add_flag("--timings", args.timings, "Say on the standard error how long things took");
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
  cmd->add_flag("--raw", args->raw, "Continue the text as it is, without the model's chat template");
  cmd->callback([args] { run_generate(*args); });
}

void register_chat(CLI::App& app) {
  auto args = std::make_shared<ChatArgs>();
  CLI::App* cmd = app.add_subcommand("chat", "Talk with a language model");
  add_model_options(cmd, *args);
  cmd->add_option("--system", args->system, "What the model is told before the conversation");
  cmd->callback([args] { run_chat(*args); });
}

}  // namespace rlx::cli
