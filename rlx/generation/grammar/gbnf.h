// Reads GBNF text into rules.
#pragma once

#include <string_view>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

/// The rules of a GBNF text as llama.cpp documents the form; `source` opens the places of errors. Errors: BadFile with
/// line and column for what is no GBNF, a rule that is not defined or defined twice, and a missing root.
GrammarRules parse_gbnf(std::string_view text, std::string_view source, std::string_view root);

}  // namespace rlx
