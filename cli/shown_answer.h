// An answer of a language model, shown on the standard output as it comes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/generation/engine.h"

namespace rlx::cli {

/// Writes text and lets it be seen at once.
void show(std::string_view text);

struct ShownAnswer {
  std::string text;
  std::vector<TokenId> tokens;  // without one that ended it
  FinishReason finish = FinishReason::None;
  BegunAnswer begun{};  // where it stands in the end
};
/// One answer, shown as it comes; ctrl-C ends it. With `timings` the standard error says how long it took.
ShownAnswer show_answer(Engine& engine, std::span<const TokenId> prompt, const GenerationOptions& options,
                        bool timings);

}  // namespace rlx::cli
