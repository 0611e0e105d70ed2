// Options that `rlx generate` and `rlx chat` share, and the models that they ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/generation/engine.h"
#include "rlx/generation/grammar.h"
#include "rlx/generation/language_model.h"

namespace CLI {
class App;
}

namespace rlx::cli {

struct ModelArgs {
  std::string model, draft, device = "cpu", cache = "f32", products = "auto", order;
  DraftOptions drafts{};
  std::int64_t context = 0, tokens = 0;
  int threads = 0;
  SamplingOptions sampling{};
  std::vector<std::string> stop, adapters;
  std::string grammar, json_schema, chat_template, load_state, save_state, forms;
  bool timings = false, skip_memory_check = false, verify_packed_layouts = false;
};

inline constexpr const char* kSystemUsage = "What the model is told before a new conversation";
void add_model_options(CLI::App* cmd, ModelArgs& args);

/// The grammar or JSON schema that answers are held to; none where none is given.
std::optional<Grammar> read_grammar(const ModelArgs& args);
GenerationOptions generation_options(const ModelArgs& args, const LanguageModel& m, std::optional<Grammar> grammar);

struct LoadedModels {
  LanguageModel model;
  std::optional<DraftModel> draft{};
};
/// Loads the models, and says how long that took where timings are wanted.
LoadedModels load_models(const ModelArgs& args);
/// An engine that has them from then on.
Engine make_engine(const ModelArgs& args, LoadedModels& loaded);

/// Throws where `text`, called `what`, is no UTF-8.
void require_text(const std::string& text, std::string_view what);

}  // namespace rlx::cli
