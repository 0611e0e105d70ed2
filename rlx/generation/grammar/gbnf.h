// The parser of GBNF text.
#pragma once

#include <string_view>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

/// The rules of a GBNF text as llama.cpp documents the format. Error positions begin with `source`. Errors: BadFile
/// with line and column for invalid GBNF, an undefined rule, a rule defined twice, and a missing root.
GrammarRules parse_gbnf(std::string_view text, std::string_view source, std::string_view root);

}  // namespace rlx
