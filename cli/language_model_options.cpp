// From options of the command line to models, engines and what is wanted of an answer.
#include "cli/language_model_options.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "cli/graph_file.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/base/utf8.h"
#include "rlx/formats/packed_weight_files.h"
#include "rlx/generation/json_schema.h"
#include "rlx/generation/stop_strings.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cli {
namespace {

DecoderOptions decoder_options(const ModelArgs& args) {
  DecoderOptions o;
  o.context = args.context;
  o.page = kEnginePage;
  o.check_memory = !args.skip_memory_check;
  o.forms = args.forms;
  o.verify_packed_layouts = args.verify_packed_layouts;
  set_cache_type(o, args.cache);
  o.products = matmul_precision_named(args.products, args.model);
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

// What was wrong with saved forms; the model is right all the same.
void say_packed_layout_problems(const DecoderModel& model) {
  if (!model.forms()) return;
  for (const std::string& problem : model.forms()->problems()) std::fprintf(stderr, "rlx: %s\n", problem.c_str());
}

}  // namespace

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

LoadedModels load_models(const ModelArgs& args) {
  (void)check_arguments([&] { return Sampler(args.sampling); });
  (void)check_arguments([&] { return StopStrings(args.stop); });
  if (!args.order.empty()) (void)check_arguments([&] { return parse_sampling_order(args.order); });
  Session session = session_on(args.device);
  session.with_threads(args.threads);
  const auto start = std::chrono::steady_clock::now();
  DecoderOptions options = decoder_options(args);
  options.adapters = adapter_options(args);
  LanguageModel m = load_language_model(args.model, options, session);
  if (!args.chat_template.empty())
    m.chat = ChatTemplate::parse(read_text(args.chat_template), args.chat_template, m.special_tokens);
  if (args.timings)
    std::fprintf(stderr, "loaded in %.2f s: %s, %lld layers, context %lld, cache %.1f MB, products %s\n",
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                 m.decoder.config().family.c_str(), static_cast<long long>(m.decoder.config().layers.size()),
                 static_cast<long long>(m.decoder.context()), static_cast<double>(m.decoder.cache_bytes()) / 1e6,
                 std::string(matmul_precision_name(options.products)).c_str());
  if (args.timings && m.decoder.forms())
    std::fprintf(stderr, "forms: %.1f MB found, %.1f MB saved\n",
                 static_cast<double>(m.decoder.forms()->found_bytes()) / 1e6,
                 static_cast<double>(m.decoder.forms()->saved_bytes()) / 1e6);
  say_packed_layout_problems(m.decoder);
  if (const std::int64_t known = m.decoder.config().max_positions; known > 0 && m.decoder.context() > known)
    std::fprintf(stderr, "rlx: a context of %lld tokens is more than the %lld that the model was made for\n",
                 static_cast<long long>(m.decoder.context()), static_cast<long long>(known));
  LoadedModels loaded{std::move(m)};
  if (!args.draft.empty()) {
    options.products = matmul_precision_named(args.products, args.draft);
    loaded.draft = load_draft_model(args.draft, options, loaded.model.decoder, session);
    say_packed_layout_problems(loaded.draft->decoder);
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
                  "What products may lose: int8 and bf16 round what they read; auto: int8 for GGUF files of blocks, "
                  "bf16 for weights in bf16")
      ->check(CLI::IsMember({"auto", "exact", "bf16", "int8"}))
      ->capture_default_str();
  cmd->add_option("-d,--device", args.device, kDeviceUsage)->capture_default_str();
  cmd->add_option("--threads", args.threads, "Threads; 0: as many as the machine grants")
      ->check(CLI::Range(0, kMaxThreads))
      ->capture_default_str();
  CLI::Option* forms =
      cmd->add_option("--forms", args.forms,
                      "Keep the weights as products read them in this folder, from where later starts map them")
          ->check([](const std::string& folder) { return folder.empty() ? "names no folder" : ""; })
          ->type_name("FOLDER");
  cmd->add_flag("--verify-forms", args.verify_packed_layouts, "Read all of them first, and compare their checksums")
      ->needs(forms);
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
  cmd->add_option("--chat-template", args.chat_template, "A chat template in place of the model's: a file of Jinja")
      ->type_name("FILE");
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

}  // namespace rlx::cli
