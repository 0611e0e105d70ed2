// Options of the command line to models, engines and generation options.
#include "cli/language_model_options.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/arguments.h"
#include "cli/device_options.h"
#include "cli/model_names.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/base/utf8.h"
#include "rlx/formats/packed_weight_files.h"
#include "rlx/generation/json_schema.h"
#include "rlx/generation/stop_strings.h"

namespace rlx::cli {
namespace {

DecoderOptions decoder_options(const ModelArgs& args) {
  DecoderOptions o;
  o.context = args.context;
  o.page = kEnginePage;
  o.check_memory = !args.skip_memory_check;
  o.packed_weights = args.packed_weights;
  o.verify_packed_weights = args.verify_packed_weights;
  set_cache_type(o, args.cache);
  o.matmul_precision = matmul_precision_named(args.matmul_precision, args.model);
  return o;
}

// Combines all --adapter options, each "PATH" or "PATH=SCALE", into one adapter. A path may contain "=".
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
        throw UsageError(ErrorCode::InvalidArgument,
                         concat_text("--adapter ", arg, ": \"", scale, "\" is not a scale"));
    }
    part.path = model_path(part.path);
    all.parts.push_back(part);
  }
  return {all};
}

// Reports problems with stored packed weights. They cost time, not correctness: the weights are packed anew.
void say_packed_layout_problems(const DecoderModel& model) {
  if (!model.packed_weights()) return;
  for (const std::string& problem : model.packed_weights()->problems())
    std::fprintf(stderr, "rlx: %s\n", problem.c_str());
}

struct TokenBias {
  std::string token;  // an id, or the text of one token
  float bias = 0;
};
TokenBias token_bias(const std::string& arg) {
  const std::size_t at = arg.rfind('=');
  char* end = nullptr;
  const std::string number = at == arg.npos ? "" : arg.substr(at + 1);
  const float bias = std::strtof(number.c_str(), &end);
  const bool good = !number.empty() && *end == '\0' && at > 0 && !std::isnan(bias) && !(bias > 0 && std::isinf(bias));
  if (!good)
    throw UsageError(ErrorCode::InvalidArgument, concat_text("--logit-bias ", arg, " is not TOKEN=BIAS"),
                     "TOKEN is an id or the text of one token; BIAS is a number, or -inf to forbid the token");
  return {arg.substr(0, at), bias};
}
TokenId token_of(const std::string& text, const LanguageModel& m) {
  if (!text.empty() && text.find_first_not_of("0123456789") == text.npos) {
    const std::int64_t size = m.decoder.config().vocab_size;
    if (text.size() > 9 || std::stoll(text) >= size)
      throw UsageError(ErrorCode::InvalidArgument,
                       concat_text("--logit-bias: there is no token ", text, " among the ", size, " of the model"));
    return static_cast<TokenId>(std::stoll(text));
  }
  require_text(text, "--logit-bias");
  if (const auto id = m.tokenizer->token_to_id(text)) return *id;
  const std::vector<TokenId> ids = m.tokenizer->encode(text, false);
  if (ids.size() != 1)
    throw UsageError(ErrorCode::InvalidArgument,
                     concat_text("--logit-bias: '", text, "' is ", ids.size(), " tokens, not one"),
                     "give each token by its id");
  return ids[0];
}

JsonSchemaOptions form_named(const std::string& whitespace) {
  if (whitespace == "none") return {.whitespace = JsonWhitespace::None};
  if (whitespace == "spaced") return {.whitespace = JsonWhitespace::Spaced};
  JsonSchemaOptions flexible;
  if (whitespace == "single") flexible.max_whitespace = 1;
  return flexible;
}

}  // namespace

// A schema is a JSON object or the name of a file.
std::optional<Grammar> read_grammar(const ModelArgs& args) {
  if (!args.grammar.empty()) return Grammar::from_gbnf(read_text(args.grammar), args.grammar);
  if (args.json_schema.empty()) return std::nullopt;
  const std::size_t first = args.json_schema.find_first_not_of(" \t\r\n");
  const JsonSchemaOptions form = form_named(args.json_whitespace);
  if (first != std::string::npos && args.json_schema[first] == '{')
    return json_schema_grammar(args.json_schema, form, "--json-schema");
  return json_schema_grammar(read_text(args.json_schema), form, args.json_schema);
}

