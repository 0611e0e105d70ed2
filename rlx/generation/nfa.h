// The states of one rule: built from its expression with empty edges, then made deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlx/generation/automaton.h"
#include "rlx/generation/rule_sizes.h"

namespace rlx {

/// A state under construction; `jumps` are taken without a byte.
struct NfaState {
  std::vector<Automaton::ByteEdge> edges{};
  std::vector<Automaton::CallEdge> calls{};
  std::vector<StateId> jumps{};
  bool accepts = false;
  StateId twin = kNoState;
  std::uint32_t horizon = 0;
};

/// Thompson's construction for the body of a rule; state 0 is its start. `left` is how many states the grammar may
/// still have. Errors: Unsupported naming the rule when they do not suffice.
std::vector<NfaState> build_nfa(const GrammarRules& rules, const RuleSizes& sizes, RuleId rule, std::uint64_t& left);

/// The same rule without jumps, state 0 its start. Rules that would grow out of proportion stay nondeterministic.
std::vector<NfaState> determinize(const std::vector<NfaState>& nfa);

}  // namespace rlx
