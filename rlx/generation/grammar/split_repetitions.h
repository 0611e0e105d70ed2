// Splits large repetitions into rules.
#pragma once

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

/// The same grammar with x{n} of a large x as n calls of a rule, and of a large n as calls of rules of 256 x each. The
/// number of states then grows with the logarithm of n.
GrammarRules split_repetitions(const GrammarRules& rules);

}  // namespace rlx