GenerationOptions generation_options(const ModelArgs& args, const LanguageModel& m, std::optional<Grammar> grammar) {
  GenerationOptions o;
  o.grammar = std::move(grammar);
  o.sampling = args.sampling;
  if (!args.order.empty()) o.sampling.order = parse_sampling_order(args.order);
  for (const std::string& arg : args.logit_bias) {
    const TokenBias given = token_bias(arg);
    o.sampling.logit_bias.emplace_back(token_of(given.token, m), given.bias);
  }
  o.max_new_tokens = args.tokens;
  o.stop = args.stop;
  o.stop_tokens = m.end_tokens;
  if (!args.adapters.empty()) o.adapter = kAdapter;
  return o;
}

LoadedModels load_models(const ModelArgs& given) {
  ModelArgs args = given;
  (void)check_arguments([&] { return Sampler(args.sampling); });
  (void)check_arguments([&] { return StopStrings(args.stop); });
  for (const std::string& arg : args.logit_bias) (void)token_bias(arg);
  if (!args.order.empty()) (void)check_arguments([&] { return parse_sampling_order(args.order); });
  Session session = session_on(args.device);
  session.with_threads(args.threads);
  args.model = model_path(args.model);
  if (!args.draft.empty()) args.draft = model_path(args.draft);
  const auto start = std::chrono::steady_clock::now();
  DecoderOptions options = decoder_options(args);
  options.adapters = adapter_options(args);
  LanguageModel m = load_language_model(args.model, options, session);
  if (!args.chat_template.empty())
    m.chat = ChatTemplate::parse(read_text(args.chat_template), args.chat_template, m.special_tokens);
  if (args.timings)
    std::fprintf(stderr, "loaded in %.2f s: %s, %lld layers, context %lld, cache %.1f MB, matmuls %s\n",
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                 m.decoder.config().family.c_str(), static_cast<long long>(m.decoder.config().layers.size()),
                 static_cast<long long>(m.decoder.context()), static_cast<double>(m.decoder.cache_bytes()) / 1e6,
                 std::string(matmul_precision_name(options.matmul_precision)).c_str());
  if (args.timings && m.decoder.packed_weights())
    std::fprintf(stderr, "packed weights: %.1f MB found, %.1f MB saved\n",
                 static_cast<double>(m.decoder.packed_weights()->found_bytes()) / 1e6,
                 static_cast<double>(m.decoder.packed_weights()->saved_bytes()) / 1e6);
  say_packed_layout_problems(m.decoder);
  for (const std::string& problem : m.problems) std::fprintf(stderr, "rlx: %s\n", problem.c_str());
  if (const std::int64_t known = m.decoder.config().max_positions; known > 0 && m.decoder.context() > known)
    std::fprintf(stderr, "rlx: a context of %lld tokens is more than the %lld that the model was trained for\n",
                 static_cast<long long>(m.decoder.context()), static_cast<long long>(known));
  LoadedModels loaded{std::move(m)};
  if (!args.draft.empty()) {
    options.matmul_precision = matmul_precision_named(args.matmul_precision, args.draft);
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

void add_model_options(Command cmd, ModelArgs& args) {
  cmd.add_option("model", args.model,
                 "A GGUF file, a folder with config.json, *.safetensors and tokenizer.json, or a name on a hub "
                 "(rlx pull)")
      .required()
      .type_name("MODEL");
  cmd.add_option("-n,--tokens", args.tokens, "Maximum number of tokens to generate; 0: until the context is full")
      .not_negative()
      .show_default();
  cmd.add_option("--context", args.context, "Context length in tokens; 0: that of the model, but at most 4096")
      .not_negative()
      .show_default();
  cmd.add_option("--cache", args.cache, "Type of the KV cache")
      .one_of({"f32", "bf16", "f16", "q8_0", "q4_0"})
      .show_default();
  cmd.add_option(
         "--matmul-precision", args.matmul_precision,
         "Allowed precision loss of matmuls: bf16 and int8 round operands; auto: int8 for block-quantized GGUF files, "
         "bf16 for bf16 weights")
      .one_of({"auto", "exact", "bf16", "int8"})
      .show_default();
  add_device_option(cmd, args.device);
  add_threads_option(cmd, args.threads);
  const Argument packed_weights =
      cmd.add_option("--packed-weights", args.packed_weights,
                     "Store the packed weights in this folder; later starts map them from there")
          .type_name("FOLDER");
  cmd.add_flag("--verify-packed-weights", args.verify_packed_weights,
               "Verify the checksums of all stored weights at the start")
      .needs(packed_weights);
  cmd.renamed("--products", "--matmul-precision");
  cmd.renamed("--forms", "--packed-weights");
  cmd.renamed("--verify-forms", "--verify-packed-weights");
  cmd.add_option("--adapter", args.adapters,
                 "A LoRA adapter in PEFT's layout, with its scale (may be given several times)")
      .type_name("FOLDER[=SCALE]");
  const char* drafting = "Speculative decoding (same text, often faster)";
  cmd.add_option("--draft", args.draft, "A small model of the same vocabulary that drafts tokens")
      .type_name("MODEL")
      .group(drafting);
  cmd.add_option("--draft-tokens", args.drafts.tokens, "Maximum number of tokens in a draft")
      .not_negative()
      .show_default()
      .group(drafting);
  cmd.add_option("--lookup", args.drafts.lookup,
                 "Prompt lookup: draft what followed the last match of at least this many tokens; 0: off")
      .not_negative()
      .show_default()
      .group(drafting);
  cmd.add_option("--stop", args.stop, "Text that ends the answer (may be given several times)");
  cmd.add_flag("--timings", args.timings, "Print timings to the standard error");
  cmd.add_flag("--skip-memory-check", args.skip_memory_check, "Load the model even if it seems not to fit into memory");
  const Argument grammar =
      cmd.add_option("--grammar", args.grammar, "Constrain answers to this GBNF grammar").type_name("FILE");
  const Argument schema = cmd.add_option("--json-schema", args.json_schema,
                                         "Constrain answers to JSON of this schema: a file, or the schema itself")
                              .type_name("FILE|TEXT")
                              .excludes(grammar);
  cmd.add_option(
         "--json-whitespace", args.json_whitespace,
         "White space in such answers: none, spaced (one space after : and ,), single (at most one character where "
         "JSON allows it) or flexible (up to 64 characters)")
      .one_of({"none", "spaced", "single", "flexible"})
      .show_default()
      .needs(schema);
  cmd.add_option("--chat-template", args.chat_template, "Jinja file to use instead of the model's chat template")
      .type_name("FILE");
  cmd.add_option("--save-state", args.save_state, "Save the conversation and its KV cache at the end")
      .type_name("FILE");
  cmd.add_option("--load-state", args.load_state, "Continue a saved conversation").type_name("FILE");
  SamplingOptions& s = args.sampling;
  const char* group = "Sampling";
  const auto number = [&](const char* name, auto& value, const char* what) {
    cmd.add_option(name, value, what).show_default().group(group);
  };
  number("--seed", s.seed, "Random seed: the same seed gives the same text");
  number("--temperature", s.temperature, "0: always the likeliest token");
  number("--dynamic-range", s.dynamic_range, "Temperature varies by this much with the entropy");
  number("--dynamic-exponent", s.dynamic_exponent, "Exponent of the entropy in --dynamic-range");
  number("--top-k", s.top_k, "Keep this many tokens; 0: off");
  number("--top-p", s.top_p, "Keep the likeliest tokens whose probabilities add up to this; 1: off");
  number("--min-p", s.min_p, "Keep tokens at least this likely, relative to the likeliest");
  number("--typical-p", s.typical_p, "Locally typical sampling; 1: off");
  number("--top-n-sigma", s.top_n_sigma, "Keep logits within n standard deviations of the best; 0: off");
  number("--xtc-probability", s.xtc_probability, "XTC: chance of removing the likeliest tokens");
  number("--xtc-threshold", s.xtc_threshold, "XTC: of the tokens at least this likely, only the least likely stays");
  number("--repetition-penalty", s.repetition_penalty, "Scales down logits of tokens in the penalty window; 1: off");
  number("--frequency-penalty", s.frequency_penalty, "Subtracted from a logit for each occurrence of its token");
  number("--presence-penalty", s.presence_penalty, "Subtracted once from the logits of tokens that occurred");
  number("--penalty-window", s.penalty_window, "Tokens that the penalties look back; -1: all");
  number("--dry-multiplier", s.dry_multiplier, "DRY penalty for continuing a repetition; 0: off");
  number("--dry-base", s.dry_base, "DRY: growth of the penalty per token of the repetition");
  number("--dry-allowed-length", s.dry_allowed_length, "DRY: shorter repetitions cost nothing");
  number("--mirostat", s.mirostat, "0: off, or version 1 or 2");
  number("--mirostat-tau", s.mirostat_tau, "Surprise that Mirostat aims for, in bits");
  number("--mirostat-eta", s.mirostat_eta, "Learning rate of Mirostat");
  cmd.add_option("--logit-bias", args.logit_bias,
                 "Add BIAS to the logit of a token, an id or a text; -inf forbids it (may be given several times)")
      .type_name("TOKEN=BIAS")
      .one_value_each()
      .group(group);
  cmd.add_option("--order", args.order, "Sampling steps in order, for example \"top_k;top_p;temperature\"")
      .group(group);
}

}  // namespace rlx::cli
