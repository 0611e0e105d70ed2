// Options that `rlx generate` and `rlx chat` share, and loading the models that they name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/grammar.h"
#include "rlx/generation/language_model.h"

namespace rlx::cli {

struct ModelArgs {
  std::string model, draft, device = "cpu", cache = "f32", matmul_precision = "auto", order;
  DraftOptions drafts{};
  std::int64_t context = 0, tokens = 0;
  int threads = 0;
  SamplingOptions sampling{};
  std::vector<std::string> stop, adapters, logit_bias;
  std::string grammar, json_schema, json_whitespace = "single", chat_template, load_state, save_state, packed_weights;
  bool timings = false, skip_memory_check = false, verify_packed_weights = false;
};

inline constexpr const char* kSystemUsage = "System message of a new conversation";
void add_model_options(Command cmd, ModelArgs& args);

/// The grammar of --grammar or --json-schema, if one of them is given.
std::optional<Grammar> read_grammar(const ModelArgs& args);
GenerationOptions generation_options(const ModelArgs& args, const LanguageModel& m, std::optional<Grammar> grammar);

struct LoadedModels {
  LanguageModel model;
  std::optional<DraftModel> draft{};
};
/// Loads the models; with --timings prints how long that took.
LoadedModels load_models(const ModelArgs& args);
/// An engine that takes the loaded models over.
Engine make_engine(const ModelArgs& args, LoadedModels& loaded);

/// Throws if `text` is not valid UTF-8; the message calls it `what`.
void require_text(const std::string& text, std::string_view what);

}  // namespace rlx::cli
