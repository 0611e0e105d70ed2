// Prints an answer of a language model while it is generated.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/generation/engine.h"

namespace rlx::cli {

/// Writes text to the standard output and flushes it.
void show(std::string_view text);

struct ShownAnswer {
  std::string text;
  std::vector<TokenId> tokens;  // without the stop token
  FinishReason finish = FinishReason::None;
  BegunAnswer begun{};  // the state from which it can continue
};
/// Generates one answer and prints its text as it is generated. ctrl-C ends it. `timings` prints times to the standard
/// error.
ShownAnswer show_answer(Engine& engine, std::span<const TokenId> prompt, const GenerationOptions& options,
                        bool timings);

}  // namespace rlx::cli
